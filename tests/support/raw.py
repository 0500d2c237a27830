"""An origin that says exactly the bytes a test gives it, over TLS or plain."""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Self

from .certificates import Certificates


class Conversation:
    """One connection to a raw origin, after its request has been read."""

    def __init__(
        self, head: bytes, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.head = head
        """Request line and fields as they came, with the empty line."""
        self.body = body
        self.over = False
        """Whether the origin is to close the connection after this, although it lasts."""
        self.reader = reader
        self._writer = writer

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    @property
    def socket(self) -> socket.socket:
        """The connection below TLS."""
        found: socket.socket = self._writer.get_extra_info("socket")
        return found

    async def say(self, data: bytes) -> None:
        """Send bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def left(self) -> None:
        """Wait until the other side has gone."""
        with contextlib.suppress(OSError, ssl.SSLError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        """End the connection with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def drop(self) -> None:
        """End the connection with FIN, over TLS without its close_notify."""
        self._writer.transport.abort()


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    """Read a body in chunks, as it stands on the wire."""
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        body += line
        if size := int(line.split(b";")[0], 16):
            body += await reader.readexactly(size + 2)
            continue
        while line != b"\r\n":
            line = await reader.readuntil(b"\r\n")
            body += line
        return body


Script = Callable[[Conversation], Awaitable[None]]


class RawOrigin:
    """A server that reads one request a connection and then does as its script says.

    The connection is closed when the script returns; where it is `lasting`, another request is read then,
    unless the script says that it is over. Use as a context manager. `heads` holds the request heads in
    order of arrival.
    """

    def __init__(
        self, script: Script, certificates: Certificates | None = None, *, lasting: bool = False
    ) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        """Their bodies; those in chunks as they stood on the wire."""
        self.port = 0
        self.loop = asyncio.new_event_loop()
        self._script = script
        self._certificates = certificates
        self._lasting = lasting
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """Base URL on 127.0.0.1."""
        return f"{'https' if self._certificates else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the origin did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port and every connection. Twice is once."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)
            assert not self._thread.is_alive(), "the origin did not stop"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        context = None
        if self._certificates is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self._certificates.chain)
        server = await asyncio.start_server(self._converse, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        # A connection that was accepted just now fails to be made if the server is closed first, and is then open for ever.
        for sock in server.sockets:
            self.loop.remove_reader(sock.fileno())
        for _ in range(3):
            await asyncio.sleep(0)
        server.close()
        # A transport is closed in the next turn of the loop, one with TLS in the one after; and one that was accepted
        # just now is made in the next turn.
        for _ in range(5):
            for writer in tuple(self._open):
                writer.transport.abort()
            # Python 3.13 also knows connections that are still in their handshake.
            getattr(server, "abort_clients", server.close)()
            await asyncio.sleep(0)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while not await self._answer(reader, writer):
                continue
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError, ssl.SSLError):
            pass
        finally:
            writer.close()
            self._open.discard(writer)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a request and have it answered; give whether the connection is over."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        body = await reader.readexactly(length)
        if b"\r\ntransfer-encoding: chunked\r\n" in head.lower():
            body = await _read_chunks(reader)
        self.heads.append(head)
        self.bodies.append(body)
        conversation = Conversation(head, body, reader, writer)
        await self._script(conversation)
        return conversation.over or not self._lasting
