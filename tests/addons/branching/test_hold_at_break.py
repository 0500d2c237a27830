"""Requests of a playback that are held at breakpoints, and how they are let go."""

import asyncio
from collections.abc import Awaitable

import pytest
from mitmproxy import flow as mflow

from playhead.addons.branching.hold_at_break import HoldAtBreak
from playhead.addons.run.lifecycle.held_at_breakpoints import BreakError, Breaks, HeldAtBreak
from playhead.addons.run.pending_exchange import PendingExchange
from playhead.addons.run.registry import RunRegistry
from playhead.addons.run.run_state import Stopped
from playhead.config import Config, Limits, Mode
from playhead.tape.exchange import RedactedText, RequestClass, VerdictKind
from playhead.tape.policy.breakpoints import BreakCommand, parse_breakpoint
from playhead.tape.policy.decide import Action
from playhead.tests.support.pending import NotedRun, make_pending

ORDER = "GET https://shop.test/orders/7"


class Registry(RunRegistry):
    """A registry that has breakpoints and nothing else."""

    def __init__(self, breaks: Breaks | None) -> None:
        self.breaks = breaks


def asked(
    seq: int = 1, kind: RequestClass = RequestClass.READ, mode: Mode = Mode.PLAYBACK
) -> PendingExchange:
    """A request on which was decided."""
    return make_pending(NotedRun(mode=mode), ORDER, kind, seq=seq, action=Action.REFUSE)


def request(breaks: Breaks | None, pending: PendingExchange) -> Awaitable[None] | None:
    """Have it come to where it may be held."""
    return HoldAtBreak(Registry(breaks)).request(pending.flow)


async def hold(
    breaks: Breaks, pending: PendingExchange
) -> tuple["asyncio.Task[None]", HeldAtBreak]:
    """Have it be held."""
    waiting = request(breaks, pending)
    assert waiting is not None
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    (held,) = breaks
    return asyncio.ensure_future(_finish(task)), held


async def _finish(task: "asyncio.Future[None]") -> None:
    await task


@pytest.mark.parametrize(
    ("points", "pending"),
    [
        (None, asked()),
        ([], asked()),
        (["effect"], asked()),
        (["divergence"], asked(kind=RequestClass.TELEMETRY)),
        (["divergence"], asked(mode=Mode.RECORD)),
        (["divergence"], make_pending(NotedRun(mode=Mode.PLAYBACK), ORDER)),
    ],
    ids=["no breaks", "no points", "another point", "telemetry", "a recording", "not decided"],
)
def test_what_no_breakpoint_names_is_not_held(
    points: list[str] | None, pending: PendingExchange
) -> None:
    """It goes on at once."""
    breaks = None if points is None else Breaks([parse_breakpoint(one) for one in points])
    assert request(breaks, pending) is None


@pytest.mark.parametrize("command", [BreakCommand.CONTINUE, BreakCommand.STEP])
async def test_it_goes_on_as_it_was_decided(command: BreakCommand) -> None:
    """And the log says that it was held; a step holds the next request."""
    breaks, pending = Breaks([parse_breakpoint("divergence")]), asked()
    task, held = await hold(breaks, pending)
    assert not task.done()
    before = pending.decision
    await breaks.decide(held, command)
    await task
    assert pending.decision is before
    assert list(breaks) == []
    ((_, noted),) = pending.open_run.noted  # type: ignore[attr-defined]  # of a `NotedRun`
    assert f": {command.value}" in noted["text"]
    assert breaks.find_why(asked(2)) == "divergence"
    breaks.points = ()
    assert bool(breaks.find_why(asked(3))) is (command is BreakCommand.STEP)
    with pytest.raises(BreakError, match="is not held any more"):
        await breaks.decide(held, command)


async def test_it_is_given_another_answer() -> None:
    """Which is hypothetical, though the tape has none for it."""
    breaks, pending = Breaks([parse_breakpoint("divergence")]), asked()
    task, held = await hold(breaks, pending)
    breaks.answer(held, b'{"a": 1}')
    await task
    assert pending.decision is not None
    assert pending.decision.verdict is VerdictKind.HYPOTHETICAL
    assert pending.decision.answer is not None
    assert pending.decision.answer.body == b'{"a": 1}'
    assert "is not on the tape" in pending.decision.reason


