"""A company's proxy on loopback: HTTP, HTTP over TLS, or SOCKS5, with or without credentials, and in bad moods.

It looks up names by itself: each name below `.test` is 127.0.0.1.
"""

import asyncio
import contextlib
import ssl
import threading
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Self

from .certificates import Certificates

USER, PASSWORD = "corp-user", "pa55 word/@:with-all"
ESCAPED = "corp-user:pa55%20word%2F%40:with-all"
"""Both as they stand in an address."""

Mood = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What it does with a connection in the place of its work."""


class CompanyProxy:
    """A proxy. Use as a context manager.

    kind: http, https or socks5.
    secured: whether it wants USER and PASSWORD.
    """

    def __init__(
        self,
        kind: str,
        certificates: Certificates | None = None,
        *,
        secured: bool = False,
        mood: Mood | None = None,
    ) -> None:
        self.kind = kind
        self.port = 0
        self.connections = 0
        self.heads: list[bytes] = []
        """Heads of requests as they came, CONNECT and those in absolute form."""
        self.asked: list[str] = []
        """HOST:PORT of what it was to connect to."""
        self._wanted = f"{USER}:{PASSWORD}" if secured else ""
        self._mood = mood
        self._context: ssl.SSLContext | None = None
        if kind == "https":
            assert certificates is not None
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._context.load_cert_chain(certificates.chain)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    def url(self, credentials: str = "") -> str:
        """Give its address, with credentials as they are escaped."""
        return f"{self.kind}://{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        work = self._mood or (self._socks if self.kind == "socks5" else self._http)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await work(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wanted = b64encode(self._wanted.encode()) if self._wanted else b""
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            method, target, _ = head.split(b" ", 2)
            if (
                wanted
                and b"\r\nproxy-authorization: basic " + wanted.lower() + b"\r\n"
                not in head.lower()
            ):
                writer.write(
                    b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=corp\r\nContent-Length: 0\r\n\r\n"
                )
                continue
            if method == b"CONNECT":
                there = await self._connect(target.decode())
                writer.write(b"HTTP/1.1 200 Connection established\r\nVia: corp\r\n\r\n")
                await _splice((reader, writer), there)
                return
            assert target.startswith(b"http://"), head
            authority, slash, path = target.removeprefix(b"http://").partition(b"/")
            lines = [
                line
                for line in head.split(b"\r\n")[1:]
                if not line.lower().startswith(b"proxy-authorization:")
            ]
            place = authority.decode()
            upstream = upstream or await self._connect(place if ":" in place else f"{place}:80")
            there_reader, there_writer = upstream
            there_writer.write(
                b"%s %s%s HTTP/1.1\r\n" % (method, slash, path) + b"\r\n".join(lines)
            )
            for line in lines:
                if line.lower().startswith(b"content-length:"):
                    there_writer.write(await reader.readexactly(int(line.partition(b":")[2])))
            answer = await there_reader.readuntil(b"\r\n\r\n")
            size = 0
            for line in answer.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    size = int(line.partition(b":")[2])
            writer.write(answer + await there_reader.readexactly(size))

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if self._wanted and 2 not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(b"\x05\x02" if self._wanted else b"\x05\x00")
        if self._wanted:
            given = []
            await reader.readexactly(1)
            for _ in range(2):
                size = (await reader.readexactly(1))[0]
                given.append((await reader.readexactly(size)).decode())
            writer.write(b"\x01\x00" if ":".join(given) == self._wanted else b"\x01\x01")
            if ":".join(given) != self._wanted:
                return
        *_, kind = await reader.readexactly(4)
        if kind == 1:
            host = ".".join(map(str, await reader.readexactly(4)))
        else:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        port = int.from_bytes(await reader.readexactly(2), "big")
        there = await self._connect(f"{host}:{port}")
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        await _splice((reader, writer), there)

    async def _connect(self, place: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.asked.append(place)
        host, _, port = place.rpartition(":")
        known = "127.0.0.1" if host.endswith(".test") else host
        reader, writer = await asyncio.open_connection(known, int(port))
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: writer.transport.abort())
        return reader, writer


async def _splice(
    one: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    other: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    """Pass on what comes, both ways, until either side ends."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    ways = [
        asyncio.ensure_future(pump(one[0], other[1])),
        asyncio.ensure_future(pump(other[0], one[1])),
    ]
    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for way in ways:
        way.cancel()
