"""Two recordings of one task, question by question: where they were answered otherwise, and what follows from that."""

from collections.abc import Sequence
from time import thread_time
from typing import Any

import pytest

from playhead.config import Config
from playhead.tape.canonical.canonical_request import rules_of
from playhead.tape.exchange import Exchange, RequestClass, Seq
from playhead.tape.splicing.pairs import Pairing, Part, pair_recordings
from playhead.tape.splicing.splice import Splice
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange

Step = tuple[str, Any, Any]
"""METHOD and path, body, answer."""
CHAT = "POST /v1/chat/completions"


def read(path: str, answer: Any) -> Step:
    return f"GET {path}", b"", answer


def chat(*said: str, answer: dict[str, Any]) -> Step:
    messages = [{"role": "user", "content": text} for text in said]
    choices = [{"index": 0, "message": {"role": "assistant", **answer}, "finish_reason": "stop"}]
    return CHAT, {"model": "m", "messages": messages}, {"choices": choices}


def call(text: str, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": "look", "arguments": arguments}
    return {"content": text, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def make(steps: Sequence[Step]) -> dict[Seq, Exchange]:
    found = {}
    for seq, (what, body, answer) in enumerate(steps, 1):
        method, _, path = what.partition(" ")
        kind = RequestClass.INFERENCE if what == CHAT else RequestClass.READ
        request = make_request(f"https://api.test{path}", body, method=method)
        found[Seq(seq)] = make_exchange(seq, request=request, response=make_response(answer), kind=kind)  # fmt: skip
    return found


def pair(bad: Sequence[Step], good: Sequence[Step]) -> tuple[Pairing, dict[Seq, Exchange]]:
    sides = make(bad), make(good)
    reads = sides[0].__getitem__, sides[1].__getitem__
    rules = rules_of(Config(), thread_time)
    return pair_recordings((list(sides[0]), list(sides[1])), reads, rules), sides[1]


def parts(pairing: Pairing) -> list[tuple[int | None, int | None, str]]:
    return [(one.bad, one.good, one.part.value) for one in pairing.pairs]


def test_one_question_with_two_answers_is_a_root() -> None:
    """What is asked with that answer follows from it; what only one asks is alone."""
    pairing, _ = pair(
        [read("/a", {"x": 1}), read("/b", {"x": 2}), chat("two", answer={"content": "no"}), read("/c", 1)],
        [read("/a", {"x": 1}), read("/b", {"x": 3}), chat("three", answer={"content": "yes"}), read("/d/e", 1)],
    )  # fmt: skip
    assert parts(pairing) == [
        (1, 1, "same"),
        (2, 2, "root"),
        (3, 3, "follows"),
        (4, None, "alone"),
        (None, 4, "alone"),
    ]


def test_wording_makes_no_other_question() -> None:
    """What a model says beside its calls, and ids, are sent back; the next question is the same."""
    pairing, _ = pair(
        [chat("buy", answer=call("let me look")), chat("buy", "let me look", answer=call("I buy", '{"n": 1}'))],
        [chat("buy", answer=call("I look it up")), chat("buy", "I look it up", answer=call("I buy", '{"n": 2}'))],
    )  # fmt: skip
    assert parts(pairing) == [(1, 1, "same"), (2, 2, "root")]


@pytest.mark.parametrize(
    ("count", "asked", "given"),
    [
        # The question of the root, in either wording
        (0, ("buy", "I look it up"), "1"),
        (1, ("buy", "I look it up"), "2"),
        # A question of neither
        (1, ("buy", "something else"), None),
    ],
)
def test_a_question_is_answered_by_who_holds_it(
    count: int, asked: tuple[str, ...], given: str | None
) -> None:
    """Where the tape does not hold it as it stands."""
    pairing, _ = pair(
        [chat("buy", answer=call("let me look")), chat("buy", "let me look", answer=call("I buy", '{"n": 1}'))],
        [chat("buy", answer=call("I look it up")), chat("buy", "I look it up", answer=call("I buy", '{"n": 2}'))],
    )  # fmt: skip
    splice = Splice(pairing, count, "good")
    body = chat(*asked, answer={})[1]
    request = make_request("https://api.test/v1/chat/completions", body)
    found = splice.find(request, RequestClass.INFERENCE)
    if given is None:
        assert found is None
    else:
        assert found is not None
        assert f'\\"n\\": {given}'.encode() in found.answer.body
        assert found.tape_seq == 2
        assert splice.find(request, RequestClass.INFERENCE) is None  # it is used up


def test_what_is_spliced_takes_the_place_of_its_own() -> None:
    """The first roots, so many of them."""
    steps = [[read(f"/{number}", f"{name} {number}") for number in range(4)] for name in ("bad", "good")]  # fmt: skip
    pairing, _ = pair(*steps)
    assert [one.part for one in pairing.pairs] == [Part.ROOT] * 4
    splice = Splice(pairing, 2, "good")
    given = [splice.replace(Seq(seq)) for seq in (1, 2, 3, 4)]
    assert [one.answer.body if one else None for one in given] == [b'"good 0"', b'"good 1"', None, None]  # fmt: skip
    assert given[0] is not None
    assert given[0].source == "as 'good' was answered in exchange 1"
