"""Record traffic: the intent before a request is forwarded, the outcome before the last byte is released.

Only an effect's intent is waited for; every outcome is. Everything that costs time, redaction of the
answer, canonical form, packing, happens on the store's writer thread; a large answer is redacted by another one before that.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from mitmproxy import connection, http

from ..config import Mode
from ..store import Record as StoredRecord
from ..store import RunInfo, StoreError, StoreUnwritable
from ..tape.canonical.canonical_request import raw_key
from ..tape.contracts.can_hold_back import can_hold
from ..tape.diff.divergence_types import one_line
from ..tape.exchange import (
    NO_TEXT,
    Alpn,
    Chunk,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Fingerprint,
    Headers,
    Phase,
    RawAnswer,
    RawResponse,
    RedactedText,
    Redaction,
    Request,
    RequestClass,
    Response,
    VerdictKind,
)
from ..tape.playback.websocket import ABRUPT
from ..tape.policy.decide import Action
from ..tape.policy.revise import Cause, Refused
from ..tape.records.events import Event, EventKind
from .answer.delivery import note_left
from .run.exchange_events import idempotency_key, intent_row, outcome_event
from .run.pending_exchange import (
    HELD_BYTES,
    LATE_ANSWER_S,
    PendingExchange,
    claims_row,
    find_pending,
    note_verdict,
    on_their_way,
)
from .run.registry import RunRegistry
from .run.repeats import Effect
from .run.request_constraints import settle_gated
from .run.run_state import OpenRun
from .websocket import WebSocketPlayer, WebSocketRecorder
from .wire.http import announced_length, noted
from .wire.upstream_failure import INTERNAL, NOT_SENT

_SEARCHED_BESIDE = 256 * 1024
"""Bytes of an answer from which another thread looks for its secrets: whoever else writes does not wait for that."""
_HINT = "free space or make the store writable"
_UNBEGUN = "the run could not be begun"


class Record:
    """Record what is forwarded, in record mode and for live requests in playback."""

    def __init__(self, registry: RunRegistry) -> None:
        """Record for the open runs of `registry`."""
        self._registry = registry
        registry.on_unfinished = self.give_up
        registry.on_overdue = self.give_up_overdue
        registry.on_broken = self.break_off

    # ---- hooks ---------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Begin a request that is sent on as it comes: it was decided by its head."""
        pending = find_pending(flow)
        if pending is None or not pending.body.bidirectional or pending.decision is None:
            return None
        waiting = self.request(flow)
        flow.request.stream = True
        return waiting

    def request(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Log the intent; for an effect, before it is forwarded."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None or pending.forwarded:
            return None
        if pending.decision.action not in (Action.FORWARD, Action.LIVE):
            return None
        self._prepare(flow, pending)
        if pending.open_run.info is None or not pending.seq:
            if pending.open_run.mode is Mode.RECORD:
                _pass_unbegun(pending)
            pending.progress.forward()
            return None
        pending.progress.begin()
        if pending.request_class is RequestClass.EFFECT:
            return self._log_intent(pending)
        try:
            _append_intent(pending)
        except StoreUnwritable as error:
            pending.open_run.miss(error)
            pending.progress.pass_unlogged()
        pending.progress.forward()
        return None

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """Let the answer pass piece by piece."""
        pending = find_pending(flow)
        if pending is None or flow.response is None or pending.steps is not None:
            return
        if pending.decision is None or pending.decision.action not in (Action.FORWARD, Action.LIVE):
            return
        pending.answer.begin(pending.now_us())
        if flow.response.status_code == 101:
            return
        flow.response.stream = True
        kind = flow.response.headers.get("content-type", "")
        fields = flow.response.data.headers.fields
        pending.answer.describe(
            event_stream=kind.lower().startswith("text/event-stream"),
            announced=announced_length(fields) if flow.request.method != "HEAD" else -1,
        )
        if pending.contract_state is not None and pending.recording:
            pending.contract_state.holds = _may_hold(pending, flow.response)

    async def playhead_release(self, pending: PendingExchange) -> None:
        """Make durable what has passed, before a piece that the agent will act on is released."""
        try:
            await self._release(pending)
        except StoreUnwritable as error:
            pending.open_run.miss(error)

    async def _release(self, pending: PendingExchange) -> None:
        if pending.progress.unsaved:
            return
        if pending.answer.download is not None and not pending.answer.download.is_aside:
            # Too large to be written twice: what has passed is in its file, and kept with the outcome.
            await pending.answer.download.settle()
        elif pending.recording and not pending.progress.broken and pending.body.request_ended:
            # Half a request would stand for the whole one.
            async with pending.in_memory():
                made = _Maker(pending, pending.flow.response, complete=False)
                await pending.open_run.store.exchanges.save(pending.open_run.number, made)

    async def playhead_left(self, pending: PendingExchange) -> None:
        """Correct an exchange whose client left before it was sent the end."""
        open_run, gone = pending.open_run, pending.gone
        if open_run.info is None or gone is None or not pending.seq:
            return
        if pending.progress.broken or pending.progress.unsaved:
            return
        made: Callable[[], StoredRecord]
        made = _Maker(pending, pending.flow.response, complete=True, make_event=_left)
        if pending.answer.download is not None and pending.answer.download.is_aside:
            made = partial(_corrected, pending, open_run.info)  # its body is in the store alone
        try:
            await open_run.store.exchanges.save(open_run.info.number, made)
        except StoreUnwritable as error:
            open_run.miss(error)

    async def response(self, flow: http.HTTPFlow) -> None:
        """Log the outcome; the last byte is released after this."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None or pending.steps is not None:
            return
        if pending.recording and not pending.progress.saved:  # else its run was ended over it
            if pending.websocket is not None:
                self._begin(pending)  # its outcome is its end
                return
            await self._save(pending, flow.response, complete=True)
        elif not pending.recording and pending.decision.action is Action.FORWARD:
            pending.finish()  # else whoever saves it does so, once its bodies are kept

    async def playhead_websocket_ended(self, pending: PendingExchange) -> None:
        """Log how a WebSocket ended; its last closing frame is released after this."""
        if pending.recording and not pending.progress.saved:
            await self._save(pending, pending.flow.response, complete=True)

    async def error(self, flow: http.HTTPFlow) -> None:
        """Log that the exchange failed, or that the client left."""
        pending = find_pending(flow)
        if pending is None:
            return
        if not pending.recording:
            if pending.decision is not None and pending.decision.seq is not None:
                # Its client left before the first step.
                note_left(pending)
            pending.finish()
        elif not pending.progress.saved:
            if pending.fault is None:
                pending.client_left()
                if pending.keep_reading and not pending.progress.sent_on and pending.steps is None:
                    pending.failed(NOT_SENT, phase=Phase.CONNECT, ending=Ending.RST, code=0)
            answer = flow.response if pending.answer.head_us else None
            # An answer to HEAD is its head, and a client that has it may leave at once.
            whole = answer is not None and flow.request.method == "HEAD" and pending.fault is None
            await self._save(pending, answer, complete=whole)
            if not pending.holds:
                pending.let_go()  # the flow may be there for long

    async def client_disconnected(self, client: connection.Client) -> None:
        """Keep the upstream connections while late answers are still to come."""
        open_run = self._registry.of(client)
        if open_run is None:
            return
        if crashed := getattr(client, "crashed", ""):  # put there by our handler
            await self._crashed(open_run, client, f"{INTERNAL}: {crashed}")
            return
        late = [
            pending
            for pending in on_their_way(open_run)
            if pending.flow.client_conn is client and pending.keep_reading and _goes_on(pending)
        ]
        for pending in late:
            if not pending.progress.saved:
                pending.client_left()  # its stream may hear of it only once the upstream is connected
        for pending in late:
            await pending.ended(LATE_ANSWER_S)

    async def _crashed(self, open_run: OpenRun, client: connection.Client, text: str) -> None:
        """Keep what was under way on a connection that an error of ours has ended."""
        open_run.note(EventKind.NOTED, text=f"a client's connection was reset: {text}")
        for pending in [
            found for found in on_their_way(open_run) if found.flow.client_conn is client
        ]:
            if pending.recording and not pending.progress.saved:
                if isinstance(pending.websocket, WebSocketRecorder):
                    pending.websocket.end(ABRUPT, "", by_client=False)
                pending.failed(text, phase=Phase.HEAD, ending=Ending.RST, code=0)
                answer = pending.flow.response if pending.answer.head_us else None
                await self._save(pending, answer, complete=False)
            elif pending.steps is not None and pending.request is not None:
                decision = pending.revise(Refused(Cause.CRASHED, text))
                note_verdict(pending, pending.request, decision)
            pending.finish()

    async def keep_failed(self, pending: PendingExchange) -> None:
        """Keep an exchange that failed before any answer, before its client is told."""
        await self._save(pending, None, complete=False)

    async def give_up_overdue(self, pending: PendingExchange) -> None:
        """Save what there is of an exchange whose client left long ago, though its connection is still there."""
        text = f"its answer went on for {LATE_ANSWER_S / 60:g} minutes after its client had left"
        await self.give_up(pending, text)
        pending.progress.break_off()  # what still comes is not kept

    async def give_up(
        self, pending: PendingExchange, text: str = "its run ended before the answer did"
    ) -> None:
        """Save what there is of an exchange whose run ends now.

        text: why that is all.
        """
        if isinstance(pending.websocket, WebSocketPlayer):
            await pending.websocket.end()
        if pending.recording and not pending.progress.saved:
            if pending.websocket is None:
                pending.client_left()
            pending.progress.add_warning(text)
            answer = pending.flow.response if pending.answer.head_us else None
            whole = pending.websocket is not None or (pending.held.muted and pending.answer.whole)
            await self._save(pending, answer, complete=whole)
        pending.finish()

    def break_off(
        self, pending: PendingExchange, text: RedactedText, rule: str
    ) -> Awaitable[None] | None:
        """Keep an exchange as cut by us, and why; one that was served is noted as refused after all.

        rule: what decided that.
        Gives what is still to be written; whatever comes of the exchange from now on is not.
        """
        if pending.recording and not pending.progress.saved:
            if isinstance(pending.websocket, WebSocketRecorder):
                pending.websocket.end(ABRUPT, "", by_client=False)
            if pending.held.muted:
                pending.client_left()  # it has heard nothing of what came
            begun = bool(pending.taken) or pending.head_sent
            kind, phase = (FaultKind.CUT, Phase.BODY) if begun else (FaultKind.RESET, Phase.HEAD)
            pending.progress.fail(Fault(kind, phase, one_line(text), pending.now_us(), Ending.RST))
            pending.progress.break_off()
            pending.progress.save()
            answer = pending.flow.response if pending.answer.head_us else None
            return self._save(pending, answer, complete=False)
        waiting = None
        if pending.request is not None and not pending.finished:
            decision = pending.revise(Refused(Cause.STOPPED, text, rule))
            # Where nothing can be written, whoever breaks it off has more to say than this.
            with contextlib.suppress(StoreError):
                note_verdict(pending, pending.request, decision)
            if isinstance(pending.websocket, WebSocketPlayer):
                waiting = pending.websocket.end()
        pending.finish()
        return waiting

    # ---- inside --------------------------------------------------------------------------------

    def _prepare(self, flow: http.HTTPFlow, pending: PendingExchange) -> None:
        flow.response = None
        wants = pending.open_run.config.upstream_encoding
        identity = {
            RequestClass.INFERENCE: wants.inference,
            RequestClass.READ: wants.reads,
            RequestClass.EFFECT: wants.effects,
        }.get(pending.request_class, False)
        if identity and "accept-encoding" in flow.request.headers:
            flow.request.headers["accept-encoding"] = "identity"

    async def _log_intent(self, pending: PendingExchange) -> None:
        try:
            await pending.open_run.store.events.append_durably(
                pending.open_run.number, lambda: _intent(pending)
            )
        except StoreUnwritable as error:
            pending.open_run.miss(error, effects=1)
            pending.progress.pass_unlogged()
        pending.progress.forward()

    def _begin(self, pending: PendingExchange) -> None:
        """Note how a WebSocket began; nobody waits. Should we die over it, its messages have their exchange."""
        made = _Maker(pending, pending.flow.response, complete=True)
        try:
            pending.open_run.store.exchanges.save_unwaited(pending.open_run.number, made)
        except StoreUnwritable as error:
            pending.open_run.miss(error)

    async def _save(
        self, pending: PendingExchange, answer: http.Response | None, *, complete: bool
    ) -> None:
        pending.progress.save()
        settle_gated(pending, answer.status_code if answer is not None else 0)
        try:
            try:
                async with pending.in_memory():
                    if pending.open_run.usage_meter is not None:
                        pending.open_run.usage_meter.heard(pending, answer)
                    await self._write(pending, answer, complete=complete)
            except StoreUnwritable as error:
                if pending.contract_state is not None and pending.contract_state.holds:
                    raise  # it is checked where it is written, and not let go unchecked
                pending.progress.give_up()
                pending.open_run.miss(error, exchanges=1)
            withheld = False
            if pending.contract_state is not None:
                pending.contract_state.report(pending.open_run, pending.seq)
                withheld = bool(pending.contract_state.withheld)
            if complete and pending.gone is None and not withheld:
                for effect in (pending.account.effect, pending.account.gated):
                    if effect is not None:
                        effect.seen = True  # the last byte is released now
        finally:
            pending.finish()

    async def _write(
        self, pending: PendingExchange, answer: http.Response | None, *, complete: bool
    ) -> None:
        if pending.progress.unsaved or (
            isinstance(pending.websocket, WebSocketRecorder) and pending.websocket.holed
        ):
            raise StoreUnwritable("a part of the exchange could not be written", _HINT)
        await pending.keep_bodies()
        if pending.arrival.lane is not None:
            number = await pending.open_run.lanes.find_number(pending.flow.client_conn.id)
            pending.arrival.number_lane(number)
        if pending.progress.unlogged:
            _append_intent(pending)
        made = _Maker(pending, answer, complete=complete, make_event=_outcome)
        if pending.size >= _SEARCHED_BESIDE:
            await asyncio.to_thread(made.search)
        await pending.open_run.store.exchanges.save(pending.open_run.number, made)


def _goes_on(pending: PendingExchange) -> bool:
    """Say whether a request is sent on, or will be, though its client has left."""
    held = pending.held.approval is not None or pending.held.delayed is not None
    return pending.forwarded or (pending.open_run.mode is Mode.RECORD and not held)


def _pass_unbegun(pending: PendingExchange) -> None:
    """Count a request of a recording that could not be begun yet.

    Raises: StoreUnwritable, where a contract may refuse its answer: that is checked where it is written.
    """
    if pending.contract_state is not None and pending.contract_state.applicable.refuses_answers:
        raise StoreUnwritable(_UNBEGUN, _HINT)
    effect = pending.request_class is RequestClass.EFFECT
    pending.open_run.gap.note(_UNBEGUN, exchanges=1, effects=int(effect))


def _append_intent(pending: PendingExchange) -> None:
    """Log an intent that nobody waits for."""
    pending.open_run.store.events.append_made(pending.open_run.number, lambda: _intent(pending))


def _may_hold(pending: PendingExchange, answer: http.Response) -> bool:
    """Say whether an answer is held back until it has been checked."""
    contract_state = pending.contract_state
    if (
        contract_state is None
        or pending.held.injection is not None
        or pending.answer.announced > HELD_BYTES
    ):
        return False
    method, fields = pending.flow.request.method, answer.data.headers.fields
    return contract_state.applicable.refuses_answers and can_hold(
        method, answer.status_code, fields
    )


def _intent(pending: PendingExchange) -> Event:
    """Make the intent event. Runs on the writer's thread."""
    # What is sent on as it comes has no body yet that could be compared.
    request = (pending.request if pending.body.bidirectional else None) or _identified(pending)[0]
    data = intent_row(
        pending.seq,
        request,
        pending.request_class,
        pending.fingerprint or b"",
        repeat=pending.account.repeat,
    )
    data["rule"] = pending.rule
    if pending.facts.by_body:
        data["by_body"] = True
    data |= claims_row(pending)
    if pending.open_run.mode is Mode.PLAYBACK or pending.held.approval is not None:
        data["reason"] = pending.reason
    pending.account.log(data)
    return Event(EventKind.INTENT, pending.started_ns, data)


def _identified(pending: PendingExchange) -> tuple[Request, Fingerprint]:
    """Give what was asked with its fingerprint, and note what it repeats."""
    request = pending.with_body()
    fingerprint, key = pending.fingerprint, pending.effect_key
    if fingerprint is None:
        fingerprint, key = pending.open_run.identifier.identify(request, pending.request_class)
        pending.identify(fingerprint, key)
    if pending.account.effect is None and key is not None:
        effect = Effect(pending.seq, idempotency_key(request))
        pending.account.note_effect(effect, pending.open_run.effects.note(key, effect))
    return request, fingerprint


def _outcome(pending: PendingExchange, exchange: Exchange) -> Event:
    live = exchange.verdict is VerdictKind.LIVE
    return outcome_event(exchange, live=live, usage=pending.usage.counted)


def _left(pending: PendingExchange, exchange: Exchange) -> Event:
    """Correct an outcome that was told already."""
    assert exchange.gone is not None
    logged = {"seq": pending.seq, "gone_us": exchange.gone.at_us}
    return Event(EventKind.OUTCOME, time.time_ns(), logged)


def _corrected(pending: PendingExchange, info: RunInfo) -> StoredRecord:
    """Build the record of an exchange again whose client left while it was written. Runs on the writer's thread."""
    exchange = pending.open_run.store.exchanges.find(info, pending.seq)
    if exchange is None:
        raise StoreUnwritable("an exchange that was just written is not there", _HINT)
    exchange = replace(exchange, gone=pending.gone)
    key = raw_key(exchange.request, exchange.request_class)
    return StoredRecord(exchange, key, _left(pending, exchange))


class _Maker:
    """Builds the stored record on the writer's thread from what was true when it was handed over."""

    __slots__ = (
        "came",
        "chunks",
        "complete",
        "contract_state",
        "conversation",
        "counting_meter",
        "end_us",
        "head",
        "interim",
        "make_event",
        "originals",
        "pending",
        "pieces",
        "places",
        "searched",
        "spilled",
    )

    def __init__(
        self,
        pending: PendingExchange,
        answer: http.Response | None,
        *,
        complete: bool,
        make_event: Callable[[PendingExchange, Exchange], Event] | None = None,
    ) -> None:
        """Take what is true now.

        tell: makes what the log says of it; None where its outcome is still to come.
        """
        self.pending = pending
        self.complete = complete
        self.make_event = make_event
        usage_meter = pending.open_run.usage_meter
        final = make_event is _outcome or not pending.progress.saved
        self.counting_meter = (
            usage_meter
            if usage_meter is not None
            and usage_meter.reads_answers
            and final
            and usage_meter.asks_model(pending)
            else None
        )
        checks = pending.contract_state is not None and pending.contract_state.applicable.answers
        self.contract_state = (
            pending.contract_state if checks and complete and make_event is _outcome else None
        )
        self.end_us = pending.now_us()
        self.pieces = list(pending.answer.pieces)
        self.chunks: tuple[Chunk, ...] = tuple(pending.answer.chunks)
        self.spilled = pending.answer.downloaded
        self.places = pending.answer.download.secrets if pending.answer.download is not None else ()
        self.originals = (
            pending.answer.download.originals if pending.answer.download is not None else ()
        )
        websocket = pending.websocket
        self.conversation = (
            websocket.snapshot() if isinstance(websocket, WebSocketRecorder) else None
        )
        self.interim = tuple(pending.answer.interim)
        self.came: RawResponse | None = None
        self.searched: tuple[Response, tuple[Redaction, ...], tuple[str, ...]] | None = None
        self.head: tuple[int, bytes, bytes, Headers, Headers] | None = None
        if answer is not None:
            data = answer.data
            trailers = data.trailers.fields if data.trailers else ()
            head = (data.status_code, data.reason, data.http_version, data.headers.fields)
            self.head = (*head, trailers)
            if not self.pieces and data.content:
                self.pieces = [data.content]

    def search(self) -> None:
        """Take the secrets out of the answer before the writer's thread would. Any thread."""
        self.pending.with_body()  # what the request shows may be in the answer
        self.came = self._answer()
        if self.came is not None:
            self.searched = self.pending.open_run.redactor.response(self.came)

    def _answer(self) -> RawResponse | None:
        if self.head is None:
            return None
        pending = self.pending
        status, reason, version, fields, trailers = self.head
        return RawResponse(
            status=status,
            reason=reason,
            http_version=version.decode("latin-1"),
            headers=fields,
            body=b"".join(self.pieces),
            head_us=pending.answer.head_us,
            chunks=self.chunks,
            trailers=trailers,
            complete=self.complete,
            spilled=self.spilled,
            head_need=pending.answer.head_need,
            end_need=pending.answer.end_need,
            end_after=pending.answer.end_after,
            ragged=pending.answer.ragged,
            secrets=self.places,
        )

    def __call__(self) -> StoredRecord:
        pending = self.pending
        request, fingerprint = _identified(pending)
        open_run = pending.open_run
        redactions, warnings = pending.redactions, tuple(pending.progress.warnings)
        came, response = self.came or self._answer(), None
        if self.counting_meter is not None:
            self.counting_meter.count_usage(pending, request, came)
        if came is not None:
            response, more, changed = self.searched or open_run.redactor.response(came)
            redactions, warnings = (*redactions, *more), (*warnings, *changed)
            if self.contract_state is not None:
                held = self.contract_state.holds and pending.gone is None
                redact_text = open_run.redactor.redact_text
                self.contract_state.check_answer(request, came, response, redact_text, held=held)
        interim, more = open_run.redactor.interim(self.interim)
        redactions = (*redactions, *more)
        live = open_run.mode is Mode.PLAYBACK
        client = pending.flow.client_conn
        exchange = Exchange(
            seq=pending.seq,
            request_class=pending.request_class,
            verdict=VerdictKind.LIVE if live else VerdictKind.RECORDED,
            reason=pending.reason,
            request=request,
            started_ns=pending.started_ns,
            end_us=self.end_us,
            fingerprint=fingerprint,
            response=response,
            fault=pending.fault,
            gone=pending.gone,
            redactions=redactions,
            warnings=(*warnings, *noted(pending.flow)),
            alpn=Alpn(tuple(client.alpn_offers) if client.tls else (), client.alpn),
            repeat=pending.account.repeat,
            withheld=pending.contract_state.withheld
            if pending.contract_state is not None
            else NO_TEXT,
            tunnel=pending.arrival.tunnel,
            lane=pending.arrival.lane,
            interim=interim,
            websocket=open_run.redactor.websocket(self.conversation),
        )
        if open_run.sink_queue is not None:
            pending.account.answer(exchange)
        outcome = self.make_event(pending, exchange) if self.make_event is not None else None
        answer = None
        if open_run.keeps_originals:
            closed = self.conversation.close if self.conversation is not None else None
            reasons = closed.reasons if closed is not None else None
            answer = RawAnswer(came, self.interim, self.originals, reasons)
        return StoredRecord(exchange, raw_key(request, pending.request_class), outcome, answer)
