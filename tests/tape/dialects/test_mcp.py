"""MCP over streamable HTTP: tools, their calls, and servers that ask the client's model."""

from typing import Any

import pytest

from playhead.tape.dialects import (
    ApiError,
    Finish,
    Image,
    InferenceResponse,
    Message,
    Other,
    RpcKind,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    find_dialect,
    read_request,
    read_response,
)
from playhead.tape.exchange import Request, Response
from playhead.tests.support.dialects import make_request, make_response, make_stream

URL = "http://127.0.0.1:8000/mcp"
ACCEPT = {"accept": "application/json, text/event-stream"}
SESSION = {**ACCEPT, "mcp-session-id": "s1", "mcp-protocol-version": "2025-11-25"}


def rpc(**item: object) -> dict[str, Any]:
    """Give one message."""
    return {"jsonrpc": "2.0", **item}


def call(method: str = "tools/call", number: object = 1, **params: object) -> Request:
    """Give a request with one call in it."""
    return make_request(URL, rpc(id=number, method=method, params=params), SESSION)


def answer(request: Request, response: Response) -> InferenceResponse:
    """Read what came back."""
    found = read_response(request, response)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("body", "headers", "method", "ours"),
    [
        # the first request of a client has no header fields of MCP's yet
        (rpc(id=0, method="initialize"), ACCEPT, "POST", True),
        (rpc(method="notifications/initialized"), ACCEPT, "POST", True),
        (rpc(id=1, method="tools/list"), {}, "POST", True),
        ([rpc(id=1, method="tools/list"), rpc(id=2, method="ping")], {}, "POST", True),
        # one that answers the server, and methods to come
        (rpc(id=1, result={}), SESSION, "POST", True),
        (rpc(id=1, method="tasks/get"), SESSION, "POST", True),
        (b"", {"accept": "text/event-stream", "mcp-session-id": "s1"}, "GET", True),
        # others that speak JSON-RPC
        (rpc(id=1, method="message/send"), ACCEPT, "POST", False),
        (rpc(id=1, method="eth_call"), {}, "POST", False),
        (rpc(id=1, result={}), {}, "POST", False),
        ({"method": "tools/list"}, {}, "POST", False),
        (b"", {"accept": "text/event-stream"}, "GET", False),
        (b"", SESSION, "DELETE", False),
    ],
)
def test_it_is_told_by_its_header_fields_or_its_methods(
    body: object, headers: dict[str, str], method: str, ours: bool
) -> None:
    """A path says nothing."""
    found = find_dialect(make_request(URL, body, headers, method))
    assert (found is not None and found.name == "mcp") == ours


