"""Keep what is behind the crash point of a resumed run waiting while others ask for the rest of the prefix.

An agent that runs things at once may come to the crash point on one path while another is still before it. One that asks for one
thing after the other cannot: what it asks for instead of the rest is a divergence at once.
"""

import asyncio
import logging

from ...tape.exchange import Seq
from ...tape.policy.resume import Resumption, UnknownEffect
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState

_PATIENCE_S = 30.0
"""Longest time without any request of the prefix."""
_UNKNOWN_PATIENCE_S = 600.0
"""The same for an effect without an outcome, of which the crashed run did not wait for an answer: it asked for more behind it."""
logger = logging.getLogger(__name__)


async def wait_for_prefix(pending: PendingExchange, playback: PlaybackState) -> Seq | None:
    """Wait until a request may leave; give what has not been asked for in time, or None."""
    resumption, unknown = playback.resumption, pending.lookup.unknown
    told = False
    changed = asyncio.Event()
    unwatch = resumption.watch(changed.set)
    try:
        while not resumption.diverged and not pending.is_deserted:
            awaited = playback.find_awaited(is_unknown=unknown is not None)
            if awaited is None:
                return None
            patience_s = _find_patience_s(resumption, unknown, awaited)
            if not patience_s:
                return awaited
            if not told:
                told = True
                _tell(pending, awaited, patience_s)
            changed.clear()
            try:
                await asyncio.wait_for(changed.wait(), patience_s)
            except TimeoutError:
                return awaited
    finally:
        unwatch()
    return playback.find_awaited(is_unknown=unknown is not None)


def _find_patience_s(resumption: Resumption, unknown: UnknownEffect | None, awaited: Seq) -> float:
    """Say how long others may take to ask for the first exchange that is missing."""
    if unknown is not None and unknown.place is not None and awaited > unknown.place:
        return _UNKNOWN_PATIENCE_S
    is_old = unknown is not None and unknown.place is None
    parallel = resumption.resume is not None and resumption.resume.parallel
    return _PATIENCE_S if parallel or is_old else 0.0


def _tell(pending: PendingExchange, awaited: Seq, patience_s: float) -> None:
    info = pending.open_run.info
    logger.warning(
        "%s:%d: %s %s waits up to %d s, since exchange %d of the tape has to be asked for again first",
        info.id if info is not None else "",
        pending.seq,
        pending.request.method if pending.request is not None else "",
        pending.request.url if pending.request is not None else "",
        patience_s,
        awaited,
    )
