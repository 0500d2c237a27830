"""A pending exchange: the state of one request, shared by the hooks and the streams that record or play it.

A pending exchange belongs to the event loop. It lives in `flow.metadata` and ends with its flow.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, cast

from mitmproxy import connection, http

from ...config import Mode
from ...store import StoreUnwritable
from ...store.spill.spool import Spool
from ...tape.canonical.spilled_digest import find_boundary
from ...tape.classify.background_reads import find_background_read
from ...tape.classify.by_method_and_url import Kind
from ...tape.diff.divergence_types import Divergence
from ...tape.exchange import (
    BODY,
    Chunk,
    Ending,
    Exchange,
    Fault,
    Fingerprint,
    Gone,
    HttpRequest,
    Phase,
    RawInterim,
    Redaction,
    Repeat,
    Request,
    RequestClass,
    Seq,
    VerdictKind,
)
from ...tape.policy.approval_decision import Ruling, may_be_done
from ...tape.policy.decide import Action, Decision, Facts
from ...tape.policy.revise import Finding, revise
from ...tape.records.events import EventKind
from ...tape.redaction.redact_large_body import Stream
from ...tape.redaction.redactor import redactions_of
from ..wire.prepared_answer import LaidAnswer
from ..wire.upstream_failure import find_fault
from .effect_row import effect_line
from .exchange_events import claims_row, idempotency_key, repeat_row, verdict_row
from .exchange_parts.answer import Answer
from .exchange_parts.arrival import Arrival
from .exchange_parts.phases import Account, Held, Playing, Recording
from .exchange_parts.prepared_request import Lookup, PreparedRequest
from .exchange_parts.request_body import RequestBody
from .repeated_effects import Effect
from .request_contracts import ContractState
from .run_state import OpenRun
from .usage_meter import RequestUsage

_KEY = "playhead"

LATE_ANSWER_S = 600.0
"""Longest time an effect's answer is waited for after the client has left."""

HELD_BYTES = 8 * 1024 * 1024
"""A body up to this is held in memory, and kept with its exchange; a larger one goes to a file."""
HELD_PIECES = 1 << 18
"""So does one in more pieces, which may be empty: each takes a hundred bytes."""
_UNMET = (Action.STUB, Action.DISCARD, Action.REFUSE)
"""What meets with no fault on purpose."""
_PIECE_BYTES = 128
"""Memory that is counted for each piece, whatever its length."""
_ALWAYS_HELD_BYTES = 64 * 1024
"""A body up to this is not set aside, however many others are held."""


class WebSocket:
    """A WebSocket that a pending exchange has become: `addons/websocket.py` has those that record and play it."""


