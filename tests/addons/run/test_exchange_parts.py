"""The parts of a pending exchange: what each of them notes, and what follows from that."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from playhead.addons.run.exchange_parts.answer import Answer
from playhead.addons.run.exchange_parts.arrival import Arrival
from playhead.addons.run.exchange_parts.phases import Account, Held, Playing, Recording
from playhead.addons.run.exchange_parts.request_body import Early, RequestBody
from playhead.addons.run.pending_approvals import PendingApproval
from playhead.addons.run.repeated_effects import Effect
from playhead.tape.exchange import Chunk, Gone, Lane, Repeat, RepeatKind, Secret, Seq
from playhead.tape.playback.script import Steps
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tests.support.exchanges import make_exchange


class Approval:
    """Stands in for a pending approval."""

    def __init__(self) -> None:
        self.rulings: list[Ruling] = []

    def decide(self, decided: ApprovalDecision) -> bool:
        self.rulings.append(decided.ruling)
        return True


@pytest.mark.parametrize(
    ("announced", "sizes", "whole"),
    [
        (-1, (5,), False),
        (5, (), False),
        (5, (2, 2), False),
        (5, (2, 3), True),
        (5, (9,), True),
        (0, (), True),
    ],
)
def test_an_answer_is_whole_when_all_that_was_announced_has_come(
    announced: int, sizes: tuple[int, ...], whole: bool
) -> None:
    """One that announces no length is whole only with its end."""
    answer = Answer()
    answer.describe(event_stream=False, announced=announced)
    for size in sizes:
        answer.count(size)
    assert (answer.taken, answer.size, answer.whole) == (len(sizes), sum(sizes), whole)


def test_an_answer_that_is_dropped_gives_back_what_was_counted() -> None:
    """Twice is once; what cannot be kept is counted until it is dropped."""
    answer = Answer()
    for data in (b"ab", b"c"):
        answer.keep(data, Chunk(1, len(data)), len(data) + 10)
    assert (answer.pieces, answer.held) == ([b"ab", b"c"], 23)
    answer.forget()
    assert (answer.pieces, answer.chunks, answer.held) == ([], [], 23)
    assert (answer.drop(), answer.drop()) == (23, 0)
    answer.take_back(b"abc", [Chunk(1, 3)])
    assert (answer.pieces, answer.download, answer.downloaded) == ([b"abc"], None, None)


@pytest.mark.parametrize(
    ("note", "read", "expected"),
    [
        (lambda one: one.begin(7), lambda one: one.head_us, 7),
        (lambda one: one.need_for_head(3), lambda one: one.head_need, 3),
        (lambda one: one.send_head(), lambda one: one.head_sent, True),
        (lambda one: one.play(ragged=True), lambda one: one.ragged, True),
        (
            lambda one: one.end(ragged=True, need=4, after=2),
            lambda one: (one.ragged, one.end_need, one.end_after),
            (True, 4, 2),
        ),
    ],
)
def test_what_an_answer_notes(
    note: Callable[[Answer], None], read: Callable[[Answer], Any], expected: object
) -> None:
    """Each note changes what it is named for, and an answer begins without any."""
    answer = Answer()
    assert read(answer) != expected
    note(answer)
    assert read(answer) == expected


@pytest.mark.parametrize(
    ("came", "sent", "searched", "taken"),
    [
        (b"", [], False, (b"", b"")),
        (b"whole", [], False, (b"whole", b"")),
        (b"", [b"in ", b"pieces"], False, (b"in pieces", b"")),
        (b"whole", [], True, (b"", b"")),
        (b"", [b"compared"], True, (b"", b"")),
    ],
)
def test_a_body_is_searched_once(
    came: bytes, sent: list[bytes], searched: bool, taken: tuple[bytes, bytes]
) -> None:
    """What was searched is not given again, be it what came whole or what was sent on."""
    body = RequestBody()
    body.have_sent(sent)
    body.come(came, searched=searched)
    assert (body.take_came(), body.take_came()) == taken
    assert body.searched is (searched or bool(taken[0]))


def test_a_request_that_goes_on_is_compared_from_where_it_was() -> None:
    """Each piece once, behind all that was compared before."""
    body = RequestBody()
    body.open_both_ways()
    assert (body.bidirectional, body.request_ended) == (True, False)
    body.have_sent([b"head"])
    body.begin_early(make_exchange(1))
    early = body.early
    assert early is not None
    assert (early.compared, body.sent) == (4, [])
    body.keep(b"more")
    body.count(4)
    assert body.compare(early) == (4, b"more")
    assert body.compare(early) == (8, b"")
    body.diverge(early)
    body.wait_for_more(undecided=True)
    body.hear_quiet(8)
    body.end()
    assert (early.diverged, body.undecided, body.quiet_at) == (True, True, 8)
    assert (body.request_ended, body.sent_bytes) == (True, 4)


@pytest.mark.parametrize(
    ("act", "rulings", "waits"),
    [
        (lambda held, one: held.ask(one), [], True),
        (lambda held, one: (held.leave(), held.ask(one)), [Ruling.LEFT], False),
        (lambda held, one: (held.ask(one), held.leave()), [Ruling.LEFT], False),
        (lambda held, one: (held.ask(one), held.let_go(Ruling.ENDED)), [Ruling.ENDED], False),
        (lambda held, one: held.let_go(Ruling.ENDED), [], False),
    ],
)
def test_who_leaves_is_not_waited_for(
    act: Callable[[Held, PendingApproval], None], rulings: list[Ruling], waits: bool
) -> None:
    """An approval is decided as soon as its client has left, whichever comes first; so ends a delay."""
    held, approval = Held(), Approval()
    delayed = held.delay()
    act(held, cast("PendingApproval", approval))
    assert (approval.rulings, delayed.is_set()) == (rulings, not waits)


def test_a_warning_is_given_once() -> None:
    """A second time only where it is added whatever was said before."""
    recording = Recording()
    assert (recording.warn("cut"), recording.warn("cut")) == (True, False)
    recording.add_warning("cut")
    assert recording.warnings == ["cut", "cut"]
    for note in (recording.begin, recording.forward, recording.save, recording.break_off):
        note()
    recording.give_up()
    recording.pass_unlogged()
    recording.send_on(connected=True)
    recording.leave(Gone(1, 0, head=False))
    flags = (recording.recording, recording.forwarded, recording.saved, recording.broken)
    assert flags == (True,) * 4
    assert (recording.unsaved, recording.unlogged, recording.sent_on) == (True, True, True)
    assert recording.gone == Gone(1, 0, head=False)


def test_a_refusal_is_played_in_the_place_of_an_answer() -> None:
    """It says of itself that it is one; what is played else does not."""
    playing, steps = Playing(), Steps(())
    playing.play(steps)
    assert (playing.steps, playing.withheld) == (steps, False)
    playing.withhold(Steps(()))
    playing.note_verdict()
    assert (playing.steps is steps, playing.withheld, playing.has_verdict) == (False, True, True)


def test_an_effect_is_told_with_what_it_repeats() -> None:
    """Those that a gate looks at are noted apart from the others."""
    account, effect = Account(), Effect(Seq(2), None)
    repeat = Repeat(Seq(1), RepeatKind.SAFE_RETRY, unseen=False)
    account.note_effect(effect, repeat)
    gated = account.note_gated(Effect(Seq(2), b"key"))
    account.log({"seq": 2})
    account.answer(make_exchange(2))
    assert (account.effect, account.repeat, account.gated) == (effect, repeat, gated)
    assert account.logged == {"seq": 2}
    assert account.answered is not None
    assert account.divergence is None


def test_a_lane_is_numbered_once_its_process_is_known() -> None:
    """A request without one stays so."""
    arrival, other = Arrival(lane=Lane(0, ())), Arrival()
    arrival.number_lane(3)
    other.number_lane(3)
    assert (arrival.lane, other.lane) == (Lane(3, ()), None)


def test_values_that_come_in_pieces_are_given_whole() -> None:
    """With their place and what the recorded request has there; a part of one waits for the rest."""
    secrets = (*(Secret("body", at, 4, "secret") for at in (2, 8)), Secret("target", 0, 4, "x"))
    made = make_exchange(1, body=b"a=AAAA&bBBBB&c")
    recorded = replace(made, request=replace(made.request, secrets=secrets))
    early = Early(recorded)
    assert list(early.find_values(0, b"a=aa")) == []
    assert list(early.find_values(4, b"aa&bb")) == [(2, b"AAAA", b"aaaa")]
    assert list(early.find_values(9, b"bbb&")) == [(8, b"BBBB", b"bbbb")]
    assert list(early.find_values(13, b"c and more")) == []
    assert list(Early(recorded).find_values(0, b"a=aaaa&bbbbb&c")) == [
        (2, b"AAAA", b"aaaa"),
        (8, b"BBBB", b"bbbb"),
    ]


def test_what_a_gate_did_not_let_out_is_repeated_by_nothing() -> None:
    """Whether that is known before the effect is noted among those of the run, or behind it."""
    for known_first in (True, False):
        account, effect = Account(), Effect(Seq(1), None)
        if known_first:
            account.note_undone()
        account.note_effect(effect, None)
        if not known_first:
            account.note_undone()
        assert effect.undone
