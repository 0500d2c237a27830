"""Blocks of tool results, in the wires that list them; their order is put apart from what they say."""

import copy
import json
from typing import Any

import pytest

from playhead.tape.dialects.common.sort_tool_results import arrange_results

Json = Any


def call(key: str) -> dict[str, Json]:
    return {"id": key, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def tool(key: str, content: str = "") -> dict[str, Json]:
    return {"role": "tool", "tool_call_id": key, "content": content or key.upper()}


def result(key: str, **more: Json) -> dict[str, Json]:
    return {"type": "tool_result", "tool_use_id": key, "content": key.upper(), **more}


def output(key: str) -> dict[str, Json]:
    return {"type": "function_call_output", "call_id": key, "output": key.upper()}


def response(name: str, key: str = "") -> dict[str, Json]:
    said = {"name": name, "response": {"r": name + key}}
    return {"functionResponse": {"id": key, **said} if key else said}


USER = {"role": "user", "content": "go"}
ASKED = {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b"), call("c")]}
ALSO = {"role": "assistant", "content": None, "tool_calls": [call("d"), call("e")]}
MODEL = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}


def chat(*messages: Json) -> Json:
    return {"model": "m", "messages": [USER, ASKED, *messages]}


def claude(*blocks: Json) -> Json:
    return {"model": "m", "messages": [USER, {"role": "user", "content": list(blocks)}]}


def gemini(*parts: Json) -> Json:
    return {"contents": [MODEL, {"role": "user", "parts": list(parts)}]}


SAME = [
    # One body, another one that says the same in another order, and the keys of its blocks
    (
        "openai chat",
        chat(tool("a"), tool("b"), tool("c")),
        chat(tool("c"), tool("a"), tool("b")),
        [("c", "a", "b")],
    ),
    (
        "openai chat, two turns",
        chat(tool("a"), tool("b"), ALSO, tool("d"), tool("e")),
        chat(tool("b"), tool("a"), ALSO, tool("e"), tool("d")),
        [("b", "a"), ("e", "d")],
    ),
    (
        "openai responses",
        {"input": [USER, output("a"), output("b")]},
        {"input": [USER, output("b"), output("a")]},
        [("b", "a")],
    ),
    (
        "openai responses, custom tools",
        {"input": [{**output("a"), "type": "custom_tool_call_output"}, output("b")]},
        {"input": [output("b"), {**output("a"), "type": "custom_tool_call_output"}]},
        [("b", "a")],
    ),
    (
        "anthropic",
        claude(result("a"), result("b")),
        claude(result("b"), result("a")),
        [("b", "a")],
    ),
    (
        "anthropic, text behind the results",
        claude(result("a"), result("b"), {"type": "text", "text": "and"}),
        claude(result("b"), result("a"), {"type": "text", "text": "and"}),
        [("b", "a")],
    ),
    (
        "anthropic, the mark of a cache stands at the last one",
        claude(result("a"), result("b", cache_control={"type": "ephemeral"})),
        claude(result("b"), result("a", cache_control={"type": "ephemeral"})),
        [("b", "a")],
    ),
    (
        "anthropic, a message for each",
        {"messages": [USER, *({"role": "user", "content": [result(key)]} for key in "ab")]},
        {"messages": [USER, *({"role": "user", "content": [result(key)]} for key in "ba")]},
        [("b", "a")],
    ),
    (
        "gemini, by id",
        gemini(response("f", "1"), response("f", "2")),
        gemini(response("f", "2"), response("f", "1")),
        [("2", "1")],
    ),
    (
        "gemini, by name where there is no id",
        gemini(response("f"), response("g")),
        gemini(response("g"), response("f")),
        [("g", "f")],
    ),
    (
        "gemini's code assist",
        {"request": gemini(response("f", "1"), response("f", "2"))},
        {"request": gemini(response("f", "2"), response("f", "1"))},
        [("2", "1")],
    ),
    (
        "bedrock",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": key, "content": []}} for key in "ab"],
                }
            ]
        },
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": key, "content": []}} for key in "ba"],
                }
            ]
        },
        [("b", "a")],
    ),
]


@pytest.mark.parametrize(
    ("what", "one", "other", "blocks"), SAME, ids=lambda value: str(value)[:30]
)
def test_another_order_of_results_is_the_same_arrangement(
    what: str, one: Json, other: Json, blocks: list[tuple[str, ...]]
) -> None:
    """Sorted by call id both say the same; the order that each had is told apart."""
    first, second = copy.deepcopy(one), copy.deepcopy(other)
    assert arrange_results(second) == blocks
    assert sorted(map(sorted, arrange_results(first))) == sorted(map(sorted, blocks))
    assert first == second


OTHER = [
    ("a result says something else", chat(tool("a"), tool("b")), chat(tool("b"), tool("a", "X"))),
    ("two results in one another's place", chat(tool("a", "B"), tool("b", "A")), chat(tool("b"), tool("a"))),
    ("a result is missing", chat(tool("a"), tool("b")), chat(tool("b"))),
    ("a result stands twice", chat(tool("a"), tool("a")), chat(tool("a"))),
    (
        "a turn of the model between them",
        chat(tool("a"), ALSO, tool("d")),
        chat(tool("d"), ALSO, tool("a")),
    ),
    (
        "a message of the user between them",
        chat(tool("a"), USER, tool("b")),
        chat(tool("b"), USER, tool("a")),
    ),
    (
        "text between them",
        claude(result("a"), {"type": "text", "text": "x"}, result("b")),
        claude(result("b"), {"type": "text", "text": "x"}, result("a")),
    ),
    (
        "results of one name without ids",
        gemini({"functionResponse": {"name": "f", "response": {"r": 1}}}, {"functionResponse": {"name": "f", "response": {"r": 2}}}),
        gemini({"functionResponse": {"name": "f", "response": {"r": 2}}}, {"functionResponse": {"name": "f", "response": {"r": 1}}}),
    ),
    (
        "the calls themselves",
        {"input": [{"type": "function_call", "call_id": key} for key in "ab"]},
        {"input": [{"type": "function_call", "call_id": key} for key in "ba"]},
    ),
    (
        "messages of the user",
        {"messages": [{"role": "user", "content": text} for text in "ab"]},
        {"messages": [{"role": "user", "content": text} for text in "ba"]},
    ),
    ("a list of something else", {"items": [tool("a"), tool("b")]}, {"items": [tool("b"), tool("a")]}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "one", "other"), OTHER, ids=lambda value: str(value)[:40])
def test_what_differs_in_more_than_order_stays_another(what: str, one: Json, other: Json) -> None:
    """Only maximal blocks of results are sorted, each by the keys of its calls."""
    arrange_results(one)
    arrange_results(other)
    assert one != other


@pytest.mark.parametrize(
    "body",
    [
        *(None, 1, "x", [], {}, {"messages": None}, {"messages": [None, 1, []]}, {"input": "text"}),
        {"messages": [{"role": "tool"}, {"role": "tool", "tool_call_id": 7}]},
        {"contents": [{"parts": [{"functionResponse": None}]}]},
        {"request": []},
    ],
    ids=json.dumps,
)
def test_what_has_no_results_is_left_as_it_is(body: Json) -> None:
    """Whatever comes: no error, and nothing is moved."""
    before = copy.deepcopy(body)
    assert arrange_results(body) == []
    assert body == before
