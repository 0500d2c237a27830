"""Secrets that a streamed answer spells piece by piece, in the streams of many servers: put together, the answer has none."""

import json
import re
import string
from collections.abc import Callable
from random import Random

import pytest

from playhead.tape.exchange import Request, Response
from playhead.tape.redaction.redactor import Redactor

Say = Callable[[str], str]
EVENTS, LINES, JSON, TEXT = (
    "text/event-stream",
    "application/x-ndjson",
    "application/json",
    "text/plain; charset=utf-8",
)


def data(said: object) -> str:
    """Give an event without a name."""
    return f"data: {json.dumps(said)}\n\n"


def event(name: str, said: object) -> str:
    """Give an event."""
    return f"event: {name}\n{data(said)}"


def chat(**delta: object) -> str:
    """Give an event of OpenAI's chat."""
    return data({"id": "c1", "choices": [{"index": 0, "delta": delta}]})


def tools(*said: tuple[int, str]) -> str:
    """Give an event of OpenAI's chat with several tool calls."""
    return chat(tool_calls=[{"index": at, "function": {"arguments": one}} for at, one in said])


def responses(kind: str, **more: object) -> Say:
    """Give events of OpenAI's responses."""
    return lambda p: event(kind, {"type": kind, "item_id": "i", "delta": p, **more})


STREAMS: dict[str, tuple[str, Say]] = {
    "content": (EVENTS, lambda p: chat(content=p)),
    "reasoning-content": (EVENTS, lambda p: chat(reasoning_content=p, content=None)),
    "reasoning": (EVENTS, lambda p: chat(reasoning=p, content="")),
    "refusal": (EVENTS, lambda p: chat(refusal=p)),
    "completion": (EVENTS, lambda p: data({"choices": [{"index": 0, "text": p}]})),
    "function-call": (EVENTS, lambda p: chat(function_call={"arguments": p})),
    "two-tool-calls": (EVENTS, lambda p: tools((0, p), (1, "zzz"))),
    "two-tool-calls-varied": (EVENTS, lambda p: tools((0, "yy" + p[::-1]), (1, p))),
    "responses": (EVENTS, responses("response.output_text.delta")),
    "responses-reasoning": (EVENTS, responses("response.reasoning_summary_text.delta")),
    "responses-arguments": (EVENTS, responses("response.function_call_arguments.delta")),
    "obfuscation": (EVENTS, lambda p: responses("a.delta", obfuscation="x" * (ord(p[0]) % 9))(p)),
    "numbered": (
        EVENTS,
        lambda p: responses(
            "a.delta", sequence_number=sum(map(ord, p)), obfuscation=p[::-1] + "x" * (ord(p[0]) % 9)
        )(p),
    ),
    "numbered-lines": (
        LINES,
        lambda p: json.dumps({"at": sum(map(ord, p)), "log": [{"s": p[::-1], "msg": p}]}) + "\n",
    ),
    "thread-message": (
        EVENTS,
        lambda p: event(
            "thread.message.delta",
            {"delta": {"content": [{"index": 0, "type": "text", "text": {"value": p}}]}},
        ),
    ),
    "thinking": (
        EVENTS,
        lambda p: event("content_block_delta", {"index": 0, "delta": {"thinking": p}}),
    ),
    "gemini": (EVENTS, lambda p: data({"candidates": [{"content": {"parts": [{"text": p}]}}]})),
    "gemini-list": (
        JSON,
        lambda p: json.dumps({"candidates": [{"content": {"parts": [{"text": p}]}}]}) + ",\n",
    ),
    "gemini-list-indented": (
        JSON,
        lambda p: (
            json.dumps({"candidates": [{"content": {"parts": [{"text": p}]}}], "n": 1}, indent=2)
            + "\n,\r\n"
        ),
    ),
    "cohere": (EVENTS, lambda p: event("d", {"delta": {"message": {"content": {"text": p}}}})),
    "ollama-chat": (LINES, lambda p: json.dumps({"message": {"content": p}, "done": False}) + "\n"),
    "ollama-generate": (LINES, lambda p: json.dumps({"model": "m", "response": p}) + "\n"),
    "lines-undeclared": (JSON, lambda p: json.dumps({"model": "m", "response": p}) + "\n"),
    "ag-ui": (EVENTS, lambda p: data({"type": "TEXT_MESSAGE_CONTENT", "delta": p})),
    "vercel": (TEXT, lambda p: "0:" + json.dumps(p) + "\n"),
    "plain": (EVENTS, lambda p: f"data: {p}\n\n"),
    "plain-crlf": (EVENTS, lambda p: f"data: {p}\r\n\r\n"),
    "replicate": (EVENTS, lambda p: f"event: output\nid: {ord(p[0])}\ndata: {p}\n\n"),
    "strings": (EVENTS, lambda p: data(p)),
    "langserve": (EVENTS, lambda p: event("data", {"ops": [{"op": "add", "value": p}]})),
    "mcp-log": (
        EVENTS,
        lambda p: event("message", {"method": "notifications/message", "params": {"data": p}}),
    ),
    "tgi": (EVENTS, lambda p: "data:" + json.dumps({"token": {"id": ord(p[0]), "text": p}}) + "\n\n"),
    "llama": (EVENTS, lambda p: data({"content": p, "stop": False})),
    "quotes": (EVENTS, lambda p: chat(content=p, note='a "b" \\' + p[0])),
}  # fmt: skip
_RNG = Random(7)
KNOWN = "".join(_RNG.choices(string.ascii_letters + string.digits, k=40))
FORMAT = "sk-" + "proj-" + "".join(_RNG.choices(string.ascii_letters + string.digits, k=80))


