"""Streams are taken apart into pieces, each with the place where it was whole."""

import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.dialects.framing.aws_event_stream import MAX_FRAME, Frame, is_frame, read_frames
from playhead.tape.dialects.framing.split_stream import Framing, find_framing, read_pieces
from playhead.tape.dialects.framing.sse import Event, read_events
from playhead.tests.support.dialects import make_frame

# ---- event streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"", []),
        (b"data: a\n\n", [Event("", b"a", 7)]),
        (b"data:a\n\ndata: b\n\n", [Event("", b"a", 6), Event("", b"b", 15)]),
        # lines end in three ways
        (b"data: a\r\n\r\n", [Event("", b"a", 7)]),
        (b"data: a\r\rdata: b\r\r", [Event("", b"a", 7), Event("", b"b", 16)]),
        # several lines are one text; one space is taken off
        (b"data: a\ndata:  b\n\n", [Event("", b"a\n b", 16)]),
        # names
        (b"event: x\ndata: a\n\ndata: b\n\n", [Event("x", b"a", 16), Event("", b"b", 25)]),
        (b"event: x\n\ndata: a\n\n", [Event("", b"a", 17)]),
        # comments, other fields, blank lines, a byte order mark
        (b": hi\n\n\nid: 7\nretry: 1\ndata: a\n\n", [Event("", b"a", 29)]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("", b"a", 10)]),
        (b"data\n\n", []),
        # no blank line after the last
        (b"data: a", [Event("", b"a", 7)]),
        (b"data: a\n", [Event("", b"a", 7)]),
        # other separators of lines are text
        ("data: a\u2028b\x0bc\n\n".encode(), [Event("", "a\u2028b\x0bc".encode(), 13)]),
    ],
)
def test_an_event_stream_is_read(body: bytes, events: list[Event]) -> None:
    """As the standard has it, but for the end."""
    assert list(read_events(body)) == events


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), max_size=5))
def test_the_end_of_an_event_is_where_its_data_ends(texts: list[str]) -> None:
    """Up to there it has everything, one byte less is less."""
    body = "".join(f"data: {text}\n\n" for text in texts).encode()
    events = list(read_events(body))
    assert [event.data.decode() for event in events] == texts
    for event in events:
        assert body[: event.end].endswith(event.data)
        assert body[event.end : event.end + 2] == b"\n\n"


# ---- frames ------------------------------------------------------------------------------------------

FRAME = make_frame({"a": 1}, event_type="x")
HEAD = {":message-type": "event", ":content-type": "application/json", ":event-type": "x"}


def test_frames_are_read() -> None:
    """One after another, each with its end."""
    size = len(FRAME)
    assert is_frame(FRAME)
    assert list(read_frames(FRAME * 2)) == [
        Frame(HEAD, b'{"a": 1}', size),
        Frame(HEAD, b'{"a": 1}', 2 * size),
    ]


def test_a_frame_that_was_cut_is_none() -> None:
    """Wherever it was cut; those before it are read."""
    for size in range(len(FRAME)):
        assert list(read_frames(FRAME[:size])) == []
        assert len(list(read_frames(FRAME + FRAME[:size]))) == 1


def test_a_payload_may_differ_from_its_checksum() -> None:
    """A placeholder stands where a secret stood."""
    (frame,) = read_frames(FRAME.replace(b'"a"', b'"b"'))
    assert frame.payload == b'{"b": 1}'


def _raw(headers: bytes, size: int | None = None, headers_size: int | None = None) -> bytes:
    prelude = struct.pack(
        ">II",
        16 + len(headers) if size is None else size,
        len(headers) if headers_size is None else headers_size,
    )
    return prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + b"\0\0\0\0"


def test_header_values_of_all_types_are_passed() -> None:
    """Text is kept."""
    values = [b"\0", b"\1", b"\2x", b"\3xx", b"\4" + b"x" * 4, b"\5" + b"x" * 8]
    values += [b"\6\0\3abc", b"\7\0\3abc", b"\10" + b"x" * 8, b"\11" + b"x" * 16]
    headers = b"".join(b"\2h%d" % at + value for at, value in enumerate(values))
    (frame,) = read_frames(_raw(headers + b"\1n\7\0\1v"))
    assert frame.headers == {"h7": "abc", "n": "v"}


