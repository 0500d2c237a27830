"""WebSockets for tests: frames byte by byte on the client's side, a conforming server on the other."""

import asyncio
import base64
import contextlib
import os
import ssl
import struct
import threading
import zlib
from collections.abc import Awaitable, Callable
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .certificates import Certificates
from .client import Connection
from .raw import Conversation

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
NAMES = {CONTINUATION: "more", TEXT: "text", BINARY: "binary", CLOSE: "close", PING: "ping", PONG: "pong"}  # fmt: skip
KEY = "dGhlIHNhbXBsZSBub25jZQ=="

Handler = Callable[["ServerConnection"], Awaitable[None]]


def frame(
    opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, masked: bool = True
) -> bytes:
    """One frame, sound or not."""
    head = bytes([fin << 7 | rsv << 4 | opcode])
    mask, size = masked << 7, len(payload)
    if size < 126:
        head += bytes([mask | size])
    elif size < 1 << 16:
        head += struct.pack("!BH", mask | 126, size)
    else:
        head += struct.pack("!BQ", mask | 127, size)
    if not masked:
        return head + payload
    key = os.urandom(4)
    return head + key + _masked(payload, key)


def _masked(payload: bytes, key: bytes) -> bytes:
    """Put a mask on, or take it off."""
    size = len(payload)
    if not key or not size:
        return payload
    # As one number: a megabyte byte by byte takes long.
    ones = int.from_bytes((key * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(payload, "big") ^ ones).to_bytes(size, "big")


def closing(code: int | None = 1000, reason: str | bytes = b"", *, masked: bool = True) -> bytes:
    """A closing frame."""
    text = reason.encode() if isinstance(reason, str) else reason
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + text, masked=masked)


class Frame(NamedTuple):
    """A frame as it came."""

    opcode: int
    payload: bytes
    fin: bool
    rsv: int

    def __str__(self) -> str:
        """Name it, with what it holds."""
        if self.opcode == CLOSE and self.payload:
            code, reason = int.from_bytes(self.payload[:2], "big"), self.payload[2:].decode()
            return f"close {code} {reason}".rstrip()
        return f"{NAMES[self.opcode]} {self.payload.decode('latin-1')}".rstrip()


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """Read a frame of either side; None at the end of the connection."""
    try:
        first, second = await reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await reader.readexactly(8))
        key = await reader.readexactly(4) if second & 0x80 else b""
        payload = await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ssl.SSLError):
        return None
    return Frame(first & 0x0F, _masked(payload, key), bool(first & 0x80), first >> 4 & 7)


class Peer:
    """A client whose every byte is the test's."""

    def __init__(self, connection: Connection, head: bytes) -> None:
        self.connection = connection
        self.head = head
        """The handshake's answer."""

    @classmethod
    async def open(
        cls,
        proxy: str,
        target: str,
        path: str = "/",
        *,
        run: str = "tape",
        ca: Path | None = None,
        headers: str = "",
    ) -> Self:
        """Ask for a WebSocket through a tunnel of a proxy at HOST:PORT; over TLS where `ca` is given."""
        connection = await Connection.open(proxy)
        await connection.tunnel(target, f"{run}:x", ca)
        connection.writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {target}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{headers}\r\n".encode()
        )
        head = await connection.reader.readuntil(b"\r\n\r\n")
        return cls(connection, head)

    @property
    def status(self) -> int:
        return int(self.head.split(b" ")[1])

    def send(self, *data: bytes) -> None:
        """Send bytes."""
        self.connection.writer.write(b"".join(data))

    async def send_chopped(self, data: bytes, size: int) -> None:
        """Send bytes in so many at a time; each write may be read on its own."""
        for start in range(0, len(data), size):
            self.connection.writer.write(data[start : start + size])
            # The proxy stands in the same loop: now it can read.
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def read(self) -> Frame | None:
        """Read a frame; None at the end of the connection."""
        return await read_frame(self.connection.reader)

    async def rest(self) -> list[str]:
        """Read to the end; give each frame as a word and what it holds, and how the connection ended."""
        said = []
        try:
            while (came := await self.read()) is not None:
                said.append(str(came))
        except ConnectionResetError:
            return [*said, "reset"]
        return [*said, "end"]

    async def close(self) -> None:
        """Close the connection, without a word."""
        await self.connection.close()


