"""What was not sent is not shown as if it had been: its time, its price and its mark."""

from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from playhead.store import RunInfo, Store
from playhead.tape.exchange import Exchange, RequestClass, VerdictKind
from playhead.tape.records.events import EXPLORED, Event, EventKind
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, use, user
from playhead.tests.support.exchanges import (
    fingerprint_of,
    make_exchange,
    make_intent,
    make_record,
    write_run,
)
from playhead.timeline.receipts.exchange_rows import find_shown
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.steps.read_run import RunReader

_THEN_NS, _NOW_NS = 1_000_000_000, 9_000_000_000
_PAY = "POST https://pay.test/v1/refunds"


@pytest.mark.parametrize("inject", ["", "reset"])
async def test_what_a_resumed_run_was_served_has_its_own_time(tmp_path: Path, inject: str) -> None:
    """And says that it is from the tape, or what was injected; what was sent behind the crash point does not."""
    made = [
        make_exchange(seq, _PAY, kind=RequestClass.EFFECT, started_ns=_THEN_NS) for seq in (1, 2)
    ]
    with Store.open(tmp_path / "store") as store:
        crashed = await write_run(store, "cr", made[:1])
        run = await store.runs.create(
            "cr", mode="playback", at_ns=_NOW_NS, parent=crashed, resumes=True
        )
        data = {
            **make_intent(made[0]).data,
            "verdict": "served",
            "reason": "exact",
            "tape_seq": 1,
            "fingerprint": fingerprint_of(_PAY),
        }
        store.events.append(run.number, Event(EventKind.VERDICT, _NOW_NS, data))
        if inject:
            told = {"seq": 1, "rule": "busy", "inject": inject, "nth": 1, "seed": 0}
            store.events.append(run.number, Event(EventKind.INJECTED, _NOW_NS, told))
        copy = replace(made[0], verdict=VerdictKind.SERVED)
        await store.exchanges.save(run.number, partial(make_record, copy))
        sent = replace(made[1], verdict=VerdictKind.LIVE, started_ns=_NOW_NS + 1)
        store.events.append(run.number, make_intent(sent))
        await store.exchanges.save(run.number, partial(make_record, sent))
        info = await store.runs.seal(run, reason="done", at_ns=_NOW_NS + 2)
        steps = [step for step in RunReader(store, info).read() if step.timing is not None]
        assert [(step.seq, step.marks) for step in steps] == [
            (1, ("from the tape, not sent",)),
            (2, ("retry of 1",) if inject else ()),
        ]
        for seq, at_ns in ((1, _NOW_NS), (2, _NOW_NS + 1)):
            assert Exchanges(store, info).get(seq).started_ns == at_ns
            assert _shown(store, info, seq).started_ns == at_ns
            for exchange in (Exchanges(store, info).get(seq), _shown(store, info, seq)):
                assert (exchange.response is None) is (seq == 1 and bool(inject))


def _shown(store: Store, info: RunInfo, seq: int) -> Exchange:
    found = find_shown(store, info, seq)
    assert found is not None
    assert found[0].id == info.id
    return found[1]


async def test_what_explore_kept_costs_nothing(tmp_path: Path) -> None:
    """And says that it was never sent, in each step that looks like a request."""
    made = Tape("kept")
    call = use("toolu_1", "refund", order=7)
    made.model(anthropic([user("Refund 7.")]), anthropic_stream(call, stop="tool_use"))
    made.post("https://shop.test/refunds", {"order": 7})
    with Store.open(tmp_path / "store") as store:
        info = await write_run(store, "kept", made.exchanges)
        for explored, usd, mark in ((False, Decimal(5), ()), (True, Decimal(0), ("never sent",))):
            told = replace(info, agent=EXPLORED, end=EXPLORED) if explored else info
            reader = RunReader(store, told, price=lambda *_: Decimal(5))
            steps = [step for step in reader.read() if step.timing is not None]
            assert [step.marks for step in steps] == [mark, mark]
            assert steps[0].usd == usd
