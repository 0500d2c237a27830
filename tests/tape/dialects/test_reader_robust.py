"""Nothing that a server or a client sends makes a reader raise."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.dialects import find_dialect, read_request, read_response
from playhead.tape.dialects.framing.aws_event_stream import is_frame, read_frames
from playhead.tape.exchange import Chunk, Request, Response
from playhead.tests.support.counts import tries
from playhead.tests.support.dialects import (
    load_sample,
    make_frame,
    make_request,
    make_response,
    sample_names,
)

_MANY = tries(6, 200)
SAMPLES = {name: load_sample(name) for name in sample_names()}
URLS = sorted({sample[0].url for sample in SAMPLES.values()})
TYPES = (
    b"application/json",
    b"text/event-stream",
    b"application/x-ndjson",
    b"application/vnd.amazon.eventstream",
    b"",
)


def read(request: Request, response: Response) -> None:
    """Read both, and use what was read."""
    dialect = find_dialect(request)
    asked, found = read_request(request), read_response(request, response)
    if dialect is None:
        assert asked is None
        assert found is None
    if asked is not None:
        assert dialect is not None
        assert asked.dialect == dialect.name
        assert all(isinstance(value, str) for value in asked.drift.values())
        for message in asked.messages:
            for result in message.tool_results:
                assert isinstance(result.text, str)
    if found is not None:
        assert found.status == response.status
        assert isinstance(found.text, str)
        assert isinstance(repr(found), str)
        for choice in found.choices:
            assert (choice.finish is None) <= (choice.finish_reason is None)


_bodies = st.binary(max_size=200) | st.lists(
    st.sampled_from(
        [
            b'{"',
            b'"}',
            b"[",
            b"]",
            b":",
            b",",
            b'{"choices":[{"delta":{"content":"a"}}]}',
            b'{"type":"message_start","message":{}}',
            b'{"jsonrpc":"2.0","id":1,"result":{}}',
            b"data: ",
            b"event: x",
            b"\n\n",
            b"\r",
            b"[DONE]",
            b"\xff",
            make_frame({"bytes": "e30="}, event_type="chunk"),
        ]
    ),
    max_size=12,
).map(b"".join)


@_MANY
@given(st.sampled_from(URLS), _bodies, _bodies, st.sampled_from(TYPES), st.booleans())
def test_any_bytes_are_read_or_are_none(
    url: str, asked: bytes, body: bytes, content_type: bytes, complete: bool
) -> None:
    """On every path that somebody claims."""
    response = make_response(body, headers={"content-type": content_type.decode()})
    read(make_request(url, asked), replace(response, complete=complete))


_anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=5),  # half surrogate pairs are meant
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "id", "a"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += _places(item, (*path, at))
    return found


def _mutate(data: st.DataObject, text: bytes) -> bytes:
    """Put anything in one place of some JSON, or take that place out."""
    try:
        tree = json.loads(text)
    except ValueError:
        return text
    places = _places(tree)
    if not places:
        return text
    *path, last = data.draw(st.sampled_from(places))
    holder = tree
    for step in path:
        holder = holder[step]
    if data.draw(st.integers(0, 4)) == 0:
        del holder[last]
    else:
        holder[last] = data.draw(_anything)
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def _mutate_stream(data: st.DataObject, body: bytes) -> bytes:
    """Put anything in one place of one event."""
    if is_frame(body):
        return _mutate_frames(data, body)
    lines = body.split(b"\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    head, _, rest = lines[at].partition(b"{")
    lines[at] = head + _mutate(data, b"{" + rest.rstrip(b"\r")) if rest else lines[at]
    return b"\n".join(lines)


def _mutate_frames(data: st.DataObject, body: bytes) -> bytes:
    frames = list(read_frames(body))
    at = data.draw(st.integers(0, len(frames) - 1))
    payload = json.loads(frames[at].payload)
    if "bytes" in payload:
        inner = _mutate(data, base64.b64decode(payload["bytes"]))
        payload = json.dumps({"bytes": base64.b64encode(inner).decode()}).encode()
    else:
        payload = _mutate(data, frames[at].payload)
    made = [
        make_frame(
            payload if place == at else frame.payload, event_type=frame.headers[":event-type"]
        )
        for place, frame in enumerate(frames)
    ]
    return b"".join(made)


@pytest.mark.parametrize("name", SAMPLES)
@_MANY
@given(data=st.data())
def test_a_payload_that_was_changed_is_read_or_is_none(name: str, data: st.DataObject) -> None:
    """Any value in any place, of the request and of the response."""
    request, response = SAMPLES[name]
    streamed = is_frame(response.body) or b"\n" in response.body
    body = _mutate_stream(data, response.body) if streamed else response.body
    read(
        replace(request, body=_mutate(data, request.body)),
        replace(response, body=_mutate(data, body)),
    )


@pytest.mark.parametrize("name", SAMPLES)
@_MANY
@given(data=st.data())
def test_a_payload_with_other_bytes_is_read_or_is_none(name: str, data: st.DataObject) -> None:
    """Cut, overwritten, doubled; its pieces noted as they never were."""
    request, response = SAMPLES[name]

    def spoil(body: bytes) -> bytes:
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, min(len(body), start + 40)))
        new = data.draw(st.binary(max_size=6) | st.just(body[start:end] * 2) | st.just(b""))
        return body[:start] + new + body[end:]

    pieces = data.draw(st.lists(st.builds(Chunk, st.integers(0, 9), st.integers(0, 500))))
    read(
        replace(request, body=spoil(request.body)),
        replace(
            response,
            body=spoil(response.body),
            chunks=tuple(pieces),
            complete=data.draw(st.booleans()),
            headers=((b"content-type", data.draw(st.sampled_from(TYPES))),),
        ),
    )
