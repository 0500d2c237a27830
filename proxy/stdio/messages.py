"""Messages of JSON-RPC over standard input and output, one a line, and how answers of HTTP carry them.

A request of the client is a POST. Its answer is the server's answer as JSON; an event stream where the server says
something else first. What the server says while nothing is asked of it comes in the event stream of a GET. Events:

    id: 7, data: {"jsonrpc": ...}             the seventh line that the server wrote
    id: 8, event: raw, data: BASE64           the same, where it is no text or holds a carriage return
    id: 9, event: half, data: BASE64          what it wrote last, without an end of line
    event: exit, data: 1                      it has ended by itself, with this code

Pure. Source: Model Context Protocol, "Transports"; JSON-RPC 2.0 sections 4 to 6; WHATWG HTML section 9.2.6.
"""

import base64
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from ...tape.canonical.json_rpc_client_ids import Key, find_places, parse_id

MAX_LINE = 64 * 1024 * 1024
"""Bytes of a message."""


class Event(StrEnum):
    """What an event of a stream is."""

    MESSAGE = "message"
    RAW = "raw"
    HALF = "half"
    EXIT = "exit"


class Asked(NamedTuple):
    """What a line of the client asks."""

    ids: dict[Key, bytes]
    """Of the requests in it, which the server is to answer: each as it is written."""
    tokens: frozenset[Key] = frozenset()
    """Progress tokens."""
    is_json: bool = True


class Said(NamedTuple):
    """What a server wrote."""

    number: int
    """Which line of it, from 1."""
    data: bytes
    """With its end of line."""


class Exit(NamedTuple):
    """How a server ended."""

    code: int


class LineTooLong(ValueError):
    """A message has more than `MAX_LINE` bytes."""


_Raw = msgspec.Raw | msgspec.UnsetType


class _Meta(msgspec.Struct):
    token: _Raw = msgspec.field(default=msgspec.UNSET, name="progressToken")


class _Params(msgspec.Struct):
    meta: _Meta | None = msgspec.field(default=None, name="_meta")


class _Request(msgspec.Struct):
    method: _Raw = msgspec.UNSET
    id: _Raw = msgspec.UNSET
    params: _Raw = msgspec.UNSET


_read = msgspec.json.Decoder(_Request | list[_Request]).decode
_read_params = msgspec.json.Decoder(_Params).decode
_is_any = msgspec.json.Decoder(msgspec.Raw).decode


def read_asked(line: bytes) -> Asked:
    """Read what a line of the client asks; nothing where it is no request."""
    try:
        found = _read(line)
    except (ValueError, RecursionError):
        return Asked({}, is_json=_is_json(line))
    ids: dict[Key, bytes] = {}
    tokens = set()
    for one in found if isinstance(found, list) else [found]:
        key = _key(one.id)
        if one.method is msgspec.UNSET or one.id is msgspec.UNSET or key is None:
            continue
        ids[key] = bytes(one.id)
        if (token := _token(one.params)) is not None:
            tokens.add(token)
    return Asked(ids, frozenset(tokens))


def _key(written: _Raw) -> Key | None:
    return None if written is msgspec.UNSET else parse_id(bytes(written))


def _token(params: _Raw) -> Key | None:
    try:
        meta = None if params is msgspec.UNSET else _read_params(params).meta
    except (ValueError, RecursionError):
        return None
    return None if meta is None else _key(meta.token)


def _is_json(line: bytes) -> bool:
    try:
        _is_any(line)
        line.decode()
    except (ValueError, RecursionError):
        return False
    return True


def find_answered(line: bytes) -> tuple[set[Key], set[Key]]:
    """Give the ids that a line of the server answers, and the progress tokens that it speaks of."""
    places = find_places(line, events=False)
    return {one.key for one in places if not one.token}, {one.key for one in places if one.token}


def make_event(number: int, line: bytes, *, half: bool = False) -> bytes:
    """Write a line of the server as an event."""
    if half or b"\r" in line or not _is_json(line):
        kind = Event.HALF if half else Event.RAW
        coded = base64.b64encode(line)
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, kind.encode(), coded)
    return b"id: %d\ndata: %s\n\n" % (number, line)


def is_plain(line: bytes) -> bool:
    """Say whether a line can be the body of an answer."""
    return b"\r" not in line and _is_json(line)


def make_exit(code: int) -> bytes:
    """Write how a server ended as an event."""
    return b"event: exit\ndata: %d\n\n" % code


class Lines:
    """Takes a stream apart into lines."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._data = bytearray()
        self._seen = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that end in what has come. Raises: LineTooLong."""
        self._data += data
        while (end := self._data.find(b"\n", self._seen)) >= 0:
            yield bytes(self._data[:end])
            del self._data[: end + 1]
            self._seen = 0
        self._seen = len(self._data)
        if self._seen > MAX_LINE:
            raise LineTooLong(f"a message has more than {MAX_LINE >> 20} MiB")

    @property
    def rest(self) -> bytes:
        """What has come since the last line ended."""
        return bytes(self._data)


class Events:
    """Takes an event stream of ours apart."""

    def __init__(self) -> None:
        """Begin at its beginning."""
        self._lines = Lines()
        self._kind, self._number = "", 0

    def feed(self, data: bytes) -> Iterator[Said | Exit]:
        """Yield what the server wrote, and how it ended; what is no event of ours is left out."""
        for line in self._lines.feed(data):
            name, _, value = line.partition(b": ")
            if name == b"event":
                self._kind = value.decode("ascii", "replace")
            elif name == b"id":
                self._number = read_number(value)
            elif name == b"data":
                found = _read_event(self._kind or Event.MESSAGE, self._number, value)
                if found is not None:
                    yield found
            elif not line:
                self._kind, self._number = "", 0


def read_number(value: bytes) -> int:
    """Read the number of a line; 0 where it is none."""
    return int(value) if value.isdigit() and len(value) < 16 else 0


def _read_event(kind: str, number: int, value: bytes) -> Said | Exit | None:
    try:
        match kind:
            case Event.MESSAGE:
                return Said(number, value + b"\n")
            case Event.RAW:
                return Said(number, base64.b64decode(value, validate=True) + b"\n")
            case Event.HALF:
                return Said(number, base64.b64decode(value, validate=True))
            case Event.EXIT:
                return Exit(int(value))
    except ValueError:
        pass
    return None


def make_error(ids: dict[Key, bytes], text: str) -> bytes:
    """Write lines that answer requests with an error."""
    message = json.dumps(text).encode()
    return b"".join(
        b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}\n' % (written, message)
        for written in ids.values()
    )
