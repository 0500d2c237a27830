"""Serve a recorded exchange whose request has not ended, or was given up before it had."""

from collections.abc import Callable

from ...tape.canonical.canonical_request import same_head
from ...tape.exchange import Exchange, RawAnswer, Request
from ...tape.matching.cursor import Hit
from ...tape.policy.revise import Recognised
from ..answer.compare_rest_of_request import compare_values
from ..deciding.given_to_another_process import note_given
from ..faults.inject import note_injected
from ..run.exchange_parts.prepared_request import Lookup
from ..run.pending_exchange import PendingExchange, note_verdict
from ..run.playback_state import PlaybackState
from ..serving.describe_match import notes
from ..serving.play import find_raw, play
from ..serving.save_served_exchange import keep_served


def begin_early(
    pending: PendingExchange, playback: PlaybackState, request: Request, recorded: Exchange
) -> None:
    """Begin the answer of a recorded exchange while its request still comes."""
    came = pending.body.came_so_far
    early = pending.body.begin_early(recorded)
    _take(pending, playback, request, recorded, "on tape: its request is the same so far", play)
    compare_values(pending, request, early, 0, came)


def end_given_up(
    pending: PendingExchange, playback: PlaybackState, request: Request, recorded: Exchange
) -> None:
    """Note that a request was given up where the recorded one was; nobody waits for an answer."""
    _take(pending, playback, request, recorded, "on tape: its client gave up there, too")


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
    note_verdict(pending, request, decision, recorded, tape_seq=recorded.seq, match=match, **more)
    if playback.resumption.resume is not None:
        note_given(pending)
        playback.resumption.note_change()
        keep_served(pending, playback, recorded, raw)
