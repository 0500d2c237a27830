"""Compare what comes of a request after its answer has begun with the recorded one."""

from ...tape.diff.difference import common_prefix, show_difference
from ...tape.diff.divergence_types import ABSENT, Divergence, DivergenceKind
from ...tape.exchange import Request
from ...tape.records.events import EventKind
from ..run.exchange_parts.request_body import Early
from ..run.pending_exchange import PendingExchange, note_divergence
from .find_begun import differs, said_all, was_open

_SHOWN_BYTES = 100


def compare(pending: PendingExchange, request: Request, early: Early) -> None:
    """Compare what came after the answer had begun."""
    asked = early.exchange.request
    if asked.spilled is not None or early.diverged:
        return
    at, came = pending.body.compare(early)
    if differs(asked, at, came):
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
        compare_values(pending, request, early, at, came)


def compare_values(
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


def _diverge(
    pending: PendingExchange, request: Request, early: Early, at: int, came: bytes, text: str
) -> None:
    """Note that a request is another one from this byte on, and that it gets no further answer."""
    pending.body.diverge(early)
    if pending.open_run.playback is not None:
        pending.open_run.playback.resumption.diverge(text)
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
    note_divergence(pending, divergence)


def _readable(data: bytes) -> str:
    return data[:_SHOWN_BYTES].decode("utf-8", "backslashreplace") or ABSENT
