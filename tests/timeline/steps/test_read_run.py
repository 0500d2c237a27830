"""What the log of a run tells beside its exchanges: decisions, policies and snapshots are steps, each in its place."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.store import RunInfo, Store
from playhead.tape.exchange import VerdictKind
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, use, user
from playhead.tests.support.exchanges import make_intent, make_record
from playhead.timeline.show.listing import Counts, list_steps
from playhead.timeline.steps import StepKind
from playhead.timeline.steps.read_run import RunReader

HELD = {"method": "POST", "url": "u", "digest": "d", "rule": "refunds", "reason": "an effect"}
RULED = {"digest": "d", "ruling": "approved", "by": "ana", "via": "cli", "reason": "looks right"}
CONTRACT = {
    **{"of": "answer", "rule": "orders", "refused": False, "count": 1, "unchecked": ()},
    "violations": (("type", "$.total", "number", "string"),),
}
INJECTED = {"rule": "slow", "inject": "delay", "nth": 1, "seed": 1}
LIMITED = {"limit": "usd", "reason": "0.51 of 0.50 USD are used"}
STOPPED = {"by": "ana", "pid": 7, "reason": "it loops"}
EGRESS = {"target": "evil.test:443", "by": "kernel", "reason": "not by the proxy", "count": 3}
GAP = {"since_ns": 1, "until_ns": 0, "reason": "the disk is full"}


def tape() -> Tape:
    """A model call that wants a refund, and the refund."""
    made = Tape("refund")
    call = use("toolu_1", "refund", order=7)
    made.model(anthropic([user("Refund 7.")]), anthropic_stream(call, stop="tool_use"))
    made.post("https://shop.test/refunds", {"order": 7})
    return made


async def write(store: Store, *told: tuple[int, EventKind, Mapping[str, Any]]) -> RunInfo:
    """Write the tape, with events behind the requests of the seqs that are named; 0 is before the first."""
    run = await store.runs.create("run", mode="record", at_ns=1)

    def tell(seq: int) -> None:
        for after, kind, data in told:
            if after == seq:
                store.events.append(run.number, Event(kind, 2, data))

    tell(0)
    for exchange in tape().exchanges:
        store.events.append(run.number, make_intent(exchange))
        tell(exchange.seq)
        await store.exchanges.save(run.number, partial(make_record, exchange))
    return await store.runs.seal(run, reason="enough", at_ns=9)


@pytest.mark.parametrize(
    ("told", "step", "line"),
    [
        (
            (2, EventKind.HELD, {"seq": 2, **HELD}),
            ("decision", 2, "held, rule refunds: an effect"),
            "   gate: held, rule refunds: an effect",
        ),
        (
            (2, EventKind.RULED, {"seq": 2, **RULED}),
            ("decision", 2, "approved by ana: looks right"),
            "   gate: approved by ana: looks right",
        ),
        (
            (2, EventKind.RULED, {"seq": 2, **RULED, "ruling": "expired", "by": "", "reason": ""}),
            ("decision", 2, "expired"),
            "   gate: expired",
        ),
        (
            (2, EventKind.CONTRACT, {"seq": 2, **CONTRACT}),
            (
                "policy",
                2,
                "contract of its answer, rule orders at $.total: expected number, found string",
            ),
            " ! contract of its answer, rule orders at $.total: expected number, f…",
        ),
        (
            (2, EventKind.INJECTED, {"seq": 2, **INJECTED}),
            ("policy", 2, "fault on purpose: delay, rule slow"),
            " ! fault on purpose: delay, rule slow",
        ),
        (
            (2, EventKind.LIMITED, {"seq": 2, **LIMITED}),
            ("policy", 2, "limit usd is reached: 0.51 of 0.50 USD are used"),
            " ! limit usd is reached: 0.51 of 0.50 USD are used",
        ),
        (
            (1, EventKind.STOPPED, STOPPED),
            ("policy", 1, "the run was stopped by ana: it loops"),
            " ! the run was stopped by ana: it loops",
        ),
        (
            (1, EventKind.EGRESS, EGRESS),
            ("policy", 1, "denied: evil.test:443, by kernel, 3 times: not by the proxy"),
            " ! denied: evil.test:443, by kernel, 3 times: not by the proxy",
        ),
        (
            (2, EventKind.GAP, GAP),
            ("policy", 2, "not recorded: the disk is full"),
            " ! not recorded: the disk is full",
        ),
        (
            (1, EventKind.NOTED, {"snapshot": '{"plan": ["look"]}'}),
            ("snapshot", 1, '{"plan": ["look"]}'),
            '   snapshot: {"plan": ["look"]}',
        ),
    ],
    ids=(
        "held",
        "ruled",
        "expired",
        "contract",
        "fault",
        "limit",
        "stopped",
        "denied",
        "gap",
        "snapshot",
    ),
)
async def test_what_the_log_tells_is_a_step_in_its_place(
    told: tuple[int, EventKind, Mapping[str, Any]],
    step: tuple[str, int, str],
    line: str,
    tmp_path: Path,
) -> None:
    """Behind the request that it speaks of, or that had come last; the page has its text."""
    with Store.open(tmp_path / "store") as store:
        run = await write(store, told)
        steps = list(RunReader(store, run).read())
    kinds = [(one.kind.value, int(one.seq), one.text) for one in steps]
    at = kinds.index(step)
    assert {one.seq for one in steps[:at]} == set(range(1, step[1] + 1))
    assert {one.seq for one in steps[at + 1 :]} <= set(range(step[1] + 1, 3))
    page = list(list_steps(steps, Counts()))
    assert any(one.endswith(line) for one in page), page


async def test_what_came_before_the_first_request_is_first(tmp_path: Path) -> None:
    """And several in the order of the log."""
    with Store.open(tmp_path / "store") as store:
        first, second = ({"snapshot": f'"{word}"'} for word in ("one", "two"))
        run = await write(store, (0, EventKind.NOTED, first), (0, EventKind.NOTED, second))
        steps = list(RunReader(store, run).read())
    assert [(one.kind, one.seq, one.text) for one in steps[:2]] == [
        (StepKind.SNAPSHOT, 0, '"one"'),
        (StepKind.SNAPSHOT, 0, '"two"'),
    ]


async def test_a_refused_request_says_why_on_the_page(tmp_path: Path) -> None:
    """Of a model call in the line of the call, of another request below it."""
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("run", mode="record", at_ns=1)
        made = Tape("refused")
        refused = {"verdict": VerdictKind.REFUSED, "reason": "not on the tape"}
        made.model(anthropic([user("Refund 7.")]), None, **refused)
        made.post("https://shop.test/refunds", {"order": 7}, **refused)
        for exchange in made.exchanges:
            await store.exchanges.save(run.number, partial(make_record, exchange))
        page = list(list_steps(RunReader(store, run).read(), Counts()))
    assert [line.split()[1:9] for line in page] == [
        ["1", "!", "refused:", "not", "on", "the", "tape", "1.0s"],
        ["·", "*", "POST", "shop.test/refunds", "200", "1.0s"],
        ["!", "refused:", "not", "on", "the", "tape"],
    ]


async def test_a_run_that_goes_on_is_read_on(tmp_path: Path) -> None:
    """Nothing is given twice, and what has no outcome yet is waited for."""
    one, two = tape().exchanges
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("run", mode="record", at_ns=1)
        reader = RunReader(store, run)
        store.events.append(run.number, make_intent(one))
        await store.exchanges.save(run.number, partial(make_record, one))
        store.events.append(run.number, make_intent(two))
        store.events.append(run.number, Event(EventKind.NOTED, 2, {"snapshot": "1"}))
        await store.events.append_durably(run.number, Event(EventKind.NOTED, 2, {"text": "x"}))
        assert {step.seq for step in reader.read(end=False)} == {1}
        assert list(reader.read(end=False)) == []
        await store.exchanges.save(run.number, partial(make_record, two))
        steps = list(reader.read(end=False))
        assert [(step.kind, step.seq) for step in steps] == [
            (StepKind.HTTP, 2),
            (StepKind.SNAPSHOT, 2),
        ]
        assert list(reader.read()) == []


@pytest.mark.parametrize("ends", [False, True])
async def test_what_a_gate_holds_has_a_step(tmp_path: Path, *, ends: bool) -> None:
    """A run that goes on waits for it, so that it keeps its place; where the proxy died it was not sent."""
    one, two = tape().exchanges
    with Store.open(tmp_path / "store") as store:
        run = await store.runs.create("run", mode="record", at_ns=1)
        reader = RunReader(store, run)
        store.events.append(run.number, make_intent(one))
        await store.exchanges.save(run.number, partial(make_record, one))
        await store.events.append_durably(run.number, Event(EventKind.HELD, 2, {"seq": 2, **HELD}))
        if ends:
            steps = list(reader.read())
            assert [(step.seq, step.name, step.text) for step in steps[-2:]] == [
                (2, "POST u", "not sent"),
                (2, "", "held, rule refunds: an effect"),
            ]
            return
        assert {step.seq for step in reader.read(end=False)} == {1}
        store.events.append(run.number, Event(EventKind.RULED, 3, {"seq": 2, **RULED}))
        store.events.append(run.number, make_intent(two))
        await store.exchanges.save(run.number, partial(make_record, two))
        steps = list(reader.read(end=False))
        assert steps[0].name == "POST https://shop.test/refunds"
        assert [step.text for step in steps[1:]] == [
            "held, rule refunds: an effect",
            "approved by ana: looks right",
        ]
