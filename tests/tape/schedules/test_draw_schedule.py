"""Schedules that are drawn: the same seed gives the same faults, each at a place that the tape has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import Seq
from playhead.tape.schedules.draw_schedule import draw, find_smaller
from playhead.tape.schedules.fault_places import check_fault
from playhead.tape.schedules.scheduled_fault import SHARES, FaultWord, ScheduledFault
from playhead.tests.support.counts import tries

PLACES = [
    ScheduledFault(Seq(seq), word, Seq(seq - 1) if word in ("duplicate", "reorder") else None)
    for seq in range(2, 8)
    for word in FaultWord
]


@tries(200)
@given(st.integers(0, 1 << 40))
def test_a_schedule_fits_the_tape(seed: int) -> None:
    """One to three faults, at exchanges of their own; the same each time."""
    found = draw(seed, PLACES)
    assert found == draw(seed, PLACES)
    assert 1 <= len(found) <= 3
    assert len({fault.seq for fault in found}) == len(found)
    for fault in found:
        check_fault(fault, PLACES)
        assert (0 < fault.share < SHARES) is (fault.word is FaultWord.CUT)


def test_schedules_are_what_they_were() -> None:
    """A seed that somebody has noted means the same in a later version."""
    assert [[(one.seq, one.word.value, one.share) for one in draw(seed, PLACES)] for seed in (1, 2, 3)] == DRAWN  # fmt: skip


def test_every_fault_is_drawn() -> None:
    """And every number of them, within 200 seeds."""
    drawn = [draw(seed, PLACES) for seed in range(1, 201)]
    assert {fault.word for one in drawn for fault in one} == set(FaultWord)
    assert {len(one) for one in drawn} == {1, 2, 3}


def test_smaller_schedules_have_one_fault_less() -> None:
    """Of one fault there is none."""
    three = (PLACES[0], PLACES[7], PLACES[14])
    assert find_smaller(three) == [three[1:], (three[0], three[2]), three[:2]]
    assert find_smaller(three[:1]) == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (ScheduledFault(Seq(99), FaultWord.LATE), "has no exchange 99"),
        (ScheduledFault(Seq(2), FaultWord.CUT, share=8), "expected 1 to 7"),
        (ScheduledFault(Seq(2), FaultWord.CUT), "expected 1 to 7"),
    ],
)
def test_a_fault_without_a_place(fault: ScheduledFault, says: str) -> None:
    """Is told what there is."""
    with pytest.raises(ValueError, match=says):
        check_fault(fault, PLACES)


DRAWN = [[(2, "throttle", 0), (5, "late", 0)], [(5, "late", 0)], [(4, "throttle", 0)]]
