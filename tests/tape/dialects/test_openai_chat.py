"""OpenAI chat completions and those that speak them: what each writes in another place is found."""

from typing import Any

import pytest

from playhead.tape.dialects import (
    Finish,
    Image,
    InferenceRequest,
    InferenceResponse,
    Message,
    Other,
    Part,
    Refusal,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    find_dialect,
    read_request,
    read_response,
)
from playhead.tape.exchange import Response
from playhead.tests.support.dialects import make_request, make_response, make_stream

URL = "https://api.openai.com/v1/chat/completions"
ASKED = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}


def ask(body: dict[str, Any], url: str = URL) -> InferenceRequest:
    """Read a request with a chat's minimum and this."""
    found = read_request(make_request(url, {**ASKED, **body}))
    assert found is not None
    return found


def answer(response: Response) -> InferenceResponse:
    """Read a response to a chat."""
    found = read_response(make_request(URL, ASKED), response)
    assert found is not None
    return found


def say(message: dict[str, Any], finish: str | None = "stop", **more: object) -> InferenceResponse:
    """Read a completion with one message."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return answer(make_response({"id": "c1", "model": "m1", "choices": [choice], **more}))


def chunk(delta: dict[str, Any], finish: str | None = None, **more: object) -> dict[str, Any]:
    """Give one chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "model": "m1", "choices": [choice], **more}


# ---- requests ----------------------------------------------------------------------------------------


def test_a_request_is_read() -> None:
    """Every parameter that has a place in the view."""
    schema: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
    asked = ask(
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "system", "content": [{"type": "text", "text": "And kind."}]},
                {"role": "user", "content": "Hi", "name": "eve"},
                {"role": "system", "content": "Hurry."},
            ],
            "temperature": 0.5,
            "top_p": 1,
            "max_tokens": 5,
            "max_completion_tokens": 9,
            "seed": 7,
            "stop": "END",
            "stream": True,
            "response_format": {"type": "json_object"},
            "reasoning_effort": "low",
            "tool_choice": "auto",
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "w", "description": "d", "parameters": schema},
                },
                {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}},
            ],
        }
    )
    assert asked.model == "gpt-5"
    assert asked.streamed
    assert asked.system == "Be brief.\nAnd kind."
    assert asked.messages == (
        Message("user", (Text("Hi"),), "eve"),
        Message("system", (Text("Hurry."),)),
    )
    assert asked.sampling == Sampling(
        temperature=0.5,
        top_p=1,
        max_tokens=9,
        seed=7,
        stop=("END",),
        response_format={"type": "json_object"},
        thinking="low",
        tool_choice="auto",
    )
    assert asked.tools == (
        Tool("w", "d", schema),
        Tool("sql", None, {"type": "text"}, "custom"),
    )


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        # contents
        ({"role": "user", "content": None}, ()),
        ({"role": "user", "content": ""}, ()),
        ({"role": "user", "content": ["a", {"type": "text", "text": "b"}]}, (Text("a"), Text("b"))),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]},
            (Image(None, "https://x"),),
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": "data:image/png;base64,aGk="}],
            },
            (Image("image/png", None, "aGk="),),
        ),
        (
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "aGk="}}]},
            (Other("input_audio", {"type": "input_audio", "input_audio": {"data": "aGk="}}),),
        ),
        # tool calls, and what came of them
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "t1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a": 1}'},
                    },
                    {"id": "t2", "type": "function", "function": {"name": "g", "arguments": "{"}},
                    {"id": "t3", "type": "custom", "custom": {"name": "sql", "input": "select"}},
                ],
            },
            (
                ToolCall("t1", "f", {"a": 1}, '{"a": 1}'),
                ToolCall("t2", "g", None, "{"),
                ToolCall("t3", "sql", None, "select"),
            ),
        ),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": "[]"}},
            (ToolCall(None, "f", [], "[]"),),
        ),
        (
            {"role": "tool", "tool_call_id": "t1", "content": "ok"},
            (ToolResult("t1", (Text("ok"),)),),
        ),
        (
            {"role": "function", "name": "f", "content": "ok"},
            (ToolResult(None, (Text("ok"),), "f"),),
        ),
        # what models said before
        ({"role": "assistant", "refusal": "No.", "content": None}, (Refusal("No."),)),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "r"},
            (Thinking("r"), Text("a")),
        ),
    ],
)
def test_a_message_is_read(item: dict[str, Any], parts: tuple[Part, ...]) -> None:
    """Into parts of the same kinds as everybody's."""
    (message,) = ask({"messages": [item]}).messages
    assert message.parts == parts