class PendingExchange:
    """One request on its way."""

    def __init__(
        self,
        open_run: OpenRun,
        flow: http.HTTPFlow,
        seq: Seq,
        facts: Facts,
        kind: Kind | None = None,
        arrival: Arrival | None = None,
    ) -> None:
        """Begin at the request's head; `seq` is 0 where nothing is recorded.

        kind: what its method and URL say of it.
        """
        self.open_run = open_run
        self.flow = flow
        self.seq = seq
        self.facts = facts
        self.kind = kind or Kind(facts.request_class, named=True)
        self.arrival = arrival or Arrival()
        self.decision: Decision | None = None
        self.body = RequestBody()
        self.asked: PreparedRequest | None = None
        self.lookup = Lookup()
        self.held = Held()
        self.progress = Recording()
        self.answer = Answer()
        self.playing = Playing()
        self.account = Account()
        self.usage = RequestUsage()
        self.contract_state: ContractState | None = None
        """The contracts that hold for it; None where there are none."""
        self.websocket: WebSocket | None = None
        """What it has become, where it has become a WebSocket."""
        self._counted = 0
        """Bytes in memory that are counted for it."""
        self._done = asyncio.Event()
        open_run.connections.asked_at[self.origin] = self.arrival.t0
        open_run.begin(self)

    # ---- what others set -----------------------------------------------------------------------

    def classify(self, facts: Facts, kind: Kind | None = None) -> None:
        """Take in what more is known of it."""
        self.facts, self.kind = facts, kind or self.kind

    def decide(self, decision: Decision) -> Decision:
        """Note what was decided."""
        self.decision = decision
        return decision

    def revise(self, finding: Finding) -> Decision:
        """Note what was decided, now that more is known."""
        return self.decide(revise(self.decision, finding))

    def find(self, lookup: Lookup) -> None:
        """Note what the tape has for it."""
        self.lookup = lookup

    def take_recorded(self) -> Exchange | None:
        """Give what is to be served, which need not be held for as long as its answer takes."""
        lookup = self.lookup
        self.lookup = replace(lookup, recorded=None)
        return lookup.recorded

    def play(self, laid: LaidAnswer) -> None:
        """Have an answer played."""
        self.flow.response = laid.head
        self.answer.play(ragged=laid.ragged)
        if laid.withheld:
            self.playing.withhold(laid.steps)
        else:
            self.playing.play(laid.steps)

    def hold_to(self, contract_state: ContractState) -> ContractState:
        """Hold it to contracts."""
        self.contract_state = contract_state
        return contract_state

    def become(self, websocket: WebSocket) -> None:
        """Become a WebSocket."""
        self.websocket = websocket

    def prepare(self, asked: HttpRequest, *, with_body: bool) -> Request:
        """Prepare what was asked: without its secrets.

        with_body: whether its body is searched, too; else that is done by `with_body`.
        """
        redactor = self.open_run.redactor
        return self.ask(PreparedRequest(*(redactor.request if with_body else redactor.head)(asked)))

    def ask(self, prepared: PreparedRequest) -> Request:
        """Note what was asked."""
        with self.body.changing:
            self.asked = prepared
        return prepared.request

    def identify(self, fingerprint: Fingerprint | None, effect_key: bytes | None) -> None:
        """Note by what it is found, and repeated. Any thread."""
        with self.body.changing:
            if self.asked is not None:
                self.asked = replace(self.asked, fingerprint=fingerprint, effect_key=effect_key)

    def note_repeat(self, request: Request, effect_key: bytes) -> Repeat | None:
        """Note it among the effects of its run; say what it repeats. Any thread."""
        effect = Effect(self.seq, idempotency_key(request), is_injected=self.is_injected)
        repeat = self.open_run.effects.note(effect_key, effect)
        self.account.note_effect(effect, repeat)
        return repeat

    @property
    def is_injected(self) -> bool:
        """Whether a fault on purpose answers it, so that its upstream is not asked."""
        injection, decision = self.held.injection, self.decision
        if injection is None or not injection.kind.short_circuits:
            return False
        return decision is None or decision.action not in _UNMET

    # ---- what is asked of its parts -------------------------------------------------------------

    @property
    def request(self) -> Request | None:
        """What was asked, as it is compared and stored."""
        return self.asked.request if self.asked is not None else None

    @property
    def redactions(self) -> tuple[Redaction, ...]:
        """What was taken out of it."""
        return self.asked.redactions if self.asked is not None else ()

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Its fingerprint, once it is known."""
        return self.asked.fingerprint if self.asked is not None else None

    @property
    def effect_key(self) -> bytes | None:
        """Its effect key, once it is known."""
        return self.asked.effect_key if self.asked is not None else None

    @property
    def leaves(self) -> bool:
        """Whether it was decided that it is sent on."""
        decision = self.decision
        return decision is not None and decision.action in (Action.FORWARD, Action.LIVE)

    @property
    def rule(self) -> str:
        """What decided on it; empty before."""
        return self.decision.rule if self.decision is not None else ""

    @property
    def reason(self) -> str:
        """Why it was decided so; empty before."""
        return self.decision.reason if self.decision is not None else ""

    @property
    def need(self) -> int | None:
        """Bytes of the request that have been sent; None where it has ended."""
        return None if self.body.request_ended else self.body.sent_bytes

    # ---- its way -------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the pending exchange: nothing more comes of it. Twice is once."""
        if not self._done.is_set():
            self._done.set()
            self.held.let_go(Ruling.ENDED)
            for spool in (self.body.upload, self.answer.download):
                if spool is not None:
                    spool.drop()
                    spools_of(self.flow.client_conn).discard(spool)
            self.hold(-self._counted)
            self.open_run.connections.asked_at[self.origin] = time.monotonic()
            self._report_effect()
            self.open_run.finish(self)
            self.open_run.counters.add(
                self.open_run.mode, self.request_class, self.decision, self.progress.fault
            )

    def _report_effect(self) -> None:
        """Tell a sink of an effect that has ended."""
        open_run, early = self.open_run, self.body.early
        if open_run.sink_queue is None or open_run.info is None or self.account.logged is None:
            return
        # Of what was answered before it had ended nothing is kept: it is what the tape has, or a divergence.
        same = early is not None and not early.diverged
        injection = self.held.injection
        hit = injection is not None and injection.text in self.progress.warnings
        line = effect_line(
            open_run.info.id,
            open_run.tape.id if open_run.tape is not None else None,
            self.account.logged,
            playback=open_run.mode is Mode.PLAYBACK,
            injection=injection if hit else None,
            asked=early.exchange.request if early is not None and same else self.request,
            answered=self.account.answered,
            divergence=self.account.divergence,
            approval=self.held.approval,
        )
        if line:
            open_run.sink_queue.put(open_run.reporter, line)

    @property
    def begun_answer(self) -> http.Response | None:
        """The answer, if its head has come from the upstream."""
        return self.flow.response if self.answer.head_us else None

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    @property
    def is_deserted(self) -> bool:
        """Whether nobody waits for it any more: it has ended, or its client left while it was held."""
        return self.finished or self.held.left

    async def ended(self, timeout_s: float) -> None:
        """Wait until it has ended, or for so long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._done.wait(), timeout_s)

    @property
    def origin(self) -> tuple[str, int]:
        """Host in lower case, and port."""
        return self.facts.host.lower(), self.facts.port

    @property
    def request_class(self) -> RequestClass:
        """Its class."""
        return self.facts.request_class

    @property
    def holds(self) -> bool:
        """Whether its answer is held back until it has been checked."""
        return self.contract_state is not None and self.contract_state.holds

    @property
    def keep_reading(self) -> bool:
        """Whether the upstream is read on when the client leaves: it is for effects, and where that is injected.

        An effect happens whether or not somebody waits; tokens of a model are burnt for nobody.
        """
        return self.request_class is RequestClass.EFFECT or self.held.muted

    @property
    def is_overdue(self) -> bool:
        """Whether its answer is read on for longer than it is waited for. Of a stream of HTTP/2 the connection may stay for good."""
        if self.progress.gone is None or self.progress.saved or not self.progress.recording:
            return False
        return self.now_us() - self.progress.gone.at_us > LATE_ANSWER_S * 1e6

    def now_us(self) -> int:
        """Microseconds since the request arrived."""
        return int((time.monotonic() - self.arrival.t0) * 1e6)

    def take(self, data: bytes) -> None:
        """Note a piece of the response's body.

        Raises: StoreError, where it is too large to be held and cannot be written.
        """
        if self.progress.broken:
            return
        chunk = Chunk(self.now_us(), len(data), self.open_run.on_the_way.last_seq, self.need or 0)
        self.answer.count(len(data))
        if self.progress.unsaved:
            return
        try:
            self._keep_piece(data, chunk)
        except StoreUnwritable as error:
            self.open_run.miss(error)
            self.progress.give_up()
            self.answer.forget()

    def take_interim(self, response: http.Response) -> None:
        """Note an interim answer."""
        data = response.data
        one = RawInterim(self.now_us(), data.status_code, data.reason, data.headers.fields)
        self.answer.interim.append(one)

    def _keep_piece(self, data: bytes, chunk: Chunk) -> None:
        answer = self.answer
        is_too_large = answer.size > HELD_BYTES or answer.taken > HELD_PIECES
        if answer.download is not None:
            if is_too_large and answer.download.is_aside:
                answer.download.outgrow()
            answer.download.write(data, chunk)
            return
        answer.keep(data, chunk, self.hold(len(data) + _PIECE_BYTES))
        # An answer that is checked before its client sees it is sent from memory.
        if is_too_large or (self.is_to_be_set_aside(answer.held) and not self.holds):
            answer.spill(self.spool(aside=not is_too_large))
            self.let_go()

    def hold(self, size: int) -> int:
        """Count bytes that are in memory for it from now on; give how many were counted: of one that has ended, none."""
        if size > 0 and self.finished:
            return 0
        size = max(size, -self._counted)
        if not size:
            return 0
        self._counted += size
        self.open_run.store.bodies.memory.held += size
        return size

    def is_to_be_set_aside(self, size: int) -> bool:
        """Say whether a body of so many bytes, which could be held, goes to a file while it comes."""
        store = self.open_run.store
        # While the disk is full, what can be held goes on without it.
        can = store.bodies.memory.is_short and store.writer.failed is None
        return can and size > _ALWAYS_HELD_BYTES

    def let_go(self) -> None:
        """Hold the answer's body no longer: it was written, or nobody needs it any more."""
        self.hold(-self.answer.drop())

    @contextlib.asynccontextmanager
    async def in_memory(self) -> AsyncIterator[None]:
        """Have an answer that was set aside in memory for as long as this lasts; one of all at a time.

        Raises: StoreUnwritable.
        """
        download = self.answer.download
        if download is None or not download.is_aside or self.progress.unsaved:
            yield
            return
        async with self.open_run.store.bodies.memory.turn:
            self.answer.take_back(*await download.take_back())
            try:
                yield
            finally:
                self.let_go()

    def take_sent(self, data: bytes) -> None:
        """Note a piece of the request's body that was sent on before the request had ended.

        Raises: StoreError, as `take`.
        """
        body = self.body
        body.count(len(data))
        if self.progress.unsaved:
            return
        try:
            body.keep(data)
            if body.upload is None and body.sent_bytes > HELD_BYTES:
                self.begin_upload(body.take_sent())
        except StoreUnwritable as error:
            self.open_run.miss(error)
            self.progress.give_up()
            body.have_sent([])

    def with_body(self) -> Request:
        """Give the request with its body, whose secrets are taken out by now. Any thread.

        Raises: ValueError, before it is known what was asked.
        """
        with self.body.changing:
            asked = self.asked
            if asked is None:
                raise ValueError("a request that has not been read has no body")
            came = self.body.take_came()
            if came:
                request, more = self.open_run.redactor.request_body(asked.request, came)
                redactions = (*asked.redactions, *more)
                asked = self.asked = replace(asked, request=request, redactions=redactions)
            return asked.request

    async def keep_bodies(self) -> None:
        """Make durable what was too large to be held.

        Raises: StoreUnwritable.
        """
        upload = self.body.upload
        if upload is not None and self.asked is not None:
            spilled = await self.body.store(upload)
            logged = (one for one in self.asked.request.secrets if one.part != BODY)
            secrets = (*logged, *upload.secrets)
            request = replace(self.asked.request, spilled=spilled, secrets=secrets)
            self._note_places("request.body", upload, request)
        if await self.answer.store() and self.answer.download is not None:
            self._note_places("response.body", self.answer.download)

    def _note_places(self, place: str, spool: Spool, request: Request | None = None) -> None:
        found = redactions_of(place, (secret.kind for secret in spool.secrets))
        with self.body.changing:
            asked = self.asked
            if asked is not None:
                more = tuple(one for one in found if one not in asked.redactions)
                self.asked = replace(
                    asked,
                    request=request or asked.request,
                    redactions=(*asked.redactions, *more),
                )

    def begin_upload(self, data: bytes, *, aside: bool = False) -> None:
        """Go on with the request's body in a file; `data` is what has come of it.

        aside: until it has come whole, if it is not too large by then.
        Raises: StoreError.
        """
        boundary = find_boundary(self.arrival.fields)
        self.body.spill(self.spool(boundary, pieces=False, aside=aside), data)

    async def take_upload(self) -> None:
        """Give a body that is too large to be held its hash; take back one that was set aside.

        Raises: StoreUnwritable.
        """
        upload = self.body.upload
        if upload is None:
            return
        if not upload.is_aside:
            await self.body.measure(upload)
            return
        body = await self.body.take_back(upload)
        spools_of(self.flow.client_conn).discard(upload)
        self.hold(len(body))

    def spool(self, boundary: bytes = b"", *, pieces: bool = True, aside: bool = False) -> Spool:
        """Begin a body in a file; the client's connection is not read on while too much is unwritten."""
        redactor, keeps = self.open_run.redactor, self.open_run.keeps_originals
        answer = self.flow.response
        fields = self.arrival.fields if not pieces or answer is None else answer.data.headers.fields

        def redact() -> Stream | None:
            return redactor.stream(fields, answer=pieces, originals=pieces and keeps)

        made = self.open_run.store.bodies.spool(boundary, pieces=pieces, redact=redact, aside=aside)
        spools_of(self.flow.client_conn).add(made)
        return made

    def client_left(self, *, aborted: bool = False) -> None:
        """Note that the client left, and what it had been sent by then; of one that is saved nothing changes.

        aborted: it is reset by us, and leaves because of that.
        """
        self.held.leave()
        if self.progress.gone is None and not self.progress.saved:
            sent = 0 if self.held.muted or self.holds else self.answer.taken
            self.progress.leave(Gone(self.now_us(), sent, self.answer.head_sent, aborted))
            self.answer.leave(self.need)

    def failed(self, text: str, *, phase: Phase, ending: Ending, code: int) -> Fault:
        """Note that the upstream failed.

        phase: how far it had come before the answer began.
        """
        begun = bool(self.answer.taken) or self.answer.head_sent
        said = self.open_run.redactor.redact_text(text)  # it quotes what the upstream said
        fault = find_fault(said, Phase.BODY if begun else phase, ending, code, self.now_us())
        self.progress.fail(fault)
        return fault


