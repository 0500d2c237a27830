"""Which client connections are taken, given up and turned away when descriptors are short."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from playhead.config import Config, Mode
from playhead.proxy.engine import admission
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Upstream:
    """Answers `/small` at once, and `/late` when the test lets it."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    async def small(self, request: web.Request) -> web.Response:
        return web.Response(text="small")

    async def late(self, request: web.Request) -> web.Response:
        self.asked += 1
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.go_on.wait(), self.loop))
        return web.Response(text="late")


@pytest.fixture
async def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
async def origin(upstream: Upstream) -> AsyncIterator[Origin]:
    with Origin({"/small": upstream.small, "/late": upstream.late}) as made:
        yield made
        upstream.go_on.set()


@pytest.fixture
async def running(store_dir: Path) -> AsyncIterator[Running]:
    async with running_engine(Config(mode=Mode.RECORD, store=store_dir)) as made:
        yield made


async def _connect(running: Running) -> Ends:
    return await asyncio.open_connection(running.address.host, running.address.port)


def _say(ends: Ends, origin: Origin, path: str) -> None:
    head = f"GET {origin.url}{path} HTTP/1.1\r\nHost: {origin.url.split('/')[2]}\r\n"
    ends[1].write(f"{head}Proxy-Authorization: Basic bWluZTp4\r\n\r\n".encode())


async def _hear(ends: Ends, text: bytes) -> bytes:
    async with asyncio.timeout(10):
        return await ends[0].readuntil(text)


async def _until(running: Running, count: int) -> None:
    async with asyncio.timeout(10):
        while len(running.engine._proxyserver.connections) != count:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)


def _close(*all_ends: Ends) -> None:
    for _, writer in all_ends:
        writer.close()


async def test_the_longest_idle_gives_way(
    running: Running, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First those that have asked nothing; of the others the one that has been idle for longest."""
    monkeypatch.setattr(admission, "MOST_CLIENTS", 3)
    asked = [await _connect(running) for _ in range(2)]
    for ends in (*asked, asked[0]):
        _say(ends, origin, "/small")
        await _hear(ends, b"small")
    silent = await _connect(running)
    await _until(running, 3)
    first = await _connect(running)
    assert await asyncio.wait_for(silent[0].read(), 10) == b""
    _say(first, origin, "/small")
    await _hear(first, b"small")
    second = await _connect(running)
    assert await asyncio.wait_for(asked[1][0].read(), 10) == b""
    for ends in (second, asked[0], first):
        _say(ends, origin, "/small")
        await _hear(ends, b"small")
    assert (running.engine.admission.shed, running.engine.admission.turned_away) == (2, 0)
    _close(*asked, silent, first, second)


async def test_who_waits_for_an_answer_does_not_give_way(
    running: Running, origin: Origin, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all do, who is new waits until one has been answered; what it had said by then is answered."""
    monkeypatch.setattr(admission, "MOST_CLIENTS", 2)
    busy = [await _connect(running) for _ in range(2)]
    for ends in busy:
        _say(ends, origin, "/late")
    async with asyncio.timeout(10):
        while upstream.asked < 2:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)
    new = await _connect(running)
    _say(new, origin, "/small")
    async with asyncio.timeout(10):
        while not running.engine.admission._waiting:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)
    upstream.go_on.set()
    for ends in busy:
        await _hear(ends, b"late")
    await _hear(new, b"small")
    assert running.engine.admission.turned_away == 0
    _close(*busy, new)


async def test_who_finds_no_room_is_closed(
    running: Running, origin: Origin, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some time, or at once where even waiting would take what is needed for others."""
    monkeypatch.setattr(admission, "MOST_CLIENTS", 1)
    monkeypatch.setattr(admission, "_PATIENCE_S", 0.05)
    busy = await _connect(running)
    _say(busy, origin, "/late")
    async with asyncio.timeout(10):
        while not upstream.asked:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)
    first = await _connect(running)
    assert await asyncio.wait_for(first[0].read(), 10) == b""
    monkeypatch.setattr(admission, "_PATIENCE_S", 100.0)
    running.engine.admission._most_of_waiting = 0
    second = await _connect(running)
    assert await asyncio.wait_for(second[0].read(), 10) == b""
    assert running.engine.admission.turned_away == 2
    upstream.go_on.set()
    await _hear(busy, b"late")
    _close(busy, first, second)


async def test_who_asks_is_not_turned_away_for_silent_ones(
    running: Running, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no more may wait, the silent one that has waited for longest goes; what has just come goes for who asks."""
    monkeypatch.setattr(admission, "MOST_CLIENTS", 2)
    monkeypatch.setattr(admission, "_NEW_S", 100.0)
    silent = [await _connect(running) for _ in range(2)]
    await _until(running, 2)
    waiting = [await _connect(running)]
    async with asyncio.timeout(10):
        while not running.engine.admission._waiting:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)
    running.engine.admission._most_of_waiting = 0
    new = await _connect(running)
    assert await asyncio.wait_for(waiting[0][0].read(), 10) == b""
    _say(new, origin, "/small")
    await _hear(new, b"small")
    assert (running.engine.admission.shed, running.engine.admission.turned_away) == (1, 1)
    _close(*silent, *waiting, new)


async def test_an_upstream_waits_for_a_descriptor(running: Running, origin: Origin) -> None:
    """Idle clients give way to it; nobody is told that an upstream failed that was never asked."""
    silent = await _connect(running)
    asking = await _connect(running)
    await _until(running, 2)
    gauge = running.engine.admission._gauge
    # One more than is open now: an upstream's descriptor is there once the silent client's is free.
    running.engine.admission._most_of_upstreams = gauge.lowest_free
    _say(asking, origin, "/small")
    assert await asyncio.wait_for(silent[0].read(), 10) == b""
    await _hear(asking, b"small")
    _close(silent, asking)
    _, writer = silent
    await writer.wait_closed()
