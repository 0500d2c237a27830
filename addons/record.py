"""Keep what passes: the intent before it is forwarded, the outcome before its last byte is released.

Only an effect's intent is waited for; every outcome is. Everything that costs time, redaction of the
answer, canonical form, packing, happens on the store's writer thread.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from mitmproxy import connection, http

from ..config import Mode
from ..store import Record as StoredRecord
from ..store import StoreError, StoreUnwritable
from ..tape.canonical.form import raw_key
from ..tape.contracts.holdback import can_hold
from ..tape.diff.divergence import one_line
from ..tape.exchange import (
    Chunk,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Headers,
    Phase,
    Request,
    RequestClass,
    Response,
    VerdictKind,
)
from ..tape.playback.websocket import ABRUPT
from ..tape.policy.decide import Action
from ..tape.records.events import Event, EventKind
from .run.constraints import settle_gated
from .run.events import idempotency_key, intent_row, outcome_event
from .run.open_run import Session
from .run.pending import HELD_BYTES, Flight, find_flight, note_verdict
from .run.registry import Sessions
from .run.repeats import Effect
from .websocket import Kept, Played
from .wire.http import announced_length, noted
from .wire.upstream_failure import INTERNAL, NOT_SENT

LATE_ANSWER_S = 600.0
"""Longest time an effect's answer is waited for after the client has left."""

_HINT = "free space or make the store writable"
_UNBEGUN = "the run could not be begun"
_TERMINAL = (b"data: [DONE]", b"message_stop", b"response.completed", b"response.failed")
"""Pieces of a model's stream on which SDKs act before the stream has ended."""


