"""Clients that send the requests of receipts_*.yaml over HTTP/1.1, HTTP/2, gRPC and WebSockets, and read as far as a step says."""

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from playhead.tests.support.websocket import BINARY, CLOSE, PING, PONG, TEXT, closing, frame

from .receipt_requests import Asked, Fields
from .receipt_wire import Gone, Wire, basic

_OURS = (("accept", "*/*"), ("user-agent", "cases/1"))


@dataclass
class Got:
    """An answer as far as it was read."""

    status: int = 0
    headers: Fields = ()
    body: bytearray = field(default_factory=bytearray)
    trailers: Fields = ()
    interim: list[tuple[int, Fields]] = field(default_factory=list)
    ended: bool = False


class Http1:
    """One connection over HTTP/1.1, for one request at a time."""

    def __init__(self, wire: Wire, *, run: str | None = None) -> None:
        """Speak over a connection; without a tunnel requests have absolute targets and give credentials."""
        self.wire = wire
        self.got = Got()
        self._run = run
        self._buffer = b""
        self._pieces: AsyncIterator[bytes] | None = None
        self._keeps = True

    @property
    def is_reusable(self) -> bool:
        """Whether a further request may be sent."""
        return self.got.ended and self._keeps and not self.wire.closed

    async def begin(self, asked: Asked, *more: tuple[str, str]) -> None:
        """Send a whole request, with more header fields."""
        self.got = Got()
        self._pieces = self._read_body(asked.method)
        await self.wire.send(head_of(asked, self._run, *more) + _framed(asked))

    async def read(self, size: int | None = None) -> Got:
        """Read until so many bytes of the body are there, or to its end."""
        if not self.got.status:
            await self._read_head()
        assert self._pieces is not None
        while not self.got.ended and (size is None or len(self.got.body) < size):
            piece = await anext(self._pieces, None)
            if piece is None:
                self.got.ended = True
            else:
                self.got.body += piece
        return self.got

    def leave(self, *, reset: bool = False) -> None:
        """Close the connection."""
        self.wire.reset() if reset else self.wire.close()

    async def _read_head(self) -> None:
        while True:
            lines = (await self._until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
            fields = tuple(_field(line) for line in lines[1:])
            if status >= 200 or status == 101:
                break
            self.got.interim.append((status, fields))
        self.got.status, self.got.headers = status, fields

    async def _read_body(self, method: str) -> AsyncIterator[bytes]:
        named = {name.lower(): value for name, value in self.got.headers}
        self._keeps = named.get("connection", "").lower() != "close"
        if method == "HEAD" or self.got.status in (101, 204, 304):
            return
        if "chunked" in named.get("transfer-encoding", ""):
            while size := int((await self._until(b"\r\n")).split(b";")[0], 16):
                async for piece in self._take(size):
                    yield piece
                await self._until(b"\r\n")
            while line := await self._until(b"\r\n"):
                self.got.trailers += (_field(line.decode("latin-1")),)
            return
        if "content-length" in named:
            async for piece in self._take(int(named["content-length"])):
                yield piece
            return
        self._keeps = False
        while piece := self._buffer or await self.wire.recv():
            self._buffer = b""
            yield piece

    async def _take(self, size: int) -> AsyncIterator[bytes]:
        while size:
            if not self._buffer:
                await self._more()
            piece, self._buffer = self._buffer[:size], self._buffer[size:]
            size -= len(piece)
            yield piece

    async def _until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            await self._more()
        found, _, self._buffer = self._buffer.partition(end)
        return found

    async def exactly(self, size: int) -> bytes:
        """Read so many bytes, whatever they are."""
        while len(self._buffer) < size:
            await self._more()
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    async def _more(self) -> None:
        piece = await self.wire.recv()
        if not piece:
            raise Gone("the connection ended")
        self._buffer += piece


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.strip()


def head_of(asked: Asked, run: str | None = None, *more: tuple[str, str]) -> bytes:
    """Give the head of a request over HTTP/1.1, with the framing of its body."""
    fields = list(asked.headers)
    if not asked.has("host"):
        fields.insert(0, ("Host", asked.authority))
    fields += [(name, value) for name, value in _OURS if not asked.has(name)]
    if asked.trailers is not None:
        fields.append(("transfer-encoding", "chunked"))
    elif asked.body is not None or asked.method.upper() in ("POST", "PUT", "PATCH"):
        own = [("content-length", str(len(asked.body or b"")))]
        fields += own if not asked.has("content-length") else []
    fields += more
    if run:
        fields.append(("Proxy-Authorization", basic(run)))
    target = asked.target if run is None else asked.url
    lines = [f"{asked.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _framed(asked: Asked) -> bytes:
    body = asked.body or b""
    if asked.trailers is None:
        return body
    chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    told = "".join(f"{name}: {value}\r\n" for name, value in asked.trailers)
    return chunk + b"0\r\n" + told.encode() + b"\r\n"


class Http2:
    """One connection over HTTP/2, for one request at a time."""

    def __init__(self, wire: Wire) -> None:
        """Speak over a connection."""
        self.wire = wire
        self.got = Got()
        self._connection = H2Connection(
            H2Configuration(
                header_encoding="utf-8",
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._connection.initiate_connection()
        self._stream = 0
        self._ended = True
        self._gone = False

    @property
    def is_reusable(self) -> bool:
        """Whether a further request may be sent."""
        return self.got.ended and self._ended and not self._gone and not self.wire.closed

    async def begin(self, asked: Asked) -> None:
        """Send a whole request."""
        body = asked.body or b""
        fields = [(name.lower(), value) for name, value in asked.headers]
        fields += [(name, value) for name, value in _OURS if not asked.has(name)]
        if asked.body is not None and asked.trailers is None:
            fields.append(("content-length", str(len(body))))
        ends = asked.body is None and not asked.trailers
        await self.open(asked, fields, end=ends)
        if body:
            self._connection.send_data(self._stream, body, end_stream=not asked.trailers)
        elif not ends and not asked.trailers:
            self._connection.end_stream(self._stream)
        if asked.trailers:
            self._connection.send_headers(self._stream, list(asked.trailers), end_stream=True)
        self._ended = True
        await self._flush()

    async def open(self, asked: Asked, fields: list[tuple[str, Any]], *, end: bool = False) -> None:
        """Open a stream with a head."""
        self.got = Got()
        self._stream = self._connection.get_next_available_stream_id()
        host = next((value for name, value in fields if name == "host"), asked.authority)
        fields = [pair for pair in fields if pair[0] != "host"]
        named = [(":method", asked.method), (":scheme", asked.scheme), (":authority", host)]
        self._connection.send_headers(
            self._stream, [*named, (":path", asked.target), *fields], end_stream=end
        )
        self._ended = end
        await self._flush()

    async def send(self, data: bytes) -> None:
        """Send a piece of the body."""
        self._connection.send_data(self._stream, data)
        await self._flush()

    async def end(self) -> None:
        """Say that the body has ended."""
        self._connection.end_stream(self._stream)
        self._ended = True
        await self._flush()

    async def read(self, size: int | None = None) -> Got:
        """Read until so many bytes of the body are there, or to its end."""
        while not self.got.ended and (
            not self.got.status or size is None or len(self.got.body) < size
        ):
            data = await self.wire.recv()
            if not data:
                self._gone = True
                raise Gone("the connection ended")
            for event in self._connection.receive_data(data):
                self._take(event)
            await self._flush()
        return self.got

    def _take(self, event: Any) -> None:
        match event:
            case ConnectionTerminated():
                self._gone = True
            case _ if getattr(event, "stream_id", None) != self._stream:
                return
            case InformationalResponseReceived():
                status, fields = _split(event.headers)
                self.got.interim.append((status, fields))
            case ResponseReceived():
                self.got.status, self.got.headers = _split(event.headers)
            case DataReceived():
                self.got.body += event.data
                if event.flow_controlled_length:
                    self._connection.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
            case TrailersReceived():
                self.got.trailers = tuple((str(name), str(value)) for name, value in event.headers)
            case StreamEnded():
                self.got.ended = True
            case StreamReset():
                raise Gone(f"the stream was reset: {event.error_code}")

    async def cancel(self) -> None:
        """Send RST_STREAM."""
        self._connection.reset_stream(self._stream, ErrorCodes.CANCEL)
        self._ended = True
        await self._flush()

    async def _flush(self) -> None:
        data = self._connection.data_to_send()
        if data:
            await self.wire.send(data)


def _split(headers: Any) -> tuple[int, Fields]:
    pairs = [(str(name), str(value)) for name, value in headers]
    status = next(int(value) for name, value in pairs if name == ":status")
    return status, tuple((name, value) for name, value in pairs if name != ":status")


def message_of(text: str) -> bytes:
    """Give a protobuf message whose field 1 is a text, behind its length as gRPC writes it."""
    data = text.encode()
    made = b"\x0a" + bytes([len(data)]) + data if data else b""
    return b"\0" + len(made).to_bytes(4, "big") + made


def messages_in(data: bytes) -> list[bytes]:
    """Give the whole messages at the beginning of some bytes of gRPC."""
    found = []
    while len(data) >= 5 and len(data) >= 5 + (size := int.from_bytes(data[1:5], "big")):
        found.append(data[5 : 5 + size])
        data = data[5 + size :]
    return found


class Grpc:
    """One call of gRPC, step by step."""

    def __init__(self, client: Http2, asked: Asked, metadata: list[list[str]]) -> None:
        """Call over a connection."""
        self.client, self._asked = client, asked
        # A binary value goes without its padding, as gRPC's libraries write it.
        self._fields = [
            (name, value.rstrip("=") if name.endswith("-bin") else value)
            for name, value in metadata
        ]
        self._heard = 0

    async def open(self) -> None:
        """Open the stream."""
        named = {name for name, _ in self._fields}
        more = [("content-type", "application/grpc"), ("te", "trailers"), _OURS[1]]
        fields = [*(pair for pair in more if pair[0] not in named), *self._fields]
        await self.client.open(self._asked, fields)

    async def do(self, step: str) -> None:
        """Do one step."""
        word, _, rest = step.partition(" ")
        match word:
            case "send":
                await self.client.send(message_of(rest))
            case "get":
                self._heard += int(rest)
                while len(messages_in(bytes(self.client.got.body))) < self._heard:
                    if self.client.got.ended:
                        raise Gone("the call ended before that message")
                    await self.client.read(len(self.client.got.body) + 1)
            case "end":
                await self.client.end()
            case "rest":
                await self.client.read()
            case "cancel":
                await self.client.cancel()


class WebSocket:
    """One WebSocket, step by step."""

    def __init__(self, client: Http1) -> None:
        """Speak over a connection."""
        self.client = client
        self.heard: list[tuple[int, bytes]] = []

    async def open(self, asked: Asked, protocols: list[str]) -> None:
        """Do the handshake."""
        more = [("Upgrade", "websocket"), ("Connection", "Upgrade")]
        more += [("Sec-WebSocket-Version", "13")]
        more += [("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode())]
        if protocols:
            more.append(("Sec-WebSocket-Protocol", ", ".join(protocols)))
        await self.client.begin(asked, *more)
        await self.client.read()
        if self.client.got.status != 101:
            raise Gone(f"the handshake was answered {self.client.got.status}")

    async def do(self, step: str) -> None:
        """Do one step."""
        word, _, rest = step.partition(" ")
        send = self.client.wire.send
        match word:
            case "send":
                await send(frame(TEXT, rest.encode()))
            case "binary":
                await send(frame(BINARY, base64.b64decode(rest)))
            case "ping":
                await send(frame(PING, rest.encode()))
            case "get":
                for _ in range(int(rest)):
                    await self._hear()
            case "close":
                code, _, reason = rest.partition(" ")
                await send(closing(int(code), reason))
                with contextlib.suppress(Gone):
                    while await self._hear():
                        pass
                self.client.wire.close()
            case "drop":
                self.client.wire.close()

    async def _hear(self) -> bool:
        """Read a message, and answer pings; False for the end."""
        while True:
            first, second = await self.client.exactly(2)
            size = second & 0x7F
            if size == 126:
                size = int.from_bytes(await self.client.exactly(2), "big")
            payload = await self.client.exactly(size)
            opcode = first & 15
            if opcode == PING:
                await self.client.wire.send(frame(PONG, payload))
            elif opcode == CLOSE:
                self.heard.append((opcode, payload))
                return False
            elif opcode != PONG:
                self.heard.append((opcode, payload))
                return True


async def patiently(work: Any, timeout_s: float) -> Any:
    """Wait for something, but not for ever."""
    async with asyncio.timeout(timeout_s):
        return await work
