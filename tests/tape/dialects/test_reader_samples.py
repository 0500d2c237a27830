"""What services really send is read: one sample each, streamed and not, with tools, thoughts and errors."""

from dataclasses import replace
from typing import NamedTuple

import pytest

from playhead.tape.dialects import (
    Finish,
    InferenceRequest,
    InferenceResponse,
    Usage,
    read_request,
    read_response,
)
from playhead.tests.support.dialects import cut, load_sample, sample_names

_Call = tuple[str, object]


class Expected(NamedTuple):
    """What has to be read out of one sample."""

    dialect: str
    model: str | None
    """As asked for."""
    served: str | None = None
    text: str = ""
    """How the answer begins."""
    calls: tuple[_Call, ...] = ()
    finish: Finish | None = None
    usage: Usage | None = None
    thinking: str = ""
    """How the thoughts begin."""
    error: str = ""
    """How the error begins."""
    streamed: bool = False
    tools: tuple[str, ...] = ()


# Usage: tokens of input, output, cached_read, cached_write, reasoning, total
EXPECTED = {
    "anthropic_complete_stream": Expected(
        "anthropic-complete",
        "claude-2.1",
        "claude-2.1",
        " Hi i'm",
        finish=Finish.LENGTH,
        streamed=True,
    ),
    "anthropic_error": Expected("anthropic", "claude-4-5-haiku", error="model: claude-4-5-haiku"),
    "anthropic_parallel_tools": Expected(
        "anthropic",
        "claude-3-5-sonnet-20240620",
        "claude-3-5-sonnet-20240620",
        "Certainly! I'd be happy",
        (
            ("get_weather", {"location": "New York, NY", "unit": "fahrenheit"}),
            ("get_time", {"timezone": "America/New_York"}),
        ),
        Finish.TOOL_CALLS,
        Usage(514, 152, cached_in_input=False),
        tools=("get_weather", "get_time"),
    ),
    "anthropic_stream_thinking": Expected(
        "anthropic",
        "claude-haiku-4-5-20251001",
        "claude-haiku-4-5-20251001",
        "1. **Pouch** - references",
        finish=Finish.STOP,
        usage=Usage(46, 133, 0, 0, cached_in_input=False, cached_write_1h_tokens=0),
        thinking="The user wants two names for a pet pelican",
        streamed=True,
    ),
    "anthropic_stream_tools": Expected(
        "anthropic",
        "claude-haiku-4-5-20251001",
        "claude-haiku-4-5-20251001",
        calls=(("pelican_name_generator", {}), ("pelican_name_generator", {})),
        finish=Finish.TOOL_CALLS,
        usage=Usage(542, 62, 0, 0, cached_in_input=False, cached_write_1h_tokens=0),
        streamed=True,
        tools=("pelican_name_generator",),
    ),
    "bedrock_converse_error": Expected(
        "bedrock-converse", "does-not-exist", error="The provided model identifier is invalid."
    ),
    "bedrock_converse_stream_tools": Expected(
        "bedrock-converse",
        "anthropic.claude-3-sonnet-20240229-v1:0",
        None,
        "Okay, let me check the weather",
        (("get_weather", {"location": "Barcelona"}),),
        Finish.TOOL_CALLS,
        Usage(236, 58, total_tokens=294, cached_in_input=False),
        streamed=True,
        tools=("get_weather",),
    ),
    "bedrock_converse_tools": Expected(
        "bedrock-converse",
        "amazon.nova-micro-v1:0",
        None,
        "<thinking> To provide the weather",
        (
            ("get_current_weather", {"location": "Seattle"}),
            ("get_current_weather", {"location": "San Francisco"}),
        ),
        Finish.TOOL_CALLS,
        Usage(415, 190, total_tokens=605, cached_in_input=False),
        tools=("get_current_weather",),
    ),
    "bedrock_invoke_llama": Expected(
        "bedrock-invoke",
        "meta.llama3-1-70b-instruct-v1:0",
        None,
        " post. This is a test post.",
        finish=Finish.LENGTH,
        usage=Usage(5, 10),
    ),
    "bedrock_invoke_stream_anthropic": Expected(
        "bedrock-invoke",
        "us.anthropic.claude-3-5-sonnet-20240620-v1:0",
        "claude-3-5-sonnet-20240620",
        "Certainly! I'll use the get_current_weather function",
        (
            ("get_current_weather", {"location": "Seattle"}),
            ("get_current_weather", {"location": "San Francisco"}),
        ),
        Finish.TOOL_CALLS,
        Usage(392, 133, cached_in_input=False),
        streamed=True,
        tools=("get_current_weather",),
    ),
    "bedrock_invoke_stream_nova": Expected(
        "bedrock-invoke",
        "amazon.nova-micro-v1:0",
        None,
        "Sure! It sounds like you want to communicate a",
        finish=Finish.LENGTH,
        usage=Usage(5, 10, 0, 0, cached_in_input=False),
        streamed=True,
    ),
    "bedrock_invoke_stream_titan": Expected(
        "bedrock-invoke",
        "amazon.titan-text-lite-v1",
        None,
        " comment\nHello! I am an AI model developed",
        finish=Finish.LENGTH,
        usage=Usage(5, 10),
        streamed=True,
    ),
    "cohere_generate": Expected(
        "cohere-generate",
        "command",
        None,
        " there was a fox.",
        finish=Finish.LENGTH,
        usage=Usage(4, 20),
    ),
    "cohere_stream_text": Expected(
        "cohere",
        "command-r-plus-08-2024",
        None,
        "Hello.",
        finish=Finish.STOP,
        usage=Usage(204, 5),
        streamed=True,
    ),
    "cohere_stream_tools": Expected(
        "cohere",
        "command-a-03-2025",
        None,
        calls=(("sales", {"day": "yesterday"}),),
        finish=Finish.TOOL_CALLS,
        usage=Usage(1037, 56, 512),
        thinking="Now I will ask for yesterday.",
        streamed=True,
        tools=("sales",),
    ),
    "cohere_v1_stream": Expected(
        "cohere-v1",
        "command-r-08-2024",
        None,
        "Rome is a city.",
        finish=Finish.STOP,
        usage=Usage(79, 5),
        streamed=True,
    ),
    "gemini_error": Expected("gemini", "gemini-does-not-exist", error="Publisher Model"),
    "gemini_number_words": Expected(
        "gemini",
        "gemini-2.5-pro",
        "gemini-2.5-pro",
        calls=(
            ("get_current_weather", {"location": "New Delhi"}),
            ("get_current_weather", {"location": "San Francisco"}),
        ),
        finish=Finish.TOOL_CALLS,
        usage=Usage(74, 16, reasoning_tokens=200, total_tokens=290, reasoning_in_output=False),
        tools=("get_current_weather",),
    ),
    "gemini_stream_tools": Expected(
        "gemini",
        "gemini-2.0-flash",
        "gemini-2.0-flash",
        calls=(
            ("get_current_temperature", {"city": "Paris"}),
            ("get_current_temperature", {"city": "London"}),
        ),
        finish=Finish.TOOL_CALLS,
        usage=Usage(37, 14, total_tokens=51, reasoning_in_output=False),
        streamed=True,
        tools=("get_current_temperature",),
    ),
    "gemini_thinking": Expected(
        "gemini",
        "gemini-2.5-flash",
        "gemini-2.5-flash",
        '{"operation":"addition"',
        finish=Finish.STOP,
        usage=Usage(321, 28, reasoning_tokens=131, total_tokens=480, reasoning_in_output=False),
        thinking="**Analyzing the User's Statement**",
    ),
    "mcp_initialize": Expected("mcp", None, streamed=True),
    "mcp_sampled": Expected("mcp", None),
    "mcp_tools_call_stream": Expected("mcp", None, streamed=True),
    "mcp_tools_list": Expected("mcp", None),
    "mistral_stream_thinking": Expected(
        "mistral",
        "magistral-medium-latest",
        "magistral-medium-2509",
        "Let me look.",
        (("clock", {"city": "Vienna"}),),
        Finish.TOOL_CALLS,
        Usage(91, 34, total_tokens=125),
        "The clock will know.",
        streamed=True,
        tools=("clock",),
    ),
    "ollama_chat_stream": Expected(
        "ollama",
        "qwen3:8b",
        "qwen3:8b",
        "It rains; and Linz?",
        (("weather", {"city": "Linz"}),),
        Finish.TOOL_CALLS,
        Usage(171, 44),
        "Rain in Graz.",
        streamed=True,
        tools=("weather",),
    ),
    "ollama_generate": Expected(
        "ollama",
        "llama3.1",
        "llama3.1",
        '```\n{\n  "name": "Alice Llama"',
        finish=Finish.STOP,
        usage=Usage(67, 22),
    ),
    "openai_chat_error": Expected("openai-chat", "o1-mini", error="Unsupported parameter: 'stop'"),
    "openai_chat_parallel_tools": Expected(
        "openai-chat",
        "gpt-3.5-turbo",
        "gpt-3.5-turbo-0125",
        calls=(
            ("get_current_weather", {"location": "San Francisco"}),
            ("get_current_weather", {"location": "Boston"}),
        ),
        finish=Finish.TOOL_CALLS,
        usage=Usage(70, 46, total_tokens=116),
        tools=("get_current_weather",),
    ),
    "openai_chat_stream_parallel_tools": Expected(
        "openai-chat",
        "gpt-3.5-turbo",
        "gpt-3.5-turbo-0125",
        calls=(
            ("get_current_weather", {"location": "San Francisco"}),
            ("get_current_weather", {"location": "Boston"}),
        ),
        finish=Finish.TOOL_CALLS,
        streamed=True,
        tools=("get_current_weather",),
    ),
    "openai_chat_stream_reasoning": Expected(
        "openai-chat",
        "google/gemini-2.5-flash",
        "google/gemini-2.5-flash",
        "That's a clever way to put it!",
        finish=Finish.STOP,
        usage=Usage(13, 1003, total_tokens=1016),
        thinking="**Interpreting User Intent**",
        streamed=True,
    ),
    "openai_completions_stream": Expected(
        "openai-completions",
        "gpt-3.5-turbo-instruct",
        "gpt-3.5-turbo-instruct:20230824-v2",
        "\n\nFoo",
        finish=Finish.STOP,
        streamed=True,
    ),
    "openai_embeddings": Expected(
        "openai-embeddings",
        "text-embedding-3-small",
        "text-embedding-3-small",
        usage=Usage(2, total_tokens=2),
    ),
    "openai_responses_stream": Expected(
        "openai-responses",
        "gpt-4o-mini",
        "gpt-4o-mini-2024-07-18",
        "Foo.",
        finish=Finish.STOP,
        usage=Usage(14, 3, 0, reasoning_tokens=0, total_tokens=17),
        streamed=True,
    ),
    "openai_responses_tools": Expected(
        "openai-responses",
        "gpt-4.1-nano",
        "gpt-4.1-nano-2025-04-14",
        calls=(("get_weather", {"location": "London"}), ("get_weather", {"location": "London"})),
        finish=Finish.TOOL_CALLS,
        usage=Usage(58, 44, 0, reasoning_tokens=0, total_tokens=102),
        tools=("get_weather",),
    ),
}