class Record:
    """Record what is forwarded, in record mode and for live requests in playback."""

    def __init__(self, sessions: Sessions) -> None:
        """Record for the runs in `sessions`."""
        self._sessions = sessions
        sessions.on_unfinished = self.give_up
        sessions.on_broken = self.break_off

    # ---- hooks ---------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Begin a request that is sent on as it comes: it was decided by its head."""
        flight = find_flight(flow)
        if flight is None or not flight.duplex or flight.decision is None:
            return None
        waiting = self.request(flow)
        flow.request.stream = True
        return waiting

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Log the intent; for an effect, before it is forwarded."""
        flight = find_flight(flow)
        if flight is None or flight.decision is None or flight.forwarded:
            return None
        if flight.decision.action not in (Action.FORWARD, Action.LIVE):
            return None
        self._prepare(flow, flight)
        if flight.session.run is None or not flight.seq:
            if flight.session.mode is Mode.RECORD:
                _pass_unbegun(flight)
            flight.forwarded = True
            return None
        flight.recording = True
        if flight.request_class is RequestClass.EFFECT:
            return self._log_intent(flight)
        try:
            _append_intent(flight)
        except StoreUnwritable as error:
            flight.session.miss(error)
            flight.unlogged = True
        flight.forwarded = True
        return None

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Let the answer pass piece by piece."""
        flight = find_flight(flow)
        if flight is None or flow.response is None or flight.steps is not None:
            return
        if flight.decision is None or flight.decision.action not in (Action.FORWARD, Action.LIVE):
            return
        flight.head_us = flight.now_us()
        if flow.response.status_code == 101:
            return
        flow.response.stream = True
        kind = flow.response.headers.get("content-type", "")
        flight.event_stream = kind.lower().startswith("text/event-stream")
        if flow.request.method != "HEAD":
            flight.announced = announced_length(flow.response.data.headers.fields)
        if flight.terms is not None and flight.recording:
            flight.terms.holds = _may_hold(flight, flow.response)

    async def playhead_release(self, flight: Flight) -> None:
        """Make durable what has passed, before a piece that the agent will act on is released."""
        try:
            await self._release(flight)
        except StoreUnwritable as error:
            flight.session.miss(error)

    async def _release(self, flight: Flight) -> None:
        if flight.unkept:
            return
        if flight.download is not None:
            # Too large to be written twice: what has passed is in its file, and kept with the outcome.
            await flight.download.settle()
        elif flight.recording and not flight.broken and flight.request_ended:
            # Half a request would stand for the whole one.
            made = _Maker(flight, flight.flow.response, complete=False)
            assert flight.session.run is not None
            await flight.session.store.save(flight.session.run.number, made)

    async def playhead_left(self, flight: Flight) -> None:
        """Correct an exchange whose client left before it was sent the end."""
        session, gone = flight.session, flight.gone
        if session.run is None or gone is None or not flight.seq:
            return
        if flight.broken or flight.unkept:
            return
        made = _Maker(flight, flight.flow.response, complete=True, tell=_left)
        try:
            await session.store.save(session.run.number, made)
        except StoreUnwritable as error:
            session.miss(error)

    async def response(self, flow: http.HTTPFlow) -> None:
        """Log the outcome; the last byte is released after this."""
        flight = find_flight(flow)
        if flight is None or flight.decision is None or flight.steps is not None:
            return
        if flight.recording and not flight.saved:  # else its run was ended over it
            if flight.conversation is not None:
                self._begin(flight)  # its outcome is its end
                return
            await self._save(flight, flow.response, complete=True)
        elif not flight.recording and flight.decision.action is Action.FORWARD:
            flight.finish()  # else whoever saves it does so, once its bodies are kept

    async def playhead_talked(self, flight: Flight) -> None:
        """Log how a WebSocket ended; its last closing frame is released after this."""
        if flight.recording and not flight.saved:
            await self._save(flight, flight.flow.response, complete=True)

    async def error(self, flow: http.HTTPFlow) -> None:
        """Log that the exchange failed, or that the client left."""
        flight = find_flight(flow)
        if flight is None:
            return
        if not flight.recording:
            if flight.decision is not None and flight.decision.action is Action.SERVE:
                # Its client left before the first step.
                gone_us = flight.now_us()
                flight.session.note(EventKind.OUTCOME, seq=flight.seq, gone_us=gone_us)
            flight.finish()
        elif not flight.saved:
            if flight.fault is None:
                flight.client_left()
                if flight.keep_reading and not flight.head_us and flight.steps is None:
                    # Once it has been sent, an effect's answer is waited for.
                    flight.failed(NOT_SENT, phase=Phase.CONNECT, ending=Ending.RST, code=0)
            answer = flow.response if flight.head_us else None
            # An answer to HEAD is its head, and a client that has it may leave at once.
            whole = answer is not None and flow.request.method == "HEAD" and flight.fault is None
            await self._save(flight, answer, complete=whole)

    async def client_disconnected(self, client: connection.Client) -> None:
        """Keep the upstream connections while late answers are still to come."""
        session = self._sessions.of(client)
        if session is None:
            return
        if crashed := getattr(client, "crashed", ""):  # put there by our handler
            await self._crashed(session, client, f"{INTERNAL}: {crashed}")
            return
        late = [
            flight
            for flight in session.flights
            if flight.flow.client_conn is client and flight.keep_reading and flight.forwarded
        ]
        for flight in late:
            if not flight.saved:
                flight.client_left()  # its stream may hear of it only once the upstream is connected
        for flight in late:
            await flight.ended(LATE_ANSWER_S)

    async def _crashed(self, session: Session, client: connection.Client, text: str) -> None:
        """Keep what was under way on a connection that an error of ours has ended."""
        session.note(EventKind.NOTED, text=f"a client's connection was reset: {text}")
        for flight in [found for found in session.flights if found.flow.client_conn is client]:
            if flight.recording and not flight.saved:
                if isinstance(flight.conversation, Kept):
                    flight.conversation.end(ABRUPT, "", by_client=False)
                flight.failed(text, phase=Phase.HEAD, ending=Ending.RST, code=0)
                answer = flight.flow.response if flight.head_us else None
                await self._save(flight, answer, complete=False)
            elif flight.steps is not None and flight.request is not None:
                note_verdict(flight, flight.request, VerdictKind.REFUSED, text)
            flight.finish()

    async def keep_failed(self, flight: Flight) -> None:
        """Keep an exchange that failed before any answer, before its client is told."""
        await self._save(flight, None, complete=False)

    async def give_up(self, flight: Flight) -> None:
        """Save what there is of an exchange whose run ends now."""
        if isinstance(flight.conversation, Played):
            await flight.conversation.end()
        if flight.recording and not flight.saved:
            if flight.conversation is None:
                flight.client_left()
            flight.warnings.append("its run ended before the answer did")
            answer = flight.flow.response if flight.head_us else None
            whole = flight.conversation is not None or (flight.muted and flight.whole)
            await self._save(flight, answer, complete=whole)
        flight.finish()

    def break_off(self, flight: Flight, text: str, rule: str) -> Awaitable[None] | None:
        """Keep an exchange as cut by us, and why; one that was served is noted as refused after all.

        rule: what decided that.
        Gives what is still to be written; whatever comes of the exchange from now on is not.
        """
        if flight.recording and not flight.saved:
            if isinstance(flight.conversation, Kept):
                flight.conversation.end(ABRUPT, "", by_client=False)
            if flight.muted:
                flight.client_left()  # it has heard nothing of what came
            begun = bool(flight.taken) or flight.head_sent
            kind, phase = (FaultKind.CUT, Phase.BODY) if begun else (FaultKind.RESET, Phase.HEAD)
            flight.fault = Fault(kind, phase, one_line(text), flight.now_us(), Ending.RST)
            flight.broken = flight.saved = True
            answer = flight.flow.response if flight.head_us else None
            return self._save(flight, answer, complete=False)
        waiting = None
        if flight.request is not None and not flight.finished:
            # Where nothing can be written, whoever breaks it off has more to say than this.
            with contextlib.suppress(StoreError):
                note_verdict(flight, flight.request, VerdictKind.REFUSED, text, rule=rule)
            if isinstance(flight.conversation, Played):
                waiting = flight.conversation.end()
        flight.finish()
        return waiting

    # ---- inside --------------------------------------------------------------------------------

    def _prepare(self, flow: http.HTTPFlow, flight: Flight) -> None:
        flow.response = None
        wants = flight.session.config.upstream_encoding
        identity = {
            RequestClass.INFERENCE: wants.inference,
            RequestClass.READ: wants.reads,
            RequestClass.EFFECT: wants.effects,
        }.get(flight.request_class, False)
        if identity and "accept-encoding" in flow.request.headers:
            flow.request.headers["accept-encoding"] = "identity"

    async def _log_intent(self, flight: Flight) -> None:
        assert flight.session.run is not None
        try:
            await flight.session.store.append_durably(
                flight.session.run.number, lambda: _intent(flight)
            )
        except StoreUnwritable as error:
            flight.session.miss(error, effects=1)
            flight.unlogged = True
        flight.forwarded = True

    def _begin(self, flight: Flight) -> None:
        """Note how a WebSocket began; nobody waits. Should we die over it, its messages have their exchange."""
        assert flight.session.run is not None
        made = _Maker(flight, flight.flow.response, complete=True)
        try:
            flight.session.store.save_unwaited(flight.session.run.number, made)
        except StoreUnwritable as error:
            flight.session.miss(error)

    async def _save(self, flight: Flight, answer: http.Response | None, *, complete: bool) -> None:
        assert flight.session.run is not None
        flight.saved = True
        settle_gated(flight, answer.status_code if answer is not None else 0)
        try:
            if flight.session.meter is not None:
                flight.session.meter.heard(flight, answer)
            try:
                await self._write(flight, answer, complete=complete)
            except StoreUnwritable as error:
                if flight.terms is not None and flight.terms.holds:
                    raise  # it is checked where it is written, and not let go unchecked
                flight.unkept = True
                flight.session.miss(error, exchanges=1)
            withheld = False
            if flight.terms is not None:
                flight.terms.tell(flight)
                withheld = bool(flight.terms.withheld)
            if complete and flight.gone is None and not withheld:
                for effect in (flight.effect, flight.gated):
                    if effect is not None:
                        effect.seen = True  # the last byte is released now
        finally:
            flight.finish()

    async def _write(self, flight: Flight, answer: http.Response | None, *, complete: bool) -> None:
        assert flight.session.run is not None
        if flight.unkept or (isinstance(flight.conversation, Kept) and flight.conversation.holed):
            raise StoreUnwritable("a part of the exchange could not be written", _HINT)
        await flight.keep_bodies()
        if flight.unlogged:
            _append_intent(flight)
        made = _Maker(flight, answer, complete=complete, tell=_outcome)
        await flight.session.store.save(flight.session.run.number, made)


