"""The recorded exchange that is about to be served: whether it can be read, and whether it agrees with what was asked."""

from dataclasses import replace
from functools import partial

from ...store import LogCorrupt
from ...tape.diff.divergence_types import Difference
from ...tape.exchange import Exchange, Fingerprint, Request, RequestClass, Seq
from ...tape.matching.header_agreement import Drift
from ...tape.playback.aborted import as_delivered
from ...tape.policy.revise import Unreadable, Unsearched
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState
from ..run.run_state import OpenRun


def read_served(
    open_run: OpenRun, playback: PlaybackState, seq: Seq
) -> Exchange | Unreadable | Unsearched:
    """Read what is to be served, or say why it cannot be."""
    try:
        recorded = playback.store.exchanges.find(playback.tape, seq)
        if recorded is not None and open_run.keeps_originals:
            open_run.store.originals.find(playback.tape, recorded)
    except LogCorrupt as error:
        return Unreadable(seq, str(error))
    if recorded is None:
        return Unreadable(seq, "it is missing")
    rest = recorded.response.find_unsearched() if recorded.response is not None else None
    if rest is not None:
        return Unsearched(seq, rest.size, rest.at)
    return as_delivered(playback.without_crash(playback.as_now(recorded)))


def as_asked(pending: PendingExchange, recorded: Exchange) -> Exchange:
    """Give what would answer a request, with the class that the request has today: of an effect no profile leaves anything out."""
    if recorded.request_class is pending.request_class:
        return recorded
    return replace(recorded, request_class=pending.request_class)


def find_disagreements(
    pending: PendingExchange,
    playback: PlaybackState,
    request: Request,
    recorded: Exchange,
    fingerprint: Fingerprint,
) -> tuple[Drift, ...] | None:
    """Find where a request has another credential or run id than what would answer it stands for.

    Gives None where the credentials of the tape have to be known before.
    """
    if pending.request_class is RequestClass.TELEMETRY:
        return ()
    alike = partial(playback.cursor.uses, fingerprint)
    wrong = playback.agreement.find_disagreements(request, recorded, alike)
    if wrong is None:
        return None
    if playback.id_rewriting.cancels_another(request, recorded.request):
        place = Difference("body $.params.requestId", "(of one call)", "(of another)")
        wrong.append(Drift("it cancels another call than the recorded one", place))
    return tuple(wrong)
