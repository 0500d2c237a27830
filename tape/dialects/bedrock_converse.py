"""Bedrock Converse and ConverseStream: one format for the models of all makers.

The model stands in the path and the answer does not name it. Cached tokens are not part of the input tokens.
The fold takes the events of Nova's own format too, which are these with one object more around them.

Source: Amazon Bedrock API reference, "Converse", "ConverseStream".
"""

import re
from collections import defaultdict
from dataclasses import replace
from urllib.parse import unquote

from ..exchange import HttpRequest, HttpResponse
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.drift_places import BEDROCK, Places
from .common.inference import (
    Choice,
    Finish,
    Image,
    InferenceRequest,
    InferenceResponse,
    Message,
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
    as_list,
    as_number,
    as_object,
    as_objects,
    as_text,
    as_texts,
    find_json,
    first_set,
)

_FINISH = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "tool_use": Finish.TOOL_CALLS,
    "guardrail_intervened": Finish.FILTERED,
    "content_filtered": Finish.FILTERED,
    "malformed_model_output": Finish.FAILED,
    "malformed_tool_use": Finish.FAILED,
}
_PATH = re.compile(r"/model/(.+)/(converse|converse-stream)$")


def claim(request: HttpRequest) -> Claim:
    """Claim the path, on any host: there are many endpoints, and gateways before them."""
    return Claim.YES if is_post(request) and _PATH.search(request.path) else Claim.NO


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for a conversation to be gone on with."""
    return isinstance(as_object(tree).get("messages"), list)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request; one without messages asks with a prompt that is kept at the provider."""
    if not isinstance(tree, dict):
        return None
    found = _PATH.search(request.path)
    asked = read_conversation(tree)
    return replace(
        asked,
        dialect=DIALECT.name,
        model=unquote(found[1]) if found else None,
        streamed=found is not None and found[2] == "converse-stream",
    )


def read_conversation(body: JsonObject) -> InferenceRequest:
    """Read what stands in the body; Nova's own format has the same, with its limit under another name."""
    config = as_object(body.get("inferenceConfig"))
    more = as_object(body.get("additionalModelRequestFields"))
    own = as_object(more.get("inferenceConfig"))
    tool_config = as_object(body.get("toolConfig"))
    tools = tool_config.get("tools")
    system = body.get("system")
    said = [as_text(item.get("text")) or "" for item in as_objects(system) if "text" in item]
    return InferenceRequest(
        dialect="",
        system="\n".join(said) if said else None,
        sampling=Sampling(
            temperature=as_number(config.get("temperature")),
            top_p=as_number(config.get("topP")),
            top_k=as_number(
                first_set(
                    [config.get("topK"), more.get("top_k"), more.get("topK"), own.get("topK")]
                )
            ),
            max_tokens=as_count(first_set([config.get("maxTokens"), config.get("max_new_tokens")])),
            stop=as_texts(config.get("stopSequences")),
            response_format=as_object(body.get("outputConfig")).get("textFormat"),
            thinking=first_set([more.get("thinking"), more.get("reasoning_config")]),
            tool_choice=tool_config.get("toolChoice"),
        ),
        tools=tuple(_tool(item) for item in as_objects(tools)),
        messages=tuple(
            Message(as_text(item.get("role")) or "", _blocks(item.get("content")))
            for item in as_objects(body.get("messages"))
        ),
        raw_tools=tools,
    )


def _tool(item: JsonObject) -> Tool:
    spec = item.get("toolSpec")
    if not isinstance(spec, dict):
        kind = next(iter(item), "")
        return Tool(kind, kind=kind)
    return Tool(
        name=as_text(spec.get("name")) or "",
        description=as_text(spec.get("description")),
        schema=as_object(spec.get("inputSchema")).get("json"),
    )


def _blocks(content: Json) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_block(item) for item in as_objects(as_list(content)))


def _block(item: JsonObject) -> Part:
    if (text := as_text(item.get("text"))) is not None:
        return Text(text)
    if isinstance(guarded := as_object(item.get("guardContent")).get("text"), dict):
        return Text(as_text(guarded.get("text")) or "")
    if isinstance(call := item.get("toolUse"), dict):
        name, text = as_text(call.get("name")) or "", as_text(call.get(_INPUT_TEXT))
        return ToolCall(as_text(call.get("toolUseId")), name, call.get("input"), text)
    if isinstance(result := item.get("toolResult"), dict):
        failed = result.get("status") == "error"
        parts = tuple(_result_part(part) for part in as_objects(result.get("content")))
        return ToolResult(as_text(result.get("toolUseId")), parts, failed=failed)
    if isinstance(reasoning := item.get("reasoningContent"), dict):
        said = as_object(reasoning.get("reasoningText"))
        redacted = as_text(reasoning.get("redactedContent"))
        return Thinking(as_text(said.get("text")) or "", as_text(said.get("signature")) or redacted)
    if isinstance(image := item.get("image"), dict):
        source = as_object(image.get("source"))
        url = as_text(as_object(source.get("s3Location")).get("uri"))
        format_ = as_text(image.get("format"))
        return Image(f"image/{format_}" if format_ else None, url, as_text(source.get("bytes")))
    return Other(next(iter(item), ""), item)