def on_their_way(open_run: OpenRun) -> set[PendingExchange]:
    """Give the pending exchanges of a run."""
    return cast("set[PendingExchange]", open_run.on_the_way.pending_exchanges)


def find_redact_text(client: connection.Client) -> Callable[[str], str]:
    """Give what takes the secrets of a client's run out of a text for people."""
    found: Callable[[str], str] = getattr(client, "redact_text", str)
    return found


def spools_of(client: connection.Client) -> set[Any]:
    """Give what a client's connection feeds on its way to the disk; its handler waits for them."""
    found: set[Any] | None = getattr(client, "spools", None)
    if found is None:
        found = client.spools = set()  # type: ignore[attr-defined]  # read by the handler
    return found


def find_pending(flow: http.HTTPFlow) -> PendingExchange | None:
    """Find the pending exchange of a flow."""
    found: PendingExchange | None = flow.metadata.get(_KEY)
    return found


def attach(flow: http.HTTPFlow, pending: PendingExchange) -> None:
    """Bind a pending exchange to its flow."""
    flow.metadata[_KEY] = pending


def detach(flow: http.HTTPFlow) -> PendingExchange | None:
    """Take the pending exchange off its flow, if there is one."""
    found = find_pending(flow)
    flow.metadata.pop(_KEY, None)
    return found


