"""Processes that each run a command once against a tape, a few at a time, and tell what came of it.

They are forked from this one, which has imported what they need. Each leads a session of its own, so that none takes the terminal from
another; what the command writes goes into files.
"""

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ... import PlayheadError
from ...tape.counted import counted
from ..errors import EngineError
from ..sandbox.kernel.syscalls import die_with_parent
from ..standard_streams import print_status

Work = Callable[["Files"], dict[str, Any]]
"""Runs in a process of its own; gives JSON types. Raises: PlayheadError."""
SILENCE_S = 60.0
"""Longest that nothing is said while something is waited for."""
_TOLD = 400
"""Characters of what a process said last that are quoted."""


class Files(NamedTuple):
    """What one process leaves behind."""

    stdout: Path
    stderr: Path
    receipt: Path


class Done(NamedTuple):
    """A process that has ended."""

    name: int
    result: dict[str, Any]
    files: Files


class Workers:
    """Runs processes, a few at a time. Use as a context manager; no process is left when it ends."""

    def __init__(self, most: int) -> None:
        """Run so many at a time."""
        self._most = most
        self._running: dict[int, tuple[int, int, Files]] = {}
        """By process id: the name, where its result comes, and its files."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="playhead-runs-")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        while self._running:
            with contextlib.suppress(KeyboardInterrupt, EngineError):
                self._wait()
        self._folder.cleanup()

    @property
    def has_room(self) -> bool:
        """Whether another may be started now."""
        return len(self._running) < self._most

    @property
    def running(self) -> int:
        """How many there are."""
        return len(self._running)

    def start(self, name: int, work: Work) -> None:
        """Start a process."""
        files = Files(*(Path(self._folder.name, f"{name}.{kind}") for kind in ("out", "err", "json")))  # fmt: skip
        reading, writing = os.pipe()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        # What is raised while Python tidies up behind a fork is lost: a Ctrl-C waits until that is over.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            pid = os.fork()
            if pid:
                self._running[pid] = name, reading, files
                os.close(writing)
            else:
                os.close(reading)
                _be_worker(work, files, writing, masked)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)

    def wait(self) -> Done:
        """Wait for one of them. Raises: EngineError, where it could not run its command."""
        done = self._wait()
        if "error" in done.result:
            raise EngineError(done.result["error"], done.result.get("hint", ""))
        return done

    def _wait(self) -> Done:
        self._say_that_it_goes_on()
        while True:
            pid, status = os.wait()
            if pid in self._running:
                break
        name, reading, files = self._running.pop(pid)
        with open(reading, "rb") as file:
            told = file.read()
        if told:
            return Done(name, json.loads(told), files)
        code = os.waitstatus_to_exitcode(status)
        last = files.stderr.read_text("utf-8", "replace")[-_TOLD:] if files.stderr.exists() else ""
        raise EngineError(f"a run ended with {code} before it had a result", " ".join(last.split()))

    def _say_that_it_goes_on(self) -> None:
        """Wait until one has something to tell, and say now and then how long that has taken."""
        since, pipes = time.monotonic(), [reading for _, reading, _ in self._running.values()]
        while pipes and not select.select(pipes, (), (), SILENCE_S)[0]:
            print_status(say_waiting(counted(len(pipes), "run"), since))

    def stop(self, name: int) -> None:
        """Have a process end its command."""
        for pid, (known, _, _) in self._running.items():
            if known == name:
                os.kill(pid, signal.SIGTERM)


def say_waiting(what: str, since: float) -> str:
    """Say that something goes on.

    since: by `time.monotonic()`.
    """
    return f"  waiting for {what}: {round(time.monotonic() - since)} s; it has no time limit"


def _be_worker(work: Work, files: Files, writing: int, masked: Iterable[int]) -> None:
    """Do the work, tell its result, and end. Never returns.

    masked: signals that are blocked in it.
    """
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        with contextlib.suppress(OSError, AttributeError):  # not on every system
            die_with_parent(signal.SIGTERM)
        os.setsid()
        _redirect(files)
        try:
            result = work(files)
        except PlayheadError as error:
            result = {"error": str(error), "hint": error.hint}
        with open(writing, "w", encoding="utf-8") as file:
            json.dump(result, file)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(code)


def _redirect(files: Files) -> None:
    """Read nothing, and write into files."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, path in ((1, files.stdout), (2, files.stderr)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.close(nothing)


def run_all(workers: Workers, work: Iterable[tuple[int, Work]]) -> Iterator[Done]:
    """Run all of some work, as many at a time as there may be; give each as it ends."""
    for name, one in work:
        workers.start(name, one)
        while (
            not workers.has_room
        ):  # before the next is taken: it is made by what the ended have used
            yield workers.wait()
    while workers.running:
        yield workers.wait()