def test_a_call_and_its_result_are_read() -> None:
    """In one piece and in a stream."""
    request = call(name="add", arguments={"a": 1})
    asked = read_request(request)
    assert asked is not None
    (message,) = asked.rpc
    assert (message.kind, message.method, message.id) == (RpcKind.REQUEST, "tools/call", 1)
    assert message.tool_call == ToolCall("1", "add", {"a": 1})
    assert asked.drift == {}
    content = [
        {"type": "text", "text": "5"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x"},
    ]
    item = rpc(id=1, result={"content": content, "isError": True})
    for response in (make_response(item), make_stream(item)):
        found = answer(request, response)
        (message,) = found.rpc
        assert (message.kind, message.method) == (RpcKind.ANSWER, "tools/call")
        assert message.tool_result == ToolResult(
            "1",
            (
                Text("5"),
                Image("image/png", None, "aGk="),
                Other("resource_link", {"type": "resource_link", "uri": "file:///x"}),
            ),
            "add",
            failed=True,
        )
        assert found.complete


def test_structured_content_counts_where_it_stands_alone() -> None:
    """Else it says again what the text says."""
    alone = answer(call(name="f"), make_response(rpc(id=1, result={"structuredContent": [1]})))
    both = {"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]}
    beside = answer(call(name="f"), make_response(rpc(id=1, result=both)))
    results = [found.rpc[0].tool_result for found in (alone, beside)]
    assert [result.text for result in results if result] == ["[1]", "[1]"]


def test_an_error_is_noted() -> None:
    """On the message, and on the response."""
    error = {"code": -32602, "message": "Unknown tool"}
    found = answer(call(name="f"), make_response(rpc(id=1, error=error)))
    assert found.rpc[0].error == found.error == ApiError("Unknown tool", None, "-32602")
    assert found.rpc[0].tool_result is None


def test_a_list_of_tools_is_read() -> None:
    """With the schemas of their arguments."""
    tools = [{"name": "f", "description": "d", "inputSchema": {"type": "object"}}, {"name": "g"}]
    found = answer(call("tools/list"), make_response(rpc(id=1, result={"tools": tools})))
    assert found.rpc[0].tools == (Tool("f", "d", {"type": "object"}), Tool("g"))


def test_a_stream_that_ends_without_the_answer_is_incomplete() -> None:
    """Progress alone is none."""
    progress = rpc(method="notifications/progress", params={"progress": 1})
    found = answer(call(name="f"), make_stream(progress))
    assert [message.kind for message in found.rpc] == [RpcKind.NOTIFICATION]
    assert not found.complete
    assert found.first_token_us is None
    done = answer(call(name="f"), make_stream(progress, rpc(id=1, result={})))
    assert done.complete
    assert done.first_token_us == 2000


def test_messages_in_one_array_are_read() -> None:
    """As the protocol had them for a while."""
    request = make_request(
        URL, [rpc(id=1, method="tools/list"), rpc(id=2, method="tools/call")], SESSION
    )
    response = make_response([rpc(id=2, result={}), rpc(id=1, result={})])
    assert [message.method for message in answer(request, response).rpc] == [
        "tools/call",
        "tools/list",
    ]


def test_a_notification_is_taken_note_of() -> None:
    """With 202 and nothing, or a word."""
    request = make_request(URL, rpc(method="notifications/initialized"), SESSION)
    for body in (b"", b"Accepted"):
        found = answer(request, make_response(body, 202, {"content-type": "text/plain"}))
        assert (found.rpc, found.complete) == ((), True)


def test_a_stream_that_a_client_opened_is_read() -> None:
    """What a server says of its own accord; its end is not stated in it."""
    request = make_request(URL, b"", {"accept": "text/event-stream", "mcp-session-id": "s1"}, "GET")
    asked = read_request(request)
    assert asked is not None
    assert (asked.streamed, asked.rpc) == (True, ())
    found = answer(request, make_stream(rpc(method="notifications/tools/list_changed")))
    assert [message.method for message in found.rpc] == ["notifications/tools/list_changed"]
    assert found.complete


# ---- sampling ----------------------------------------------------------------------------------------

PARAMS = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Is 5 right?"}}],
    "systemPrompt": "Check.",
    "modelPreferences": {"hints": [{"name": "claude"}]},
    "maxTokens": 9,
    "temperature": 0.5,
    "tools": [{"name": "f", "inputSchema": {}}],
}
SAMPLED = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Yes."},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
    ],
    "model": "claude-4",
    "stopReason": "toolUse",
}


def test_a_server_may_ask_the_clients_model() -> None:
    """In a stream; the client answers by a request of its own."""
    asked = rpc(id=7, method="sampling/createMessage", params=PARAMS)
    found = answer(call(name="f"), make_stream(asked, rpc(id=1, result={})))
    sampling = found.rpc[0].sampling
    assert sampling is not None
    assert (sampling.model, sampling.system) == ("claude", "Check.")
    assert sampling.sampling == Sampling(temperature=0.5, max_tokens=9)
    assert sampling.messages == (Message("user", (Text("Is 5 right?"),)),)
    assert sampling.tools == (Tool("f", None, {}),)
    replied = read_request(make_request(URL, rpc(id=7, result=SAMPLED), SESSION))
    assert replied is not None
    _check_sampled(replied.rpc[0].sampled)


def test_a_server_may_ask_inside_its_result() -> None:
    """Then the client repeats its request with the answer in it."""
    asked = {"method": "sampling/createMessage", "params": PARAMS}
    result = {"resultType": "input_required", "inputRequests": {"q": asked}, "requestState": "x"}
    found = answer(call(name="f"), make_response(rpc(id=1, result=result)))
    first, inner = found.rpc
    assert first.tool_result is None
    assert (inner.kind, inner.id) == (RpcKind.REQUEST, "q")
    assert inner.sampling is not None
    again = read_request(call(name="f", inputResponses={"q": SAMPLED}, requestState="x"))
    assert again is not None
    first, inner = again.rpc
    assert first.tool_call is not None
    assert (inner.kind, inner.id) == (RpcKind.ANSWER, "q")
    _check_sampled(inner.sampled)


def _check_sampled(sampled: InferenceResponse | None) -> None:
    assert sampled is not None
    assert (sampled.model, sampled.text) == ("claude-4", "Yes.")
    assert sampled.tool_calls == (ToolCall("t1", "f", {"a": 1}),)
    assert sampled.finish is Finish.TOOL_CALLS
