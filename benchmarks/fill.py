"""A large tape without a proxy: one exchange is recorded for real, the rest are written after its model.

What a proxy would have written is taken from the one that it did write: header fields, redactions,
protocol, class and events. Only the bodies, what depends on them, and the numbers are made here, and the
first exchange that is made has to come out with the fingerprint that was recorded.
"""

import asyncio
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from playhead.store import Record, RunInfo, Store
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint, raw_key
from playhead.tape.exchange import Chunk, Exchange, Headers, Seq
from playhead.tape.records.events import Event, EventKind

_BATCH = 500


def extend(folder: Path, seed: str, run: str, bodies: Iterable[tuple[bytes, bytes]]) -> int:
    """Write a sealed run after the model of the first exchange of another; give its length.

    bodies: of requests and answers, in order; the first pair is the one that `seed` holds.
    Raises: ValueError where the seed is not what the first pair says; StoreError.
    """
    return asyncio.run(_extend(folder, seed, run, bodies))


async def _extend(folder: Path, seed: str, run: str, bodies: Iterable[tuple[bytes, bytes]]) -> int:
    with Store.open(folder) as store:
        model_run = store.runs.get(seed)
        model = store.exchanges.find(model_run, 1)
        if model is None:
            raise ValueError(f"run {seed!r} holds no exchange to copy")
        events = store.events.read(model_run)
        intent, outcome = (_last(events, kind) for kind in (EventKind.INTENT, EventKind.OUTCOME))
        copy = await store.runs.create(
            run, mode=model_run.mode, at_ns=model_run.created_ns, rules=model_run.rules
        )
        rules = compile_rules()
        count = 0
        for batch in itertools.batched(bodies, _BATCH):
            saved = []
            for asked, said in batch:
                count += 1
                made = _exchange(model, Seq(count), asked, said)
                made = replace(
                    made,
                    fingerprint=fingerprint(canonical(made.request, made.request_class, rules)),
                )
                if count == 1 and made.fingerprint != model.fingerprint:
                    raise ValueError(f"run {seed!r} does not hold the first request, or not so")
                seen = {"seq": made.seq, "fingerprint": made.fingerprint}
                if begun := _event(intent, seen):
                    store.events.append(copy.number, begun)
                saved.append(_save(store, copy, made, _event(outcome, {"seq": made.seq})))
            await asyncio.gather(*saved)
        await store.runs.seal(copy, reason="written by a benchmark", at_ns=model_run.sealed_ns)
        return count


def _last(events: list[Event], kind: EventKind) -> Event | None:
    return next((event for event in reversed(events) if event.kind is kind), None)


def _event(model: Event | None, data: Mapping[str, Any]) -> Event | None:
    return replace(model, data={**model.data, **data}) if model else None


def _exchange(model: Exchange, seq: Seq, asked: bytes, said: bytes) -> Exchange:
    assert model.response is not None
    before = model.response
    response = replace(
        before,
        headers=_with_length(before.headers, len(said)),
        body=said,
        chunks=(Chunk(before.chunks[0].at_us, len(said)),) if before.chunks else (),
    )
    request = replace(
        model.request, headers=_with_length(model.request.headers, len(asked)), body=asked
    )
    return replace(model, seq=seq, request=request, response=response)


def _with_length(headers: Headers, size: int) -> Headers:
    return tuple(
        (name, b"%d" % size if name.lower() == b"content-length" else value)
        for name, value in headers
    )


def _save(
    store: Store, run: RunInfo, exchange: Exchange, outcome: Event | None
) -> "asyncio.Future[None]":
    record = Record(exchange, raw_key(exchange.request, exchange.request_class), outcome)
    return store.exchanges.save(run.number, lambda: record)
