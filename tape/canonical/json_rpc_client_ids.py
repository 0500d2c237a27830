"""JSON-RPC 2.0: find the ids that a client chose, in requests and in answers.

A client numbers its requests as it likes, and calls made at the same time are numbered otherwise on every run.
So the id of a request does not count (rule 1), and the id that the client sent now stands in its answer (rule 2).

1. A body is JSON-RPC where it is an object, or a list of nothing else, with `"jsonrpc": "2.0"`. Of a message with
   a `method` neither `id` counts nor `params._meta.progressToken`, nor `params.requestId` of
   `notifications/cancelled`. Of an answer of the client the id counts: the server made it, and it comes from
   the tape. In a batch in which two calls have one id, or one progress token, all of them count: nobody could tell
   their answers apart.
2. In what comes from the tape, an id changes in results and errors alone, a progress token in
   `notifications/progress` alone. Requests of the server keep their ids.
3. Nothing but those bytes changes, and none where the ids are equal.
4. Ids are strings or numbers of at most 256 characters; anything else counts, and stays. What is no message as a
   server writes it (more than 10,000 members, an event stream of more than 200,000 lines) is left alone.

Source: JSON-RPC 2.0 sections 4 to 6; MCP 2025-06-18, "Base Protocol", "Cancellation", "Progress".
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from .json import JsonPath, text_of

STDIO_HOST = "stdio.playhead.internal"
"""Requests to this host are messages for servers over standard input and output; `playhead stdio` makes and answers them."""
MAX_ID = 256
"""Characters of an id."""
_MAX_WRITTEN = 12 * MAX_ID + 2
"""Bytes of one as it is written: a character may take two escapes."""
_MAX_MEMBERS = 10_000
_CANCELLED = b"notifications/cancelled"
_MAX_LINES = 200_000
MAX_MESSAGES = 1000
"""Messages of a batch beyond which it is compared as any list."""

Key = tuple[bool, str]
"""An id as a value: whether it is a string, and its text."""


class Names(NamedTuple):
    """Recorded ids, and how the client wrote what stands for each of them now."""

    ids: dict[Key, bytes]
    tokens: dict[Key, bytes]

    def find(self, place: "Place") -> bytes | None:
        """Find what is to stand in a place of an answer; None leaves it as it is."""
        return (self.tokens if place.token else self.ids).get(place.key)


class Place(NamedTuple):
    """Where an id stands in an answer."""

    start: int
    """Bytes from the beginning of the body."""
    end: int
    key: Key
    token: bool
    """It is a progress token."""


# ---- of requests --------------------------------------------------------------------------------------


def volatile_places(tree: Any, exact: bool) -> tuple[JsonPath, ...]:
    """Give the places of a parsed body that do not count: none where it is no JSON-RPC."""
    if type(tree) is dict:
        return tuple(_places(tree, exact)) if tree.get("jsonrpc") == "2.0" else ()
    if type(tree) is not list or not 0 < len(tree) <= MAX_MESSAGES:
        return ()
    found: list[JsonPath] = []
    for index, item in enumerate(tree):
        if type(item) is not dict or item.get("jsonrpc") != "2.0":
            return ()
        found += [(index, *path) for path in _places(item, exact)]
    return () if _share_ids(tree, found) else tuple(found)


def _share_ids(batch: list[Any], places: list[JsonPath]) -> bool:
    """Say whether two calls of a batch have one id, or one progress token."""
    named = [path for path in places if path[-1] != "requestId"]
    seen = {(path[-1], _as_written(_get(batch, path))) for path in named}
    return len(seen) < len(named)


def _get(tree: Any, path: JsonPath) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _as_written(value: Any) -> tuple[bool, str]:
    """Tell the text `1` from the number."""
    if isinstance(value, msgspec.Raw):
        return False, bytes(value).decode("ascii", "replace")
    return isinstance(value, str), str(value)


def _places(message: dict[str, Any], exact: bool) -> Iterator[JsonPath]:
    if "method" not in message:
        return
    if _is_id(message.get("id"), exact):
        yield ("id",)
    params = message.get("params")
    if type(params) is not dict:
        return
    meta = params.get("_meta")
    if type(meta) is dict and _is_id(meta.get("progressToken"), exact):
        yield ("params", "_meta", "progressToken")
    cancelled = message["method"] == "notifications/cancelled"
    if cancelled and _is_id(params.get("requestId"), exact):
        yield ("params", "requestId")


def _is_id(value: Any, exact: bool) -> bool:
    text = text_of(value, exact)
    if text is not None:
        return len(text) <= MAX_ID
    if isinstance(value, msgspec.Raw):  # a number with a point or an exponent
        return len(bytes(value)) <= MAX_ID
    if exact:
        return isinstance(value, str) and type(value) is not str and len(value) <= MAX_ID + 1
    return type(value) is int and abs(value) < 10 ** (MAX_ID - (value < 0))


class _Meta(msgspec.Struct):
    token: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name="progressToken"
    )


class _Params(msgspec.Struct):
    meta: msgspec.Raw | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")
    cancelled: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name="requestId"
    )


class _Asked(msgspec.Struct):
    jsonrpc: msgspec.Raw
    method: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_read_asked = msgspec.json.Decoder(_Asked | list[_Asked]).decode
_read_params = msgspec.json.Decoder(_Params).decode
_read_meta = msgspec.json.Decoder(_Meta).decode


def find_names(recorded: bytes, asked: bytes) -> Names | None:
    """Find how a request names what a recorded one of the same fingerprint named; None for no JSON-RPC.

    Both are bodies with their codings undone. Names that are the same are among what is given.
    """
    old, new = _own_names(recorded), _own_names(asked)
    if old is None or new is None or len(old) != len(new):
        return None
    names = Names({}, {})
    for one, other in zip(old, new, strict=True):
        for known, was, now in zip(names, one, other, strict=True):
            if was is not None and now is not None:
                key = parse_id(was)
                if key is not None and parse_id(now) is not None:
                    known[key] = now
    return names


def find_cancelled(recorded: bytes, asked: bytes) -> list[tuple[Key, Key]]:
    """Give the ids of the requests that a recorded body of the same fingerprint cancelled, and those that this one does."""
    if _CANCELLED not in asked:
        return []
    pairs = zip(_cancelled_by(recorded), _cancelled_by(asked), strict=False)
    return [(then, now) for then, now in pairs if then is not None and now is not None]


def cancels(notice: bytes, call: bytes) -> bool:
    """Say whether one body cancels a request in another."""
    if _CANCELLED not in notice:
        return False
    own = {parse_id(name) for name, _ in _own_names(call) or () if name is not None}
    return any(key is not None and key in own for key in _cancelled_by(notice))


def _cancelled_by(body: bytes) -> list[Key | None]:
    try:
        return [_cancels(one) for one in _read_messages(body)]
    except (ValueError, RecursionError):
        return []


def _cancels(message: _Asked) -> Key | None:
    params, method = _read_own_params(message), _written(message.method)
    if method is None or params is None:
        return None
    if json.loads(method) != _CANCELLED.decode():
        return None
    written = _written(params.cancelled)
    return None if written is None else parse_id(written)


def _own_names(body: bytes) -> list[tuple[bytes | None, bytes | None]] | None:
    """Give id and progress token of each message as they are written."""
    try:
        return [
            (_written(one.id), _token(one)) if _is_set(one.method) else (None, None)
            for one in _read_messages(body)
        ]
    except (ValueError, RecursionError):  # msgspec's own errors are among them
        return None


def _read_messages(body: bytes) -> list[_Asked]:
    found = _read_asked(body)
    return found if isinstance(found, list) else [found]


def _read_own_params(message: _Asked) -> _Params | None:
    """Give the parameters of a message; None where they are no object."""
    params = _written(message.params)
    return _read_params(params) if params is not None and params[:1] == b"{" else None


def _token(message: _Asked) -> bytes | None:
    params = _read_own_params(message)
    if params is None:
        return None
    meta = _written(params.meta)
    return None if meta is None or meta[:1] != b"{" else _written(_read_meta(meta).token)


def _is_set(raw: msgspec.Raw | msgspec.UnsetType) -> bool:
    return raw is not msgspec.UNSET


def _written(raw: msgspec.Raw | msgspec.UnsetType) -> bytes | None:
    return None if raw is msgspec.UNSET else bytes(raw)


_NUMBER = re.compile(rb"-?[0-9][-+.0-9eE]*")


def parse_id(written: bytes) -> Key | None:
    """Parse an id as it is written; None for what is none, or too long."""
    if len(written) > _MAX_WRITTEN:
        return None
    if written[:1] == b'"':
        try:
            text = json.loads(written)
        except ValueError:
            return None
        return (True, text) if len(text) <= MAX_ID else None
    good = len(written) <= MAX_ID and _NUMBER.fullmatch(written)
    return (False, written.decode("ascii")) if good else None


READS = frozenset(
    {
        "initialize",
        "ping",
        "completion/complete",
        "logging/setLevel",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tools/list",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
    }
)
"""Methods of MCP's clients that change nothing but what the session tells them. `tools/call` may do anything."""


