"""Refusals as the agent sees them, and the header that marks every answer that Playhead makes up.

Rules:

1. A refusal is an answer, never a broken connection, with a status that its client does not retry and with headers
   that tell the retrying ones not to. For model calls of known clients `refusal_clients.py` says which.
2. Its reason phrase says who refused, for tools whose HTTP client prints the status line alone.
   Its body has the shape in which each of the common SDKs looks for a message to print, so that the
   person reads ours: `error.message` for OpenAI, Anthropic, Stripe, Gemini and Cohere, `message` for the AWS
   SDKs, `grpc-message` for gRPC, a message of the protocol's own over a WebSocket.
3. Everything made up says so in `x-playhead`; what comes from the tape carries nothing of ours.

Source: the error classes of the SDKs named. RFC 9110 section 5.5 for what a field value may hold.
"""

import json
import re
from typing import Any
from urllib.parse import quote

from ..diff.divergence_types import Divergence, DivergenceKind, one_line
from ..exchange import Headers, Request
from .refusal_clients import FINAL_STATUS, RefusalShape, find_refusal_client

REFUSAL_STATUS = 424
"""Failed Dependency (RFC 4918 section 11.4): a 4xx, and none of 408, 409 and 429, which SDKs retry; but see `refusal_status`."""

REFUSAL_REASON = b"Playhead refused this request"
"""The reason phrase beside it: of an answer to a tool, HTTP clients print nothing else."""

NOT_ON_TAPE = "not_on_tape"
STOPPED = "stopped"
LIMIT_REACHED = "limit_reached"
CONTRACT_BROKEN = "contract_broken"
"""Codes of refusals."""

MARK_HEADER = b"x-playhead"

_GOOGLE_STATUS = "FAILED_PRECONDITION"
"""Of Google's canonical codes the one that says that nothing is gained by asking again."""
_OPENAI_SOCKETS = ("/responses", "/realtime")
"""Ends of the paths at which OpenAI's models are asked over a WebSocket."""
_MAX_VALUE = 300
"""Bytes of a header value that we make."""
_MAX_MESSAGE = 2000
_MAX_ADVICE = 1200
"""Characters of how to let through what drifted; where it is longer it is left out, since no part of it helps."""


def refusal_status(request: Request | None) -> int:
    """Give the status of a refusal, which the client that asked does not retry."""
    known = request is not None and find_refusal_client(request) is not None
    return FINAL_STATUS if known else REFUSAL_STATUS


def refusal_body(
    request: Request, divergence: Divergence | None, reason: str, code: str = NOT_ON_TAPE
) -> bytes:
    """Render the body of a refusal: JSON, at most some kilobytes; nothing for gRPC, which has no place for it.

    request: redacted.
    reason: why the policy refused, one line.
    code: the same as one word.
    """
    if is_grpc(request):
        return b""
    message = _message(request, divergence, reason)
    client = find_refusal_client(request)
    if client is not None and client.shape is RefusalShape.TEXT:
        return message.encode("utf-8", "backslashreplace")
    if client is not None and client.shape is RefusalShape.GOOGLE:
        error = {"code": FINAL_STATUS, "message": message, "status": _GOOGLE_STATUS}
        return json.dumps({"error": error}).encode("ascii")
    details: dict[str, Any] = {"refused": True, "reason": one_line(reason)}
    param = None
    if divergence is not None:
        details["divergence"] = divergence.to_json()
        if divergence.differences:
            param = one_line(divergence.differences[0].place)
    body = {
        "type": "error",
        "error": {
            "message": message,
            "type": "playhead_refused",
            "code": code,
            "param": param,
        },
        "message": message,
        "playhead": details,
    }
    # ASCII: a lone surrogate in a URL would not go into UTF-8.
    return json.dumps(body, indent=1).encode("ascii")


