"""HTTP/1.1 as `playhead stdio` speaks it: to the proxy as a client, and at a path socket as the server."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

Fields = tuple[tuple[bytes, bytes], ...]
LINE_FIELD = b"playhead-stdio-line"
"""Says which line of the server an answer is."""
_READ = 64 * 1024


class Proxy(NamedTuple):
    """A proxy as a client reaches it."""

    host: str
    port: int
    authorization: bytes = b""
    """Value of `proxy-authorization`, where it has credentials."""


class Answer(NamedTuple):
    """An answer that is there as a whole."""

    status: int
    fields: Fields
    body: bytes


class Exchange:
    """One request to the proxy, on a connection of its own."""

    def __init__(self, proxy: Proxy, method: str, url: str, body: bytes, fields: Fields) -> None:
        """Prepare; nothing is sent yet."""
        self._proxy = proxy
        parts = urlsplit(url)
        given = [(b"host", parts.netloc.encode("ascii")), *fields, (b"connection", b"close")]
        if proxy.authorization:
            given.append((b"proxy-authorization", proxy.authorization))
        if body or method == "POST":
            given.append((b"content-length", b"%d" % len(body)))
        self._request = h11.Request(method=method, target=url, headers=given)
        self._body = body
        self._connection = h11.Connection(h11.CLIENT)
        self.status = 0
        self._fields: Fields = ()

    def field(self, name: bytes) -> bytes:
        """Give a field of the answer; empty where it has none."""
        return next((value for known, value in self._fields if known == name), b"")

    async def __aenter__(self) -> "Exchange":
        """Send the request. Raises: OSError."""
        self._reader, self._writer = await asyncio.open_connection(
            self._proxy.host, self._proxy.port
        )
        sent = self._connection.send(self._request) or b""
        body = self._connection.send(h11.Data(data=self._body)) if self._body else b""
        end = self._connection.send(h11.EndOfMessage())
        self._writer.writelines((sent, body or b"", end or b""))
        await self._writer.drain()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._connection.their_state not in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED):
            # Leave at once: an end that is no reset may be that of the request alone.
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        self._writer.close()

    async def head(self) -> None:
        """Wait for the head of the answer. Raises: OSError."""
        while True:
            event = await self._next()
            if isinstance(event, h11.Response):
                self.status = event.status_code
                self._fields = tuple((bytes(name), bytes(value)) for name, value in event.headers)
                return
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionResetError("the proxy closed the connection without an answer")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes. Raises: OSError, where it is cut."""
        while True:
            event = await self._next()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            else:
                return

    async def _next(self) -> object:
        try:
            while (event := self._connection.next_event()) is h11.NEED_DATA:
                self._connection.receive_data(await self._reader.read(_READ))
        except h11.RemoteProtocolError as error:
            raise ConnectionResetError(f"the answer broke off: {error}") from error
        return event


async def ask(proxy: Proxy, method: str, url: str) -> Answer:
    """Ask the proxy for something small. Raises: OSError."""
    async with Exchange(proxy, method, url, b"", ()) as exchange:
        await exchange.head()
        body = b"".join([piece async for piece in exchange.pieces()])
        return Answer(exchange.status, exchange._fields, body)


class Responder:
    """The server's side of one connection, for one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection over."""
        self._reader, self._writer = reader, writer
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=256 * 1024)

    async def read(self) -> tuple[str, bytes]:
        """Read the request: its method and its body. Raises: OSError."""
        method, body = "", bytearray()
        while True:
            try:
                while (event := self._connection.next_event()) is h11.NEED_DATA:
                    self._connection.receive_data(await self._reader.read(_READ))
            except h11.RemoteProtocolError as error:
                raise ConnectionResetError(str(error)) from error
            if isinstance(event, h11.Request):
                method = event.method.decode("ascii")
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return method, bytes(body)
            else:
                raise ConnectionResetError("the request broke off")

    async def begin(
        self, status: int, content_type: str = "", *, size: int | None = None, number: int = 0
    ) -> None:
        """Send the head; a body without a size comes in chunks. Raises: OSError.

        number: which line of the server the body is.
        """
        fields = [("connection", "close")]
        if content_type:
            fields.append(("content-type", content_type))
        if number:
            fields.append((LINE_FIELD.decode(), str(number)))
        if size is not None:
            fields.append(("content-length", str(size)))
        await self._send(h11.Response(status_code=status, headers=fields))

    async def say(self, data: bytes) -> None:
        """Send some of the body. Raises: OSError."""
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        """End the answer. Raises: OSError."""
        await self._send(h11.EndOfMessage())

    async def _send(self, event: h11.Event) -> None:
        data = self._connection.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
