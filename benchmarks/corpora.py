"""What the parts of the store are measured on, and how it gets there; what comes back is held against it.

Made-up traffic of agents, and the samples beside the project where they are there.
"""

import importlib.util
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import traffic
from blake3 import blake3
from measure import Plan
from traffic import Passed

from playhead.store import Record, RunInfo, Store
from playhead.tape.exchange import (
    Alpn,
    Exchange,
    Fingerprint,
    Request,
    RequestClass,
    Response,
    Seq,
    VerdictKind,
)
from playhead.tape.records.codec import encode_exchange
from playhead.tape.records.events import Event, EventKind

_RECORDED = ("crewai", "langsmith", "llm-anthropic", "logfire", "openllmetry", "otel")
_CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "expand.py"


@dataclass(slots=True)
class Recorded:
    """What was recorded of one corpus, and how much of it came back otherwise."""

    exchanges: int = 0
    bytes: int = 0
    """Of bodies and header fields."""
    body_bytes: int = 0
    hashes: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """By run and seq."""
    wrong: int = 0

    def note(self, one: Passed, exchange: Exchange) -> None:
        """Take in an exchange that is being recorded."""
        self.hashes.setdefault(one.run, {})[exchange.seq] = hash_of(exchange)
        self.exchanges += 1
        self.bytes += one.size
        self.body_bytes += len(one.asked) + len(one.said)

    def compare(self, store: Store, names: Iterable[str] | None = None) -> int:
        """Count the exchanges that a store does not give back as they were recorded; give how many.

        names: of the runs; all where they are not given.
        """
        wrong = 0
        for name in self.hashes if names is None else names:
            left = dict(self.hashes[name])
            run = store.runs.find(name)
            for exchange in store.exchanges.all(run) if run is not None else ():
                wrong += left.pop(exchange.seq, None) != hash_of(exchange)
            wrong += len(left)
        self.wrong += wrong
        return wrong


def corpora(plan: Plan) -> Iterator[tuple[str, Iterable[Passed]]]:
    """Give what is measured on: made up, and from the corpus of samples where it is there."""
    seed = plan.rng.randrange(10**6)
    for name, make in traffic.MADE.items():
        yield name, make(seed, plan.quick)
    if not plan.quick and (samples := _load_samples()) is not None:
        for name in ("long", "coding-clock", "tickets"):
            yield f"corpus {name}", _sampled(samples, name)
        for name in _RECORDED:
            yield f"corpus {name}", _sampled(samples, name)


def samples() -> Iterator[Passed]:
    """Give what is in the corpus of samples that was recorded, as it was; nothing where there is no corpus."""
    module = _load_samples()
    for name in _RECORDED if module is not None else ():
        assert module is not None
        yield from _sampled(module, name)


def skipped() -> list[str]:
    """Say what there is nothing to measure on."""
    return [] if _CORPUS.exists() else ["skipped: no corpus of samples beside the project"]


async def record(
    store: Store, passed: Iterable[Passed], note: Callable[[Passed, Exchange], None]
) -> None:
    """Write what passed as a recording does, and seal its runs; `note` is told of each exchange."""
    runs: dict[str, RunInfo] = {}
    seqs: dict[str, int] = {}
    for one in passed:
        if one.run not in runs:
            runs[one.run] = await store.runs.create(one.run, mode="record", at_ns=1)
        seq = seqs[one.run] = seqs.get(one.run, 0) + 1
        exchange = _exchange(one, seq)
        note(one, exchange)
        intent, outcome = _events(exchange)
        store.events.append(runs[one.run].number, intent)
        told = Record(exchange, blake3(exchange.fingerprint).digest(16), outcome)
        await store.exchanges.save(runs[one.run].number, partial(_same, told))
    for run in runs.values():
        await store.runs.seal(run, reason="measured", at_ns=2)


def _same(record: Record) -> Record:
    return record


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
        alpn=Alpn((b"h2", b"http/1.1"), b"http/1.1"),
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
