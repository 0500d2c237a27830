"""What is read of a tape's log: which exchanges overlapped others and were answered before them."""

import time
from functools import partial
from pathlib import Path

import pytest

from playhead.config import Classes
from playhead.store import Store
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.records.events import Event
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.timeline.lookup.endpoints import find_order, read_requests

CASES: list[tuple[str, dict[int, tuple[int, ...]]]] = [
    # What happens in order: +N begins, -N ends, a dot is a second.
    ("+1 -1 +2 -2", {}),
    ("+1 +2 -1 -2", {2: (1,)}),
    ("+1 +2 -2 -1", {1: (2,)}),
    ("+1 +2 +3 -3 -1 -2", {1: (3,), 2: (3, 1)}),
    ("+1 +2 -1 +3 -2 -3", {2: (1,), 3: (2,)}),
    # A poll during a long answer is not parallel to it; one that began before it is.
    ("+1 . +2 -2 -1", {}),
    ("+1 . +2 -1 -2", {2: (1,)}),
    # Telemetry waits for nobody, and nobody for it.
    ("+1 +4 -4 -1", {}),
    ("+1 +4 -1 -4", {}),
]


@pytest.mark.parametrize(("told", "before"), CASES)
async def test_overlapping_exchanges_are_in_their_order_of_completion(
    store_dir: Path, told: str, before: dict[int, tuple[int, ...]]
) -> None:
    """By the order of outcomes in the log."""
    kinds = {4: RequestClass.TELEMETRY}
    made = {
        seq: make_exchange(
            seq,
            "POST https://x.rum.aliyuncs.com/" if seq in kinds else f"GET https://a.example/{seq}",
            kind=kinds.get(seq, RequestClass.READ),
        )
        for seq in range(1, 5)
    }
    now_ns = time.time_ns()
    with Store.open(store_dir) as store:
        run = await store.runs.create("tape", mode="record", at_ns=1)
        for word in told.split():
            if word == ".":
                now_ns += 1_000_000_000
                continue
            exchange = made[int(word[1:])]
            intent = make_intent(exchange)
            if word[0] == "+":
                store.events.append(run.number, Event(intent.kind, now_ns, intent.data))
            else:
                await store.exchanges.save(run.number, partial(make_record, exchange))
        tape = await store.runs.seal(run, reason="x", at_ns=2)
        found = find_order(read_requests(store, tape), Classes())
    assert found == {Seq(seq): seqs for seq, seqs in before.items()}
