"""Anthropic messages and, before them, completions."""

from typing import Any

import pytest

from playhead.tape.dialects import (
    Finish,
    Image,
    InferenceResponse,
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
from playhead.tape.exchange import Response
from playhead.tests.support.dialects import make_request, make_response, make_stream

URL = "https://api.anthropic.com/v1/messages?beta=true"
ASKED = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}


def answer(response: Response) -> InferenceResponse:
    """Read a response to it."""
    found = read_response(make_request(URL, ASKED), response)
    assert found is not None
    return found


def said(*content: dict[str, Any], **more: object) -> dict[str, Any]:
    """Give a message as it is sent at once."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-1"}
    return {**head, "content": list(content), "stop_reason": "end_turn", **more}


def test_a_request_is_read() -> None:
    """Every parameter that has a place in the view."""
    marked = {"cache_control": {"type": "ephemeral"}}
    found = read_request(
        make_request(
            URL,
            {
                **ASKED,
                "system": [
                    {"type": "text", "text": "Be brief.", **marked},
                    {"type": "text", "text": "And kind."},
                ],
                "temperature": 1,
                "top_p": 0.5,
                "top_k": 3,
                "stop_sequences": ["END"],
                "stream": True,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "tool_choice": {"type": "auto"},
                "output_config": {"format": {"type": "json_schema"}},
                "tools": [
                    {"name": "f", "description": "d", "input_schema": {"type": "object"}},
                    {"type": "web_search_20250305", "name": "web_search"},
                ],
            },
        )
    )
    assert found is not None
    assert (found.model, found.streamed, found.system) == ("claude", True, "Be brief.\nAnd kind.")
    assert found.sampling == Sampling(
        temperature=1,
        top_p=0.5,
        top_k=3,
        max_tokens=9,
        stop=("END",),
        response_format={"type": "json_schema"},
        thinking={"type": "enabled", "budget_tokens": 1024},
        tool_choice={"type": "auto"},
    )
    assert found.tools == (
        Tool("f", "d", {"type": "object"}),
        Tool("web_search", kind="web_search_20250305"),
    )
    assert found.messages == (Message("user", (Text("Hi"),)),)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
            },
            Image("image/png", None, "aGk="),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://x"}},
            Image(None, "https://x"),
        ),
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, Thinking("hm", "s")),
        ({"type": "redacted_thinking", "data": "xx"}, Thinking("", "xx")),
        (
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
            ToolCall("t1", "f", {"a": 1}),
        ),
        (
            {"type": "tool_result", "tool_use_id": "t1", "content": "ok"},
            ToolResult("t1", (Text("ok"),)),
        ),
        (
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "is_error": True,
                "content": [{"type": "text", "text": "no"}],
            },
            ToolResult("t1", (Text("no"),), failed=True),
        ),
        ({"type": "tool_result", "tool_use_id": "t1"}, ToolResult("t1", ())),
        # what the provider does itself
        (
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            Other(
                "server_tool_use",
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            ),
        ),
    ],
)
def test_a_block_is_read(block: dict[str, Any], part: Part) -> None:
    """Into a part of the same kind as everybody's."""
    body = {**ASKED, "messages": [{"role": "user", "content": [block]}]}
    found = read_request(make_request(URL, body))
    assert found is not None
    assert found.messages[0].parts == (part,)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("model_context_window_exceeded", Finish.LENGTH),
        ("tool_use", Finish.TOOL_CALLS),
        ("refusal", Finish.FILTERED),
        ("pause_turn", Finish.PAUSED),
    ],
)
def test_a_stop_reason_is_normalised(reason: str, finish: Finish) -> None:
    """And kept."""
    found = answer(make_response(said({"type": "text", "text": "a"}, stop_reason=reason)))
    assert (found.finish, found.finish_reason, found.text) == (finish, reason, "a")


def test_cached_tokens_are_read_and_not_part_of_the_input() -> None:
    """As the provider counts them."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 4000,
        "cache_creation": {"ephemeral_5m_input_tokens": 200},
        "output_tokens": 12,
    }
    found = answer(make_response(said(usage=usage)))
    assert found.usage == Usage(3, 12, 4000, 200, cached_in_input=False)


def test_an_error_is_noted() -> None:
    """With its type."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = answer(make_response(error, 529))
    assert found.error is not None
    assert (found.status, found.error.type, found.error.message) == (
        529,
        "overloaded_error",
        "Overloaded",
    )


# ---- streams -----------------------------------------------------------------------------------------


