"""Frames: what is read is what was written, in whatever pieces it comes, and nothing grows past its limit."""

import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Message, TextMessage
from wsproto.extensions import PerMessageDeflate

from playhead.addons.wire.websocket_handshake import Deflate
from playhead.proxy.engine.websocket import frames
from playhead.proxy.engine.websocket.frames import (
    Closing,
    FrameError,
    FrameReader,
    FrameWriter,
    Part,
    Ping,
    Pong,
    Whole,
    shorten,
)
from playhead.tape.exchange import MessageKind
from playhead.tests.support.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    TEXT,
    closing,
    frame,
)

KINDS = {TEXT: MessageKind.TEXT, BINARY: MessageKind.BINARY}
_deflates = st.none() | st.builds(Deflate, st.booleans(), st.booleans(), st.integers(8, 15))


@st.composite
def _messages(draw: st.DrawFn) -> tuple[MessageKind, bytes, tuple[int, ...]]:
    kind = draw(st.sampled_from(list(KINDS.values())))
    text = draw(st.text(max_size=60)) * draw(st.sampled_from([1, 1, 500]))
    data = text.encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4)))
    sizes = tuple(end - start for start, end in pairwise([0, *cuts, len(data)]))
    return kind, data, sizes if len(sizes) > 1 else ()


@settings(deadline=None)
@given(st.lists(_messages(), max_size=5), _deflates, st.integers(1, 4000))
def test_what_is_written_is_read(
    messages: list[tuple[MessageKind, bytes, tuple[int, ...]]], deflate: Deflate | None, step: int
) -> None:
    """Kind, bytes and frames, compressed or not, in pieces of any size; and the bytes themselves."""
    writer = FrameWriter(to_server=False, deflate=deflate)
    reader = FrameReader(from_client=False, deflate=deflate)
    wire = b"".join(writer.message(*message) for message in messages) + writer.close(1000, "bye")
    read = [
        found
        for start in range(0, len(wire), step)
        for found in reader.feed(wire[start : start + step])
    ]
    whole = [found for found in read if isinstance(found, Whole)]
    assert [(found.kind, found.data) for found in whole] == [message[:2] for message in messages]
    if deflate is None:
        assert [found.frames for found in whole] == [message[2] for message in messages]
    assert b"".join(found.raw for found in read) == wire
    assert isinstance(read[-1], Closing)
    assert (read[-1].code, read[-1].reason) == (1000, "bye")
    assert reader.closed


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=300), max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(9, 15),
)
def test_another_implementation_reads_and_writes_the_same(
    messages: list[bytes], keeps: bool, compressed: bool, bits: int
) -> None:
    """wsproto as the client, with compression of every kind."""
    deflate = Deflate(keeps, keeps, bits) if compressed else None
    extension = PerMessageDeflate(not keeps, 15, not keeps, bits)
    if compressed:
        extension.finalize("permessage-deflate")
    peer = Connection(ConnectionType.CLIENT, [extension] if compressed else [])
    writer = FrameWriter(to_server=False, deflate=deflate)
    reader = FrameReader(from_client=True, deflate=deflate)
    for data in messages:
        peer.receive_data(writer.message(MessageKind.BINARY, data))
        got = b""
        for event in peer.events():
            assert isinstance(event, Message)
            got += bytes(event.data)
        assert got == data
        (found,) = reader.feed(peer.send(BytesMessage(data=data)))
        assert isinstance(found, Whole)
        assert found.data == data
    (found,) = reader.feed(peer.send(TextMessage(data="é€")))
    assert isinstance(found, Whole)
    assert found.data == "é€".encode()
    (found,) = reader.feed(peer.send(CloseConnection(4001, "enough")))
    assert isinstance(found, Closing)
    assert (found.code, found.reason) == (4001, "enough")


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7])
def test_a_header_may_come_in_pieces(step: int) -> None:
    """With its mask; every frame is whole once, wherever the cuts are."""
    wire = (
        frame(TEXT, b"a", fin=False) + frame(PING, b"p") + frame(CONTINUATION, b"b" * 200)
        + frame(BINARY, b"", fin=False) + frame(CONTINUATION) + frame(TEXT, b"c" * 70_000) + closing()
    )  # fmt: skip
    reader = FrameReader(from_client=True, deflate=None)
    read = [
        found
        for start in range(0, len(wire), step)
        for found in reader.feed(wire[start : start + step])
    ]
    assert [type(found) for found in read] == [Part, Ping, Whole, Part, Whole, Whole, Closing]
    assert [len(found.data) for found in read if isinstance(found, Whole)] == [201, 0, 70_000]
    assert b"".join(found.raw for found in read) == wire


def _read(*data: bytes, deflate: Deflate | None = None, limit: int = 1000) -> list[object]:
    reader = FrameReader(from_client=True, deflate=deflate, limit=limit)
    return [found for piece in data for found in reader.feed(piece)]


def test_control_frames_come_between_fragments() -> None:
    """In the order of the wire."""
    got = _read(
        frame(TEXT, b"a", fin=False) + frame(PING, b"p") + frame(10) + frame(CONTINUATION, b"b")
    )
    assert [type(found) for found in got] == [Part, Ping, Pong, Whole]
    assert got[-1] == Whole(got[-1].raw, MessageKind.TEXT, b"ab", (1, 1))  # type: ignore[attr-defined]


