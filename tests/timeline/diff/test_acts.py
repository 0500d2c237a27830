"""How an answer ended, and what the agent saw of it, is a part of what two runs are compared by."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.exchange import Chunk, Exchange, Fault, FaultKind, Gone, Phase, RedactedText
from playhead.tests.support.agent_tapes import (
    Tape,
    anthropic,
    anthropic_stream,
    chat,
    said,
    text,
    use,
    user,
)
from playhead.tests.support.agent_tapes import call as chat_call
from playhead.tests.support.dialects import make_response, make_stream
from playhead.tests.support.in_memory import InMemory
from playhead.tests.support.socket_tapes import in_memory, refund
from playhead.timeline.diff.acts import read_acts
from playhead.timeline.diff.compare import compare_acts
from playhead.timeline.diff.differing_json_paths import find_places
from playhead.timeline.diff.row import Change

PAY = "https://pay.test/refunds"


def pay(times: int = 1) -> list[Exchange]:
    """Refunds, one after another."""
    tape = Tape("pay")
    for _ in range(times):
        tape.post(PAY, {"charge": "ch_1"}, {"status": "ok"})
    return tape.exchanges


def call() -> list[Exchange]:
    """One model call, whose answer is streamed."""
    tape = Tape("call")
    tape.model(anthropic([user("hi")]), anthropic_stream(text("x")))
    return tape.exchanges


def changed(run: list[Exchange], **changes: Any) -> list[Exchange]:
    """Change the first exchange of a run; `response.NAME` its response."""
    first, *rest = run
    inner = {name[9:]: value for name, value in changes.items() if name.startswith("response_")}
    outer = {name: value for name, value in changes.items() if not name.startswith("response_")}
    if inner:
        assert first.response is not None
        outer["response"] = replace(first.response, **inner)
    return [replace(first, **outer), *rest]


def in_pieces(run: list[Exchange], gone: Gone | None) -> list[Exchange]:
    """The same, its answer in two pieces of which a client may have left some."""
    response = run[0].response
    assert response is not None
    size = len(response.body)
    chunks = (Chunk(10, 4), Chunk(20, size - 4))
    return changed(run, response_chunks=chunks, gone=gone)


RESET = Fault(FaultKind.RESET, Phase.BODY, RedactedText("reset"), 5)
REFUSED = Fault(FaultKind.REFUSED, Phase.CONNECT, RedactedText("refused"), 5)
RUNS = {"an effect": pay(), "a model call": call()}
ENDINGS: dict[str, Any] = {
    "it broke off": lambda run: changed(run, response_complete=False),
    "it failed": lambda run: changed(run, fault=RESET),
    "its client left before any of it": lambda run: in_pieces(run, Gone(5, 0, head=False)),
    "its client left in the midst": lambda run: in_pieces(run, Gone(15, 1, head=True)),
    "it was withheld": lambda run: changed(run, withheld=RedactedText("a contract")),
    "nothing was read": lambda run: changed(run, response=None, gone=Gone(5, 0, head=False)),
}


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_answer_that_ended_otherwise_is_another_answer(kind: str, ending: str) -> None:
    """Whether it came whole, and whether the agent saw it, is the cause of what comes next; and the place says so."""
    run = RUNS[kind]
    sides = [InMemory(one) for one in (run, ENDINGS[ending](run))]
    compared = compare_acts(*map(read_acts, sides))
    assert compared.divergence is not None
    assert compared.divergence.row.change is Change.ANSWERED
    places = find_places(compared.divergence.row, sides[0], sides[1], compile_rules()).listed
    assert places[0].place in ("answer ends", "answer status") or kind == "a model call"
    assert places


@pytest.mark.parametrize("kind", RUNS)
def test_who_has_all_of_an_answer_may_leave(kind: str) -> None:
    """SDKs leave a stream once they have read its last event."""
    run = RUNS[kind]
    whole = in_pieces(run, None), in_pieces(run, Gone(25, 2, head=True))
    assert compare_acts(*(read_acts(InMemory(one)) for one in whole)).divergence is None


def test_one_more_effect_follows_from_the_answer_that_was_not_seen() -> None:
    """The refund that is paid twice is no root: the first one's answer was not seen."""
    twice = in_pieces(pay(2), Gone(5, 0, head=False))
    compared = compare_acts(*(read_acts(InMemory(one)) for one in (pay(), twice)))
    changes = [(row.change, row.is_root) for row in compared.rows]
    assert changes == [(Change.ANSWERED, True), (Change.ONLY_SECOND, False)]


