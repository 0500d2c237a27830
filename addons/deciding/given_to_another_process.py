"""What a run in `playhead serve` was given under `runs.resume: auto`, and a process of its name that was started again asks for once more.

Of reads nothing depends on it. Whoever asks for an effect once more, and is the process that did so before, means another one.
Where a process cannot be seen it is taken for another one in what changes the world, and for the same in what does not; two
requests on one connection are one process's.
"""

from ...tape.exchange import RequestClass, Seq
from ...tape.policy.resume import Given
from ..run.pending_exchange import PendingExchange

_KINDS = (RequestClass.EFFECT, RequestClass.INFERENCE)


def asks_for_given(pending: PendingExchange) -> bool:
    """Say whether it counts if another process was given the same."""
    return pending.open_run.members.given is not None and pending.request_class in _KINDS


def note_given(pending: PendingExchange) -> None:
    """Note that a request is served, or about to be sent."""
    given = pending.open_run.members.given
    if given is not None and pending.request_class in _KINDS:
        given.note(_find_key(pending), pending.seq, pending.flow.client_conn.id)


def forget_given(pending: PendingExchange) -> None:
    """Forget a request whose upstream was never reached: whoever asks again does nothing twice."""
    given = pending.open_run.members.given
    if given is not None:
        given.forget(_find_key(pending), pending.seq)


def find_given(pending: PendingExchange) -> Given | None:
    """Find what is known of an earlier request that was the same."""
    given = pending.open_run.members.given
    if given is None or pending.request_class not in _KINDS:
        return None
    return given.find(_find_key(pending))


def _find_key(pending: PendingExchange) -> bytes | None:
    """Find by which key it is the same again: an effect by its effect key, whatever idempotency key it has; a model call by its fingerprint."""
    return pending.effect_key or pending.fingerprint


async def find_given_to_another(pending: PendingExchange) -> Seq | None:
    """Find the earlier request that was the same, where none of those who asked for it is the process that asks now."""
    given, client = find_given(pending), pending.flow.client_conn.id
    if given is None or client in given.clients:
        return None
    lanes = pending.open_run.lanes
    own = await lanes.find_number(client)
    if not own:
        return given.seq if pending.request_class is RequestClass.EFFECT else None
    for other in tuple(given.clients):
        if await lanes.find_number(other) == own:
            return None
    return given.seq
