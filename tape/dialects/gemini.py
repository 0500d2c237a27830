"""Gemini `generateContent` and `streamGenerateContent`: at the Gemini API, on Vertex and for its command line.

The model stands in the path. Names may be written in two ways (`maxOutputTokens`, `max_output_tokens`), words
may be numbers (`$alt=json;enum-encoding=int`), a stream may be events or an array. Thinking tokens are not
part of the output tokens.

Source: Gemini API reference, "Generating content"; Vertex AI reference, "GenerateContentResponse".
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import unquote

from ..exchange import HttpRequest, HttpResponse
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.drift_places import GOOGLE, Places
from .common.inference import (
    Choice,
    Finish,
    Image,
    InferenceRequest,
    InferenceResponse,
    Message,
    ModeTokens,
    Other,
    Part,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
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
    as_word,
    first_set,
)

_FINISH = {
    "STOP": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MODEL_ARMOR",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
        ),
        Finish.FILTERED,
    ),
    "MALFORMED_FUNCTION_CALL": Finish.FAILED,
    "UNEXPECTED_TOOL_CALL": Finish.FAILED,
    "TOO_MANY_TOOL_CALLS": Finish.FAILED,
    # As numbers. Those beyond 5 differ between the two APIs; these three filter in both.
    "1": Finish.STOP,
    "2": Finish.LENGTH,
    **dict.fromkeys(("3", "4", "6", "7", "8"), Finish.FILTERED),
}
_ROLES = {"model": "assistant", "function": "tool"}
_PATH = re.compile(r"(?:/([^/:]+))?:(generateContent|streamGenerateContent)$")
_SPEAKERS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def claim(request: HttpRequest) -> Claim:
    """Claim the methods' names, on any host."""
    return Claim.YES if is_post(request) and _PATH.search(request.path) else Claim.NO


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for content."""
    return "contents" in _open(as_object(tree), "request")


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request."""
    if not has_shape(tree):
        return None
    body = _open(as_object(tree), "request")
    found = _PATH.search(request.path)
    config = as_object(_get(body, "generationConfig"))
    instruction = _get(body, "systemInstruction")
    tools = body.get("tools")
    named = as_text(as_object(tree).get("model"))
    in_path = found[1] if found and "models/" in request.path else None
    return InferenceRequest(
        dialect=DIALECT.name,
        model=unquote(in_path) if in_path else named or _tuned(request, found),
        streamed=found is not None and found[2] == "streamGenerateContent",
        system=None if instruction is None else _text(instruction),
        sampling=_sampling(body, config),
        tools=tuple(tool for item in as_objects(tools) for tool in _tools(item)),
        messages=tuple(_message(item) for item in as_objects(body.get("contents"))),
        raw_tools=tools,
    )


def _open(body: JsonObject, name: str) -> JsonObject:
    """Give what the command line's own service wraps in one more object."""
    inner = body.get(name)
    return inner if isinstance(inner, dict) else body


def _get(body: JsonObject, name: str) -> Json:
    """Give a field in either way to write its name."""
    value = body.get(name)
    return body.get(_SPEAKERS.sub("_", name).lower()) if value is None else value


def _tuned(request: HttpRequest, found: re.Match[str] | None) -> str | None:
    """Give the endpoint that a model of one's own has on Vertex."""
    if found is None or "/endpoints/" not in request.path:
        return None
    return f"endpoints/{unquote(found[1])}"


def _sampling(body: JsonObject, config: JsonObject) -> Sampling:
    schema = first_set([_get(config, "responseJsonSchema"), _get(config, "responseSchema")])
    return Sampling(
        temperature=as_number(config.get("temperature")),
        top_p=as_number(_get(config, "topP")),
        top_k=as_number(_get(config, "topK")),
        max_tokens=as_count(_get(config, "maxOutputTokens")),
        seed=as_count(config.get("seed")),
        stop=as_texts(_get(config, "stopSequences")),
        response_format=first_set([schema, _get(config, "responseMimeType")]),
        thinking=_get(config, "thinkingConfig"),
        tool_choice=_get(body, "toolConfig"),
    )


