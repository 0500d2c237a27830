"""A pending exchange: the state of one request, shared by the hooks and the streams that record or play it.

A pending exchange belongs to the event loop. It lives in `flow.metadata` and ends with its flow.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from mitmproxy import connection, http

from ...config import Mode
from ...store import Spool, StoreUnwritable
from ...tape.canonical.spilled_digest import find_boundary
from ...tape.classify.by_method_and_url import Kind
from ...tape.diff.divergence_types import Dependence, Divergence
from ...tape.exchange import (
    BODY,
    NO_TUNNEL,
    Chunk,
    Ending,
    Exchange,
    Fault,
    Fingerprint,
    Gone,
    Headers,
    Interim,
    Lane,
    Phase,
    RawInterim,
    Redaction,
    Repeat,
    Request,
    RequestClass,
    Seq,
    Spilled,
    Tunnel,
    VerdictKind,
)
from ...tape.matching.agreement import Drift
from ...tape.playback.script import Steps
from ...tape.policy.approval_decision import ApprovalDecision, Ruling
from ...tape.policy.decide import Decision, Facts, Found
from ...tape.policy.faults import Injection
from ...tape.records.events import EventKind
from ...tape.redaction.redactor import redactions_of
from ...tape.redaction.stream import Stream
from ...tape.stubs.synthesize import Made
from ..wire.upstream_failure import find_fault
from .effect_row import effect_line
from .exchange_events import idempotency_key, repeat_row
from .pending_approvals import PendingApproval
from .repeats import Effect
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
_PIECE_BYTES = 128
"""Memory that is counted for each piece, whatever its length."""
_ALWAYS_HELD_BYTES = 64 * 1024
"""A body up to this is not set aside, however many others are held."""


@dataclass(slots=True)
class Early:
    """A recorded exchange whose answer began before its request had ended, while it is played."""

    exchange: Exchange
    compared: int = 0
    """Bytes of the request that were compared."""
    diverged: bool = False


class WebSocket:
    """A WebSocket that a pending exchange has become: `addons/websocket.py` has those that record and play it."""


class PendingExchange:
    """One request on its way."""

    def __init__(self, open_run: OpenRun, flow: http.HTTPFlow, seq: Seq, facts: Facts) -> None:
        """Begin at the request's head; `seq` is 0 where nothing is recorded."""
        self.open_run = open_run
        self.flow = flow
        self.seq = seq
        self.facts = facts
        self.kind = Kind(facts.request_class, named=True)
        """What its method and URL say of it."""
        self.decision: Decision | None = None
        self.fields: Headers = ()
        """Header fields as they stood when the request's head arrived."""
        self.tunnel: Tunnel = NO_TUNNEL
        self.lane: Lane | None = None
        self.names: tuple[tuple[str, str], ...] = ()
        """Names of its host that do not agree and stand in none of its fields."""
        self.bidirectional = False
        """Whether the answer may begin before the request has ended."""
        self.upload: Spool | None = None
        """The request's body, where it is too large to be held, or was set aside while it came."""
        self.uploaded: Spilled | None = None
        """The same once it has come whole."""
        self.sent: list[bytes] = []
        """The request's body as it was sent on, where it was not waited for."""
        self.sent_bytes = 0
        self.request_ended = True
        """False while a request is sent on that has not ended."""
        self.early: Early | None = None
        self.undecided = False
        """Whether more of the request has to come, or its client be quiet, before it is known which recorded one it is."""
        self.quiet_at = -1
        """Bytes of the request after which its client was quiet."""
        self.request: Request | None = None
        """As it is compared and stored, before anything is changed for the upstream; without its body until that is searched."""
        self.redactions: tuple[Redaction, ...] = ()
        self.came = b""
        """The body that came, until its secrets are taken out."""
        self.searched = False
        """Whether that has been done."""
        self._searching = threading.Lock()
        self.raw: bytes = b""
        self.fingerprint: Fingerprint | None = None
        self.effect_key: bytes | None = None
        """Of an effect that was read whole, or that the tape answers before it has ended."""
        self.found: Found | None = None
        self.needs: Dependence | None = None
        """What it depends on that has not been served, where it came too early."""
        self.reordered_results = False
        """Whether it lists the results of tools in another order than the recorded one."""
        self.disagrees: tuple[Drift, ...] = ()
        """Where it has another credential or run id than what would answer it stands for."""
        self.recorded: Exchange | None = None
        """What is to be served, read before the cursor moved past it."""
        self.unreadable = False
        """What is to be served cannot be read."""
        self.made: Made | None = None
        """What is answered after the pattern of the tape, where it does not hold the effect."""
        self.logged: dict[str, Any] | None = None
        """What the log says of it: its intent, or what was decided instead."""
        self.answered: Exchange | None = None
        """What answered it; kept where effects are told to a sink."""
        self.divergence: Divergence | None = None
        self.approval: PendingApproval | None = None
        """The pending approval that a gate created for it."""
        self.left = False
        """Whether its client left while it was held."""
        self.injection: Injection | None = None
        """The fault on purpose that hits it."""
        self.contract_state: ContractState | None = None
        """The contracts that hold for it; None where there are none."""
        self.withheld = False
        """Whether its client is played a refusal in the place of a recorded answer."""
        self.delayed: asyncio.Event | None = None
        """Ends the wait of one that is delayed on purpose."""
        self.muted = False
        """Whether its client is told nothing of the answer, on purpose."""
        self.repeat: Repeat | None = None
        self.effect: Effect | None = None
        self.gated: Effect | None = None
        """The same among those that a gate on duplicates looks at."""
        self.started_ns = time.time_ns()
        self.t0 = time.monotonic()
        self.websocket: WebSocket | None = None
        """What it has become, where it has become a WebSocket."""
        # Playing.
        self.has_verdict = False
        """Whether its verdict has been logged."""
        self.steps: Steps | None = None
        # Recording.
        self.recording = False
        self.forwarded = False
        """Whether it may be sent on: its intent is logged."""
        self.sent_on = False
        """Whether an upstream has been given its head, and so may act on it."""
        self.interim: list[RawInterim] = []
        """Interim answers that have come."""
        self.played_interim: tuple[RawInterim | Interim, ...] = ()
        """Of a WebSocket that is played, those to be sent before its handshake ends."""
        self.head_us = 0
        self.head_need: int | None = None
        self.end_need: int | None = None
        self.end_after = 0
        self.head_sent = False
        self.pieces: list[bytes] = []
        self.chunks: list[Chunk] = []
        self.taken = 0
        """Pieces of the response's body that have arrived."""
        self.size = 0
        self.download: Spool | None = None
        """The response's body, where it is too large to be held, or was set aside."""
        self.downloaded: Spilled | None = None
        """The same once it has been kept."""
        self.announced = -1
        """Length of the response's body as its head says, or -1."""
        self.event_stream = False
        """Whether the answer is one on which SDKs act before it has ended."""
        self.ragged = False
        """Whether the answer ended with a connection whose TLS was not closed."""
        self.gone: Gone | None = None
        self.fault: Fault | None = None
        self.warnings: list[str] = []
        self.saved = False
        self.usage = RequestUsage()
        self.broken = False
        """Whether it was broken off by us: what still comes is not kept."""
        self.unlogged = False
        """Whether it was sent on though its intent could not be written."""
        self.unsaved = False
        """Whether a part of it could not be kept, so that it cannot be recorded."""
        self._held = self._answer_held = 0
        """Bytes in memory that are counted for it: of both bodies, and of the answer's."""
        self._done = asyncio.Event()
        open_run.asked_at[self.origin] = self.t0
        open_run.begin(self)

    def finish(self) -> None:
        """End the pending exchange: nothing more comes of it. Twice is once."""
        if not self._done.is_set():
            self._done.set()
            if self.approval is not None:
                self.approval.decide(ApprovalDecision(Ruling.ENDED))
            if self.delayed is not None:
                self.delayed.set()
            for spool in (self.upload, self.download):
                if spool is not None:
                    spool.drop()
                    spools_of(self.flow.client_conn).discard(spool)
            self.hold(-self._held)
            self._answer_held = 0
            self.open_run.asked_at[self.origin] = time.monotonic()
            self._report_effect()
            self.open_run.finish(self)
            self.open_run.counters.add(
                self.open_run.mode, self.request_class, self.decision, self.fault
            )

    def _report_effect(self) -> None:
        """Tell a sink of an effect that has ended."""
        open_run, early = self.open_run, self.early
        if open_run.sink_queue is None or open_run.info is None or self.logged is None:
            return
        # Of what was answered before it had ended nothing is kept: it is what the tape has, or a divergence.
        same = early is not None and not early.diverged
        hit = self.injection is not None and self.injection.text in self.warnings
        line = effect_line(
            open_run.info.id,
            open_run.tape.id if open_run.tape is not None else None,
            self.logged,
            playback=open_run.mode is Mode.PLAYBACK,
            injection=self.injection if hit else None,
            asked=early.exchange.request if early is not None and same else self.request,
            answered=self.answered,
            divergence=self.divergence,
            approval=self.approval,
        )
        if line:
            open_run.sink_queue.put(open_run.reporter, line)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

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
        return self.request_class is RequestClass.EFFECT or self.muted

    @property
    def is_overdue(self) -> bool:
        """Whether its answer is read on for longer than it is waited for. Of a stream of HTTP/2 the connection may stay for good."""
        if self.gone is None or self.saved or not self.recording:
            return False
        return self.now_us() - self.gone.at_us > LATE_ANSWER_S * 1e6

    def now_us(self) -> int:
        """Microseconds since the request arrived."""
        return int((time.monotonic() - self.t0) * 1e6)

    def take(self, data: bytes) -> None:
        """Note a piece of the response's body.

        Raises: StoreError, where it is too large to be held and cannot be written.
        """
        if self.broken:
            return
        need = 0 if self.request_ended else self.sent_bytes
        chunk = Chunk(self.now_us(), len(data), self.open_run.last_seq, need)
        self.taken += 1
        self.size += len(data)
        if self.unsaved:
            return
        try:
            self._keep_piece(data, chunk)
        except StoreUnwritable as error:
            self.open_run.miss(error)
            self.unsaved = True
            self.pieces, self.chunks = [], []

    def take_interim(self, response: http.Response) -> None:
        """Note an interim answer."""
        data = response.data
        one = RawInterim(self.now_us(), data.status_code, data.reason, data.headers.fields)
        self.interim.append(one)

    def _keep_piece(self, data: bytes, chunk: Chunk) -> None:
        is_too_large = self.size > HELD_BYTES or self.taken > HELD_PIECES
        if self.download is not None:
            if is_too_large and self.download.is_aside:
                self.download.outgrow()
            self.download.write(data, chunk)
            return
        self.pieces.append(data)
        self.chunks.append(chunk)
        self._answer_held += self.hold(len(data) + _PIECE_BYTES)
        # An answer that is checked before its client sees it is sent from memory.
        if is_too_large or (self.is_to_be_set_aside(self._answer_held) and not self.holds):
            self.download = self.spool(aside=not is_too_large)
            for chunk, piece in zip(self.chunks, self.pieces, strict=True):
                self.download.write(piece, chunk)
            self.let_go()

    def hold(self, size: int) -> int:
        """Count bytes that are in memory for it from now on; give how many were counted: of one that has ended, none."""
        if size > 0 and self.finished:
            return 0
        size = max(size, -self._held)
        if not size:
            return 0
        self._held += size
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
        self.hold(-self._answer_held)
        self._answer_held = 0
        self.pieces, self.chunks = [], []

    @contextlib.asynccontextmanager
    async def recalled(self) -> AsyncIterator[None]:
        """Have an answer that was set aside in memory for as long as this lasts; one of all at a time.

        Raises: StoreUnwritable.
        """
        if self.download is None or not self.download.is_aside or self.unsaved:
            yield
            return
        async with self.open_run.store.bodies.memory.turn:
            body, self.chunks = await self.download.take_back()
            self.pieces = [body]
            try:
                yield
            finally:
                self.let_go()

    def take_sent(self, data: bytes) -> None:
        """Note a piece of the request's body that was sent on before the request had ended.

        Raises: StoreError, as `take`.
        """
        self.sent_bytes += len(data)
        if self.unsaved:
            return
        try:
            self._keep_sent(data)
        except StoreUnwritable as error:
            self.open_run.miss(error)
            self.unsaved = True
            self.sent = []

    def _keep_sent(self, data: bytes) -> None:
        if self.upload is not None:
            self.upload.write(data)
            return
        self.sent.append(data)
        if self.sent_bytes > HELD_BYTES:
            self.begin_upload(b"".join(self.sent))
            self.sent = []

    def with_body(self) -> Request:
        """Give the request with its body, whose secrets are taken out by now. Any thread."""
        with self._searching:
            assert self.request is not None
            came = self.came or b"".join(self.sent)
            if came and not self.searched:
                self.searched = True
                self.came = b""
                self.request, more = self.open_run.redactor.request_body(self.request, came)
                self.redactions = (*self.redactions, *more)
            return self.request

    async def keep_bodies(self) -> None:
        """Make durable what was too large to be held.

        Raises: StoreUnwritable.
        """
        if self.upload is not None and self.request is not None:
            self.uploaded = await self.upload.keep()
            logged = (one for one in self.request.secrets if one.part != BODY)
            self.request = replace(
                self.request, spilled=self.uploaded, secrets=(*logged, *self.upload.secrets)
            )
            self._note_places("request.body", self.upload)
        if self.download is not None and not self.download.is_aside:
            self.downloaded = await self.download.keep()
            self._note_places("response.body", self.download)

    def _note_places(self, place: str, spool: Spool) -> None:
        found = redactions_of(place, (secret.kind for secret in spool.secrets))
        self.redactions += tuple(one for one in found if one not in self.redactions)

    def begin_upload(self, data: bytes, *, aside: bool = False) -> None:
        """Go on with the request's body in a file; `data` is what has come of it.

        aside: until it has come whole, if it is not too large by then.
        Raises: StoreError.
        """
        self.upload = self.spool(find_boundary(self.fields), pieces=False, aside=aside)
        self.upload.write(data)

    async def take_back_upload(self) -> bytes:
        """Give the body of a request that was set aside, which is held from now on.

        Raises: StoreUnwritable.
        """
        if self.upload is None:
            return b""
        body, _ = await self.upload.take_back()
        self.upload.drop()
        spools_of(self.flow.client_conn).discard(self.upload)
        self.upload = None
        self.hold(len(body))
        return body

    def spool(self, boundary: bytes = b"", *, pieces: bool = True, aside: bool = False) -> Spool:
        """Begin a body in a file; the client's connection is not read on while too much is unwritten."""
        redactor, keeps = self.open_run.redactor, self.open_run.keeps_originals
        answer = self.flow.response
        fields = self.fields if not pieces or answer is None else answer.data.headers.fields

        def redact() -> Stream | None:
            return redactor.stream(fields, answer=pieces, originals=pieces and keeps)

        made = self.open_run.store.bodies.spool(boundary, pieces=pieces, redact=redact, aside=aside)
        spools_of(self.flow.client_conn).add(made)
        return made

    @property
    def whole(self) -> bool:
        """Whether all that the response's head announced has arrived."""
        return self.announced >= 0 and self.size >= self.announced

    def client_left(self) -> None:
        """Note that the client left, and what it had been sent by then; of one that is saved nothing changes."""
        self.left = True
        if self.approval is not None:
            self.approval.decide(ApprovalDecision(Ruling.LEFT))
        if self.delayed is not None:
            self.delayed.set()
        if self.gone is None and not self.saved:
            sent = 0 if self.muted or self.holds else self.taken
            self.gone = Gone(self.now_us(), sent, self.head_sent)

    def failed(self, text: str, *, phase: Phase, ending: Ending, code: int) -> Fault:
        """Note that the upstream failed.

        phase: how far it had come before the answer began.
        """
        begun = bool(self.taken) or self.head_sent
        said = self.open_run.redactor.redact_text(text)  # it quotes what the upstream said
        self.fault = find_fault(said, Phase.BODY if begun else phase, ending, code, self.now_us())
        return self.fault


