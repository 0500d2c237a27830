"""OpenAI responses: items instead of messages, at OpenAI, Azure and others.

A stream ends with an event that holds the whole response. Some servers leave its output empty; then, and in
a stream that was cut, the output is put together from the items and deltas before.

Source: OpenAI API reference, "Responses" and its streaming events.
"""

from collections import defaultdict

from ..exchange import HttpRequest, HttpResponse
from . import openai_chat
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.drift_places import DEPLOYMENT, Places
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
    first_set,
)

_FINISH = {
    "completed": Finish.STOP,
    "max_output_tokens": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.FILTERED,
    "failed": Finish.FAILED,
    "cancelled": Finish.FAILED,
}
_ROLES = {"developer": "system"}
COMPACT = "/responses/compact"
"""Asked for a shorter input: the answer is what to send instead, and states its usage as any other."""


def claim(request: HttpRequest) -> Claim:
    """Claim the path at OpenAI and Azure; elsewhere it may be anything."""
    path = request.path
    if not is_post(request) or not path.endswith(("/responses", COMPACT)):
        return Claim.NO
    path = path.removesuffix("/compact")
    ours = path.endswith(("/v1/responses", "/openai/responses", "/codex/responses"))
    return Claim.YES if ours else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for a response of a model."""
    body = as_object(tree)
    return isinstance(body.get("input"), str | list) and isinstance(body.get("model"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request; `input` may be missing where a prompt or a conversation is kept at the provider."""
    body = as_object(tree)
    if not isinstance(body.get("input"), str | list) and not isinstance(body.get("model"), str):
        return None
    system, messages = read_input(body.get("input"))
    said = [text for text in (as_text(body.get("instructions")), system) if text is not None]
    tools = body.get("tools")
    text = as_object(body.get("text"))
    return InferenceRequest(
        dialect=DIALECT.name,
        model=as_text(body.get("model")),
        streamed=body.get("stream") is True,
        system="\n".join(said) if said else None,
        sampling=Sampling(
            temperature=as_number(body.get("temperature")),
            top_p=as_number(body.get("top_p")),
            max_tokens=as_count(body.get("max_output_tokens")),
            seed=as_count(body.get("seed")),
            response_format=text.get("format"),
            thinking=body.get("reasoning"),
            tool_choice=body.get("tool_choice"),
        ),
        tools=tuple(_tool(item) for item in as_objects(tools)),
        messages=messages,
        raw_tools=tools,
    )


def read_input(given: Json) -> tuple[str | None, tuple[Message, ...]]:
    """Read an input, or items of a conversation: the system prompt that they begin with, and the other messages."""
    if isinstance(given, str):
        return None, (Message("user", (Text(given),)),)
    return openai_chat.split_system([_item_message(item) for item in as_objects(as_list(given))])


def _item_message(item: JsonObject) -> Message:
    """Read one item of an input: a message, or what a model or a tool gave before."""
    if "role" in item:
        role = as_text(item.get("role")) or ""
        return Message(_ROLES.get(role, role), openai_chat.read_content(item.get("content")))
    part = _item_part(item)
    return Message("tool" if isinstance(part, ToolResult) else "assistant", (part,))


def _item_part(item: JsonObject) -> Part:
    """Read one item that is no message."""
    kind = as_text(item.get("type")) or ""
    call = as_text(item.get("call_id"))
    if kind == "reasoning":
        return _thinking(item)
    if kind == "function_call":
        return openai_chat.read_arguments(
            call, as_text(item.get("name")) or "", item.get("arguments")
        )
    if kind == "custom_tool_call":
        name, text = as_text(item.get("name")) or "", as_text(item.get("input"))
        return ToolCall(call, name, None, text)
    # What the agent does itself has an id that its result names; the rest the provider does.
    if call is not None and kind.endswith("_call"):
        action = first_set([item.get("action"), item.get("operation")])
        return ToolCall(call, kind.removesuffix("_call"), action)
    if call is not None and kind.endswith("_output"):
        output = item.get("output")
        known = isinstance(output, str | list)
        parts = openai_chat.read_content(output) if known else (Other("json", output),)
        return ToolResult(call, parts)
    return Other(kind, item)


def _thinking(item: JsonObject) -> Thinking:
    content = as_objects(item.get("content")) or as_objects(item.get("summary"))
    said = "\n".join(as_text(part.get("text")) or "" for part in content)
    return Thinking(said, as_text(item.get("encrypted_content")))


