"""Faults on purpose: which request is hit, what is done before it is sent on, and what is laid over a recorded answer."""

import asyncio
from typing import Any

import pytest
from mitmproxy import http

from playhead.addons.faults.inject import Fault, answer_with, lay_fault, note_injected
from playhead.addons.wire.prepared_answer import LaidAnswer
from playhead.config import FaultRule, Inject, Mode, loads, parse_match
from playhead.tape.playback.script import Step, StepKind, Steps
from playhead.tape.policy.decide import Action, Decision
from playhead.tape.policy.faults import Injection
from playhead.tape.records.events import EventKind
from playhead.tests.support.pending import NotedRun, make_pending

WHAT = "POST https://api.test/x"


def injection(inject: Inject, **keys: Any) -> Injection:
    """The first request that a rule hits."""
    return Injection(FaultRule(parse_match(WHAT), inject=inject, name="broken", **keys), 1)


@pytest.mark.parametrize(
    ("what", "seq", "hit"),
    [
        (WHAT, 1, True),
        ("POST https://api.test/y", 1, False),
        ("GET https://api.test/x", 1, False),
        (WHAT, 0, False),
    ],
)
def test_a_rule_hits_what_it_matches(what: str, seq: int, hit: bool) -> None:
    """And nothing that is not recorded or played."""
    open_run = NotedRun(loads(f"faults: [{{match: {WHAT}, inject: reset}}]"))
    pending = make_pending(open_run, what, seq=seq)
    Fault().requestheaders(pending.flow)
    assert (pending.held.injection is not None) is hit


def test_the_nth_request_is_hit() -> None:
    """Each that matches is counted, and no other."""
    open_run = NotedRun(loads(f"faults: [{{match: {WHAT}, inject: reset, nth: 2}}]"))
    hit = []
    for seq, what in enumerate((WHAT, "GET https://api.test/x", WHAT, WHAT), 1):
        pending = make_pending(open_run, what, seq=seq)
        Fault().requestheaders(pending.flow)
        hit.append(pending.held.injection is not None)
    assert hit == [False, False, True, False]


@pytest.mark.parametrize(
    ("inject", "action", "noted", "muted"),
    [
        (Inject.RESET, Action.FORWARD, True, False),
        (Inject.RESET, Action.LIVE, True, False),
        (Inject.RESET, Action.REFUSE, False, False),
        (Inject.RESET, Action.SERVE, False, False),
        (Inject.RESET, Action.HOLD, False, False),
        (Inject.RESET, None, False, False),
        (Inject.TIMEOUT_AFTER_SUCCESS, Action.FORWARD, True, True),
        (Inject.TIMEOUT_AFTER_SUCCESS, Action.REFUSE, False, False),
        (Inject.CUT, Action.FORWARD, True, False),
    ],
)
def test_a_fault_is_named_where_a_request_leaves(
    inject: Inject, action: Action | None, noted: bool, muted: bool
) -> None:
    """In the log once, and in the reason; a client is told nothing where that is the fault."""
    open_run = NotedRun()
    pending = make_pending(open_run, WHAT, action=action)
    pending.held.hit(injection(inject))
    for _ in range(2):
        Fault().request(pending.flow)
    assert [kind for kind, _ in open_run.noted] == [EventKind.INJECTED] * noted
    assert pending.held.muted is muted
    assert open_run.counters.injected == ({inject.value: 1} if noted else {})
    if noted:
        assert pending.decision is not None
        assert pending.decision.reason.startswith("why; ")
        assert pending.progress.warnings == [pending.held.injection.text]  # type: ignore[union-attr]


def test_what_was_sent_on_is_not_hit_again() -> None:
    """Its head was, before its body had come."""
    open_run = NotedRun()
    pending = make_pending(open_run, WHAT, action=Action.FORWARD)
    pending.held.hit(injection(Inject.DELAY, delay_s=60))
    pending.progress.forward()
    assert Fault().request(pending.flow) is None
    assert open_run.noted == []