def note_divergence(pending: PendingExchange, divergence: Divergence) -> None:
    """Append a divergence to the log. A resumed run has another prefix with it, so that nothing leaves any more.

    Raises: StoreUnwritable; see `OpenRun.note`.
    """
    open_run, playback = pending.open_run, pending.open_run.playback
    open_run.note(EventKind.DIVERGED, seq=pending.seq, divergence=divergence.to_json())
    if playback is None or pending.request_class is RequestClass.TELEMETRY:
        return
    refused = pending.decision is not None and pending.decision.verdict is VerdictKind.REFUSED
    if refused and playback.find_awaited(is_unknown=False) is None:
        return  # behind the crash point, where it goes on live
    place = f"{divergence.method} {divergence.url}"
    leave_prefix(pending, pending.request, place, divergence.text or divergence.kind)


def leave_prefix(pending: PendingExchange, request: Request | None, place: str, text: str) -> None:
    """End a resumed run: its prefix is another one. What SDKs read by chance says nothing of the agent."""
    playback = pending.open_run.playback
    if playback is None or (request is not None and find_background_read(request) is not None):
        return
    playback.resumption.diverge(
        f"the prefix of the crashed run diverged at seq {pending.seq}, {place}: {text};"
        " nothing is served or sent any more"
    )