def _tool(item: JsonObject) -> Tool:
    kind = as_text(item.get("type")) or "function"
    return Tool(
        name=as_text(item.get("name")) or as_text(item.get("server_label")) or kind,
        description=as_text(item.get("description")),
        schema=first_set([item.get("parameters"), item.get("format")]),
        kind=kind,
    )


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer: all items of its output are one message."""
    body = as_object(tree)
    if not isinstance(body.get("output"), list):
        return None
    parts: list[Part] = []
    for item in as_objects(body["output"]):
        parts += _item_message(item).parts
    message = Message("assistant", tuple(parts))
    reason = as_text(as_object(body.get("incomplete_details")).get("reason"))
    status = as_text(body.get("status"))
    if reason is None and status not in ("in_progress", "queued"):
        reason = status
    choice = Choice(message, find_finish(reason, _FINISH, bool(message.tool_calls)), reason)
    return InferenceResponse(
        model=as_text(body.get("model")),
        id=as_text(body.get("id")),
        choices=(choice,),
        usage=read_usage(body.get("usage"), as_text(body.get("service_tier"))),
    )


def read_usage(usage: Json, tier: str | None = None) -> Usage | None:
    """Read the figures.

    tier: of the service, as the answer states it.
    """
    body = as_object(usage)
    if not body:
        return None
    given = as_object(body.get("input_tokens_details"))
    output = as_object(body.get("output_tokens_details"))
    return Usage(
        input_tokens=as_count(body.get("input_tokens")),
        output_tokens=as_count(body.get("output_tokens")),
        cached_read_tokens=as_count(given.get("cached_tokens")),
        cached_write_tokens=as_count(given.get("cache_write_tokens")),
        reasoning_tokens=as_count(output.get("reasoning_tokens")),
        total_tokens=as_count(body.get("total_tokens")),
        modes=openai_chat.read_modes(given, output),
        is_dearer=tier == openai_chat.PRIORITY,
    )


_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_DELTAS = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.reasoning_text.delta": "content",
    "response.reasoning_summary_text.delta": "summary",
}
_Place = tuple[str, int]


class _Item:
    """One item of the output on its way."""

    def __init__(self) -> None:
        self.item: JsonObject = {}
        self.done = False
        self.texts: defaultdict[_Place, list[str]] = defaultdict(list)
        """By what it is part of, and which part."""

    def whole(self) -> JsonObject:
        if self.done:
            return self.item
        item: JsonObject = dict(self.item)
        parts: defaultdict[str, list[Json]] = defaultdict(list)
        for (what, _), texts in sorted(self.texts.items()):
            text = "".join(texts)
            if what in ("arguments", "input"):
                item[what] = text
            elif what == "refusal":
                parts["content"].append({"type": what, "refusal": text})
            elif what == "output_text":
                parts["content"].append({"type": what, "text": text})
            else:
                parts[what].append({"text": text})
        if item.setdefault("type", "message") == "message":
            item.setdefault("role", "assistant")
        return {**item, **parts}


class ResponseFold:
    """Events to one response."""

    def __init__(self) -> None:
        self.ended = False
        self._body: JsonObject = {}
        self._items: defaultdict[int, _Item] = defaultdict(_Item)

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next event."""
        kind = as_text(piece.get("type")) or name
        if kind == "error":
            self._add_error(piece)
            return Heard.KNOWN
        if not kind.startswith("response."):
            return Heard.UNKNOWN
        if isinstance(piece.get("response"), dict):
            self._body = as_object(piece["response"])
        self.ended |= kind in _ENDS
        index = as_count(piece.get("output_index"))
        if index is None:
            return Heard.KNOWN
        if kind in ("response.output_item.added", "response.output_item.done"):
            return self._add_item(index, as_object(piece.get("item")), kind.endswith(".done"))
        what, text = _DELTAS.get(kind), as_text(piece.get("delta"))
        if what is None or not text:
            return Heard.KNOWN
        part = as_count(first_set([piece.get("content_index"), piece.get("summary_index")]))
        self._items[index].texts[what, part or 0].append(text)
        return Heard.CONTENT

    def _add_item(self, index: int, item: JsonObject, done: bool) -> Heard:
        found = self._items[index]
        found.item, found.done = item, done
        # An item that is no message is named in its first event: the model has chosen it.
        named = "name" in item or (done and item.get("type") == "message")
        return Heard.CONTENT if named else Heard.KNOWN

    def _add_error(self, piece: JsonObject) -> None:
        if not isinstance(piece.get("error"), dict):
            self._body["error"] = {key: piece.get(key) for key in ("message", "code")}

    def whole(self) -> Json:
        """Give the response."""
        output = as_list(self._body.get("output"))
        if not output:
            output = [self._items[index].whole() for index in sorted(self._items)]
        return {**self._body, "output": output}


_PLACES = Places(
    model=("model",),
    temperature=("temperature",),
    top_p=("top_p",),
    seed=("seed",),
    tools=("tools",),
    system=("instructions",),
    leading=("input",),
    in_path=DEPLOYMENT,
)

DIALECT = Dialect(
    "openai-responses", claim, has_shape, read_request, read_answer, ResponseFold, places=_PLACES
)
