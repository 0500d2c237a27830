"""Bedrock InvokeModel: each maker's own format, in a body or in the frames of a stream.

Anthropic's messages, Nova's and OpenAI's chats are read by those dialects. What is left are texts: a prompt
and its continuation, which every maker names in words of its own. Usage that a body does not state stands in
header fields, or in the last frame.

Source: Amazon Bedrock User Guide, "Inference request parameters and response fields for foundation models";
API reference, "InvokeModelWithResponseStream".
"""

import binascii
import re
from base64 import b64decode
from dataclasses import replace
from urllib.parse import unquote

from ..exchange import HttpRequest, HttpResponse
from . import anthropic_messages, bedrock_converse, cohere_v1, openai_chat
from .common.dialect import Claim, Dialect, Fold, Heard, find_finish, is_post
from .common.drift_places import BEDROCK, Places
from .common.inference import (
    Choice,
    Finish,
    InferenceRequest,
    InferenceResponse,
    Message,
    Sampling,
    Text,
    Usage,
)
from .common.untrusted_json import (
    Json,
    JsonObject,
    as_count,
    as_number,
    as_object,
    as_objects,
    as_text,
    as_texts,
    find_json,
    first_set,
)
from .openai_chat_fold import ChatFold

_FINISH = {
    "stop": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "end_turn": Finish.STOP,
    "endoftext": Finish.STOP,
    "finish": Finish.STOP,
    "complete": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filtered": Finish.FILTERED,
    "refusal": Finish.FILTERED,
    "error": Finish.FAILED,
    "error_toxic": Finish.FILTERED,
    "intervened": Finish.FILTERED,
}
"""By the reason in lower case."""
_PATH = re.compile(r"/model/(.+)/(invoke|invoke-with-response-stream)$")
_METRICS = "amazon-bedrock-invocationMetrics"
_MAX_DIGITS = 16
"""Of a number in a header field."""


def claim(request: HttpRequest) -> Claim:
    """Claim the path, on any host: there are many endpoints, and gateways before them."""
    return Claim.YES if is_post(request) and _PATH.search(request.path) else Claim.NO


def has_shape(tree: Json) -> bool:
    """Say whether a body can be read: any object has to be tried."""
    return isinstance(tree, dict)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request, in the format that its body has."""
    body = as_object(tree)
    asked = _read_format(body, request)
    if asked is None:
        return None
    found = _PATH.search(request.path)
    return replace(
        asked,
        dialect=DIALECT.name,
        model=unquote(found[1]) if found else None,
        streamed=found is not None and found[2] == "invoke-with-response-stream",
    )


def _read_format(body: JsonObject, request: HttpRequest) -> InferenceRequest | None:
    if isinstance(body.get("messages"), list):
        if "anthropic_version" in body:
            return anthropic_messages.read_request(body, request)
        if "inferenceConfig" in body or "schemaVersion" in body:
            return bedrock_converse.read_conversation(body)
        return openai_chat.read_request(body, request)
    if isinstance(body.get("message"), str):
        return cohere_v1.read_request(body, request)
    return _read_prompt(body)


def _choose_places(tree: Json) -> Places:
    """Say where what may drift stands: in the path, and where the body's format has it."""
    body = as_object(tree)
    places = _PROMPT_PLACES
    if isinstance(body.get("messages"), list):
        places = openai_chat.PLACES
        if "anthropic_version" in body:
            places = anthropic_messages.PLACES
        elif "inferenceConfig" in body or "schemaVersion" in body:
            places = bedrock_converse.PLACES
    elif isinstance(body.get("message"), str):
        places = cohere_v1.PLACES
    return replace(places, in_path=BEDROCK)


