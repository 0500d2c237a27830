"""The scripted model: one script for every wire, told by the conversation alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.agents.script import API, FINAL, Asked, say
from playhead.tests.agents.wires import anthropic, chat, gemini, responses

WORK = Path("/work")
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def _of_anthropic(stage: int) -> Asked:
    part = {"type": "tool_use", "id": "1", "name": "bash", "input": {}}
    turns = [{"role": "assistant", "content": [part]}] * stage
    tools = [{"name": "bash", "input_schema": SCHEMA}]
    return anthropic.read({"messages": [{"role": "user", "content": "go"}, *turns], "tools": tools})


def _of_chat(stage: int) -> Asked:
    turns = [{"role": "assistant", "tool_calls": [{"id": "1"}]}] * stage
    tools = [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]
    return chat.read({"messages": turns, "tools": tools})


def _of_responses(stage: int) -> Asked:
    turn = [{"type": "function_call"}, {"type": "function_call"}, {"type": "function_call_output"}]
    tools = [{"type": "function", "name": "bash", "parameters": SCHEMA}]
    return responses.read({"input": turn * stage, "tools": tools})


def _of_gemini(stage: int) -> Asked:
    turns = [{"role": "model", "parts": [{"functionCall": {"name": "bash"}}]}] * stage
    tools = [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SCHEMA}]}]
    return gemini.read({"contents": turns, "tools": tools}, "gemini", stream=False)


WIRES: dict[str, tuple[Callable[[int], Asked], Any]] = {
    "anthropic": (_of_anthropic, anthropic),
    "chat": (_of_chat, chat),
    "responses": (_of_responses, responses),
    "gemini": (_of_gemini, gemini),
}


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_says_the_same(wire: str) -> None:
    """Commands by turn, two of them side by side in the third, and then a text; whole, and in pieces."""
    ask, module = WIRES[wire]
    said = [json.dumps(module.whole(ask(stage), say(ask(stage), WORK))) for stage in range(4)]
    assert [text.count("command") for text in said] == [1, 1, 2, 0]
    assert API in said[1]
    assert FINAL in said[3]
    pieces = "".join(module.stream(ask(3), say(ask(3), WORK)))
    assert all(word in pieces for word in FINAL.split())
    told = "".join(module.stream(ask(1), say(ask(1), WORK)))
    assert f"https://{API}/items/1" in told, "the change that is planted needs it in one piece"


def test_a_program_of_tools_is_a_call_too() -> None:
    """Codex asks for one program instead of calls, and says which tools there are once in a conversation."""
    tools = [{"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "exec"}]}]
    asked = responses.read({"input": [{"type": "additional_tools", "tools": tools}]})
    first = responses.whole(asked, say(asked, WORK))
    assert "tools.exec_command" in first["output"][0]["input"]
    asked = responses.read({"input": [], "previous_response_id": first["id"]})
    assert API in responses.whole(asked, say(asked, WORK))["output"][0]["input"]


def test_an_answer_has_the_form_that_was_asked_for() -> None:
    """Where it has to be JSON of a schema, it is the least that the schema takes."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    asked = chat.read({"response_format": {"json_schema": {"schema": schema}}, "messages": []})
    assert json.loads(say(asked, WORK).text) == {"n": 1}