def _pass_unbegun(flight: Flight) -> None:
    """Count a request of a recording that could not be begun yet.

    Raises: StoreUnwritable, where a contract may refuse its answer: that is checked where it is written.
    """
    if flight.terms is not None and flight.terms.bound.refuses_answers:
        raise StoreUnwritable(_UNBEGUN, _HINT)
    effect = flight.request_class is RequestClass.EFFECT
    flight.session.gap.note(_UNBEGUN, exchanges=1, effects=int(effect))


def _append_intent(flight: Flight) -> None:
    """Log an intent that nobody waits for."""
    assert flight.session.run is not None
    flight.session.store.append_made(flight.session.run.number, lambda: _intent(flight))


def _may_hold(flight: Flight, answer: http.Response) -> bool:
    """Say whether an answer is held back until it has been checked."""
    terms = flight.terms
    if terms is None or flight.injection is not None or flight.announced > HELD_BYTES:
        return False
    method, fields = flight.flow.request.method, answer.data.headers.fields
    return terms.bound.refuses_answers and can_hold(method, answer.status_code, fields)


def _intent(flight: Flight) -> Event:
    """Make the intent event. Runs on the writer's thread."""
    # What is sent on as it comes has no body yet that could be compared.
    request = flight.request if flight.duplex else _identified(flight)
    assert request is not None
    data = intent_row(
        flight.seq,
        request,
        flight.request_class,
        flight.fingerprint or b"",
        repeat=flight.repeat,
    )
    assert flight.decision is not None
    data["rule"] = flight.decision.rule
    if flight.facts.by_body:
        data["by_body"] = True
    if flight.session.mode is Mode.PLAYBACK or flight.held is not None:
        data["reason"] = flight.decision.reason
    flight.told = data
    return Event(EventKind.INTENT, flight.started_ns, data)


