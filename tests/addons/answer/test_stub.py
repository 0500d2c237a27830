"""The answer of a stub, and what is said of where it comes from."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.addons.answer.stub import make_stub
from playhead.addons.run.exchange_parts.prepared_request import Lookup
from playhead.config import Answer, Mode
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.policy.decide import Action, Decision
from playhead.tape.stubs.synthesize import Made
from playhead.tests.support.pending import NotedRun, make_pending

WHAT = "POST https://pay.test/refunds"
STUB = Decision(Action.STUB, "an effect that is not on the tape", "effects")


def stub(decision: Decision, made: Made | None = None) -> tuple[Any, dict[str, Any]]:
    """Answer an effect."""
    pending = make_pending(NotedRun(mode=Mode.PLAYBACK), WHAT, RequestClass.EFFECT)
    pending.find(Lookup(made=made))
    assert pending.request is not None
    return make_stub(pending, pending.request, decision)


def after(*seqs: int, changed: bool) -> Made:
    """An answer after recorded ones."""
    return Made(201, ((b"x-own", b"1"),), b"{}", tuple(map(Seq, seqs)), changed)


@pytest.mark.parametrize(
    ("made", "logged", "words"),
    [
        (
            after(3, changed=True),
            {"answered_by": "synthetic", "after": [3]},
            "synthetic, after exchange 3 of the tape; an effect",
        ),
        (
            after(3, changed=False),
            {"answered_by": "tape", "after": [3]},
            "synthetic, after exchange 3 of the tape; an effect",
        ),
        (
            after(1, 2, changed=True),
            {"answered_by": "synthetic", "after": [1, 2]},
            "synthetic, after exchanges 1, 2 of the tape",
        ),
        (
            after(*range(1, 8), changed=True),
            {"answered_by": "synthetic", "after": [1, 2, 3, 4, 5, 6, 7]},
            "synthetic, after exchanges 1, 2, 3, 4, 5, ... of the tape",
        ),
    ],
)
def test_an_answer_after_the_tape_names_its_exchanges(
    made: Made, logged: dict[str, Any], words: str
) -> None:
    """The first of many, in the mark that the client sees; all of them in the log."""
    response, told = stub(STUB, made)
    assert told == logged
    assert words in response.headers["x-playhead"]
    assert (response.status_code, response.content) == (201, b"{}")
    assert response.headers["x-own"] == "1"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [(Answer(200, (), b""), 200, b""), (Answer(202, (), b"later"), 202, b"later")],
)
def test_the_answer_of_a_rule_goes_before_the_tape(
    answer: Answer, status: int, body: bytes
) -> None:
    """Whatever was made after that."""
    for made in (None, after(3, changed=True)):
        response, told = stub(replace(STUB, answer=answer), made)
        assert (response.status_code, response.content) == (status, body)
        assert told == {"answered_by": "template"}
        assert response.headers["x-playhead"].startswith("stubbed; an effect")
