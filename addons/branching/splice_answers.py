"""Give a request of a branch the answer of another recording, where one is spliced in (`tape/splicing/`)."""

from dataclasses import replace

from ...tape.exchange import Request, RequestClass, Seq
from ...tape.matching.cursor import Hit
from ...tape.policy.branch import Spliced
from ...tape.policy.revise import Supposed
from ..run.exchange_parts.prepared_request import Lookup
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState


def find_spliced(
    playback: PlaybackState, request: Request, request_class: RequestClass
) -> Spliced | None:
    """Find what answers a request that the tape does not hold as it stands, in a branch that is past its point."""
    point = playback.point
    if point.branch is None or point.branch.splice is None or not point.reached:
        return None
    return point.branch.splice.find(request, request_class)


def splice_in(pending: PendingExchange, playback: PlaybackState, given: Spliced) -> None:
    """Have a request answered with what was found, in the place of an exchange of the tape if there is one."""
    seq = given.tape_seq
    recorded = playback.read_recorded(seq) if seq is not None else None
    if seq is None or recorded is None:
        pending.find(Lookup())
    else:
        playback.cursor.take(playback.fingerprint_of(recorded), Hit(seq))
        pending.find(Lookup(Hit(seq)))
    pending.revise(Supposed(seq, given.answer, given.source))


def replace_spliced(pending: PendingExchange, playback: PlaybackState, seq: Seq) -> None:
    """Have a request that the tape holds answered otherwise, where its answer is spliced in."""
    branch = playback.point.branch
    given = branch.splice.replace(seq) if branch is not None and branch.splice is not None else None
    if given is not None:
        pending.find(replace(pending.lookup, recorded=None))
        pending.revise(Supposed(seq, given.answer, given.source))
