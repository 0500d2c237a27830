"""Values in requests and answers, each with its place, so that one can be traced to another.

A value is what somebody made up and somebody else repeats: a string of a JSON document, a segment of a path, a
parameter, a field, a number of 12 digits or more, the text that a stream spells out in pieces; and inside
longer text each id (12 characters or more with a digit among them). Ordinary words are no ids, and neither are
the times of day. What is shorter than 12 bytes says nothing about where it comes from.

Pure and bounded: a body beyond `MAX_READ` is not looked at, what is broken counts as text.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

from ..canonical.canonical_request import BodyKind, ContentType, find_content_type, open_body
from ..canonical.json import is_number, is_twice, light_tree
from ..diff.request_differences import json_step
from ..exchange import Headers, Request, Response
from ..records.content_coding import undo_coding

MIN_VALUE = 12
"""Bytes from which on a value is told from a coincidence."""
MAX_READ = 4 * 1024 * 1024
"""Bytes of a body beyond which it is not looked at."""
MAX_VALUES = 20_000
"""Most values of one message."""

_MAX_DEPTH = 100
_MAX_TEXT = 200
"""Characters of a plain text that counts as a whole."""
_MAX_PLACE = 1000
"""Characters of a place beyond which no step is added, and of a name in it: thousands of values may stand below
one long name."""

_ID = re.compile(r"[A-Za-z0-9_-]{12,}")
_DIGIT = re.compile(r"[0-9]")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_NOT_TRACED = frozenset(
    b"accept accept-encoding accept-language cache-control connection content-length content-type"
    b" content-encoding date expires host keep-alive last-modified server te transfer-encoding"
    b" upgrade user-agent vary via x-powered-by cookie set-cookie authorization proxy-authorization"
    b" traceparent tracestate idempotency-key".split()
)
"""Fields that clients and servers write on their own, or that hold secrets."""

Values = dict[str, str]
"""Place by value; of a value that stands twice the first place."""


def request_values(request: Request, untraced: frozenset[str] = frozenset()) -> Values:
    """Give what stands in a request.

    untraced: redacted places, as `request.header.authorization` and `request.query.key`.
    """
    found: Values = {}
    for place, text in request_leaves(request, untraced):
        _take(found, place, text)
    return found


def answer_values(response: Response) -> Values:
    """Give what stands in an answer."""
    found: Values = {}
    for place, text in answer_leaves(response):
        _take(found, place, text)
    return found


def request_leaves(
    request: Request, untraced: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str]]:
    """Give each place of a request with its whole text, in the order of the request."""
    path, _, query = request.target.partition("?")
    for part in path.split("/"):
        if part:
            yield "path", unquote_plus(part.replace("+", "%2B"))
    for name, value in _pairs(query):
        if f"request.query.{name.lower()}" not in untraced:
            yield f"query {name}", value
    for name, value in _traced(request.headers, "request.header.", untraced):
        yield f"header {name}", value
    if len(request.body) <= MAX_READ:
        plain, content = open_body(request)
        yield from _body_leaves(plain, content)


def answer_leaves(response: Response) -> Iterator[tuple[str, str]]:
    """Give each place of an answer with its whole text."""
    for name, value in _traced(response.headers, "response.header.", frozenset()):
        yield f"header {name}", value
    body = answer_body(response)
    head = tuple((name.lower(), value) for name, value in response.headers)
    content = find_content_type(head, body)
    if content is not None and content.form.startswith(b"text/event-stream"):
        yield from _stream_leaves(body)
    else:
        yield from _body_leaves(body, content)


def answer_body(response: Response) -> bytes:
    """Give an answer's body with its codings undone where they can be; nothing of one that is too large."""
    coding = response.header(b"content-encoding")
    body = response.body
    if coding and body:
        body = undo_coding(body, coding, MAX_READ) or body
    return body if len(body) <= MAX_READ else b""


def ids(text: str) -> list[str]:
    """Give the ids inside a text."""
    return [
        one for one in _ID.findall(text) if _DIGIT.search(one) is not None and not _TIME.match(one)
    ]


def _take(found: Values, place: str, text: str) -> None:
    if len(text) < MIN_VALUE and len(text.encode("utf-8", "replace")) < MIN_VALUE:
        return
    if len(found) >= MAX_VALUES:
        return
    if not _TIME.match(text):
        found.setdefault(text, place)
    for one in ids(text):
        found.setdefault(one, place)


def _traced(headers: Headers, prefix: str, untraced: frozenset[str]) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        lower = name.lower()
        if lower in _NOT_TRACED:
            continue
        text = lower.decode("latin-1")
        if prefix + text not in untraced:
            yield text, value.decode("latin-1").strip()


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split("&") if text else ():
        name, _, value = part.partition("=")
        yield unquote_plus(name), unquote_plus(value)


def _body_leaves(body: bytes, content: ContentType | None) -> Iterator[tuple[str, str]]:
    if not body:
        return
    kind = content.kind if content is not None else BodyKind.BYTES
    text = body.decode("utf-8", "replace")
    if kind is BodyKind.JSON:
        try:
            yield from _tree_leaves(light_tree(text), "body $", 0)
            return
        except (ValueError, RecursionError):
            pass
    if kind is BodyKind.FORM:
        for name, value in _pairs(text):
            yield f"form {name}", value
        return
    if len(text) <= _MAX_TEXT:
        yield "body", text.strip()
    else:
        for one in ids(text):
            yield "body", one


def _stream_leaves(body: bytes) -> Iterator[tuple[str, str]]:
    """Give what stands in the events, and what they spell out piece by piece at one path."""
    from ..dialects.framing.sse import read_events  # with it every dialect: not for a start

    spelt: dict[str, list[str]] = {}
    for event in read_events(body):
        text = event.data.decode("utf-8", "replace")
        try:
            tree = light_tree(text)
        except (ValueError, RecursionError):
            yield "body", text
            continue
        for place, leaf in _tree_leaves(tree, "body $", 0):
            yield place, leaf
            spelt.setdefault(place, []).append(leaf)
    for place, pieces in spelt.items():
        if len(pieces) > 1:
            whole = "".join(pieces)
            yield place, whole
            if whole[:1] in ("{", "["):
                # Arguments of a tool call: JSON again.
                try:
                    yield from ((place, leaf) for _, leaf in _tree_leaves(light_tree(whole), "", 0))
                except (ValueError, RecursionError):
                    continue


def _tree_leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if not is_number(value):
            yield path, value
            if value[:1] in ("{", "[") and value[-1:] in ("}", "]") and depth < _MAX_DEPTH:
                # Tool calls and their results carry JSON as a string.
                try:
                    inner = list(_tree_leaves(light_tree(value), path, _MAX_DEPTH))
                except (ValueError, RecursionError):
                    inner = []
                yield from ((path, leaf) for _, leaf in inner)
        elif sum(map(str.isdigit, value)) >= MIN_VALUE:
            yield path, value[1:]
    elif depth > 2 * _MAX_DEPTH:
        return
    elif isinstance(value, dict | list) and len(path) > _MAX_PLACE:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tree_leaves(item, path, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _tree_leaves(item, path + json_step(name[:_MAX_PLACE]), depth + 1)
    elif isinstance(value, list):
        items = value[1:] if is_twice(value) else value
        for index, item in enumerate(items):
            yield from _tree_leaves(item, f"{path}[{index}]", depth + 1)
