"""Cohere chat, version 2: close to OpenAI's, with content blocks, a plan for tool calls and other names.

Usage is stated twice: the tokens there were, which are read, and those that are billed.

Source: Cohere API reference, "Chat (v2)", "Chat with streaming (v2)".
"""

from collections import defaultdict
from dataclasses import replace

from ..exchange import HttpRequest, HttpResponse
from . import openai_chat
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.drift_places import Places
from .common.inference import (
    Choice,
    Finish,
    InferenceRequest,
    InferenceResponse,
    Message,
    Other,
    Part,
    Sampling,
    Text,
    Thinking,
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
    first_set,
)

FINISH = {
    "COMPLETE": Finish.STOP,
    "STOP_SEQUENCE": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "ERROR_LIMIT": Finish.LENGTH,
    "TOOL_CALL": Finish.TOOL_CALLS,
    "ERROR_TOXIC": Finish.FILTERED,
    "ERROR": Finish.FAILED,
    "TIMEOUT": Finish.FAILED,
    "USER_CANCEL": Finish.FAILED,
}


def claim(request: HttpRequest) -> Claim:
    """Claim the path at Cohere; elsewhere it may be anything."""
    if not is_post(request) or not request.path.endswith("/v2/chat"):
        return Claim.NO
    return Claim.YES if "cohere" in request.host.lower() else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks a model for a chat."""
    body = as_object(tree)
    return isinstance(body.get("messages"), list) and isinstance(body.get("model"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request."""
    body = as_object(tree)
    if not isinstance(body.get("messages"), list):
        return None
    messages = [_message(item) for item in as_objects(body["messages"])]
    system, rest = openai_chat.split_system(messages)
    tools = body.get("tools")
    return InferenceRequest(
        dialect=DIALECT.name,
        model=as_text(body.get("model")),
        streamed=body.get("stream") is True,
        system=system,
        sampling=read_sampling(body),
        tools=tuple(openai_chat.read_tool(item) for item in as_objects(tools)),
        messages=rest,
        raw_tools=tools,
    )


def read_sampling(body: JsonObject) -> Sampling:
    """Read the parameters, the same in both versions."""
    return Sampling(
        temperature=as_number(body.get("temperature")),
        top_p=as_number(body.get("p")),
        top_k=as_number(body.get("k")),
        max_tokens=as_count(body.get("max_tokens")),
        seed=as_count(body.get("seed")),
        stop=as_texts(body.get("stop_sequences")),
        response_format=body.get("response_format"),
        thinking=body.get("thinking"),
        tool_choice=first_set([body.get("tool_choice"), body.get("force_single_step")]),
    )


def _message(item: JsonObject) -> Message:
    """Read one message, asked or answered."""
    role = as_text(item.get("role")) or "assistant"
    content = _content(item.get("content"))
    if role == "tool":
        return Message(role, (ToolResult(as_text(item.get("tool_call_id")), content),))
    plan = as_text(item.get("tool_plan"))
    parts: list[Part] = [Thinking(plan)] if plan else []
    parts += content
    parts += [openai_chat.read_call(call) for call in as_objects(item.get("tool_calls"))]
    return Message(role, tuple(parts))


def _content(content: Json) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts: list[Part] = []
    for item in as_objects(as_list(content)):
        document = as_object(item.get("document"))
        if "data" in document:
            parts.append(Other("json", document["data"]))
        else:
            parts.append(openai_chat.read_content_part(item))
    return tuple(parts)


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer."""
    body = as_object(tree)
    if not isinstance(body.get("message"), dict):
        return None
    reason = as_text(body.get("finish_reason"))
    message = _message(as_object(body["message"]))
    return InferenceResponse(
        id=as_text(body.get("id")),
        choices=(Choice(message, find_finish(reason, FINISH), reason),),
        usage=read_usage(body.get("usage")),
    )


def read_usage(usage: Json) -> Usage | None:
    """Read the figures, the same in both versions: what there was, else what is billed."""
    body = as_object(usage)
    tokens = as_object(body.get("tokens"))
    billed = as_object(body.get("billed_units"))
    found = Usage(
        input_tokens=as_count(first_set([tokens.get("input_tokens"), billed.get("input_tokens")])),
        output_tokens=as_count(
            first_set([tokens.get("output_tokens"), billed.get("output_tokens")])
        ),
        cached_read_tokens=as_count(body.get("cached_tokens")),
    )
    return None if found == Usage() else found


class _Call:
    """One tool call on its way."""

    def __init__(self, item: JsonObject) -> None:
        self.item = item
        self.texts: list[str] = []
        self.add(item)

    def add(self, item: JsonObject) -> None:
        text = as_text(as_object(item.get("function")).get("arguments"))
        if text:
            self.texts.append(text)

    def whole(self) -> JsonObject:
        function = {**as_object(self.item.get("function")), "arguments": "".join(self.texts)}
        return {**self.item, "function": function}


class ChatFold:
    """Events to one answer."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._kinds: dict[int, str] = {}
        self._texts: defaultdict[int, list[str]] = defaultdict(list)
        self._plan: list[str] = []
        self._calls: dict[int, _Call] = {}

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next event."""
        delta = as_object(piece.get("delta"))
        message = as_object(delta.get("message"))
        index = as_count(piece.get("index")) or 0
        match as_text(piece.get("type")) or name:
            case "message-start":
                self._body["id"] = piece.get("id")
            case "content-start" | "content-delta":
                return self._add_content(index, as_object(message.get("content")))
            case "tool-plan-delta":
                if text := as_text(message.get("tool_plan")):
                    self._plan.append(text)
                    return Heard.CONTENT
            case "tool-call-start":
                self._calls[index] = _Call(as_object(message.get("tool_calls")))
                return Heard.CONTENT
            case "tool-call-delta":
                if index in self._calls:
                    self._calls[index].add(as_object(message.get("tool_calls")))
                    return Heard.CONTENT
            case "message-end":
                self._body["finish_reason"] = delta.get("finish_reason")
                self._body["usage"] = delta.get("usage")
                if isinstance(delta.get("error"), str):
                    self._body["error"] = delta["error"]
                self.ended = True
            case "content-end" | "tool-call-end" | "citation-start" | "citation-end" | "debug":
                pass
            case _:
                return Heard.UNKNOWN
        return Heard.KNOWN

    def _add_content(self, index: int, content: JsonObject) -> Heard:
        for kind in ("text", "thinking"):
            if text := as_text(content.get(kind)):
                self._kinds[index] = kind
                self._texts[index].append(text)
                return Heard.CONTENT
        return Heard.KNOWN

    def whole(self) -> Json:
        """Give the answer."""
        content: list[Json] = [
            {"type": self._kinds[index], self._kinds[index]: "".join(self._texts[index])}
            for index in sorted(self._texts)
        ]
        calls: list[Json] = [self._calls[index].whole() for index in sorted(self._calls)]
        message: JsonObject = {"role": "assistant", "content": content, "tool_calls": calls}
        return {**self._body, "message": {**message, "tool_plan": "".join(self._plan)}}


TEXT_PLACES = Places(model=("model",), temperature=("temperature",), top_p=("p",), seed=("seed",))
_PLACES = replace(TEXT_PLACES, tools=("tools",), leading=("messages",), roles=frozenset({"system"}))

DIALECT = Dialect("cohere", claim, has_shape, read_request, read_answer, ChatFold, places=_PLACES)