def _read_prompt(body: JsonObject) -> InferenceRequest | None:
    """Read a prompt: Titan, Llama, Mistral, AI21, Cohere, Anthropic's kind before messages."""
    prompt = as_text(first_set([body.get("prompt"), body.get("inputText")]))
    if prompt is None:
        return None
    config = {**body, **as_object(body.get("textGenerationConfig"))}
    limits = ("max_tokens", "max_gen_len", "maxTokenCount", "maxTokens", "max_tokens_to_sample")
    return InferenceRequest(
        dialect="",
        sampling=Sampling(
            temperature=as_number(config.get("temperature")),
            top_p=as_number(_any(config, "top_p", "topP", "p")),
            top_k=as_number(_any(config, "top_k", "topK", "k")),
            max_tokens=as_count(_any(config, *limits)),
            seed=as_count(config.get("seed")),
            stop=as_texts(_any(config, "stop", "stop_sequences", "stopSequences")),
        ),
        messages=(Message("user", (Text(prompt),)),),
    )


def _any(body: JsonObject, *names: str) -> Json:
    return first_set(body.get(name) for name in names)


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer, in the format that it has."""
    body = as_object(tree)
    answer = (
        _read_chat(body, request, response)
        or bedrock_converse.read_answer(body, request, response)
        or anthropic_messages.read_answer(body, request, response)
        or _read_text(body)
    )
    if answer is None:
        return None
    return replace(answer, usage=_fill(answer.usage or _text_usage(body), body, response))


def _read_chat(
    body: JsonObject, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    choices = as_objects(body.get("choices"))
    if not any("message" in choice for choice in choices):
        return None
    return openai_chat.read_answer(body, request, response)


def _read_text(body: JsonObject) -> InferenceResponse | None:
    found = _find_text(body)
    if found is None:
        # A model of another kind, as embeddings: what it took is stated all the same.
        vectors = "embedding" in body or "embeddings" in body
        return InferenceResponse() if vectors else None
    text, reason = found
    reason = reason or _find_guard(body)
    message = Message("assistant", (Text(text),) if text else ())
    finish = find_finish(None if reason is None else reason.lower(), _FINISH)
    return InferenceResponse(
        model=as_text(body.get("model")), choices=(Choice(message, finish, reason),)
    )


def _find_guard(body: JsonObject) -> str | None:
    """Find that a guardrail wrote the answer, which then has no reason of the model's."""
    action = as_text(body.get("amazon-bedrock-guardrailAction"))
    return action if action == "INTERVENED" else None


_LISTS = ("results", "outputs", "generations", "completions", "choices")
_TEXTS = ("outputText", "generation", "completion", "text")
_REASONS = ("completionReason", "stop_reason", "finish_reason", "finishReason")


def _find_text(body: JsonObject) -> tuple[str, str | None] | None:
    """Find the text, and why it ended, at the top or in the first member of a list."""
    for place in (body, *(item for name in _LISTS for item in as_objects(body.get(name))[:1])):
        data = as_object(place.get("data"))  # AI21
        text = as_text(_any({**data, **place}, *_TEXTS))
        if text is not None:
            reason = _any(place, *_REASONS)
            if isinstance(reason, dict):  # AI21
                reason = reason.get("reason")
            return text, as_text(reason)
    return None


def _text_usage(body: JsonObject) -> Usage:
    """Give the figures of a text: Titan's, Llama's, or those of OpenAI's text completions."""
    first = next(iter(as_objects(body.get("results"))), {})
    total = openai_chat.read_usage(body.get("usage")) or Usage()
    output = ("generation_token_count", "totalOutputTextTokenCount")
    return replace(
        total,
        input_tokens=_first_count(
            _any(body, "prompt_token_count", "inputTextTokenCount"), total.input_tokens
        ),
        output_tokens=_first_count(
            _any(body, *output), first.get("tokenCount"), total.output_tokens
        ),
    )


def _first_count(*values: Json) -> int | None:
    """Give the first whole number."""
    return as_count(first_set(values))


