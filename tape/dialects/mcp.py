"""MCP over streamable HTTP: JSON-RPC by POST, answered by JSON or by an event stream; GET opens a stream.

A server may ask the client's model (`sampling/createMessage`): as a request in a stream, answered by a POST of
its own, or, since 2026-07-28, inside the result and the repeated request. Both are read.

Source: Model Context Protocol, "Transports", "Tools", "Sampling"; JSON-RPC 2.0.
"""

from collections.abc import Mapping

from ..canonical.json_rpc_client_ids import STDIO_HOST
from ..exchange import HttpRequest, HttpResponse
from .common.dialect import Claim, Dialect, Heard, find_finish, is_post
from .common.inference import (
    ApiError,
    Choice,
    Finish,
    Image,
    InferenceRequest,
    InferenceResponse,
    Message,
    Other,
    Part,
    Rpc,
    RpcKind,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolResult,
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
    as_word,
    find_json,
)

_HEADERS = (b"mcp-protocol-version", b"mcp-session-id", b"mcp-method")
_METHODS = frozenset(
    {
        "completion/complete",
        "elicitation/create",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "roots/list",
        "sampling/createMessage",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    }
)
_FINISH = {
    "endTurn": Finish.STOP,
    "stopSequence": Finish.STOP,
    "maxTokens": Finish.LENGTH,
    "toolUse": Finish.TOOL_CALLS,
}
_SAMPLING = "sampling/createMessage"

_Id = int | float | str
_Asked = Mapping[_Id, JsonObject]
"""Requests by their ids, to know what an answer answers."""


def claim(request: HttpRequest) -> Claim:
    """Claim by the header fields that clients send after the first request; the first is told by its shape."""
    if not is_post(request) and request.method.upper() != "GET":
        return Claim.NO
    named = request.host == STDIO_HOST or any(request.header(name) is not None for name in _HEADERS)
    if not is_post(request):
        stream = b"text/event-stream" in (request.header(b"accept") or b"")
        return Claim.YES if named and stream else Claim.NO
    if b'"jsonrpc"' not in request.body and not request.header(b"content-encoding"):
        return Claim.NO
    return Claim.YES if named else Claim.MAYBE


def has_shape(tree: Json) -> bool:
    """Say whether a body is JSON-RPC with methods of MCP's."""
    items = as_objects(tree)
    return bool(items) and all(
        item.get("jsonrpc") == "2.0" and _is_method(as_text(item.get("method"))) for item in items
    )


def _is_method(method: str | None) -> bool:
    return method is not None and (method in _METHODS or method.startswith("notifications/"))


def read_request(tree: Json, request: HttpRequest) -> InferenceRequest | None:
    """Read what a client sends; a GET says nothing and opens a stream."""
    items = [item for item in as_objects(tree) if item.get("jsonrpc") == "2.0"]
    if not items and is_post(request):
        return None
    accept = request.header(b"accept") or b""
    return InferenceRequest(
        dialect=DIALECT.name,
        streamed=b"text/event-stream" in accept,
        rpc=tuple(rpc for item in items for rpc in _rpcs(item, {})),
    )


def read_answer(
    tree: Json, request: HttpRequest, response: HttpResponse
) -> InferenceResponse | None:
    """Read what a server sends, in an answer or a stream."""
    items = [item for item in as_objects(tree) if item.get("jsonrpc") == "2.0"]
    if not items and tree != []:
        return None
    asked = _asked(request)
    answered = {_id(item) for item in items if _is_answer(item)}
    return InferenceResponse(
        rpc=tuple(rpc for item in items for rpc in _rpcs(item, asked)),
        complete=answered.issuperset(asked),
    )


def _asked(request: HttpRequest) -> _Asked:
    # Late: it brings redaction along, which a look at a run of other dialects does without.
    from ..canonical.canonical_request import open_body

    found: dict[_Id, JsonObject] = {}
    for item in as_objects(find_json(open_body(request)[0]) if request.body else None):
        number = _id(item)
        if number is not None and "method" in item:
            found[number] = item
    return found


def _id(item: JsonObject) -> _Id | None:
    value = item.get("id")
    return value if isinstance(value, str) else as_number(value)


def _is_answer(item: JsonObject) -> bool:
    return "method" not in item and ("result" in item or "error" in item)


def _rpcs(item: JsonObject, asked: _Asked) -> list[Rpc]:
    """Read one message, and the requests or answers that stand inside it."""
    if _is_answer(item):
        return _answer(item, asked)
    method = as_text(item.get("method"))
    params = as_object(item.get("params"))
    number = _id(item)
    rpc = Rpc(
        RpcKind.NOTIFICATION if number is None else RpcKind.REQUEST,
        method,
        number,
        params=item.get("params"),
        tool_call=_tool_call(number, params) if method == "tools/call" else None,
        sampling=_sampling(params) if method == _SAMPLING else None,
    )
    inner = as_object(params.get("inputResponses"))
    return [rpc, *(_inner_answer(key, as_object(one)) for key, one in inner.items())]


