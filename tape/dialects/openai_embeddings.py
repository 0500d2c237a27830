"""OpenAI embeddings: model and tokens. The vectors are left in the body.

Source: OpenAI API reference, "Embeddings".
"""

from ..exchange import HttpRequest, HttpResponse
from . import openai_chat
from .common.dialect import Claim, Dialect, NoFold, is_post
from .common.drift_places import DEPLOYMENT, Places
from .common.inference import InferenceRequest, InferenceResponse, Message, Text
from .common.untrusted_json import Json, as_object, as_text, as_texts


def claim(request: HttpRequest) -> Claim:
    """Claim the path; other hosts may have their own idea of it."""
    path = request.path
    if not is_post(request) or not path.endswith("/embeddings"):
        return Claim.NO
    ours = path.endswith("/v1/embeddings") or "/deployments/" in path
    return Claim.YES if ours else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for embeddings."""
    body = as_object(tree)
    return "input" in body and isinstance(body.get("model"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request; each text is a message, one that is a list of tokens is not shown."""
    body = as_object(tree)
    if "input" not in body:
        return None
    return InferenceRequest(
        dialect=DIALECT.name,
        model=openai_chat.read_model(body, request),
        messages=tuple(Message("user", (Text(text),)) for text in as_texts(body["input"])),
    )


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer."""
    body = as_object(tree)
    if not isinstance(body.get("data"), list):
        return None
    return InferenceResponse(
        model=as_text(body.get("model")),
        id=as_text(body.get("id")),
        usage=openai_chat.read_usage(body.get("usage")),
    )


_PLACES = Places(model=("model",), in_path=DEPLOYMENT)

DIALECT = Dialect(
    "openai-embeddings", claim, has_shape, read_request, read_answer, NoFold, places=_PLACES
)
