"""What is to be done: begin the flight, ask the policy, remember the decision.

Deny first, then fill in: in playback a refusal is preset before anything is looked up, so that whatever
goes wrong afterwards, the client gets that and nothing leaves.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING

from mitmproxy import flow as mflow
from mitmproxy import http

from ..config import Mode
from ..store import LogCorrupt
from ..tape.canonical.form import raw_key
from ..tape.classify.by_body import reads_by_body
from ..tape.classify.by_url import classify
from ..tape.diff.divergence import Dependence
from ..tape.exchange import NO_TUNNEL, Fingerprint, RequestClass, Seq
from ..tape.matching.cursor import Hit, Unknown
from ..tape.policy.decide import (
    CALM,
    Action,
    Decision,
    Drifted,
    Facts,
    Found,
    Policy,
    Standing,
    decide,
)
from .answer.refuse import preset_refusal, refusal
from .answer.stub import imitate_tape
from .bidirectional import is_duplex
from .run.constraints import asks_for_repeats, breaching, decide_leaving
from .run.open_run import Session
from .run.order import find_earlier, find_needs, reorder_reason
from .run.pending import HELD_BYTES, Flight, attach, find_flight
from .run.registry import Sessions
from .tunnels import find_missed, take_missed
from .wire.http import announced_length, read_request

if TYPE_CHECKING:
    from .run.model_drift import Drifts

_LARGE_BYTES = 64 * 1024
"""Bodies above this are brought into canonical form on a thread."""

_MEND = "record it again, or restore the store from a copy"

_NO_RULES = Policy((), (), stub=False)
"""For a playback without a tape: it has no run, so what a rule let out would be written down nowhere."""


class Judge:
    """Decide on every request, once."""

    def __init__(self, sessions: Sessions) -> None:
        """Decide for the runs in `sessions`."""
        self._sessions = sessions

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Begin the flight; in playback preset the refusal."""
        if flow.response is not None:
            return
        session = self._sessions.of(flow.client_conn)
        if session is None or session.ending:
            if session is not None and session.mode is not Mode.PLAYBACK:
                # As a server that closes an idle connection: the client asks again on a new one, and that
                # belongs to a new run.
                flow.error = mflow.Error(mflow.Error.KILLED_MESSAGE)
                return
            flow.response = refusal(None, None, "this connection belongs to no open run")
            return
        message = flow.request
        target = message.data.path.decode("latin-1")
        method, scheme, host = message.method, message.scheme, message.host
        kind = classify(method, scheme, host, message.port, target, session.config.classes)
        facts = Facts(method, scheme, host, message.port, target, kind.of)
        seq = session.next_seq() if session.run is not None else Seq(0)
        flight = Flight(session, flow, seq, facts)
        flight.kind = kind
        flight.fields = message.data.headers.fields
        flight.tunnel = session.tunnels.get(flow.client_conn.id, NO_TUNNEL)
        attach(flow, flight)
        if session.mode is Mode.PLAYBACK:
            flow.response = preset_refusal()
        # What a contract speaks of or a gate may hold is read whole before any of it is sent.
        asked = session.contracts is not None and session.contracts.asks(facts)
        no_room = _has_no_room(flight)
        at_once = no_room or is_duplex(message)
        if at_once and not asked and session.policy.find_gate(facts) is None:
            self._judge_head(flow, flight)
            flight.unkept = no_room and flight.decision is not None

    def _judge_head(self, flow: http.HTTPFlow, flight: Flight) -> None:
        """Decide by its head on a request that may be answered before it has ended."""
        session = flight.session
        flight.duplex = True
        flight.request_ended = False
        lost = session.mode is Mode.PLAYBACK and session.tape is None
        policy = _NO_RULES if lost else session.policy
        decision = decide_leaving(flight, policy, None)
        if decision.action in (Action.FORWARD, Action.LIVE):
            request = read_request(flow, flight.fields)
            flight.request, flight.redactions = session.redactor.head(request)
            flight.decision = decision

    async def playhead_uploaded(self, flight: Flight) -> None:
        """Give a body that is too large to be held its hash, by which it is compared."""
        assert flight.upload is not None
        flight.uploaded = await flight.upload.measure()

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Decide, now that the body is there."""
        flight = find_flight(flow)
        if flight is None or flight.decision is not None:
            return None
        session = flight.session
        flight.request_ended = True
        asked = read_request(flow, flight.fields, flight.uploaded)
        # The body of what is recorded is searched where it is written, off the loop.
        recording = session.mode is not Mode.PLAYBACK
        redact = session.redactor.head if recording else session.redactor.request
        request, flight.redactions = redact(asked)
        flight.request = request
        flight.searched = not recording
        if reads_by_body(flight.kind, request):
            flight.facts = replace(flight.facts, request_class=RequestClass.READ, by_body=True)
        if recording:
            return self._judge_leaving(flight, session)
        if session.tape is None:
            flight.decision = decide(flight.facts, session.mode, _NO_RULES, None)
            return None
        flight.raw = raw_key(request, flight.request_class)
        known = session.find_known(flight.raw)
        flight.exact = known is not None
        # Of an effect its effect key is needed even so.
        effect = flight.request_class is RequestClass.EFFECT
        if (known is None or effect) and len(request.body) > _LARGE_BYTES:
            return self._judge_large(flight, session)
        if known is None:
            known, flight.effect_key = session.identify(request, flight.request_class)
        elif effect:
            flight.effect_key = session.effect_key(request)
        return self._look_up(flight, session, known)

    def _judge_leaving(self, flight: Flight, session: Session) -> Awaitable[None] | None:
        """Decide on a request that leaves unless a gate or a limit is in its way."""
        assert flight.request is not None
        if _needs_look(flight, session):
            if len(flight.request.body) > _LARGE_BYTES:
                return self._judge_held(flight, session)
            _look_closely(flight, session)
        self._let_out(flight, session)
        return None

    async def _judge_held(self, flight: Flight, session: Session) -> None:
        await asyncio.to_thread(_look_closely, flight, session)
        self._let_out(flight, session)

    def _let_out(self, flight: Flight, session: Session) -> None:
        flight.decision = decide_leaving(flight, session.policy, None)

    async def _judge_large(self, flight: Flight, session: Session) -> None:
        assert flight.request is not None
        found, flight.effect_key = await asyncio.to_thread(
            session.identify, flight.request, flight.request_class
        )
        looking = self._look_up(flight, session, found)
        if looking is not None:
            await looking

    def _look_up(
        self, flight: Flight, session: Session, found: Fingerprint
    ) -> Awaitable[None] | None:
        flight.fingerprint = found
        assert session.cursor is not None
        hit = session.cursor.find(found, flight.request_class, repeat=self._repeats(flight))
        if session.policy.find_live(flight.facts) is not None:
            flight.found = hit
            self._let_out(flight, session)
            return None
        if isinstance(hit, Unknown) and flight.request_class is RequestClass.INFERENCE:
            return self._look_for_drift(flight, session)
        if not isinstance(hit, Hit) and session.policy.imitates(flight.facts):
            return self._settle_stub(flight, session, hit)
        return self._decide(flight, session, found, hit)

    async def _settle_stub(self, flight: Flight, session: Session, found: Found) -> None:
        """Decide on an effect that is not on the tape, once the tape was asked for a pattern."""
        flight.found = found
        flight.made = await asyncio.to_thread(imitate_tape, flight)
        self._settle(flight, session, found)

    async def _look_for_drift(self, flight: Flight, session: Session) -> None:
        """Look for a recorded model call that differs in what may drift alone."""
        if session.drifts is None:
            made = await asyncio.to_thread(_make_drifts, session)
            session.drifts = session.drifts or made
        assert flight.request is not None
        async with session.drifts.lock:
            near, needs = await session.drifts.find(flight.request), None
            while near is not None and near.found.allowed:
                needs = await self._find_needs(flight, session, near.found.seq)
                if not session.drifts.is_served(near):
                    break
                # Somebody has asked for it meanwhile just as it was recorded.
                near, needs = await session.drifts.find(flight.request), None
            if near is None:
                self._settle(flight, session, Unknown())
            elif self._settle(flight, session, near.found):
                self._take(flight, session, near.fingerprint, near.found.seq, needs)

    def _decide(
        self, flight: Flight, session: Session, fingerprint: Fingerprint, found: Found
    ) -> Awaitable[None] | None:
        """Decide, and move the cursor past what is about to be served.

        fingerprint: under which the cursor has what was found.
        """
        if self._settle(flight, session, found):
            assert isinstance(found, Hit)
            if not found.repeated and find_earlier(session, found.seq) != ():
                return self._check_order(flight, session, fingerprint)
            self._take(flight, session, fingerprint, found.seq, None)
        return None

    def _settle(self, flight: Flight, session: Session, found: Found) -> bool:
        """Decide on what stays; True where a recorded exchange is to be served, unless it comes too early."""
        now = breaching(flight, Standing(model=flight.made is not None))
        flight.decision = decide(flight.facts, session.mode, session.policy, found, now)
        flight.found = found
        if flight.decision.action is not Action.SERVE:
            return False
        assert isinstance(found, Hit | Drifted)
        assert flight.request is not None
        missed = find_missed(session, flight.request, found.seq) if session.failing else None
        if missed is not None:
            take_missed(session, missed)
            reason = "on tape: the tunnel that failed before this request"
            flight.decision = Decision(Action.SERVE, reason, "tape", missed.seq)
            return False
        return True

    def _take(
        self,
        flight: Flight,
        session: Session,
        fingerprint: Fingerprint,
        seq: Seq,
        needs: Dependence | None,
    ) -> None:
        """Read what is served and move the cursor past it; refuse what cannot be, or comes before what it needs."""
        assert session.cursor is not None
        if needs is not None and not session.cursor.served(needs.tape_seq):
            flight.needs = needs
            flight.decision = Decision(Action.REFUSE, reorder_reason(seq, needs), "tape")
            return
        assert session.tape is not None
        try:
            flight.recorded = session.store.find_exchange(session.tape, seq)
            problem = "" if flight.recorded is not None else "it is missing"
        except LogCorrupt as error:
            problem = str(error)
        if problem:
            flight.unreadable = True
            reason = f"on the tape as seq {seq}, which cannot be read ({problem}); {_MEND}"
            flight.decision = Decision(Action.REFUSE, reason, "tape")
        else:
            session.cursor.take(fingerprint, Hit(seq))

    def _repeats(self, flight: Flight) -> bool:
        """Say whether a rule has the last answer to a request served again."""
        return flight.session.policy.find_repeat(flight.facts) is not None

    async def _check_order(self, flight: Flight, session: Session, found: Fingerprint) -> None:
        """Serve a request that others on the tape come before, unless it depends on one of them."""
        cursor = session.cursor
        assert cursor is not None
        hit = flight.found
        while isinstance(hit, Hit):
            needs = await self._find_needs(flight, session, hit.seq)
            again = cursor.find(found, flight.request_class, repeat=self._repeats(flight))
            if again == hit:
                self._take(flight, session, found, hit.seq, needs)
                return
            # Another request with the same fingerprint was served meanwhile.
            hit = flight.found = again
            if not isinstance(hit, Hit) and session.policy.imitates(flight.facts):
                await self._settle_stub(flight, session, hit)
            else:
                now = breaching(flight, CALM)
                flight.decision = decide(flight.facts, session.mode, session.policy, hit, now)

    async def _find_needs(self, flight: Flight, session: Session, seq: Seq) -> Dependence | None:
        """Find what a request depends on that has not been served, if it is answered by exchange `seq`."""
        if find_earlier(session, seq) == ():
            return None
        request = flight.request
        assert request is not None
        return await asyncio.to_thread(find_needs, session, seq, request, flight.redactions)


def _needs_look(flight: Flight, session: Session) -> bool:
    """Say whether a request has to be compared with others before it leaves."""
    if session.mode is not Mode.RECORD:
        return False
    meter = session.meter
    if meter is not None and meter.asks_for_repeats(flight):
        return True
    return session.policy.find_gate(flight.facts) is not None


def _look_closely(flight: Flight, session: Session) -> None:
    """Make what a gate or a limit needs: the request as it is shown to people, and its keys. Any thread."""
    assert flight.request is not None
    flight.request, more = session.redactor.request_body(flight.request)
    flight.redactions += more
    flight.searched = True
    counted = session.meter is not None and session.meter.asks_for_repeats(flight)
    if counted or asks_for_repeats(flight):
        found = session.identify(flight.request, flight.request_class)
        flight.fingerprint, flight.effect_key = found


def _make_drifts(session: Session) -> "Drifts":
    from .run.model_drift import Drifts  # reads every dialect: for a miss, not for a start

    return Drifts(session)


def _has_no_room(flight: Flight) -> bool:
    """Say whether a request is too large to be held, cannot be kept, and may pass all the same."""
    session = flight.session
    if session.mode is not Mode.RECORD or not session.passes:
        return False
    full = session.store.writer.failed is not None
    return full and announced_length(flight.fields) > HELD_BYTES
