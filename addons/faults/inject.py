"""Faults on purpose: say which request is hit, and begin what is done to it.

Chosen as requests arrive, in that order; noted and begun once it is decided that a request is sent on or answered from
the tape. What is refused, stubbed or not let go meets with no fault: nothing is laid over an answer of ours.

    fault.py            which request is hit; `delay`, and the fault over a recorded answer
    fault_unasked.py    `status`, `reset` and `timeout`, while recording: the upstream is not asked
    engine/recording.py `cut` and `timeout_after_success`, while recording
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from dataclasses import replace

from mitmproxy import flow as mflow
from mitmproxy import http

from ...config import Inject
from ...tape.exchange import Request
from ...tape.playback.script import Step, StepKind, Steps
from ...tape.policy.decide import Action
from ...tape.policy.faults import Injection, lay_over, made_answer
from ...tape.records.events import EventKind
from ..run.pending import Flight, find_flight
from ..wire.http import make_answer
from ..wire.websocket_handshake import is_upgrade

_LEAVING = (Action.FORWARD, Action.LIVE)


class Fault:
    """Choose, and delay what is sent on."""

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Count a request that has arrived, and say what hits it."""
        flight = find_flight(flow)
        if flight is None or not flight.seq:
            return None
        if flight.session.config.faults:
            upgrade = is_upgrade(flight.fields)
            flight.injection = flight.session.faults.take(flight.facts, upgrade=upgrade)
        return self.request(flow) if flight.injection is not None else None

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Begin what is done to a request that is about to be sent on."""
        flight = find_flight(flow)
        if flight is None or flight.injection is None or flight.decision is None:
            return None
        if flight.forwarded or flight.decision.action not in _LEAVING:
            return None
        note_injected(flight)
        if flight.injection.kind is Inject.TIMEOUT_AFTER_SUCCESS:
            flight.muted = True
        if flight.injection.kind is Inject.DELAY:
            return _delay(flight, flight.injection.rule.delay_s)
        return None


async def _delay(flight: Flight, delay_s: float) -> None:
    """Wait, unless the client leaves or the run ends; then nothing is sent."""
    if flight.delayed is not None:
        return
    flight.delayed = asyncio.Event()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(flight.delayed.wait(), delay_s)
    if flight.finished:
        flight.flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)


def note_injected(flight: Flight) -> None:
    """Name the fault in the run, and in the exchange."""
    injection, decision = flight.injection, flight.decision
    assert injection is not None
    assert decision is not None
    if injection.text in flight.warnings:
        return
    flight.warnings.append(injection.text)
    flight.decision = replace(decision, reason=f"{decision.reason}; {injection.text}")
    flight.session.tally.injected[injection.kind.value] += 1
    flight.session.note(
        EventKind.INJECTED,
        seq=flight.seq,
        rule=injection.rule.label,
        inject=injection.kind.value,
        nth=injection.nth,
        seed=flight.session.faults.seed,
    )


def lay_fault(flight: Flight, injection: Injection) -> None:
    """Lay a fault over the recorded answer that a flight is about to play."""
    assert flight.steps is not None
    if injection.kind is Inject.STATUS:
        assert flight.request is not None
        made = answer_with(flight.request, injection)
        flight.flow.response, flight.ragged = made, False
        body = made.data.content or b""
        steps = [Step(0, StepKind.HEAD), Step(0, StepKind.DATA, body), Step(0, StepKind.END)]
        flight.steps = Steps(steps if body else [steps[0], steps[2]])
    else:
        flight.steps = Steps(lay_over(flight.steps.rest(), injection))


def answer_with(request: Request, injection: Injection) -> http.Response:
    """Give the answer of a fault that is a status."""
    return make_answer(*made_answer(request, injection))