def test_nothing_is_read_after_a_closing_frame() -> None:
    """Whatever follows is no part of the conversation."""
    (only,) = _read(closing(1000) + b"\xff\xff\xff", frame(TEXT, b"a"))
    assert isinstance(only, Closing)


def test_a_closing_frame_may_hold_nothing() -> None:
    """Which is written so again."""
    (only,) = _read(closing(None))
    assert isinstance(only, Closing)
    assert only.code == 1005
    writer = FrameWriter(to_server=False)
    assert writer.close(only.code, only.reason) == frame(CLOSE, masked=False)


BROKEN = {
    # What a client sends, and the code that it is told
    "reserved opcode": (frame(3), 1002),
    "reserved bit": (frame(TEXT, rsv=4), 1002),
    "not masked": (frame(TEXT, b"a", masked=False), 1002),
    "fragmented ping": (frame(PING, fin=False), 1002),
    "long ping": (frame(PING, bytes(126)), 1002),
    "nothing to continue": (frame(CONTINUATION, b"a"), 1002),
    "message inside another": (frame(TEXT, b"a", fin=False) + frame(BINARY), 1002),
    "no UTF-8": (frame(TEXT, b"\xff"), 1007),
    "half a character": (frame(TEXT, b"\xc3"), 1007),
    "half a code": (frame(CLOSE, b"\x03"), 1002),
    "code that never stands there": (closing(1005), 1002),
    "code of nobody": (closing(2999), 1002),
    "reason that is no UTF-8": (closing(1000, b"\xff"), 1007),
    "too long by its header": (frame(BINARY, bytes(1001))[:10], 1009),
    "too long in fragments": (
        frame(BINARY, bytes(600), fin=False) + frame(CONTINUATION, bytes(600)),
        1009,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_the_protocol_is_told_by_its_code(name: str) -> None:
    """RFC 6455 section 7.4.1; what came before it is given all the same."""
    data, code = BROKEN[name]
    reader = FrameReader(from_client=True, deflate=None, limit=1000)
    read: list[object] = []
    with pytest.raises(FrameError) as caught:
        read.extend(reader.feed(frame(BINARY, b"sound") + data))
    assert caught.value.code == code
    assert str(caught.value).isprintable()
    assert len(shorten(str(caught.value))) <= 123


def test_a_broken_character_is_noticed_at_once() -> None:
    """Not only when its frame has come whole."""
    reader = FrameReader(from_client=True, deflate=None)
    with pytest.raises(FrameError, match="UTF-8"):
        list(reader.feed(frame(TEXT, b"a\xff" + bytes(5000))[:200]))


def _compressed(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-15)
    return (made.compress(data) + made.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\0\0\xff\xff")


def test_compressed_data_is_not_unpacked_past_the_limit() -> None:
    """A thousand times its size would be."""
    bomb = _compressed(bytes(100_000_000))
    assert len(bomb) < 200_000
    with pytest.raises(FrameError) as caught:
        _read(frame(BINARY, bomb, rsv=4), deflate=Deflate(), limit=1_000_000)
    assert caught.value.code == 1009
    (found,) = _read(frame(BINARY, _compressed(bytes(1000)), rsv=4), deflate=Deflate(), limit=1000)
    assert isinstance(found, Whole)
    assert len(found.data) == 1000


def test_compressed_data_may_end_with_a_last_block() -> None:
    """Some compressors mark it; RFC 7692 section 7.2.3.4."""
    made = zlib.compressobj(wbits=-15)
    marked = made.compress(b"one") + made.flush(zlib.Z_FINISH) + b"\0"
    got = _read(
        frame(BINARY, marked, rsv=4), frame(BINARY, _compressed(b"two"), rsv=4), deflate=Deflate()
    )
    assert [found.data for found in got] == [b"one", b"two"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(BINARY, b"\xff\xff\xff\xff", rsv=4), 1007),
        (frame(TEXT, _compressed(b"\xff"), rsv=4), 1007),
        (frame(TEXT, b"a", fin=False) + frame(CONTINUATION, b"", rsv=4), 1002),
        (frame(PING, b"", rsv=4), 1002),
    ],
    ids=["no data", "no text", "in a continuation", "in a ping"],  # masks are random
)
def test_broken_compression_is_told_by_its_code(data: bytes, code: int) -> None:
    """Data that is none, text that is none, and bits where none may be."""
    with pytest.raises(FrameError) as caught:
        _read(data, deflate=Deflate())
    assert caught.value.code == code


def test_a_message_has_no_end_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones cost memory too."""
    monkeypatch.setattr(frames, "MAX_FRAMES", 10)
    with pytest.raises(FrameError) as caught:
        _read(frame(TEXT, fin=False), *[frame(CONTINUATION, fin=False)] * 10)
    assert caught.value.code == 1009


def test_a_reason_is_cut_between_characters() -> None:
    """A closing frame holds 123 bytes of it."""
    assert shorten("€" * 60) == ("€" * 41).encode()
