"""Secrets that a streamed answer spells piece by piece, in the streams of many servers: put together, the answer has none."""

import json
import re
import string
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from playhead.tape.exchange import Headers, Request, Response
from playhead.tape.redaction.redactor import Redactor
from playhead.tape.redaction.rewriting.rewriter import Rewriter
from playhead.tests.support.exchanges import make_exchange

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


def stored(content_type: str, body: str, known: str = "", *, sized: bool = False) -> str:
    """Give what is stored of an answer."""
    redactor = Redactor(b"k" * 32)
    if known:
        key = ((b"authorization", b"Bearer " + known.encode()),)
        redactor.request(Request("GET", "https", "api.test", 443, "/", "HTTP/1.1", key, b""))
    fields: Headers = ((b"content-length", b"%d" % len(body.encode())),) if sized else ()
    if content_type:
        fields = (*fields, (b"content-type", content_type.encode()))
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


MISLABELLED: dict[str, Say] = {
    **{name: say for name, (label, say) in STREAMS.items() if label != JSON},
    "lines-undeclared": STREAMS["lines-undeclared"][1],
    "no-empty-lines": lambda p: chat(content=p).rstrip() + "\n",
    "carriage-returns": lambda p: chat(content=p).replace("\n", "\r"),
    "json-sequence": lambda p: "\x1e" + json.dumps({"text": p}) + "\n",
}
"""Streams that a client reads by what they are."""


@pytest.mark.parametrize("label", ["", TEXT, JSON, "application/octet-stream", EVENTS, LINES])
@pytest.mark.parametrize("name", MISLABELLED)
def test_a_stream_is_one_whatever_its_label(name: str, label: str) -> None:
    """Of a known length, too: a server may send it at once."""
    say = MISLABELLED[name]
    pieces = [f"{FORMAT} ok"[at : at + 6] for at in range(0, len(FORMAT) + 3, 6)]
    kept = stored(label, "".join(map(say, ["here ", "it is ", *pieces])), sized=True)
    assert [piece for piece in pieces[2:-2] if say(piece) in kept] == []


@pytest.mark.parametrize("first", [": ping\n\n", "\n\n", "\ufeff", "note: a field of nobody\n"])
def test_a_stream_may_begin_with_what_its_reader_passes_over(first: str) -> None:
    """Comments, empty lines, a byte order mark, fields that nobody knows."""
    pieces = [FORMAT[at : at + 6] for at in range(0, len(FORMAT), 6)]
    kept = stored("", first + "".join(chat(content=piece) for piece in pieces))
    assert [piece for piece in pieces[2:-2] if chat(content=piece) in kept] == []


@pytest.mark.parametrize("name", ["content", "ollama-chat", "no-empty-lines"])
def test_a_stream_that_is_too_large_is_one_whatever_its_label(name: str) -> None:
    """Also far behind its first window, which begins amid a line."""
    say = MISLABELLED[name]
    pieces = [FORMAT[at : at + 6] for at in range(0, len(FORMAT), 6)]
    noise = [f"word{at} " for at in range(8000)]
    body = "".join(map(say, [*noise, *pieces, *noise])).encode()
    fields = ((b"content-type", TEXT.encode()), (b"content-length", b"%d" % len(body)))
    stream = Redactor(b"k" * 32).stream(fields, answer=True)
    assert stream is not None
    step = 100_000
    fed = [stream.feed(body[at : at + step]).data for at in range(0, len(body), step)]
    kept = b"".join([*fed, stream.finish().data]).decode()
    assert [piece for piece in pieces[2:-2] if say(piece) in kept] == []
    assert len(kept.encode()) == len(body)


@pytest.mark.parametrize("label", [TEXT, JSON, "application/octet-stream"])
def test_a_stored_stream_is_rewritten_whatever_its_label(label: str) -> None:
    """As those that were stored before they were searched so."""
    pieces = [FORMAT[at : at + 6] for at in range(0, len(FORMAT), 6)]
    body = "".join(chat(content=piece) for piece in pieces).encode()
    fields = ((b"content-type", label.encode()), (b"content-length", b"%d" % len(body)))
    answer = Response(200, b"OK", "HTTP/1.1", fields, body, 1)
    after, places = Rewriter(b"k" * 32).exchange(replace(make_exchange(), response=answer))
    assert places
    assert after.response is not None
    kept = after.response.body.decode()
    assert [piece for piece in pieces[2:-2] if chat(content=piece) in kept] == []


@pytest.mark.parametrize(
    "body",
    [
        '{"rows": [\n{"id": "sk"},\n{"id": "-proj-"}\n]}',
        "name: x\ndata: y\n",
        '"a","b"\n"c","d"\n',
        "{}\n{}\n",
    ],
)
def test_what_only_looks_like_a_stream_stays(body: str) -> None:
    """Byte by byte."""
    assert stored(TEXT, body, sized=True) == body


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