def test_functions_are_tools() -> None:
    """The kind before tools."""
    asked = ask({"functions": [{"name": "f", "parameters": {"type": "object"}}]})
    assert asked.tools == (Tool("f", None, {"type": "object"}),)
    assert asked.tools_hash is not None


def test_azure_names_the_model_in_its_path() -> None:
    """Its clients need not say it again."""
    url = "https://x.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=1"
    asked = read_request(make_request(url, {"messages": []}))
    assert asked is not None
    assert asked.model == "my gpt"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1/chat/completions",
        "https://openrouter.ai/api/v1/chat/completions",
        "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        "https://api.githubcopilot.com/chat/completions",
    ],
)
def test_it_is_told_by_its_path_on_any_host(url: str) -> None:
    """There are too many servers to name them."""
    dialect = find_dialect(make_request(url, ASKED))
    assert dialect is not None
    assert dialect.name == "openai-chat"


# ---- answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", Finish.STOP),
        ("length", Finish.LENGTH),
        ("tool_calls", Finish.TOOL_CALLS),
        ("function_call", Finish.TOOL_CALLS),
        ("content_filter", Finish.FILTERED),
        ("something new", Finish.OTHER),
        (None, None),
    ],
)
def test_a_finish_reason_is_kept_and_normalised(reason: str | None, finish: Finish | None) -> None:
    """Both are there."""
    found = say({"content": "a"}, reason)
    assert (found.finish_reason, found.finish) == (reason, finish)


def test_a_forced_tool_call_ends_with_tool_calls() -> None:
    """The provider says `stop` there."""
    found = say({"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]})
    assert (found.finish_reason, found.finish) == ("stop", Finish.TOOL_CALLS)


def test_a_refusal_is_no_text() -> None:
    """It stands in a place of its own."""
    found = say({"content": None, "refusal": "I cannot."})
    assert found.text == ""
    assert found.message is not None
    assert found.message.refusal == "I cannot."


def test_each_choice_is_kept() -> None:
    """A request may ask for several."""
    choices = [
        {"index": at, "message": {"content": text}, "finish_reason": "stop"}
        for at, text in enumerate("ab")
    ]
    found = answer(make_response({"choices": choices}))
    assert [choice.message.text for choice in found.choices] == ["a", "b"]
    assert [choice.index for choice in found.choices] == [0, 1]


@pytest.mark.parametrize(
    ("usage", "figures"),
    [
        # OpenAI
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "total_tokens": 14,
                "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 5, 4, None, 3, 14),
        ),
        # nothing but the old three; details that are null
        (
            {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": None},
            Usage(9, 5),
        ),
        # DeepSeek
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 1},
            Usage(9, None, 8),
        ),
        # LiteLLM before Anthropic
        (
            {"cache_creation_input_tokens": 7, "cache_read_input_tokens": 0},
            Usage(cached_read_tokens=0, cached_write_tokens=7),
        ),
        # xAI counts reasoning beside the output
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            Usage(32, 9, reasoning_tokens=94, total_tokens=135, reasoning_in_output=False),
        ),
        # not stated
        (None, None),
        ({}, None),
    ],
)
def test_usage_is_as_stated(usage: object, figures: Usage | None) -> None:
    """None where nothing is."""
    assert say({"content": "a"}, usage=usage).usage == figures


def test_an_error_is_noted() -> None:
    """With its words, type and code."""
    body = {"error": {"message": "Slow down", "type": "requests", "code": "rate_limit_exceeded"}}
    found = answer(make_response(body, 429))
    assert found.status == 429
    assert found.error is not None
    assert (found.error.message, found.error.type, found.error.code) == (
        "Slow down",
        "requests",
        "rate_limit_exceeded",
    )
    assert found.choices == ()


# ---- streams -----------------------------------------------------------------------------------------


def test_deltas_become_one_message() -> None:
    """Text, thoughts and usage; the first token is the first that is not empty."""
    found = answer(
        make_stream(
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "hm"}),
            chunk({"content": "He"}),
            chunk({"content": "llo"}),
            chunk({}, "stop"),
            {"id": "c1", "model": "m1", "choices": [], "usage": {"prompt_tokens": 3}},
            done=True,
        )
    )
    assert (found.text, found.finish, found.usage) == ("Hello", Finish.STOP, Usage(3))
    assert found.message is not None
    assert found.message.thinking == "hm"
    assert found.complete
    assert (found.first_token_us, found.total_us) == (2000, 7000)


