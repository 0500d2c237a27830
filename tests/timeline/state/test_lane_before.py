"""The call before one in its lane, and the seqs that first had what is in it: the state at a step and the list of what is lost agree."""

from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store
from playhead.tests.support.agent_tapes import (
    TAPES,
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    chat,
    chat_answer,
    said,
    text,
    user,
)
from playhead.tests.support.dialects import cut, make_request, make_response
from playhead.tests.support.exchanges import write_run
from playhead.tests.support.lane_tapes import LANE_TAPES
from playhead.timeline.state.calls_before import Exchanges
from playhead.timeline.state.find_state import find_state
from playhead.timeline.state.lost_context import look_at
from playhead.timeline.state.render import render_state

_MADE = [make() for make in (*TAPES, *LANE_TAPES)]
ANSWER = "The function charge calls step_3 twice; shall I write the fix?"
WRITTEN = "Written, and the logs are kept."
BEGUN = [user("Fix the bug."), assistant(text(ANSWER)), user("Yes, write it, but keep the logs.")]


@pytest.mark.parametrize("tape", _MADE, ids=lambda tape: tape.name)
async def test_the_state_and_the_list_of_what_is_lost_agree(tmp_path: Path, tape: Tape) -> None:
    """Each has the same call before, and of what is gone the same first seq."""
    with Store.open(tmp_path / "store") as store:
        exchanges = Exchanges(store, await write_run(store, "tape", tape.exchanges))
        for looked in look_at(exchanges, None):
            state = find_state(exchanges, looked.seq, looked.call_part)
            assert (state.before.seq if state.before is not None else 0) == looked.before
            left = {one.part.key: one.seq for one in state.left}
            assert {one.part.key: one.origin for one in looked.lost}.items() <= left.items()


def _after(last: list[dict[str, Any]], *, second: str = "whole") -> Tape:
    """One agent of three calls: what its last request is varies, and how the second was answered."""
    tape = Tape("after")
    tape.model(anthropic(BEGUN[:1]), anthropic_stream(text(ANSWER), id="a"))
    answer = anthropic_stream(text(WRITTEN), id="b")
    if second == "cut":
        answer = cut(answer, len(answer.body) // 2)
    elif second == "failed":
        answer = make_response({"type": "error", "error": {"type": "api_error"}}, status=500)
    tape.model(anthropic(BEGUN), answer)
    tape.model(anthropic(last), anthropic_stream(text("It is done."), id="c"))
    return tape


@pytest.mark.parametrize(
    ("last", "second", "entered", "left"),
    [
        ([*BEGUN, user("Once more.")], "whole", ["3 Once more."], []),
        ([*BEGUN, user("Once more.")], "cut", ["3 Once more."], []),
        ([*BEGUN, user("Once more.")], "failed", ["3 Once more."], []),
        (BEGUN, "failed", [], []),
        (
            [*BEGUN, assistant(text("Altered.")), user("And?")],
            "whole",
            ["3 Altered.", "3 And?"],
            [],
        ),
        (
            [*BEGUN, assistant(text(WRITTEN)), user("And?")],
            "whole",
            [f"2 {WRITTEN}", "3 And?"],
            [],
        ),
        # One goes back to the first answer, and says something else to it.
        (
            [*BEGUN[:2], user("No, leave it.")],
            "whole",
            ["3 No, leave it."],
            [f"2 {BEGUN[2]['content']}"],
        ),
        # What both have twice was said once more.
        (
            [*BEGUN, assistant(text(WRITTEN)), BEGUN[2]],
            "whole",
            [f"2 {WRITTEN}", "3 Yes, write it, but keep the logs."],
            [],
        ),
    ],
)
async def test_what_entered_is_since_the_call_before_of_the_lane(
    tmp_path: Path, last: list[dict[str, Any]], second: str, entered: list[str], left: list[str]
) -> None:
    """Whether the agent kept the last answer or not."""
    with Store.open(tmp_path / "store") as store:
        tape = _after(last, second=second)
        state = find_state(Exchanges(store, await write_run(store, "tape", tape.exchanges)), 3)
    assert state.before is not None
    assert state.before.seq == 2
    assert [f"{one.seq} {one.part.text}" for one in state.entered] == entered
    assert [one.seq for one in state.left] == [int(one[0]) for one in left]


async def test_a_conversation_that_was_taken_over_has_its_own_origins(tmp_path: Path) -> None:
    """Another agent begins a lane with what was said before it."""
    tape = _after([])
    tape.exchanges.pop()
    taken = [*BEGUN, assistant(text(WRITTEN)), user("Now test it.")]
    tape.model(
        anthropic(taken, system="You are Tester, who runs tests.", tools=("Run",)),
        anthropic_stream(text("Tested."), id="c"),
    )
    with Store.open(tmp_path / "store") as store:
        state = find_state(Exchanges(store, await write_run(store, "tape", tape.exchanges)), 3)
    assert state.before is None
    assert [one.seq for one in state.entered] == [1, 1, 2, 2, 3]
    assert any(
        "begins a lane with a conversation" in one for one in render_state(state, full=False)
    )


async def test_what_was_taken_back_into_a_context_is_of_the_call_that_first_had_it(
    tmp_path: Path,
) -> None:
    """A part that the call before had left out."""
    tape = Tape("back")
    asked = [said("user", "Please look at the order ORD-1."), said("assistant", "I see an order.")]
    tape.model(chat(asked[:1]), chat_answer("I see an order.", id="a"))
    asked += [said("user", "Mind the discount."), said("assistant", "I mind it well.")]
    tape.model(chat(asked[:3]), chat_answer("I mind it well.", id="b"))
    less = [*asked[:2], said("assistant", "I mind it well."), said("user", "Go on.")]
    tape.model(chat(less), chat_answer("Going on with it.", id="c"))
    more = [
        *asked,
        said("user", "Go on."),
        said("assistant", "Going on with it."),
        said("user", "!"),
    ]
    tape.model(chat(more), chat_answer("Done.", id="d"))
    with Store.open(tmp_path / "store") as store:
        exchanges = Exchanges(store, await write_run(store, "tape", tape.exchanges))
        states = [find_state(exchanges, seq) for seq in (3, 4)]
    told = [[(one.seq, one.part.text) for one in state.left] for state in states]
    assert told == [[(2, "Mind the discount.")], []]
    assert [(one.seq, one.part.text) for one in states[1].entered] == [
        (2, "Mind the discount."),
        (3, "Going on with it."),
        (4, "!"),
    ]


async def test_a_turn_that_goes_on_from_an_earlier_answer_is_since_the_last(tmp_path: Path) -> None:
    """Of a conversation that the provider keeps: what it does not go on from has left."""
    tape = Tape("fork")
    for id, previous in (("r1", None), ("r2", "r1"), ("r3", "r1")):
        item: dict[str, Any] = {"type": "message", "role": "assistant"}
        item["content"] = [{"type": "output_text", "text": f"answer {id}"}]
        asked = {"model": "gpt-5", "input": f"question {id}", "previous_response_id": previous}
        answer = {"id": id, "status": "completed", "model": "gpt-5", "output": [item]}
        tape.model(
            make_request("https://api.openai.com/v1/responses", asked), make_response(answer)
        )
    with Store.open(tmp_path / "store") as store:
        state = find_state(Exchanges(store, await write_run(store, "tape", tape.exchanges)), 3)
    assert state.before is not None
    assert state.before.seq == 2
    assert [(one.seq, one.part.text) for one in state.left] == [(2, "question r2")]
    lines = list(render_state(state, full=False))
    assert "since 2, going on from 1 (recorded: names the answer's id)" in lines
