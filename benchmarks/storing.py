"""How small the store keeps what agents say, and what it costs to write and to read it.

1. Each corpus goes through a store as a recording does: an intent, then the exchange with its outcome, waited for.
2. *values* are what LMDB holds of exchanges, blocks and openings; *data file* is all of the store, pages and index included.
   Both are compared with the bytes of bodies and header fields.
3. Every exchange is read back in order and compared by hash; then some are read at random, each with nothing read before;
   of three such reads of one the least counts.
4. Times are CPU of the thread that works: of the writer for packing (encode, choose a base, compress), of the reader for
   all of a read. Other work on the machine makes them larger, never smaller.
"""

import asyncio
import importlib.util
import random
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import lmdb
import traffic
from blake3 import blake3
from measure import Plan
from report import Bar, Section
from traffic import Passed

from playhead.store import Record, RunInfo, Store
from playhead.tape.codec import encode_exchange
from playhead.tape.events import Event, EventKind
from playhead.tape.model import (
    Exchange,
    Fingerprint,
    Request,
    RequestClass,
    Response,
    Seq,
    VerdictKind,
)

_CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "expand.py"
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
class _Measured:
    """What was found of one corpus."""

    exchanges: int = 0
    bytes: int = 0
    """Of bodies and header fields."""
    body_bytes: int = 0
    values: int = 0
    file: int = 0
    write_s: list[float] = field(default_factory=list)
    read_s: list[tuple[int, float]] = field(default_factory=list)
    """Size of the bodies, and time."""
    lanes_bytes: int = 0
    wrong: int = 0

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
        (*head, "read p50", "p99 ms", "lanes MB", "wrong"),
        raw={},
    )
    for name, passed in corpora(plan):
        plan.say(f"store: {name}")
        found = asyncio.run(_measure(plan, passed))
        section.rows.append(_row(name, found))
        section.bars += _bars(name, found, quick=plan.quick)
        section.raw[name] = {"ratio": found.bytes / found.values, "write_ms": found.write_ms}
    if not _CORPUS.exists():
        section.notes.append("skipped: no corpus of samples beside the project")
    section.notes.append(
        "values: all that was said against what LMDB holds of exchanges; MB of 10^6"
    )
    return [section]


def _row(name: str, found: _Measured) -> tuple[str, ...]:
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
        f"{found.lanes_bytes / 1e6:.1f}",
        str(found.wrong),
    )


def _bars(name: str, found: _Measured, *, quick: bool) -> Iterator[Bar]:
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


async def _measure(plan: Plan, passed: Iterable[Passed]) -> _Measured:
    found = _Measured()
    folder = plan.folder / "storing"
    shutil.rmtree(folder, ignore_errors=True)
    hashes: dict[tuple[str, int], bytes] = {}
    with Store.open(folder) as store:
        await _write(store, passed, found, hashes)
    found.file = (folder / "log.lmdb" / "data.mdb").stat().st_size
    found.values = _held(folder)
    with Store.open(folder, readonly=True) as store:
        for run in store.runs():
            for exchange in store.exchanges(run):
                found.wrong += hashes.pop((run.id, exchange.seq)) != hash_of(exchange)
        found.wrong += len(hashes)
        _read(store, plan.rng, found)
    shutil.rmtree(folder)
    return found


async def _write(
    store: Store, passed: Iterable[Passed], found: _Measured, hashes: dict[tuple[str, int], bytes]
) -> None:
    exchanges: Any = store._exchanges
    prepare = exchanges._prepare

    def timed(*arguments: Any) -> Any:
        began = time.thread_time()
        operation = prepare(*arguments)
        found.write_s.append(time.thread_time() - began)
        found.lanes_bytes = max(found.lanes_bytes, exchanges._lanes.size)
        return operation

    exchanges._prepare = timed

    def note(one: Passed, exchange: Exchange) -> None:
        hashes[one.run, exchange.seq] = hash_of(exchange)
        found.exchanges += 1
        found.bytes += one.size
        found.body_bytes += len(one.asked) + len(one.said)

    await record(store, passed, note)


async def record(
    store: Store, passed: Iterable[Passed], note: Callable[[Passed, Exchange], None]
) -> None:
    """Write what passed as a recording does, and seal its runs; `note` is told of each exchange."""
    runs: dict[str, RunInfo] = {}
    seqs: dict[str, int] = {}
    for one in passed:
        if one.run not in runs:
            runs[one.run] = await store.create_run(one.run, mode="record", at_ns=1)
        seq = seqs[one.run] = seqs.get(one.run, 0) + 1
        exchange = _exchange(one, seq)
        note(one, exchange)
        intent, outcome = _events(exchange)
        store.append(runs[one.run].number, intent)
        told = Record(exchange, blake3(exchange.fingerprint).digest(16), outcome)
        await store.save(runs[one.run].number, partial(_same, told))
    for run in runs.values():
        await store.seal(run, reason="measured", at_ns=2)


