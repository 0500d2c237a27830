"""How small an archive is, and how long it takes to get at what lies in it.

1. Each corpus is recorded into a store, run by run, and all of it is archived into a folder.
2. The ratio is that of the bytes of bodies and header fields to all files of the archive: index and events, too.
3. Some steps are read at random, each with the archive opened anew. Then every run is restored, and each exchange is
   compared by hash with what was recorded.
4. Times of reading are those of the clock on the wall; of archiving, CPU of the process.
"""

import asyncio
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from corpora import Recorded, corpora, hash_of, record, skipped
from measure import Plan
from report import Bar, Section
from traffic import Passed

from playhead.config import ArchivePlace
from playhead.store import Store
from playhead.store.archive.storage import Place
from playhead.timeline.archiving.move_runs import archive_runs, find_step, restore

_READS = 30
_STEPS = 300
_STEP_S, _RESTORE_S = 1.0, 5.0
_RATIO = {
    "long run": 85.0,
    "tickets": 45.0,
    "repair runs": 45.0,
    "corpus long": 85.0,
    "corpus tickets": 45.0,
}


@dataclass(slots=True)
class _Archived(Recorded):
    """What was found of one corpus."""

    files: int = 0
    """Bytes of all files of the archive."""
    packing_s: float = 0.0
    steps_s: list[float] = field(default_factory=list)
    restores: list[tuple[int, float]] = field(default_factory=list)
    """Steps of a run, and time."""

    @property
    def step_s(self) -> float:
        """Time that one read in twenty exceeds."""
        times = sorted(self.steps_s)
        return times[min(len(times) - 1, int(0.95 * len(times)))]

    @property
    def restore_s(self) -> float:
        """Longest restore; of a run longer than that, for so many of its steps."""
        return max(took * min(1.0, _STEPS / steps) for steps, took in self.restores)


def archiving(plan: Plan) -> list[Section]:
    """Measure the archive on the corpora that the store is measured on."""
    section = Section(
        "What an archive makes of agents' traffic",
        (
            "traffic",
            "runs",
            "exchanges",
            "MB",
            "archive",
            "pack s",
            "step p95 ms",
            "restore s",
            "wrong",
        ),
        raw={},
    )
    for name, passed in corpora(plan):
        plan.say(f"archive: {name}")
        found = _measure(plan, passed)
        section.rows.append(
            (
                name,
                f"{len(found.restores):,}",
                f"{found.exchanges:,}",
                f"{found.bytes / 1e6:,.1f}",
                f"{found.bytes / found.files:.1f}x",
                f"{found.packing_s:.1f}",
                f"{found.step_s * 1e3:.0f}",
                f"{found.restore_s:.2f}",
                str(found.wrong),
            )
        )
        section.facts[name] = {
            "archive": f"{found.bytes / found.files:.0f}",
            "archived step p95, ms": f"{found.step_s * 1e3:.0f}",
            f"restore of {_STEPS} steps, s": f"{found.restore_s:.1f}",
        }
        section.raw[name] = {"ratio": found.bytes / found.files, "step_s": found.steps_s}
        section.bars.append(Bar(f"{name}: exchanges that came back otherwise", 0, found.wrong, ""))
        section.bars.append(Bar(f"{name}: one archived step, p95", _STEP_S, found.step_s, "s"))
        section.bars.append(
            Bar(f"{name}: restore of {_STEPS} steps", _RESTORE_S, found.restore_s, "s")
        )
        if name in _RATIO and not plan.quick:
            ratio = found.bytes / found.files
            section.bars.append(Bar(f"{name}: archive", _RATIO[name], ratio, least=True))
    section.notes += skipped()
    section.notes.append(f"restore: the longest of all runs, of longer ones {_STEPS} steps")
    return [section]


def _measure(plan: Plan, passed: Iterable[Passed]) -> _Archived:
    found = _Archived()
    folder = plan.folder / "archiving"
    shutil.rmtree(folder, ignore_errors=True)
    place = Place(ArchivePlace(folder=folder / "archive"))
    with Store.open(folder / "store") as store:
        asyncio.run(record(store, passed, found.note))
        began = time.process_time()
        moved = archive_runs(store, place, store.runs.all(), "bench", time.time_ns)
        found.packing_s = time.process_time() - began
        assert not moved.refused, moved.refused
        found.files = _size(folder / "archive")
        _read(store, place, plan, found)
        for run in store.runs.all():
            began = time.perf_counter()
            restore(store, run, place, time.time_ns())
            found.restores.append((run.exchanges, time.perf_counter() - began))
        found.compare(store)
    shutil.rmtree(folder)
    return found


def _read(store: Store, place: Place, plan: Plan, found: _Archived) -> None:
    steps = [(run, seq) for run, seqs in found.hashes.items() for seq in seqs]
    where = {run.id: run.archived for run in store.runs.all()}
    for run, seq in plan.rng.sample(steps, min(_READS, len(steps))):
        archived = where[run]
        assert archived is not None
        began = time.perf_counter()
        step = find_step(archived, place, seq)
        found.steps_s.append(time.perf_counter() - began)
        assert step is not None
        found.wrong += hash_of(step.exchange) != found.hashes[run][seq]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
