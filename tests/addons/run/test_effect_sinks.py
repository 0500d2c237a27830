"""The stub bus by itself: what it does with a sink that is slow, gone, or back again."""

import asyncio
import json
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from playhead.addons.run import effect_sinks as module
from playhead.addons.run.effect_sinks import ROOM, EffectReporter, SinkQueue
from playhead.config import Sink
from playhead.tests.support.origins import Origin

_LONG_S = 10.0
_SHORT_S = 0.02
_FOR_A_FILE_S = 2.0
"""Enough to write some lines to a file, on a machine that has much to do."""


@asynccontextmanager
async def queue_of(sink: Sink) -> AsyncIterator[SinkQueue]:
    made = SinkQueue(sink)
    try:
        yield made
    finally:
        await made.close()


class Counts:
    """What a run's log would hold of lost rows."""

    def __init__(self) -> None:
        self.noted: list[dict[str, int]] = []
        self.reporter = EffectReporter(self.noted.append)


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
        async with queue_of(Sink(path, patience_s=_LONG_S)) as sink_queue:
            for number in range(start, start + 500):
                sink_queue.put(run.reporter, line(number))
            await sink_queue.settle(run.reporter)
    assert numbers(path.read_bytes()) == list(range(1000))
    assert path.stat().st_mode & 0o777 == 0o600
    assert run.noted == []


async def test_a_receiver_gets_each_row_once_it_takes_them(tmp_path: Path) -> None:
    """What it refuses is asked again; a redirect is no yes, and is not followed."""
    got: list[int] = []
    run = Counts()
    with Origin({"/hook": receiver(got, [500, 404, 307])}) as origin:
        async with queue_of(
            Sink(tmp_path / "f", f"{origin.url}/hook", patience_s=_LONG_S)
        ) as sink_queue:
            for number in range(20):
                sink_queue.put(run.reporter, line(number))
            await sink_queue.settle(run.reporter)
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
    async with queue_of(Sink(path, url, patience_s=_FOR_A_FILE_S)) as sink_queue:
        for number in range(30):
            sink_queue.put(run.reporter, line(number))
        sink_queue.put(other.reporter, line(30))
        await sink_queue.settle(run.reporter)
        await sink_queue.settle(other.reporter)
    assert run.noted[0] == {"url": 1}
    assert run.noted[-1] == {"url": 30}
    assert other.noted[-1] == {"url": 1}
    assert numbers(path.read_bytes()) == list(range(31))


async def test_a_receiver_that_is_back_gets_rows_again(tmp_path: Path) -> None:
    """After some were lost."""
    got: list[int] = []
    run = Counts()
    with Origin({"/hook": receiver(got, [503] * 3)}) as origin:
        async with queue_of(Sink(None, f"{origin.url}/hook", patience_s=_SHORT_S)) as sink_queue:
            while not got:
                sink_queue.put(run.reporter, line(run.reporter.lost.get("url", 0)))
                await sink_queue._until(lambda: run.reporter.waiting == 0)
            sink_queue.put(run.reporter, line(7))
            await sink_queue.settle(run.reporter)
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
        async with queue_of(Sink(path, patience_s=_SHORT_S)) as sink_queue:
            told = 0
            while not run.reporter.lost:
                if sink_queue.full:
                    await asyncio.wait_for(sink_queue.room(), _LONG_S)
                sink_queue.put(run.reporter, big)
                told += 1
                assert told <= 10 * ROOM
                if not told % 100:
                    await asyncio.sleep(0)
            await asyncio.wait_for(sink_queue.settle(run.reporter), _LONG_S)
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
    assert run.noted[-1] == run.reporter.lost
    # Never too few; a batch that was being written when the run ended may be there all the same.
    assert told - whole <= run.reporter.lost["file"] <= told - whole + 100
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
        async with queue_of(Sink(None, f"{origin.url}/hook", patience_s=_LONG_S)) as sink_queue:
            for number in range(ROOM):
                sink_queue.put(run.reporter, line(number))
            assert sink_queue.full
            held = [asyncio.create_task(sink_queue.room()) for _ in range(300)]
            await asyncio.sleep(0)
            assert not any(task.done() for task in held)
            slow.set()
            await asyncio.wait_for(asyncio.gather(*held), _LONG_S)
            for number in range(ROOM, ROOM + 300):
                sink_queue.put(run.reporter, line(number))
            await sink_queue.settle(run.reporter)
    assert got == list(range(ROOM + 300))
    assert run.noted == []


async def test_a_line_that_was_written_in_part_is_finished(tmp_path: Path) -> None:
    """Also where its row has been given up over it: the next line begins on a line of its own."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    run, taken = Counts(), b""
    try:
        async with queue_of(Sink(path, patience_s=_SHORT_S)) as sink_queue:
            sink_queue.put(
                run.reporter, json.dumps({"n": 0, "text": "x" * 300_000}).encode() + b"\n"
            )
            await sink_queue._until(lambda: bool(run.reporter.lost))
            while not run.reporter.lost:
                await asyncio.wait_for(sink_queue._moved.wait(), _LONG_S)
            sink_queue.put(run.reporter, line(1))
            while taken.count(b"\n") < 2:
                try:
                    taken += os.read(reader, 1 << 20)
                except BlockingIOError:
                    await asyncio.sleep(0)
                if not run.reporter.waiting and taken.count(b"\n") < 2:
                    sink_queue.put(run.reporter, line(1))
    finally:
        os.close(reader)
    assert numbers(taken)[:2] == [0, 1]


async def test_a_line_is_whole_behind_one_that_is_not(tmp_path: Path) -> None:
    """A writer before us was killed, or its disk was full: the half of a line stays one of its own."""
    path = tmp_path / "effects.jsonl"
    path.write_bytes(line(0) + b'{"n": 7, "te')
    run = Counts()
    async with queue_of(Sink(path, patience_s=_LONG_S)) as sink_queue:
        sink_queue.put(run.reporter, line(1))
        await asyncio.wait_for(sink_queue.settle(run.reporter), _LONG_S)
    assert path.read_bytes() == line(0) + b'{"n": 7, "te\n' + line(1)
    assert run.noted == []


async def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    """Where the disk was full to the end: it was counted as lost."""
    path = tmp_path / "effects.jsonl"
    path.write_bytes(line(0))
    run = Counts()
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(line(0)) + 5, _MOST))
    try:
        async with queue_of(Sink(path, patience_s=_SHORT_S)) as sink_queue:
            sink_queue.put(run.reporter, line(1))
            await asyncio.wait_for(sink_queue.settle(run.reporter), _LONG_S)
            assert path.stat().st_size == len(line(0)) + 5
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST, _MOST))
    assert path.read_bytes() == line(0)
    assert run.noted == [{"file": 1}]


_MOST = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

MAKES: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "pipe without reader": os.mkfifo,
    "link": lambda path: path.symlink_to(path.with_name("victim")),
}


@pytest.mark.parametrize("kind", MAKES)
async def test_a_file_that_cannot_be_written_is_counted(tmp_path: Path, kind: str) -> None:
    """And nothing else happens."""
    path = tmp_path / "x"
    MAKES[kind](path)
    run = Counts()
    async with queue_of(Sink(path, patience_s=_SHORT_S)) as sink_queue:
        sink_queue.put(run.reporter, line(1))
        await asyncio.wait_for(sink_queue.settle(run.reporter), _LONG_S)
    assert run.noted[-1] == {"file": 1}
    assert not (tmp_path / "victim").exists()


def test_the_room_is_bounded() -> None:
    """As the pages say."""
    assert module.ROOM == 1000