def _same(record: Record) -> Record:
    return record


def _read(store: Store, rng: random.Random, found: _Measured) -> None:
    """Read some exchanges at random, each as if it were the first."""
    cache = store._exchanges._values._cache
    places = [(run, seq) for run in store.runs() for seq in store.seqs(run)]
    for run, seq in rng.sample(places, min(_READS, len(places))):
        took = float("inf")
        for _ in range(_READS_EACH):
            cache.clear()
            began = time.thread_time()
            exchange = store.find_exchange(run, seq)
            took = min(took, time.thread_time() - began)
        assert exchange is not None
        size = len(exchange.request.body)
        if exchange.response is not None:
            size += len(exchange.response.body)
        found.read_s.append((size, took))


def _held(folder: Path) -> int:
    """Give what LMDB holds of exchanges, their blocks and openings, keys included."""
    held = 0
    with lmdb.open(str(folder / "log.lmdb"), max_dbs=32, readonly=True, lock=False) as environment:
        for name in (b"exchanges", b"blocks", b"openings"):
            table = environment.open_db(name, create=False)
            with environment.begin(db=table) as transaction, transaction.cursor() as cursor:
                held += sum(len(key) + len(value) for key, value in cursor)
    return held


def _exchange(one: Passed, seq: int) -> Exchange:
    rng = random.Random(f"{one.run} {seq}")
    request = Request(
        "POST", "https", one.host, 443, one.path, "HTTP/1.1", tuple(one.asked_head), one.asked
    )
    head_us = rng.randrange(300_000, 3_000_000)
    return Exchange(
        seq=Seq(seq),
        request_class=RequestClass.INFERENCE,
        verdict=VerdictKind.RECORDED,
        reason="mode record",
        request=request,
        started_ns=1_765_240_000_000_000_000 + seq * 21_600_000_000 + rng.randrange(10**9),
        end_us=head_us + rng.randrange(10_000_000),
        fingerprint=Fingerprint(blake3(one.asked).digest(16)),
        response=Response(200, b"OK", "HTTP/1.1", tuple(one.said_head), one.said, head_us),
        alpn_offers=(b"h2", b"http/1.1"),
        alpn=b"http/1.1",
    )


def _events(exchange: Exchange) -> tuple[Event, Event]:
    """Give the events that a recording writes with an exchange."""
    request, response = exchange.request, exchange.response
    assert response is not None
    asked = {
        "seq": exchange.seq,
        "method": request.method,
        "url": request.url,
        "request_class": exchange.request_class.value,
        "fingerprint": exchange.fingerprint,
        "rule": "a model call",
    }
    said = {
        "seq": exchange.seq,
        "verdict": exchange.verdict.value,
        "status": response.status,
        "complete": True,
        "bytes_in": len(response.body),
        "bytes_out": len(request.body),
        "end_us": exchange.end_us,
    }
    ended_ns = exchange.started_ns + exchange.end_us * 1000
    return (
        Event(EventKind.INTENT, exchange.started_ns, asked),
        Event(EventKind.OUTCOME, ended_ns, said),
    )


def hash_of(exchange: Exchange) -> bytes:
    """Give a hash over an exchange as it is written."""
    return blake3(encode_exchange(exchange)).digest(16)


# ---- what is measured on -----------------------------------------------------------------------


def corpora(plan: Plan) -> Iterator[tuple[str, Iterable[Passed]]]:
    """Give what is measured on: made up, and from the corpus of samples where it is there."""
    seed = plan.rng.randrange(10**6)
    for name, make in traffic.MADE.items():
        yield name, make(seed, plan.quick)
    if not plan.quick and (samples := _load_samples()) is not None:
        for name in ("long", "coding-clock", "tickets"):
            yield f"corpus {name}", _sampled(samples, name)
        recorded = ("crewai", "langsmith", "llm-anthropic", "logfire", "openllmetry", "otel")
        for name in recorded:
            yield f"corpus {name}", _sampled(samples, name)


def _load_samples() -> ModuleType | None:
    if not _CORPUS.exists():
        return None
    spec = importlib.util.spec_from_file_location("corpus_samples", _CORPUS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _sampled(samples: ModuleType, name: str) -> Iterator[Passed]:
    for run, _, meta, asked, said in samples.exchanges(name):
        heads = [_fields(meta[part]) for part in ("rq", "rs")]
        host = next((text for field, text in heads[0] if field.lower() == b"host"), b"host.example")
        yield Passed(run[:300], host.decode(), meta["path"], heads[0], asked, heads[1], said)


def _fields(told: Any) -> list[tuple[bytes, bytes]]:
    pairs = told.items() if isinstance(told, dict) else told
    return [(str(name).encode(), str(value).encode()) for name, value in pairs]
