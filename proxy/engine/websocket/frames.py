"""Frames of a WebSocket: read with every rule of the protocol, written as they were.

Reading gives each frame with the bytes it came in, so that they can be passed on as they are: masks,
compression and fragments stay what they were. Nothing but one message is held, and that is bounded. Frame
headers are read by wsproto; messages are put together here, because fragments may end inside a character and
compressed data may be a thousand times its size.

Source: RFC 6455 sections 5 and 7, RFC 7692 section 7. Test: tests/proxy/engine/websocket/test_frames.py, and the cases
of tests/journeys/test_websocket_cases.py.
"""

import codecs
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from wsproto.extensions import Extension
from wsproto.frame_protocol import (
    CloseReason,
    Frame,
    FrameDecoder,
    FrameProtocol,
    Opcode,
    ParseFailed,
    RsvBits,
)

from ....addons.wire.websocket_handshake import Deflate
from ....tape.exchange import MessageKind

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Longest message, uncompressed."""
MAX_FRAMES = 256 * 1024
"""Most frames of one message."""
MAX_REASON_BYTES = 123

NO_CODE = 1005
"""Stands for a closing frame without a code (RFC 6455 section 7.4.1)."""

_FIN, _RSV1, _MASKED = 0x80, 0x40, 0x80
_TAIL = b"\x00\x00\xff\xff"
"""Left out at the end of each compressed message (RFC 7692 section 7.2.1)."""
_SHARED = frozenset({*range(1000, 1004), *range(1007, 1015)})
"""Codes that stand in closing frames (RFC 6455 section 7.4, and IANA's list); 3000 to 4999 do too."""


class FrameError(Exception):
    """A peer broke the protocol; the connection is to be closed with `code`."""

    def __init__(self, code: int, text: str) -> None:
        """Say what was wrong."""
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Part:
    """A frame that ends no message."""

    raw: bytes
    """As it came."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The last frame of a message, and the message."""

    raw: bytes
    kind: MessageKind
    data: bytes
    frames: tuple[int, ...]
    """Sizes of its frames, empty for one."""


@dataclass(frozen=True, slots=True)
class Ping:
    """A ping."""

    raw: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Pong:
    """A pong."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Closing:
    """A closing frame; nothing is read after it."""

    raw: bytes
    code: int
    reason: str


class FrameReader:
    """Reads what one side sends."""

    def __init__(
        self, *, from_client: bool, deflate: Deflate | None, limit: int = MAX_MESSAGE_BYTES
    ) -> None:
        """Begin after the handshake.

        deflate: the negotiated parameters; None if messages are not compressed.
        limit: longest message, in bytes.
        """
        keeps = deflate is not None and (
            deflate.client_keeps_context if from_client else deflate.server_keeps_context
        )
        inflate = _Inflate(keeps) if deflate is not None else None
        self._message = _Message(inflate, limit)
        self._decoder = FrameDecoder(client=not from_client, extensions=[self._message])
        self._raw = bytearray()
        self.closed = False
        """Whether a closing frame has come."""

    def feed(self, data: bytes) -> Iterator[Part | Whole | Ping | Pong | Closing]:
        """Read on; give the frames that are whole now, one by one.

        Raises: FrameError, after the frames before the broken one; then nothing can be read any more.
        """
        if self.closed:
            return
        self._raw += data
        self._decoder.receive_bytes(data)
        while not self.closed:
            try:
                piece = self._decoder.process_buffer()
                if piece is None:
                    return
                if not piece.frame_finished:
                    continue
                frame = self._frame(piece)
            except ParseFailed as error:
                raise FrameError(int(error.code), str(error)) from error
            yield frame

    def _frame(self, piece: Frame) -> Part | Whole | Ping | Pong | Closing:
        raw = self._take_raw()
        if piece.opcode.iscontrol():
            payload = piece.payload
            assert isinstance(payload, bytes)
            if piece.opcode is Opcode.CLOSE:
                code, reason = _parse_close(payload)
                self.closed = True
                return Closing(raw, code, reason)
            return Ping(raw, payload) if piece.opcode is Opcode.PING else Pong(raw)
        if not piece.message_finished:
            return Part(raw)
        return Whole(raw, *self._message.take())

    def _take_raw(self) -> bytes:
        size = len(self._raw) - len(self._decoder.buffer)
        raw = bytes(self._raw[:size])
        del self._raw[:size]
        return raw


class _Message(Extension):
    """The message that is coming; checks each frame as wsproto reads it, and takes its data out of it."""

    def __init__(self, inflate: "_Inflate | None", limit: int) -> None:
        self._inflate = inflate
        self._limit = limit
        self._control = False
        self._first: tuple[MessageKind, bool] | None = None
        """Kind, and whether it is compressed, of a message whose first header has just come."""
        self._begin()

    def _begin(self) -> None:
        self._kind: MessageKind | None = None
        self._compressed = False
        self._text = codecs.getincrementaldecoder("utf-8")()
        self._data: list[bytes] = []
        self._size = 0
        self._sizes: list[int] = []
        self._before = 0
        """Size of the frames before the one that is coming."""

    def take(self) -> tuple[MessageKind, bytes, tuple[int, ...]]:
        """Give kind, data and frame sizes of a message that has come whole, and begin the next."""
        assert self._kind is not None
        sizes = tuple(self._sizes) if len(self._sizes) > 1 else ()
        taken = self._kind, b"".join(self._data), sizes
        self._begin()
        return taken

    # ---- what wsproto calls --------------------------------------------------------------------

    def offer(self) -> bool | str:
        """Offer nothing: the handshake is over."""
        return False

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> RsvBits:
        """Check the header of a frame; give the reserved bits that may be set.

        Called again for a header that had not come whole: nothing is changed here.
        """
        del proto
        self._control = opcode.iscontrol()
        if self._control:
            return RsvBits(False, False, False)
        first = opcode is not Opcode.CONTINUATION
        if first and self._kind is not None:
            raise ParseFailed("a message begins inside another")
        if not first and self._kind is None:
            raise ParseFailed("a continuation of no message")
        if self._size + payload_length > self._limit or len(self._sizes) >= MAX_FRAMES:
            raise self._too_big()
        self._first = None
        if first:
            kind = MessageKind.TEXT if opcode is Opcode.TEXT else MessageKind.BINARY
            self._first = kind, rsv.rsv1 and self._inflate is not None
        return RsvBits(first and self._inflate is not None, False, False)

    def frame_inbound_payload_data(
        self, proto: FrameDecoder | FrameProtocol, data: bytes
    ) -> bytes | CloseReason:
        """Take what has come of a frame."""
        del proto
        if self._control:
            return data
        if self._first is not None:
            self._kind, self._compressed = self._first
            self._first = None
        self._add(data)
        return b""

    def frame_inbound_complete(
        self, proto: FrameDecoder | FrameProtocol, fin: bool
    ) -> bytes | CloseReason | None:
        """End a frame."""
        del proto
        if self._control:
            return None
        if fin and self._compressed:
            self._add(_TAIL)
            assert self._inflate is not None
            self._inflate.end()
        if fin and self._kind is MessageKind.TEXT:
            self._check_text(b"", final=True)
        self._sizes.append(self._size - self._before)
        self._before = self._size
        return None

    # ---- inside --------------------------------------------------------------------------------

    def _add(self, data: bytes) -> None:
        if self._compressed:
            assert self._inflate is not None
            try:
                data = self._inflate.more(data, self._limit - self._size + 1)
            except zlib.error as error:
                raise ParseFailed(
                    "compressed data that is broken", CloseReason.INVALID_FRAME_PAYLOAD_DATA
                ) from error
        self._size += len(data)
        if self._size > self._limit:
            raise self._too_big()
        if self._kind is MessageKind.TEXT:
            self._check_text(data, final=False)
        self._data.append(data)

    def _check_text(self, data: bytes, *, final: bool) -> None:
        try:
            self._text.decode(data, final)
        except UnicodeDecodeError as error:
            raise ParseFailed(
                f"text that is no UTF-8: {error.reason}", CloseReason.INVALID_FRAME_PAYLOAD_DATA
            ) from error

    def _too_big(self) -> ParseFailed:
        text = f"a message of more than {self._limit} bytes or {MAX_FRAMES} frames"
        return ParseFailed(text, CloseReason.MESSAGE_TOO_BIG)


class _Inflate:
    """Decompresses messages, never more than is asked for."""

    def __init__(self, keeps_context: bool) -> None:
        self._keeps_context = keeps_context
        self._begin()

    def _begin(self) -> None:
        # The largest window reads what was written with any.
        self._decompressor = zlib.decompressobj(-zlib.MAX_WBITS)

    def more(self, data: bytes, most: int) -> bytes:
        """Decompress; what is longer than `most` is cut there.

        Raises: zlib.error.
        """
        pieces: list[bytes] = []
        while data:
            pieces.append(self._decompressor.decompress(data, most))
            most -= len(pieces[-1])
            if most <= 0 or not self._decompressor.eof:
                break
            data = self._decompressor.unused_data  # a block may be marked as the last one
            self._begin()
        return b"".join(pieces)

    def end(self) -> None:
        """End a message."""
        if not self._keeps_context:
            self._begin()


class FrameWriter:
    """Writes what one side is sent."""

    def __init__(self, *, to_server: bool, deflate: Deflate | None = None) -> None:
        """Begin after the handshake; messages are written to clients alone."""
        self._mask = _MASKED if to_server else 0
        # zlib writes no smaller window; a message may always be sent uncompressed.
        self._deflate = deflate if deflate is not None and deflate.server_bits > 8 else None
        self._compressor: zlib._Compress | None = None

    def message(self, kind: MessageKind, data: bytes, sizes: tuple[int, ...] = ()) -> bytes:
        """Write a message in frames of these sizes, in bytes of `data`; none is one frame."""
        if kind is MessageKind.PING:
            return self._frame(Opcode.PING, data)
        opcode = Opcode.TEXT if kind is MessageKind.TEXT else Opcode.BINARY
        frames = _split(data, sizes)
        bits = 0
        if self._deflate is not None and data:
            bits = _RSV1
            frames = self._compress(self._deflate, frames)
        written = []
        for number, frame in enumerate(frames, 1):
            fin = _FIN if number == len(frames) else 0
            written.append(self._frame(opcode, frame, fin | bits))
            opcode, bits = Opcode.CONTINUATION, 0
        return b"".join(written)

    def pong(self, payload: bytes) -> bytes:
        """Write a pong."""
        return self._frame(Opcode.PONG, payload)

    def close(self, code: int, reason: str) -> bytes:
        """Write a closing frame; without a code where there was none."""
        payload = b"" if code == NO_CODE else struct.pack("!H", code) + shorten(reason)
        return self._frame(Opcode.CLOSE, payload)

    def _frame(self, opcode: Opcode, payload: bytes, bits: int = _FIN) -> bytes:
        size = len(payload)
        head = bytes([bits | opcode])
        if size < 126:
            head += bytes([self._mask | size])
        elif size < 1 << 16:
            head += struct.pack("!BH", self._mask | 126, size)
        else:
            head += struct.pack("!BQ", self._mask | 127, size)
        if not self._mask:
            return head + payload
        key = os.urandom(4)
        return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))

    def _compress(self, deflate: Deflate, frames: list[bytes]) -> list[bytes]:
        if self._compressor is None:
            self._compressor = zlib.compressobj(wbits=-deflate.server_bits)
        made = [
            self._compressor.compress(frame) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
            for frame in frames
        ]
        # An empty fragment at the end gives nothing: section 7.2.3.6 says what stands for it.
        made[-1] = made[-1].removesuffix(_TAIL) or b"\0"
        if not deflate.server_keeps_context:
            self._compressor = None
        return made


def shorten(reason: str) -> bytes:
    """Give as much of a reason as a closing frame holds."""
    return reason.encode()[:MAX_REASON_BYTES].decode("utf-8", "ignore").encode()


def _split(data: bytes, sizes: tuple[int, ...]) -> list[bytes]:
    if sum(sizes) != len(data) or not sizes:
        return [data]
    pieces, start = [], 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    return pieces


def _parse_close(payload: bytes) -> tuple[int, str]:
    if not payload:
        return NO_CODE, ""
    if len(payload) == 1:
        raise ParseFailed("a closing frame with half a code")
    (code,) = struct.unpack("!H", payload[:2])
    if code not in _SHARED and not 3000 <= code <= 4999:
        raise ParseFailed(f"a closing frame with the code {code}")
    try:
        return code, payload[2:].decode()
    except UnicodeDecodeError as error:
        raise ParseFailed(
            "a closing frame whose reason is no UTF-8", CloseReason.INVALID_FRAME_PAYLOAD_DATA
        ) from error
