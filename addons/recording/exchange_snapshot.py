"""What was true of an exchange when it was handed over to be written, and the record that is made of it.

The loop takes the snapshot, which is frozen. The store's writer makes the record: redaction of the answer and canonical
form cost time.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from mitmproxy import http

from ...config import Mode
from ...store import Record, RunInfo, StoreUnwritable
from ...tape.canonical.canonical_request import raw_key
from ...tape.exchange import (
    NO_TEXT,
    NOT_ASKED,
    SENT_OUT,
    Alpn,
    Exchange,
    Fault,
    Gone,
    Lane,
    RawAnswer,
    RawInterim,
    RawResponse,
    RawWebSocketSummary,
    Redaction,
    Response,
    VerdictKind,
)
from ...tape.records.build_exchange import Asked, Outcome, build_exchange
from ...tape.records.events import Event, EventKind
from ..run.exchange_events import outcome_event
from ..run.pending_exchange import PendingExchange
from ..run.request_contracts import ContractState
from ..run.usage_meter import UsageMeter
from ..websockets.recorder import WebSocketRecorder
from ..wire.convert_http_messages import noted
from .intent import HINT, identify

MakeEvent = Callable[[PendingExchange, Exchange], Event]
"""Makes what the log says of an exchange."""


class Snapshot(NamedTuple):
    """What was true of an exchange when it was handed over."""

    pending: PendingExchange
    """Only what was asked is read of it: its body is searched where it is written."""
    make_event: MakeEvent | None
    """None where its outcome is still to come."""
    end_us: int
    verdict: VerdictKind
    reason: str
    warnings: tuple[str, ...]
    alpn: Alpn
    lane: Lane | None
    fault: Fault | None
    gone: Gone | None
    head: RawResponse | None
    """The answer but for its body."""
    pieces: tuple[bytes, ...]
    interim: tuple[RawInterim, ...]
    originals: tuple[tuple[int, bytes], ...]
    websocket: RawWebSocketSummary | None
    usage_meter: UsageMeter | None
    """What counts the usage that the answer states; None where that is not counted."""
    contract_state: ContractState | None
    """What the answer is held to; None where it is not checked."""
    searched: tuple[Response, tuple[Redaction, ...], tuple[str, ...]] | None = None
    """The answer without its secrets, where another thread than the writer's has taken them out."""

    @property
    def came(self) -> RawResponse | None:
        """The answer as it came."""
        return replace(self.head, body=b"".join(self.pieces)) if self.head is not None else None


def take_snapshot(
    pending: PendingExchange,
    answer: http.Response | None,
    *,
    complete: bool,
    make_event: MakeEvent | None = None,
) -> Snapshot:
    """Take what is true of an exchange now. Loop."""
    came, client, websocket = pending.answer, pending.flow.client_conn, pending.websocket
    download, state = came.download, pending.contract_state
    pieces = tuple(came.pieces)
    if answer is not None and not pieces and answer.data.content:
        pieces = (answer.data.content,)
    checks = state is not None and state.applicable.answers and complete
    return Snapshot(
        pending,
        make_event,
        pending.now_us(),
        _find_verdict(pending),
        pending.reason,
        tuple(pending.progress.warnings),
        Alpn(tuple(client.alpn_offers) if client.tls else (), client.alpn),
        pending.arrival.lane,
        pending.progress.fault,
        pending.progress.gone,
        _read_head(pending, answer, complete=complete) if answer is not None else None,
        pieces,
        tuple(came.interim),
        tuple(download.originals) if download is not None else (),
        websocket.snapshot() if isinstance(websocket, WebSocketRecorder) else None,
        _find_meter(pending, final=make_event is note_outcome or not pending.progress.saved),
        state if checks and make_event is note_outcome else None,
    )


def _find_verdict(pending: PendingExchange) -> VerdictKind:
    """Say where a request was sent to."""
    if pending.open_run.mode is not Mode.PLAYBACK:
        return VerdictKind.RECORDED
    sandboxed = pending.decision is not None and pending.decision.route is not None
    return VerdictKind.SANDBOXED if sandboxed else VerdictKind.LIVE


def _read_head(pending: PendingExchange, answer: http.Response, *, complete: bool) -> RawResponse:
    came, data = pending.answer, answer.data
    return RawResponse(
        status=data.status_code,
        reason=data.reason,
        http_version=data.http_version.decode("latin-1"),
        headers=data.headers.fields,
        body=b"",
        head_us=came.head_us,
        chunks=tuple(came.chunks),
        trailers=data.trailers.fields if data.trailers else (),
        complete=complete,
        spilled=came.downloaded,
        head_need=came.head_need,
        end_need=came.end_need,
        end_after=came.end_after,
        ragged=came.ragged,
        secrets=came.download.secrets if came.download is not None else (),
    )


