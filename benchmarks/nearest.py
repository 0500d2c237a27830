"""How long it takes to find the recorded request that was meant, on a tape of 10,000 exchanges.

Measured inside the process, on an open playback: what a miss adds to the refusal. Two tapes: chats of about
60 KB at one endpoint, and the same mixed with as many reads at paths of their own.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import workloads
from measure import Plan
from report import Bar, Section

from playhead.addons.answer.explain import find_nearest
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode
from playhead.store import Record, RunInfo, Store
from playhead.tape.canonical.canonical_request import raw_key
from playhead.tape.exchange import (
    Exchange,
    Fingerprint,
    Request,
    RequestClass,
    Response,
    Seq,
    VerdictKind,
)
from playhead.tape.records.events import Event, EventKind
from playhead.tape.redaction.redactor import Redactor

COUNT = 10_000
BAR_MS = 50.0
_QUICK = 2_000
_JSON = ((b"Content-Type", b"application/json"),)
_BATCH = 200


def nearest(plan: Plan) -> list[Section]:
    """Measure the search on both tapes."""
    count = _QUICK if plan.quick else COUNT
    section = Section(
        f"Nearest recorded request, tape of {count:,}",
        ("tape", "first search ms", "median ms", "most ms", "found"),
    )
    raw: dict[str, list[float]] = {}
    for name, mixed in (("one endpoint, 60 KB chats", False), ("mixed", True)):
        plan.say(f"nearest: {name}")
        folder = plan.folder / f"nearest-{'mixed' if mixed else 'chats'}-{count}"
        took_ms, found = asyncio.run(_measure(folder, count, mixed, plan))
        raw[name] = took_ms
        later = sorted(took_ms[1:])
        section.rows.append(
            (
                name,
                f"{took_ms[0]:.1f}",
                f"{later[len(later) // 2]:.1f}",
                f"{max(took_ms):.1f}",
                f"{found} of {len(took_ms)}",
            )
        )
        section.bars.append(Bar(f"nearest, {name}: slowest miss", BAR_MS, max(took_ms), "ms"))
    section.raw = raw
    return [section]


async def _measure(folder: Path, count: int, mixed: bool, plan: Plan) -> tuple[list[float], int]:
    with Store.open(folder) as store:
        tape = store.runs.find("tape")
        if tape is None:
            tape = await _fill(store, count, mixed)
        config = Config(mode=Mode.PLAYBACK, store=folder)
        run = await store.runs.create("tape", mode="playback", at_ns=1, parent=tape)
        open_run = OpenRun(config.mode, config, Redactor(b"key", ()), store, run, tape)
        playback = open_run.playback
        assert playback is not None
        await playback.prepare()
        assert playback.preparing is not None
        await playback.preparing
        took_ms, found = [], 0
        for _ in range(max(2, plan.rounds)):
            seq = plan.rng.randrange(1, count + 1)
            # An agent that came so far: what was before on the tape has been served.
            playback.cursor._served = set(map(Seq, range(1, seq)))
            asked = _changed(_request(seq - 1, mixed))
            began = time.perf_counter()
            near = await asyncio.to_thread(find_nearest, playback, asked)
            took_ms.append((time.perf_counter() - began) * 1000)
            found += near is not None and near[0] == seq
        return took_ms, found


def _changed(request: Request) -> Request:
    if request.body:
        return replace(request, body=request.body.replace(b"bench-1", b"bench-2"))
    return replace(request, target=f"{request.target}&more=1")


def _request(number: int, mixed: bool) -> Request:
    if mixed and number % 2:
        return Request(
            "GET", "https", "api.bench", 443, f"/v1/items/{number}?limit=10", "HTTP/1.1", _JSON
        )
    body = workloads.body(workloads.WORKLOADS["llm"], number)
    return Request("POST", "https", "api.bench", 443, workloads.CHAT, "HTTP/1.1", _JSON, body)


async def _fill(store: Store, count: int, mixed: bool) -> RunInfo:
    run = await store.runs.create("tape", mode="record", at_ns=1)
    for batch in itertools.batched(_exchanges(count, mixed), _BATCH):
        saved = []
        for exchange in batch:
            request = exchange.request
            data = {"seq": exchange.seq, "method": request.method, "url": request.url}
            told = {**data, "request_class": exchange.request_class.value, "fingerprint": b""}
            store.events.append(run.number, Event(EventKind.INTENT, 1, {**told, "key": None}))
            outcome = {"seq": exchange.seq, "bytes_out": request.body_bytes}
            event = Event(EventKind.OUTCOME, 1, outcome)
            record = Record(exchange, raw_key(request, exchange.request_class), event)
            saved.append(store.exchanges.save(run.number, partial(_same, record)))
        await asyncio.gather(*saved)
    return await store.runs.seal(run, reason="written by a benchmark", at_ns=2)


def _same(record: Record) -> Record:
    return record


def _exchanges(count: int, mixed: bool) -> Iterator[Exchange]:
    for number in range(count):
        request = _request(number, mixed)
        yield Exchange(
            seq=Seq(number + 1),
            request_class=RequestClass.INFERENCE if request.body else RequestClass.READ,
            verdict=VerdictKind.RECORDED,
            reason="mode record",
            request=request,
            started_ns=1,
            end_us=2,
            fingerprint=Fingerprint(b"%016d" % number),
            response=Response(200, b"OK", "HTTP/1.1", _JSON, b"{}", 1),
        )
