"""Cohere text completions, the API before chat.

Source: Cohere API reference, "Generate" (legacy).
"""

from ..exchange import HttpRequest, HttpResponse
from . import cohere
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.inference import Choice, InferenceRequest, InferenceResponse, Message, Text
from .common.untrusted_json import Json, JsonObject, as_object, as_objects, as_text


def claim(request: HttpRequest) -> Claim:
    """Claim the path at Cohere alone."""
    ours = request.path.endswith("/v1/generate") and "cohere" in request.host.lower()
    return Claim.YES if ours and is_post(request) else Claim.NO


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for a text to be gone on with."""
    return isinstance(as_object(tree).get("prompt"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request."""
    body = as_object(tree)
    prompt = as_text(body.get("prompt"))
    if prompt is None:
        return None
    return InferenceRequest(
        dialect=DIALECT.name,
        model=as_text(body.get("model")),
        streamed=body.get("stream") is True,
        sampling=cohere.read_sampling(body),
        messages=(Message("user", (Text(prompt),)),),
    )


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer: one choice for each text."""
    body = as_object(tree)
    if not isinstance(body.get("generations"), list):
        return None
    texts = as_objects(body["generations"])
    return InferenceResponse(
        id=as_text(body.get("id")),
        choices=tuple(_choice(item, at) for at, item in enumerate(texts)),
        usage=cohere.read_usage(body.get("meta")),
    )


def _choice(item: JsonObject, at: int) -> Choice:
    text, reason = as_text(item.get("text")), as_text(item.get("finish_reason"))
    message = Message("assistant", (Text(text),) if text else ())
    return Choice(message, find_finish(reason, cohere.FINISH), reason, at)


class TextFold:
    """Lines to one answer; the last holds all of it."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._texts: list[str] = []

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next line."""
        if piece.get("is_finished") is True:
            self._body = as_object(piece.get("response"))
            self.ended = True
            return Heard.KNOWN
        text = as_text(piece.get("text"))
        if text is None:
            return Heard.UNKNOWN
        self._texts.append(text)
        return Heard.CONTENT if text else Heard.KNOWN

    def whole(self) -> Json:
        """Give the answer."""
        return {"generations": [{"text": "".join(self._texts)}], **self._body}


DIALECT = Dialect(
    "cohere-generate",
    claim,
    has_shape,
    read_request,
    read_answer,
    TextFold,
    by_lines=True,
    places=cohere.TEXT_PLACES,
)
