"""What an agent sees when the tape has no answer: a refusal that says why, or a configured stub.

A refusal is HTTP 424 with headers that keep SDKs from trying again; it names the nearest recorded
exchange and the first difference. Both are noted as divergences: the agent can go on, but the replay is
not called faithful. Telemetry that nobody wrote is refused too, and is no divergence.
"""

import asyncio
import contextlib
from collections.abc import Awaitable

from mitmproxy import http

from ..store import Record, StoreError
from ..tape.canonical import raw_key
from ..tape.cursor import Exhausted
from ..tape.divergence import Divergence, DivergenceKind, differences, nearest
from ..tape.events import EventKind
from ..tape.model import Exchange, Request, RequestClass, Response, Seq, VerdictKind
from ..tape.policy import Action, Drifted
from ..tape.refusal import REFUSAL_STATUS, refusal_body, refusal_headers, stub_headers
from .flight import Flight, detach, find_flight, note_verdict
from .session import Session
from .wire import make_answer

_CANDIDATES = 200
"""Recorded exchanges looked at for the nearest one."""


class Refuse:
    """Answer what the policy refused or stubbed."""

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Answer with the refusal or the stub."""
        flight = find_flight(flow)
        if flight is None or flight.decision is None:
            return None
        if flight.decision.action in (Action.REFUSE, Action.STUB):
            return self._answer(flow, flight)
        return None

    def response(self, flow: http.HTTPFlow) -> None:
        """End the flight: the made-up answer is on its way."""
        flight = find_flight(flow)
        if flight is None or flight.conversation is not None:
            return
        if not flight.recording and flight.steps is None:
            flight.finish()

    async def _answer(self, flow: http.HTTPFlow, flight: Flight) -> None:
        decision, request, session = flight.decision, flight.request, flight.session
        assert decision is not None
        assert request is not None
        divergence = None
        if session.tape is not None and flight.request_class is not RequestClass.TELEMETRY:
            divergence = await asyncio.to_thread(explain, session, flight, request)
        reason = session.problem or decision.reason
        stub = decision.answer
        if decision.action is Action.STUB and stub is not None:
            given = tuple((name.encode(), value.encode()) for name, value in stub.headers)
            flow.response = make_answer(stub.status, stub_headers(given, reason), stub.body)
            verdict = VerdictKind.STUBBED
        else:
            body = refusal_body(request, divergence, reason)
            fields = refusal_headers(reason, request, divergence)
            flow.response = make_answer(REFUSAL_STATUS, fields, body)
            verdict = VerdictKind.REFUSED
        note_verdict(flight, request, verdict, reason)
        if flight.effect is not None:
            flight.effect.seen = True
        if flight.upload is not None:
            await flight.keep_bodies()
            request = flight.request or request
        self._keep(flight, request, verdict, reason)
        if divergence is not None:
            session.note(EventKind.DIVERGED, seq=flight.seq, divergence=divergence.to_json())

    def _keep(self, flight: Flight, request: Request, verdict: VerdictKind, reason: str) -> None:
        """Keep what the tape does not hold: what was asked, and what was answered instead."""
        session, answer = flight.session, flight.flow.response
        if session.run is None or answer is None:
            return
        run, end_us = session.run.number, flight.now_us()
        made = Response(
            status=answer.status_code,
            reason=answer.data.reason,
            http_version="HTTP/1.1",
            headers=answer.data.headers.fields,
            body=answer.data.content or b"",
            head_us=end_us,
        )

        def make() -> Record:
            found = flight.fingerprint or session.fingerprint(request, flight.request_class)
            exchange = Exchange(
                seq=flight.seq,
                request_class=flight.request_class,
                verdict=verdict,
                reason=reason,
                request=request,
                started_ns=flight.started_ns,
                end_us=end_us,
                fingerprint=found,
                response=made,
                redactions=flight.redactions,
            )
            return Record(exchange, raw_key(request, flight.request_class), None)

        session.store.save_unwaited(run, make)


def refusal(request: Request | None, divergence: Divergence | None, reason: str) -> http.Response:
    """Give a refusal as a response."""
    asked = request or Request("", "http", "", 80, "", "HTTP/1.1", ())
    body = refusal_body(asked, divergence, reason)
    return make_answer(REFUSAL_STATUS, refusal_headers(reason), body)


def preset_refusal() -> http.Response:
    """Give what a playback answers if it never comes to a decision."""
    return make_answer(REFUSAL_STATUS, _PRESET_HEADERS, _PRESET_BODY)


_PRESET_REASON = "playback could not look this request up"
_PRESET_HEADERS = refusal_headers(_PRESET_REASON)
_PRESET_BODY = refusal_body(Request("", "http", "", 80, "", "HTTP/1.1", ()), None, _PRESET_REASON)


def refuse_failed(flow: http.HTTPFlow, error: Exception) -> None:
    """Answer a request whose deciding failed with a refusal.

    Its flight ends here, so that nothing more is decided, played, recorded or let out.
    """
    reason = f"internal error: {type(error).__name__}"
    flow.response = refusal(None, None, reason)
    flight = detach(flow)
    if flight is None:
        return
    facts = flight.facts
    path = facts.target.partition("?")[0]  # its query may hold what was to be redacted
    bare = Request(facts.method, facts.scheme, facts.host, facts.port, path, "HTTP/1.1", ())
    # Where it failed because nothing can be written, this cannot be either; the client is told all the same.
    with contextlib.suppress(StoreError):
        note_verdict(flight, flight.request or bare, VerdictKind.REFUSED, reason)
    flight.finish()


def explain(session: Session, flight: Flight, request: Request) -> Divergence:
    """Say how a request diverged: the nearest recorded exchange and what differs. Blocking."""
    tape = session.tape
    assert tape is not None
    found = flight.found
    if isinstance(found, Exhausted):
        return Divergence(
            DivergenceKind.EXHAUSTED,
            flight.seq,
            request.method,
            request.url,
            found.last,
            (),
            f"the tape answers this request {found.times} times, and it was asked once more",
        )
    if isinstance(found, Drifted):
        return Divergence(
            DivergenceKind.DRIFTED,
            flight.seq,
            request.method,
            request.url,
            found.seq,
            found.differences,
            found.text,
        )
    near = nearest(request, _candidates(session, request))
    if near is None or near[1].method != request.method:
        # Another method at the same place is another deed, however much alike they look.
        seq = near[0] if near is not None else None
        return Divergence(
            DivergenceKind.UNEXPECTED,
            flight.seq,
            request.method,
            request.url,
            seq,
            (),
            "the tape holds nothing like this request"
            + (f"; {near[1].method} of the same place is seq {seq}" if near is not None else ""),
        )
    secret = session.redactor.redacted_query(near[1]) | session.redactor.redacted_query(request)
    differing = differences(near[1], request, session.rules, flight.request_class, secret)
    return Divergence(
        DivergenceKind.CHANGED,
        flight.seq,
        request.method,
        request.url,
        near[0],
        differing,
        f"nearest on the tape is seq {near[0]}",
    )


def _candidates(session: Session, request: Request) -> list[tuple[Seq, Request]]:
    """Load the recorded requests that could be meant: those of the same endpoint come first."""
    assert session.tape is not None
    endpoints = session.find_endpoints()
    own = endpoints.get((request.method, request.url.partition("?")[0]), [])
    origin = f"{request.scheme}://{request.authority}/"
    seqs = list(own)
    if len(seqs) < _CANDIDATES:
        seqs += [
            seq
            for (_, url), found in endpoints.items()
            if url.startswith(origin)
            for seq in found
            if seq not in own
        ]
    unserved = [seq for seq in seqs if session.cursor and not session.cursor.served(seq)]
    chosen = (unserved or seqs)[:_CANDIDATES]
    loaded = []
    for seq in chosen:
        exchange = session.store.find_exchange(session.tape, seq)
        if exchange is not None:
            loaded.append((seq, exchange.request))
    return loaded
