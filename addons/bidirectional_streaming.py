"""Bidirectional streaming: requests whose answer may begin before they have ended, such as gRPC.

They cannot be read to their end first: a client that waits for an answer before it says more would wait for
ever. While recording they are decided by their head and sent on as they come. In playback the bytes that have
come are compared with those of recorded requests of the same endpoint: where the recorded answer began by
then, it begins again. Where an earlier recorded request has begun alike and was answered later, the next message is
waited for, or that the client is quiet. One that says something else later ends there, as a divergence. One that its client
gives up before any answer is the recorded one that was given up so.
"""

from collections.abc import Callable

from mitmproxy import http

from ..tape.canonical.canonical_request import Canonical, canonical, same_head
from ..tape.diff.difference import common_prefix, show_difference
from ..tape.diff.divergence_types import ABSENT, Divergence, DivergenceKind
from ..tape.exchange import Exchange, RawAnswer, Request, RequestClass
from ..tape.matching.cursor import Hit
from ..tape.policy.refusal import is_grpc
from ..tape.policy.revise import Cause, Recognised, Refused, revise
from ..tape.records.events import EventKind
from ..tape.redaction.compare_placeholders import blank
from .answer.cut_request import note_cut_request
from .faults.inject import note_injected
from .run.exchange_parts.prepared_request import Lookup
from .run.exchange_parts.request_body import Early
from .run.pending_exchange import PendingExchange, find_pending, note_verdict
from .run.playback_state import PlaybackState
from .run.run_state import OpenRun
from .serving.notes import notes
from .serving.play import find_raw, play
from .wire.http import read_request

_SHOWN_BYTES = 100
_PREFIX_BYTES = 5
"""Of a message of gRPC: a byte that says whether it is compressed, and its length."""
_GIVEN_UP = "its client gave up before it had ended; the tape has no such request"


class Bidirectional:
    """Begin answers from the tape while their requests still come."""

    def playhead_bidirectional(self, pending: PendingExchange) -> None:
        """Compare what has come; begin to play where the recorded answer had begun."""
        if pending.body.early is not None and pending.request is not None:
            _compare(pending, pending.request, pending.body.early)
        elif (
            (playback := pending.open_run.playback) is not None
            and pending.body.upload is None
            and pending.body.sent
        ):
            _find(pending, playback)

    def error(self, flow: http.HTTPFlow) -> None:
        """Account for a request of a playback that its client gave up before it had ended."""
        pending = find_pending(flow)
        if pending is None or pending.decision is not None:
            return
        if not pending.body.bidirectional:
            note_cut_request(pending)
            return
        playback = pending.open_run.playback
        if pending.finished or playback is None:
            return
        request = _read_head(pending)
        recorded = _find_alike(pending, playback, request, _given_up)
        if recorded is not None:
            _take(pending, playback, request, recorded, "on tape: its client gave up there, too")
            return
        note_verdict(pending, request, revise(None, Refused(Cause.CUT, _GIVEN_UP)))


def _find(pending: PendingExchange, playback: PlaybackState) -> None:
    """Find the recorded request that this one has been so far."""
    request, came = _read_head(pending), pending.body.sent[0]
    recorded = _find_alike(pending, playback, request, _began_within)
    first = _find_alike(pending, playback, request, _awaits_more) if recorded is not None else None
    if recorded is not None and first is not None and first.seq < recorded.seq:
        # Which of the two it is, its next message tells, or that none comes.
        pending.body.wait_for_more(undecided=pending.body.quiet_at != len(came))
        if pending.body.undecided:
            return
    if recorded is None and _find_alike(pending, playback, request, _awaits_more) is None:
        recorded = _find_alike(pending, playback, request, _began)
    if recorded is not None:
        _begin(pending, playback, request, recorded)


def _read_head(pending: PendingExchange) -> Request:
    """Read a request as far as its head, and keep that."""
    asked = read_request(pending.flow, pending.arrival.fields, names=pending.arrival.names)
    return pending.prepare(asked, with_body=False)


