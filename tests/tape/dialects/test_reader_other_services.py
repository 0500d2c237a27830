"""Ollama, Cohere, Mistral, and the completions and embeddings of OpenAI: what they do differently."""

from typing import Any

import pytest

from playhead.tape.dialects import (
    Finish,
    Message,
    Other,
    Part,
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
from playhead.tests.support.dialects import (
    make_lines,
    make_request,
    make_response,
    make_stream,
)

OLLAMA = "http://localhost:11434/api"
COHERE = "https://api.cohere.com"
MISTRAL = "https://api.mistral.ai/v1"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize(
    ("url", "body", "dialect"),
    [
        # Ollama's paths are everybody's
        (f"{OLLAMA}/chat", b"", "ollama"),
        ("https://ollama.com/api/generate", b"", "ollama"),
        ("http://10.0.0.7/api/chat", CHAT, "ollama"),
        ("https://app.example.com/api/chat", {"messages": [], "id": "x"}, None),
        (f"{OLLAMA}/tags", b"", None),
        # Cohere's too
        (f"{COHERE}/v2/chat", b"", "cohere"),
        ("https://gateway/cohere/v2/chat", CHAT, "cohere"),
        ("https://app.example.com/v2/chat", {"room": 1}, None),
        (f"{COHERE}/v1/chat", b"", "cohere-v1"),
        ("https://app.example.com/v1/chat", {"message": "Hi"}, None),
        (f"{COHERE}/v1/generate", b"", "cohere-generate"),
        (f"{COHERE}/v1/rerank", {"query": "x"}, None),
        # Mistral's own, and what it shares with OpenAI
        (f"{MISTRAL}/chat/completions", b"", "mistral"),
        (f"{MISTRAL}/fim/completions", b"", "mistral"),
        (f"{MISTRAL}/embeddings", b"", "openai-embeddings"),
        ("http://localhost/v1/fim/completions", {"prompt": "a"}, "mistral"),
        # OpenAI
        ("http://localhost:8000/v1/completions", b"", "openai-completions"),
        (
            "https://x.openai.azure.com/openai/deployments/d/embeddings",
            b"",
            "openai-embeddings",
        ),
        ("https://api.openai.com/v1/images/generations", {"prompt": "x"}, None),
        ("https://api.openai.com/v1/moderations", {"input": "x"}, None),
        ("https://app.example.com/completions", {"prompt": 1}, None),
    ],
)
def test_a_dialect_is_found(url: str, body: object, dialect: str | None) -> None:
    """By host and path, and by shape where the path is anybody's."""
    found = find_dialect(make_request(url, body))
    assert (found and found.name) == dialect


def test_only_what_asks_is_claimed() -> None:
    """A GET at the same path asks no model."""
    assert find_dialect(make_request(f"{OLLAMA}/chat", method="GET")) is None


# ---- Ollama ------------------------------------------------------------------------------------------


def test_ollama_streams_unless_it_is_told_not_to() -> None:
    """The other way round than everybody."""
    for stream, streamed in ((None, True), (True, True), (False, False)):
        found = read_request(make_request(f"{OLLAMA}/chat", {**CHAT, "stream": stream}))
        assert found is not None
        assert found.streamed is streamed


def test_ollamas_text_is_read_with_its_system_prompt() -> None:
    """And options in a place of their own."""
    body = {"model": "m", "prompt": "Hi", "system": "Be brief.", "options": {"num_predict": 9}}
    found = read_request(make_request(f"{OLLAMA}/generate", body))
    assert found is not None
    assert (found.system, found.sampling) == ("Be brief.", Sampling(max_tokens=9))
    assert found.messages == (Message("user", (Text("Hi"),)),)


def test_ollamas_results_name_the_tool() -> None:
    """There are no ids."""
    body = {"model": "m", "messages": [{"role": "tool", "tool_name": "f", "content": "ok"}]}
    found = read_request(make_request(f"{OLLAMA}/chat", body))
    assert found is not None
    assert found.messages == (Message("tool", (ToolResult(None, (Text("ok"),), "f"),)),)


LINES = [
    {"model": "m:1", "response": "", "thinking": "hm", "done": False},
    {"model": "m:1", "response": "Hel", "done": False},
    {"model": "m:1", "response": "lo", "done": False},
    {
        "model": "m:1",
        "response": "",
        "done": True,
        "done_reason": "length",
        "prompt_eval_count": 3,
        "eval_count": 5,
    },
]


@pytest.mark.parametrize("content_type", ["application/x-ndjson", "application/json", "text/plain"])
def test_ollamas_lines_are_read_whatever_they_are_called(content_type: str) -> None:
    """Proxies before it rename them."""
    found = read_response(
        make_request(f"{OLLAMA}/generate", {"model": "m", "prompt": "Hi"}),
        make_lines(*LINES, content_type=content_type),
    )
    assert found is not None
    assert (found.text, found.model, found.usage) == ("Hello", "m:1", Usage(3, 5))
    assert found.message is not None
    assert found.message.thinking == "hm"
    assert (found.finish, found.complete, found.first_token_us) == (Finish.LENGTH, True, 1000)


def test_ollama_gave_no_reasons_once() -> None:
    """Then `done` is one."""
    body = {"message": {"role": "assistant", "content": "a"}, "done": True}
    found = read_response(make_request(f"{OLLAMA}/chat", CHAT), make_response(body))
    assert found is not None
    assert (found.finish, found.finish_reason) == (Finish.STOP, None)


def test_an_error_between_ollamas_lines_is_noted() -> None:
    """It has status 200."""
    lines = make_lines({"message": {"content": "a"}, "done": False}, {"error": "out of memory"})
    found = read_response(make_request(f"{OLLAMA}/chat", CHAT), lines)
    assert found is not None
    assert found.error is not None
    assert (found.text, found.error.message) == ("a", "out of memory")
    assert not found.complete


# ---- Cohere ------------------------------------------------------------------------------------------


def test_coheres_answer_is_read() -> None:
    """The tokens there were count, not those that are billed."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {
        "role": "assistant",
        "tool_plan": "First.",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hello"}],
        "tool_calls": [call],
    }
    usage = {
        "billed_units": {"input_tokens": 3, "output_tokens": 5},
        "tokens": {"input_tokens": 63.0, "output_tokens": 15.0},
    }
    body = {"id": "1", "message": message, "finish_reason": "TOOL_CALL", "usage": usage}
    found = read_response(make_request(f"{COHERE}/v2/chat", CHAT), make_response(body))
    assert found is not None
    assert found.message is not None
    assert found.message.parts == (
        Thinking("First."),
        Thinking("hm"),
        Text("Hello"),
        ToolCall("c1", "f", {}, "{}"),
    )
    assert (found.finish, found.usage) == (Finish.TOOL_CALLS, Usage(63, 15))


def test_coheres_stream_of_calls_in_parallel() -> None:
    """Each under its index."""

    def of(kind: str, index: int, call: dict[str, Any]) -> dict[str, Any]:
        return {"type": kind, "index": index, "delta": {"message": {"tool_calls": call}}}

    events: list[dict[str, Any]] = [{"type": "message-start", "id": "1"}]
    for index, name in enumerate("fg"):
        function = {"name": name, "arguments": '{"a"'}
        events += [
            of("tool-call-start", index, {"id": name, "type": "function", "function": function}),
            of("tool-call-delta", index, {"function": {"arguments": ": 1}"}}),
        ]
    events.append({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}})
    found = read_response(make_request(f"{COHERE}/v2/chat", CHAT), make_stream(*events))
    assert found is not None
    assert [(call.id, call.name, call.arguments) for call in found.tool_calls] == [
        ("f", "f", {"a": 1}),
        ("g", "g", {"a": 1}),
    ]


def test_cohere_says_no_with_a_message_alone() -> None:
    """Without an `error` around it."""
    found = read_response(
        make_request(f"{COHERE}/v2/chat", CHAT), make_response({"message": "invalid token"}, 401)
    )
    assert found is not None
    assert found.error is not None
    assert found.error.message == "invalid token"


def test_coheres_first_version_is_read() -> None:
    """History apart, results of tools without ids."""
    body = {
        "model": "command-r",
        "message": "",
        "preamble": "Be brief.",
        "chat_history": [
            {"role": "USER", "message": "Hi"},
            {"role": "CHATBOT", "tool_calls": [{"name": "f", "parameters": {"a": 1}}]},
        ],
        "tool_results": [{"call": {"name": "f"}, "outputs": [{"b": 2}]}],
        "tools": [
            {"name": "f", "description": "d", "parameter_definitions": {"a": {"type": "int"}}}
        ],
    }
    found = read_request(make_request(f"{COHERE}/v1/chat", body))
    assert found is not None
    assert found.system == "Be brief."
    assert found.tools == (Tool("f", "d", {"a": {"type": "int"}}),)
    assert found.messages == (
        Message("user", (Text("Hi"),)),
        Message("assistant", (ToolCall(None, "f", {"a": 1}),)),
        Message("tool", (ToolResult(None, (Other("json", {"b": 2}),), "f"),)),
    )


def test_coheres_first_version_may_call_tools() -> None:
    """In one piece and at the end of a stream."""
    answer = {
        "generation_id": "1",
        "text": "",
        "tool_calls": [{"name": "f", "parameters": {"a": 1}}],
        "finish_reason": "COMPLETE",
        "meta": {"billed_units": {"input_tokens": 3, "output_tokens": 5}},
    }
    end = {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": answer}
    request = make_request(f"{COHERE}/v1/chat", {"message": "Hi"})
    for response in (make_response(answer), make_lines(end), make_stream(end)):
        found = read_response(request, response)
        assert found is not None
        assert found.tool_calls == (ToolCall(None, "f", {"a": 1}),)
        assert (found.finish, found.usage) == (Finish.TOOL_CALLS, Usage(3, 5))
        assert found.complete


def test_coheres_texts_come_in_lines() -> None:
    """The last holds all."""
    end = {"id": "1", "generations": [{"text": "Hello", "finish_reason": "COMPLETE"}]}
    lines = make_lines(
        {"text": "Hel", "is_finished": False},
        {"text": "lo", "is_finished": False},
        {"is_finished": True, "finish_reason": "COMPLETE", "response": end},
    )
    request = make_request(f"{COHERE}/v1/generate", {"prompt": "Hi", "stream": True})
    for response in (lines, make_response(end)):
        found = read_response(request, response)
        assert found is not None
        assert (found.text, found.finish, found.complete) == ("Hello", Finish.STOP, True)


# ---- Mistral -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("a", (Text("a"),)),
        (
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"text": "m"}]},
                {"type": "text", "text": "a"},
            ],
            (Thinking("hm"), Text("a")),
        ),
        (
            [{"type": "reference", "reference_ids": [1]}],
            (Other("reference", {"type": "reference", "reference_ids": [1]}),),
        ),
    ],
)
def test_mistrals_contents_are_read(content: object, parts: tuple[Part, ...]) -> None:
    """Thoughts are parts of them, in one piece and in streams."""
    request = make_request(f"{MISTRAL}/chat/completions", CHAT)
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": "model_length"}
    whole = make_response({"choices": [{**choice, "message": message}]})
    for response in (whole, make_stream({"choices": [{**choice, "delta": message}]}, done=True)):
        found = read_response(request, response)
        assert found is not None
        assert found.message is not None
        assert found.message.parts == parts
        assert (found.dialect, found.finish) == ("mistral", Finish.LENGTH)


def test_mistrals_arguments_may_be_a_value() -> None:
    """Text is the rule."""
    call = {"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    found = read_response(make_request(f"{MISTRAL}/chat/completions", CHAT), make_response(body))
    assert found is not None
    assert found.tool_calls == (ToolCall("1", "f", {"a": 1}),)


def test_code_between_two_ends_is_a_message() -> None:
    """Of two texts."""
    body = {"model": "codestral", "prompt": "def f(", "suffix": "return 1", "random_seed": 3}
    found = read_request(make_request(f"{MISTRAL}/fim/completions", body))
    assert found is not None
    assert found.messages == (Message("user", (Text("def f("), Text("return 1"))),)
    assert (found.dialect, found.sampling.seed) == ("mistral", 3)


def test_an_agent_stands_in_the_place_of_a_model() -> None:
    """It has its own."""
    body = {"agent_id": "ag:1", "messages": []}
    found = read_request(make_request(f"{MISTRAL}/agents/completions", body))
    assert found is not None
    assert found.model == "ag:1"


# ---- OpenAI's others ---------------------------------------------------------------------------------


def test_a_text_completion_is_read() -> None:
    """Each prompt a message, each text a choice."""
    request = make_request(
        "http://localhost:8000/v1/completions",
        {"model": "m", "prompt": ["a", "b"], "max_tokens": 9, "stop": ["END"]},
    )
    asked = read_request(request)
    assert asked is not None
    assert [message.text for message in asked.messages] == ["a", "b"]
    assert asked.sampling == Sampling(max_tokens=9, stop=("END",))
    choices = [{"index": 0, "text": "A", "finish_reason": "stop"}, {"index": 1, "text": "B"}]
    found = read_response(request, make_response({"choices": choices}))
    assert found is not None
    assert [choice.message.text for choice in found.choices] == ["A", "B"]
    events = [{"choices": [choice]} for choice in choices]
    streamed = read_response(request, make_stream(*events, done=True))
    assert streamed is not None
    assert streamed.choices == found.choices


def test_embeddings_have_usage_alone() -> None:
    """Their vectors are left in the body."""
    request = make_request("https://api.openai.com/v1/embeddings", {"model": "m", "input": "a"})
    asked = read_request(request)
    assert asked is not None
    assert (asked.model, asked.messages) == ("m", (Message("user", (Text("a"),)),))
    body = {"data": [{"embedding": [0.1]}], "model": "m", "usage": {"prompt_tokens": 1}}
    found = read_response(request, make_response(body))
    assert found is not None
    assert (found.choices, found.usage) == ((), Usage(1))