def note_verdict(
    pending: PendingExchange,
    request: Request,
    decision: Decision,
    recorded: Exchange | None = None,
    **more: Any,
) -> None:
    """Log what playback decided for a request; `more` is what served it.

    recorded: the exchange that is served; None where none is.
    A second verdict on the same pending exchange takes the first one's place: what was served could not be served whole.
    """
    kind, words = pending.request_class, pending.open_run.redactor.redact_text
    if pending.playing.has_verdict:
        more["again"] = True  # it is one request still, and repeats no other
    elif pending.effect_key is not None:
        if decision.action is Action.REFUSE or (recorded is not None and recorded.is_unsent):
            pending.account.note_undone()
        repeat = pending.note_repeat(request, pending.effect_key)
        if recorded is not None and pending.account.effect is not None:
            pending.account.effect.is_recorded = True
            pending.account.effect.is_injected |= recorded.is_injected
            answer = recorded.response
            pending.account.effect.is_doubtful = answer is not None and may_be_done(answer.status)
        if repeat is not None:
            more["repeat"] = repeat_row(repeat)
    playback = pending.open_run.playback
    if decision.action is Action.SERVE and playback is not None:
        playback.completion.given.setdefault(more["tape_seq"], pending.seq)
    claims = claims_row(pending.facts.claims, words)
    fingerprint = pending.fingerprint or b""
    logged = verdict_row(pending.seq, request, kind, decision, fingerprint, claims) | more
    pending.playing.note_verdict()
    pending.account.log(logged)
    pending.open_run.note(EventKind.VERDICT, **logged)
