"""What the log of a run tells beside its exchanges: what became of one, and what came between two."""

from collections.abc import Sequence
from typing import Any

from ...tape.exchange import Seq
from ...tape.records.events import Event, EventKind
from .step import Step, StepKind

WAITS = "held, rule"
"""Begins the text of a decision that is not made yet; how it was made is a step of its own."""
_KINDS = {
    EventKind.HELD: StepKind.DECISION,
    EventKind.RULED: StepKind.DECISION,
    EventKind.CONTRACT: StepKind.POLICY,
    EventKind.INJECTED: StepKind.POLICY,
    EventKind.LIMITED: StepKind.POLICY,
}


def tell_of_exchange(event: Event) -> tuple[StepKind, str] | None:
    """Say what an event tells of its exchange; None for what is no step."""
    kind = _KINDS.get(event.kind)
    return None if kind is None else (kind, _in_words(event.kind, event.data))


def _in_words(kind: EventKind, data: Any) -> str:
    match kind:
        case EventKind.HELD:
            return f"{WAITS} {data['rule']}: {data['reason']}"
        case EventKind.RULED:
            why = f": {data['reason']}" if data.get("reason") else ""
            who = f" by {data['by']}" if data["by"] else ""  # a deadline and an end have none
            return f"{data['ruling']}{who}{why}"
        case EventKind.INJECTED:
            return f"fault on purpose: {data['inject']}, rule {data['rule']}"
        case EventKind.LIMITED:
            return f"limit {data['limit']} is reached: {data['reason']}"
        case _:
            found = data["violations"]
            first: Sequence[Any] = found[0] if found else ()
            place = f" at {first[1]}: expected {first[2]}, found {first[3]}" if first[3:] else ""
            return f"contract of its {data['of']}, rule {data['rule']}{place}"


RUN_STOPPED = "the run was stopped"
"""Begins the text of a step that is the run's: the exchange before it may have ended long ago."""


def tell_between(event: Event, after: Seq) -> Step | None:
    """Make a step of an event that speaks of no exchange; None for what is none.

    after: seq of the exchange that had arrived last; 0 before the first.
    """
    data = event.data
    match event.kind:
        case EventKind.STOPPED:
            why = f": {data['reason']}" if data["reason"] else ""
            return _between(StepKind.POLICY, after, f"{RUN_STOPPED} by {data['by']}{why}")
        case EventKind.EGRESS:
            times = f", {data['count']} times" if data.get("count", 1) > 1 else ""
            told = f"denied: {data['target']}, by {data['by']}{times}: {data['reason']}"
            return _between(StepKind.POLICY, after, told)
        case EventKind.GAP if not data["until_ns"]:
            return _between(StepKind.POLICY, after, f"not recorded: {data['reason']}")
        case EventKind.NOTED if isinstance(text := data.get("snapshot"), str):
            return Step(StepKind.SNAPSHOT, after, "", text)
    return None


def _between(kind: StepKind, after: Seq, text: str) -> Step:
    return Step(kind, after, "", text, failed=True)