def _find_meter(pending: PendingExchange, *, final: bool) -> UsageMeter | None:
    meter = pending.open_run.usage_meter
    if meter is None or not (final and meter.reads_answers and meter.asks_model(pending)):
        return None
    return meter


def search(snapshot: Snapshot) -> Snapshot:
    """Take the secrets out of the answer before the writer's thread would. Any thread."""
    snapshot.pending.with_body()  # what the request shows may be in the answer
    came = snapshot.came
    if came is None:
        return snapshot
    return snapshot._replace(searched=snapshot.pending.open_run.redactor.response(came))


def make_record(snapshot: Snapshot) -> Record:
    """Make what is stored. Runs on the writer's thread."""
    pending = snapshot.pending
    request, fingerprint = identify(pending)
    open_run, state = pending.open_run, pending.contract_state
    asked_redactions, warnings = pending.redactions, snapshot.warnings
    came, response = snapshot.came, None
    redactions: tuple[Redaction, ...] = ()
    if snapshot.usage_meter is not None:
        snapshot.usage_meter.count_usage(pending, request, came)
    if came is not None:
        response, redactions, changed = snapshot.searched or open_run.redactor.response(came)
        warnings = (*warnings, *changed)
        if snapshot.contract_state is not None:
            held = snapshot.contract_state.holds and snapshot.gone is None
            redact_text = open_run.redactor.redact_text
            snapshot.contract_state.check_answer(request, came, response, redact_text, held=held)
    interim, more = open_run.redactor.interim(snapshot.interim)
    asked = Asked(
        pending.seq,
        request,
        pending.request_class,
        fingerprint,
        pending.arrival.started_ns,
        asked_redactions,
        pending.account.repeat,
        snapshot.alpn,
        pending.arrival.tunnel,
        snapshot.lane,
    )
    outcome = Outcome(
        snapshot.end_us,
        response,
        snapshot.fault,
        snapshot.gone,
        interim,
        open_run.redactor.websocket(snapshot.websocket),
        (*redactions, *more),
        (*warnings, *noted(pending.flow), *((NOT_ASKED,) if pending.is_injected else ())),
        state.withheld if state is not None else NO_TEXT,
    )
    exchange = build_exchange(asked, snapshot.verdict, snapshot.reason, outcome)
    if open_run.sink_queue is not None:
        pending.account.answer(exchange)
    event = snapshot.make_event(pending, exchange) if snapshot.make_event is not None else None
    original = None
    if open_run.keeps_originals:
        closed = snapshot.websocket.close if snapshot.websocket is not None else None
        reasons = closed.reasons if closed is not None else None
        original = RawAnswer(came, snapshot.interim, snapshot.originals, reasons)
    return Record(exchange, raw_key(request, pending.request_class), event, original)


def note_outcome(pending: PendingExchange, exchange: Exchange) -> Event:
    """Make what the log says of an exchange that has ended."""
    live = exchange.verdict in SENT_OUT
    uncounted = pending.usage.is_call is False
    websocket = pending.websocket
    # Its messages are written before it, on this thread.
    replaced = isinstance(websocket, WebSocketRecorder) and websocket.has_replaced_answer
    return outcome_event(
        exchange,
        live=live,
        usage=pending.usage.counted,
        uncounted=uncounted,
        replaced_message=replaced,
    )


def note_gone(pending: PendingExchange, exchange: Exchange) -> Event:
    """Correct an outcome that was logged already: its client left."""
    gone = exchange.gone
    at_us = gone.at_us if gone is not None else pending.now_us()
    logged: dict[str, object] = {"seq": pending.seq, "gone_us": at_us}
    if gone is not None and gone.aborted:
        logged["aborted"] = True
    return Event(EventKind.OUTCOME, time.time_ns(), logged)


def correct(pending: PendingExchange, info: RunInfo) -> Record:
    """Build the record of an exchange again whose client left while it was written. Runs on the writer's thread.

    Raises: StoreUnwritable.
    """
    exchange = pending.open_run.store.exchanges.find(info, pending.seq)
    if exchange is None:
        raise StoreUnwritable("an exchange that was just written is not there", HINT)
    exchange = replace(exchange, gone=pending.progress.gone)
    key = raw_key(exchange.request, exchange.request_class)
    return Record(exchange, key, note_gone(pending, exchange))
