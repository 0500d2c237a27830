"""Mistral: OpenAI's chat with some other names, and fill-in-the-middle completions.

What differs: `random_seed`, `stop` and limits in other words, thoughts as parts of the content, arguments of
tool calls that may be a value, whole tool calls in one delta; requests to an agent name it in the place of a
model.

Source: Mistral API reference, "Chat", "FIM" and "Agents".
"""

from dataclasses import replace

from ..exchange import HttpRequest
from . import openai_chat
from .common.dialect import Claim, Dialect, is_post
from .common.drift_places import GOOGLE
from .common.inference import InferenceRequest, Message, Text
from .common.untrusted_json import Json, as_object, as_text
from .openai_chat_fold import ChatFold

_PATHS = ("/v1/chat/completions", "/v1/agents/completions", "/v1/fim/completions")
_OWN_PATHS = _PATHS[1:]


def claim(request: HttpRequest) -> Claim:
    """Claim Mistral's hosts, and its own paths elsewhere."""
    if not is_post(request):
        return Claim.NO
    host = request.host.lower()
    if host == "mistral.ai" or host.endswith(".mistral.ai"):
        return Claim.YES if request.path.endswith(_PATHS) else Claim.NO
    if request.path.endswith(_OWN_PATHS):
        return Claim.MAYBE
    # On Vertex the publisher stands in the path.
    vertex = "/publishers/mistralai/models/" in request.path
    return Claim.MAYBE if vertex and request.path.endswith("awPredict") else Claim.NO


def has_shape(tree: Json) -> bool:
    """Say whether a body is a chat, or code to be gone on with."""
    body = as_object(tree)
    return isinstance(body.get("messages"), list) or isinstance(body.get("prompt"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request."""
    body = as_object(tree)
    if not has_shape(tree):
        return None
    asked = openai_chat.read_request(tree, request)
    if asked is None:
        asked = InferenceRequest(
            streamed=body.get("stream") is True,
            dialect=DIALECT.name,
            model=as_text(body.get("model")),
            sampling=openai_chat.read_sampling(body),
            messages=_code(body.get("prompt"), body.get("suffix")),
        )
    return replace(asked, dialect=DIALECT.name, model=asked.model or as_text(body.get("agent_id")))


def _code(*ends: Json) -> tuple[Message, ...]:
    texts = [text for text in map(as_text, ends) if text]
    return (Message("user", tuple(Text(text) for text in texts)),)


DIALECT = Dialect(
    "mistral",
    claim,
    has_shape,
    read_request,
    openai_chat.read_answer,
    ChatFold,
    places=replace(openai_chat.PLACES, model=("model", "agent_id"), in_path=GOOGLE),
)