def _tools(item: JsonObject) -> list[Tool]:
    """Read one entry: it holds the agent's functions, or names what the provider has."""
    found = []
    for kind, value in item.items():
        if kind not in ("functionDeclarations", "function_declarations"):
            found.append(Tool(kind, kind=kind))
            continue
        for one in as_objects(value):
            schemas = [_get(one, "parametersJsonSchema"), one.get("parameters")]
            found.append(
                Tool(
                    as_text(one.get("name")) or "",
                    as_text(one.get("description")),
                    first_set(schemas),
                )
            )
    return found


def _message(item: JsonObject) -> Message:
    role = as_text(item.get("role")) or "user"
    parts = tuple(_part(part) for part in as_objects(item.get("parts")))
    return Message(_ROLES.get(role, role), parts)


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = as_objects(as_object(content).get("parts"))
    return "\n".join(as_text(part.get("text")) or "" for part in parts)


def _part(item: JsonObject) -> Part:
    signature = as_text(_get(item, "thoughtSignature"))
    text = as_text(item.get("text"))
    if text is not None:
        return Thinking(text, signature) if item.get("thought") is True else Text(text)
    if isinstance(call := _get(item, "functionCall"), dict):
        name = as_text(call.get("name")) or ""
        return ToolCall(as_text(call.get("id")), name, call.get("args", {}))
    if isinstance(result := _get(item, "functionResponse"), dict):
        given = Other("json", result.get("response"))
        return ToolResult(as_text(result.get("id")), (given,), as_text(result.get("name")))
    for name in ("inlineData", "fileData"):
        if isinstance(data := _get(item, name), dict):
            return _data(name, data)
    return Other(next(iter(item), ""), item)


