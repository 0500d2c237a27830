"""Effect sinks: report each effect of a run as it happens, to a file or an HTTP receiver.

Rules:

1. The loop never waits for a sink; what is to be told waits in a queue of `ROOM` rows.
2. Back-pressure with a limit: while a queue is full, effects are held back, before they are sent or answered, for
   `patience_s` at most.
3. What then finds no room is lost, and so is what could not be delivered for that long; after that a row is tried
   once, until one is taken again.
4. What is lost is counted, and the count is an event of its run (`lost`) before the run is sealed: a sink may lack
   rows, and never without saying so. What was being written at that moment may be there all the same.
5. Rows of a run are told in the order in which its effects ended. A receiver may get a row twice: where its answer
   was lost.

What is posted comes from this process, not from the agent: it passes no guard and no live rule, goes to the one URL
that the configuration names, follows no redirect and takes no proxy.
"""

import asyncio
import contextlib
import errno
import logging
import os
import stat
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config.schema import Sink
from ...store import make_own_folder

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

ROOM = 1000
"""Rows that wait for a sink; twice as many where effects that were held back go on at the same time."""
_BATCH = 100
"""Lines that are written at a time."""
_PAUSE_S = 0.05
"""First pause before another try; doubled up to a second."""


@dataclass(slots=True, eq=False)
class EffectReporter:
    """Reports the effects of one run to the sinks."""

    note: Callable[[dict[str, int]], None]
    """Keeps how many rows are lost, by sink."""
    count: Callable[[str], None] = lambda _: None
    """Counts a row that is lost to a sink, for who measures."""
    lost: dict[str, int] = field(default_factory=dict)
    noted: dict[str, int] = field(default_factory=dict)
    """What of that is in the log."""
    waiting: int = 0
    """Rows on their way, over all sinks."""

    def lose(self, name: str) -> None:
        """Count a row that a sink does not get; the first at once, should we die before the run is sealed."""
        self.lost[name] = self.lost.get(name, 0) + 1
        self.count(name)
        if name not in self.noted:
            self.note_lost()

    def note_lost(self) -> None:
        """Have the log hold what is lost by now."""
        if self.noted != self.lost:
            self.noted = dict(self.lost)
            self.note(self.noted)


class _Row:
    __slots__ = ("line", "reporter")

    def __init__(self, reporter: EffectReporter, line: bytes) -> None:
        self.reporter = reporter
        self.line = line


class _Outlet:
    """One sink with its queue."""

    name = ""
    batch = 1

    def __init__(self, patience_s: float, changed: Callable[[], None]) -> None:
        self._patience_s = patience_s
        self._changed = changed
        self._queue: deque[_Row] = deque()
        self._some = asyncio.Event()
        self._failing = False
        self._taken_at = 0.0
        """When the last row was taken, or the first one came to wait."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def full(self) -> bool:
        return len(self._queue) >= ROOM

    def put(self, row: _Row) -> None:
        now = asyncio.get_running_loop().time()
        if not self._queue:
            self._taken_at = now
        stuck = self._failing or now - self._taken_at > self._patience_s
        if len(self._queue) >= 2 * ROOM or (self.full and stuck):
            row.reporter.lose(self.name)
            return
        row.reporter.waiting += 1
        self._queue.append(row)
        self._some.set()

    def drop(self, reporter: EffectReporter) -> None:
        """Take out what waits of a run."""
        kept = [row for row in self._queue if row.reporter is not reporter]
        for _ in range(len(self._queue) - len(kept)):
            reporter.lose(self.name)
        self._queue = deque(kept)
        reporter.waiting = 0

    async def close(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            if not self._queue:
                self._some.clear()
                await self._some.wait()
            rows = [self._queue[at] for at in range(min(self.batch, len(self._queue)))]
            sent = await self._deliver([row.line for row in rows])
            # What was not delivered in time is lost; the rest of its batch is tried after it.
            for row in rows[: max(1, sent)]:
                if not self._queue or self._queue[0] is not row:
                    continue  # its run was sealed over it, and it is counted
                self._queue.popleft()
                row.reporter.waiting -= 1
                if not sent:
                    row.reporter.lose(self.name)
            self._changed()

    async def _deliver(self, lines: list[bytes]) -> int:
        """Deliver some of the lines; give how many, 0 where the first was not to be delivered in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (0 if self._failing else self._patience_s)
        pause_s = _PAUSE_S
        while True:
            sent, problem = await self._send(lines)
            if sent:
                self._failing, self._taken_at = False, loop.time()
                return sent
            left_s = deadline - loop.time()
            if left_s <= 0:
                break
            await asyncio.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, 1.0)
        if not self._failing:
            logger.warning(
                "the sink %s takes nothing: %s; effects are lost to it", self.name, problem
            )
        self._failing = True
        return 0

    async def _send(self, lines: list[bytes]) -> tuple[int, str]:
        """Try once; give how many were taken, and why not more."""
        raise NotImplementedError


