"""Hold what a gate names until somebody rules on it.

Nothing is sent before the ruling, nothing after its client has left, and the other requests go on meanwhile. What
is not approved is answered as a refusal, so that the agent can go on.
"""

import logging
from collections.abc import Awaitable
from dataclasses import replace

from mitmproxy import http

from ..tape.policy.decide import Action, Decision
from ..tape.policy.gates import Ruled, Ruling
from ..tape.records.events import EventKind
from .run.approvals import MOST_HELD, Gates
from .run.events import repeat_row
from .run.pending import Flight, find_flight
from .run.registry import Sessions

logger = logging.getLogger(__name__)


class Gate:
    """Wait for rulings."""

    def __init__(self, sessions: Sessions) -> None:
        """Hold the requests of the runs in `sessions`."""
        self._gates: Gates = sessions.gates

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Hold a request that the policy has decided to hold."""
        flight = find_flight(flow)
        if flight is None or flight.decision is None:
            return None
        if flight.decision.action is not Action.HOLD:
            return None
        if flight.session.run is None:
            _refuse(flight, "its run could not be begun, so nobody could be asked")
            return None
        if len(self._gates) >= MOST_HELD:
            _refuse(flight, f"{MOST_HELD} requests are held already; approve or deny some")
            return None
        return self._hold(flight, flight.decision)

    async def _hold(self, flight: Flight, decision: Decision) -> None:
        session, request = flight.session, flight.request
        assert session.run is not None
        assert request is not None
        assert decision.gate is not None
        assert decision.then is not None
        held = self._gates.hold(
            session.run.id,
            flight.seq,
            request,
            decision.gate,
            reason=decision.reason,
            rule=decision.rule,
            repeat=decision.repeat,
            redact_text=session.redactor.redact_text,
        )
        more = {"repeat": repeat_row(decision.repeat)} if decision.repeat is not None else {}
        session.note(
            EventKind.HELD,
            seq=flight.seq,
            method=request.method,
            url=request.url,
            digest=held.digest,
            rule=held.rule,
            reason=held.reason,
            deadline_s=held.deadline_s,
            **more,
        )
        logger.warning("%s: %s %s is %s", held.name, request.method, request.url, held.reason)
        flight.held = held
        ruled = Ruled(Ruling.ENDED)
        try:
            ruled = await held.wait()
            if ruled.ruling is Ruling.APPROVED and flight.left:
                ruled = replace(ruled, ruling=Ruling.LEFT)
            elif ruled.ruling is Ruling.APPROVED and session.stopped is not None:
                ruled = Ruled(Ruling.ENDED, reason=str(session.stopped))
        finally:
            self._gates.let_go(held, ruled)
            session.tally.rulings[ruled.ruling.value] += 1
        session.note(
            EventKind.RULED,
            seq=flight.seq,
            digest=held.digest,
            ruling=ruled.ruling.value,
            by=ruled.by,
            via=ruled.via,
            reason=ruled.reason,
        )
        reason = f"{decision.reason}; {ruled.text}"
        if ruled.ruling is Ruling.APPROVED:
            flight.decision = Decision(decision.then, reason, decision.rule)
        else:
            _refuse(flight, reason)


def _refuse(flight: Flight, reason: str) -> None:
    """Have a request refused that was about to leave: it has not been done, and costs nothing."""
    assert flight.decision is not None
    if flight.gated is not None:
        flight.gated.undone = True
    if flight.session.meter is not None:
        flight.session.meter.count(flight, -1)
    flight.decision = Decision(Action.REFUSE, reason, flight.decision.rule)