def stored(content_type: str, body: str, known: str = "") -> str:
    """Give what is stored of an answer."""
    redactor = Redactor(b"k" * 32)
    if known:
        fields = ((b"authorization", b"Bearer " + known.encode()),)
        redactor.request(Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", fields, b""))
    fields = ((b"content-type", content_type.encode()),)
    answer = Response(200, b"OK", "HTTP/1.1", fields, body.encode(), 1)
    return (redactor.response(answer)[0].body or b"").decode()


@pytest.mark.parametrize("secret", [KNOWN, FORMAT], ids=["known", "format"])
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("size", [4, 7])
def test_a_secret_over_pieces_is_replaced(name: str, size: int, secret: str) -> None:
    """Each piece, and only those; what is around it and the length stay."""
    content_type, say = STREAMS[name]
    text = f"here it is: {secret} ok, and so on"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    kept = stored(content_type, "".join(map(say, pieces)), secret if secret is KNOWN else "")
    inside = pieces[20 // size + 1 : (len(secret) + 12) // size]
    assert len(inside) > 3
    assert [piece for piece in inside if say(piece) in kept] == []
    assert len(kept) == len("".join(map(say, pieces)))
    assert kept.startswith(say(pieces[0])[: -1 - size])
    assert kept.endswith(say(pieces[-1])[-size:])


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_without_a_secret_stays(name: str) -> None:
    """Byte by byte."""
    content_type, say = STREAMS[name]
    words = "The tokens of a page are counted; a key opens the door, and so does 'sk-learn'."
    body = "".join(say(word + " ") for word in re.split(" ", words))
    assert stored(content_type, body, KNOWN) == body


def test_tool_calls_are_told_apart() -> None:
    """Two that are said in turn, and one that another event goes on with, in a place of its own."""
    halves = [FORMAT[at : at + 6] for at in range(0, len(FORMAT), 6)]
    body = "".join(tools((0, "noise")) + tools((2, half)) for half in halves)
    kept = stored(EVENTS, body)
    assert all(tools((2, half)) not in kept for half in halves[2:-2])
    assert kept.count(tools((0, "noise"))) == len(halves)


def test_events_of_other_kinds_between_are_no_part_of_it() -> None:
    """Pings, another name before the string, a usage in some events."""
    halves = [FORMAT[at : at + 6] for at in range(0, len(FORMAT), 6)]
    say: list[Say] = [
        lambda p: chat(content=p),
        lambda p: ": ping\n\n" + chat(role="assistant", content=p),
        lambda p: chat(content=p).replace('{"id"', '{"usage": {"n": 12}, "id"'),
    ]
    body = "".join(say[at % 3](half) for at, half in enumerate(halves))
    kept = stored(EVENTS, body + "data: [DONE]\n\n")
    told = [json.loads(one[6:]) for one in kept.split("\n\n") if one.startswith("data: {")]
    text = "".join(one["choices"][0]["delta"]["content"] for one in told)
    assert len(text) == len(FORMAT)
    assert FORMAT[8:] not in text
    assert not any(half in text for half in halves[2:-1])


@pytest.mark.parametrize(
    ("repeat", "content_type"),
    [
        ('data: {"a":"%d"}\n\n', EVENTS),
        ('data: {"a%d":"b"}\n\n', EVENTS),
        ('data: "\n\n', EVENTS),
        ("data: [[[[\n\n", EVENTS),
        ('{"a":[{"index":%d,"b":"c"}]}\n', LINES),
        ('{"a":"b"},', JSON),
        ('data: {"a":"\\\\"}\n\n', EVENTS),
    ],
)
def test_a_stream_of_any_events_keeps_its_length(repeat: str, content_type: str) -> None:
    """However odd they are."""
    body = "".join(repeat % at if "%d" in repeat else repeat for at in range(500))
    assert len(stored(content_type, body)) == len(body)
