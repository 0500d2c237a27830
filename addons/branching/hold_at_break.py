"""Hold the requests of a playback at breakpoints, between what was decided and what is done."""

import time
from collections.abc import Awaitable

from mitmproxy import flow as mflow
from mitmproxy import http

from ...config import Mode
from ...tape.policy.breakpoints import BreakCommand
from ...tape.policy.revise import Supposed
from ...tape.records.events import EventKind
from ..run.lifecycle.breaks import Breaks, HeldAtBreak
from ..run.pending_exchange import PendingExchange, find_pending
from ..run.registry import RunRegistry


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
    if pending.is_deserted:
        if flow.response is None:  # its client has left; one that was stopped is answered
            flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)
        return
    if held.command is BreakCommand.ANSWER and held.answer is not None:
        pending.revise(Supposed(held.tape_seq, held.answer))


def _note(held: HeldAtBreak) -> None:
    waited_s = (time.time_ns() - held.since_ns) / 1e9
    said = held.command.value if held.command is not None else "its client left"
    text = f"seq {held.pending.seq} was held at the breakpoint {held.why!r} for {waited_s:.1f} s: {said}"
    held.pending.open_run.note(EventKind.NOTED, text=text)
