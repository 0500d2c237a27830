"""Errors in provider bodies, which have little in common but a message."""

from ...exchange import HttpResponse
from .inference import ApiError
from .untrusted_json import Json, as_object, as_text, as_word, first_set, show_value

MAX_TEXT = 500
"""Characters of a body that is no JSON which are shown as the message."""


def find_error(tree: Json) -> ApiError | None:
    """Find what stands under `error`, in any answer."""
    if isinstance(tree, list):  # Gemini answers for a stream with an array of one
        tree = tree[0] if tree else None
    body = as_object(tree)
    error = body.get("error")
    if isinstance(error, str) and error:
        return ApiError(error, as_text(body.get("type")), as_word(body.get("code")))
    if not isinstance(error, dict) or not error:
        return None
    return ApiError(
        as_text(error.get("message")) or show_value(error),
        as_text(first_set([error.get("type"), error.get("status")])),
        as_word(error.get("code")),
    )


def read_error(tree: Json, body: bytes, response: HttpResponse) -> ApiError:
    """Give the error that a response with such a status carries."""
    return find_error(tree) or _find_bare_error(tree, response) or _text_error(body, response)


def _find_bare_error(tree: Json, response: HttpResponse) -> ApiError | None:
    """Find a message that stands at the top: AWS, Cohere, Mistral, FastAPI."""
    body = as_object(tree)
    said = first_set([body.get(name) for name in ("message", "Message", "detail")])
    if said is None or said == "":
        return None
    kind = as_text(first_set([body.get("__type"), body.get("type")]))
    if kind is None:
        kind = (response.header(b"x-amzn-errortype") or b"").decode("latin-1").partition(":")[0]
    message = said if isinstance(said, str) else show_value(said)
    return ApiError(message, kind or None, as_word(body.get("code")))


def _text_error(body: bytes, response: HttpResponse) -> ApiError:
    text = body[: 4 * MAX_TEXT].decode("utf-8", "replace").strip()[:MAX_TEXT]
    return ApiError(text or response.reason.decode("latin-1") or f"HTTP {response.status}")
