"""A connection that the proxy closes ends with FIN, whatever its client still says; and it ends soon."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.proxy.engine import lingering_close
from playhead.proxy.engine.lingering_close import LingeringConnections
from playhead.tests.support.engine import running_engine

MUCH = b"x" * 1024 * 1024
"""More than is read of a client at once."""

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def _closing(lingering: LingeringConnections, said: bytes = b"") -> AsyncIterator[Client]:
    """Give a client of a server that says something and closes."""

    def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        lingering.close(writer)

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()
            lingering.end()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110  # a turn of the loop each
            await asyncio.sleep(0)


async def test_a_client_that_says_more_than_is_read_sees_no_reset(store_dir: Path) -> None:
    """The answer, and an ordinary end: not ECONNRESET, which may come before what was sent."""
    config = Config(mode=Mode.RECORD, store=store_dir)
    async with running_engine(config) as running:
        reader, writer = await asyncio.open_connection(running.address.host, running.address.port)
        writer.write(b"this is no request\r\n\r\n" + MUCH)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert reader.at_eof()
        writer.close()


async def test_what_is_said_after_the_end_causes_no_reset() -> None:
    """A frame that acknowledges another, as clients of HTTP/2 send them at any time."""
    lingering = LingeringConnections()
    async with _closing(lingering, b"goodbye") as (reader, writer):
        assert await reader.read() == b"goodbye"
        for _ in range(3):
            writer.write(b"acknowledged")
            await writer.drain()
        writer.write_eof()
        await _until(lambda: not lingering._open)


async def test_what_was_sent_before_the_end_arrives() -> None:
    """However much waits for the client to read it."""
    lingering = LingeringConnections()
    async with _closing(lingering, MUCH * 8) as (reader, writer):
        writer.write(b"acknowledged")
        assert len(await reader.read()) == len(MUCH) * 8


async def test_a_client_that_stays_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps nothing open."""
    monkeypatch.setattr(lingering_close, "LINGER_S", 0.01)
    lingering = LingeringConnections()
    async with _closing(lingering) as (reader, _):
        assert await reader.read() == b""
        await _until(lambda: not lingering._open)


async def test_a_client_that_says_too_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can have the proxy read without end."""
    monkeypatch.setattr(lingering_close, "LINGER_S", 60)
    monkeypatch.setattr(lingering_close, "MOST_BYTES", 1000)
    lingering = LingeringConnections()
    async with _closing(lingering) as (reader, writer):
        assert await reader.read() == b""
        writer.write(b"x" * 1001)
        await _until(lambda: not lingering._open)


async def test_all_are_closed_at_once_with_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that stops waits for nobody."""
    monkeypatch.setattr(lingering_close, "LINGER_S", 60)
    lingering = LingeringConnections()
    async with _closing(lingering) as (reader, _):
        assert await reader.read() == b""
        lingering.end()
        await _until(lambda: not lingering._open)
