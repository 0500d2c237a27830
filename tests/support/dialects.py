"""Requests and responses of model APIs for tests of their readers, and the samples kept beside them.

A sample is one file: the request as HTTP/1.1 with its URL in full, a line `=== response`, the response. Bodies
stand as they were sent, but for a line feed at the end of each; a body that is no text is in base64 and its
head says `x-sample: base64`.
"""

import base64
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playhead.tape.exchange import Chunk, Headers, Request, Response

SAMPLES = Path(__file__).parent.parent / "tape" / "dialects" / "samples"
_PORTS = {"http": 80, "https": 443}


def make_request(
    url: str, body: object = b"", headers: dict[str, str] | None = None, method: str = "POST"
) -> Request:
    """Give a request; a body that is not bytes is sent as JSON."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Request(
        method,
        parts.scheme,
        parts.hostname or "",
        parts.port or _PORTS[parts.scheme],
        target,
        "HTTP/1.1",
        _pairs({"content-type": "application/json", **(headers or {})}),
        body if isinstance(body, bytes) else json.dumps(body).encode(),
    )


def make_response(
    body: object = b"",
    status: int = 200,
    headers: dict[str, str] | None = None,
    *,
    pieces: Sequence[bytes] | None = None,
    complete: bool = True,
) -> Response:
    """Give a response; a body that is not bytes is sent as JSON.

    pieces: of the body in their place; the first comes after 1,000 microseconds, each next 1,000 later.
    """
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    if pieces is not None:
        data = b"".join(pieces)
    chunks = tuple(Chunk(1000 * at, len(piece)) for at, piece in enumerate(pieces or (), start=1))
    return Response(
        status,
        b"",
        "HTTP/1.1",
        _pairs(headers or {"content-type": "application/json"}),
        data,
        500,
        chunks,
        complete=complete,
    )


def make_stream(
    *events: object, named: bool = False, done: bool = False, complete: bool = True
) -> Response:
    """Give an event stream of JSON, one piece an event; `type` names the events if asked for."""
    pieces = []
    for event in events:
        name = event.get("type") if named and isinstance(event, dict) else None
        data = f"event: {name}\n" if name else ""
        pieces.append(f"{data}data: {json.dumps(event)}\n\n".encode())
    if done:
        pieces.append(b"data: [DONE]\n\n")
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    return make_response(pieces=pieces, headers=headers, complete=complete)


def make_lines(
    *lines: object, content_type: str = "application/x-ndjson", complete: bool = True
) -> Response:
    """Give lines of JSON, one piece a line."""
    pieces = [json.dumps(line).encode() + b"\n" for line in lines]
    headers = {"content-type": content_type}
    return make_response(pieces=pieces, headers=headers, complete=complete)


def make_frame(payload: object, **headers: str) -> bytes:
    """Give one frame of an AWS event stream; `event_type="x"` is the field `:event-type`."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    fields = {"message_type": "event", "content_type": "application/json", **headers}
    head = b""
    for name, value in fields.items():
        field, text = b":" + name.replace("_", "-").encode(), value.encode()
        head += bytes([len(field)]) + field + b"\x07" + struct.pack(">H", len(text)) + text
    prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + data
    return frame + struct.pack(">I", zlib.crc32(frame))


def make_frames(*frames: bytes, complete: bool = True) -> Response:
    """Give an AWS event stream, one piece a frame."""
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    return make_response(pieces=frames, headers=headers, complete=complete)


def chunk_frame(event: object) -> bytes:
    """Give a frame of Bedrock's InvokeModelWithResponseStream around one event of a model's."""
    inner = base64.b64encode(json.dumps(event).encode()).decode()
    return make_frame({"bytes": inner, "p": "abc"}, event_type="chunk")


def cut(response: Response, size: int) -> Response:
    """Give what there is of a response when its connection is cut after so many bytes."""
    chunks, left = [], size
    for chunk in response.chunks:
        if left <= 0:
            break
        chunks.append(chunk._replace(size=min(chunk.size, left)))
        left -= chunk.size
    return replace(response, body=response.body[:size], chunks=tuple(chunks), complete=False)


def sample_names() -> list[str]:
    """Name the samples."""
    return sorted(path.stem for path in SAMPLES.glob("*.http"))


def load_sample(name: str) -> tuple[Request, Response]:
    """Load a sample; its response comes in pieces of 64 bytes."""
    text = (SAMPLES / f"{name}.http").read_bytes()
    asked, _, answered = text.partition(b"\n=== response\n")
    first, headers, body = _message(asked)
    method, url, _ = first.split(" ")
    request = replace(make_request(url, body, method=method), headers=headers)
    first, headers, body = _message(answered.removesuffix(b"\n"))
    pieces = [body[at : at + 64] for at in range(0, len(body), 64)]
    response = make_response(status=int(first.split(" ")[1]), pieces=pieces)
    return request, replace(response, headers=headers)


def _message(text: bytes) -> tuple[str, Headers, bytes]:
    head, _, body = text.partition(b"\n\n")
    first, *fields = head.decode().split("\n")
    headers: dict[str, Any] = dict(field.split(": ", 1) for field in fields)
    if headers.pop("x-sample", None) == "base64":
        body = base64.b64decode(body)
    return first, _pairs(headers), body


def _pairs(headers: dict[str, str]) -> Headers:
    return tuple((name.encode(), value.encode()) for name, value in headers.items())
