"""A replay as it stands in a store: its verdicts, and what its tape does not hold."""

from collections.abc import Iterable
from functools import partial

from playhead.store import RunInfo, Store
from playhead.tape.exchange import Exchange
from playhead.tape.records.events import Event, EventKind

from .exchanges import NO_CLASSES, make_intent, make_record


async def write_replay(
    store: Store, tape: RunInfo, exchanges: Iterable[Exchange], at_ns: int = 3
) -> RunInfo:
    """Write a replay that was served the exchanges of its tape, in this order."""
    run = await store.runs.create(tape.id, mode="playback", at_ns=at_ns, parent=tape)
    for seq, exchange in enumerate(exchanges, 1):
        request = exchange.request
        store.events.append(
            run.number,
            Event(
                EventKind.VERDICT,
                exchange.started_ns,
                {
                    "seq": seq,
                    "method": request.method,
                    "url": request.url,
                    "request_class": exchange.request_class.value,
                    "verdict": "served",
                    "reason": "on tape",
                    "fingerprint": exchange.fingerprint,
                    "tape_seq": exchange.seq,
                    "match": "hit",
                },
            ),
        )
    return await store.runs.seal(run, reason="the command ended with 0", at_ns=at_ns + 1)


async def write_recording(
    store: Store, name: str, exchanges: Iterable[Exchange], *, begun_ns: int = 1, ended_ns: int = 9
) -> RunInfo:
    """Write a sealed recording as a recorder does: each request is told before it is answered."""
    run = await store.runs.create(name, mode="record", at_ns=begun_ns, classes=NO_CLASSES)
    for exchange in exchanges:
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))
    return await store.runs.seal(run, reason="enough", at_ns=ended_ns)
