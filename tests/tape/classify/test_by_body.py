"""What the body of a POST says of its class."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from playhead.config.match_pattern import parse_match
from playhead.config.schema import Classes
from playhead.tape.canonical.graphql import MAX_DOCUMENT
from playhead.tape.classify.by_body import MAX_ASKED, MAX_READ, asks_to_read, class_now
from playhead.tape.exchange import Request, RequestClass, Spilled


def post(body: Any, path: str = "/mcp", kind: bytes | None = b"application/json") -> Request:
    """Give a POST of a JSON value, or of bytes as they stand."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = ((b"Content-Type", kind),) if kind is not None else ()
    return Request("POST", "https", "api.test", 443, path, "HTTP/1.1", headers, data)


def call(method: str, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, **more}


def ask(query: str, **more: Any) -> dict[str, Any]:
    return {"query": query, **more}


MUTATION = "mutation M { refund(id: 1) { ok } }"
BOTH = f"query Q {{ a }} {MUTATION}"

READS: list[Any] = [
    # MCP
    *(
        call(method)
        for method in (
            "initialize",
            "ping",
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "prompts/list",
            "prompts/get",
            "completion/complete",
            "logging/setLevel",
            "notifications/initialized",
            "notifications/cancelled",
        )
    ),
    call("tools/list", params={"cursor": "2", "_meta": {"progressToken": 1.5}}),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    [call("ping"), call("tools/list")],
    b' { "jsonrpc" : "2.0", "method" : "tools\\/list", "id" : null } ',
    # GraphQL
    ask("query { a }"),
    ask("query Q($x: T = {y: 1}) { a(b: $x) { ...F } } fragment F on T { c }"),
    ask("# says: mutation\nquery Q { mutation }", operationName=None, variables={"x": 1}),
    ask(BOTH, operationName="Q"),
    ask("query Q { a }", extensions={"persistedQuery": {"version": 1}}),
    [ask("query { a }"), ask("query { b }")],
]

