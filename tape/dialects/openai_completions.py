"""OpenAI text completions, the API before chat; vLLM and others still offer it.

Source: OpenAI API reference, "Completions" (legacy).
"""

from ..exchange import HttpRequest, HttpResponse
from . import openai_chat
from .common.dialect import Claim, Dialect, Heard, is_post
from .common.inference import InferenceRequest, InferenceResponse, Message, Text
from .common.untrusted_json import Json, JsonObject, as_list, as_object, as_objects, as_texts
from .openai_chat_fold import ChatFold


def claim(request: HttpRequest) -> Claim:
    """Claim the path, on any host; a deployment of Azure's stands in its path."""
    path = request.path
    if not is_post(request) or not path.endswith("/completions"):
        return Claim.NO
    ours = path.endswith("/v1/completions") or "/deployments/" in path
    return Claim.YES if ours else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for a text to be gone on with."""
    body = as_object(tree)
    return "prompt" in body and isinstance(body.get("model"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request; each prompt is a message, one that is a list of tokens is not shown."""
    body = as_object(tree)
    if not has_shape(tree) and "prompt" not in body:
        return None
    return InferenceRequest(
        dialect=DIALECT.name,
        model=openai_chat.read_model(body, request),
        streamed=body.get("stream") is True,
        sampling=openai_chat.read_sampling(body),
        messages=tuple(Message("user", (Text(text),)) for text in as_texts(body["prompt"])),
    )


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer: each choice has a text where a chat has a message."""
    body = as_object(tree)
    choices: list[Json] = [
        {**item, "message": {"content": item.get("text")}}
        for item in as_objects(as_list(body.get("choices")))
    ]
    if not isinstance(body.get("choices"), list):
        return None
    return openai_chat.read_answer({**body, "choices": choices}, request, response)


class _TextFold(ChatFold):
    """Chunks to one completion: each is a chat's chunk with its text in another place."""

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next chunk."""
        choices: list[Json] = [
            {**item, "delta": {"content": item.get("text")}}
            for item in as_objects(as_list(piece.get("choices")))
        ]
        return super().add(name, {**piece, "choices": choices} if "choices" in piece else piece)

    def whole(self) -> Json:
        """Give the completion."""
        body = as_object(super().whole())
        choices: list[Json] = [
            {**item, "text": as_object(item.get("message")).get("content")}
            for item in as_objects(body.get("choices"))
        ]
        return {**body, "choices": choices}


DIALECT = Dialect(
    "openai-completions",
    claim,
    has_shape,
    read_request,
    read_answer,
    _TextFold,
    places=openai_chat.TEXT_PLACES,
)
