"""Connections that the capture has led here: HTTP is recorded, everything else passes as it is."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from playhead.config import Config, Mode
from playhead.proxy.capture.connection_origins import Origin
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


async def _http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if await reader.readuntil(b"\r\n\r\n"):
        writer.write(ANSWER)
        writer.close()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read())
    writer.close()


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 ready\r\n" + await reader.readline())
    writer.close()


async def _greet_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 ready\r\n")
    writer.write(await reader.readline())
    writer.close()


async def _end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


class Led(NamedTuple):
    """An engine that records, and how to be led to it."""

    running: Running
    connect: Callable[..., Awaitable[socket.socket]]
    port: int
    """At which connections are taken."""


@pytest.fixture
async def led(store_dir: Path, certificates: Certificates) -> AsyncIterator[Led]:
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    async with running_engine(config) as running:
        listening = socket.create_server(("127.0.0.1", 0))
        origins: dict[tuple[str, int], Origin] = {}
        running.engine.serve_captured([listening], lambda peer: origins.pop(peer, None))

        async def connect(host: str, port: int, *, dialled: bool) -> socket.socket:
            upstream = None
            if dialled:
                upstream = socket.create_connection((host, port))
                upstream.setblocking(False)
            sock = socket.socket()
            sock.bind(("127.0.0.1", 0))
            origins[sock.getsockname()] = Origin(host, port, "agent", 1, upstream)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, listening.getsockname())
            return sock

        yield Led(running, connect, listening.getsockname()[1])
        listening.close()


async def _talk(sock: socket.socket, said: bytes, **tls: object) -> bytes:
    reader, writer = await asyncio.open_connection(sock=sock, **tls)  # type: ignore[arg-type]
    try:
        writer.write(said)
        if writer.can_write_eof() and not said.startswith(b"GET"):
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


REQUEST = b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
CASES: dict[str, tuple[Serve, bytes, bytes, str]] = {
    # what it does, what its client says, what that is told, why it passed
    "HTTP": (_http, REQUEST, b"ok", ""),
    "no HTTP": (_echo, b"\0\1binary", b"\0\1binary", "no HTTP"),
    "a line, but no request": (_echo, b"EHLO me\r\n", b"EHLO me\r\n", "no HTTP"),
    "a greeting of SSH": (_echo, b"SSH-2.0-x\r\n", b"SSH-2.0-x\r\n", "no HTTP"),
    "the server speaks first": (_greet_first, b"", b"220 ready\r\n", "no HTTP"),
    "the server ends first": (_end, b"", b"", ""),
}


DIALLED = [(name, True) for name in CASES] + [(name, False) for name in CASES if CASES[name][1]]
"""Who speaks first can only be told where the upstream was connected to."""


@pytest.mark.parametrize(("name", "dialled"), DIALLED)
async def test_what_is_no_http_passes(led: Led, name: str, dialled: bool) -> None:
    """And is counted."""
    serve, said, told, why = CASES[name]
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        sock = await led.connect("127.0.0.1", port, dialled=dialled)
        if said:
            answer = await _talk(sock, said)
        else:
            answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sock, 100), 10)
            sock.close()
        assert answer.endswith(told)
    passed = [
        (row.host, row.port, row.process, row.why)
        for row in led.running.engine.captured.passed
        if led.running.engine.captured.passed[row]
    ]
    assert passed == ([("127.0.0.1", port, "agent", why)] if why else [])


async def test_who_does_not_trust_us_passes_from_then_on(
    led: Led, certificates: Certificates
) -> None:
    """And nobody else of that host: another client is known by what it offers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.chain)
    async with await asyncio.start_server(_http, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        distrusting = ssl.create_default_context(cafile=str(certificates.root))
        distrusting.set_ciphers("ECDHE+AESGCM")
        trusting = ssl.create_default_context(cafile=str(led.running.ca))
        told = []
        for client in (distrusting, distrusting, trusting, distrusting):
            sock = await led.connect("127.0.0.1", port, dialled=True)
            try:
                answer = await _talk(sock, REQUEST, ssl=client, server_hostname="localhost")
                told.append(answer[-2:])
            except ssl.SSLError:
                told.append(b"--")
    assert told == [b"--", b"ok", b"ok", b"ok"]
    ((row, count),) = led.running.engine.captured.passed.items()
    assert (row.host, row.why, count) == ("localhost", "distrusts", 2)


async def test_nobody_else_is_taken(led: Led) -> None:
    """Who connects here by itself is reset: this is no proxy."""
    sock = socket.create_connection(("127.0.0.1", led.port))
    sock.settimeout(10)
    loop = asyncio.get_running_loop()
    with pytest.raises(ConnectionResetError):
        await loop.run_in_executor(None, sock.recv, 1)
    sock.close()


async def test_an_upstream_that_is_gone_is_a_reset(led: Led) -> None:
    """Where it could not be known before the client was connected."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        sock = await led.connect("127.0.0.1", closed.getsockname()[1], dialled=False)
        sock.send(b"\0binary")
        with contextlib.suppress(BlockingIOError), pytest.raises(ConnectionResetError):
            await asyncio.get_running_loop().sock_recv(sock, 1)
        sock.close()
