"""Inject faults: choose the requests that a rule hits, and start the fault.

Chosen as requests arrive, in that order; noted and begun once it is decided that a request is sent on or answered from
the tape. What is refused, stubbed or not let go meets with no fault: nothing is laid over an answer of ours. What each
kind of fault does is in `tape/faults/`.

    inject.py                         which request is hit; `delay`, and the fault over a recorded answer
    short_circuit.py                  `status`, `reset` and `timeout`, while recording: the upstream is not asked
    engine/http/recording_stream.py   `cut` and `timeout_after_success`, while recording
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any

from mitmproxy import flow as mflow
from mitmproxy import http

from ...tape.exchange import Request
from ...tape.faults.kinds import find_kind
from ...tape.playback.script import Step, StepKind, Steps
from ...tape.policy.decide import Action, Decision
from ...tape.policy.faults import Injection
from ...tape.policy.revise import Injected
from ...tape.records.events import EventKind
from ..run.pending_exchange import PendingExchange, find_pending
from ..wire.convert_http_messages import make_answer
from ..wire.prepared_answer import LaidAnswer
from ..wire.websocket_handshake import is_upgrade

_LEAVING = (Action.FORWARD, Action.LIVE)


class Fault:
    """Choose, and delay what is sent on."""

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Count a request that has arrived, and say what hits it."""
        pending = find_pending(flow)
        if pending is None or not pending.seq:
            return None
        if pending.open_run.config.faults:
            upgrade = is_upgrade(pending.arrival.fields)
            pending.held.hit(pending.open_run.faults.take(pending.facts, upgrade=upgrade))
        return self.request(flow) if pending.held.injection is not None else None

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Begin what is done to a request that is about to be sent on."""
        pending = find_pending(flow)
        if pending is None or pending.held.injection is None or pending.decision is None:
            return None
        if pending.progress.forwarded or pending.decision.action not in _LEAVING:
            return None
        note_injected(pending, pending.held.injection, pending.decision)
        kind = find_kind(pending.held.injection)
        if kind.muted:
            pending.held.mute()
        delay_s = kind.delay_s(pending.held.injection)
        return _delay(pending, delay_s) if delay_s else None


async def _delay(pending: PendingExchange, delay_s: float) -> None:
    """Wait, unless the client leaves or the run ends; then nothing is sent."""
    if pending.held.delayed is not None:
        return
    delayed = pending.held.delay()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(delayed.wait(), delay_s)
    if pending.finished:
        pending.flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)


def note_injected(pending: PendingExchange, injection: Injection, decision: Decision) -> Decision:
    """Name the fault in the run, and in the exchange; give the decision that does so."""
    if not pending.progress.warn(injection.text):
        return decision
    decision = pending.revise(Injected(injection.text))
    pending.open_run.counters.injected[injection.kind.value] += 1
    pending.open_run.note(
        EventKind.INJECTED,
        seq=pending.seq,
        rule=injection.rule.label,
        inject=injection.kind.value,
        nth=injection.nth,
        seed=pending.open_run.faults.seed,
        **_describe(pending.request, injection),
    )
    return decision


def _describe(request: Request | None, injection: Injection) -> dict[str, Any]:
    """Give what a log needs beside the kind to say what the client was given: an answer of ours, or where one was cut."""
    kind = find_kind(injection)
    told: dict[str, Any] = {"after_bytes": injection.rule.after_bytes} if kind.cuts else {}
    if kind.cuts or kind.resets:
        told["ending"] = injection.ending.value
    made = None if request is None else answer_with(request, injection)
    if made is not None:
        told["answer"] = [made.status_code, list(made.headers.fields), made.raw_content or b""]
    return told


def lay_fault(request: Request | None, injection: Injection, recorded: LaidAnswer) -> LaidAnswer:
    """Lay a fault over the recorded answer that is about to be played.

    request: None where it has not been read whole.
    """
    made = None if request is None else answer_with(request, injection)
    if made is None:
        steps = find_kind(injection).lay_over(recorded.steps.rest(), injection)
        return recorded._replace(steps=Steps(steps))
    body = made.data.content or b""
    begin, end = Step(0, StepKind.HEAD), Step(0, StepKind.END)
    data = [Step(0, StepKind.DATA, body)] if body else []
    return LaidAnswer(made, Steps([begin, *data, end]), ragged=False)


def answer_with(request: Request, injection: Injection) -> http.Response | None:
    """Give the answer of ours that a fault is; None where it is none."""
    made = find_kind(injection).make_answer(request, injection)
    return None if made is None else make_answer(*made)