def on_their_way(open_run: OpenRun) -> set[PendingExchange]:
    """Give the pending exchanges of a run."""
    return cast("set[PendingExchange]", open_run.pending_exchanges)


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


def claims_row(pending: PendingExchange) -> dict[str, Any]:
    """Give what an event says of a request's claims; nothing where it has none, as nearly all."""
    words = pending.open_run.redactor.redact_text
    rows = [(kind.value, words(text)) for kind, text in pending.facts.claims]
    return {"claims": rows} if rows else {}


def note_verdict(
    pending: PendingExchange, request: Request, verdict: VerdictKind, reason: str, **more: Any
) -> None:
    """Log what playback decided for a request; `more` is what served it.

    A second verdict on the same pending exchange takes the first one's place: what was served could not be served whole.
    """
    key = idempotency_key(request, pending.request_class)
    if pending.has_verdict:
        more["again"] = True  # it is one request still, and repeats no other
    elif pending.effect_key is not None:
        pending.effect = Effect(pending.seq, key)
        pending.repeat = pending.open_run.effects.note(pending.effect_key, pending.effect)
        if pending.repeat is not None:
            more["repeat"] = repeat_row(pending.repeat)
    pending.has_verdict = True
    playback = pending.open_run.playback
    if verdict is VerdictKind.SERVED and playback is not None:
        playback.given.setdefault(more["tape_seq"], pending.seq)
    logged = {
        "seq": pending.seq,
        "method": request.method,
        "url": request.url,
        "request_class": pending.request_class.value,
        "verdict": verdict.value,
        "reason": reason,
        "rule": pending.decision.rule if pending.decision is not None else "",
        "fingerprint": pending.fingerprint or b"",
        "key": key,
        **claims_row(pending),
        **more,
    }
    pending.logged = logged
    pending.open_run.note(EventKind.VERDICT, **logged)