_HALVES = [{"arguments": '{"a"'}, {"arguments": ": 1}"}]


@pytest.mark.parametrize(
    "deltas",
    [
        # OpenAI: two at once, their arguments in turns
        [
            {"index": 0, "id": "x", "type": "function", "function": {"name": "f", "arguments": ""}},
            {"index": 0, "function": _HALVES[0]},
            {"index": 1, "id": "y", "type": "function", "function": {"name": "g", "arguments": ""}},
            {"index": 1, "function": _HALVES[0]},
            {"index": 0, "function": _HALVES[1]},
            {"index": 1, "function": _HALVES[1]},
        ],
        # whole calls, all under the same index
        [
            {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a": 1}'}},
            {"index": 0, "id": "y", "function": {"name": "g", "arguments": '{"a": 1}'}},
        ],
        # whole calls without an index
        [
            {"id": "x", "function": {"name": "f", "arguments": '{"a": 1}'}},
            {"id": "y", "function": {"name": "g", "arguments": '{"a": 1}'}},
        ],
        # no index, in halves; the id repeated, the name too
        [
            {"id": "x", "function": {"name": "f", **_HALVES[0]}},
            {"function": _HALVES[1]},
            {"index": 3, "id": "y", "function": {"name": "g", **_HALVES[0]}},
            {"index": 3, "id": "y", "function": {"name": "g", **_HALVES[1]}},
        ],
    ],
)
def test_tool_calls_come_in_deltas(deltas: list[dict[str, Any]]) -> None:
    """Each server cuts them in its own way."""
    events = [chunk({"tool_calls": [delta]}) for delta in deltas]
    found = answer(make_stream(*events, chunk({}, "tool_calls"), done=True))
    assert [(call.id, call.name, call.arguments) for call in found.tool_calls] == [
        ("x", "f", {"a": 1}),
        ("y", "g", {"a": 1}),
    ]
    assert found.finish is Finish.TOOL_CALLS
    assert found.first_token_us == 1000


def test_the_call_of_a_function_comes_in_deltas_too() -> None:
    """The kind before tools."""
    found = answer(
        make_stream(
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            *(chunk({"function_call": half}) for half in _HALVES),
            chunk({}, "function_call"),
        )
    )
    assert found.tool_calls == (ToolCall(None, "f", {"a": 1}, '{"a": 1}'),)


def test_choices_of_a_stream_are_kept_apart() -> None:
    """Their chunks come in turns; the stream ends when all have ended."""

    def of(index: int, delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}

    events = [of(0, {"content": "a"}), of(1, {"content": "b"}), of(1, {"content": "c"}, "stop")]
    found = answer(make_stream(*events))
    assert [choice.message.text for choice in found.choices] == ["a", "bc"]
    assert not found.complete
    assert answer(make_stream(*events, of(0, {}, "length"))).complete


def test_azure_sends_a_first_chunk_of_its_filters() -> None:
    """It has no choices and no model."""
    first = {"choices": [], "model": "", "id": "", "prompt_filter_results": [{"prompt_index": 0}]}
    found = answer(make_stream(first, chunk({"content": "a"}, "stop"), done=True))
    assert (found.model, found.text, found.first_token_us) == ("m1", "a", 2000)


def test_usage_is_found_where_others_put_it() -> None:
    """Groq beside the choices, Moonshot inside one."""
    groq = chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 1}})
    moonshot = chunk({}, "stop")
    moonshot["choices"][0]["usage"] = {"prompt_tokens": 1}
    for last in (groq, moonshot):
        assert answer(make_stream(chunk({"content": "a"}), last)).usage == Usage(1)


def test_an_error_in_a_stream_is_noted_beside_what_was_said() -> None:
    """The stream does not end."""
    found = answer(make_stream(chunk({"content": "He"}), {"error": {"message": "overloaded"}}))
    assert found.text == "He"
    assert found.error is not None
    assert found.error.message == "overloaded"
    assert not found.complete


def test_a_broken_piece_makes_a_stream_incomplete() -> None:
    """What stands around it is read."""
    events = make_stream(chunk({"content": "a"}), chunk({"content": "b"}, "stop"), done=True)
    broken = events.body.replace(b'"content": "a"', b'"content": "a')
    headers = {"content-type": "text/event-stream"}
    found = answer(make_response(broken, headers=headers))
    assert (found.text, found.complete) == ("b", False)
