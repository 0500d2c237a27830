"""Recorded answers meet the faults of a schedule: which are given, which stay, and what is asked again."""

from typing import Any, cast

import pytest

from playhead.addons.branching.apply_scheduled_faults import ask_again, meet_fault
from playhead.addons.run.playback_state import CompletionOrder, PlaybackState
from playhead.config import Config, Inject, Mode
from playhead.tape.exchange import Exchange, RequestClass, Seq
from playhead.tape.matching.cursor import Exhausted, Hit, Unknown
from playhead.tape.policy.branch import Branch, BranchPoint
from playhead.tape.schedules.remaining_faults import RunningSchedule
from playhead.tape.schedules.scheduled_fault import FaultWord, Schedule, ScheduledFault
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.tests.support.pending import NotedRun, make_pending


class Tape:
    """What faults need of a playback."""

    def __init__(self, schedule: Schedule | None, late_s: float = 10.0) -> None:
        running = RunningSchedule(schedule, late_s) if schedule is not None else None
        self.point = BranchPoint(Branch(Seq(1), schedule=running))
        self.completion = CompletionOrder()

    def read_recorded(self, seq: Seq) -> Exchange:
        return recorded(seq)


def recorded(seq: int) -> Exchange:
    return make_exchange(seq, response=make_response(f"answer {seq}, of 24 bytes ..".encode()))


def meet(tape: Tape, seq: int) -> tuple[bool, Any]:
    """Have a request be answered with an exchange; give whether that stays, and the request."""
    run = NotedRun(Config(mode=Mode.PLAYBACK), Mode.PLAYBACK)
    pending = make_pending(run)
    return meet_fault(pending, cast("PlaybackState", tape), recorded(seq)), pending


@pytest.mark.parametrize(
    ("fault", "inject", "stays"),
    [
        (ScheduledFault(Seq(1), FaultWord.LATE), Inject.DELAY, False),
        (ScheduledFault(Seq(1), FaultWord.SLOW), Inject.DELAY, False),
        (ScheduledFault(Seq(1), FaultWord.CUT, share=4), Inject.CUT, False),
        (ScheduledFault(Seq(1), FaultWord.THROTTLE), Inject.STATUS, True),
    ],
)
def test_an_answer_meets_its_fault(fault: ScheduledFault, inject: Inject, stays: bool) -> None:
    """What was never done is answered by the tape when it is asked again."""
    there, pending = meet(Tape((fault,)), 1)
    assert there is stays
    injection = pending.held.injection
    assert injection is not None
    assert (injection.kind, injection.rule.label) == (inject, fault.text)


def test_a_fault_is_met_once() -> None:
    """And by its own exchange alone."""
    tape = Tape((ScheduledFault(Seq(2), FaultWord.THROTTLE),))
    assert meet(tape, 1)[1].held.injection is None
    assert meet(tape, 2)[1].held.injection is not None
    there, pending = meet(tape, 2)
    assert not there
    assert pending.held.injection is None


def test_late_answers_are_as_late_as_is_asked_for() -> None:
    """A slow first byte comes a fifth of that later."""
    faults = (
        ScheduledFault(Seq(1), FaultWord.LATE),
        ScheduledFault(Seq(2), FaultWord.SLOW),
    )
    tape = Tape(faults, 5.0)
    delays = [meet(tape, seq)[1].held.injection.rule.delay_s for seq in (1, 2)]
    assert delays == [5.0, 1.0]


def test_a_cut_comes_after_so_many_parts_of_the_body() -> None:
    """At least a byte is given."""
    for share, after in ((1, 3), (4, 12), (7, 21)):
        tape = Tape((ScheduledFault(Seq(1), FaultWord.CUT, share=share),))
        assert meet(tape, 1)[1].held.injection.rule.after_bytes == after


def test_a_duplicate_is_the_answer_of_before() -> None:
    """Its own is there the next time."""
    tape = Tape((ScheduledFault(Seq(3), FaultWord.DUPLICATE, Seq(2)),))
    there, pending = meet(tape, 3)
    assert there
    assert pending.held.injection is None
    given = pending.lookup.recorded
    assert given is not None
    assert given.response == recorded(2).response
    assert given.seq == 3
    ((_, noted),) = pending.open_run.noted
    assert noted["text"] == "seq 1: duplicate the answer to exchange 2 at exchange 3"


def test_two_answers_change_places() -> None:
    """The first waits for the second, and the second for it no more."""
    tape = Tape((ScheduledFault(Seq(1), FaultWord.REORDER, Seq(2)),))
    there, _ = meet(tape, 1)
    assert not there
    assert tape.completion.find_before(Seq(1)) == (2,)
    assert tape.completion.find_before(Seq(2)) == ()
    meet(tape, 2)
    assert tape.completion.find_before(Seq(1)) == (2,)


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        (RequestClass.READ, True),
        (RequestClass.INFERENCE, True),
        (RequestClass.EFFECT, False),
        (RequestClass.TELEMETRY, False),
    ],
)
def test_what_is_asked_again_is_answered_again(kind: RequestClass, again: bool) -> None:
    """But for effects: what a second one would have come to is on no tape."""
    tape = cast("PlaybackState", Tape(()))
    found = Exhausted(Seq(4), 1)
    assert ask_again(tape, found, kind) == (Hit(Seq(4), repeated=True) if again else found)


def test_without_a_schedule_nothing_is_done() -> None:
    """A branch is as it was."""
    tape = Tape(None)
    there, pending = meet(tape, 1)
    assert not there
    assert pending.held.injection is None
    found = Exhausted(Seq(4), 1)
    assert ask_again(cast("PlaybackState", tape), found, RequestClass.READ) is found
    unknown = Unknown()
    exploring = cast("PlaybackState", Tape(()))
    assert ask_again(exploring, unknown, RequestClass.READ) is unknown
