"""What requests to models declare of their answers: with the samples of every dialect, and case by case."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.contracts.check import FINE, Checked
from playhead.tape.contracts.check_model_output import check_answer, output_schema
from playhead.tape.dialects import read_request, read_response
from playhead.tape.exchange import Request, Response
from playhead.tests.support.counts import tries
from playhead.tests.support.dialects import (
    cut,
    load_sample,
    make_lines,
    make_request,
    make_response,
    make_stream,
    sample_names,
)


def check(request: Request, response: Response) -> Checked:
    return check_answer(request, response, response)


def told(checked: Checked) -> list[tuple[str, str]]:
    return [(one.what, one.text) for one in checked.violations]


# ---- the samples -----------------------------------------------------------------------------------


def _calling() -> list[str]:
    found = []
    for name in sample_names():
        answer = read_response(*load_sample(name))
        if answer is not None and answer.tool_calls:
            found.append(name)
    return found


CALLING = _calling()


def _body(request: Request) -> Any:
    return json.loads(request.body)


def _demanding(tree: Any) -> Any:
    """Have every tool ask for an argument that no answer in the samples has."""
    if isinstance(tree, list):
        return [_demanding(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    if isinstance(tree.get("properties"), dict):
        return {**tree, "required": ["missing"]}
    return {key: _demanding(value) for key, value in tree.items()}


def _tools(request: Request, change: Any) -> Request:
    """Change the tools of a request, wherever they stand."""
    body = _body(request)
    holder = body.get("toolConfig", body)
    holder["tools"] = change(holder["tools"])
    return replace(request, body=json.dumps(body).encode())


def test_every_dialect_with_tools_has_a_sample() -> None:
    """Whole and streamed."""
    dialects = {asked.dialect for name in CALLING if (asked := read_request(load_sample(name)[0]))}
    assert dialects == {
        *("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse"),
        *("bedrock-invoke", "cohere", "mistral", "ollama"),
    }


@pytest.mark.parametrize("name", sample_names())
def test_what_models_really_said_is_as_declared(name: str) -> None:
    """Every sample, with whatever it declares."""
    assert check(*load_sample(name)) == FINE


@pytest.mark.parametrize("name", CALLING)
def test_a_missing_argument_is_found_in_every_dialect(name: str) -> None:
    """Streamed or whole: the tool's name, the path, what was expected and what was found."""
    request, response = load_sample(name)
    checked = check(_tools(request, _demanding), response)
    assert checked.violations
    for one in checked.violations:
        assert re.fullmatch(r"\w+: \$\.missing: expected a value, found nothing", one.text)
        assert one.what == "tool_call"
    assert checked.unchecked == ()


@pytest.mark.parametrize("name", CALLING)
def test_a_tool_that_was_not_declared_is_found(name: str) -> None:
    """By its name; the arguments of such a call are held to nothing."""
    request, response = load_sample(name)
    asked = read_request(request)
    assert asked is not None
    names = {tool.name for tool in asked.tools}

    def rename(tools: Any) -> Any:
        text = json.dumps(tools)
        for one in names:
            text = text.replace(json.dumps(one), json.dumps(f"{one}_x"))
        return json.loads(text)

    checked = check(_tools(request, rename), response)
    assert {one.what for one in checked.violations} == {"tool_name"}
    assert {one.place for one in checked.violations} <= names


@pytest.mark.parametrize("name", CALLING)
def test_a_cut_answer_is_not_judged(name: str) -> None:
    """It is not what would have come."""
    request, response = load_sample(name)
    changed = _tools(request, _demanding)
    assert check(changed, cut(response, len(response.body) - 40)).violations == ()
    assert check(changed, replace(response, status=500)) == FINE


# ---- case by case ----------------------------------------------------------------------------------

OPENAI = "https://api.openai.com/v1/chat/completions"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def chat(**more: Any) -> Request:
    return make_request(OPENAI, {"model": "m", "messages": [], **more})


def function(name: str = "weather", parameters: Any = CITY) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def said(
    content: str | None = None,
    calls: Sequence[tuple[str, str]] = (),
    finish: str | None = "stop",
    **more: Any,
) -> Response:
    tools = [{"id": "c", "function": {"name": name, "arguments": text}} for name, text in calls]
    message = {"role": "assistant", "content": content, "tool_calls": tools, **more}
    return make_response({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})


