"""Compare what comes of a request after its answer has begun, and where its client gives it up, with the recorded one."""

from ...tape.diff.divergence_types import (
    ABSENT,
    SERVED_ALL_THE_SAME,
    Difference,
    Divergence,
    DivergenceKind,
)
from ...tape.diff.request_differences import common_prefix, show_difference
from ...tape.exchange import Exchange, Request
from ...tape.records.events import EventKind
from ...tape.redaction.compare_placeholders import blank
from ..run.exchange_parts.request_body import Early
from ..run.pending_exchange import PendingExchange, note_divergence
from .request_extent import find_extent, has_ended, was_open

_SHOWN_BYTES = 100
_OTHERWISE = "the request went on otherwise after its answer had begun"
_LONGER = "the request went on for {} bytes more than the recorded one, which ended there"
_ENDED = "the request ended, and the recorded one had not when its client gave it up"
_SHORTER = (
    "the request ended {} bytes before the recorded one: it has fewer messages, or a shorter one"
)
_GAVE_UP = (
    "its client gave up the request {} bytes before the recorded one did: it has fewer messages"
)
_OPEN = "its client gave up the request without having ended it, as the recorded one had"
_NONE = "its client gave up the request; the tape has none that was given up"
_NOT_GIVEN_UP = "its client gave up the request, and waited for the answer while recording"
_ELSEWHERE = (
    "its client gave up the request elsewhere, or after other messages, than the recorded one did"
)


def compare(pending: PendingExchange, request: Request, early: Early) -> None:
    """Compare what came after the answer had begun."""
    if early.diverged:
        return
    recorded, size = early.exchange, early.exchange.request.body_bytes
    most, ended = find_extent(recorded).most, pending.body.request_ended
    at, came = pending.body.compare(early)
    if differs(recorded.request, at, came):
        _diverge(pending, request, early, at, came, _OTHERWISE)
    elif most is not None and early.compared > most:
        more = early.compared - most
        _diverge(pending, request, early, most, came[-more:], _LONGER.format(more))
    elif ended and was_open(recorded):
        _diverge(pending, request, early, early.compared, b"", _ENDED)
    elif ended and early.compared < size:
        text = _SHORTER.format(size - early.compared)
        _diverge(pending, request, early, early.compared, b"", text)
    else:
        compare_values(pending, request, early, at, came)


def compare_given_up(pending: PendingExchange, request: Request, early: Early) -> None:
    """Compare where a client gives up a request whose answer had begun; all that came was compared before."""
    if early.diverged or pending.body.request_ended:
        return
    recorded, at = early.exchange, early.compared
    least, most = find_extent(recorded)
    if at < least:
        _diverge(pending, request, early, at, b"", _GAVE_UP.format(least - at))
    elif most is not None and at > most:
        _diverge(pending, request, early, at, b"", _LONGER.format(at - most))
    elif has_ended(recorded):
        _diverge(pending, request, early, at, b"", _OPEN)


def differs(asked: Request, at: int, came: bytes) -> bool:
    """Say whether what came is something else than the tape has there, its placeholders aside."""
    expected = asked.body[at : at + len(came)]
    # What was recorded may have ended before its request had.
    came = came[: len(expected)]
    if came == expected:
        return False
    return blank(came, asked.secrets, at) != blank(expected, asked.secrets, at)


def compare_values(
    pending: PendingExchange, request: Request, early: Early, at: int, came: bytes
) -> None:
    """Compare the values that redaction replaced in the recorded request with what came in their places.

    at: where what came begins.
    """
    open_run = pending.open_run
    if open_run.playback is None or early.exchange.request.spilled is not None:
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


def diverge_given_up(pending: PendingExchange, request: Request, recorded: Exchange | None) -> None:
    """Note that a request was given up that the tape does not have so.

    recorded: one with the same head, if there is any.
    """
    kind, seq, text, found = DivergenceKind.UNEXPECTED, None, _NONE, tuple[Difference, ...]()
    if recorded is not None:
        seq, came = recorded.seq, pending.body.came_so_far
        if recorded.saw_nothing or differs(recorded.request, 0, came):
            kind, text = DivergenceKind.CHANGED, _ELSEWHERE
            found = (_show(pending, recorded, 0, came, pending.body.sent_bytes),)
        else:
            kind, text = DivergenceKind.LEFT, _NOT_GIVEN_UP
            found = (Difference("delivery", "the answer", "left before the request had ended"),)
    diverged = Divergence(kind, pending.seq, request.method, request.url, seq, found, text)
    note_divergence(pending, diverged)


def compare_end(pending: PendingExchange, request: Request, recorded: Exchange) -> None:
    """Compare that a request which has come whole had ended on the tape, too."""
    if not pending.body.bidirectional or not was_open(recorded):
        return
    found = Difference("body", "never ended", "ended")
    text = SERVED_ALL_THE_SAME.format(_ENDED)
    diverged = Divergence(
        *(DivergenceKind.CHANGED, pending.seq, request.method, request.url, recorded.seq),
        (found,),
        text,
    )
    note_divergence(pending, diverged)


def _diverge(
    pending: PendingExchange, request: Request, early: Early, at: int, came: bytes, text: str
) -> None:
    """Note that a request is another one from this byte on, and that it gets no further answer."""
    pending.body.diverge(early)
    if pending.open_run.playback is not None:
        pending.open_run.playback.resumption.diverge(text)
    if (pending.account.logged or {}).get("match") == "exact":
        pending.open_run.note(EventKind.NOTED, seq=pending.seq, rematched=["exact", ""])
    divergence = Divergence(
        DivergenceKind.CHANGED,
        pending.seq,
        request.method,
        request.url,
        early.exchange.seq,
        (_show(pending, early.exchange, at, came, at + len(came)),),
        text,
    )
    note_divergence(pending, divergence)


def _show(
    pending: PendingExchange, recorded: Exchange, at: int, came: bytes, size: int
) -> Difference:
    """Show the first difference between a recorded body and what came in its place from a byte on, or that only one has ended.

    at: where what came begins.
    size: bytes that have come by its end; not all of them are in memory where it is longer.
    """
    asked = recorded.request
    if asked.spilled is not None or size > at + len(came):
        return Difference("body", f"{asked.body_bytes:,} bytes", f"{size:,} bytes")
    expected, shown = asked.body[at:], pending.open_run.redactor.text(came)
    same = common_prefix(expected, shown)
    if same == len(expected) == len(shown):  # what differs is where it ended, or that it did
        if size != asked.body_bytes:
            return Difference("body", f"{asked.body_bytes:,} bytes", f"{size:,} bytes")
        ends = ("ended", "never ended") if has_ended(recorded) else ("never ended", "ended")
        return Difference("body", *ends)
    place = f"body byte {at + same}"
    return show_difference(place, _readable(expected[same:]), _readable(shown[same:]))


def _readable(data: bytes) -> str:
    return data[:_SHOWN_BYTES].decode("utf-8", "backslashreplace") or ABSENT
