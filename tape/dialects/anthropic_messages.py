"""Anthropic messages: at Anthropic, on Vertex, and at other providers of this API.

The stream states usage twice: at its start and, cumulative, at its end; what is stated last counts. Cached
tokens are not part of the input tokens. If the usage lists iterations, the bill is their sum: the figures above leave out
compactions and the models of advisors.

Source: Anthropic API reference, "Messages", "Streaming messages", "Compaction" and "Advisor tool".
"""

import re
from collections import defaultdict
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
    "refusal": Finish.FILTERED,
    "pause_turn": Finish.PAUSED,
}
_VERTEX = re.compile(r"/publishers/anthropic/models/([^/:]+):(?:streamR|r)awPredict$")


def claim(request: HttpRequest) -> Claim:
    """Claim the path at Anthropic and where its version is named; elsewhere it may send mail."""
    if not is_post(request):
        return Claim.NO
    if _VERTEX.search(request.path):
        return Claim.YES
    if not request.path.endswith("/v1/messages"):
        return Claim.NO
    host = request.host.lower()
    ours = host.endswith("anthropic.com") or request.header(b"anthropic-version") is not None
    return Claim.YES if ours else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body asks for a message of a model."""
    body = as_object(tree)
    return isinstance(body.get("messages"), list) and isinstance(body.get("model"), str)


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read a request; on Vertex and Bedrock the model stands in the path."""
    body = as_object(tree)
    if not isinstance(body.get("messages"), list):
        return None
    system = body.get("system")
    found = _VERTEX.search(request.path)
    model = as_text(body.get("model"))
    tools = body.get("tools")
    return InferenceRequest(
        dialect=DIALECT.name,
        model=unquote(found[1]) if model is None and found else model,
        streamed=body.get("stream") is True,
        system=None if system is None else _system(system),
        sampling=Sampling(
            temperature=as_number(body.get("temperature")),
            top_p=as_number(body.get("top_p")),
            top_k=as_number(body.get("top_k")),
            max_tokens=as_count(body.get("max_tokens")),
            stop=as_texts(body.get("stop_sequences")),
            response_format=first_set(
                [as_object(body.get("output_config")).get("format"), body.get("output_format")]
            ),
            thinking=body.get("thinking"),
            tool_choice=body.get("tool_choice"),
        ),
        tools=tuple(_tool(item) for item in as_objects(tools)),
        messages=tuple(
            Message(as_text(item.get("role")) or "", read_blocks(item.get("content")))
            for item in as_objects(body["messages"])
        ),
        raw_tools=tools,
    )


def _system(system: Json) -> str:
    return "\n".join(part.text for part in read_blocks(system) if isinstance(part, Text))


def _tool(item: JsonObject) -> Tool:
    kind = as_text(item.get("type")) or "custom"
    return Tool(
        name=as_text(item.get("name")) or kind,
        description=as_text(item.get("description")),
        schema=item.get("input_schema"),
        kind="function" if kind == "custom" else kind,
    )


def read_blocks(content: Json) -> tuple[Part, ...]:
    """Read a content: text, or a list of blocks."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(_block(item) for item in as_objects(as_list(content)))


def _block(item: JsonObject) -> Part:
    kind = as_text(item.get("type")) or ""
    match kind:
        case "text":
            return Text(as_text(item.get("text")) or "")
        case "thinking":
            return Thinking(as_text(item.get("thinking")) or "", as_text(item.get("signature")))
        case "redacted_thinking":
            return Thinking("", as_text(item.get("data")))
        case "image":
            return _image(as_object(item.get("source")))
        case "tool_use":
            name, text = as_text(item.get("name")) or "", as_text(item.get(INPUT_TEXT))
            return ToolCall(as_text(item.get("id")), name, item.get("input"), text)
        case "tool_result":
            return ToolResult(
                as_text(item.get("tool_use_id")),
                read_blocks(item.get("content")),
                failed=item.get("is_error") is True,
            )
        case _:
            return Other(kind, item)


def _image(source: JsonObject) -> Image:
    return Image(
        as_text(source.get("media_type")), as_text(source.get("url")), as_text(source.get("data"))
    )


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read an answer."""
    body = as_object(tree)
    if not isinstance(body.get("content"), list) and body.get("type") != "message":
        return None
    reason = as_text(body.get("stop_reason"))
    message = Message(as_text(body.get("role")) or "assistant", read_blocks(body.get("content")))
    return InferenceResponse(
        model=as_text(body.get("model")),
        id=as_text(body.get("id")),
        choices=(Choice(message, find_finish(reason, _FINISH), reason),),
        usage=read_usage(body.get("usage"), as_text(body.get("model"))),
    )


def read_usage(usage: Json, model: str | None) -> Usage | None:
    """Read the figures.

    model: that of the answer.
    """
    body = as_object(usage)
    if not body:
        return None
    own, iterations = _figures(body), as_objects(as_list(body.get("iterations")))
    return replace(own, beside=_beside(own, iterations, model)) if iterations else own


