"""Servers on loopback that answer the requests of receipts_*.yaml while they are recorded, and note what comes in a replay."""

import asyncio
import base64
import contextlib
import hashlib
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import H2Error

from playhead.tests.support.websocket import BINARY, CLOSE, PING, TEXT, closing, frame, read_frame

from .receipt_clients import message_of, messages_in
from .receipt_requests import Answer, Asked, read_answer

PLAIN = (80, 11434, 5432)
TLS = (443, 8443, 9443, 9200, 6443, 8200)
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PIECE = 64 << 10


@dataclass(eq=False)
class Expected:
    """A request that a client is about to send while it is recorded."""

    asked: Asked
    number: int
    answer: Answer
    serve: str = ""
    """Of gRPC and WebSockets: how it is answered."""
    gap_s: float = 0.0
    met: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def is_met_by(self, method: str, target: str, body: bytes | None) -> bool:
        """Say whether a request that came is this one; None is a body that is not known yet."""
        asked = self.asked
        mine = asked.body or b""
        return (asked.method, asked.target) == (method, target) and body in (None, mine)


class Stage:
    """What one recording expects; nothing in a replay."""

    def __init__(self) -> None:
        """Expect nothing."""
        self.expected: list[Expected] = []
        self.unexpected: list[str] = []
        self._count = 0

    def begin(self) -> None:
        """Begin a recording or a replay."""
        self.expected, self.unexpected, self._count = [], [], 0

    def expect(self, asked: Asked, serve: str = "", gap_s: float = 0.0) -> Expected:
        """Expect a request."""
        self._count += 1
        answer = read_answer(asked, self._count)
        found = Expected(asked, self._count, answer, serve, gap_s)
        self.expected.append(found)
        return found

    def meet(self, method: str, target: str, body: bytes | None) -> Expected | None:
        """Find which request has come."""
        for one in self.expected:
            if not one.met.is_set() and one.is_met_by(method, target, body):
                one.met.set()
                return one
        self.unexpected.append(f"{method} {target}")
        return None


