"""Whether a request comes in its order: after the answers that it needs, and within its lane as on the tape."""

from ...store import LogCorrupt
from ...tape.diff.divergence_types import (
    Dependence,
    Difference,
    Divergence,
    DivergenceKind,
    one_line,
)
from ...tape.exchange import Exchange, Redaction, Request, RequestClass, Seq
from ..run.pending_exchange import PendingExchange, on_their_way
from ..run.playback_state import PlaybackState
from ..run.run_state import OpenRun

_MOST_OVERLAPS = 64
"""Requests on their way that are written down with one that comes."""


def find_needs(
    playback: PlaybackState, seq: Seq, request: Request, redactions: tuple[Redaction, ...]
) -> Dependence | None:
    """Find what a request depends on that has not been served. Blocks; any thread."""
    cursor, order = playback.cursor, playback.order

    def served() -> frozenset[Seq]:
        return cursor.served_seqs

    order.read(served)
    earlier = order.find_earlier(seq)
    if not earlier:
        return None
    untraced = frozenset(one.place for one in redactions)
    try:
        return order.find(seq, earlier, request, untraced, served)
    except LogCorrupt:
        # An answer that cannot be read cannot have been seen; whoever asks for it is told.
        return None


def find_overlaps(open_run: OpenRun) -> tuple[Seq, ...]:
    """Find the requests of a run that are on their way, and whose clients wait for them."""
    found = []
    for pending in on_their_way(open_run):
        if pending.progress.gone is None and pending.websocket is None and not _is_pushed(pending):
            found.append(pending.seq)
            if len(found) == _MOST_OVERLAPS:
                break
    return tuple(sorted(found))


def _is_pushed(pending: PendingExchange) -> bool:
    """Say whether a request is no part of what its agent does in turn."""
    if pending.request_class is RequestClass.TELEMETRY:
        return True
    return pending.answer.event_stream and pending.request_class is RequestClass.READ


def find_passed(open_run: OpenRun, pending: PendingExchange, exchange: Exchange) -> tuple[Seq, ...]:
    """Note that an exchange is served; find those that the tape has behind it and that came before it. Loop."""
    if open_run.config.playback.order == "free":
        return ()
    return open_run.lanes.take(exchange, pending.seq, pending.flow.client_conn.id)


async def note_reordered(
    playback: PlaybackState,
    pending: PendingExchange,
    request: Request,
    exchange: Exchange,
    later: tuple[Seq, ...],
) -> Divergence | None:
    """Find out whether a request comes in another order than on the tape, where others passed it."""
    lane, open_run = exchange.lane, pending.open_run
    if lane is None:
        return None
    try:
        order = await open_run.lanes.read_order(
            open_run.store, playback.tape, open_run.config.classes
        )
    except LogCorrupt:
        return None  # it is told where it is served
    strict = open_run.config.playback.order == "strict"

    def is_before(seq: Seq) -> bool:
        return order.is_before(exchange.seq, seq, lane.number, strict=strict)

    waiting = {one.seq for one in on_their_way(open_run)}
    client = pending.flow.client_conn.id
    passed = await open_run.lanes.find_first(pending.seq, client, later, is_before, waiting)
    if passed is None:
        return None
    seq, served = passed
    text = (
        f"served all the same: the tape has it as seq {exchange.seq}, before seq {seq}{_show(playback, seq)} of the same"
        f" lane, and that was asked for and answered first, as seq {served.seq}"
    )
    differs = Difference("order", f"before seq {seq}", f"after seq {seq}")
    return Divergence(
        DivergenceKind.REORDERED,
        pending.seq,
        request.method,
        request.url,
        exchange.seq,
        (differs,),
        text,
    )


def _show(playback: PlaybackState, seq: Seq) -> str:
    recorded = playback.read_recorded(seq)
    if recorded is None:
        return ""
    asked = recorded.request
    return f" ({one_line(f'{asked.method} {asked.url}'.partition('?')[0])})"
