"""What the body of a POST says of its class."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.canonical.graphql import MAX_DOCUMENT
from playhead.tape.classify.by_body import MAX_READ, asks_to_read
from playhead.tape.exchange import Request


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
