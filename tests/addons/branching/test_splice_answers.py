"""Requests of a branch are given answers of another recording, in the place of those of its tape."""

from typing import Any, cast

from playhead.addons.branching.splice_answers import find_spliced, replace_spliced, splice_in
from playhead.addons.run.playback_state import PlaybackState
from playhead.config import Answer, Config, Mode
from playhead.tape.exchange import Exchange, Fingerprint, Request, RequestClass, Seq
from playhead.tape.matching.cursor import Hit
from playhead.tape.policy.branch import HYPOTHETICAL, Branch, BranchPoint, Spliced
from playhead.tape.policy.decide import Action
from playhead.tests.support.exchanges import make_exchange, make_request
from playhead.tests.support.pending import NotedRun, make_pending

ANSWER = Answer(200, (), b"good", HYPOTHETICAL)


class Answers:
    """What the other recording answers to one question."""

    name, count = "good", 1

    def __init__(self, seq: int | None = 3) -> None:
        self.seq = Seq(seq) if seq is not None else None

    def replace(self, seq: Seq) -> Spliced | None:
        return self._given() if seq == self.seq else None

    def find(self, request: Request, request_class: RequestClass) -> Spliced | None:
        return self._given() if request.path == "/x" else None

    def _given(self) -> Spliced:
        return Spliced(ANSWER, self.seq, "as 'good' was answered in exchange 7")


class Tape:
    """What splicing needs of a playback."""

    def __init__(self, splice: Answers | None, *, reached: bool = True) -> None:
        self.point = BranchPoint(Branch(Seq(1), splice=splice))
        self.point.reached = reached
        self.taken: list[tuple[Fingerprint, Hit]] = []
        self.cursor = self

    def take(self, fingerprint: Fingerprint, hit: Hit) -> None:
        self.taken.append((fingerprint, hit))

    def read_recorded(self, seq: Seq) -> Exchange:
        return make_exchange(seq)

    def fingerprint_of(self, exchange: Exchange) -> Fingerprint:
        return Fingerprint(b"%d" % exchange.seq)


def playback(tape: Tape) -> PlaybackState:
    return cast("PlaybackState", tape)


def pending_of() -> Any:
    return make_pending(NotedRun(Config(mode=Mode.PLAYBACK), Mode.PLAYBACK))


def find(tape: Tape, what: str = "GET https://api.test/x") -> Spliced | None:
    return find_spliced(playback(tape), make_request(what), RequestClass.READ)


def test_nothing_is_found_before_the_point_or_without_a_splice() -> None:
    """What comes before the point is answered from the tape alone."""
    assert find(Tape(Answers())) is not None
    assert find(Tape(Answers()), "GET https://api.test/y") is None
    assert find(Tape(Answers(), reached=False)) is None
    assert find(Tape(None)) is None


def test_what_was_found_takes_the_place_of_an_exchange() -> None:
    """Which is used up by that, and named in the reason."""
    tape, pending = Tape(Answers()), pending_of()
    given = find(tape)
    assert given is not None
    splice_in(pending, playback(tape), given)
    assert tape.taken == [(b"3", Hit(Seq(3)))]
    assert pending.lookup.found == Hit(Seq(3))
    decision = pending.decision
    assert (decision.action, decision.answer) == (Action.STUB, ANSWER)
    assert decision.verdict == "hypothetical"
    assert decision.reason == (
        "in the place of the answer of tape seq 3, as 'good' was answered in exchange 7"
    )


def test_what_only_the_other_recording_has_uses_nothing_up() -> None:
    """The reason says so."""
    tape, pending = Tape(Answers(None)), pending_of()
    given = find(tape)
    assert given is not None
    splice_in(pending, playback(tape), given)
    assert tape.taken == []
    assert pending.lookup.found is None
    assert pending.decision.reason.startswith("given for a request that is not on the tape, as")


def test_an_exchange_that_is_spliced_is_answered_otherwise() -> None:
    """Any other is served as it was recorded."""
    for seq, answer in ((3, ANSWER), (4, None)):
        pending = pending_of()
        replace_spliced(pending, playback(Tape(Answers())), Seq(seq))
        assert (pending.decision.answer if pending.decision else None) == answer
    pending = pending_of()
    replace_spliced(pending, playback(Tape(None)), Seq(3))
    assert pending.decision is None
