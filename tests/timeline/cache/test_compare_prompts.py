"""Where two prompts differ, as a provider reads them."""

import json
from typing import Any

import pytest

from playhead.tape.dialects.common.untrusted_json import Json, as_object
from playhead.tape.exchange import Request, Response
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, assistant, text
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.cache.compare_prompts import first_difference
from playhead.timeline.cache.prompt_cache_misses import find_misses
from playhead.timeline.diff.acts import read_acts

TEXT: Json = "hi"
PART: Json = {"type": "text", "text": "hi"}
MARKED: Json = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize("one", [TEXT, [PART], [MARKED]], ids=["text", "part", "marked"])
@pytest.mark.parametrize("other", [TEXT, [PART], [MARKED]], ids=["text", "part", "marked"])
def test_a_text_is_the_list_of_one_part(one: Json, other: Json) -> None:
    """Providers read both alike, also in the result of a tool: a client that moves its mark turns one into the other."""
    given: list[Json] = []
    for side in (one, other):
        result: Json = {"type": "tool_result", "tool_use_id": "1", "content": side}
        given += [{"role": "user", "content": side}, {"role": "user", "content": [result]}]
    for old, new in zip(given[:2], given[2:], strict=True):
        assert first_difference(old, new, "$") is None
    changed = json.loads(json.dumps(given[2]).replace("hi", "ho"))
    assert first_difference(given[0], changed, "$") is not None


def test_a_conversation_goes_on_where_a_text_became_a_part() -> None:
    """So nothing entered or left."""
    tape = Tape("a")
    for content in (TEXT, [MARKED]):
        answer = anthropic_stream(text("Done."), id="msg_1")
        tape.model(
            anthropic([{"role": "user", "content": content}, assistant(text("So?"))]), answer
        )
    acts = read_acts(InMemory(tape.exchanges))
    assert [act.lane for act in acts] == [acts[0].lane] * 2
    assert acts[1].asked == []


SYSTEM = " ".join(
    f"Rule {at}: item {at * 7919 % 1000} is in bin {at * 31 % 97}." for at in range(30)
)


def _item(role: str, said: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": said}]}


def _output(role: str, said: str) -> Json:
    """What an SDK sends back of an answer."""
    part: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": said}
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": role,
        "content": [part],
    }


FORMS: dict[str, Any] = {
    "easy": lambda role, said: {"role": role, "content": said},
    "item": _item,
    "output": lambda role, said: (_output if role == "assistant" else _item)(role, said),
    "no type": lambda role, said: {
        name: value for name, value in as_object(_item(role, said)).items() if name != "type"
    },
}


def _ask(given: Json, system: str = SYSTEM) -> Request:
    body = {"model": "gpt-5", "instructions": system, "input": given}
    return make_request("https://api.openai.com/v1/responses", body)


def _said(said: str) -> Response:
    output = [_output("assistant", said)]
    usage = {
        "input_tokens": 12000,
        "output_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0},
    }
    return make_response(
        {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "output": output,
            "usage": usage,
        }
    )


@pytest.mark.parametrize("other", FORMS)
@pytest.mark.parametrize("one", ["text", *FORMS])
@pytest.mark.parametrize("system", [SYSTEM, f"{SYSTEM} z"], ids=["same prompt", "other prompt"])
def test_a_message_of_responses_is_the_same_in_each_form(one: str, other: str, system: str) -> None:
    """A client that begins with a text repeats it as an item: its prompt did not break, and its lane goes on."""
    tape = Tape("a")
    first: Json = "q1" if one == "text" else [FORMS[one]("user", "q1")]
    tape.model(_ask(first), _said("I will."))
    form = FORMS[other]
    again = [form("user", "q1"), form("assistant", "I will."), form("user", "q2")]
    tape.model(_ask(again, system), _said("Done."))
    tape.model(_ask([*again[:2], FORMS["easy"]("user", "q2")], system), _said("Done."))
    tape.model(_ask([FORMS["item"]("user", "q3"), *again[1:]], system), _said("Done."))
    acts = read_acts(InMemory(tape.exchanges))
    assert [act.lane for act in acts[:3]] == [acts[0].lane] * 3
    assert [part.text for part in acts[1].asked] == ["I will.", "q2"]
    assert acts[1].edges
    moved = [one.moved for one in find_misses(InMemory(tape.exchanges))]
    assert [one.part if one is not None else "" for one in moved[:3]] == [
        "",
        "system" if system.endswith("z") else "",
        "",
    ]
