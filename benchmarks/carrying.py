"""Whether every byte comes back: from the store, from an archive, from a portable file, and after other runs were deleted.

1. Each corpus is recorded into a store, run by run, and read back (*hot*).
2. Every run is exported into one portable file and imported into another store (*imported*). The ratio is that of the bytes
   of bodies and header fields to all these files.
3. Every run is archived and restored (*restored*).
4. Every other run is deleted, the space of body files and pages given back, and the rest read again (*after deletes*).
5. Each exchange is compared by hash with what was recorded.
"""

import asyncio
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from corpora import Recorded, corpora, record, skipped
from measure import Plan
from report import Bar, Section
from traffic import Passed

from playhead.config import ArchivePlace
from playhead.store import Store, compact
from playhead.store.archive.storage import Place
from playhead.tape.records.tape_file import LIMIT_BYTES
from playhead.timeline.archiving.move_runs import archive_runs, restore
from playhead.timeline.formats.tape_file import export_tape, import_tape

_WAYS = ("hot", "imported", "restored", "after deletes")
_READ_BYTES = 1 << 20


@dataclass(slots=True)
class _Carried(Recorded):
    """What was found of one corpus."""

    files: int = 0
    """Bytes of all portable files."""
    export_s: float = 0.0
    import_s: float = 0.0
    ways: dict[str, int] = field(default_factory=dict)
    """Exchanges that came back otherwise, by the way they came."""


def carrying(plan: Plan) -> list[Section]:
    """Take the corpora that the store is measured on every way there is, and compare."""
    section = Section(
        "Whether every byte comes back: exchanges that came back otherwise",
        ("traffic", "runs", "exchanges", "MB", *_WAYS, "tape file", "export s", "import s"),
        raw={},
    )
    for name, passed in corpora(plan):
        plan.say(f"carry: {name}")
        found = _measure(plan, passed)
        ratio = found.bytes / found.files
        section.rows.append(
            (
                name,
                f"{len(found.hashes):,}",
                f"{found.exchanges:,}",
                f"{found.bytes / 1e6:,.1f}",
                *(str(found.ways[way]) for way in _WAYS),
                f"{ratio:.1f}x",
                f"{found.export_s:.1f}",
                f"{found.import_s:.1f}",
            )
        )
        whole = 100 * (1 - found.wrong / (found.exchanges * len(_WAYS)))
        section.facts[name] = {"tape file": f"{ratio:.0f}", "byte-exact": f"{whole:.4g} %"}
        section.raw[name] = {"ratio": ratio, "wrong": found.ways}
        section.bars.append(Bar(f"{name}: byte-exact every way", 100, whole, "%", least=True))
    section.notes += skipped()
    section.notes.append("seconds: CPU of the process")
    return [section]


def _measure(plan: Plan, passed: Iterable[Passed]) -> _Carried:
    found = _Carried()
    folder = plan.folder / "carrying"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with Store.open(folder / "store") as store:
        asyncio.run(record(store, passed, found.note))
        found.ways["hot"] = found.compare(store)
        _carry(store, folder, found)
        _archive(store, folder, found)
        store.removal.delete(store.runs.all()[::2])
        store.removal.remove_unneeded_files(time.time() + 1)
    compact(folder / "store")
    with Store.open(folder / "store", readonly=True) as store:
        left = [run.id for run in store.runs.all()]
        # Those that are not there are not to be: they count for as many as were right.
        found.ways["after deletes"] = found.compare(store, left)
    shutil.rmtree(folder)
    return found


def _carry(store: Store, folder: Path, found: _Carried) -> None:
    """Export each run, and import it into another store."""
    file = folder / "tape"
    with Store.open(folder / "other") as other:
        for run in store.runs.all():
            began = time.process_time()
            with file.open("wb") as out:
                export_tape(store, run, out.write, _nobody)
            found.export_s += time.process_time() - began
            found.files += file.stat().st_size
            began = time.process_time()
            import_tape(other, lambda: _pieces(file), LIMIT_BYTES, _nobody)
            found.import_s += time.process_time() - began
        found.ways["imported"] = found.compare(other)
    shutil.rmtree(folder / "other")


def _archive(store: Store, folder: Path, found: _Carried) -> None:
    """Archive all runs, and restore them."""
    place = Place(ArchivePlace(folder=folder / "archive"))
    moved = archive_runs(store, place, store.runs.all(), "bench", time.time_ns)
    assert not moved.refused, moved.refused
    for run in store.runs.all():
        restore(store, run, place, time.time_ns())
    found.ways["restored"] = found.compare(store)


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(_READ_BYTES):
            yield piece


def _nobody(_done: int, _of: int) -> None:
    """Tell nobody how far it is."""
