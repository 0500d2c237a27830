"""Answers that nobody gave: those that a branch supposes, and stubs of effects."""

from collections.abc import Iterable, Mapping

from ...tape.exchange import VerdictKind
from ...tape.records.events import Event, EventKind

MADE: Mapping[str, str] = {
    kind.value: kind.value for kind in (VerdictKind.HYPOTHETICAL, VerdictKind.STUBBED)
}
"""Verdicts with such an answer, and the word for it."""


def find_made(events: Iterable[Event]) -> dict[int, str]:
    """Give the seqs of a run with such an answer, each with the word for it."""
    verdicts = (event.data for event in events if event.kind is EventKind.VERDICT)
    return {data["seq"]: MADE[data["verdict"]] for data in verdicts if data["verdict"] in MADE}
