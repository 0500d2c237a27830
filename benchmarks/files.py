"""What the working folder costs: looking at it, an overlay, savepoints and restoring, on a folder of 10,000 files with a repository.

    uv run python benchmarks/files.py [--files 10000] [--savepoints 100] [--rounds 5]

Wall time is given beside CPU time, which says more on a machine that is not idle. Ends with 1 when a bar was missed
by both. Bars: a savepoint 50 ms (after 50 files were changed), a restore 2 s and equal, an overlay 30 ms more than nothing, `git status`
in a fresh overlay at most twice as long as in the folder.
"""

import argparse
import contextlib
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from playhead.config import Config, override
from playhead.proxy.folder.command_folders import Area
from playhead.proxy.folder.copying import copy_folder
from playhead.proxy.folder.list_folder import look
from playhead.proxy.folder.overlay_support import (
    command_words,
    find_places,
    make_room,
    overlay_rows,
    try_overlay,
)
from playhead.proxy.folder.recording import FolderRecording
from playhead.proxy.folder.savepoints import Savepoints
from playhead.proxy.looking_back.working_folder_files import restore_folder
from playhead.store import Store
from playhead.tests.support.folders import snapshot

_CHANGED = 50
_RUN = 1


def _used() -> float:
    """Give the CPU time of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Timer:
    """Times of one thing, in milliseconds: wall, and CPU with that of processes that were waited for."""

    def __init__(self, name: str, bar_ms: float | None = None) -> None:
        self.name = name
        self.bar_ms = bar_ms
        self.wall_ms: list[float] = []
        self.cpu_ms: list[float] = []

    @contextlib.contextmanager
    def once(self) -> Iterator[None]:
        """Time it once more."""
        wall, cpu = time.perf_counter(), _used()
        yield
        self.cpu_ms.append((_used() - cpu) * 1000)
        self.wall_ms.append((time.perf_counter() - wall) * 1000)

    def show(self) -> bool:
        """Print it; say whether its bar was met by one of the two medians."""
        wall, cpu = statistics.median(self.wall_ms), statistics.median(self.cpu_ms)
        bar = "" if self.bar_ms is None else f"   bar {self.bar_ms:g} ms"
        print(f"{self.name:44} {wall:9.1f} {max(self.wall_ms):9.1f} {cpu:9.1f}{bar}", flush=True)
        return self.bar_ms is None or min(wall, cpu) <= self.bar_ms


def make_folder(folder: Path, count: int, chance: random.Random) -> None:
    """Make a repository with so many files of 100 to 5,000 bytes."""
    for at in range(count):
        place = folder / f"d{at % 97}" / f"s{at % 7}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{at}.py").write_bytes(chance.randbytes(chance.randint(50, 2500)).hex().encode())
    git = ["git", "-c", "user.name=b", "-c", "user.email=b@example.com", "-c", "gc.auto=0"]
    for words in (
        ["init", "-q"],
        ["config", "gc.auto", "0"],
        ["add", "-A"],
        ["commit", "-qm", "1"],
    ):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)


def measure_looks(folder: Path, rounds: int) -> list[Timer]:
    """Time a first look and one that knows an earlier one."""
    first, again = Timer("look, nothing known"), Timer("look, all known")
    for _ in range(rounds):
        with first.once():
            found = look(str(folder))
        with again.once():
            look(str(folder), known=found.entries)
    return [first, again]


def measure_overlay(folder: Path, place: str, rounds: int) -> list[Timer]:
    """Time the trial of an overlay, a command on one and without, and git status in both."""
    tried, bare = Timer("an overlay is tried"), Timer("`true`")
    on, row = Timer("`true` on an overlay"), Timer("more than without it", 30.0)
    direct, covered = Timer("git status"), Timer("git status, first of an overlay")
    for _ in range(rounds):
        with tried.once():
            assert try_overlay(str(folder), place, of_user=True) is None
        with bare.once():
            subprocess.run(["true"], check=True)
        with direct.once():
            subprocess.run(["git", "status"], cwd=folder, check=True, capture_output=True)
        for timer, words in ((on, ["true"]), (covered, ["git", "status"])):
            with make_room(place) as room, timer.once():
                rows = overlay_rows(str(folder), room)
                words = [*command_words(rows, [room], of_user=True), *words]
                subprocess.run(words, cwd=folder, check=True, capture_output=True)
        row.wall_ms.append(on.wall_ms[-1] - bare.wall_ms[-1])
        row.cpu_ms.append(on.cpu_ms[-1] - bare.cpu_ms[-1])
    # By CPU, which a busy machine leaves alone.
    covered.bar_ms = 2 * statistics.median(direct.cpu_ms) + statistics.median(row.cpu_ms)
    return [tried, bare, on, row, direct, covered]


def measure_copies(folder: Path, place: str, rounds: int) -> list[Timer]:
    """Time copies of small folders."""
    found = []
    for count in (200, 2000):
        timer = Timer(f"a copy of {count} files")
        with make_room(place) as room:
            source = Path(room, "source")
            for at, file in enumerate(sorted(folder.glob("d*/s*/*.py"))[:count]):
                to = source / str(at % 20) / file.name
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(file.read_bytes())
            for at in range(rounds):
                target = Path(room, f"copy{at}")
                target.mkdir()
                with timer.once():
                    copy_folder(str(source), str(target))
        found.append(timer)
    return found


def measure_savepoints(
    folder: Path, store: Store, config: Config, count: int, chance: random.Random
) -> tuple[list[Timer], bool]:
    """Time savepoints after changes, and restores of some; say whether each was equal."""
    saved, point = Timer("contents saved, the first time"), Timer("a savepoint", 50.0)
    back = Timer("a restore of any savepoint", 2000.0)
    recording = FolderRecording(store, Area(str(folder)), config, lambda data: data, frozenset())
    with saved.once():
        recording.begin()
    points = Savepoints(recording, store)
    files = sorted(folder.glob("d*/s*/*.py"))
    seen = {}
    for seq in range(1, count + 1):
        for file in chance.sample(files, _CHANGED):
            file.write_bytes(chance.randbytes(500))
        if seq % (count // 4 or 1) == 0:
            seen[seq] = snapshot(folder)
        with point.once():
            points.take(_RUN, seq)
    equal = True
    run = store.runs.get("r")
    for seq in chance.sample(sorted(seen), len(seen)):
        target = store.folders.find(run, seq)
        assert target is not None
        with back.once():
            restore_folder(config, store, run, target, folder, force=False)
        equal = equal and snapshot(folder) == seen[seq]
    return [saved, point, back], equal


async def make_run(store: Store) -> None:
    """Make the run that savepoints are of."""
    assert (await store.runs.create("r", mode="record", at_ns=1)).number == _RUN


def main() -> int:
    """Measure; print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--savepoints", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="playhead-files-") as place:
        folder = Path(place, "work")
        folder.mkdir()
        make_folder(folder, asked.files, chance)
        print(f"{asked.files} files, load {os.getloadavg()[0]:.1f}")
        print(f"{'':44} {'median':>9} {'most':>9} {'CPU':>9}  ms")
        met = _measure(folder, Path(place, "store"), asked, chance)
    return 0 if met else 1


def _measure(
    folder: Path, store_folder: Path, asked: argparse.Namespace, chance: random.Random
) -> bool:
    import asyncio

    met = []
    layers = next(iter(find_places(store_folder, [str(folder)])))
    steps: tuple[Callable[[], list[Timer]], ...] = (
        lambda: measure_looks(folder, asked.rounds),
        lambda: measure_overlay(folder, layers, asked.rounds),
        lambda: measure_copies(folder, layers, asked.rounds),
    )
    for step in steps:
        met += [timer.show() for timer in step()]
    config = override(Config(), {"store": str(store_folder), "transaction": "true"})
    with Store.open(store_folder) as store:
        asyncio.run(make_run(store))
        timers, equal = measure_savepoints(folder, store, config, asked.savepoints, chance)
        met += [timer.show() for timer in timers]
    print(f"restored folders were {'equal' if equal else 'NOT EQUAL'}")
    return all(met) and equal


if __name__ == "__main__":
    sys.exit(main())
