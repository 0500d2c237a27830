"""Anthropic text completions, the API before messages.

Source: Anthropic API reference, "Text completions" (legacy).
"""

from ..exchange import HttpRequest, HttpResponse
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.drift_places import Places
from .common.inference import (
    Choice,
    Finish,
    InferenceRequest,
    InferenceResponse,
    Message,
    Sampling,
    Text,
)
from .common.untrusted_json import (
    Json,
    JsonObject,
    as_count,
    as_number,
    as_object,
    as_text,
    as_texts,
)

_FINISH = {
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "refusal": Finish.FILTERED,
}


def claim(request: HttpRequest) -> Claim:
    """Claim the path at Anthropic; elsewhere it may be anything."""
    if not is_post(request) or not request.path.endswith("/v1/complete"):
        return Claim.NO
    return Claim.YES if request.host.lower().endswith("anthropic.com") else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for a text to be gone on with."""
    body = as_object(tree)
    return isinstance(body.get("prompt"), str) and "max_tokens_to_sample" in body


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request; the prompt is one message, with the turns in it as they are written."""
    body = as_object(tree)
    prompt = as_text(body.get("prompt"))
    if prompt is None:
        return None
    return InferenceRequest(
        dialect=DIALECT.name,
        model=as_text(body.get("model")),
        streamed=body.get("stream") is True,
        sampling=Sampling(
            temperature=as_number(body.get("temperature")),
            top_p=as_number(body.get("top_p")),
            top_k=as_number(body.get("top_k")),
            max_tokens=as_count(body.get("max_tokens_to_sample")),
            stop=as_texts(body.get("stop_sequences")),
        ),
        messages=(Message("user", (Text(prompt),)),),
    )


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer; it states no usage."""
    body = as_object(tree)
    text = as_text(body.get("completion"))
    if text is None:
        return None
    reason = as_text(body.get("stop_reason"))
    message = Message("assistant", (Text(text),) if text else ())
    return InferenceResponse(
        model=as_text(body.get("model")),
        id=as_text(body.get("id")),
        choices=(Choice(message, find_finish(reason, _FINISH), reason),),
    )


class CompletionFold:
    """Events to one completion."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._texts: list[str] = []

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next event."""
        kind = as_text(piece.get("type")) or name
        if kind in ("ping", "error"):
            return Heard.KNOWN
        text = as_text(piece.get("completion"))
        if text is None:
            return Heard.UNKNOWN
        self._body.update(piece)
        self._texts.append(text)
        self.ended = piece.get("stop_reason") is not None
        return Heard.CONTENT if text else Heard.KNOWN

    def whole(self) -> Json:
        """Give the completion."""
        return {**self._body, "completion": "".join(self._texts)}


_PLACES = Places(model=("model",), temperature=("temperature",), top_p=("top_p",))

DIALECT = Dialect(
    "anthropic-complete",
    claim,
    has_shape,
    read_request,
    read_answer,
    CompletionFold,
    places=_PLACES,
)
