"""The places of an exchange with what is there: of a request its URL, fields and body, of an answer what it says.

1. A place in JSON is written as RFC 9535 writes the path of one node: `$.messages[2]['odd name']`. It goes on inside a text that
   is JSON itself. Elsewhere it is a word: `url`, `path`, `path N` for one of its segments, `query NAME`, `form NAME`, `header NAME`, `body`. A body of JSON is a place
   as a whole, too, for a text that is JSON: an agent hands on what a tool got as it is. So is an object or a list inside of it.
   The name of a member is read as its value is, and its place has a `~` behind that of the value: `$.accounts['ACC-1']~`.
2. Of a stream the places are those of what it spells out, as a dialect reads it: `text`, `tool call NAME $.amount`.
3. Bodies that are in a file of their own, or too large to be parsed, have no places.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

from ...tape.canonical.canonical_request import BodyKind, open_body
from ...tape.dialects import InferenceResponse, Text, Thinking, ToolCall, read_response
from ...tape.dialects.common.untrusted_json import Json, find_json
from ...tape.dialects.framing.sse import read_events
from ...tape.exchange import (
    Exchange,
    HttpRequest,
    HttpResponse,
    Request,
    RequestClass,
    Response,
    WebSocketMessage,
)
from ...tape.matching.traceable_values import answer_body, answer_leaves, request_leaves
from ..reading.exact_body_values import says_more
from ..steps.split_messages import split_body

Scalar = str | int | float | bool | None

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEP = re.compile(r"\.([\w-]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_NESTED = 8
"""Texts inside each other that are read as JSON."""
_MOST_TEXT = 4 * 1024 * 1024
"""Characters of a body that is no JSON, beyond which it is not looked at."""
_ROLES = {"developer": "system", "model": "assistant"}
_KINDS = {
    "tool_result": "tool result",
    "function_call_output": "tool result",
    "functionResponse": "tool result",
    "toolResult": "tool result",
    "tool_use": "tool call",
    "tool_calls": "tool call",
    "function_call": "tool call",
    "functionCall": "tool call",
    "toolUse": "tool call",
    "thinking": "thought",
    "reasoning": "thought",
}
_PROMPTS = {
    "system": "system prompt",
    "instructions": "system prompt",
    "systemInstruction": "system prompt",
    "system_instruction": "system prompt",
    "tools": "tools",
}


class Leaf(NamedTuple):
    """A value, and where it is."""

    place: str
    value: Scalar
    what: str = ""
    """Of a part of a context: `user`, `system prompt`, `tool result` ..."""
    is_name: bool = False
    """Whether it is the name of a member."""
    is_tree: bool = False
    """Whether it is the object or the list that is looked for, written as a text."""


def member_step(name: str) -> str:
    """Write the step of a path to a member of an object."""
    if _NAME.fullmatch(name):
        return f".{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


def walk(value: Json, path: str = "$", what: str = "", tree: Json = None) -> Iterator[Leaf]:
    """Give the scalars of a JSON value and the names of its members in order, and those of texts in it that are JSON.

    tree: an object or a list that is given as a text where it is; None for none.
    """
    stack: list[tuple[Json, str, int]] = [(value, path, 0)]
    while stack:
        one, place, nested = stack.pop()
        if tree is not None and isinstance(one, dict | list) and one == tree:
            yield Leaf(place, json.dumps(one, ensure_ascii=False), what, is_tree=True)
        if isinstance(one, dict):
            members = [(v, place + member_step(k), nested) for k, v in one.items()]
            for name, (_, there, _) in zip(one, members, strict=True):
                yield Leaf(f"{there}~", name, what, True)
            stack += reversed(members)
        elif isinstance(one, list):
            stack += reversed([(v, f"{place}[{at}]", nested) for at, v in enumerate(one)])
        else:
            yield Leaf(place, one, what)
            inner = inner_json(one) if nested < _NESTED else None
            if inner is not None:
                stack.append((inner, place, nested + 1))


def inner_json(value: Json) -> Json:
    """Read a text that is an object or a list of JSON; None for any other value."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text or (text[0], text[-1]) not in (("{", "}"), ("[", "]")):
        return None
    found = find_json(text.encode("utf-8", "surrogatepass"))
    return found if isinstance(found, dict | list) else None


# Requests


def asked_leaves(
    exchange: Exchange,
    wanted: Callable[[bytes], bool] | None = None,
    after: int = 0,
    tree: Json = None,
) -> Iterator[Leaf]:
    """Give what is in a request, in its order.

    wanted: says whether bytes are worth parsing; elements of a list of messages that are not are passed over.
    after: byte of the body before which such elements are known.
    tree: an object or a list that is looked for, also as the whole body; None for none.
    """
    request = exchange.request
    yield Leaf("url", request.url)
    untraced = frozenset(one.place.lower() for one in exchange.redactions)
    path = request.target.partition("?")[0]
    yield Leaf("path", unquote(path))
    segments = 0
    for place, text in request_leaves(replace(request, body=b""), untraced):
        segments += place == "path"
        yield Leaf(f"path {segments}" if place == "path" else place, text)
    yield from _request_body(request, wanted, after, tree)