def _find_alike(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    fits: Callable[[Exchange, bytes], bool],
) -> Exchange | None:
    """Find the first recorded exchange with the same head that was not served and fits what has come of the body."""
    open_run = pending.open_run
    key = (request.method, request.url.partition("?")[0])
    came = pending.body.sent[0] if pending.body.sent else b""
    form = _head_form(open_run, request, pending.request_class)
    for seq in playback.find_endpoints().get(key, ()):
        if playback.cursor.served(seq):
            continue
        stored = open_run.store.exchanges.find(playback.tape, seq)
        recorded = playback.as_now(stored) if stored is not None else None
        if recorded is None or not fits(recorded, came):
            continue
        if _head_form(open_run, recorded.request, recorded.request_class) == form:
            return recorded
    return None


def _given_up(recorded: Exchange, came: bytes) -> bool:
    """Say whether a recorded request was given up before its client saw an answer, and is what has come so far."""
    if not recorded.saw_nothing:
        return False
    asked = recorded.request
    if asked.spilled is not None:
        return True
    return not _differs(asked, 0, came) and not (len(came) > len(asked.body) and said_all(recorded))


def _began(recorded: Exchange, came: bytes) -> bool:
    """Say whether a recorded answer had begun when this much of its request had been sent."""
    response = recorded.response
    if response is None or response.head_need is None or response.head_need > len(came):
        return False
    asked = recorded.request
    return asked.spilled is not None or not _differs(asked, 0, came)


def _began_within(recorded: Exchange, came: bytes) -> bool:
    """Say the same of one whose request has all that has come."""
    goes_on = not _ended_first(recorded) or recorded.request.spilled is not None
    return _began(recorded, came) and (goes_on or len(came) <= len(recorded.request.body))


def _awaits_more(recorded: Exchange, came: bytes) -> bool:
    """Say whether a recorded request is what has come so far, and its answer began only after more of it, or its end."""
    response, asked = recorded.response, recorded.request
    if response is None or (response.head_need is not None and response.head_need <= len(came)):
        return False
    if asked.spilled is not None:
        return len(came) < asked.spilled.size
    return len(came) <= len(asked.body) and not _differs(asked, 0, came)


def _begin(
    pending: PendingExchange, playback: PlaybackState, request: Request, recorded: Exchange
) -> None:
    came = pending.body.sent[0]
    early = pending.body.begin_early(recorded)
    _take(pending, playback, request, recorded, "on tape: its request is the same so far", play)
    _compare_values(pending, request, early, 0, came)


def _take(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    recorded: Exchange,
    reason: str,
    start: Callable[[PendingExchange, PlaybackState, Exchange, RawAnswer | None], None]
    | None = None,
) -> None:
    """Serve a recorded exchange, and say so.

    start: begins the answer; None where nobody waits for one.
    """
    open_run = pending.open_run
    fingerprint, hit = playback.fingerprint_of(recorded), Hit(recorded.seq)
    pending.identify(fingerprint, playback.effect_key_of(recorded))
    pending.find(Lookup(hit))
    playback.cursor.take(fingerprint, hit)
    decision = pending.revise(Recognised(recorded.seq, reason))
    if pending.held.injection is not None:
        decision = note_injected(pending, pending.held.injection, decision)
    raw = None
    if start is not None:
        if recorded.has_replaced_answer and open_run.keeps_originals:
            raw = find_raw(open_run, playback, recorded)
        start(pending, playback, recorded, raw)
    if open_run.sink_queue is not None:
        pending.account.answer(recorded)
    more = notes(pending, playback, request, recorded, raw)
    version = request.http_version
    same = same_head(recorded.request, request) and recorded.request.http_version == version
    same = same and playback.agreement.has_same_secrets(request, recorded)
    match = "exact" if same else "canonical"
    note_verdict(pending, request, decision, tape_seq=recorded.seq, match=match, **more)


def _compare(pending: PendingExchange, request: Request, early: Early) -> None:
    """Compare what came after the answer had begun."""
    asked = early.exchange.request
    if asked.spilled is not None or early.diverged:
        return
    at, came = pending.body.compare(early)
    if _differs(asked, at, came):
        _diverge(
            pending,
            request,
            early,
            at,
            came,
            "the request went on otherwise after its answer had begun",
        )
    elif early.compared > len(asked.body) and said_all(early.exchange):
        more = early.compared - len(asked.body)
        text = f"the request went on for {more} bytes more than the recorded one, which ended there"
        _diverge(pending, request, early, len(asked.body), came[-more:], text)
    elif pending.body.request_ended and was_open(early.exchange):
        text = "the request ended, and the recorded one had not when its client gave it up"
        _diverge(pending, request, early, early.compared, b"", text)
    elif pending.body.request_ended and early.compared < len(asked.body):
        less = len(asked.body) - early.compared
        text = f"the request ended {less} bytes before the recorded one: it has fewer messages, or a shorter one"
        _diverge(pending, request, early, early.compared, b"", text)
    else:
        _compare_values(pending, request, early, at, came)


