"""Read the model calls of a WebSocket: each message of a client that asks, and the events that answer it.

Codex speaks OpenAI's Responses so: `response.create` with what would be the body of a POST, and the events of the stream that would
answer it. A call is made into the exchange that it would have been, and read by the dialect of that.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, islice
from typing import NamedTuple

from ...tape.dialects import InferenceResponse, read_response
from ...tape.dialects.common.untrusted_json import find_json
from ...tape.exchange import Chunk, Exchange, Message, RequestClass, Response

_MOST = 64 * 1024 * 1024
"""Bytes of the events of one answer beyond which it is read no further."""


class WebSocketCall(NamedTuple):
    """A model call of a WebSocket."""

    answer: InferenceResponse | None
    made: Exchange
    """The exchange that it would have been."""
    after: int
    """Highest seq of the run that had arrived when it was asked; 0 where that was not written down."""


def split_websocket(exchange: Exchange, messages: Iterable[Message]) -> Iterator[WebSocketCall]:
    """Give the model calls of a WebSocket in order; nothing where it has none."""
    asked: Message | None = None
    body: dict[str, object] = {}
    events: list[Message] = []
    size = 0
    for message in messages:
        if not message.from_client:
            if asked is not None and size < _MOST:
                events.append(message)
                size += len(message.data)
            continue
        tree = find_json(message.data)
        if not isinstance(tree, dict) or tree.get("type") != "response.create":
            continue
        if asked is not None:
            yield _make(exchange, asked, body, events)
        asked, events, size = message, [], 0
        inner = tree.get("response")
        body = {**(inner if isinstance(inner, dict) else tree)}
        body.pop("type", None)
    if asked is not None:
        yield _make(exchange, asked, body, events)


def find_call(
    exchange: Exchange, messages: Iterable[Message], part: int
) -> tuple[Exchange, str] | None:
    """Give a model call of a WebSocket by its number from 1, and the JSON path in its message of what would be the body."""
    kept = list(messages)
    made = next(islice(split_websocket(exchange, kept), part - 1, None), None)
    if made is None:
        return None
    asked = (find_json(one.data) for one in kept if one.from_client)
    calls = (one for one in asked if isinstance(one, dict) and one.get("type") == "response.create")
    tree = next(islice(calls, part - 1, None))
    return made.made, "$.response" if isinstance(tree.get("response"), dict) else "$"


def _make(
    exchange: Exchange, asked: Message, body: dict[str, object], events: list[Message]
) -> WebSocketCall:
    request = replace(
        exchange.request, method="POST", body=json.dumps(body).encode(), headers=(), secrets=()
    )
    pieces = [b"data: " + one.data.replace(b"\n", b" ") + b"\n\n" for one in events]
    chunks = tuple(
        Chunk(one.at_us - asked.at_us, len(piece), one.after)
        for one, piece in zip(events, pieces, strict=True)
    )
    response = Response(
        200,
        b"",
        "HTTP/1.1",
        ((b"content-type", b"text/event-stream"),),
        b"".join(pieces),
        chunks[0].at_us if chunks else 0,
        chunks,
        complete=bool(pieces),
    )
    end = chunks[-1].at_us if chunks else 0
    made = replace(
        exchange,
        request=request,
        response=response,
        request_class=RequestClass.INFERENCE,
        websocket=None,
        fault=None,
        gone=None,
        started_ns=exchange.started_ns + asked.at_us * 1000,
        end_us=end,
    )
    return WebSocketCall(read_response(request, response), made, asked.after)


def renumber_arrivals(
    messages: Iterable[Message], seq: int, own: Iterable[tuple[int, int]]
) -> Iterator[Message]:
    """Give messages that a tape had for a playback, behind those requests of the playback that they were behind on the tape.

    seq: of the WebSocket in the playback.
    own: seqs of the tape that answered requests of the playback, each with the seq of that request.
    """
    pairs = sorted(own)
    on_tape, last = [one for one, _ in pairs], [*accumulate((own for _, own in pairs), max)]
    for message in messages:
        at = bisect_right(on_tape, message.after)
        after = max(seq, last[at - 1] if at else 0)
        yield replace(message, after=after) if message.after else message