def _fill(usage: Usage, body: JsonObject, response: HttpResponse) -> Usage | None:
    """Put what Bedrock states itself where the body states nothing."""
    metrics = as_object(body.get(_METRICS))

    def stated(known: int | None, metric: str, header: bytes) -> int | None:
        said = response.header(b"x-amzn-bedrock-" + header + b"-token-count") or b""
        number = int(said) if said.isdigit() and len(said) < _MAX_DIGITS else None
        return _first_count(known, metrics.get(metric), number)

    filled = replace(
        usage,
        input_tokens=stated(usage.input_tokens, "inputTokenCount", b"input"),
        output_tokens=stated(usage.output_tokens, "outputTokenCount", b"output"),
        cached_read_tokens=stated(
            usage.cached_read_tokens, "cacheReadInputTokenCount", b"cache-read-input"
        ),
        cached_write_tokens=stated(
            usage.cached_write_tokens, "cacheWriteInputTokenCount", b"cache-write-input"
        ),
    )
    return None if filled == Usage() else filled


class _TextFold:
    """Pieces of a text to one."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._texts: list[str] = []
        self._reason: str | None = None

    def add(self, name: str, piece: JsonObject) -> Heard:
        found = _find_text(piece)
        self._body.update({key: value for key, value in piece.items() if value is not None})
        if found is None:
            known = "is_finished" in piece or bool(_any(piece, *_REASONS))
            self._end(as_text(_any(piece, *_REASONS)))
            return Heard.KNOWN if known else Heard.UNKNOWN
        self._texts.append(found[0])
        self._end(found[1])
        # Titan gives its totals last, and no reason where a guardrail wrote the answer.
        self.ended |= piece.get("totalOutputTextTokenCount") is not None
        return Heard.CONTENT if found[0] else Heard.KNOWN

    def _end(self, reason: str | None) -> None:
        self._reason = reason or self._reason
        self.ended = self._reason is not None

    def whole(self) -> Json:
        body = {key: value for key, value in self._body.items() if key not in (*_TEXTS, *_LISTS)}
        return {**body, "outputText": "".join(self._texts), "completionReason": self._reason}


class InvokeFold:
    """Frames that hold a maker's own events to one answer."""

    def __init__(self) -> None:
        self._fold: Fold | None = None
        self._metrics: Json = None

    @property
    def ended(self) -> bool:
        """Whether the maker's own stream is at its end, or what comes with its last frame was there."""
        return self._metrics is not None or (self._fold is not None and self._fold.ended)

    @ended.setter
    def ended(self, ended: bool) -> None:
        if self._fold is not None:  # nobody else says so
            self._fold.ended = ended

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next frame."""
        inner = _open(piece)
        if inner is None:
            return Heard.UNKNOWN
        self._metrics = inner.pop(_METRICS, None) or self._metrics
        if not inner:
            return Heard.KNOWN
        if self._fold is None:
            self._fold = _make_fold(inner)
        return self._fold.add(as_text(inner.get("type")) or "", inner)

    def whole(self) -> Json:
        """Give the answer."""
        body = as_object(None if self._fold is None else self._fold.whole())
        return {**body, _METRICS: self._metrics}


def _open(piece: JsonObject) -> JsonObject | None:
    """Open what a frame holds: JSON in base64."""
    text = as_text(piece.get("bytes"))
    if text is None:
        return None
    try:
        inner = find_json(b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        return None
    return inner if isinstance(inner, dict) else None


def _make_fold(first: JsonObject) -> Fold:
    """Make the fold for the format that a stream's first event shows."""
    if "type" in first and "completion" not in first:
        return anthropic_messages.MessageFold()
    if any("delta" in choice or "message" in choice for choice in as_objects(first.get("choices"))):
        return ChatFold()
    if any(key.startswith(("message", "contentBlock")) for key in first):
        return bedrock_converse.ConverseFold()
    return _TextFold()


_CONFIG = "textGenerationConfig"
_PROMPT_PLACES = Places(
    temperature=("temperature", f"{_CONFIG}.temperature"),
    top_p=tuple(
        f"{where}{name}" for where in ("", f"{_CONFIG}.") for name in ("top_p", "topP", "p")
    ),
    seed=("seed", f"{_CONFIG}.seed"),
    in_path=BEDROCK,
)

DIALECT = Dialect(
    "bedrock-invoke",
    claim,
    has_shape,
    read_request,
    read_answer,
    InvokeFold,
    choose_places=_choose_places,
)