def refusal_headers(
    reason: str, request: Request | None = None, divergence: Divergence | None = None
) -> Headers:
    """Give the header fields of a refusal, `content-length` aside.

    request: what was asked; a gRPC client is told in fields what others find in the body.
    """
    if request is not None and is_grpc(request):
        told = quote(_message(request, divergence, reason), safe=" ", errors="replace")
        return (
            (b"content-type", b"application/grpc"),
            (b"grpc-status", b"9"),  # FAILED_PRECONDITION, which is not retried
            (b"grpc-message", told[:_MAX_MESSAGE].encode("ascii")),
            (MARK_HEADER, _field_value("refused", reason)),
        )
    client = find_refusal_client(request) if request is not None else None
    text = client is not None and client.shape is RefusalShape.TEXT
    return (
        (b"content-type", b"text/plain; charset=utf-8" if text else b"application/json"),
        # Obeyed by the OpenAI and Anthropic SDKs, and by Stripe's.
        (b"x-should-retry", b"false"),
        (b"stripe-should-retry", b"false"),
        (MARK_HEADER, _field_value("refused", reason)),
    )


def websocket_refusal(request: Request, divergence: Divergence) -> bytes | None:
    """Give the error message that OpenAI's Responses and Realtime APIs send over a WebSocket; None for other WebSockets.

    request: the handshake's, redacted.
    Source: Codex 0.169 takes `status` 400 for final, and prints the message; after a bare closing frame it connects 6 times.
    """
    if not request.path.rstrip("/").endswith(_OPENAI_SOCKETS):
        return None
    first = next(iter(divergence.differences), None)
    error = {
        "type": "invalid_request_error",
        "code": NOT_ON_TAPE,
        "message": _message(request, divergence, divergence.text),
        "param": one_line(first.place) if first is not None else None,
        "event_id": None,
    }
    event = {"type": "error", "event_id": "event_playhead", "status": FINAL_STATUS, "error": error}
    return json.dumps(event).encode("ascii")


def is_grpc(request: Request) -> bool:
    """Say whether a request is gRPC, whose clients read fields and no body."""
    return (request.header(b"content-type") or b"").lower().startswith(b"application/grpc")


def _message(request: Request, divergence: Divergence | None, reason: str) -> str:
    told = one_line(reason)
    if divergence is not None and divergence.kind is DivergenceKind.DRIFTED:
        whole = one_line(divergence.text, _MAX_ADVICE + 1)
        told = whole if len(whole) <= _MAX_ADVICE else told
    # Of a request whose deciding failed nothing is known for sure.
    asked = one_line(f"{request.method} {request.url}") if request.method else "this request"
    message = f"Playhead refused {asked}: {told}"
    if divergence is not None and divergence.nearest_seq is not None:
        message += f". Nearest on the tape is exchange {divergence.nearest_seq}"
    if divergence is not None and divergence.differences:
        first = divergence.differences[0]
        message += (
            f"; it differs at {one_line(first.place)}: recorded {one_line(first.recorded)},"
            f" asked {one_line(first.asked)}"
        )
    return message[:_MAX_MESSAGE]


def stub_headers(headers: Headers, reason: str, word: str = "stubbed") -> Headers:
    """Mark the header fields of an answer that was made up instead of executing an effect.

    word: `stubbed` or `hypothetical`.
    """
    kept = tuple((name, value) for name, value in headers if name.lower() != MARK_HEADER)
    return (*kept, (MARK_HEADER, _field_value(word, reason)))


_OUTSIDE = re.compile(r"[^ -~]")


def _field_value(word: str, reason: str) -> bytes:
    text = _OUTSIDE.sub("?", " ".join(reason.split()))
    return f"{word}; {text}".encode("ascii")[:_MAX_VALUE].rstrip(b" ;")


def injected_headers(request: Request, name: str, retry_after_s: int | None) -> Headers:
    """Give the header fields of an answer that is a fault on purpose, `content-length` aside.

    retry_after_s: what Retry-After says, or None.
    """
    mark = (MARK_HEADER, _field_value("injected", name))
    if is_grpc(request):
        return (
            (b"content-type", b"application/grpc"),
            (b"grpc-status", b"14"),  # UNAVAILABLE, as of a status that is none of gRPC's
            (b"grpc-message", quote(f"injected: {name}", safe=" ").encode("ascii")),
            mark,
        )
    retry = ((b"retry-after", b"%d" % retry_after_s),) if retry_after_s is not None else ()
    return ((b"content-type", b"application/json"), *retry, mark)