def _result_part(item: JsonObject) -> Part:
    return Other("json", item["json"]) if "json" in item else _block(item)


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer."""
    body = as_object(tree)
    message = as_object(as_object(body.get("output")).get("message"))
    reason = as_text(body.get("stopReason"))
    if not message and reason is None:
        return None
    said = Message(as_text(message.get("role")) or "assistant", _blocks(message.get("content")))
    return InferenceResponse(
        choices=(Choice(said, find_finish(reason, _FINISH), reason),),
        usage=_usage(body.get("usage")),
    )


def _usage(usage: Json) -> Usage | None:
    body = as_object(usage)
    if not body:
        return None
    return Usage(
        input_tokens=as_count(body.get("inputTokens")),
        output_tokens=as_count(body.get("outputTokens")),
        cached_read_tokens=as_count(
            first_set([body.get("cacheReadInputTokens"), body.get("cacheReadInputTokenCount")])
        ),
        cached_write_tokens=as_count(
            first_set([body.get("cacheWriteInputTokens"), body.get("cacheWriteInputTokenCount")])
        ),
        total_tokens=as_count(body.get("totalTokens")),
        cached_in_input=False,
    )


_INPUT_TEXT = "input as text"
"""Where a fold puts arguments, which come as text; no wire has such a key."""
_EVENTS = (
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
)


class _Block:
    """One block of the content on its way."""

    def __init__(self) -> None:
        self.call: JsonObject | None = None
        self.other: JsonObject = {}
        self.texts: defaultdict[str, list[str]] = defaultdict(list)

    def add(self, delta: JsonObject) -> bool:
        """Take a delta; True where it says something."""
        reasoning = as_object(delta.get("reasoningContent"))
        call = as_object(delta.get("toolUse"))
        said = {
            "text": delta.get("text"),
            "input": call.get("input"),
            "thought": reasoning.get("text"),
            "signature": reasoning.get("signature"),
            "redacted": reasoning.get("redactedContent"),
        }
        for what, value in said.items():
            if text := as_text(value):
                self.texts[what].append(text)
        known = ("text", "toolUse", "reasoningContent")
        self.other.update({key: value for key, value in delta.items() if key not in known})
        return any(said[what] for what in ("text", "input", "thought"))

    def whole(self) -> JsonObject:
        text = {what: "".join(texts) for what, texts in self.texts.items()}
        if self.call is not None or "input" in text:
            call: JsonObject = dict(self.call or {})
            if "input" in text:
                call["input"] = find_json(text["input"].encode("utf-8", "surrogatepass"))
                call[_INPUT_TEXT] = text["input"]
            else:
                call.setdefault("input", {})
            return {"toolUse": call}
        if "redacted" in text:
            return {"reasoningContent": {"redactedContent": text["redacted"]}}
        if "thought" in text or "signature" in text:
            said: JsonObject = {"text": text.get("thought", ""), "signature": text.get("signature")}
            return {"reasoningContent": {"reasoningText": said}}
        if self.other and "text" not in text:
            return self.other
        return {"text": text.get("text", "")}


class ConverseFold:
    """Events to one answer."""

    def __init__(self) -> None:
        self.ended = False
        self._role: Json = "assistant"
        self._body: JsonObject = {}
        self._blocks: defaultdict[int, _Block] = defaultdict(_Block)

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next event, by its name or by the one object it holds."""
        if name not in _EVENTS:
            name = next((event for event in _EVENTS if event in piece), "")
            piece = as_object(piece.get(name))
        index = as_count(piece.get("contentBlockIndex")) or 0
        match name:
            case "messageStart":
                self._role = piece.get("role") or self._role
            case "contentBlockStart":
                if isinstance(call := as_object(piece.get("start")).get("toolUse"), dict):
                    self._blocks[index].call = call
                    return Heard.CONTENT
            case "contentBlockDelta":
                if self._blocks[index].add(as_object(piece.get("delta"))):
                    return Heard.CONTENT
            case "messageStop":
                self._body["stopReason"] = piece.get("stopReason")
                self.ended = True
            case "metadata":
                self._body["usage"] = piece.get("usage")
            case "contentBlockStop":
                pass
            case _:
                return Heard.UNKNOWN
        return Heard.KNOWN

    def whole(self) -> Json:
        """Give the answer."""
        content: list[Json] = [self._blocks[index].whole() for index in sorted(self._blocks)]
        message: JsonObject = {"role": self._role, "content": content}
        return {**self._body, "output": {"message": message}}


PLACES = Places(
    temperature=("inferenceConfig.temperature",),
    top_p=("inferenceConfig.topP",),
    tools=("toolConfig.tools",),
    system=("system",),
    in_path=BEDROCK,
)

DIALECT = Dialect(
    "bedrock-converse", claim, has_shape, read_request, read_answer, ConverseFold, places=PLACES
)