@pytest.mark.parametrize("ended", [True, False], ids=["and ended", "and is about to end"])
async def test_a_client_that_leaves_is_held_no_more(ended: bool) -> None:
    """Nothing is sent for nobody."""
    breaks, pending = Breaks([parse_breakpoint("divergence")]), asked()
    task, held = await hold(breaks, pending)
    pending.client_left()
    if ended:
        pending.finish()
    await task
    assert held.command is None
    error = pending.flow.error
    assert isinstance(error, mflow.Error)
    with pytest.raises(BreakError, match="nothing is held"):
        breaks.get(held.name)


@pytest.mark.parametrize("action", [Action.LIVE, Action.HOLD, Action.STUB, Action.REFUSE])
@pytest.mark.parametrize("command", [BreakCommand.QUIT, BreakCommand.CONTINUE])
async def test_what_is_held_when_its_run_is_stopped_is_refused(
    action: Action, command: BreakCommand
) -> None:
    """Whatever was decided on it: nothing is sent, and nothing says that it was."""
    breaks = Breaks([parse_breakpoint(ORDER)])
    pending = make_pending(NotedRun(mode=Mode.PLAYBACK), ORDER, action=action)
    task, held = await hold(breaks, pending)
    pending.open_run.lifetime.stopped = Stopped("breakpoint", 1, RedactedText("quit"), 1)
    await breaks.decide(held, command)
    await task
    assert pending.decision is not None
    assert (pending.decision.action, pending.decision.rule) == (Action.REFUSE, "stopped")
    assert not pending.leaves


@pytest.mark.parametrize("action", [Action.LIVE, Action.HOLD])
@pytest.mark.parametrize("answers", [True, False], ids=["answered", "stopped"])
async def test_what_did_not_leave_after_all_does_not_count(action: Action, answers: bool) -> None:
    """For a limit."""
    breaks = Breaks([parse_breakpoint(ORDER)])
    run = NotedRun(Config(limits=Limits(calls=5)), Mode.RECORD)
    run.mode = Mode.PLAYBACK
    pending = make_pending(run, ORDER, action=action)
    assert run.usage_meter is not None
    run.usage_meter.count(pending)
    task, held = await hold(breaks, pending)
    if answers:
        breaks.answer(held, b"{}")
    else:
        run.lifetime.stopped = Stopped("breakpoint", 1, RedactedText("quit"), 1)
        await breaks.decide(held, BreakCommand.QUIT)
    await task
    assert run.usage_meter.used.calls == 0


@pytest.mark.parametrize(
    ("action", "answered"),
    [
        (Action.SERVE, True),
        (Action.LIVE, True),
        (Action.HOLD, True),
        (Action.STUB, False),
        (Action.REFUSE, False),
    ],
)
async def test_an_answer_makes_no_divergence_of_what_is_none(
    action: Action, answered: bool
) -> None:
    """Where the tape or a service would have answered, the agent asks nothing else than it may."""
    breaks = Breaks([parse_breakpoint(ORDER)])
    pending = make_pending(NotedRun(mode=Mode.PLAYBACK), ORDER, action=action)
    task, held = await hold(breaks, pending)
    breaks.answer(held, b"{}")
    await task
    assert pending.lookup.answered is answered


async def test_all_are_let_go_where_nobody_can_be_asked() -> None:
    """And nothing is held from then on."""
    breaks, pending = Breaks([parse_breakpoint("divergence")]), asked()
    task, _ = await hold(breaks, pending)
    breaks.disable()
    await task
    assert request(breaks, asked(2)) is None


async def test_a_breakpoint_is_met_also_where_nothing_is_held_any_more() -> None:
    """A request came to it; to each of those that name it."""
    breaks = Breaks([parse_breakpoint(one) for one in ("divergence", ORDER, "effect", "4")])
    assert len(breaks.say_unmet()) == 4
    breaks.disable()
    assert request(breaks, asked()) is None
    assert breaks.say_unmet() == [
        "the breakpoint 'effect' was never met: no effect was requested",
        "the breakpoint '4' was never met: no request came that exchange 4 of the tape answers",
    ]
