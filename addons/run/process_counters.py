"""Process-wide counters of requests and outcomes, for metrics only; no decision reads them.

The counts stand beside the log, not in it: they cost a microsecond a request, and are gone with the process.
"""

from collections import Counter

from ...config import Mode
from ...tape.exchange import Fault, RequestClass
from ...tape.policy.decide import Action, Decision

UNDECIDED = "undecided"
"""Verdict of a request that ended before anything was decided: its client left, or an error of ours."""

_VERDICTS = {
    Action.CONTROL: "control",
    Action.FORWARD: "forwarded",
    Action.LIVE: "live",
    Action.SERVE: "served",
    Action.STUB: "stubbed",
    Action.DISCARD: "discarded",
    Action.REFUSE: "refused",
}


class Counters:
    """Counts of one process. Belongs to the event loop."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.requests: Counter[tuple[str, str, str]] = Counter()
        """By mode, class and what was done."""
        self.faults: Counter[str] = Counter()
        """Exchanges that failed below HTTP, by kind."""
        self.contracts: Counter[str] = Counter()
        """Violations of contracts, by what they were found in: `request`, `response`, `model`."""
        self.runs: Counter[str] = Counter()
        """Runs that were opened, by mode."""
        self.stopped = 0
        """Runs that somebody stopped."""
        self.approval_decisions: Counter[str] = Counter()
        """What became of requests that a gate held, by decision."""
        self.limited: Counter[str] = Counter()
        """Requests that were refused because a limit was exhausted, by limit."""
        self.injected: Counter[str] = Counter()
        """Faults on purpose, by kind."""
        self.lost: Counter[str] = Counter()
        """Rows that a sink did not get, by sink."""

    def add(
        self,
        mode: Mode,
        request_class: RequestClass,
        decision: Decision | None,
        fault: Fault | None,
    ) -> None:
        """Count a request that has ended."""
        verdict = UNDECIDED if decision is None else _VERDICTS.get(decision.action, UNDECIDED)
        self.requests[mode.value, request_class.value, verdict] += 1
        if fault is not None:
            self.faults[fault.kind.value] += 1