def _request_body(
    request: Request, wanted: Callable[[bytes], bool] | None, after: int, tree: Json
) -> Iterator[Leaf]:
    body, content = open_body(request)
    if not body:
        return
    split = split_body(body)
    if split is not None:
        for name, value in {**split.head, **split.tail}.items():
            yield from walk(value, f"${member_step(name)}", _PROMPTS.get(name, ""), tree)
        for number, (_, end) in enumerate(split.places):
            slice_ = split.slice(number)
            if split.start + end > after and (wanted is None or wanted(slice_)):
                path = f"${member_step(split.key)}[{number}]"
                yield from _element(find_json(slice_), path, tree)
        return
    if content is not None and content.kind is BodyKind.FORM:
        for pair in body.decode("utf-8", "replace").split("&"):
            name, _, value = pair.partition("=")
            yield Leaf(f"form {unquote_plus(name)}~", unquote_plus(name), is_name=True)
            yield Leaf(f"form {unquote_plus(name)}", unquote_plus(value))
        return
    yield from _body(body, tree)


def _element(element: Json, path: str, tree: Json) -> Iterator[Leaf]:
    """Give what is in one element of a conversation, with who said it."""
    role = ""
    if isinstance(element, dict):
        found = element.get("role")
        role = found if isinstance(found, str) else ""
        role = _KINDS.get(str(element.get("type")), "") or _ROLES.get(role, role)
        role = "tool result" if role in ("tool", "function") else role
    for leaf in walk(element, path, tree=tree):
        yield leaf._replace(what=_part_of(element, leaf.place, path) or role)


def _part_of(tree: Json, place: str, path: str) -> str:
    """Say which part of a message a place is in, where that is another than what its role says."""
    steps = place[len(path) :]
    for word in ("functionResponse", "functionCall", "toolResult", "toolUse", "tool_calls"):
        if f".{word}" in steps:
            return _KINDS[word]
    found = re.match(r"\.(content|parts)\[(\d+)\]", steps)
    if found is None or not isinstance(tree, dict):
        return ""
    parts = tree.get(found[1])
    part = parts[int(found[2])] if isinstance(parts, list) else None
    return _KINDS.get(str(part.get("type")), "") if isinstance(part, dict) else ""


def _body(body: bytes, tree: Json) -> Iterator[Leaf]:
    read = find_json(body)
    if isinstance(read, dict | list):
        if tree is not None and len(body) <= _MOST_TEXT:
            yield Leaf("body", body.decode("utf-8", "replace"))
        yield from walk(read, tree=tree)
    elif len(body) <= _MOST_TEXT:
        yield Leaf("body", body.decode("utf-8", "replace"))


# Answers


def answered_leaves(exchange: Exchange, response: Response, tree: Json = None) -> Iterator[Leaf]:
    """Give what is in an answer: its fields, and what its body says.

    tree: an object or a list that is looked for, also as the whole body; None for none.
    """
    for place, text in answer_leaves(replace(response, body=b"", chunks=())):
        yield Leaf(place, text)
    body = answer_body(response)
    if not body:
        return
    if isinstance(find_json(body), dict | list):
        yield from _body(body, tree)
        return
    answer = _read(exchange, response)
    if answer is not None and answer.choices:
        yield from said_leaves(answer, tree)
        return
    if response.is_events:
        for number, event in enumerate(read_events(body), 1):
            for leaf in _body(event.data, tree):
                yield leaf._replace(place=f"event {number} {leaf.place}")
        return
    yield from _body(body, tree)


def _read(exchange: Exchange, response: Response) -> InferenceResponse | None:
    if exchange.request_class is not RequestClass.INFERENCE:
        return None
    return read_response(exchange.request, response)


def said_leaves(answer: InferenceResponse, tree: Json = None) -> Iterator[Leaf]:
    """Give what a model said, thought and wants called.

    tree: an object or a list that is looked for; None for none.
    """
    for choice in answer.choices:
        for part in choice.message.parts:
            if isinstance(part, Text):
                yield Leaf("text", part.text, "assistant")
                yield from walk(inner_json(part.text), "text", "assistant", tree)
            elif isinstance(part, Thinking):
                yield Leaf("thought", part.text, "thought")
            elif isinstance(part, ToolCall):
                yield Leaf(f"tool call {part.name} id", part.id, "tool call")
                # The text, too, where its values do not say what it does, as of a member that comes twice.
                if part.text and (
                    part.arguments is None or says_more(part.text.encode("utf-8", "surrogatepass"))
                ):
                    yield Leaf(f"tool call {part.name}", part.text, "tool call")
                path = f"tool call {part.name} $"
                yield from walk(part.arguments, path, "tool call", tree)


def message_leaves(message: WebSocketMessage, tree: Json = None) -> Iterator[Leaf]:
    """Give what is in a message of a WebSocket.

    tree: an object or a list that is looked for, also as the whole message; None for none.
    """
    yield from _body(message.data, tree)


# One place


