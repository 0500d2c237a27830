"""How long it takes to delete 100 runs, and whether the space they took is used again.

1. 200 tickets are recorded, then 100 of them deleted at once, as `playhead gc` does it: that time, by the clock on the wall.
2. As many are recorded again: the database's file is to be hardly larger than before.
3. Every run that stayed is compared by hash with what was recorded.
"""

import asyncio
import shutil
import time

from corpora import Recorded, record
from measure import Plan
from report import Bar, Section, spread
from traffic import tickets

from playhead.store import Store

_RUNS = 100
_DELETE_MS = 50.0
_GROWTH = 1.1


def deleting(plan: Plan) -> list[Section]:
    """Measure the deletion of 100 runs, some times over."""
    times, growths, wrong, rows = [], [], 0, 0
    for turn in range(plan.rounds):
        plan.say(f"delete, round {turn + 1} of {plan.rounds}")
        took, rows, growth, bad = _measure(plan, turn)
        times.append(took * 1e3)
        growths.append(growth)
        wrong += bad
    middle, grown = sorted(times)[len(times) // 2], max(growths)
    section = Section(
        f"Deleting {_RUNS} runs",
        ("runs", "rows", "ms", "file after as many again"),
        [(str(_RUNS), f"{rows:,}", spread(times, 1), spread(growths))],
        raw={"ms": times, "growth": growths},
    )
    section.bars = [
        Bar(f"deleting {_RUNS} runs", _DELETE_MS, middle, "ms"),
        Bar("file after as many were recorded again", _GROWTH, grown),
        Bar("exchanges of other runs that came back otherwise", 0, wrong, ""),
    ]
    section.remarks.append(
        f"{_RUNS} of 200 tickets ({rows:,} rows) are deleted in {middle:.0f} ms."
    )
    return [section]


def _measure(plan: Plan, turn: int) -> tuple[float, int, float, int]:
    """Give the seconds that it took, the rows that went, the growth of the file, and what came back otherwise."""
    folder = plan.folder / "deleting"
    shutil.rmtree(folder, ignore_errors=True)
    file = folder / "log.lmdb" / "data.mdb"
    found = Recorded()
    with Store.open(folder) as store:
        asyncio.run(record(store, tickets(turn, False), found.note))
        before = file.stat().st_size
        gone = store.runs.all()[:_RUNS]
        began = time.perf_counter()
        rows = store.removal.delete(gone)
        took = time.perf_counter() - began
        names = {run.id for run in gone}
        for name in names:
            del found.hashes[name]
        again = (one for one in tickets(turn + 1000, False) if one.run in names)
        asyncio.run(record(store, again, found.note))
        after = file.stat().st_size
        found.compare(store)
    shutil.rmtree(folder)
    return took, rows, after / before, found.wrong
