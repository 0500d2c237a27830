"""Bidirectional streaming: requests whose answer may begin before they have ended, such as gRPC.

They cannot be read to their end first: a client that waits for an answer before it says more would wait for
ever. While recording they are decided by their head and sent on as they come. In playback the bytes that have
come are compared with those of recorded requests of the same endpoint: where the recorded answer began by
then, it begins again. One that says something else later ends there, as a divergence.
"""

from mitmproxy import http

from ..tape.canonical.canonical_request import Canonical, canonical
from ..tape.diff.divergence_types import Difference, Divergence, DivergenceKind
from ..tape.exchange import Exchange, Request, RequestClass, VerdictKind
from ..tape.matching.cursor import Hit
from ..tape.policy.decide import Action, Decision
from ..tape.records.events import EventKind
from ..tape.redaction.compare_placeholders import blank
from .faults.inject import note_injected
from .playback import notes, play
from .run.pending_exchange import Early, PendingExchange, note_verdict
from .run.run_state import OpenRun
from .wire.http import read_request

_TYPES = ("application/grpc", "application/connect+", "application/vnd.amazon.eventstream")
"""Content types of protocols that stream both ways."""


def is_bidirectional(request: http.Request) -> bool:
    """Say whether a request may be answered before it has ended."""
    if not request.is_http2:
        return False
    kind: str = request.headers.get("content-type", "")
    return kind.lower().startswith(_TYPES)


class Bidirectional:
    """Begin answers from the tape while their requests still come."""

    def playhead_bidirectional(self, pending: PendingExchange) -> None:
        """Compare what has come; begin to play where the recorded answer had begun."""
        if pending.early is not None:
            _compare(pending, pending.early)
        elif pending.open_run.tape is not None and pending.upload is None and pending.sent:
            _find(pending, pending.open_run)


def _find(pending: PendingExchange, open_run: OpenRun) -> None:
    """Find the recorded request that this one has been so far."""
    assert open_run.cursor is not None
    flow = pending.flow
    asked = read_request(flow, pending.fields, names=pending.names)
    request, pending.redactions = open_run.redactor.head(asked)
    pending.request = request
    key = (request.method, request.url.partition("?")[0])
    came = pending.sent[0]
    form = _head_form(open_run, request, pending.request_class)
    for seq in open_run.find_endpoints().get(key, ()):
        if open_run.cursor.served(seq):
            continue
        assert open_run.tape is not None
        recorded = open_run.store.find_exchange(open_run.tape, seq)
        if recorded is None or not _began(recorded, came):
            continue
        if _head_form(open_run, recorded.request, recorded.request_class) == form:
            _begin(pending, open_run, recorded)
            return


def _began(recorded: Exchange, came: bytes) -> bool:
    """Say whether a recorded answer had begun when this much of its request had been sent."""
    response = recorded.response
    if response is None or response.head_need is None or response.head_need > len(came):
        return False
    asked = recorded.request
    return asked.spilled is not None or not _differs(asked, 0, came)


def _begin(pending: PendingExchange, open_run: OpenRun, recorded: Exchange) -> None:
    assert open_run.cursor is not None
    pending.early = Early(recorded, len(pending.sent[0]))
    pending.fingerprint = open_run.fingerprint_of(recorded)
    pending.effect_key = open_run.effect_key_of(recorded)
    pending.found = Hit(recorded.seq)
    open_run.cursor.take(pending.fingerprint, pending.found)
    reason = "on tape: its request is the same so far"
    pending.decision = Decision(Action.SERVE, reason, "tape", recorded.seq)
    if pending.injection is not None:
        note_injected(pending)
        reason = pending.decision.reason
    play(pending, recorded)
    if open_run.sink_queue is not None:
        pending.answered = recorded
    assert pending.request is not None
    more = notes(pending, pending.request, recorded)
    served = VerdictKind.SERVED
    note_verdict(
        pending, pending.request, served, reason, tape_seq=recorded.seq, match="exact", **more
    )


def _compare(pending: PendingExchange, early: Early) -> None:
    """Compare what came after the answer had begun."""
    asked = early.exchange.request
    if asked.spilled is not None or early.diverged:
        return
    came = b"".join(pending.sent)
    pending.sent = []
    expected = asked.body[early.compared : early.compared + len(came)]
    early.compared += len(came)
    differs = _differs(asked, early.compared - len(came), came)
    if pending.request_ended and early.compared < len(asked.body):
        differs = True
    if differs:
        _diverge(pending, early, came, expected)


def _differs(asked: Request, at: int, came: bytes) -> bool:
    """Say whether what came is something else than the tape has there, its placeholders aside."""
    expected = asked.body[at : at + len(came)]
    # What was recorded may have ended before its request had.
    came = came[: len(expected)]
    if came == expected:
        return False
    return blank(came, asked.secrets, at) != blank(expected, asked.secrets, at)


def _diverge(pending: PendingExchange, early: Early, came: bytes, expected: bytes) -> None:
    early.diverged = True
    assert pending.request is not None
    at = early.compared - len(came)
    path = f"body[{at}:{early.compared}]"
    divergence = Divergence(
        DivergenceKind.CHANGED,
        pending.seq,
        pending.request.method,
        pending.request.url,
        early.exchange.seq,
        (Difference(path, repr(expected[:100]), repr(pending.open_run.redactor.text(came)[:100])),),
        "the request went on otherwise after its answer had begun",
    )
    pending.open_run.note(EventKind.DIVERGED, seq=pending.seq, divergence=divergence.to_json())


def _head_form(open_run: OpenRun, request: Request, request_class: RequestClass) -> Canonical:
    """Give the canonical form of a request without its body."""
    secret = open_run.redactor.redacted_query(request)
    form = canonical(request, request_class, open_run.rules, secret)
    return form._replace(body=b"", kind=form.kind.NONE)
