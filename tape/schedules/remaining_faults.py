"""The faults of a schedule that one run has still to meet."""

from dataclasses import dataclass

from ...config import FaultRule, Inject, parse_match
from ..exchange import Exchange, Seq
from ..policy.faults import Injection
from .scheduled_fault import SHARES, FaultWord, Schedule, ScheduledFault

LATE_S = 10.0
"""How late an answer comes by default: later than most clients that give up at all wait for a tool."""
_SLOW = 5
"""A slow first byte comes after so many times less."""
_EVERY = parse_match("*://*")
_THROTTLED = 429


@dataclass(frozen=True, slots=True)
class Met:
    """What is done to a recorded answer that has been asked for."""

    fault: ScheduledFault
    injection: Injection | None
    """How it is played; None for what only changes which answer is given, or when."""
    stays: bool
    """Whether the recorded answer is there still when the same is asked again."""


class RunningSchedule:
    """The faults of one run. Belongs to the event loop."""

    def __init__(self, schedule: Schedule, late_s: float = LATE_S) -> None:
        """Begin with none of them met."""
        self._schedule = schedule
        self._asked: set[Seq] = set()
        self._waiting = {fault.seq: fault for fault in schedule}
        self._late_s = late_s
        self.texts = [fault.text for fault in schedule]
        self.reordered = {
            (fault.seq, fault.other)
            for fault in schedule
            if fault.word is FaultWord.REORDER and fault.other is not None
        }
        """Pairs of exchanges of which the first is answered after the second."""

    @property
    def unmet(self) -> list[str]:
        """Those that changed nothing, as text: their requests, or one of the two that change places, were never made."""
        return [
            fault.text
            for fault in self._schedule
            if not {fault.seq, fault.other} - {None} <= self._asked
        ]

    def take(self, recorded: Exchange) -> Met | None:
        """Give what is done to a recorded answer; None for nothing. A fault is met once."""
        self._asked.add(recorded.seq)
        fault = self._waiting.pop(recorded.seq, None)
        if fault is None:
            return None
        stays = fault.word in (FaultWord.THROTTLE, FaultWord.DUPLICATE)
        return Met(fault, self._injection(fault, recorded), stays)

    def _injection(self, fault: ScheduledFault, recorded: Exchange) -> Injection | None:
        rule = FaultRule(_EVERY, Inject.DELAY, fault.text, delay_s=self._late_s)
        match fault.word:
            case FaultWord.LATE:
                return Injection(rule, 1)
            case FaultWord.SLOW:
                delay_s = self._late_s / _SLOW
                return Injection(FaultRule(_EVERY, Inject.DELAY, fault.text, delay_s=delay_s), 1)
            case FaultWord.CUT:
                size = recorded.response.body_bytes if recorded.response is not None else 0
                after = max(1, size * fault.share // SHARES)
                cut = FaultRule(_EVERY, Inject.CUT, fault.text, after_bytes=after, ending="rst")
                return Injection(cut, 1)
            case FaultWord.THROTTLE:
                status = FaultRule(_EVERY, Inject.STATUS, fault.text, status=_THROTTLED)
                return Injection(status, 1)
        return None


def after(fault: ScheduledFault) -> Seq:
    """Give the exchange at which a fault is first of effect."""
    if fault.word is FaultWord.REORDER and fault.other is not None:
        return min(fault.seq, fault.other)
    return fault.seq