def _identified(flight: Flight) -> Request:
    request = flight.request
    assert request is not None
    if flight.sent and not request.body:
        request = flight.request = replace(request, body=b"".join(flight.sent))
    if not flight.searched and request.body:
        flight.searched = True
        request, more = flight.session.redactor.request_body(request)
        flight.request = request
        flight.redactions = (*flight.redactions, *more)
    if flight.fingerprint is None:
        found = flight.session.identify(request, flight.request_class)
        flight.fingerprint, flight.effect_key = found
    if flight.effect is None and flight.effect_key is not None:
        flight.effect = Effect(flight.seq, idempotency_key(request))
        flight.repeat = flight.session.effects.note(flight.effect_key, flight.effect)
    return request


def _outcome(flight: Flight, exchange: Exchange) -> Event:
    live = exchange.verdict is VerdictKind.LIVE
    return outcome_event(exchange, live=live, charge=flight.charge)


def _left(flight: Flight, exchange: Exchange) -> Event:
    """Correct an outcome that was told already."""
    assert exchange.gone is not None
    told = {"seq": flight.seq, "gone_us": exchange.gone.at_us}
    return Event(EventKind.OUTCOME, time.time_ns(), told)


class _Maker:
    """Builds the stored record on the writer's thread from what was true when it was handed over."""

    __slots__ = (
        "charged",
        "chunks",
        "complete",
        "conversation",
        "end_us",
        "flight",
        "head",
        "pieces",
        "places",
        "spilled",
        "tell",
        "terms",
    )

    def __init__(
        self,
        flight: Flight,
        answer: http.Response | None,
        *,
        complete: bool,
        tell: Callable[[Flight, Exchange], Event] | None = None,
    ) -> None:
        """Take what is true now.

        tell: makes what the log says of it; None where its outcome is still to come.
        """
        self.flight = flight
        self.complete = complete
        self.tell = tell
        meter = flight.session.meter
        model = flight.request_class is RequestClass.INFERENCE
        final = tell is _outcome or not flight.saved
        self.charged = (
            meter if meter is not None and meter.reads_answers and model and final else None
        )
        judges = flight.terms is not None and flight.terms.bound.answers
        self.terms = flight.terms if judges and complete and tell is _outcome else None
        self.end_us = flight.now_us()
        self.pieces = list(flight.pieces)
        self.chunks: tuple[Chunk, ...] = tuple(flight.chunks)
        self.spilled = flight.downloaded
        self.places = flight.download.secrets if flight.download is not None else ()
        talk = flight.conversation
        self.conversation = talk.snapshot() if isinstance(talk, Kept) else None
        self.head: tuple[int, bytes, bytes, Headers, Headers] | None = None
        if answer is not None:
            data = answer.data
            trailers = data.trailers.fields if data.trailers else ()
            head = (data.status_code, data.reason, data.http_version, data.headers.fields)
            self.head = (*head, trailers)
            if not self.pieces and data.content:
                self.pieces = [data.content]

    def __call__(self) -> StoredRecord:
        flight = self.flight
        request = _identified(flight)
        session = flight.session
        redactions, warnings = flight.redactions, tuple(flight.warnings)
        response = None
        if self.head is not None:
            status, reason, version, fields, trailers = self.head
            response = Response(
                status=status,
                reason=reason,
                http_version=version.decode("latin-1"),
                headers=fields,
                body=b"".join(self.pieces),
                head_us=flight.head_us,
                chunks=self.chunks,
                trailers=trailers,
                complete=self.complete,
                spilled=self.spilled,
                head_need=flight.head_need,
                ragged=flight.ragged,
                secrets=self.places,
            )
        if self.charged is not None:
            self.charged.charge(flight, request, response)
        if response is not None:
            came = response
            response, more, changed = session.redactor.response(came)
            redactions, warnings = (*redactions, *more), (*warnings, *changed)
            if self.terms is not None:
                held = self.terms.holds and flight.gone is None
                redact_text = session.redactor.redact_text
                self.terms.judge(request, came, response, redact_text, held=held)
        live = session.mode is Mode.PLAYBACK
        decision = flight.decision
        assert decision is not None
        assert flight.fingerprint is not None
        client = flight.flow.client_conn
        exchange = Exchange(
            seq=flight.seq,
            request_class=flight.request_class,
            verdict=VerdictKind.LIVE if live else VerdictKind.RECORDED,
            reason=decision.reason,
            request=request,
            started_ns=flight.started_ns,
            end_us=self.end_us,
            fingerprint=flight.fingerprint,
            response=response,
            fault=flight.fault,
            gone=flight.gone,
            redactions=redactions,
            warnings=(*warnings, *noted(flight.flow)),
            alpn_offers=tuple(client.alpn_offers) if client.tls else (),
            alpn=client.alpn,
            repeat=flight.repeat,
            withheld=flight.terms.withheld if flight.terms is not None else "",
            tunnel=flight.tunnel,
            websocket=session.redactor.websocket(self.conversation),
        )
        if session.bus is not None:
            flight.answered = exchange
        outcome = self.tell(flight, exchange) if self.tell is not None else None
        return StoredRecord(exchange, raw_key(request, flight.request_class), outcome)


def is_terminal(data: bytes) -> bool:
    """Say whether a piece of a stream holds something that an SDK acts on before the end."""
    return any(mark in data for mark in _TERMINAL)