def test_two_failures_of_a_model_call_are_told_apart() -> None:
    """A connection that was refused, and one that was reset."""
    sides = [changed(call(), response=None, fault=fault) for fault in (RESET, REFUSED)]
    compared = compare_acts(*(read_acts(InMemory(one)) for one in sides))
    assert compared.divergence is not None


def test_an_answer_that_no_dialect_reads_is_compared_as_it_came() -> None:
    """A page in the place of an answer of a model."""
    sides = [changed(call(), response=make_response(said)) for said in ("<p>a</p>", "<p>b</p>")]
    compared = compare_acts(*(read_acts(InMemory(one)) for one in sides))
    assert compared.divergence is not None
    assert compared.divergence.row.change is Change.ANSWERED


def _ended(reason: str, *, by: str, calls: bool) -> list[Exchange]:
    """One call that a model ended with a word of its provider's."""
    tape = Tape("ended")
    if by == "anthropic":
        blocks = [text("It is there.")] + ([use("toolu_1", "pay", amount=4900)] if calls else [])
        tape.model(anthropic([user("Pay it.")]), anthropic_stream(*blocks, stop=reason))
        return tape.exchanges
    wants = [chat_call("call_1", "pay", amount=4900)] if calls else []
    message = {"role": "assistant", "content": "It is there.", "tool_calls": wants}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    if by == "openai stream":
        end = {"index": 0, "delta": {}, "finish_reason": reason}
        choice = {"index": 0, "delta": {**message, "tool_calls": [{"index": 0, **wants[0]}]}}
        pieces = [{"choices": [choice]}, {"choices": [end]}]
        tape.model(chat([said("user", "Pay it.")], stream=True), make_stream(*pieces))
    else:
        tape.model(chat([said("user", "Pay it.")]), make_response({"choices": [choice]}))
    return tape.exchanges


@pytest.mark.parametrize(
    ("by", "calls", "first", "second"),
    [
        ("openai", True, "tool_calls", "stop"),
        ("openai", True, "tool_calls", "function_call"),
        ("openai", True, "tool_calls", "length"),
        ("openai", False, "stop", "content_filter"),
        ("openai stream", True, "tool_calls", "stop"),
        ("anthropic", False, "end_turn", "stop_sequence"),
        ("anthropic", False, "end_turn", "refusal"),
        ("anthropic", True, "tool_use", "end_turn"),
    ],
)
def test_the_word_with_which_an_answer_ended_is_compared(
    by: str, calls: bool, first: str, second: str
) -> None:
    """Several words of a provider mean the same, and an agent may go by each in another way."""
    runs = [InMemory(_ended(word, by=by, calls=calls)) for word in (first, second)]
    assert compare_acts(*(read_acts(runs[0]) for _ in range(2))).divergence is None
    found = compare_acts(*map(read_acts, runs)).divergence
    assert found is not None
    assert found.row.change is Change.ANSWERED
    for run, word in zip(runs, (first, second), strict=True):
        (act,) = read_acts(run)
        assert word in act.outcome


@pytest.mark.parametrize("known", [True, False])
def test_calls_of_a_websocket_come_when_they_were_asked(known: bool) -> None:
    """What a tool was answered is before the call that has it."""
    acts = read_acts(in_memory(refund(known=known)))
    assert [one.place for one in acts] == ["1", "1.1", "2", "1.2", "3", "1.3"]


def test_an_answer_is_the_cause_of_the_calls_of_a_websocket_behind_it() -> None:
    """And not the other way round."""
    compared = compare_acts(*(read_acts(in_memory(refund(views))) for views in (1, 3)))
    assert compared.divergence is not None
    assert compared.divergence.row.change is Change.ANSWERED
    assert [row.first.place for row in compared.rows if row.is_root and row.first] == ["2"]


def test_a_request_sent_once_more_beside_a_websocket_is_a_root() -> None:
    """The first of them has its partner."""
    runs = refund(), refund(times=2)
    compared = compare_acts(*(read_acts(in_memory(run)) for run in runs))
    roots = [row.second.place for row in compared.rows if row.is_root and row.second]
    assert roots[0] == "4"
    assert "3" not in roots


def test_calls_of_a_websocket_moved_are_no_longer_in_order() -> None:
    """A run is the same as itself, whatever its WebSocket is beside."""
    same = compare_acts(*(read_acts(in_memory(refund())) for _ in range(2)))
    assert same.divergence is None
    assert not same.reordered
