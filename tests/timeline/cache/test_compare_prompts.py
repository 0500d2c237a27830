"""Where two prompts differ, as a provider reads them."""

import json

import pytest

from playhead.tape.dialects.common.untrusted_json import Json
from playhead.tests.support.agent_tapes import Tape, anthropic, anthropic_stream, assistant, text
from playhead.tests.support.in_memory import InMemory
from playhead.timeline.cache.compare_prompts import first_difference
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