@pytest.mark.parametrize(
    ("tools", "calls", "expected"),
    [
        ([function()], [("weather", '{"city": "x"}')], []),
        ([function()], [("weather", "{}")], ["weather: $.city: expected a value, found nothing"]),
        ([function()], [("weather", "")], ["weather: $.city: expected a value, found nothing"]),
        ([function()], [("weather", "null")], ["weather: $: expected object, found null"]),
        ([function()], [("weather", '{"city"')], ["weather: $: expected JSON, found 7 characters that are none"]),
        ([function()], [("wether", "{}")], ["wether: expected a tool that the request declares: weather, found one that it does not"]),
        # each call by itself
        ([function(), function("b", {})], [("weather", '{"city": 1}'), ("b", "[]"), ("weather", "1")],
         ["weather: $.city: expected string, found 1", "weather: $: expected object, found 1"]),
        # what declares nothing of arguments
        ([function(parameters=None)], [("weather", '{"x": 1}')], []),
        ([function(parameters={})], [("weather", "")], []),
        ([{"type": "custom", "custom": {"name": "weather"}}], [("weather", "free")], []),
        # no tools at all: they may be kept at the provider
        ([], [("weather", "{}")], []),
    ],
)  # fmt: skip
def test_tool_calls(tools: Any, calls: Any, expected: list[str]) -> None:
    """Held against the schema of the tool of that name."""
    checked = check(chat(tools=tools), said(calls=calls, finish="tool_calls"))
    assert [one.text for one in checked.violations] == expected


SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": CITY}}


@pytest.mark.parametrize(
    ("given", "answer", "expected"),
    [
        (SCHEMA, said('{"city": "x"}'), []),
        (SCHEMA, said('{"city": 1}'), ["$.city: expected string, found 1"]),
        (SCHEMA, said("Sure! {}"), ["$: expected JSON, found 8 characters that are none"]),
        (SCHEMA, said(""), ["$: expected JSON, found nothing"]),
        ({"type": "json_object"}, said("[1]"), ["$: expected object, found [1]"]),
        ({"type": "json_object"}, said("{}"), []),
        ({"type": "json_object", "schema": CITY}, said("{}"), ["$.city: expected a value, found nothing"]),
        ({"type": "text"}, said("anything"), []),
        (None, said("anything"), []),
        # what is not the answer
        (SCHEMA, said('{"city', finish="length"), []),
        (SCHEMA, said("no", finish="content_filter"), []),
        (SCHEMA, said(None, refusal="I will not"), []),
        (SCHEMA, said("let me see", [("weather", "{}")], "tool_calls"), []),
    ],
)  # fmt: skip
def test_what_is_said(given: Any, answer: Response, expected: list[str]) -> None:
    """Held against the format where it is the answer, said to its end."""
    checked = check(chat(response_format=given), answer)
    assert [one.text for one in checked.violations] == expected
    assert {one.what for one in checked.violations} <= {"output"}


def test_every_choice_is_judged() -> None:
    """A request may ask for several."""
    texts = ("{}", '{"city": "x"}', "[]")
    choices = [
        {"index": at, "message": {"content": text}, "finish_reason": "stop"}
        for at, text in enumerate(texts)
    ]
    checked = check(chat(response_format=SCHEMA), make_response({"choices": choices}))
    assert len(checked.violations) == 2


ANTHROPIC = "https://api.anthropic.com/v1/messages"
RESPONSES = "https://api.openai.com/v1/responses"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent"
CONVERSE = "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"
COHERE = "https://api.cohere.com/v2/chat"
OLLAMA = "http://localhost:11434/api/chat"
TEXT = '{"city": 1}'
BLOCK = {"type": "text", "text": TEXT}
SAID_BY = {
    ANTHROPIC: {"type": "message", "content": [BLOCK], "stop_reason": "end_turn"},
    RESPONSES: {
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TEXT}]}],
    },
    GEMINI: {"candidates": [{"content": {"parts": [{"text": TEXT}]}, "finishReason": "STOP"}]},
    CONVERSE: {"output": {"message": {"content": [{"text": TEXT}]}}, "stopReason": "end_turn"},
    COHERE: {"message": {"content": [BLOCK]}, "finish_reason": "COMPLETE"},
    OLLAMA: {"message": {"content": TEXT}, "done": True, "done_reason": "stop"},
}  # fmt: skip
CAPITALS = {
    "type": "OBJECT",
    "properties": {"city": {"type": "STRING", "nullable": True, "minLength": "1"}},
}


@pytest.mark.parametrize(
    ("url", "declared", "expected"),
    [
        (ANTHROPIC, {"output_config": {"format": {"type": "json_schema", "schema": CITY}}}, "string"),
        (ANTHROPIC, {"output_format": {"type": "json_schema", "schema": CITY}}, "string"),
        (RESPONSES, {"input": "x", "text": {"format": {"type": "json_schema", "schema": CITY}}}, "string"),
        (GEMINI, {"generationConfig": {"responseJsonSchema": CITY}}, "string"),
        (GEMINI, {"generationConfig": {"responseSchema": CAPITALS}}, "null or string"),
        (GEMINI, {"generation_config": {"response_schema": CAPITALS}}, "null or string"),
        (CONVERSE, {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {
            "jsonSchema": {"schema": json.dumps(CITY)}}}}}, "string"),
        (COHERE, {"response_format": {"type": "json_object", "schema": CITY}}, "string"),
        (OLLAMA, {"format": CITY}, "string"),
    ],
)  # fmt: skip
def test_formats_of_every_provider(url: str, declared: dict[str, Any], expected: str) -> None:
    """Each declares it in words of its own."""
    base = {"contents": []} if url == GEMINI else {"messages": [], "model": "m"}
    checked = check(make_request(url, {**base, **declared}), make_response(SAID_BY[url]))
    assert told(checked) == [("output", f"$.city: expected {expected}, found 1")]


