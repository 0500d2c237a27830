"""What the fake hosts answer: one pure function, served over HTTP/1 by aiohttp and over HTTP/2 by ASGI.

The last part of a path chooses the answer, so that each client can have paths of its own.
"""

import gzip
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

ALL_BYTES = bytes(range(256)) * 4
LARGE = b"".join(hashlib.sha256(str(index).encode()).digest() for index in range(32 * 1024))
"""1 MiB that does not compress."""
GZIPPED = gzip.compress(json.dumps({"text": "sent in gzip " * 40}).encode(), mtime=1)
PLAIN_PIECES = (b"one, ", b"two\n", b"and \xc3\xbc", b"\x00\xff", b"three")


@dataclass(frozen=True)
class Answer:
    """One answer: its body in the pieces in which it is written."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    pieces: tuple[bytes, ...] = ()
    streamed: bool = False
    """Written piece by piece without a length."""

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


@dataclass
class Log:
    """What a fake host was asked and what it sent."""

    requests: list[tuple[str, str]] = field(default_factory=list)
    """(method, path with query), in order of arrival."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of the same requests, by lower-case name."""
    exchanged: dict[str, list[tuple[bytes, Answer]]] = field(default_factory=dict)
    """Bodies received and answers sent, by "METHOD path?query", in order."""

    def note(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Find the answer to a request and remember both."""
        self.requests.append((method, target))
        self.headers.append(headers)
        found = answer(method, target, headers, body)
        self.exchanged.setdefault(f"{method} {target}", []).append((body, found))
        return found


def answer(method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
    """Give the answer to a request."""
    name = target.partition("?")[0].rpartition("/")[2]
    match name:
        case "completions":
            return _openai(json.loads(body))
        case "messages":
            return _anthropic(json.loads(body))
        case "bytes":
            return _whole(ALL_BYTES, "application/octet-stream")
        case "gzip":
            return _whole(GZIPPED, "application/json", ("Content-Encoding", "gzip"))
        case "large":
            return _whole(LARGE, "application/octet-stream")
        case "empty":
            return _whole(b"", "text/plain")
        case "none":
            return Answer(204, (("X-Nothing", "here"),))
        case "cached":
            tag = ("ETag", '"v1"')
            if headers.get("if-none-match") == '"v1"':
                return Answer(304, (tag,))
            return _whole(b"fresh", "text/plain", tag)
        case "hop":
            return _whole(b"moved", "text/plain", ("Location", "bytes"), status=302)
        case "see":
            return _whole(b"", "text/plain", ("Location", "text"), status=303)
        case "chunks":
            return Answer(200, (("Content-Type", "text/event-stream"),), PLAIN_PIECES, True)
        case "echo":
            found = {"method": method, "length": len(body), "sha256": _digest(body)}
            return _whole(json.dumps(found).encode(), "application/json")
        case _:
            return _whole(f"{method} {target}\n".encode(), "text/plain")


def _whole(body: bytes, kind: str, *more: tuple[str, str], status: int = 200) -> Answer:
    fields = (("Content-Type", kind), *more, ("Content-Length", str(len(body))))
    return Answer(status, fields, (body,) if body else ())


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _events(*events: tuple[str, Any]) -> Answer:
    pieces = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        head = f"event: {name}\n" if name else ""
        pieces.append(f"{head}data: {text}\n\n".encode())
    kind = ("Content-Type", "text/event-stream; charset=utf-8")
    return Answer(200, (kind, ("X-Request-Id", "req-7")), tuple(pieces), True)


def _openai(asked: dict[str, Any]) -> Answer:
    words = ("Grüße", " from", " a", " fake", " model", " ✓")
    base = {"id": "chatcmpl-7", "created": 1_700_000_000, "model": asked["model"]}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "".join(words)}
        made = {
            **base,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9},
        }
        return _whole(json.dumps(made).encode(), "application/json", ("X-Request-Id", "req-6"))
    base["object"] = "chat.completion.chunk"
    deltas: list[dict[str, str]] = [{"role": "assistant"}, *({"content": word} for word in words)]
    chunks = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    end = {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return _events(*(("", chunk) for chunk in [*chunks, end]), ("", "[DONE]"))


def _anthropic(asked: dict[str, Any]) -> Answer:
    words = ("Grüße", " from", " another", " ✓")
    message: dict[str, Any] = {
        "id": "msg_7",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": [{"type": "text", "text": "".join(words)}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    if not asked.get("stream"):
        return _whole(json.dumps(message).encode(), "application/json", ("Request-Id", "req-8"))
    start = {**message, "content": [], "stop_reason": None}
    text = {"type": "text", "text": ""}
    deltas: list[tuple[str, Any]] = [
        (
            "content_block_delta",
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": word},
            },
        )
        for word in words
    ]
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    return _events(
        ("message_start", {"type": "message_start", "message": start}),
        (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": text},
        ),
        ("ping", {"type": "ping"}),
        *deltas,
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        (
            "message_delta",
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 4}},
        ),
        ("message_stop", {"type": "message_stop"}),
    )


def over_http1(log: Log) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Serve the answers as an aiohttp handler."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        found = log.note(request.method, request.path_qs, headers, body)
        if not found.streamed:
            return web.Response(
                status=found.status, headers=list(found.headers), body=found.body or None
            )
        response = web.StreamResponse(status=found.status, headers=list(found.headers))
        await response.prepare(request)
        for piece in found.pieces:
            await response.write(piece)
        await response.write_eof()
        return response

    return handle


def over_asgi(log: Log) -> Any:
    """Serve the answers as an ASGI application."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        parts = []
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        query = scope["query_string"].decode()
        target = scope["path"] + (f"?{query}" if query else "")
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        found = log.note(scope["method"], target, headers, b"".join(parts))
        fields = [(name.lower().encode(), value.encode()) for name, value in found.headers]
        await send({"type": "http.response.start", "status": found.status, "headers": fields})
        pieces = () if scope["method"] == "HEAD" else found.pieces
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return app
