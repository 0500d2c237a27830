"""Local services behind a sandbox: bytes pass both ways, what fails is told, nothing stays open."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from playhead.proxy.sandbox.network.listeners import Service
from playhead.proxy.sandbox.network.local_services import Relay, Use

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def relayed(handle: Handler | None) -> AsyncIterator[tuple[Use, int]]:
    """A relay to a service, or to a port where there is none; gives what is counted, and the relay's port."""
    behind = socket.create_server(("127.0.0.1", 0))
    use = Use(Service("127.0.0.1", behind.getsockname()[1]), "a test")
    server = None
    if handle is None:
        behind.close()
    else:
        server = await asyncio.start_server(handle, sock=behind)
    front = socket.create_server(("127.0.0.1", 0))
    front.setblocking(False)
    relay = Relay(use)
    await relay.serve(front)
    try:
        yield use, front.getsockname()[1]
    finally:
        await relay.close()
        if server is not None:
            server.close()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    await asyncio.sleep(0)  # a transport's socket is closed in the turn after


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer once all has been said: whoever cannot say that it has ended hears nothing."""
    writer.write(await reader.read())
    await _close(writer)


async def test_bytes_pass_both_ways_and_are_counted() -> None:
    """More than a buffer holds, and the end of each direction by itself."""
    said = bytes(range(256)) * 4096
    async with relayed(_echo) as (use, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 10) == said
        await _close(writer)
    assert (use.connections, use.failed) == (1, 0)
    assert (use.bytes_sent, use.bytes_received) == (len(said), len(said))


async def test_a_service_that_is_not_there_resets() -> None:
    """As without us; and it is counted."""
    async with relayed(None) as (use, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 10)
        await _close(writer)
    assert (use.connections, use.failed) == (1, 1)


async def test_what_is_open_ends_with_the_relay() -> None:
    """On both sides."""
    told = asyncio.Event()
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.set()
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        ended.set()
        await _close(writer)

    async with relayed(wait) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.wait_for(told.wait(), 10)
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(reader.read(), 10)
    await asyncio.wait_for(ended.wait(), 10)
    await _close(writer)


def test_a_client_that_leaves_with_data_unread_ends_quietly() -> None:
    """It is no error of ours: nothing is written where the command's own output stands."""
    uvloop.run(_leave_with_data_unread())  # which forgets the socket of what is aborted


async def _leave_with_data_unread() -> None:
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 4_000_000)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.transport.abort()
        gone.set()

    async with relayed(answer) as (use, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"ask")
        await reader.readexactly(10)
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        await asyncio.wait_for(gone.wait(), 10)
    assert use.bytes_sent == 3
    assert faults == []