@pytest.mark.parametrize(
    ("url", "declared", "schema"),
    [
        (GEMINI, {"generationConfig": {"responseMimeType": "application/json"}}, {}),
        (GEMINI, {"generationConfig": {"responseMimeType": "text/plain"}}, None),
        (OLLAMA, {"format": "json"}, {}),
        (OLLAMA, {"format": ""}, None),
        (OPENAI, {"response_format": {"type": "json_schema"}}, {}),
        (OPENAI, {"response_format": {"type": "grammar", "grammar": "x"}}, None),
        (OPENAI, {"response_format": 3}, None),
    ],
)
def test_json_without_a_schema_and_what_is_none(url: str, declared: Any, schema: Any) -> None:
    """JSON of any kind, or anything."""
    base = {"contents": []} if url == GEMINI else {"messages": [], "model": "m"}
    asked = read_request(make_request(url, {**base, **declared}))
    assert asked is not None
    assert output_schema(asked) == schema


def test_a_word_of_an_enumeration_is_said_without_quotes() -> None:
    """At Gemini, where text/x.enum is asked for."""
    config = {
        "responseMimeType": "text/x.enum",
        "responseSchema": {"type": "STRING", "enum": ["Rock", "Jazz"]},
    }
    request = make_request(GEMINI, {"contents": [], "generationConfig": config})
    for word, count in (("Jazz", 0), ("Polka", 1)):
        answer = {"candidates": [{"content": {"parts": [{"text": word}]}, "finishReason": "STOP"}]}
        assert check(request, make_response(answer)).count == count


def test_tools_of_the_provider_are_not_undeclared() -> None:
    """OpenAI calls them by another name than they were declared by."""
    tools = [
        {"type": "computer_use_preview"},
        {"type": "function", "name": "f", "parameters": CITY},
    ]
    request = make_request(RESPONSES, {"model": "m", "input": "x", "tools": tools})
    output: list[dict[str, Any]] = [
        {"type": "computer_call", "call_id": "c", "action": {"type": "click"}},
        {"type": "function_call", "call_id": "d", "name": "g", "arguments": "{}"},
    ]
    checked = check(request, make_response({"status": "completed", "output": output}))
    assert [(one.what, one.place) for one in checked.violations] == [("tool_name", "g")]


def test_a_schema_that_cannot_be_read_is_noted_and_holds_nothing() -> None:
    """It is the request's own, and perhaps one that its provider understands."""
    request = chat(tools=[function(parameters={"properties": {"a": {"pattern": "(?=x)"}}})])
    checked = check(request, said(calls=[("weather", '{"a": "x"}')], finish="tool_calls"))
    assert checked.violations == ()
    assert checked.unchecked[0].startswith("tool call weather: its schema cannot be read")


def test_streams_are_judged_when_they_are_whole() -> None:
    """Pieces of arguments are put together; lines of JSON too."""
    first = {"index": 0, "id": "c", "function": {"name": "weather", "arguments": '{"ci'}}
    rest = {"index": 0, "function": {"arguments": 'ty": 1}'}}
    chunks = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
        for call in (first, rest)
    ]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    request = chat(tools=[function()], stream=True)
    expected = [("tool_call", "weather: $.city: expected string, found 1")]
    assert told(check(request, make_stream(*chunks, end, done=True))) == expected
    assert check(request, make_stream(*chunks)).violations == ()
    asked = make_request(OLLAMA, {"model": "m", "messages": [], "tools": [function()]})
    call = {"function": {"name": "weather", "arguments": {"city": 1}}}
    lines = [{"message": {"content": "", "tool_calls": [call]}}, {"message": {}, "done": True}]
    assert told(check(asked, make_lines(*lines))) == expected


def test_values_are_shown_from_the_redacted_copy() -> None:
    """The schema is held against what came."""
    schema = {"properties": {"key": {"pattern": "^x$"}}}
    request = chat(tools=[function(parameters=schema)], response_format=None)
    came = said(calls=[("weather", '{"key": "secret"}')], finish="tool_calls")
    shown = said(calls=[("weather", '{"key": "XXXXXX"}')], finish="tool_calls")
    (one,) = check_answer(request, came, shown).violations
    assert one.found == '"XXXXXX"'


@tries(20, 1000)
@given(st.sampled_from(CALLING), st.data())
def test_broken_bytes_are_never_an_error(name: str, data: st.DataObject) -> None:
    """What cannot be read is not judged, or is a violation."""
    request, response = load_sample(name)
    bodies = []
    for body in (request.body, response.body):
        at = data.draw(st.integers(0, len(body)))
        gone = data.draw(st.integers(0, 20))
        put = data.draw(st.sampled_from([b"", b"null", b"{}", b"[1]", b'"x"', b"\xff", b"1e999"]))
        bodies.append(body[:at] + put + body[at + gone :])
    checked = check(replace(request, body=bodies[0]), replace(response, body=bodies[1], chunks=()))
    assert checked.count >= len(checked.violations)
