"""The kill switch: stop a run, so that none of its requests is forwarded any more.

1. Every further request of the run is refused (`tape/policy/decide.py`), in record and playback alike, until the run is
   sealed; the name is free again after that.
2. What is under way is broken off: its client is reset, its upstream connection ends with that. It is kept as
   failed, so that a tape of it plays the same break.
3. An effect that had been sent may happen whatever is done here: its answer is waited for and kept as late, as when
   a client gives up. One that had not been sent is not sent any more.
4. Who did it, why and when is an event of the run, durable before whoever asked is told.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from dataclasses import replace

from mitmproxy import connection
from mitmproxy import flow as mflow

from ..store import StoreError
from ..tape.exchange import RedactedText
from ..tape.policy import decide as policy
from ..tape.policy.approval_decision import ApprovalDecision, Ruling
from ..tape.policy.refusal import STOPPED
from ..tape.policy.revise import Cause, Refused
from ..tape.records.events import Event, EventKind
from .answer.refuse import refusal
from .run.pending_exchange import PendingExchange, detach, note_verdict, on_their_way
from .run.registry import RunRegistry
from .run.run_state import OpenRun, Stopped


async def stop_run(
    registry: RunRegistry, open_run: OpenRun, *, by: str, pid: int, reason: str
) -> Stopped:
    """Stop a run and give what was noted; of a run that was stopped before, what was noted then. Loop.

    Nothing is let out from the first line on, also where the event cannot be written.
    Raises: StoreUnwritable.
    """
    if open_run.lifetime.stopped is not None:
        return open_run.lifetime.stopped
    said = open_run.redactor.redact_text(reason)
    stopped = open_run.lifetime.stopped = Stopped(by, pid, said, time.time_ns())
    open_run.policy = replace(open_run.policy, stopped=str(stopped))
    registry.counters.stopped += 1
    broken = _break_off(registry, open_run, RedactedText(str(stopped)))
    logged = {"by": by, "pid": pid, "reason": said}
    event = Event(EventKind.STOPPED, stopped.at_ns, logged)
    # All of them to their end, also where one cannot be written: else the rest would stay under way.
    done = await asyncio.gather(_note(open_run, event), *broken, return_exceptions=True)
    for failure in done:
        if isinstance(failure, BaseException):
            raise failure
    return stopped


async def _note(open_run: OpenRun, event: Event) -> None:
    await open_run.store.events.append_durably(open_run.number, event, vital=True)


def _break_off(
    registry: RunRegistry, open_run: OpenRun, text: RedactedText
) -> list[Awaitable[None]]:
    """Cut what is under way; give what is still to be written of it."""
    writing: list[Awaitable[None]] = []
    cut: dict[str, connection.Client] = {}
    for pending in list(on_their_way(open_run)):
        if pending.held.approval is not None:
            pending.held.approval.decide(ApprovalDecision(Ruling.ENDED, reason=text))
        if pending.progress.recording:
            if pending.progress.saved or pending.progress.gone is not None:
                continue  # it is over, or only its late answer is waited for
            if pending.keep_reading and _is_sent(pending):
                pending.progress.add_warning(text)
                pending.client_left(aborted=True)
            else:
                writing += _broken(registry, pending, text)
        elif pending.playing.steps is not None or pending.websocket is not None:
            writing += _broken(registry, pending, text)
        elif pending.decision is not None and pending.decision.action is policy.Action.SERVE:
            _refuse(pending, text)
            continue
        else:
            continue  # not decided yet, so it will be refused; or being answered by us
        cut[pending.flow.client_conn.id] = pending.flow.client_conn
    for client in open_run.clients.values():
        if getattr(client, "handshaking", False):  # its upstream is being connected
            cut[client.id] = client
    if registry.hooks.on_reset is not None:
        for client in cut.values():
            registry.hooks.on_reset(client)
    return writing


def _broken(
    registry: RunRegistry, pending: PendingExchange, text: RedactedText
) -> list[Awaitable[None]]:
    # Not sent on any more once its connection stands, or its intent is durable.
    pending.flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)
    assert registry.hooks.on_broken is not None
    waiting = registry.hooks.on_broken(pending, text, policy.STOPPED)
    return [waiting] if waiting is not None else []


def _is_sent(pending: PendingExchange) -> bool:
    """Say whether a request is on its way to its upstream, or there."""
    return (
        pending.progress.forwarded
        and pending.websocket is None
        and pending.flow.server_conn.connected
    )


def _refuse(pending: PendingExchange, text: str) -> None:
    """Answer what was found on the tape, and is not played yet, with a refusal."""
    pending.flow.response = refusal(pending.request, None, text, STOPPED)
    detach(pending.flow)
    decision = pending.revise(Refused(Cause.STOPPED, text, policy.STOPPED))
    if pending.request is not None:
        # Where nothing can be written whoever asked for the stop is told by the event.
        with contextlib.suppress(StoreError):
            note_verdict(pending, pending.request, decision)
    pending.finish()
