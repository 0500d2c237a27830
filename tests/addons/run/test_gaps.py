"""What of a run could not be written, and how its log is told."""

import pytest

from playhead.addons.run.gaps import Gap
from playhead.tape.records.events import EventKind


@pytest.mark.parametrize(
    ("notes", "exchanges", "effects", "reason"),
    [
        ([], 0, 0, ""),
        ([("full", 1, 0)], 1, 0, "full"),
        ([("full", 1, 0), ("read only", 2, 3)], 3, 3, "full"),
        ([("full", 0, 0)], 0, 0, "full"),
    ],
)
def test_a_gap_has_the_reason_of_its_beginning(
    notes: list[tuple[str, int, int]], exchanges: int, effects: int, reason: str
) -> None:
    """And counts all that is missing since."""
    gap = Gap()
    for why, lost, unlogged in notes:
        gap.note(why, exchanges=lost, effects=unlogged)
    assert (gap.exchanges, gap.effects, gap.reason) == (exchanges, effects, reason)
    assert gap.open == bool(notes)


def test_what_was_lost_meanwhile_is_taken_in() -> None:
    """Where the log could not be told; nothing where nothing was lost."""
    gap, later = Gap(), Gap()
    gap.add(later)
    assert not gap.open
    later.note("full", exchanges=2, effects=1)
    gap.add(later)
    assert (gap.reason, gap.exchanges, gap.effects, gap.open) == ("full", 2, 1, True)


def test_the_log_is_told_when_it_begins_and_when_it_is_over() -> None:
    """With what is missing only in the end."""
    gap = Gap()
    gap.note("full", exchanges=2, effects=1)
    begun, ended = gap.begin_event(), gap.end_event(9)
    assert (begun.kind, ended.kind) == (EventKind.GAP, EventKind.GAP)
    assert begun.data == {"since_ns": gap.since_ns, "until_ns": 0, "reason": "full"}
    assert dict(ended.data) == {
        "since_ns": gap.since_ns,
        "until_ns": ended.at_ns,
        "reason": "full",
        "exchanges": 2,
        "effects": 1,
        "records": 9,
    }
    assert ended.at_ns >= gap.since_ns > 0
