"""HTTP/1.1 and HTTP/2 as the measurements of the wire speak them, from either end of a connection.

1. A *piece* is what was sent at once: a chunk of HTTP/1.1, a DATA frame of HTTP/2. The other end is told where
   each ends.
2. Nothing is collected here: data goes to its exchange as it is read, and who sends waits while the other
   end takes nothing.
3. Only what the measurements need: no trailers, no interim answers, one exchange at a time over HTTP/1.1.
   Anything else ends the connection, and its exchanges are told why.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

Fields = list[tuple[bytes, bytes]]

WIDE_WINDOW = 16 * 1024 * 1024
"""Bytes that an HTTP/2 end lets the other send unasked; httpx and curl allow about as much."""
_LEAST_WINDOW = 65_535
"""That of a new connection, which cannot be made smaller (RFC 9113 section 6.9.2)."""
_MOST_HEAD = 65_536
_PART_BYTES = 65_536
"""Most that is handed on at once; the allocator gives larger ones back to the kernel each time."""
_SOON_S = 0.001


class Exchange:
    """One request and its answer, at one end; what comes in is told by the methods, which do nothing here."""

    number = 0
    """Of its HTTP/2 stream."""

    def head(self, line: "Line", first: bytes, fields: dict[bytes, bytes]) -> None:
        """Take a head: `first` is the target of a request or the status of an answer; names are lower case."""

    def data(self, data: bytes) -> None:
        """Take some of the body; say so with `Line.took`."""

    def piece(self) -> None:
        """Note that a piece ends here; bodies over HTTP/1.1 that have a length have none."""

    def end(self) -> None:
        """Note that the message is complete."""

    def lost(self, why: str) -> None:
        """Note that nothing more comes; may be called after the end."""


class Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, answering: Callable[[], Exchange] | None = None) -> None:
        """answering: makes the exchange of each request that comes; None for the end that asks."""
        self._answering = answering
        self._loop = asyncio.get_running_loop()
        self._full = False
        self._gone = ""
        self._waiting: list[asyncio.Future[None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)
        self.begin()

    def pause_writing(self) -> None:
        """Note that the kernel takes no more."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all exchanges."""
        self._gone = f"the connection was closed: {exc}" if exc else "the connection was closed"
        self.wake()
        self.tell_lost(self._gone)

    def close(self) -> None:
        """Close it."""
        self.transport.close()

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait for room, of the kernel's and the other end's.

        Raises: ConnectionError.
        """
        while self._full or not ready():
            if self._gone:
                break
            self._waiting.append(self._loop.create_future())
            await self._waiting[-1]
        if self._gone:
            raise ConnectionError(self._gone)

    def wake(self) -> None:
        """Let those that wait look again."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def fail(self, why: str) -> None:
        """End the connection over what the other end sent."""
        self._gone = why
        self.tell_lost(why)
        self.transport.abort()

    # What differs between the protocols.

    def begin(self) -> None:
        """Send what comes before the first exchange."""

    def tell_lost(self, why: str) -> None:
        """Tell all exchanges that nothing more comes."""
        raise NotImplementedError

    def ask(
        self, exchange: Exchange, method: bytes, target: bytes, fields: Fields, size: int | None
    ) -> None:
        """Send a request's head; `size` is None where the body's length is not announced, 0 for no body."""
        raise NotImplementedError

    def answer(self, exchange: Exchange, fields: Fields, size: int | None) -> None:
        """Send the head of an answer with status 200."""
        raise NotImplementedError

    async def send(self, exchange: Exchange, data: bytes, *, last: bool) -> None:
        """Send a piece.

        Raises: ConnectionError.
        """
        raise NotImplementedError

    def took(self, exchange: Exchange, count: int, later_s: float = 0.0) -> None:
        """Let the other end send as many bytes more, now or later."""
        raise NotImplementedError


