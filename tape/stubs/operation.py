"""Name what a request does, where method and URL alone do not say it: two requests are alike only if their operations are.

1. JSON-RPC, and so MCP: method and name of the tool, of a batch each.
2. GraphQL: kind, `operationName` and the document of each operation, in a body, a form or a query string; layout does not
   count. A persisted query has no document: its name and the hash, or id, that stands for it.
3. AWS and SOAP: the target or action.

Source: GraphQL over HTTP, "Request Parameters"; Apollo's automatic persisted queries (`extensions.persistedQuery.sha256Hash`);
GraphQL over HTTP, appendix on persisted documents (`documentId`), and Relay's `doc_id`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

from ..canonical import graphql
from ..canonical.canonical_request import BodyKind, open_body
from ..exchange import Request

_LARGEST = 1 << 20
"""Bytes of a body that is read."""
_MOST = 1000
"""Objects of a batch that are read."""
_PERSISTED = ("documentId", "doc_id", "queryId")
"""Members that stand for a document."""


def operation(request: Request) -> tuple[str, ...]:
    """Name what is done; empty where method and URL say it."""
    named = [
        f"{name.decode()}={value.decode('latin-1')}"
        for name in (b"x-amz-target", b"soapaction")
        if (value := request.header(name)) is not None
    ]
    pairs = parse_qsl(request.target.partition("?")[2], keep_blank_values=True)
    named += [f"action={value}" for name, value in pairs if name.lower() == "action" and value]
    named += _graphql(dict(pairs))
    tree = read_tree(request, _LARGEST, _read)
    for one in tree[:_MOST] if isinstance(tree, list) else (tree,):
        if isinstance(one, dict):
            named += _of_object(one)
    return tuple(named)


def read_tree(request: Request, largest: int, parse: Callable[[bytes], Any]) -> Any:
    """Give what a request's body says, as JSON or as the pairs of a form; None where it is neither.

    largest: bytes of a body that is read.
    parse: reads JSON; gives None for what is none.
    """
    body, content = open_body(request)
    if content is None or len(body) > largest:
        return None
    if content.kind is BodyKind.FORM:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    return parse(body) if content.kind is BodyKind.JSON else None


def _read(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _of_object(tree: Mapping[str, Any]) -> Iterator[str]:
    if tree.get("jsonrpc") == "2.0":
        yield str(tree.get("method"))
        params = tree.get("params")
        if isinstance(params, dict) and "name" in params:
            yield str(params["name"])
        return
    found = tuple(_graphql(tree))
    yield from found
    if found:
        return
    for key in ("Action", "action"):
        if isinstance(tree.get(key), str):
            yield f"action={tree[key]}"


def _graphql(tree: Mapping[str, Any]) -> Iterator[str]:
    """Name an operation of GraphQL; nothing where it is none."""
    name, text = tree.get("operationName"), tree.get("query")
    name = name if isinstance(name, str) else ""
    if isinstance(text, str) and text:
        form = graphql.canonical_document(text) if len(text) <= graphql.MAX_DOCUMENT else text
        if form is None:
            return  # a text to be searched for
        executed = graphql.find_executed(text, name or None)
        yield f"graphql {executed.kind if executed is not None else ''} {name}: {form}"
    elif persisted := _persisted(tree):
        yield f"graphql {name}: {persisted}"


def _persisted(tree: Mapping[str, Any]) -> str:
    """Give what stands for a document that is not sent."""
    extensions = tree.get("extensions")
    if isinstance(extensions, str):
        extensions = _read(extensions)
    query = extensions.get("persistedQuery") if isinstance(extensions, dict) else None
    if isinstance(query, dict) and "sha256Hash" in query:
        return f"sha256 {query['sha256Hash']}"
    return next((f"{key} {tree[key]}" for key in _PERSISTED if key in tree), "")