def _compare_values(
    pending: PendingExchange, request: Request, early: Early, at: int, came: bytes
) -> None:
    """Compare the values that redaction replaced in the recorded request with what came in their places.

    at: where what came begins.
    """
    open_run = pending.open_run
    if open_run.playback is None:
        return
    for place, stored, value in early.find_values(at, came):
        pair = open_run.redactor.inner_secret(stored, value)
        compared = open_run.playback.agreement.compare_value(*pair)
        if compared.changed:
            text = f"the request {compared.changed[0].what}"
            _diverge(pending, request, early, place, value, text)
            return
        if compared.kind_alone:
            open_run.note(EventKind.NOTED, seq=pending.seq, kind_alone=True)


def said_all(recorded: Exchange) -> bool:
    """Say whether a recorded request is all that its client had to say: it ended first, or its client gave it up between two messages."""
    asked = recorded.request
    left = recorded.gone is not None and recorded.fault is None and asked.spilled is None
    return _ended_first(recorded) or (left and _has_whole_messages(asked))


def was_open(recorded: Exchange) -> bool:
    """Say whether a client gave up a recorded request that it had not ended."""
    answer = recorded.response
    left = recorded.gone is not None and recorded.fault is None
    # How much had been sent by then is known of what had not ended; tapes of earlier versions do not tell.
    return left and answer is not None and not answer.complete and answer.end_need is not None


def _has_whole_messages(asked: Request) -> bool:
    """Say whether a body of gRPC ends with a message. Source: the protocol's description of length-prefixed messages."""
    if not is_grpc(asked):
        return False
    body, at = asked.body, 0
    while at < len(body):
        at += _PREFIX_BYTES + int.from_bytes(body[at + 1 : at + _PREFIX_BYTES])
    return at == len(body)


def _ended_first(recorded: Exchange) -> bool:
    """Say whether a recorded request ended before its answer did: then it had no more to say."""
    answer = recorded.response
    whole = recorded.gone is None and recorded.fault is None
    return whole and answer is not None and answer.complete and answer.end_need is None


def _differs(asked: Request, at: int, came: bytes) -> bool:
    """Say whether what came is something else than the tape has there, its placeholders aside."""
    expected = asked.body[at : at + len(came)]
    # What was recorded may have ended before its request had.
    came = came[: len(expected)]
    if came == expected:
        return False
    return blank(came, asked.secrets, at) != blank(expected, asked.secrets, at)


def _diverge(
    pending: PendingExchange, request: Request, early: Early, at: int, came: bytes, text: str
) -> None:
    """Note that a request is another one from this byte on, and that it gets no further answer."""
    pending.body.diverge(early)
    expected = early.exchange.request.body[at:]
    shown = pending.open_run.redactor.text(came)
    same = common_prefix(expected, shown)
    place = f"body byte {at + same}"
    divergence = Divergence(
        DivergenceKind.CHANGED,
        pending.seq,
        request.method,
        request.url,
        early.exchange.seq,
        (show_difference(place, _readable(expected[same:]), _readable(shown[same:])),),
        text,
    )
    pending.open_run.note(EventKind.DIVERGED, seq=pending.seq, divergence=divergence.to_json())


def _head_form(open_run: OpenRun, request: Request, request_class: RequestClass) -> Canonical:
    """Give the canonical form of a request without its body."""
    secret = open_run.redactor.redacted_query(request)
    form = canonical(request, request_class, open_run.identifier.rules, secret)
    return form._replace(body=b"", kind=form.kind.NONE)


def _readable(data: bytes) -> str:
    return data[:_SHOWN_BYTES].decode("utf-8", "backslashreplace") or ABSENT
