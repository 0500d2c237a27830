"""Run probe programs in parallel, each in its own folder and with a time limit.

`run_probes` runs them here. In a sandbox the same is done by `main`, which is told by a file and tells by another.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

_MOST_OUTPUT = 64 * 1024
_MOST_LEFT = 4096


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """A program and all it is given."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    """Text by name, to be put into the folder it is run in."""
    left: str = ""
    """Pattern of the files that it is to leave there and that tell something, by name or by what is in them."""
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it went."""

    exit_code: int | None
    """None where it was killed for its time."""
    output: str
    """All it said, on both."""
    left: str = ""
    """Names and beginnings of the files that it left."""
    out_of_time: bool = False
    """It was not run, or not to its end, since the time for all of them was over."""


async def run_probes(
    probe_runs: Sequence[ProbeRun],
    *,
    parallel: int,
    done: Callable[[], object] = lambda: None,
    within_s: float = math.inf,
) -> list[Outcome]:
    """Run programs, so many at once; give how they went, in their order.

    done: called as each ends.
    within_s: time for all of them.
    """
    slots = asyncio.Semaphore(parallel)
    until = time.monotonic() + within_s

    async def one(given: ProbeRun) -> Outcome:
        async with slots:
            try:
                return await _run_until(given, until)
            finally:
                done()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(given)) for given in probe_runs]
    return [task.result() for task in tasks]


def save_probe_runs(probe_runs: Iterable[ProbeRun], path: Path) -> None:
    """Write programs down for `main`."""
    path.write_text(json.dumps([asdict(given) for given in probe_runs]))


def load_outcomes(path: Path) -> list[Outcome]:
    """Read what `main` wrote. Raises: OSError; ValueError, where it did not come to its end."""
    return [Outcome(**row) for row in json.loads(path.read_text())]


def count_ended(path: Path) -> int:
    """Say how many programs of `main` have ended by now."""
    try:
        return path.with_suffix(".ended").stat().st_size
    except OSError:
        return 0


def main(words: Sequence[str]) -> int:
    """Run what a file says, so many at once, and write how that went into another."""
    source, target, parallel, within_s = words
    probe_runs = [ProbeRun(**row) for row in json.loads(Path(source).read_text())]
    with Path(target).with_suffix(".ended").open("wb", buffering=0) as ended:
        work = run_probes(
            probe_runs,
            parallel=int(parallel),
            done=lambda: ended.write(b"."),
            within_s=float(within_s),
        )
        outcomes = asyncio.run(work)
    Path(target).write_text(json.dumps([asdict(outcome) for outcome in outcomes]))
    return 0


async def _run_until(given: ProbeRun, until: float) -> Outcome:
    left_s = until - time.monotonic()
    if left_s <= 0:
        return Outcome(None, "", out_of_time=True)
    outcome = await _run(replace(given, timeout_s=min(given.timeout_s, left_s)))
    cut = outcome.exit_code is None and given.timeout_s > left_s
    return replace(outcome, out_of_time=cut)


async def _run(given: ProbeRun) -> Outcome:
    with tempfile.TemporaryDirectory(
        prefix="playhead-doctor-", ignore_cleanup_errors=True
    ) as folder:
        _lay_out(Path(folder), given.files)
        try:
            process = await asyncio.create_subprocess_exec(
                *given.command,
                env=dict(given.environ),  # uvloop takes no other mapping
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,  # so that what it starts ends with it
            )
        except OSError as error:
            return Outcome(127, str(error))
        output = bytearray()
        try:
            async with asyncio.timeout(given.timeout_s):
                assert process.stdout is not None
                while data := await process.stdout.read(_MOST_OUTPUT):
                    output += data[: _MOST_OUTPUT - len(output)]
                exit_code: int | None = await process.wait()
        except TimeoutError:
            exit_code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        return Outcome(exit_code, output.decode(errors="replace"), _left(Path(folder), given.left))


def _lay_out(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def _left(folder: Path, pattern: str) -> str:
    texts = []
    for path in sorted(folder.glob(pattern)) if pattern else []:
        texts.append(str(path.relative_to(folder)))
        if path.is_file():
            with path.open("rb") as file:
                texts.append(file.read(_MOST_LEFT).decode(errors="replace"))
    return "\n".join(texts)