@pytest.mark.parametrize("ends", [False, True])
async def test_what_is_delayed_waits_and_is_not_sent_where_it_has_ended(ends: bool) -> None:
    """A client that leaves ends the wait."""
    pending = make_pending(NotedRun(), WHAT, action=Action.FORWARD)
    pending.held.hit(injection(Inject.DELAY, delay_s=0.001 if not ends else 60))
    waiting = Fault().request(pending.flow)
    assert waiting is not None
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    if ends:
        pending.finish()
    await task
    assert (pending.flow.error is not None) is ends
    again = Fault().request(pending.flow)
    assert again is not None
    await again  # it waits once


def test_the_log_says_which_rule_and_which_request() -> None:
    """And from which seed it was drawn; a second decision keeps the first reason."""
    open_run = NotedRun()
    pending = make_pending(open_run, WHAT, seq=4)
    decision = Decision(Action.FORWARD, "why", "rule")
    named = note_injected(pending, injection(Inject.CUT), decision)
    assert named is pending.decision
    assert note_injected(pending, injection(Inject.CUT), named) is named
    ((_, data),) = open_run.noted
    assert {name: data[name] for name in ("seq", "rule", "inject", "nth")} == {
        "seq": 4,
        "rule": "broken",
        "inject": "cut",
        "nth": 1,
    }


@pytest.mark.parametrize(
    ("inject", "keys", "status", "fields"),
    [
        (Inject.STATUS, {"status": 503}, 503, {}),
        (Inject.STATUS, {"status": 429, "retry_after_s": 7}, 429, {"retry-after": "7"}),
        (Inject.RESET, {}, None, {}),
        (Inject.TIMEOUT, {}, None, {}),
        (Inject.CUT, {}, None, {}),
        (Inject.DELAY, {"delay_s": 1.0}, None, {}),
        (Inject.TIMEOUT_AFTER_SUCCESS, {}, None, {}),
    ],
)
def test_only_a_status_is_an_answer_of_ours(
    inject: Inject, keys: dict[str, Any], status: int | None, fields: dict[str, str]
) -> None:
    """With the time to wait, where the rule has one."""
    request = make_pending(NotedRun(), WHAT).request
    assert request is not None
    made = answer_with(request, injection(inject, **keys))
    assert (None if made is None else made.status_code) == status
    assert made is None or fields.items() <= dict(made.headers).items()


RECORDED = (
    Step(0, StepKind.HEAD),
    Step(0, StepKind.DATA, b"abcdef"),
    Step(0, StepKind.END),
)


@pytest.mark.parametrize(
    ("inject", "keys", "kinds", "data"),
    [
        (Inject.STATUS, {"status": 503}, [StepKind.HEAD, StepKind.DATA, StepKind.END], None),
        (Inject.CUT, {"after_bytes": 2}, [StepKind.HEAD, StepKind.DATA, StepKind.FAIL], b"ab"),
        (Inject.CUT, {"after_bytes": 0}, [StepKind.HEAD, StepKind.FAIL], b""),
        (Inject.RESET, {}, [StepKind.FAIL], b""),
        (
            Inject.DELAY,
            {"delay_s": 1.0},
            [StepKind.HEAD, StepKind.DATA, StepKind.END],
            b"abcdef",
        ),
    ],
)
def test_a_fault_is_laid_over_what_was_recorded(
    inject: Inject, keys: dict[str, Any], kinds: list[StepKind], data: bytes | None
) -> None:
    """Or is played in its place."""
    pending = make_pending(NotedRun(mode=Mode.PLAYBACK), WHAT)
    recorded = LaidAnswer(http.Response.make(200), Steps(RECORDED), ragged=True)
    laid = lay_fault(pending.request, injection(inject, **keys), recorded)
    played = list(laid.steps.rest())
    assert (laid.head.status_code, laid.ragged) == (
        (200, True) if inject is not Inject.STATUS else (503, False)
    )
    assert [step.kind for step in played] == kinds
    if data is not None:
        assert b"".join(step.data for step in played if step.kind is StepKind.DATA) == data
