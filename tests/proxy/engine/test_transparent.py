"""Connections that were meant for others: whose they are, with and without TLS."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config, Mode
from playhead.tests.support.engine import Running, running_engine

MADE_UP = "api.example.test"
"""The name that the address of the listener was made up for."""


@pytest.fixture
async def inside(store_dir: Path) -> AsyncIterator[tuple[Running, int]]:
    """An engine in playback, and the port at which it captures."""
    async with running_engine(Config(mode=Mode.PLAYBACK, store=store_dir)) as running:
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        await running.engine.serve_sandbox([], [listening])
        yield running, listening.getsockname()[1]


async def _ask(port: int, host: str, context: ssl.SSLContext | None, sni: str | None) -> str:
    """Ask for `/` and give all that is answered."""
    opened = asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=sni)
    reader, writer = await asyncio.wait_for(opened, 10)
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    return answer


PLAIN = {
    # (name of the address, Host) -> host of the request
    (None, "said.test"): "said.test",
    (None, "127.0.0.1"): "127.0.0.1",
    (None, "203.0.113.1"): "127.0.0.1",
    (None, "no host at all"): "127.0.0.1",
    (MADE_UP, "said.test"): MADE_UP,
}


@pytest.mark.parametrize(("name", "said"), PLAIN)
async def test_a_plain_request_has_its_host(
    inside: tuple[Running, int], name: str | None, said: str
) -> None:
    """The name that its address was made up for; else that of its Host; else the address."""
    running, port = inside
    running.engine.transparent.find_name = lambda _: name
    answer = await _ask(port, said, None, None)
    assert answer.startswith("HTTP/1.1 424")
    assert f"GET http://{PLAIN[name, said]}:{port}/" in answer


@pytest.mark.parametrize(("name", "host"), [(None, "said.test"), (MADE_UP, MADE_UP)])
async def test_a_request_over_tls_has_its_host(
    inside: tuple[Running, int], name: str | None, host: str
) -> None:
    """The name that its address was made up for; else the one that its client greets. Our CA vouches for it."""
    running, port = inside
    running.engine.transparent.find_name = lambda _: name
    context = ssl.create_default_context(cafile=str(running.ca))
    answer = await _ask(port, "other.test", context, "said.test")
    assert f"GET https://{host}:{port}/" in answer


async def test_what_is_no_request_is_closed(inside: tuple[Running, int]) -> None:
    """Once, and nothing is kept of its client."""
    running, port = inside
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x05\x01\x00")
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    while running.engine._proxyserver.connections:  # noqa: ASYNC110  # mitmproxy tells nobody
        await asyncio.sleep(0.005)
    assert not running.engine.transparent._unnamed


async def test_a_listener_inside_is_no_port_of_ours(inside: tuple[Running, int]) -> None:
    """The same address outside is another: requests may be sent to it."""
    running, port = inside
    assert not running.engine._is_us(("127.0.0.1", port))
    assert running.engine.listening


@pytest.mark.parametrize("said", [b"\x16\x03\x01", b"GET / HTTP/1.0\r\n\r\n"])
async def test_what_was_said_before_the_run_was_known_is_heard(
    inside: tuple[Running, int],
    said: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client that has said all by then is answered, and its connection ended properly."""
    running, port = inside
    registry, all_said = running.registry, asyncio.Event()
    assign = registry.assign

    async def assign_late(*arguments: Any) -> Any:
        await all_said.wait()
        for _ in range(50):
            await asyncio.sleep(0)  # what was said is read meanwhile
        return await assign(*arguments)

    monkeypatch.setattr(registry, "assign", assign_late)
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # as that of the proxy
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    if not said.startswith(b"GET"):
        writer.write_eof()
    await writer.drain()
    all_said.set()
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 4") == said.startswith(b"GET")
    assert "crashed" not in caplog.text
