"""Hold the requests of a playback at breakpoints, between what was decided and what is done."""

import time
from collections.abc import Awaitable
from dataclasses import replace

from mitmproxy import flow as mflow
from mitmproxy import http

from ...config import Mode
from ...tape.policy.breakpoints import BreakCommand
from ...tape.policy.decide import STOPPED, Action
from ...tape.policy.revise import Cause, Refused, Supposed
from ...tape.records.events import EventKind
from ..run.lifecycle.held_at_breakpoints import Breaks, HeldAtBreak
from ..run.pending_exchange import PendingExchange, find_pending
from ..run.registry import RunRegistry

_LEAVING = (Action.LIVE, Action.HOLD)


class HoldAtBreak:
    """Hold what breakpoints name."""

    def __init__(self, registry: RunRegistry) -> None:
        """Hold requests of the open runs of `registry`."""
        self._registry = registry

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Hold a request on which was decided."""
        breaks, pending = self._registry.breaks, find_pending(flow)
        if breaks is None or pending is None or pending.decision is None:
            return None
        if pending.open_run.mode is not Mode.PLAYBACK or pending.body.early is not None:
            return None
        why = breaks.find_why(pending)
        return _hold(breaks, flow, pending, why) if why else None


async def _hold(breaks: Breaks, flow: http.HTTPFlow, pending: PendingExchange, why: str) -> None:
    held = await breaks.hold(pending, why)
    _note(held)
    stopped = pending.open_run.lifetime.stopped
    is_given = held.command is BreakCommand.ANSWER and held.answer is not None
    if pending.is_deserted or stopped is not None or is_given:
        _give_back(pending)
    if pending.is_deserted:
        if flow.response is None:  # its client has left; one that was stopped is answered
            flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)
        return
    if stopped is not None:
        pending.revise(Refused(Cause.STOPPED, str(stopped), STOPPED))
    elif held.command is BreakCommand.ANSWER and held.answer is not None:
        _note_answered(pending, held)
        pending.revise(Supposed(held.tape_seq, held.answer))


def _give_back(pending: PendingExchange) -> None:
    """Have a request not count that was about to leave, and does not."""
    decision, meter = pending.decision, pending.open_run.usage_meter
    if meter is not None and decision is not None and decision.action in _LEAVING:
        meter.uncount(pending)


def _note_answered(pending: PendingExchange, held: HeldAtBreak) -> None:
    """Note where somebody answers in the place of the tape, or of a service that is live: such a request diverges from nothing."""
    decision = pending.decision
    if decision is not None and decision.action in (Action.SERVE, *_LEAVING):
        is_served = decision.action is Action.SERVE
        seq = held.tape_seq if is_served else pending.lookup.passed_over
        pending.find(replace(pending.lookup, recorded=None, answered=True, in_place_of=seq))


def _note(held: HeldAtBreak) -> None:
    waited_s = (time.time_ns() - held.since_ns) / 1e9
    said = held.command.value if held.command is not None else "its client left"
    text = f"seq {held.pending.seq} was held at the breakpoint {held.why!r} for {waited_s:.1f} s: {said}"
    held.pending.open_run.note(EventKind.NOTED, text=text)