class Http1(Line):
    """HTTP/1.1."""

    def __init__(self, answering: Callable[[], Exchange] | None = None) -> None:
        super().__init__(answering)
        self._buffer = bytearray()
        self._exchange: Exchange | None = None
        self._read: Callable[[], bool] = self._read_head
        self._left = 0
        """Bytes of the body, or of the chunk, that are still to come."""
        self._chunked_in = self._chunked_out = False
        self._read_at = 0.0
        """When to read on, on the loop's clock."""
        self._timer: asyncio.TimerHandle | None = None

    def tell_lost(self, why: str) -> None:
        """Tell the exchange."""
        if self._exchange:
            self._exchange.lost(why)

    def ask(
        self, exchange: Exchange, method: bytes, target: bytes, fields: Fields, size: int | None
    ) -> None:
        """Send a request's head."""
        self._exchange = exchange
        self._send_head(b"%b %b HTTP/1.1" % (method, target), fields, size)

    def answer(self, exchange: Exchange, fields: Fields, size: int | None) -> None:
        """Send the head of an answer."""
        self._send_head(b"HTTP/1.1 200 OK", fields, size)

    def _send_head(self, first: bytes, fields: Fields, size: int | None) -> None:
        self._chunked_out = size is None
        if size is None:
            fields = [*fields, (b"Transfer-Encoding", b"chunked")]
        elif size:
            fields = [*fields, (b"Content-Length", b"%d" % size)]
        lines = [first, *(b"%b: %b" % pair for pair in fields), b"", b""]
        self.transport.write(b"\r\n".join(lines))

    async def send(self, exchange: Exchange, data: bytes, *, last: bool) -> None:
        """Send a chunk, or as much of a body that has a length."""
        if self._chunked_out:
            data = b"%x\r\n%b\r\n" % (len(data), data) + (b"0\r\n\r\n" if last else b"")
        if self._gone:
            raise ConnectionError(self._gone)
        self.transport.write(data)
        await self.until(lambda: True)

    def took(self, exchange: Exchange, count: int, later_s: float = 0.0) -> None:
        """Read on, now or later."""
        self._read_at = self._loop.time() + later_s
        if later_s > 0 and not self._timer:
            self.transport.pause_reading()
            self._timer = self._loop.call_at(self._read_at, self._read_on)

    def _read_on(self) -> None:
        self._timer = None
        if (
            self._loop.time() + _SOON_S < self._read_at
        ):  # more of what had been read was looked at since
            self._timer = self._loop.call_at(self._read_at, self._read_on)
        elif not self.transport.is_closing():
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Read as far as it goes."""
        self._buffer += data
        while self._buffer and self._read():
            pass

    def _read_head(self) -> bool:
        stop = self._buffer.find(b"\r\n\r\n")
        if stop < 0:
            if len(self._buffer) > _MOST_HEAD:
                self.fail("a head without an end")
            return False
        first, *lines = bytes(self._buffer[:stop]).split(b"\r\n")
        del self._buffer[: stop + 4]
        pairs = (one.partition(b":") for one in lines)
        fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if self._answering:
            self._exchange = self._answering()
        if self._exchange is None or first.count(b" ") < 2:
            self.fail(f"unexpected: {first[:200]!r}")
            return False
        self._exchange.head(self, first.split(b" ")[1], fields)
        self._chunked_in = fields.get(b"transfer-encoding", b"").lower() == b"chunked"
        self._left = int(fields.get(b"content-length", 0))
        if self._chunked_in:
            self._read = self._read_size
        elif self._left:
            self._read = self._read_body
        else:
            self._end()
        return True

    def _read_size(self) -> bool:
        stop = self._buffer.find(b"\r\n")
        if stop < 0:
            return False
        self._left = int(bytes(self._buffer[:stop]).partition(b";")[0], 16)
        if not self._left:
            if len(self._buffer) < stop + 4:
                return False
            del self._buffer[: stop + 4]
            self._end()
            return True
        del self._buffer[: stop + 2]
        self._read = self._read_body
        return True

    def _read_body(self) -> bool:
        assert self._exchange
        if self._left:
            data = bytes(self._buffer[: min(self._left, _PART_BYTES)])
            del self._buffer[: len(data)]
            self._left -= len(data)
            self._exchange.data(data)
        if self._left:
            return bool(self._buffer)
        if not self._chunked_in:
            self._end()
        elif len(self._buffer) < 2:
            return False
        else:
            del self._buffer[:2]
            self._read = self._read_size
            self._exchange.piece()
        return True

    def _end(self) -> None:
        assert self._exchange
        exchange, self._read = self._exchange, self._read_head
        if not self._answering:
            self._exchange = None
        exchange.end()


class Http2(Line):
    """HTTP/2."""

    def __init__(
        self, answering: Callable[[], Exchange] | None = None, window: int = WIDE_WINDOW
    ) -> None:
        """window: bytes that the other end may send unasked, of each stream."""
        super().__init__(answering)
        self._exchanges: dict[int, Exchange] = {}
        self._authority = b""
        client = answering is None
        self._h2 = H2Connection(
            H2Configuration(
                client_side=client,
                header_encoding=None,
                validate_inbound_headers=False,
                validate_outbound_headers=False,
            )
        )
        values = {
            SettingCodes.INITIAL_WINDOW_SIZE: window,
            SettingCodes.MAX_CONCURRENT_STREAMS: 100,
        }
        self._h2.local_settings = Settings(client=client, initial_values=values)
        self._extra = max(0, window - _LEAST_WINDOW)

    def begin(self) -> None:
        """Send the preface and the settings."""
        self._h2.initiate_connection()
        if self._extra:
            self._h2.increment_flow_control_window(self._extra)
        self._flush()

    def tell_lost(self, why: str) -> None:
        """Tell all exchanges."""
        exchanges, self._exchanges = self._exchanges, {}
        for one in exchanges.values():
            one.lost(why)

    def ask(
        self, exchange: Exchange, method: bytes, target: bytes, fields: Fields, size: int | None
    ) -> None:
        """Send a request's HEADERS; the field `Host` becomes `:authority`."""
        authority = next(value for name, value in fields if name.lower() == b"host")
        fields = [(name, value) for name, value in fields if name.lower() != b"host"]
        exchange.number = self._h2.get_next_available_stream_id()
        self._exchanges[exchange.number] = exchange
        pseudo = [
            (b":method", method),
            (b":scheme", b"https"),
            (b":authority", authority),
            (b":path", target),
        ]
        self._send_head(exchange, pseudo, fields, size)

    def answer(self, exchange: Exchange, fields: Fields, size: int | None) -> None:
        """Send an answer's HEADERS."""
        self._send_head(exchange, [(b":status", b"200")], fields, size)

    def _send_head(
        self, exchange: Exchange, pseudo: Fields, fields: Fields, size: int | None
    ) -> None:
        block = [*pseudo, *((name.lower(), value) for name, value in fields)]
        if size:
            block.append((b"content-length", b"%d" % size))
        self._h2.send_headers(exchange.number, block, end_stream=size == 0)
        self._flush()

    async def send(self, exchange: Exchange, data: bytes, *, last: bool) -> None:
        """Send a DATA frame, or several where a piece is larger than one or than the window."""
        at = 0
        while at < len(data):
            await self.until(lambda: self._room(exchange) > 0)
            part = data[at : at + self._room(exchange)]
            at += len(part)
            self._h2.send_data(exchange.number, part, end_stream=last and at == len(data))
            self._flush()
        if last and self._answering:
            del self._exchanges[exchange.number]

    def _room(self, exchange: Exchange) -> int:
        if exchange.number not in self._exchanges:
            raise ConnectionError("the stream was reset")
        window: int = self._h2.local_flow_control_window(exchange.number)
        return min(window, self._h2.max_outbound_frame_size)

    def took(self, exchange: Exchange, count: int, later_s: float = 0.0) -> None:
        """Widen the windows, now or later."""
        if later_s > 0:
            self._loop.call_later(later_s, self.took, exchange, count)
        elif not self.transport.is_closing():
            self._h2.acknowledge_received_data(count, exchange.number)
            self._flush()

    def data_received(self, data: bytes) -> None:
        """Hand on what is in it."""
        try:
            received = self._h2.receive_data(data)
        except ProtocolError as error:
            self.fail(f"HTTP/2: {error}")
            return
        for event in received:
            match event:
                case RequestReceived():
                    assert self._answering
                    exchange = self._exchanges[event.stream_id] = self._answering()
                    exchange.number = event.stream_id
                    fields = dict(event.headers)
                    exchange.head(self, fields[b":path"], fields)
                case ResponseReceived():
                    fields = dict(event.headers)
                    self._exchanges[event.stream_id].head(self, fields[b":status"], fields)
                case DataReceived():
                    exchange = self._exchanges[event.stream_id]
                    if event.data:  # the last one of a stream may be empty
                        exchange.data(event.data)
                        exchange.piece()
                case StreamEnded():
                    exchange = self._exchanges[event.stream_id]
                    if not self._answering:
                        del self._exchanges[event.stream_id]
                    exchange.end()
                case StreamReset():
                    lost = self._exchanges.pop(event.stream_id, None)
                    if lost:
                        lost.lost(f"the stream was reset: {event.error_code!r}")
                case ConnectionTerminated():
                    self.tell_lost(f"GOAWAY: {event.error_code!r}")
                case _:
                    pass
        self.wake()
        self._flush()

    def _flush(self) -> None:
        if data := self._h2.data_to_send():
            self.transport.write(data)
