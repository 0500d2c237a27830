"""OpenAI responses: items in and out, and streams that end with the whole."""

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

URL = "https://api.openai.com/v1/responses"
ASKED = {"model": "gpt-5", "input": "Hi"}
FIGURES = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 16},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 29,
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
}
CALL = {
    "id": "fc",
    "type": "function_call",
    "call_id": "c1",
    "name": "f",
    "arguments": '{"a": 1}',
}


def answer(response: Response) -> InferenceResponse:
    """Read a response to it."""
    found = read_response(make_request(URL, ASKED), response)
    assert found is not None
    return found


def whole(*output: dict[str, Any], **more: object) -> dict[str, Any]:
    """Give a response as it is sent at once."""
    body = {"id": "r1", "object": "response", "model": "gpt-5-2", "status": "completed"}
    return {**body, "output": list(output), "error": None, "usage": FIGURES, **more}


def test_a_request_is_read() -> None:
    """Instructions and the system messages that come first are one prompt."""
    found = read_request(
        make_request(
            URL,
            {
                "model": "gpt-5",
                "instructions": "Be brief.",
                "input": [
                    {"role": "developer", "content": "And kind."},
                    {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
                ],
                "stream": True,
                "max_output_tokens": 7,
                "temperature": 0.5,
                "top_p": 0.25,
                "text": {"format": {"type": "json_object"}},
                "reasoning": {"effort": "low"},
                "tool_choice": "auto",
                "tools": [
                    {"type": "function", "name": "f", "parameters": {"type": "object"}},
                    {"type": "web_search"},
                    {"type": "mcp", "server_label": "docs"},
                ],
            },
        )
    )
    assert found is not None
    assert (found.model, found.streamed, found.system) == ("gpt-5", True, "Be brief.\nAnd kind.")
    assert found.messages == (Message("user", (Text("Hi"),)),)
    assert found.sampling == Sampling(
        temperature=0.5,
        top_p=0.25,
        max_tokens=7,
        response_format={"type": "json_object"},
        thinking={"effort": "low"},
        tool_choice="auto",
    )
    assert found.tools == (
        Tool("f", None, {"type": "object"}),
        Tool("web_search", kind="web_search"),
        Tool("docs", kind="mcp"),
    )


@pytest.mark.parametrize(
    ("item", "role", "part"),
    [
        ({"role": "assistant", "content": "a"}, "assistant", Text("a")),
        (
            {"role": "user", "content": [{"type": "input_image", "image_url": "https://x"}]},
            "user",
            Image(None, "https://x"),
        ),
        (CALL, "assistant", ToolCall("c1", "f", {"a": 1}, '{"a": 1}')),
        (
            {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "select"},
            "assistant",
            ToolCall("c1", "sql", None, "select"),
        ),
        (
            {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}},
            "assistant",
            ToolCall("c1", "shell", {"commands": ["ls"]}),
        ),
        (
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
            "tool",
            ToolResult("c1", (Text("ok"),)),
        ),
        (
            {"type": "computer_call_output", "call_id": "c1", "output": {"type": "x"}},
            "tool",
            ToolResult("c1", (Other("json", {"type": "x"}),)),
        ),
        (
            {"type": "reasoning", "summary": [{"text": "hm"}], "encrypted_content": "e"},
            "assistant",
            Thinking("hm", "e"),
        ),
        # what the provider does itself
        (
            {"type": "web_search_call", "id": "w", "status": "completed"},
            "assistant",
            Other("web_search_call", {"type": "web_search_call", "id": "w", "status": "completed"}),
        ),
    ],
)
def test_an_item_is_read(item: dict[str, Any], role: str, part: Part) -> None:
    """As a message of who made it."""
    found = read_request(make_request(URL, {"model": "gpt-5", "input": [item]}))
    assert found is not None
    assert found.messages == (Message(role, (part,)),)


def test_an_answer_is_read() -> None:
    """All its items are one message."""
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    found = answer(make_response(whole(reasoning, MESSAGE, CALL)))
    assert (found.id, found.model, found.text) == ("r1", "gpt-5-2", "Hello")
    assert found.message is not None
    assert found.message.thinking == "hm"
    assert found.tool_calls == (ToolCall("c1", "f", {"a": 1}, '{"a": 1}'),)
    assert found.usage == Usage(20, 9, 16, None, 4, 29)
    assert found.error is None


@pytest.mark.parametrize(
    ("more", "finish", "reason"),
    [
        ({}, Finish.STOP, "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            Finish.LENGTH,
            "max_output_tokens",
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            Finish.FILTERED,
            "content_filter",
        ),
        ({"status": "failed"}, Finish.FAILED, "failed"),
        ({"status": "in_progress"}, None, None),
    ],
)
def test_a_status_is_a_finish_reason(
    more: dict[str, Any], finish: Finish | None, reason: str | None
) -> None:
    """Unless details say more, or it has not ended."""
    found = answer(make_response(whole(MESSAGE, **more)))
    assert (found.finish, found.finish_reason) == (finish, reason)


