"""Split a stream of any framing into JSON pieces, each with the offset at which it was complete.

Event streams, AWS frames, lines of JSON, and an array that is sent member by member. What a body is, is seen
in its first bytes and not in its content type: providers label errors as streams and streams as JSON.
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import starmap
from typing import NamedTuple

from ...canonical.json import MAX_DEPTH
from ..common.untrusted_json import MAX_JSON
from .aws_event_stream import is_frame, read_frames
from .lines import read_lines
from .sse import read_events


class Framing(Enum):
    """How a body is to be taken apart."""

    WHOLE = "whole"
    """It is not: one JSON value."""
    EVENTS = "events"
    FRAMES = "frames"
    LINES = "lines"
    MEMBERS = "members"


class Piece(NamedTuple):
    """One piece of a stream."""

    name: str
    """Of the event; empty where the framing has no names."""
    data: bytes
    end: int
    """Where in the body it was whole."""
    failed: bool = False
    """The framing itself says that this is an error."""


_EVENT_FIELD = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*(?:data|event|id|retry)?:")
_FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(.)", re.DOTALL)
"""OpenRouter sends blank lines while it waits, also before an answer that is no stream."""
_STREAM = b"text/event-stream"
_FRAMES = b"application/vnd.amazon.eventstream"
_LINES = (
    b"application/x-ndjson",
    b"application/ndjson",
    b"application/jsonl",
    b"application/stream+json",
)


def find_framing(content_type: bytes, body: bytes) -> Framing:
    """Say how a body is framed, by its first bytes first and its content type next."""
    media = content_type.partition(b";")[0].strip().lower()
    if media in _LINES:
        return Framing.LINES
    found = _FIRST.match(body)
    start = found[1] if found else b""
    if start == b"[":
        return Framing.MEMBERS
    if start == b"{":
        return Framing.WHOLE
    if media == _FRAMES or is_frame(body):
        return Framing.FRAMES
    if media == _STREAM or _EVENT_FIELD.match(body):
        return Framing.EVENTS
    return Framing.WHOLE


def read_pieces(framing: Framing, body: bytes) -> Iterator[Piece]:
    """Take a body apart; the whole of it is one piece where there is nothing to take apart."""
    return _READERS[framing](body)


def _whole(body: bytes) -> Iterator[Piece]:
    yield Piece("", body, len(body))


def _events(body: bytes) -> Iterator[Piece]:
    return starmap(Piece, read_events(body))


def _frames(body: bytes) -> Iterator[Piece]:
    for frame in read_frames(body):
        if frame.headers.get(":message-type", "event") == "event":
            yield Piece(frame.headers.get(":event-type", ""), frame.payload, frame.end)
        else:
            kind = frame.headers.get(":exception-type") or frame.headers.get(":error-code", "")
            yield Piece(kind, frame.payload, frame.end, failed=True)


def _lines(body: bytes) -> Iterator[Piece]:
    for line in read_lines(body):
        text = line.text.strip()
        if text:
            yield Piece("", text, line.end)


# A string that does not end goes to the end of the body: looked at once, not once for each quote in it.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def _members(body: bytes) -> Iterator[Piece]:
    """Give the members of an array that are whole, up to one that is too deep or too large to be read."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(body):
        if depth > MAX_DEPTH or (depth > 1 and token.start() - start > MAX_JSON):
            return
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == 2:
                    start = token.start()
            case b"}" | b"]":
                depth -= 1
                if depth == 1:
                    yield Piece("", body[start : token.end()], token.end())
                elif depth <= 0:
                    return


_READERS: dict[Framing, Callable[[bytes], Iterator[Piece]]] = {
    Framing.WHOLE: _whole,
    Framing.EVENTS: _events,
    Framing.FRAMES: _frames,
    Framing.LINES: _lines,
    Framing.MEMBERS: _members,
}