class _Called(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    method: str
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_read_called = msgspec.json.Decoder(_Called | list[_Called]).decode


def only_reads(body: bytes) -> bool:
    """Say whether a body is nothing but calls that read; one message or a batch.

    Of a key that stands twice one is looked at: that none does is for the caller to find out.
    """
    try:
        found = _read_called(body)
    except (ValueError, RecursionError):  # msgspec's own errors are among them
        return False
    messages = found if isinstance(found, list) else [found]
    return bool(messages) and all(one.method in READS for one in messages)


# ---- of answers ---------------------------------------------------------------------------------------


def find_places(body: bytes, *, events: bool) -> list[Place]:
    """Find where ids and progress tokens stand in an answer, in their order.

    body: without content coding.
    events: it is an event stream, of which each event's data may be a message.
    """
    found: list[Place] = []
    if b"jsonrpc" not in body:
        return found
    for start, data in _event_data(body) if events else ((0, body),):
        found += [
            place._replace(start=start + place.start, end=start + place.end)
            for place in _message_places(data)
        ]
    return found


_LINE = re.compile(rb"(?:\A\xef\xbb\xbf)?data: ?([^\r\n]*)|[^\r\n]+")
_ENDS = re.compile(rb"\r\n|\r|\n")


def _event_data(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the `data` of each event and where it begins; an event of several lines as one, line ends in it.

    Source: WHATWG HTML section 9.2.6. What separates the lines of one event is kept at its length, as white
    space between tokens, so that places stay what they are.
    """
    at, start, parts = 0, -1, bytearray()
    for _ in range(_MAX_LINES):
        if at >= len(body):
            break
        line = _LINE.match(body, at)
        if line is None:  # an empty line ends an event
            if start >= 0:
                yield start, bytes(parts)
            start, parts = -1, bytearray()
        elif line[1] is not None:
            if start < 0:
                start = line.start(1)
            # Field names and line ends between two pieces of data become spaces.
            parts += b" " * (line.start(1) - start - len(parts))
            parts += line[1]
        ending = _ENDS.match(body, line.end() if line is not None else at)
        at = ending.end() if ending is not None else len(body)
    if start >= 0 and at >= len(body):
        yield start, bytes(parts)


_Members = dict[str, msgspec.Raw]
_read_members = msgspec.json.Decoder(_Members).decode
_read_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SPACE = re.compile(rb"[ \t\r\n]*+")
_NAME = re.compile(rb'[ \t\r\n,{]*+"(?:[^"\\]|\\.)*+"[ \t\r\n]*+:[ \t\r\n]*+')
_CLOSE = re.compile(rb"[ \t\r\n{]*+}[ \t\r\n]*+")
_BETWEEN = re.compile(rb"[ \t\r\n,\[]*+")


def _message_places(data: bytes) -> list[Place]:
    try:
        if data[_SPACE.match(data).end() :][:1] != b"[":  # type: ignore[union-attr]  # matches anything
            return list(_places_of_one(data, 0))
        found: list[Place] = []
        at = 0
        items = _read_items(data)
        if len(items) > MAX_MESSAGES:
            return []
        for item in map(bytes, items):
            at = _end(_BETWEEN, data, at)
            found += _places_of_one(item, at)
            at += len(item)
        return found
    except (ValueError, RecursionError):
        return []


def _places_of_one(data: bytes, base: int) -> Iterator[Place]:
    members = _members(data, base)
    if "jsonrpc" not in members:
        return
    if "method" not in members:
        if "id" in members and ("result" in members or "error" in members):
            yield from _place(*members["id"], token=False)
    elif members["method"][1] == b'"notifications/progress"' and "params" in members:
        start, params = members["params"]
        if params[:1] == b"{":
            named = _members(params, start)
            if "progressToken" in named:
                yield from _place(*named["progressToken"], token=True)


def _place(start: int, written: bytes, *, token: bool) -> Iterator[Place]:
    key = parse_id(written)
    if key is not None:
        yield Place(start, start + len(written), key, token)


def _members(data: bytes, base: int) -> dict[str, tuple[int, bytes]]:
    """Give the members of an object with where their values begin.

    Raises: ValueError for what is no object, or holds a key twice.
    """
    found = {}
    at = 0
    members = _read_members(data)
    if len(members) > _MAX_MEMBERS:
        raise ValueError("no message")
    for name, raw in members.items():
        value = bytes(raw)
        at = _end(_NAME, data, at)
        if not data.startswith(value, at):
            raise ValueError("a key is repeated")
        found[name] = (base + at, value)
        at += len(value)
    if not _CLOSE.fullmatch(data, at):
        raise ValueError("a key is repeated")
    return found


def _end(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    if found is None:
        raise ValueError("no JSON as expected")
    return found.end()