def test_a_refusal_is_read() -> None:
    """It is a part of a message."""
    refused = {**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}
    found = answer(make_response(whole(refused)))
    assert found.message is not None
    assert found.message.refusal == "No."


def test_a_failed_response_carries_an_error() -> None:
    """With status 200."""
    error = {"code": "server_error", "message": "Sorry"}
    found = answer(make_response(whole(status="failed", error=error)))
    assert found.error is not None
    assert (found.error.code, found.error.message) == ("server_error", "Sorry")


# ---- streams -----------------------------------------------------------------------------------------


def at(kind: str, index: int = 0, **more: object) -> dict[str, Any]:
    """Give one event about an item."""
    return {"type": f"response.{kind}", "output_index": index, **more}


BEGIN = {"type": "response.created", "response": whole(status="in_progress", usage=None)}
DELTAS = [
    at("output_item.added", item={"id": "rs", "type": "reasoning", "summary": []}),
    at("reasoning_summary_text.delta", summary_index=0, delta="h"),
    at("reasoning_summary_text.delta", summary_index=0, delta="m"),
    at("output_item.added", 1, item={"id": "m", "type": "message", "content": []}),
    at("content_part.added", 1, content_index=0, part={"type": "output_text", "text": ""}),
    at("output_text.delta", 1, content_index=0, delta="Hel"),
    at("output_text.delta", 1, content_index=0, delta="lo"),
    at("output_item.added", 2, item={**CALL, "arguments": ""}),
    at("function_call_arguments.delta", 2, delta='{"a"'),
    at("function_call_arguments.delta", 2, delta=": 1}"),
    at("output_item.added", 3, item={**CALL, "call_id": "c2", "arguments": ""}),
    at("function_call_arguments.delta", 3, delta="[2"),
]
SAID = (
    Thinking("hm"),
    Text("Hello"),
    ToolCall("c1", "f", {"a": 1}, '{"a": 1}'),
    ToolCall("c2", "f", None, "[2"),
)


def test_a_stream_that_was_cut_gives_its_deltas() -> None:
    """Calls in parallel, one of them half; nothing says how it ended."""
    found = answer(make_stream(BEGIN, *DELTAS, named=True, complete=False))
    assert found.message is not None
    assert found.message.parts == SAID
    assert (found.finish, found.usage, found.complete) == (None, None, False)
    assert found.first_token_us == 3000


def test_the_last_event_holds_the_whole() -> None:
    """Whatever the deltas were."""
    end = {"type": "response.completed", "response": whole(MESSAGE)}
    found = answer(make_stream(BEGIN, *DELTAS, end, named=True))
    assert found.message is not None
    assert found.message.parts == (Text("Hello"),)
    assert found.usage == Usage(20, 9, 16, None, 4, 29)
    assert found.complete


def test_an_empty_whole_is_filled_from_the_items_before() -> None:
    """Some servers leave the output out at the end; an item that was done counts more than its deltas."""
    done = at("output_item.done", 3, item={**CALL, "call_id": "c2", "arguments": "[2]"})
    end = {"type": "response.completed", "response": whole()}
    found = answer(make_stream(BEGIN, *DELTAS, done, end))
    assert [call.arguments for call in found.tool_calls] == [{"a": 1}, [2]]
    assert (found.text, found.finish, found.complete) == ("Hello", Finish.TOOL_CALLS, True)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit", "message": "Slow down"},
        {"type": "error", "error": {"code": "rate_limit", "message": "Slow down"}},
    ],
)
def test_an_error_in_a_stream_is_noted(event: dict[str, Any]) -> None:
    """In both its shapes."""
    found = answer(make_stream(BEGIN, event))
    assert found.error is not None
    assert (found.error.code, found.error.message) == ("rate_limit", "Slow down")
    assert not found.complete


@pytest.mark.parametrize(
    ("url", "body", "claimed"),
    [
        (URL, b"", True),
        ("https://x.openai.azure.com/openai/responses?api-version=1", ASKED, True),
        ("https://chatgpt.com/backend-api/codex/responses", ASKED, True),
        ("https://api.githubcopilot.com/responses", ASKED, True),
        ("https://forms.example.com/api/responses", {"form": 1}, False),
    ],
)
def test_elsewhere_it_is_told_by_its_shape(url: str, body: object, claimed: bool) -> None:
    """Many collect responses."""
    dialect = find_dialect(make_request(url, body))
    assert (dialect is not None and dialect.name == "openai-responses") == claimed