def test_every_sample_is_expected() -> None:
    """A file without a row would be read by nobody."""
    assert sample_names() == sorted(EXPECTED)


def _read(name: str) -> tuple[InferenceRequest, InferenceResponse]:
    asked, answered = load_sample(name)
    question, answer = read_request(asked), read_response(asked, answered)
    assert question is not None
    assert answer is not None
    return question, answer


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_read(name: str) -> None:
    """Request and response, figures as stated."""
    expected = EXPECTED[name]
    question, answer = _read(name)
    assert (question.dialect, question.model) == (expected.dialect, expected.model)
    assert tuple(tool.name for tool in question.tools) == expected.tools
    assert all(isinstance(tool.schema, dict) for tool in question.tools)
    assert answer.dialect == expected.dialect
    assert answer.model == expected.served
    assert answer.text.startswith(expected.text)
    assert bool(answer.text) == bool(expected.text)
    assert tuple((call.name, call.arguments) for call in answer.tool_calls) == expected.calls
    assert answer.finish == expected.finish
    assert answer.usage == expected.usage
    thinking = answer.message.thinking if answer.message else ""
    assert thinking.startswith(expected.thinking)
    assert bool(thinking) == bool(expected.thinking)
    assert (answer.error is None) == (not expected.error)
    assert answer.error is None or answer.error.message.startswith(expected.error)
    assert answer.streamed == expected.streamed
    assert answer.complete


