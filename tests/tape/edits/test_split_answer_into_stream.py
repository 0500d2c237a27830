"""Streams that are made of an edited answer, read by the clients of their providers."""

import json
from typing import Any

import httpx2
import pytest

from playhead.config import Answer
from playhead.tape.edits.edit_answer import edit_answer, read_plain_answer
from playhead.tape.exchange import RequestClass, Response
from playhead.tests.support.dialects import load_sample, make_request, make_response, make_stream
from playhead.tests.support.exchanges import make_exchange

ARGUMENTS = {"order": 7, "amount": 10}


def streamed(url: str, body: Any, recorded: Response, asked: Any = None) -> Answer:
    """Give the stream that an edited answer is."""
    exchange = make_exchange(
        1,
        kind=RequestClass.INFERENCE,
        request=make_request(url, asked or {"model": "m", "messages": []}),
        response=recorded,
    )
    made = edit_answer(exchange, json.dumps(body).encode())
    assert b"data: " in made.body
    return made


def openai_client(made: Answer) -> Any:
    """A client that is answered so."""
    given = httpx2.Response(200, headers=dict(made.headers), content=made.body)
    transport = httpx2.MockTransport(lambda _: given)
    openai = pytest.importorskip("openai")
    return openai.OpenAI(api_key="x", http_client=httpx2.Client(transport=transport))


def test_an_edited_chat_keeps_when_and_by_what_it_was_made() -> None:
    """In each chunk, as the recorded ones had it."""
    head = {"id": "c", "model": "m", "created": 1795800000, "system_fingerprint": "fp_1"}
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]}  # fmt: skip
    recorded = make_stream({**head, **chunk}, done=True)
    exchange = make_exchange(
        1,
        kind=RequestClass.INFERENCE,
        request=make_request("https://api.openai.com/v1/chat/completions", {"model": "m"}),
        response=recorded,
    )
    offered = read_plain_answer(exchange)
    edited = offered.replace(b'"x"', b'"y"')
    assert edited != offered
    made = edit_answer(exchange, edited)
    for line in made.body.split(b"\n\n"):
        if line.startswith(b"data: {"):
            told = json.loads(line.removeprefix(b"data: "))
            assert {name: told.get(name) for name in head} == head


def test_openai_reads_a_chat() -> None:
    """Text, a tool call, why it ended and what it took."""
    piece = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "x"}}]}
    function = {"name": "refund", "arguments": json.dumps(ARGUMENTS)}
    call = {"id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": "hm", "tool_calls": [call]}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
    url = "https://api.openai.com/v1/chat/completions"
    client = openai_client(streamed(url, body, make_stream(piece, done=True)))
    with client.chat.completions.stream(model="m", messages=[]) as stream:
        said = stream.get_final_completion()
    found = said.choices[0]
    assert (found.message.content, found.finish_reason) == ("hm", "tool_calls")
    assert found.message.tool_calls
    assert json.loads(found.message.tool_calls[0].function.arguments) == ARGUMENTS


def test_openai_reads_a_response() -> None:
    """Of the newer API."""
    request, recorded = load_sample("openai_responses_stream")
    text = {"type": "output_text", "text": "bye", "annotations": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    body = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [{**item, "content": [text]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    client = openai_client(streamed(request.url, body, recorded, json.loads(request.body)))
    with client.responses.stream(model="m", input="x") as stream:
        assert stream.get_final_response().output_text == "bye"


def test_anthropic_reads_a_message() -> None:
    """Text, thought and a tool call."""
    begin = {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "c"},
    }
    block = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": "x"},
    }
    recorded = make_stream(begin, block, {"type": "message_stop"}, named=True)
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "bye"},
            {"type": "tool_use", "id": "t", "name": "refund", "input": ARGUMENTS},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    made = streamed("https://api.anthropic.com/v1/messages", body, recorded)
    given = httpx2.Response(200, headers=dict(made.headers), content=made.body)
    transport = httpx2.MockTransport(lambda _: given)
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(api_key="x", http_client=httpx2.Client(transport=transport))
    with client.messages.stream(model="c", max_tokens=9, messages=[]) as stream:
        said = stream.get_final_message()
    assert [one.type for one in said.content] == ["thinking", "text", "tool_use"]
    assert said.content[2].to_dict()["input"] == ARGUMENTS
    assert (said.stop_reason, said.usage.output_tokens) == ("tool_use", 2)


def test_a_recorded_answer_at_once_stays_that() -> None:
    """Only streams are streamed again."""
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}}]}
    url = "https://api.openai.com/v1/chat/completions"
    request = make_request(url, {"model": "m", "messages": []})
    exchange = make_exchange(
        1, kind=RequestClass.INFERENCE, request=request, response=make_response(body)
    )
    assert edit_answer(exchange, json.dumps(body).encode()).body == json.dumps(body).encode()