def _figures(body: JsonObject) -> Usage:
    output = as_object(body.get("output_tokens_details"))
    written = as_object(body.get("cache_creation"))
    return Usage(
        input_tokens=as_count(body.get("input_tokens")),
        output_tokens=as_count(body.get("output_tokens")),
        cached_read_tokens=as_count(body.get("cache_read_input_tokens")),
        cached_write_tokens=as_count(body.get("cache_creation_input_tokens")),
        cached_write_1h_tokens=as_count(written.get("ephemeral_1h_input_tokens")),
        reasoning_tokens=as_count(output.get("thinking_tokens")),
        cached_in_input=False,
        is_dearer=as_text(body.get("service_tier")) == _DEARER_TIER
        or any(as_text(body.get(name)) not in (None, *usual) for name, usual in _USUAL.items()),
    )


_DEARER_TIER = "priority"
_USUAL = {"speed": ("standard", ""), "inference_geo": ("global", "not_available", "")}
"""Words of the usage that cost what the table says; others cost more."""
_FIGURES = (
    "input_tokens",
    "output_tokens",
    "cached_read_tokens",
    "cached_write_tokens",
    "cached_write_1h_tokens",
)


def _beside(own: Usage, iterations: list[JsonObject], model: str | None) -> tuple[Usage, ...]:
    """Give what iterations used beside the figures of the whole.

    The figures are those of the answer's messages, and of the first alone for the input: what their sum is above that is billed, too.
    """
    beside, messages = list[Usage](), list[Usage]()
    for one in iterations:
        figures, other = _figures(one), as_text(one.get("model"))
        if as_text(one.get("type")) in _MESSAGES:
            messages.append(figures)
        else:
            beside.append(replace(figures, model=other if other != model else None))
    above = {
        name: sum(getattr(one, name) or 0 for one in messages) - (getattr(own, name) or 0)
        for name in _FIGURES
    }
    rest = {name: count for name, count in above.items() if count > 0}
    if rest:
        # A price is of the input and the output: what is not above is none.
        beside.append(
            Usage(**{"input_tokens": 0, "output_tokens": 0} | rest, cached_in_input=False)
        )
    return tuple(beside)


_MESSAGES = ("message", "fallback_message")
"""Iterations that the figures of the whole are of."""

INPUT_TEXT = "input as text"
"""Where a fold puts arguments that came as text; no wire has such a key."""
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
_SAYS = ("text", "thinking", "partial_json")


class _Block:
    """One block of the content on its way."""

    def __init__(self) -> None:
        self.item: JsonObject = {}
        self.texts: defaultdict[str, list[str]] = defaultdict(list)

    def whole(self) -> JsonObject:
        item = dict(self.item)
        for what, texts in self.texts.items():
            text = "".join(texts)
            if what == "partial_json":
                item["input"] = find_json(text.encode("utf-8", "surrogatepass"))
                item[INPUT_TEXT] = text
            else:
                item[what] = (as_text(item.get(what)) or "") + text
        return item


class MessageFold:
    """Events to one message."""

    def __init__(self) -> None:
        self.ended = False
        self._message: JsonObject = {}
        self._usage: JsonObject = {}
        self._blocks: defaultdict[int, _Block] = defaultdict(_Block)

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next event."""
        kind = as_text(piece.get("type")) or name
        if kind == "content_block_delta":  # as nearly all are
            return self._add_delta(piece)
        match kind:
            case "message_start":
                self._message.update(as_object(piece.get("message")))
                self._add_usage(self._message.get("usage"))
            case "content_block_start":
                return self._add_block(piece)
            case "message_delta":
                self._message.update(as_object(piece.get("delta")))
                self._add_usage(piece.get("usage"))
            case "message_stop":
                self.ended = True
            case "content_block_stop" | "ping" | "error":
                pass
            case _:
                return Heard.UNKNOWN
        return Heard.KNOWN

    def _add_usage(self, usage: Json) -> None:
        self._usage.update({k: v for k, v in as_object(usage).items() if v is not None})

    def _add_block(self, piece: JsonObject) -> Heard:
        item = as_object(piece.get("content_block"))
        self._blocks[as_count(piece.get("index")) or 0].item = item
        says = "name" in item or any(item.get(what) for what in _SAYS)
        return Heard.CONTENT if says else Heard.KNOWN

    def _add_delta(self, piece: JsonObject) -> Heard:
        delta, index = as_object(piece.get("delta")), piece.get("index")
        what = _DELTAS.get(as_text(delta.get("type")) or "")
        text = delta.get(what) if what else None
        if what is None or not isinstance(text, str) or not text:
            return Heard.KNOWN
        block = self._blocks[index if type(index) is int else as_count(index) or 0]
        block.texts[what].append(text)
        return Heard.CONTENT if what in _SAYS else Heard.KNOWN

    def whole(self) -> Json:
        """Give the message."""
        content: list[Json] = [self._blocks[index].whole() for index in sorted(self._blocks)]
        return {**self._message, "content": content, "usage": self._usage}


PLACES = Places(
    model=("model",),
    temperature=("temperature",),
    top_p=("top_p",),
    tools=("tools",),
    system=("system",),
    in_path=GOOGLE,
)

DIALECT = Dialect(
    "anthropic", claim, has_shape, read_request, read_answer, MessageFold, places=PLACES
)
