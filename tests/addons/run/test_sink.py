"""The stub bus by itself: what it does with a sink that is slow, gone, or back again."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from playhead.addons.run import sink as module
from playhead.addons.run.sink import ROOM, Bus, Teller
from playhead.config import Sink
from playhead.tests.support.origins import Origin

_LONG_S = 10.0
_SHORT_S = 0.02


@asynccontextmanager
async def bus_of(sink: Sink) -> AsyncIterator[Bus]:
    made = Bus(sink)
    try:
        yield made
    finally:
        await made.close()


class Counts:
    """What a run's log would hold of lost rows."""

    def __init__(self) -> None:
        self.noted: list[dict[str, int]] = []
        self.teller = Teller(self.noted.append)


def line(number: int) -> bytes:
    return json.dumps({"n": number}).encode() + b"\n"


def numbers(data: bytes) -> list[int]:
    return [json.loads(one)["n"] for one in data.splitlines()]


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def receiver(got: list[int], statuses: list[int] | None = None) -> Handler:
    """Take rows; answer with each of `statuses` first."""
    left = list(statuses or [])

    async def take(request: web.Request) -> web.Response:
        row = await request.json()
        if left:
            return web.Response(status=left.pop(0), headers={"location": "/elsewhere"})
        assert request.content_type == "application/json"
        got.append(row["n"])
        return web.Response()

    return take


async def test_a_file_gets_each_row_as_a_line_in_order(tmp_path: Path) -> None:
    """Whole lines, behind what was there; in a folder that is made, for its owner alone."""
    path = tmp_path / "made" / "effects.jsonl"
    run = Counts()
    for start in (0, 500):
        async with bus_of(Sink(path, patience_s=_LONG_S)) as bus:
            for number in range(start, start + 500):
                bus.tell(run.teller, line(number))
            await bus.settle(run.teller)
    assert numbers(path.read_bytes()) == list(range(1000))
    assert path.stat().st_mode & 0o777 == 0o600
    assert run.noted == []


async def test_a_receiver_gets_each_row_once_it_takes_them(tmp_path: Path) -> None:
    """What it refuses is asked again; a redirect is no yes, and is not followed."""
    got: list[int] = []
    run = Counts()
    with Origin({"/hook": receiver(got, [500, 404, 307])}) as origin:
        async with bus_of(Sink(tmp_path / "f", f"{origin.url}/hook", patience_s=_LONG_S)) as bus:
            for number in range(20):
                bus.tell(run.teller, line(number))
            await bus.settle(run.teller)
        assert set(origin.requests) == {"POST /hook"}
    assert got == list(range(20))
    assert numbers((tmp_path / "f").read_bytes()) == got
    assert run.noted == []


async def test_what_a_dead_receiver_did_not_get_is_counted(tmp_path: Path) -> None:
    """For the run that told it, at once and in the end; the file gets all."""
    with Origin({}) as origin:
        url = f"{origin.url}/hook"
    run, other = Counts(), Counts()
    path = tmp_path / "effects.jsonl"
    async with bus_of(Sink(path, url, patience_s=_SHORT_S)) as bus:
        for number in range(30):
            bus.tell(run.teller, line(number))
        bus.tell(other.teller, line(30))
        await bus.settle(run.teller)
        await bus.settle(other.teller)
    assert run.noted[0] == {"url": 1}
    assert run.noted[-1] == {"url": 30}
    assert other.noted[-1] == {"url": 1}
    assert numbers(path.read_bytes()) == list(range(31))


async def test_a_receiver_that_is_back_gets_rows_again(tmp_path: Path) -> None:
    """After some were lost."""
    got: list[int] = []
    run = Counts()
    with Origin({"/hook": receiver(got, [503] * 3)}) as origin:
        async with bus_of(Sink(None, f"{origin.url}/hook", patience_s=_SHORT_S)) as bus:
            while not got:
                bus.tell(run.teller, line(run.teller.lost.get("url", 0)))
                await bus._until(lambda: run.teller.waiting == 0)
            bus.tell(run.teller, line(7))
            await bus.settle(run.teller)
    assert got[-1] == 7
    assert 1 <= run.noted[-1]["url"] <= 3


