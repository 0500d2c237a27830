"""How small the store keeps what agents say, and what it costs to write and to read it.

1. Each corpus goes through a store as a recording does: an intent, then the exchange with its outcome, waited for.
2. *values* are what LMDB holds of exchanges, blocks and shared prefixes; *data file* is all of the store, pages and index included.
   Both are compared with the bytes of bodies and header fields.
3. Every exchange is read back in order and compared by hash; then some are read at random, each with nothing read before;
   of three such reads of one the least counts.
4. Times are CPU of the thread that works: of the writer for packing (encode, choose a base, compress), of the reader for
   all of a read. Other work on the machine makes them larger, never smaller.
"""

import asyncio
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmdb
from corpora import Recorded, corpora, record, skipped
from measure import Plan
from report import Bar, Section
from traffic import Passed

from playhead.store import Store

_READS = 300
_READS_EACH = 3
_SMALL_KB = 100
_WRITE_MS = 0.25
_SMALL_MS, _LARGE_MS = 1.5, 6.0
_VALUES = {
    "long run": 220.0,
    "clock": 200.0,
    "tickets": 42.0,
    "four agents": 40.0,
    "screenshots": 11.0,
    "corpus long": 220.0,
    "corpus coding-clock": 200.0,
    "corpus tickets": 42.0,
}
"""Least ratio of values, by corpus."""
_FILE = {"long run": 150.0, "corpus long": 150.0}
"""Least ratio of the data file."""


@dataclass(slots=True)
class _Stored(Recorded):
    """What was found of one corpus."""

    values: int = 0
    file: int = 0
    write_s: list[float] = field(default_factory=list)
    read_s: list[tuple[int, float]] = field(default_factory=list)
    """Size of the bodies, and time."""
    chains_bytes: int = 0

    @property
    def write_ms(self) -> float:
        """CPU of packing 60 KB of bodies."""
        return sum(self.write_s) * 1e3 * 60_000 / self.body_bytes

    def read_ms(self, part: float, of: Callable[[int], bool] = lambda _: True) -> float | None:
        """CPU of a read that so large a part of all reads does not exceed."""
        times = sorted(took for size, took in self.read_s if of(size))
        return times[min(len(times) - 1, int(part * len(times)))] * 1e3 if times else None


def storing(plan: Plan) -> list[Section]:
    """Measure the store on traffic that is made up, and on the corpus of samples where it is there."""
    head = ("traffic", "exchanges", "MB", "KB each", "values", "data file", "pack ms/60 KB")
    section = Section(
        "What the store makes of agents' traffic",
        (*head, "read p50", "p99 ms", "chains MB", "wrong"),
        raw={},
    )
    for name, passed in corpora(plan):
        plan.say(f"store: {name}")
        found = asyncio.run(_measure(plan, passed))
        section.rows.append(_row(name, found))
        section.bars += _bars(name, found, quick=plan.quick)
        section.facts[name] = {
            "sent, MB": f"{found.bytes / 1e6:,.0f}",
            "values": f"{found.bytes / found.values:.0f}",
            "data file": f"{found.bytes / found.file:.0f}",
            "pack 60 KB, ms": f"{found.write_ms:.2f}",
            "read p99, ms": f"{found.read_ms(0.99):.1f}",
        }
        section.raw[name] = {"ratio": found.bytes / found.values, "write_ms": found.write_ms}
    section.notes += skipped()
    section.notes.append(
        "values: all that was said against what LMDB holds of exchanges; MB of 10^6"
    )
    return [section]


def _row(name: str, found: _Stored) -> tuple[str, ...]:
    return (
        name,
        f"{found.exchanges:,}",
        f"{found.bytes / 1e6:,.1f}",
        f"{found.bytes / found.exchanges / 1e3:,.0f}",
        f"{found.bytes / found.values:.1f}x",
        f"{found.bytes / found.file:.1f}x",
        f"{found.write_ms:.3f}",
        f"{found.read_ms(0.5):.2f}",
        f"{found.read_ms(0.99):.2f}",
        f"{found.chains_bytes / 1e6:.1f}",
        str(found.wrong),
    )


def _bars(name: str, found: _Stored, *, quick: bool) -> Iterator[Bar]:
    yield Bar(f"{name}: exchanges that came back otherwise", 0, found.wrong, "")
    if not quick:
        if name in _VALUES:
            ratio = found.bytes / found.values
            yield Bar(f"{name}: values", _VALUES[name], ratio, least=True)
        if name in _FILE:
            yield Bar(f"{name}: data file", _FILE[name], found.bytes / found.file, least=True)
    if found.body_bytes / found.exchanges > 50_000:
        yield Bar(f"{name}: packing 60 KB", _WRITE_MS, found.write_ms, "ms")
    small = found.read_ms(0.99, lambda size: size <= _SMALL_KB * 1000)
    if small is not None:
        yield Bar(f"{name}: read to {_SMALL_KB} KB, p99", _SMALL_MS, small, "ms")
    large = found.read_ms(0.99, lambda size: _SMALL_KB * 1000 < size <= 650_000)
    if large is not None:
        yield Bar(f"{name}: read to 0.65 MB, p99", _LARGE_MS, large, "ms")


async def _measure(plan: Plan, passed: Iterable[Passed]) -> _Stored:
    found = _Stored()
    folder = plan.folder / "storing"
    shutil.rmtree(folder, ignore_errors=True)
    with Store.open(folder) as store:
        await _write(store, passed, found)
    found.file = (folder / "log.lmdb" / "data.mdb").stat().st_size
    found.values = _held(folder)
    with Store.open(folder, readonly=True) as store:
        found.compare(store)
        _read(store, plan.rng, found)
    shutil.rmtree(folder)
    return found


async def _write(store: Store, passed: Iterable[Passed], found: _Stored) -> None:
    exchanges: Any = store.exchanges
    prepare = exchanges._prepare

    def timed(*arguments: Any) -> Any:
        began = time.thread_time()
        operation = prepare(*arguments)
        found.write_s.append(time.thread_time() - began)
        found.chains_bytes = max(found.chains_bytes, exchanges._chains.size)
        return operation

    exchanges._prepare = timed

    await record(store, passed, found.note)


def _read(store: Store, rng: random.Random, found: _Stored) -> None:
    """Read some exchanges at random, each as if it were the first."""
    cache = store.exchanges._records._cache
    places = [(run, seq) for run in store.runs.all() for seq in store.exchanges.seqs(run)]
    for run, seq in rng.sample(places, min(_READS, len(places))):
        took = float("inf")
        for _ in range(_READS_EACH):
            cache.clear()
            began = time.thread_time()
            exchange = store.exchanges.find(run, seq)
            took = min(took, time.thread_time() - began)
        assert exchange is not None
        size = len(exchange.request.body)
        if exchange.response is not None:
            size += len(exchange.response.body)
        found.read_s.append((size, took))


def _held(folder: Path) -> int:
    """Give what LMDB holds of exchanges, their blocks and shared prefixes, keys included."""
    held = 0
    with lmdb.open(str(folder / "log.lmdb"), max_dbs=32, readonly=True, lock=False) as environment:
        for name in (b"exchanges", b"blocks", b"openings"):
            table = environment.open_db(name, create=False)
            with environment.begin(db=table) as transaction, transaction.cursor() as cursor:
                held += sum(len(key) + len(value) for key, value in cursor)
    return held