def block(index: int, start: dict[str, Any], *deltas: dict[str, str]) -> list[dict[str, Any]]:
    """Give the events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def json_delta(text: str) -> dict[str, str]:
    """Give a piece of the arguments of a tool call."""
    return {"type": "input_json_delta", "partial_json": text}


START = {
    "type": "message_start",
    "message": said(
        stop_reason=None,
        usage={"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1},
    ),
}
THINKING = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "h"},
    {"type": "thinking_delta", "thinking": "m"},
    {"type": "signature_delta", "signature": "sig"},
)
TEXT = block(
    1,
    {"type": "text", "text": ""},
    {"type": "text_delta", "text": "Hel"},
    {"type": "text_delta", "text": "lo"},
)
CALLS = [
    *block(2, {"type": "tool_use", "id": "a", "name": "f", "input": {}}, json_delta("")),
    *block(
        3,
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
        json_delta('{"x"'),
        json_delta(": [1]}"),
    ),
]
END = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 77, "output_tokens_details": {"thinking_tokens": 6}},
    },
    {"type": "message_stop"},
]


def test_events_become_one_message() -> None:
    """Thoughts with their signature, text, calls in parallel, the usage stated last."""
    ping = {"type": "ping"}
    found = answer(make_stream(START, ping, *THINKING, *TEXT, *CALLS, *END, named=True))
    assert found.message is not None
    assert found.message.parts == (
        Thinking("hm", "sig"),
        Text("Hello"),
        ToolCall("a", "f", {}),
        ToolCall("b", "g", {"x": [1]}, '{"x": [1]}'),
    )
    assert found.usage == Usage(3, 77, 40, reasoning_tokens=6, cached_in_input=False)
    assert (found.finish, found.complete, found.id) == (Finish.TOOL_CALLS, True, "msg_1")
    assert found.first_token_us == 4000


def _iteration(kind: str, asked: int, said: int, **more: object) -> dict[str, Any]:
    return {"type": kind, "input_tokens": asked, "output_tokens": said, **more}


@pytest.mark.parametrize(
    ("own", "iterations", "counted"),
    [
        ((23, 10), [_iteration("compaction", 180, 35), _iteration("message", 23, 10)], (203, 45)),
        # The input above is that of the first message alone.
        ((4, 9), [_iteration("message", 4, 3), _iteration("message", 13, 6)], (17, 9)),
        # Or that of all messages.
        ((17, 9), [_iteration("message", 4, 3), _iteration("message", 13, 6)], (17, 9)),
        ((4, 9), [_iteration("message", 4, 9), _iteration("new kind", 5, 5)], (9, 14)),
        ((4, 9), [], (4, 9)),
        ((4, 9), None, (4, 9)),
        ((4, 9), ["broken", {"type": "compaction"}], (4, 9)),
    ],
)
def test_all_iterations_are_counted(
    own: tuple[int, int], iterations: object, counted: tuple[int, int]
) -> None:
    """The figures of the whole leave out compactions, and the input of all messages but the first."""
    usage = {"input_tokens": own[0], "output_tokens": own[1], "iterations": iterations}
    whole = answer(make_response(said(usage=usage)))
    end = {"type": "message_delta", "delta": {}, "usage": usage}
    stream = answer(make_stream(START, *TEXT, end, {"type": "message_stop"}, named=True))
    for found in (whole, stream):
        assert found.usage is not None
        assert (found.usage.input_tokens, found.usage.output_tokens) == own
        total = found.usage.count()
        assert (total.said,) == counted[1:]
        assert total.asked is not None
        assert total.asked - total.read - total.written == counted[0]


def test_an_advisor_is_another_model() -> None:
    """What it used is beside the answer's own figures, with its name."""
    advisor = _iteration("advisor_message", 823, 1612, model="claude-opus")
    usage = {"input_tokens": 4, "output_tokens": 9, "iterations": [advisor]}
    found = answer(make_response(said(usage=usage))).usage
    assert found is not None
    assert [(one.model, one.output_tokens) for one in found.beside] == [("claude-opus", 1612)]
    assert found.count()[:2] == (827, 1621)


def test_a_stream_that_was_cut_keeps_half_a_call_as_text() -> None:
    """It parses as nothing; usage is what the start stated."""
    found = answer(make_stream(START, *CALLS[:-2], complete=False))
    assert found.tool_calls == (ToolCall("a", "f", {}), ToolCall("b", "g", None, '{"x"'))
    assert found.usage == Usage(3, 1, 40, cached_in_input=False)
    assert (found.finish, found.complete) == (None, False)


def test_an_error_in_a_stream_is_noted() -> None:
    """After what was said."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = answer(make_stream(START, *TEXT, error, named=True))
    assert found.text == "Hello"
    assert found.error is not None
    assert found.error.message == "Overloaded"
    assert not found.complete


@pytest.mark.parametrize(
    ("url", "body", "headers", "dialect"),
    [
        (URL, b"", {}, "anthropic"),
        ("http://gateway/anthropic/v1/messages", ASKED, {}, "anthropic"),
        ("http://gateway/v1/messages", b"", {"anthropic-version": "2023-06-01"}, "anthropic"),
        ("https://api.nexmo.com/v1/messages", {"from": "a", "to": "b"}, {}, None),
        (URL.replace("messages", "messages/count_tokens"), ASKED, {}, None),
        ("https://api.anthropic.com/v1/complete", b"", {}, "anthropic-complete"),
    ],
)
def test_elsewhere_it_is_told_by_its_shape(
    url: str, body: object, headers: dict[str, str], dialect: str | None
) -> None:
    """Others send messages to people there."""
    found = find_dialect(make_request(url, body, headers))
    assert (found and found.name) == dialect


def test_on_vertex_the_model_stands_in_the_path() -> None:
    """Both with and without a stream."""
    place = "https://x-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic"
    body = {"anthropic_version": "vertex-2023-10-16", "messages": [], "max_tokens": 1}
    for verb in ("rawPredict", "streamRawPredict"):
        found = read_request(make_request(f"{place}/models/claude-4@2025:{verb}", body))
        assert found is not None
        assert (found.dialect, found.model) == ("anthropic", "claude-4@2025")