STREAMED = [name for name, expected in EXPECTED.items() if expected.streamed]


@pytest.mark.parametrize("name", STREAMED)
def test_the_first_token_is_later_than_the_head_and_no_later_than_the_end(name: str) -> None:
    """And the first piece of a real stream carries none yet."""
    _, answer = _read(name)
    assert answer.first_token_us is not None
    assert 1000 < answer.first_token_us <= answer.total_us


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_that_was_cut_gives_what_was_there(name: str) -> None:
    """Wherever it was cut: the beginning of the same text and thoughts, marked incomplete."""
    asked, answered = load_sample(name)
    whole = read_response(asked, answered)
    assert whole is not None
    seen = ""
    for size in range(0, len(answered.body), max(1, len(answered.body) // 150)):
        answer = read_response(asked, cut(answered, size))
        assert answer is not None, size
        assert answer.streamed, size
        assert not answer.complete, size
        assert answer.dialect == whole.dialect
        assert whole.text.startswith(answer.text), size
        assert answer.text.startswith(seen), size
        seen = answer.text
        for call in answer.tool_calls:
            assert call.name in {known.name for known in whole.tool_calls}
    unended = read_response(asked, cut(answered, len(answered.body)))
    assert unended == replace(whole, complete=False)


@pytest.mark.parametrize(
    "name", [name for name, expected in EXPECTED.items() if not expected.streamed]
)
def test_an_answer_in_one_piece_that_was_cut_is_no_answer(name: str) -> None:
    """Half a JSON value says nothing that could be relied on; an error remains one."""
    asked, answered = load_sample(name)
    for size in range(1, len(answered.body) - 2, max(1, len(answered.body) // 50)):
        answer = read_response(asked, cut(answered, size))
        if answered.status >= 400:
            assert answer is not None
            assert answer.error is not None
            assert not answer.complete
        else:
            assert answer is None or not answer.complete
            assert answer is None or not answer.choices