class Deflate:
    """Compression of the client's side."""

    def __init__(self, extensions: str) -> None:
        """The parameters negotiated in a handshake's answer."""
        self._keeps = "client_no_context_takeover" not in extensions
        self._server_keeps = "server_no_context_takeover" not in extensions
        self._out = zlib.compressobj(wbits=-12)
        self._in = zlib.decompressobj(-15)

    def compress(self, data: bytes) -> bytes:
        """Compress a message."""
        made = self._out.compress(data) + self._out.flush(zlib.Z_SYNC_FLUSH)
        if not self._keeps:
            self._out = zlib.compressobj(wbits=-12)
        return made.removesuffix(b"\0\0\xff\xff") or b"\0"

    def decompress(self, data: bytes) -> bytes:
        """Decompress a message."""
        made = self._in.decompress(data + b"\0\0\xff\xff")
        if not self._server_keeps:
            self._in = zlib.decompressobj(-15)
        return made


async def echo(connection: "ServerConnection") -> None:
    """Say back what is said."""
    async for message in connection:
        await connection.send(message)


class WebsocketOrigin:
    """A server of the `websockets` library on a thread of its own, over TLS where certificates are given.

    handlers: by path; any other path echoes. subprotocol: agreed on where it is offered. Use as a context
    manager.
    """

    def __init__(
        self,
        handlers: dict[str, Handler] | None = None,
        certificates: Certificates | None = None,
        *,
        subprotocol: str = "",
        **options: Any,
    ) -> None:
        self.handlers = handlers or {}
        self.port = 0
        self.paths: list[str] = []
        """Of the handshakes that came."""
        self._certificates = certificates
        self._options: dict[str, Any] = {"max_size": None, "ping_interval": None, **options}
        if subprotocol:
            from websockets.typing import Subprotocol

            self._options["select_subprotocol"] = lambda _, offers: (
                Subprotocol(subprotocol) if subprotocol in offers else None
            )
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{'wss' if self._certificates else 'ws'}://{self.target}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the origin did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port and every connection. Twice is once."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)
            assert not self._thread.is_alive(), "the origin did not stop"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        from websockets.asyncio.server import serve

        context = None
        if self._certificates is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self._certificates.chain)
        server = await serve(self._talk, "127.0.0.1", 0, ssl=context, **self._options)
        self.port = next(iter(server.sockets)).getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close(close_connections=True)
        await server.wait_closed()

    async def _talk(self, connection: "ServerConnection") -> None:
        from websockets.exceptions import ConnectionClosed

        assert connection.request is not None
        path = connection.request.path
        self.paths.append(path)
        with contextlib.suppress(ConnectionClosed):
            await self.handlers.get(path, echo)(connection)


class RawServer:
    """The server's side of one connection, of which every byte is the test's; for a `RawOrigin`."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def accept(self, *more: bytes, headers: str = "") -> None:
        """Accept the handshake; `more` goes out in the same write."""
        head = self._conversation.head.decode("latin-1").lower()
        assert "\r\nupgrade: websocket\r\n" in head
        key = next(
            line.split(": ", 1)[1]
            for line in self._conversation.head.decode("latin-1").split("\r\n")
            if line.lower().startswith("sec-websocket-key: ")
        )
        made = sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        answer = (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {base64.b64encode(made).decode()}\r\n{headers}\r\n"
        )
        await self._conversation.say(answer.encode() + b"".join(more))

    async def say(self, *data: bytes) -> None:
        """Send bytes."""
        await self._conversation.say(b"".join(data))

    async def hear(self) -> Frame | None:
        """Read a frame; None at the end of the connection."""
        return await read_frame(self._conversation.reader)

    async def left(self) -> list[str]:
        """Read frames until the other side has closed or gone."""
        said: list[str] = []
        with contextlib.suppress(OSError):
            while (came := await self.hear()) is not None:
                said.append(str(came))
                if came.opcode == CLOSE:
                    break
        return said

    def reset(self) -> None:
        """End the connection with RST."""
        self._conversation.reset()


def basic(run: str) -> str:
    """Proxy credentials of a run."""
    return f"Basic {base64.b64encode(f'{run}:x'.encode()).decode()}"
