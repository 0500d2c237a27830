"""What a resumed run in `playhead serve` was given, and a process of its name that was started again asks for once more.

Of reads nothing depends on it. Whoever asks for an effect once more, and is the process that did so before, means another one.
Where a process cannot be seen it is taken for another one in what changes the world, and for the same in what does not.
"""

from ...tape.exchange import RequestClass, Seq
from ...tape.policy.resume import Given
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState

_KINDS = (RequestClass.EFFECT, RequestClass.INFERENCE)


def note_given(pending: PendingExchange, playback: PlaybackState) -> None:
    """Note that a request is served, or about to be sent."""
    if pending.request_class in _KINDS:
        client = pending.flow.client_conn.id
        playback.resumption.note_given(_find_key(pending), pending.seq, client)


def find_given(pending: PendingExchange, playback: PlaybackState) -> Given | None:
    """Find what is known of an earlier request that was the same."""
    if pending.request_class not in _KINDS:
        return None
    return playback.resumption.find_given(_find_key(pending))


def _find_key(pending: PendingExchange) -> bytes | None:
    """Find by which key it is the same again: an effect by its effect key, whatever idempotency key it has; a model call by its fingerprint."""
    return pending.effect_key or pending.fingerprint


async def find_given_to_another(pending: PendingExchange, playback: PlaybackState) -> Seq | None:
    """Find the earlier request that was the same, where none of those who asked for it is the process that asks now."""
    given = find_given(pending, playback)
    if given is None:
        return None
    lanes = pending.open_run.lanes
    own = await lanes.find_number(pending.flow.client_conn.id)
    if not own:
        return given.seq if pending.request_class is RequestClass.EFFECT else None
    for client in tuple(given.clients):
        if await lanes.find_number(client) == own:
            return None
    return given.seq
