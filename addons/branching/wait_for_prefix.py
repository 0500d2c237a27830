"""Keep what is behind the crash point of a resumed run waiting while others ask for the rest of the prefix.

An agent that runs things at once may come to the crash point on one path while another is still before it. One that asks for one
thing after the other cannot: what it asks for instead of the rest is a divergence at once.
"""

import asyncio

from ...tape.exchange import Seq
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState

_PATIENCE_S = 30.0
"""Longest time without any request of the prefix."""
_UNKNOWN_PATIENCE_S = 600.0
"""The same for an effect without an outcome, of which the crashed run did not wait for an answer."""


async def wait_for_prefix(pending: PendingExchange, playback: PlaybackState) -> Seq | None:
    """Wait until a request may leave; give what has not been asked for in time, or None."""
    resumption, unknown = playback.resumption, pending.lookup.unknown
    patience_s = 0.0
    if unknown is not None:
        patience_s = _UNKNOWN_PATIENCE_S
    elif resumption.resume is not None and resumption.resume.parallel:
        patience_s = _PATIENCE_S
    changed = asyncio.Event()
    unwatch = resumption.watch(changed.set)
    try:
        while not resumption.diverged and not pending.is_deserted:
            awaited = playback.find_awaited(is_unknown=unknown is not None)
            if awaited is None or not patience_s:
                return awaited
            changed.clear()
            try:
                await asyncio.wait_for(changed.wait(), patience_s)
            except TimeoutError:
                return awaited
    finally:
        unwatch()
    return playback.find_awaited(is_unknown=unknown is not None)
