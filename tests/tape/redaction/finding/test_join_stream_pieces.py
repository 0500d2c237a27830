"""What a text is: a stream of events, or none."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from playhead.tape.redaction.finding.join_stream_pieces import find_spelled, has_events


@pytest.mark.parametrize(
    "text",
    [
        b"data: 1\n\n",
        b"\xef\xbb\xbfdata: 1\n\n",
        b"event: a\ndata: 1\n\n",
        b"event: a\rdata: 1\r\r",
        b": hello\r\ndata: 1\r\n\r\n",
        b'{"a": 1}\ndata:',
    ],
)
def test_a_line_of_an_event_makes_a_stream(text: bytes) -> None:
    """However lines end, and whatever was said before."""
    assert has_events(text)


@pytest.mark.parametrize(
    "text", [b"", b'{"a":"data: 1"}', b'{\n"data": 1\n}', b"some data: 1\n", b"event: a\n\n"]
)
def test_the_word_alone_makes_none(text: bytes) -> None:
    """In JSON, whole or printed over lines, and in prose."""
    assert not has_events(text)


def _spelled(events: list[Any], *, lines: bool) -> list[bytes]:
    text = "".join(
        f"{json.dumps(one)}\n" if lines else f"data: {json.dumps(one)}\n\n" for one in events
    )
    return [one.data for one in find_spelled(text.encode(), events=not lines)]


PIECES = [f"{n:x}kQ{n}" for n in range(12)]
BLOCKS: dict[str, Callable[[str, int], Any]] = {
    "anthropic": lambda text, at: {"type": "delta", "index": at, "delta": {"text": text}},
    "responses": lambda text, at: {"output_index": at, "item_id": f"f{at}", "delta": text},
    "a part of one": lambda text, at: {"output_index": 0, "content_index": at, "delta": text},
    "langgraph": lambda text, at: [{"content": text, "id": f"run-{at}"}, {"tags": []}],
    "node": lambda text, at: {"data": {"langgraph_node": "ab"[at % 2] * (at + 1), "text": text}},
    "vercel": lambda text, at: {"type": "input", "toolCallId": f"call_{at}", "delta": text},
    "bedrock": lambda text, at: {"delta": {"text": text}, "contentBlockIndex": at},
    "choices": lambda text, at: {"choices": [{"index": at, "delta": {"text": text}}]},
}


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("between", [" hm ", "w{}"])
@pytest.mark.parametrize("blocks", [2, 3])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("dialect", BLOCKS)
def test_blocks_that_take_turns_are_joined_apart(
    dialect: str, blocks: int, between: str, *, counted: bool, lines: bool
) -> None:
    """By the number or the id that objects around a string have, whatever else counts the events."""
    say = BLOCKS[dialect]
    events = [
        say(piece if at == 0 else between.format(n), at)
        for n, piece in enumerate(PIECES)
        for at in range(blocks if n % 3 else 1)
    ]
    if counted and isinstance(events[0], dict):
        events = [{**one, "event_id": f"event_{n}"} for n, one in enumerate(events)]
    ends = [{"type": "message_start", "message": {"id": "m1"}}], [{"type": "stop", "index": 0}]
    assert "".join(PIECES).encode() in _spelled([*ends[0], *events, *ends[1]], lines=lines)


@pytest.mark.parametrize("name", ["index", "id", "event_id", "chunkIndex"])
@pytest.mark.parametrize("again", [0, 2])
def test_what_counts_events_keeps_their_pieces_together(name: str, again: int) -> None:
    """It never comes back; or one event is said again."""
    events = [{name: n, "text": piece} for n, piece in enumerate(PIECES)]
    events += events[:1] * again
    assert "".join([*PIECES, *PIECES[:1] * again]).encode() in _spelled(events, lines=False)


def test_the_number_of_a_token_tells_no_blocks_apart() -> None:
    """The same token has it again."""
    events = [{"token": {"id": n % 3, "text": piece}} for n, piece in enumerate(PIECES)]
    assert "".join(PIECES).encode() in _spelled(events, lines=False)


def test_what_is_beside_a_string_tells_no_blocks_apart() -> None:
    """Only what the objects around it have: a citation has a number of its own."""
    events = [
        {"cited": [{"index": n % 3}], "delta": {"text": piece}} for n, piece in enumerate(PIECES)
    ]
    assert "".join(PIECES).encode() in _spelled(events, lines=False)