class _File(_Outlet):
    """Lines appended to a file, on a thread."""

    name = "file"
    batch = _BATCH

    def __init__(self, path: Path, patience_s: float, changed: Callable[[], None]) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._part, self._rest = b"", b""
        """A line that was written in part, and what is left of it."""
        self._writing: asyncio.Future[tuple[int, str]] | None = None
        super().__init__(patience_s, changed)

    async def close(self) -> None:
        await super().close()
        if self._writing is not None:
            await asyncio.wait([self._writing])  # on its thread, whoever has stopped waiting
        if self._descriptor is not None:
            if self._rest:
                self._take_back(self._descriptor)
            os.close(self._descriptor)

    def _take_back(self, descriptor: int) -> None:
        """Take out the part of a line that was written, if nobody has written behind it."""
        with contextlib.suppress(OSError):
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            if os.fstat(descriptor).st_size == end:
                os.ftruncate(descriptor, end - (len(self._part) - len(self._rest)))

    async def _send(self, lines: list[bytes]) -> tuple[int, str]:
        self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, lines))
        return await asyncio.shield(self._writing)

    def _write(self, lines: list[bytes]) -> tuple[int, str]:
        sent = 0
        try:
            if self._descriptor is None:
                self._descriptor = _open(self._path)
                if _ends_in_line(self._path, self._descriptor):
                    # Whoever wrote it was killed, or its disk was full: no line of ours is to go on with it.
                    self._part = self._rest = b"\n"
            if self._rest:
                self._write_rest()
                # It may have been given up meanwhile; a line is whole all the same.
                sent = int(self._part is lines[0])
            for line in lines[sent:]:
                self._part = self._rest = line
                self._write_rest()
                sent += 1
        except OSError as error:
            return sent, f"{self._path}: {error.strerror or error}"
        return sent, ""

    def _write_rest(self) -> None:
        assert self._descriptor is not None
        while self._rest:
            # No buffer of ours: what is written is there for whoever reads.
            self._rest = self._rest[os.write(self._descriptor, self._rest) :]


def _open(path: Path) -> int:
    make_own_folder(path.parent, 0o755)
    # Not blocking: a pipe that nobody reads is an error, and no thread that waits for ever.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR, "a folder")
    return descriptor


def _ends_in_line(path: Path, descriptor: int) -> bool:
    """Say whether a file ends in the middle of a line."""
    seen = os.fstat(descriptor)
    if not stat.S_ISREG(seen.st_mode) or not seen.st_size:
        return False
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


class _Hook(_Outlet):
    """One POST a row."""

    name = "url"

    def __init__(self, url: str, patience_s: float, changed: Callable[[], None]) -> None:
        self._url = url
        self._client: aiohttp.ClientSession | None = None
        super().__init__(patience_s, changed)

    async def close(self) -> None:
        await super().close()
        if self._client is not None:
            await self._client.close()

    async def _send(self, lines: list[bytes]) -> tuple[int, str]:
        import aiohttp  # not for a start

        if self._client is None:
            limit = aiohttp.ClientTimeout(total=max(self._patience_s, 0.1))
            self._client = aiohttp.ClientSession(timeout=limit, trust_env=False)
        fields = {"content-type": "application/json"}
        try:
            async with self._client.post(
                self._url, data=lines[0], headers=fields, allow_redirects=False
            ) as answer:
                if 200 <= answer.status < 300:
                    return 1, ""
                return 0, f"it answered {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, str(error) or type(error).__name__


class SinkQueue:
    """The sinks of one configuration."""

    def __init__(self, sink: Sink) -> None:
        """Begin with nothing to tell; on the loop."""
        self._patience_s = sink.patience_s
        self._moved = asyncio.Event()
        self._outlets: list[_Outlet] = []
        if sink.file is not None:
            self._outlets.append(_File(sink.file, sink.patience_s, self._note_moved))
        if sink.url:
            self._outlets.append(_Hook(sink.url, sink.patience_s, self._note_moved))

    @property
    def full(self) -> bool:
        """Whether effects are to be held back."""
        return any(outlet.full for outlet in self._outlets)

    async def room(self) -> None:
        """Wait until there is room, as long as patience lasts."""
        await self._until(lambda: not self.full)

    def put(self, reporter: EffectReporter, line: bytes) -> None:
        """Tell a row to every sink; nobody waits."""
        for outlet in self._outlets:
            outlet.put(_Row(reporter, line))

    async def settle(self, reporter: EffectReporter) -> None:
        """Wait until a run's rows are delivered, as long as patience lasts; what is left then is lost, and counted."""
        await self._until(lambda: reporter.waiting == 0)
        for outlet in self._outlets:
            outlet.drop(reporter)
        reporter.note_lost()

    async def close(self) -> None:
        """Stop telling."""
        for outlet in self._outlets:
            await outlet.close()

    def _note_moved(self) -> None:
        self._moved.set()

    async def _until(self, done: Callable[[], Any]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                while not done():
                    self._moved.clear()
                    await self._moved.wait()