EFFECTS: list[Any] = [
    # MCP: tools, what is not known, answers, and what is said in two ways
    call("tools/call", params={"name": "refund"}),
    call("tasks/cancel"),
    call("eth_sendTransaction"),
    call("Tools/list"),
    call("tools/list "),
    {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    {"id": 1, "method": "ping", "jsonrpc_": '"jsonrpc"'},
    [],
    [call("ping"), call("tools/call")],
    [call("ping"), {"jsonrpc": "2.0", "id": 1, "result": {}}],
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","\\u006dethod":"tools/call"}',
    call("ping", Method="tools/call"),
    b'{"jsonrpc":"2.0","method":"ping"',
    b'{"jsonrpc":"2.0","method":"ping"}{"jsonrpc":"2.0","method":"tools/call"}',
    call("ping", params="x" * MAX_READ),
    # GraphQL
    ask(MUTATION),
    ask("subscription { a }"),
    ask(BOTH),
    ask(BOTH, operationName="M"),
    ask(BOTH, operationName="N"),
    ask(f"query M {{ a }} {MUTATION}", operationName="M"),
    ask("fragment F on T { a }"),
    ask("query { a } x"),
    ask("query { a " + "b " * (MAX_DOCUMENT // 2) + "}"),
    ask("query {a}" * 200, operationName="Q"),
    ask("select * from t"),
    ask("{ a }"),
    ask("query { a }", top_k=3),
    [ask("query { a }"), ask(MUTATION)],
    [ask("query { a }"), call("ping")],
    b'{"query":"mutation { a }","query":"query { a }"}',
    b'{"query":"query { a }","query":"mutation { a }"}',
    {"operationName": "Q", "extensions": {"persistedQuery": {"sha256Hash": "1f"}}},
    # Neither
    {"text": "ping"},
    b"",
]


@pytest.mark.parametrize("body", READS)
def test_a_body_that_asks_for_nothing_else_is_a_read(body: Any) -> None:
    """Calls of methods that are known to read, and queries."""
    assert asks_to_read(post(body))


@pytest.mark.parametrize("body", EFFECTS)
def test_in_doubt_a_body_asks_for_an_effect(body: Any) -> None:
    """An effect taken for a read would be missing from the list of what the agent did."""
    assert not asks_to_read(post(body))


@pytest.mark.parametrize(
    ("request_", "reads"),
    [
        (post(call("ping"), kind=None), True),
        (post(call("ping"), kind=b"application/json; charset=utf-8"), True),
        (post(call("ping"), kind=b"text/plain"), False),
        (post(ask("{ a }"), "/api/GraphQL"), True),
        (post(ask("{ a }"), "/graphql.json"), True),
        (post(ask("{ a }"), "/search"), False),
    ],
)
def test_a_body_is_read_as_what_its_head_says(request_: Request, reads: bool) -> None:
    """JSON by its content type; a query that does not say so at a URL that does."""
    assert asks_to_read(request_) is reads


def test_what_is_coded_or_sent_otherwise_is_not_looked_at() -> None:
    """It stays what its method says."""
    request = post(call("ping"))
    coded = (*request.headers, (b"content-encoding", b"gzip"))
    assert not asks_to_read(replace(request, headers=coded, body=gzip.compress(request.body)))
    assert not asks_to_read(replace(request, method="PUT"))


INFERENCE = RequestClass.INFERENCE
SMS = {"messaging_product": "whatsapp", "to": "49151", "type": "text", "text": {"body": "x"}}
ASKED = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("path", "body", "is_effect"),
    [
        ("/v1/messages", SMS, True),
        ("/v1/responses", {"answer": "x"}, True),
        ("/v1/completions", {"course": 1}, True),
        ("/v1/messages", {"messages": [{"to": "49151"}]}, True),
        ("/v1/messages", {"model": "phone", "to": "49151"}, True),
        ("/v1/messages", {"model": "m", "messages": ASKED}, False),
        ("/v1/responses", {"model": "m", "input": "x"}, False),
        ("/v1/responses", {"model": "m", "previous_response_id": "r"}, False),
        ("/v1/completions", {"model": "m", "prompt": "x"}, False),
        ("/v1/completions", {"prompt": "x"}, False),
        ("/v1/complete", {"model": "m", "prompt": "x"}, False),
        ("/v1/complete", {"order": 7}, True),
        ("/v1/messages", b"not JSON", True),
        ("/v1/messages", b"to=49151&text=x", True),
        ("/v1/messages", b"", True),
        ("/v1/messages", [ASKED], True),
        ("/v1/chat/completions", SMS, False),
    ],
)
def test_a_model_call_by_its_path_alone_has_to_read_as_one(
    path: str, body: Any, is_effect: bool
) -> None:
    """WhatsApp takes messages where Anthropic does; a pattern of the configuration's own, or a provider, says enough."""
    asked = post(body, path)
    kind = RequestClass.EFFECT if is_effect else INFERENCE
    assert class_now(asked, Classes()) is kind
    own = Classes(inference=(parse_match("POST *://api.test"),))
    assert class_now(asked, own) is RequestClass.INFERENCE
    known = replace(asked, host="api.anthropic.com")
    assert class_now(known, Classes()) is RequestClass.INFERENCE


def test_a_model_call_is_known_compressed_and_however_large() -> None:
    """Codings are undone; a body that is too large to be read is what its path says."""
    for body, kind in ((SMS, RequestClass.EFFECT), ({"model": "m", "messages": ASKED}, INFERENCE)):
        asked = post(body, "/v1/messages")
        coded = (*asked.headers, (b"content-encoding", b"gzip"))
        packed = replace(asked, headers=coded, body=gzip.compress(asked.body))
        assert class_now(packed, Classes()) is kind
    large = {"model": "m", "messages": [{"role": "user", "content": "x" * MAX_READ}]}
    assert class_now(post(large, "/v1/messages"), Classes()) is INFERENCE
    file = Spilled(b"", MAX_ASKED + 1, b"")
    spilled = replace(post(b"", "/v1/messages"), spilled=file)
    assert class_now(spilled, Classes()) is INFERENCE
    assert class_now(post(b" " * (MAX_ASKED + 1), "/v1/messages"), Classes()) is INFERENCE


_LOGS = b'{"resourceLogs": []}'
_PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
_QUERY = b'{"query": "query Q { me { id } }"}'


@pytest.mark.parametrize(
    ("target", "body", "harmless"),
    [
        ("/v1/logs", _LOGS, RequestClass.TELEMETRY),
        ("/mcp", _PING, RequestClass.READ),
        ("/graphql", _QUERY, RequestClass.READ),
    ],
    ids=["telemetry", "JSON-RPC", "GraphQL"],
)
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", (b"X-HTTP-Method-Override", b"DELETE")),
        ("?_method=DELETE", None),
        ("?_method=DELETE&x=1", None),
        ("", (b"X-Original-URL", b"/v1/refunds")),
        ("", (b"X-Forwarded-Host", b"bank.example")),
        ("", (b"Helicone-Target-URL", b"https://bank.example/v1/refunds")),
    ],
    ids=["method", "method in the query", "with more", "path", "host", "gateway"],
)
def test_what_may_be_something_else_is_no_read_by_its_body(
    target: str,
    body: bytes,
    harmless: RequestClass,
    query: str,
    field: tuple[bytes, bytes] | None,
) -> None:
    """Its fields or its URL claim another method, place or path."""
    plain = post(body, target)
    assert class_now(plain, Classes()) is harmless
    more = plain.headers if field is None else (*plain.headers, field)
    other = replace(plain, target=target + query, headers=more)
    assert class_now(other, Classes()) is RequestClass.EFFECT


@pytest.mark.parametrize(
    "target", ["/v1/refunds;/v1/logs", "/v1/refunds%3f/v1/logs", "/v1/refunds%23/v1/logs"]
)
def test_a_path_that_can_be_read_otherwise_is_no_telemetry(target: str) -> None:
    """A server may stop before the end."""
    assert class_now(post(_LOGS, target), Classes()) is RequestClass.EFFECT


@pytest.mark.parametrize(
    "query",
    ["operationName=Pay", "query=mutation%20Pay%7Bpay%7D", "OPERATIONNAME=Pay", "a=1&qu%65ry=x"],
)
def test_a_url_that_says_what_is_executed_is_no_read(query: str) -> None:
    """Some servers take it before the body's."""
    both = {"query": "query Look { a } mutation Pay { pay }", "operationName": "Look"}
    assert class_now(post(both, "/graphql"), Classes()) is RequestClass.READ
    assert class_now(post(both, "/graphql?v=1"), Classes()) is RequestClass.READ
    assert class_now(post(both, f"/graphql?{query}"), Classes()) is RequestClass.EFFECT