def _data(kind: str, data: JsonObject) -> Part:
    media = as_text(_get(data, "mimeType"))
    if media is None or not media.startswith("image/"):
        return Other(kind, data)
    return Image(media, as_text(_get(data, "fileUri")), as_text(data.get("data")))


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer; one without candidates was held back before the model saw the question."""
    body = _open(as_object(tree), "response")
    feedback = as_object(_get(body, "promptFeedback"))
    candidates = as_objects(body.get("candidates"))
    usage = _get(body, "usageMetadata")
    if not candidates and not feedback and usage is None:
        return None
    choices = tuple(_choice(item, at) for at, item in enumerate(candidates))
    blocked = as_word(_get(feedback, "blockReason"))
    if not choices and blocked is not None:
        choices = (Choice(Message("assistant", ()), Finish.FILTERED, blocked),)
    return InferenceResponse(
        model=as_text(_get(body, "modelVersion")),
        id=as_text(_get(body, "responseId")),
        choices=choices,
        usage=read_usage(usage),
    )


def _choice(item: JsonObject, at: int) -> Choice:
    message = _message({"role": "model", **as_object(item.get("content"))})
    reason = as_word(_get(item, "finishReason"))
    index = as_count(item.get("index"))
    finish = find_finish(reason, _FINISH, bool(message.tool_calls))
    return Choice(message, finish, reason, at if index is None else index)


def read_usage(usage: Json) -> Usage | None:
    """Read the figures."""
    body = as_object(usage)
    if not body:
        return None
    # Results of the provider's own tools are input that is counted apart from the prompt.
    asked = [as_count(_get(body, name)) for name in ("promptTokenCount", "toolUsePromptTokenCount")]
    return Usage(
        input_tokens=_sum(asked),
        output_tokens=as_count(_get(body, "candidatesTokenCount")),
        cached_read_tokens=as_count(_get(body, "cachedContentTokenCount")),
        reasoning_tokens=as_count(_get(body, "thoughtsTokenCount")),
        total_tokens=as_count(_get(body, "totalTokenCount")),
        reasoning_in_output=False,
        modes=_modes(body),
        is_dearer="priority" in f"{_get(body, 'trafficType')} {_get(body, 'serviceTier')}".lower(),
    )


def _modes(body: JsonObject) -> tuple[ModeTokens, ...]:
    """Read the tokens that are no text."""
    found = (
        ModeTokens(
            kind,
            _of_kind(body, kind, "promptTokensDetails", "toolUsePromptTokensDetails") or 0,
            _of_kind(body, kind, "cacheTokensDetails"),
            _of_kind(body, kind, "candidatesTokensDetails") or 0,
        )
        for kind in ("audio", "image", "video")
    )
    return tuple(one for one in found if one.given or one.made)


def _of_kind(body: JsonObject, kind: str, *names: str) -> int | None:
    """Give the tokens of a kind in lists of tokens by modality."""
    return _sum(
        as_count(_get(one, "tokenCount"))
        for name in names
        for one in as_objects(_get(body, name))
        if (as_text(one.get("modality")) or "").lower() == kind
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """Add those that are stated; None where none is."""
    stated = [one for one in counts if one is not None]
    return sum(stated) if stated else None


class _Candidate:
    """One candidate on its way."""

    def __init__(self) -> None:
        self.item: JsonObject = {}
        self.role: Json = "model"
        self.parts: list[JsonObject] = []
        self.texts: list[str] = []
        """Of the last part, if that is text."""

    def add(self, item: JsonObject) -> bool:
        """Take what a chunk holds of it; True where it says something."""
        self.item.update({key: value for key, value in item.items() if value is not None})
        content = as_object(item.get("content"))
        self.role = content.get("role") or self.role
        said = False
        for part in as_objects(content.get("parts")):
            text = as_text(part.get("text"))
            said |= text is None or bool(text)
            if text is not None and self.texts and _same_kind(self.parts[-1], part):
                self.texts.append(text)
                self.parts[-1] = {**self.parts[-1], **part}
                continue
            self._close()
            self.parts.append(part)
            self.texts = [] if text is None else [text]
        return said

    def _close(self) -> None:
        if self.texts:
            self.parts[-1] = {**self.parts[-1], "text": "".join(self.texts)}
            self.texts = []

    def whole(self) -> JsonObject:
        self._close()
        parts: list[Json] = [*self.parts]
        return {**self.item, "content": {"role": self.role, "parts": parts}}


def _same_kind(one: JsonObject, other: JsonObject) -> bool:
    return bool(one.get("thought")) == bool(other.get("thought"))


class ContentFold:
    """Chunks, each an answer of its own, to one answer."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._usage: JsonObject = {}
        self._candidates: dict[int, _Candidate] = {}

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next chunk."""
        body = _open(piece, "response")
        usage = _get(body, "usageMetadata")
        candidates = as_objects(body.get("candidates"))
        feedback = _get(body, "promptFeedback")
        if not candidates and usage is None and feedback is None:
            return Heard.UNKNOWN
        self._body.update({key: value for key, value in body.items() if value is not None})
        self._usage.update({k: v for k, v in as_object(usage).items() if v is not None})
        said = False
        for at, item in enumerate(candidates):
            index = as_count(item.get("index"))
            candidate = self._candidates.setdefault(at if index is None else index, _Candidate())
            said |= candidate.add(item)
            self.ended |= _get(item, "finishReason") is not None
        self.ended |= _get(as_object(feedback), "blockReason") is not None
        return Heard.CONTENT if said else Heard.KNOWN

    def whole(self) -> Json:
        """Give the answer."""
        candidates: list[Json] = [
            self._candidates[index].whole() for index in sorted(self._candidates)
        ]
        return {**self._body, "candidates": candidates, "usageMetadata": self._usage}


_CONFIGS = ("generationConfig", "generation_config")

_PLACES = Places(
    temperature=tuple(f"{config}.temperature" for config in _CONFIGS),
    top_p=tuple(f"{config}.{name}" for config in _CONFIGS for name in ("topP", "top_p")),
    seed=tuple(f"{config}.seed" for config in _CONFIGS),
    tools=("tools",),
    system=("systemInstruction", "system_instruction"),
    in_path=GOOGLE,
).within("request")

DIALECT = Dialect(
    "gemini",
    claim,
    has_shape,
    read_request,
    read_answer,
    ContentFold,
    by_members=True,
    places=replace(_PLACES, model=("model",)),
)
