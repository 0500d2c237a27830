"""Lay the faults of a schedule over the recorded answers of a run that explores them (`tape/schedules/`)."""

from dataclasses import replace

from ...tape.exchange import Exchange, RequestClass
from ...tape.matching.cursor import Exhausted, Hit
from ...tape.policy.branch import FaultSchedule
from ...tape.policy.decide import Found
from ...tape.records.events import EventKind
from ..run.pending_exchange import PendingExchange
from ..run.playback_state import PlaybackState


def _find(playback: PlaybackState) -> FaultSchedule | None:
    branch = playback.point.branch
    return branch.schedule if branch is not None else None


def ask_again(playback: PlaybackState, found: Found, request_class: RequestClass) -> Found:
    """Have a question that was answered already be answered so again: its client may have been given no answer.

    Not of effects: what comes of a second one nobody has recorded.
    """
    if not isinstance(found, Exhausted) or _find(playback) is None:
        return found
    if request_class not in (RequestClass.READ, RequestClass.INFERENCE):
        return found
    return Hit(found.last, repeated=True)


def meet_fault(pending: PendingExchange, playback: PlaybackState, recorded: Exchange) -> bool:
    """Have a recorded answer meet its fault, where there is one; say whether it is there still when it is asked for again."""
    schedule = _find(playback)
    if schedule is None:
        return False
    playback.completion.swap(schedule.reordered)
    met = schedule.take(recorded)
    if met is None:
        return False
    if met.injection is not None:
        pending.held.hit(met.injection)
        return bool(met.stays)
    earlier = playback.read_recorded(met.fault.other) if met.fault.other is not None else None
    if met.stays and earlier is not None:  # the earlier answer once more
        given = replace(earlier, seq=recorded.seq, request=recorded.request)
        pending.find(replace(pending.lookup, recorded=given))
    pending.open_run.note(EventKind.NOTED, text=f"seq {pending.seq}: {met.fault.text}")
    return bool(met.stays)
