"""Which recorded model call lists the same tool results in another order, looked for in a made-up tape.

A tape is a list of words: `model KEYS` makes calls, `tool` asks for something at a time, `lists KEYS` is a model call that lists
their results.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from playhead.addons.order.reordered_tool_results import Reordered, ToolResults
from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.exchange import Exchange, Request, RequestClass, Seq
from playhead.tape.playback.tool_result_order import arrange
from playhead.tests.support.exchanges import make_exchange, make_response

CHAT = "POST https://api.openai.com/v1/chat/completions"
RULES = compile_rules()
SECOND_NS = 1_000_000_000
JSON = ((b"content-type", b"application/json"),)


def _calls(keys: str) -> list[dict[str, object]]:
    function = {"name": "look", "arguments": "{}"}
    return [{"id": f"call_{key}", "type": "function", "function": function} for key in keys]


def lists(*blocks: str) -> Request:
    """Make a model call that lists results, a block of keys for each turn."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    for keys in blocks:
        asked = _calls("".join(sorted(keys)))
        messages.append({"role": "assistant", "content": None, "tool_calls": asked})
        messages += [
            {"role": "tool", "tool_call_id": f"call_{key}", "content": f"saw {key}"} for key in keys
        ]
    return _chat({"model": "m", "messages": messages})


def _chat(body: object) -> Request:
    made = make_exchange(1, CHAT, body=json.dumps(body).encode()).request
    return replace(made, headers=JSON)


def _model(seq: int, request: Request, keys: str, began_s: float) -> Exchange:
    message = {"role": "assistant", "content": None, "tool_calls": _calls(keys)}
    said = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    response = make_response(body=json.dumps(said).encode(), headers=JSON)
    return _at(
        make_exchange(seq, CHAT, kind=RequestClass.INFERENCE, request=request, response=response),
        began_s,
        0.5,
    )


def _at(exchange: Exchange, began_s: float, took_s: float) -> Exchange:
    return replace(exchange, started_ns=int(began_s * SECOND_NS), end_us=int(took_s * 1_000_000))


class Tape:
    """A made-up tape."""

    def __init__(self, tools: Sequence[tuple[float, float]], *blocks: str, made: str = "") -> None:
        """Write it.

        tools: when each request of a tool began after the turn of the model, and how long it took, in seconds.
        blocks: results that the last call lists.
        made: keys of the calls in the order in which the model made them; sorted where it is empty.
        """
        told = [_model(1, lists(), made or "".join(sorted(blocks[-1])), 0)]
        for began_s, took_s in tools:
            seq = len(told) + 1
            tool = make_exchange(seq, f"GET https://docs.example.com/{seq}")
            told.append(_at(tool, 1 + began_s, took_s))
        told.append(_model(len(told) + 1, lists(*blocks), "z", 100))
        self.exchanges = {exchange.seq: exchange for exchange in told}
        self.last = told[-1].seq

    def find(self, request: Request) -> Reordered | None:
        """Look for a request."""
        results = ToolResults(
            lambda _: [self.last],
            self.exchanges.get,
            lambda asked: arrange(asked, RULES),
            lambda exchange: exchange.fingerprint,
        )
        found = results.find(request)
        assert results.find(request) == found, "it is said again from what was looked up"
        return found


TOGETHER = ((0.0, 0.5), (0.1, 0.5), (0.2, 0.5))
ONE_BY_ONE = ((0.0, 0.5), (1.0, 0.5), (2.0, 0.5))
TWO_THEN_ONE = ((0.0, 0.5), (0.1, 0.5), (2.0, 0.5))

CASES = [
    ("all side by side", Tape(TOGETHER, "cab"), lists("bca"), True),
    ("one by one", Tape(ONE_BY_ONE, "abc"), lists("bac"), False),
    ("two side by side, these in another order", Tape(TWO_THEN_ONE, "abc"), lists("bac"), True),
    ("two side by side, another one moved", Tape(TWO_THEN_ONE, "abc"), lists("acb"), False),
    ("several requests a call, some at a time", Tape((*TOGETHER, (5, 1)), "abc"), lists("cba"), True),
    ("several requests a call, one by one", Tape((*ONE_BY_ONE, (5, 1)), "abc"), lists("cba"), False),
    ("no requests, listed as they ended", Tape((), "cab"), lists("abc"), True),
    ("no requests, listed as they were called", Tape((), "abc"), lists("cab"), False),
    ("no requests, called in another order", Tape((), "cab", made="cab"), lists("abc"), False),
    ("the same order", Tape(TOGETHER, "abc"), lists("abc"), False),
    ("one more result", Tape(TOGETHER, "abc"), lists("abcd"), False),
    ("results of another turn", Tape(TOGETHER, "ab", "cd"), lists("ac", "bd"), False),
    ("calls that no model made", Tape(TOGETHER, "abc", made="xyz"), lists("bac"), False),
    ("no results at all", Tape(TOGETHER, "abc"), lists(), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "tape", "request_now", "found"), CASES, ids=lambda one: str(one)[:40]
)
def test_another_order_needs_calls_that_overlapped(
    what: str, tape: Tape, request_now: Request, found: bool
) -> None:
    """By what the tools asked for while they were recorded; else by the order of their results."""
    expected = Reordered(tape.last, tape.exchanges[tape.last].fingerprint) if found else None
    assert tape.find(request_now) == expected


def test_an_exchange_that_cannot_be_read_lets_nothing_through() -> None:
    """What is not known did not overlap."""
    tape = Tape(TOGETHER, "abc")
    del tape.exchanges[Seq(1)]
    assert tape.find(lists("bac")) is None