def _answer(item: JsonObject, asked: _Asked) -> list[Rpc]:
    number = _id(item)
    question = asked.get(number, {}) if number is not None else {}
    method = as_text(question.get("method"))
    result = as_object(item.get("result"))
    inner = as_object(result.get("inputRequests"))
    waits = bool(inner) or result.get("resultType") == "input_required"
    call = as_object(question.get("params"))
    ours = method == "tools/call" and "result" in item and not waits
    rpc = Rpc(
        RpcKind.ANSWER,
        method,
        number,
        result=item.get("result"),
        error=_error(item.get("error")),
        tool_result=_tool_result(number, call, result) if ours else None,
        tools=tuple(_tool(tool) for tool in as_objects(as_list(result.get("tools")))),
        # Nothing else has a role and a model.
        sampled=_sampled(result) if method is None and {"role", "model"} <= set(result) else None,
    )
    return [rpc, *(_inner_request(key, as_object(one)) for key, one in inner.items())]


def _inner_request(key: str, item: JsonObject) -> Rpc:
    """Read a request that stands in a result, under a key of the server's."""
    method = as_text(item.get("method"))
    sampling = _sampling(as_object(item.get("params"))) if method == _SAMPLING else None
    return Rpc(RpcKind.REQUEST, method, key, params=item.get("params"), sampling=sampling)


def _inner_answer(key: str, result: JsonObject) -> Rpc:
    """Read the answer to one, which stands in the repeated request under the same key."""
    known = {"role", "model"} <= set(result)
    return Rpc(
        RpcKind.ANSWER,
        _SAMPLING if known else None,
        key,
        result=result,
        sampled=_sampled(result) if known else None,
    )


def _error(error: Json) -> ApiError | None:
    if not isinstance(error, dict):
        return None
    return ApiError(as_text(error.get("message")) or "", None, as_word(error.get("code")))


def _tool_call(number: _Id | None, params: JsonObject) -> ToolCall:
    call = None if number is None else str(number)
    return ToolCall(call, as_text(params.get("name")) or "", params.get("arguments", {}))


def _tool_result(number: _Id | None, call: JsonObject, result: JsonObject) -> ToolResult:
    parts = _parts(result.get("content"))
    if "structuredContent" in result:
        # The same is said as text as a rule.
        kind = "structured" if parts else "json"
        parts = (*parts, Other(kind, result["structuredContent"]))
    return ToolResult(
        None if number is None else str(number),
        parts,
        as_text(call.get("name")),
        result.get("isError") is True,
    )


def _tool(item: JsonObject) -> Tool:
    name, description = as_text(item.get("name")) or "", as_text(item.get("description"))
    return Tool(name, description, item.get("inputSchema"))


def _parts(content: Json) -> tuple[Part, ...]:
    """Read content; in sampling a single block needs no list."""
    return tuple(_part(item) for item in as_objects(content))


def _part(item: JsonObject) -> Part:
    kind = as_text(item.get("type")) or ""
    match kind:
        case "text":
            return Text(as_text(item.get("text")) or "")
        case "image":
            return Image(as_text(item.get("mimeType")), None, as_text(item.get("data")))
        case "tool_use":
            name = as_text(item.get("name")) or ""
            return ToolCall(as_text(item.get("id")), name, item.get("input"))
        case "tool_result":
            call, failed = as_text(item.get("toolUseId")), item.get("isError") is True
            return ToolResult(call, _parts(item.get("content")), failed=failed)
        case _:
            return Other(kind, item)


def _sampling(params: JsonObject) -> InferenceRequest:
    """Read what a server wants asked; the model is the first of its hints."""
    hints = as_objects(as_object(params.get("modelPreferences")).get("hints"))
    tools = params.get("tools")
    return InferenceRequest(
        dialect=DIALECT.name,
        model=as_text(hints[0].get("name")) if hints else None,
        system=as_text(params.get("systemPrompt")),
        sampling=Sampling(
            temperature=as_number(params.get("temperature")),
            max_tokens=as_count(params.get("maxTokens")),
            stop=as_texts(params.get("stopSequences")),
            tool_choice=params.get("toolChoice"),
        ),
        tools=tuple(_tool(tool) for tool in as_objects(tools)),
        messages=tuple(_message(item) for item in as_objects(params.get("messages"))),
        raw_tools=tools,
    )


def _message(item: JsonObject) -> Message:
    return Message(as_text(item.get("role")) or "", _parts(item.get("content")))


def _sampled(result: JsonObject) -> InferenceResponse:
    reason = as_text(result.get("stopReason"))
    choice = Choice(_message(result), find_finish(reason, _FINISH), reason)
    model = as_text(result.get("model"))
    return InferenceResponse(dialect=DIALECT.name, model=model, choices=(choice,))


class MessagesFold:
    """Events to a list of messages; the end of a stream is not stated in it."""

    def __init__(self) -> None:
        self.ended = True
        self._items: list[Json] = []

    def add(self, name: str, piece: JsonObject) -> Heard:
        """Take the next message."""
        if piece.get("jsonrpc") != "2.0":
            return Heard.UNKNOWN
        self._items.append(piece)
        return Heard.CONTENT if _is_answer(piece) else Heard.KNOWN

    def whole(self) -> Json:
        """Give the messages."""
        return self._items


DIALECT = Dialect("mcp", claim, has_shape, read_request, read_answer, MessagesFold)
