"""How answers spread: the count, the interval, and that two that want the same are one."""

from typing import Any

import pytest

from playhead.proxy.run_again.spread import describe, interval, render, spread
from playhead.tape.dialects import read_response
from playhead.tests.support.dialects import make_request, make_response

CHAT = make_request("https://api.openai.com/v1/chat/completions", {"model": "m", "messages": []})


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # As tables of Wilson's interval have it
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
        (0, 0, 0.0, 1.0),
    ],
)
def test_a_share_has_an_interval(count: int, total: int, low: float, high: float) -> None:
    """With 95 % confidence."""
    assert interval(count, total) == pytest.approx((low, high), abs=5e-5)


def said(**message: Any) -> str:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", **message}}]}
    return describe(read_response(CHAT, make_response(body)))


def call(arguments: str) -> dict[str, Any]:
    function = {"name": "refund", "arguments": arguments}
    return {"tool_calls": [{"id": "a", "type": "function", "function": function}]}


def test_what_wants_the_same_reads_alike() -> None:
    """Whatever the order of its arguments, and its white space."""
    one, other = call('{"a": 1, "b": 2}'), call('{"b":2,"a":1}')
    assert said(**one) == said(**other) == 'refund({"a": 1, "b": 2})'
    assert said(content="yes,\n  please") == '"yes, please"'
    assert describe(None) == "an answer that no dialect reads"
    error = read_response(CHAT, make_response({"error": {"message": "busy"}}, 529))
    assert describe(error) == "error: busy"


def test_calls_of_one_answer_are_in_any_order() -> None:
    """A model that wants the same calls side by side wants the same."""
    one, other = (call(f'{{"number": {number}}}')["tool_calls"][0] for number in (17, 170))
    assert said(tool_calls=[one, other]) == said(tool_calls=[other, one])
    assert said(tool_calls=[one, one]) != said(tool_calls=[one])


def test_the_most_frequent_comes_first() -> None:
    """With a mark where the tape has it, and a line where nobody said that again."""
    rows = spread('"a"', ['"b"', '"a"', '"b"'])
    assert [(row.text, row.count, row.recorded) for row in rows] == [
        ('"b"', 2, False),
        ('"a"', 1, True),
    ]
    lines = list(render(rows, 3, '"a"'))
    assert lines[0].split()[:3] == ["2", "of", "3"]
    assert lines[1].startswith("= ")
    assert any("never" in line for line in render(rows[:1], 2, '"a"'))
    assert all(len(line) <= 80 for line in lines)