class Servers:
    """HTTP/1.1, HTTP/2, gRPC and WebSockets at the ports of the cases. Use as a context manager, in a network of one's own."""

    def __init__(self, chain: Path, stage: Stage) -> None:
        """Prepare.

        chain: PEM of key and certificate.
        """
        self._stage = stage
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(chain)
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        self._servers: list[asyncio.Server] = []
        self._talking: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Servers":
        for port in (*PLAIN, *TLS):
            context = self._context if port in TLS else None
            self._servers.append(
                await asyncio.start_server(self._talk, "127.0.0.1", port, ssl=context)
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in self._talking:
            task.cancel()
        await asyncio.gather(*self._talking, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talking.add(task)
        tls = writer.get_extra_info("ssl_object")
        over_h2 = tls is not None and tls.selected_alpn_protocol() == "h2"
        speaker = _Http2 if over_h2 else _Http1
        gone = (OSError, EOFError, ValueError, asyncio.IncompleteReadError, H2Error)
        try:
            with contextlib.suppress(*gone, asyncio.CancelledError):
                await speaker(self._stage, reader, writer).serve()
        finally:
            self._talking.discard(task)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()


class _Http1:
    def __init__(
        self, stage: Stage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._stage, self._reader, self._writer = stage, reader, writer

    async def serve(self) -> None:
        while True:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("utf-8", "replace")
            line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            method, target, _ = line.split(" ", 2)
            named = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            expected = self._stage.meet(method, target, await self._read_body(named))
            if expected is None:
                self._writer.write(b"HTTP/1.1 500 Nobody\r\ncontent-length: 0\r\n\r\n")
            elif named.get("upgrade", "").lower() == "websocket":
                await self._socket(expected, named)
                return
            else:
                await self._answer(expected, method)

    async def _read_body(self, named: dict[str, str]) -> bytes:
        if "chunked" not in named.get("transfer-encoding", ""):
            return await self._reader.readexactly(int(named.get("content-length") or 0))
        body = b""
        while size := int((await self._reader.readline()).split(b";")[0], 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        while (await self._reader.readline()).strip():
            pass
        return body

    async def _answer(self, expected: Expected, method: str) -> None:
        answer, write = expected.answer, self._writer.write
        for status, fields in answer.interim:
            write(_head(status, fields))
        if answer.hold == 0:
            await expected.released.wait()
        bodiless = method == "HEAD" or answer.status in (204, 304)
        fields = answer.headers
        if answer.whole:
            size = sum(map(len, answer.pieces))
            fields += (("content-length", str(size)),) if answer.status not in (204, 304) else ()
        else:
            fields += (("transfer-encoding", "chunked"),)
        write(_head(answer.status, fields))
        if bodiless:
            return
        for place, piece in enumerate(answer.pieces):
            await _wait(expected, place)
            write(piece if answer.whole else b"%x\r\n%s\r\n" % (len(piece), piece))
            await self._writer.drain()
        await _wait(expected, len(answer.pieces))
        if not answer.whole:
            write(b"0\r\n\r\n")
        await self._writer.drain()

    async def _socket(self, expected: Expected, named: dict[str, str]) -> None:
        key = named["sec-websocket-key"].encode()
        made = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()
        fields = [("Upgrade", "websocket"), ("Connection", "Upgrade")]
        fields.append(("Sec-WebSocket-Accept", made))
        if "sec-websocket-protocol" in named:
            first = named["sec-websocket-protocol"].split(",")[0].strip()
            fields.append(("Sec-WebSocket-Protocol", first))
        write = self._writer.write
        write(_head(101, tuple(fields)))
        pushed = False
        while (came := await read_frame(self._reader)) is not None:
            if came.opcode == CLOSE:
                code = int.from_bytes(came.payload[:2], "big") if came.payload else None
                write(closing(code, came.payload[2:], masked=False))
                break
            if came.opcode == PING:
                write(frame(10, came.payload, masked=False))
            elif came.opcode in (TEXT, BINARY):
                if expected.serve == "each":
                    write(
                        frame(
                            TEXT, b"echo: " + came.payload.decode("latin-1").encode(), masked=False
                        )
                    )
                elif expected.serve.startswith("many") and not pushed:
                    pushed = True
                    for number in range(1, int(expected.serve.split()[1]) + 1):
                        if number > 1:
                            await asyncio.sleep(expected.gap_s)
                        write(frame(TEXT, f"push {number}".encode(), masked=False))
            await self._writer.drain()
        await self._writer.drain()
        self._writer.close()


async def _wait(expected: Expected, place: int) -> None:
    """Wait before a piece of an answer, or behind its last, as the case says."""
    answer = expected.answer
    last = place == len(answer.pieces)
    if place and answer.hold == place:
        await expected.released.wait()
    if answer.is_open and last:
        await asyncio.Event().wait()
    if place and not last and answer.gap_s:
        await asyncio.sleep(answer.gap_s)


def _head(status: int, fields: Iterable[tuple[str, str]]) -> bytes:
    told = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"HTTP/1.1 {status} Said\r\n{told}\r\n".encode()


@dataclass(eq=False)
class _Stream:
    fields: dict[str, str]
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    task: asyncio.Task[None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class _Http2:
    def __init__(
        self, stage: Stage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._stage, self._reader, self._writer = stage, reader, writer
        self._connection = H2Connection(
            H2Configuration(
                client_side=False, header_encoding="utf-8", validate_inbound_headers=False
            )
        )
        self._streams: dict[int, _Stream] = {}
        self._opened = asyncio.Event()

    async def serve(self) -> None:
        self._connection.initiate_connection()
        self._flush()
        try:
            while data := await self._reader.read(65536):
                for event in self._connection.receive_data(data):
                    self._take(event)
                self._flush()
        finally:
            for stream in self._streams.values():
                if stream.task is not None:
                    stream.task.cancel()

    def _take(self, event: Any) -> None:
        match event:
            case RequestReceived():
                named = {str(name): str(value) for name, value in event.headers}
                stream = self._streams[event.stream_id] = _Stream(named)
                stream.task = asyncio.create_task(self._handle(event.stream_id, stream))
            case DataReceived():
                stream = self._streams[event.stream_id]
                stream.body += event.data
                self._connection.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id
                )
                stream.changed.set()
            case StreamEnded():
                self._streams[event.stream_id].ended = True
                self._streams[event.stream_id].changed.set()
            case StreamReset():
                found = self._streams.pop(event.stream_id, None)
                if found is not None and found.task is not None:
                    found.task.cancel()
            case WindowUpdated():
                self._opened.set()

    def _flush(self) -> None:
        self._writer.write(self._connection.data_to_send())

    async def _handle(self, number: int, stream: _Stream) -> None:
        method, target = stream.fields[":method"], stream.fields[":path"]
        with contextlib.suppress(OSError, H2Error):
            if stream.fields.get("content-type", "").startswith("application/grpc"):
                expected = self._stage.meet(method, target, None)
                if expected is not None:
                    await self._call(number, stream, expected)
                return
            await self._until(stream, lambda: stream.ended)
            expected = self._stage.meet(method, target, bytes(stream.body))
            if expected is not None:
                await self._answer(number, expected, method)
            else:
                self._connection.send_headers(number, [(":status", "500")], end_stream=True)
                self._flush()

    @staticmethod
    async def _until(stream: _Stream, condition: Callable[[], bool]) -> None:
        while not condition():
            stream.changed.clear()
            await stream.changed.wait()

    async def _answer(self, number: int, expected: Expected, method: str) -> None:
        answer = expected.answer
        for status, fields in answer.interim:
            self._connection.send_headers(number, [(":status", str(status)), *fields])
            self._flush()
        if answer.hold == 0:
            await expected.released.wait()
        ends = method == "HEAD" or not (answer.pieces or answer.is_open)
        headers = [(":status", str(answer.status))]
        headers += [(name.lower(), value) for name, value in answer.headers]
        self._connection.send_headers(number, headers, end_stream=ends)
        self._flush()
        if ends:
            return
        for place, piece in enumerate(answer.pieces):
            await _wait(expected, place)
            await self._send(number, piece)
        await _wait(expected, len(answer.pieces))
        self._connection.end_stream(number)
        self._flush()

    async def _send(self, number: int, data: bytes) -> None:
        place = 0
        while place < len(data):
            room = min(
                self._connection.local_flow_control_window(number),
                self._connection.max_outbound_frame_size,
                len(data) - place,
            )
            if room <= 0:
                self._opened.clear()
                await self._opened.wait()
                continue
            self._connection.send_data(number, data[place : place + room])
            place += room
            self._flush()
            await self._writer.drain()

    async def _call(self, number: int, stream: _Stream, expected: Expected) -> None:
        """Answer a call of gRPC."""
        head = [(":status", "200"), ("content-type", "application/grpc")]
        self._connection.send_headers(number, head)
        self._flush()
        word, _, count = expected.serve.partition(" ")
        heard = 0
        if word == "each":
            while True:
                found = messages_in(bytes(stream.body))
                for message in found[heard:]:
                    await self._send(number, message_of(f"echo {heard}: {message[2:].decode()}"))
                    heard += 1
                if stream.ended:
                    break
                stream.changed.clear()
                await stream.changed.wait()
        else:
            await self._until(stream, lambda: stream.ended)
            for place in range(int(count or 1)):
                if place:
                    await asyncio.sleep(expected.gap_s)
                await self._send(number, message_of(f"answer {expected.number}.{place}"))
        self._connection.send_headers(number, [("grpc-status", "0")], end_stream=True)
        self._flush()