class NoPlace(Exception):
    """An exchange has nothing at a place."""

    def __init__(self, text: str, hint: str) -> None:
        """Say what was found, and what there is."""
        super().__init__(text)
        self.hint = hint


def find_leaf(exchange: Exchange, place: str) -> Leaf:
    """Find what is at a place of a request, or behind `answer ` of its answer.

    place: as it is printed; a path may leave out its `$.`.
    Raises: NoPlace, naming what there is.
    """
    told = place.strip()
    side, _, rest = told.partition(" ")
    if side == "answer":
        response = exchange.response
        if response is None:
            raise NoPlace("it has no answer", "leave out `answer` to name a place of the request")
        tree = find_json(answer_body(response))
        leaves = answered_leaves(exchange, response)
        leaves = chain(leaves, _unmatched(exchange, response, answer_body(response)))
        return _find(rest, tree, leaves, "answer ", describe_body(response))
    if side == "request":
        told = rest
    request = exchange.request
    body = open_body(request)[0]
    leaves = chain(asked_leaves(exchange), _unmatched(exchange, request, body))
    return _find(told, find_json(body), leaves, "", describe_body(request))


def _unmatched(
    exchange: Exchange, message: HttpRequest | HttpResponse, body: bytes
) -> Iterator[Leaf]:
    """Give what is not looked for elsewhere, but can be asked about: fields that say nothing of a value, a form as a whole."""
    secret = {one.place.lower() for one in exchange.redactions}
    for name, value in message.headers:
        place = f"header {name.decode('latin-1').lower()}"
        if place not in secret:
            yield Leaf(place, value.decode("utf-8", "replace"))
    if body and len(body) <= _MOST_TEXT:
        yield Leaf("body", body.decode("utf-8", "replace"))


def describe_body(message: HttpRequest | HttpResponse) -> str:
    """Say what a body is that has no path."""
    if message.spilled is not None:
        return f"its body of {message.spilled.size} bytes is in a file of its own"
    if not message.body:
        return "it has no body"
    kind = (message.header(b"content-type") or b"no content type").decode("latin-1")[:60]
    coding = (message.header(b"content-encoding") or b"").decode("latin-1")[:40]
    encoded = f", coding {coding}" if coding else ""
    return f"its body is no JSON: {len(message.body)} bytes, {kind}{encoded}"


def _find(told: str, tree: Json, leaves: Iterator[Leaf], side: str, body: str) -> Leaf:
    told = told.removeprefix("body ")
    if told.lower().startswith("header "):
        told = told.lower()
        body = "it has no such field"
    words: dict[str, Leaf] = {}
    is_member = isinstance(tree, dict) and told in tree
    for leaf in leaves:
        if leaf.place == told and not is_member:
            return leaf
        if not leaf.place.startswith("$") and not leaf.is_name:
            words.setdefault(leaf.place, leaf)
    if isinstance(tree, dict | list):
        return Leaf(told, _resolve(tree, told))
    if (named := words.get(f"form {told.removeprefix('$.')}")) is not None:
        return named
    names = ", ".join(f"{side}{name}"[:60] for name in list(words)[:12]) or "nothing"
    raise NoPlace(f"it has no place {told[:80]!r}: {body}", f"its places are {names}")


def _resolve(tree: Json, told: str) -> Scalar:
    """Find a scalar at a path.

    Raises: NoPlace.
    """
    path = told if told.startswith("$") else f"${'' if told.startswith('[') else '.'}{told}"
    at, here, value = 1, "$", tree
    last: str | None = None
    while at < len(path):
        if path[at:] == "~" and last is not None:
            return last
        step = _STEP.match(path, at)
        if step is None:
            hint = "a path is $.messages[2]['odd name'].text; other places are url, query NAME, form NAME, header NAME"
            raise NoPlace(f"{told[:80]!r} is no path: {path[at : at + 20]!r} is no step", hint)
        value = inner_json(value) if isinstance(value, str) else value
        name, index, *quoted = step.groups()
        key = name if name is not None else next((one for one in quoted if one is not None), None)
        if key is not None:
            key = re.sub(r"\\(.)", r"\1", key) if name is None else key
        if isinstance(value, dict) and key is not None and key in value:
            value, here, last = value[key], here + member_step(key), key
        elif isinstance(value, list) and index is not None and int(index) < len(value):
            value, here, last = value[int(index)], f"{here}[{int(index)}]", None
        else:
            raise NoPlace(f"it has no {here}{step[0][:80]}", _describe(here, value))
        at = step.end()
    if isinstance(value, dict | list):
        raise NoPlace(f"{here} is no single value", _describe(here, value))
    return value


def _describe(here: str, value: Json) -> str:
    if isinstance(value, dict):
        names = [f"{here}{member_step(name)}"[:80] for name in list(value)[:12]]
        more = f" and {len(value) - 12} more" if len(value) > 12 else ""
        return f"{here} has {', '.join(names) or 'no members'}{more}"
    if isinstance(value, list):
        return f"{here} has {here}[0] to {here}[{len(value) - 1}]" if value else f"{here} is empty"
    return f"{here} is a single value"
