"""Note how much of a recorded answer a client took, and refuse the rest that its recorded self had left."""

from typing import Any

from mitmproxy import http

from ...tape.diff.divergence_types import Difference, Divergence, DivergenceKind
from ...tape.exchange import Gone, Headers, RequestClass
from ...tape.playback.compare_delivery import is_out_of_time, left_early, left_late
from ...tape.playback.script import Rest, Steps
from ...tape.policy.revise import Cause, Refused
from ...tape.records.events import EventKind
from ..run.pending_exchange import PendingExchange, note_divergence, note_verdict
from .compare_rest_of_request import compare_given_up
from .mcp_cancellation import is_cancelled
from .refuse import refusal

_FAR_US = 500_000
_WAITED = (
    "seq {}: its client gave up this effect after {:.1f} s, and after {:.1f} s while recording;"
    " that is not compared"
)
_ADVICE = {
    Rest.WHOLE: "`--late served` (`playback.late`) would have served it",
    Rest.PART: "`--late served` (`playback.late`) would have served the part of it that the tape has",
    Rest.NONE: "the tape does not have it",
}
_LATER = {
    Rest.WHOLE: "when it would have been answered",
    Rest.PART: "when more would have come",
    Rest.NONE: "and waited for the rest of this answer",
}


def note_left(pending: PendingExchange) -> None:
    """Log that a client has left the answer that it was played, and whether that was earlier than on the tape."""
    steps, open_run = pending.playing.steps, pending.open_run
    spent_us = pending.now_us()
    more: dict[str, Any] = {}
    if steps is not None:
        more = {"taken": [int(steps.head), steps.size]}
    open_run.note(EventKind.OUTCOME, seq=pending.seq, gone_us=spent_us, **more)
    if steps is None or _is_not_compared(pending):
        return
    early = pending.body.early
    if early is not None and pending.request is not None:
        compare_given_up(pending, pending.request, early)
        if early.diverged:
            return
    # Whether it left early is found by reading on.
    now = f"left after {steps.size:,} bytes" if steps.head else "left before it began"
    answer = pending.flow.response
    trailers = answer is not None and bool(answer.trailers)
    late = left_late(steps, spent_us)  # before it is read on
    over = answer is not None and is_out_of_time(_read_fields(answer))
    if is_cancelled(pending, steps):
        return
    if left_early(steps, spent_us, trailers=trailers, out_of_time=over):
        how, then = _show(steps.gone)
        _note(pending, then, now, f"the client left its answer {how}")
    elif late:
        then = _show(steps.gone)[1]
        rest = _find_rest(steps)
        text = f"the client left later than while recording, {_LATER[rest]}; {_ADVICE[rest]}"
        after = f"left after {spent_us / 1e6:.1f} s"
        _note(pending, then, after if steps.head else f"{after}, before it began", text)
    elif steps.gone is not None and not steps.gone.head and not steps.head:
        _warn_of_wait(pending, steps.gone.at_us, spent_us)


def _warn_of_wait(pending: PendingExchange, then_us: int, now_us: int) -> None:
    """Warn where a client waits for an effect's answer far longer or shorter than its recorded self, and gives it up, too.

    It is no divergence: both saw nothing, and a deadline for several calls leaves another time for this one.
    """
    differs_us = abs(then_us - now_us)
    if pending.request_class is RequestClass.EFFECT and differs_us > max(_FAR_US, then_us // 2):
        text = _WAITED.format(pending.seq, now_us / 1e6, then_us / 1e6)
        pending.open_run.note(EventKind.NOTED, text=text)


def _read_fields(answer: http.Response) -> Headers:
    """Give the fields of the answer that is played, as they were recorded."""
    trailers = answer.trailers.fields if answer.trailers is not None else ()
    return (*answer.headers.fields, *trailers)


def note_late(pending: PendingExchange) -> None:
    """Log that a client is served what its recorded self had left, as `late: served` has it."""
    if not _is_not_compared(pending):
        pending.open_run.note(EventKind.OUTCOME, seq=pending.seq, late=True)


def refuse_late(pending: PendingExchange, rest: Rest) -> http.Response:
    """Log that a client waited for what its recorded self had left before it came; give the refusal.

    rest: what the tape has of it.
    """
    request, steps = pending.request, pending.playing.steps
    gone = steps.gone if steps is not None else None
    begun = steps is not None and steps.head
    after = f"{gone.at_us / 1e6:.1f} s" if gone is not None else "a while"
    what = "the rest of this answer" if begun else "this answer"
    reason = f"the recorded client left after {after} and never saw {what}; {_ADVICE[rest]}"
    decision = pending.revise(Refused(Cause.LATE, reason))
    if request is not None:
        note_verdict(pending, request, decision)
    if not _is_not_compared(pending):
        _note(pending, _show(gone)[1], "waits for more", reason)
    return refusal(request, None, reason)


def _find_rest(steps: Steps) -> Rest:
    return steps.next.rest if steps.next is not None else Rest.NONE


def _is_not_compared(pending: PendingExchange) -> bool:
    injected = pending.held.injection is not None or pending.playing.withheld
    return injected or pending.request_class is RequestClass.TELEMETRY


def _show(gone: Gone | None) -> tuple[str, str]:
    """Give in words how it left earlier than then, and what the recorded client had taken."""
    if gone is None:
        return "before its end, and had the whole of it while recording", "the whole answer"
    had = f"left after {gone.at_us / 1e6:.1f} s"
    return "earlier than while recording", had if gone.head else f"{had}, before it began"


def _note(pending: PendingExchange, then: str, now: str, text: str) -> None:
    request, decision = pending.request, pending.decision
    if request is None:  # nothing is played before it is known
        return
    seq = decision.seq if decision is not None else None
    differs = (Difference("delivery", then, now),)
    left = Divergence(
        DivergenceKind.LEFT, pending.seq, request.method, request.url, seq, differs, text
    )
    note_divergence(pending, left)
