"""Two answers to one question: whether they mean the same, and what in them is mere wording."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.exchange import Response
from playhead.tape.splicing.same_meaning import compare_answers
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange

CHAT = make_request("https://api.openai.com/v1/chat/completions", {"model": "m", "messages": []})
READ = make_request("https://api.test/orders/7", method="GET")


def said(text: str | None, arguments: str | None = None, call: str = "call_a1") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if arguments is not None:
        function = {"name": "refund", "arguments": arguments}
        message["tool_calls"] = [{"id": call, "type": "function", "function": function}]
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (said("done"), said("done"), True),
        (said("done"), said("  done\n"), True),
        (said("done"), said("failed"), False),
        (said("I look", '{"a": 1, "b": 2}'), said("let me see", '{"b": 2, "a": 1}', "b"), True),
        (said("I look", '{"a": 1}'), said("I look", '{"a": 2}'), False),
        (said("I look", '{"a": 1}'), said("I look"), False),
        (said("I look", '{"a'), said("I look", '{"b'), False),
    ],
)
def test_answers_of_a_model(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:
    """Calls count with their arguments; words count where there is no call."""
    first = make_exchange(1, request=CHAT, response=make_response(one))
    second = make_exchange(2, request=CHAT, response=make_response(other))
    assert compare_answers(first, second).same is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"price": 10}, {"price": 10}, True),
        ({"price": 10}, {"price": 99}, False),
        ({"id": "re_1Qx8abcd9"}, {"id": "re_7Zz1efgh2"}, True),
        ({"at": "2026-01-02 03:04:05"}, {"at": "2026-05-06 07:08:09"}, True),
        ({"id": "re_1Qx8abcd9", "price": 1}, {"id": "re_7Zz1efgh2", "price": 2}, False),
    ],
)
def test_other_answers(one: object, other: object, same: bool) -> None:
    """Ids and times do not count."""
    first = make_exchange(1, request=READ, response=make_response(one))
    second = make_exchange(2, request=READ, response=make_response(other))
    assert compare_answers(first, second).same is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"x-state": "blocked"}, {}, False),
        ({"x-state": "blocked"}, {"x-state": "open"}, False),
        ({"X-State": "open"}, {"x-state": "open"}, True),
        ({"location": "/orders/7"}, {"location": "/orders/8"}, False),
        ({"link": '</orders?page=2>; rel="next"'}, {}, False),
        ({"retry-after": "1"}, {"retry-after": "900"}, False),
        # The same but for ids and times, or about the transfer.
        ({"location": "/orders/re_1Qx8abcd9"}, {"location": "/orders/re_7Zz1efgh2"}, True),
        (
            {"date": "Thu, 01 Jan 2026 03:04:05 GMT"},
            {"date": "Fri, 02 Jan 2026 03:04:05 GMT"},
            True,
        ),
        ({"x-ratelimit-remaining": "7"}, {"x-ratelimit-remaining": "6"}, True),
        ({"etag": '"a"'}, {"etag": '"b"'}, True),
        ({"x-runtime": "0.01"}, {"x-runtime": "0.02"}, True),
    ],
)
def test_header_fields_are_a_part_of_an_answer(
    one: dict[str, str], other: dict[str, str], same: bool
) -> None:
    """An agent acts on them as on the body."""
    answers = [
        make_exchange(seq, request=READ, response=_answer_with(fields))
        for seq, fields in enumerate((one, other), 1)
    ]
    assert compare_answers(*answers).same is same


def _answer_with(fields: dict[str, str]) -> Response:
    made = make_response({"i": 1})
    told = tuple((name.encode(), value.encode()) for name, value in fields.items())
    return replace(made, headers=(*made.headers, *told))


def test_wording_is_what_an_agent_sends_back() -> None:
    """Ids and words of answers that mean the same, each with its counterpart; none that is short."""
    first = make_exchange(1, request=CHAT, response=make_response(said("I look", "{}", "call_a1")))
    other = said("let me see", "{}", "call_b2")
    second = make_exchange(2, request=CHAT, response=make_response(other))
    assert set(compare_answers(first, second).wording) == {
        ("I look", "let me see"),
        ("call_a1", "call_b2"),
    }


def test_another_status_is_another_answer() -> None:
    """Whatever the body says."""
    first = make_exchange(1, request=READ, response=make_response({}, 200))
    second = make_exchange(2, request=READ, response=make_response({}, 500))
    assert not compare_answers(first, second).same