async def test_a_full_sink_holds_back_and_then_loses(tmp_path: Path) -> None:
    """A pipe that nobody reads: waiting ends after the patience, and what finds no room is counted."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    run = Counts()
    big = b'{"text": "' + b"x" * 1000 + b'"}\n'
    try:
        async with bus_of(Sink(path, patience_s=_SHORT_S)) as bus:
            told = 0
            while not run.teller.lost:
                if bus.full:
                    await asyncio.wait_for(bus.room(), _LONG_S)
                bus.tell(run.teller, big)
                told += 1
                assert told <= 10 * ROOM
                if not told % 100:
                    await asyncio.sleep(0)
            await asyncio.wait_for(bus.settle(run.teller), _LONG_S)
            taken = b""
            while True:
                try:
                    piece = os.read(reader, 1 << 20)
                except BlockingIOError:
                    break
                taken += piece
    finally:
        os.close(reader)
    whole = taken.count(b"\n")
    assert run.noted[-1] == run.teller.lost
    # Never too few; a batch that was being written when the run ended may be there all the same.
    assert told - whole <= run.teller.lost["file"] <= told - whole + 100
    assert whole > 0


async def test_who_is_held_back_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """Long before the patience ends, and nothing is lost."""
    got: list[int] = []
    slow = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def take(request: web.Request) -> web.Response:
        row = await request.json()
        if not got:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(slow.wait(), loop))
        got.append(row["n"])
        return web.Response()

    run = Counts()
    with Origin({"/hook": take}) as origin:
        async with bus_of(Sink(None, f"{origin.url}/hook", patience_s=_LONG_S)) as bus:
            for number in range(ROOM):
                bus.tell(run.teller, line(number))
            assert bus.full
            held = [asyncio.create_task(bus.room()) for _ in range(300)]
            await asyncio.sleep(0)
            assert not any(task.done() for task in held)
            slow.set()
            await asyncio.wait_for(asyncio.gather(*held), _LONG_S)
            for number in range(ROOM, ROOM + 300):
                bus.tell(run.teller, line(number))
            await bus.settle(run.teller)
    assert got == list(range(ROOM + 300))
    assert run.noted == []


async def test_a_line_that_was_written_in_part_is_finished(tmp_path: Path) -> None:
    """Also where its row has been given up over it: the next line begins on a line of its own."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    run, taken = Counts(), b""
    try:
        async with bus_of(Sink(path, patience_s=_SHORT_S)) as bus:
            bus.tell(run.teller, json.dumps({"n": 0, "text": "x" * 300_000}).encode() + b"\n")
            await bus._until(lambda: bool(run.teller.lost))
            while not run.teller.lost:
                await asyncio.wait_for(bus._moved.wait(), _LONG_S)
            bus.tell(run.teller, line(1))
            while taken.count(b"\n") < 2:
                try:
                    taken += os.read(reader, 1 << 20)
                except BlockingIOError:
                    await asyncio.sleep(0)
                if not run.teller.waiting and taken.count(b"\n") < 2:
                    bus.tell(run.teller, line(1))
    finally:
        os.close(reader)
    assert numbers(taken)[:2] == [0, 1]


@pytest.mark.parametrize("kind", ["folder", "pipe without reader"])
async def test_a_file_that_cannot_be_written_is_counted(tmp_path: Path, kind: str) -> None:
    """And nothing else happens."""
    path = tmp_path / "x"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    run = Counts()
    async with bus_of(Sink(path, patience_s=_SHORT_S)) as bus:
        bus.tell(run.teller, line(1))
        await asyncio.wait_for(bus.settle(run.teller), _LONG_S)
    assert run.noted[-1] == {"file": 1}


def test_the_room_is_bounded() -> None:
    """As the pages say."""
    assert module.ROOM == 1000