@pytest.mark.parametrize(
    "body",
    [
        # a size that is none
        _raw(b"", size=15),
        _raw(b"", size=MAX_FRAME + 1),
        _raw(b"", headers_size=1),
        _raw(b"", headers_size=2**32 - 1),
        # a checksum that is none
        b"\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0",
    ],
)
def test_what_is_no_frame_is_none(body: bytes) -> None:
    """Nothing is read beyond it."""
    assert not is_frame(body)
    assert list(read_frames(body + FRAME)) == []


@pytest.mark.parametrize(
    "headers", [b"\5ab", b"\1a", b"\1a\7", b"\1a\7\0\x09b", b"\1a\x63", b"\xff"]
)
def test_header_fields_that_are_broken_end_the_head(headers: bytes) -> None:
    """The payload is read all the same."""
    assert len(list(read_frames(_raw(headers)))) == 1


# ---- framings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "body", "framing"),
    [
        (b"application/json", b' {"a": 1}', Framing.WHOLE),
        (b"text/event-stream", b'{"error": 1}', Framing.WHOLE),
        (b"application/json", b"\n[{}]", Framing.MEMBERS),
        (b"Text/Event-Stream; charset=utf-8", b"", Framing.EVENTS),
        (b"", b": ping\n\ndata: 1\n\n", Framing.EVENTS),
        (b"", b"\r\nevent: x\r\n", Framing.EVENTS),
        (b"application/json", b"data: {}\n\n", Framing.EVENTS),
        (b"application/vnd.amazon.eventstream", b"", Framing.FRAMES),
        (b"", FRAME, Framing.FRAMES),
        (b"application/x-ndjson", b'{"a": 1}\n', Framing.LINES),
        (b"application/stream+json", b"", Framing.LINES),
        (b"text/html", b"<html>", Framing.WHOLE),
        (b"", b"", Framing.WHOLE),
    ],
)
def test_a_framing_is_found(content_type: bytes, body: bytes, framing: Framing) -> None:
    """In the first bytes before the content type."""
    assert find_framing(content_type, body) is framing


def test_lines_are_pieces() -> None:
    """Blank ones are none, and a cut one is one that does not parse."""
    pieces = read_pieces(Framing.LINES, b'{"a": 1}\n\r\n {"b": 2} \r\n{"c"')
    assert [(piece.data, piece.end) for piece in pieces] == [
        (b'{"a": 1}', 8),
        (b'{"b": 2}', 21),
        (b'{"c"', 27),
    ]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(max_size=4), _json, max_size=3), max_size=4), st.data())
def test_members_of_an_array_are_pieces(
    items: list[dict[str, object]], data: st.DataObject
) -> None:
    """Those that are whole where it was cut, whatever is in them."""
    indent = data.draw(st.sampled_from([None, 1]))
    body = json.dumps(items, indent=indent, ensure_ascii=data.draw(st.booleans())).encode(
        "utf-8", "surrogatepass"
    )
    pieces = list(read_pieces(Framing.MEMBERS, body))
    assert [json.loads(piece.data.decode("utf-8", "surrogatepass")) for piece in pieces] == items
    size = data.draw(st.integers(0, len(body)))
    cut = list(read_pieces(Framing.MEMBERS, body[:size]))
    assert cut == [piece for piece in pieces if piece.end <= size]


def test_strings_that_do_not_end_are_looked_at_once() -> None:
    """Otherwise some megabytes would take hours."""
    for text in (b'\\"', b'"\\', b"\\\\"):
        body = b'[{"a": "' + text * 500_000
        assert [piece.data for piece in read_pieces(Framing.MEMBERS, body)] == []


def test_an_array_is_read_no_deeper_than_json_may_be() -> None:
    """What is too deep would be None; what stands before it is read."""
    assert list(read_pieces(Framing.MEMBERS, b"[" * 1_000_000)) == []
    pieces = read_pieces(Framing.MEMBERS, b'[{"a": 1},' + b"[" * 1000 + b"]" * 1000 + b",{}]")
    assert [piece.data for piece in pieces] == [b'{"a": 1}']
