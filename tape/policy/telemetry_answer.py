"""What telemetry is answered with that is not on the tape: nobody wrote it, and nothing may depend on it.

Rules:

1. What is sent (POST, PUT, PATCH) is taken for delivered: an empty success in the protocol of its exporter, so that it neither
   tries again nor reports an error to the person who reads the agent's output.
2. What is asked (GET, HEAD, OPTIONS) fails as on a machine that is offline: an answer would be made up.
3. Anything else, such as a DELETE, is refused like any other request, and is a divergence.

Source: OTLP specification 1.7 ("Full Success"); gRPC over HTTP/2; the ingest references of the services named.
"""

from typing import NamedTuple

from ..exchange import Headers, Request
from .refusal import MARK_HEADER, is_grpc

SENT = frozenset({"POST", "PUT", "PATCH"})
"""Methods of what is answered with an empty success."""
ASKED = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods of what fails as on a machine that is offline."""

_MARK = (MARK_HEADER, b"discarded; telemetry that is not on the tape")
_JSON = b"application/json"
_PROTOBUF = b"application/x-protobuf"
_EMPTY_MESSAGE = b"\0\0\0\0\0"
"""Of gRPC: not compressed, no bytes."""

_SUCCESSES: tuple[tuple[str, str, int, bytes], ...] = (
    ("api.openai.com", "/v1/traces/ingest", 204, b""),
    ("api.anthropic.com", "/api/eval/", 200, b'{"features":{}}'),
    ("play.googleapis.com", "/log", 200, b""),
    (".smith.langchain.com", "", 202, b"{}"),
    ("", "/api/public/ingestion", 207, b'{"successes":[],"errors":[]}'),
    (".posthog.com", "", 200, b'{"status":1}'),
    ("statsigapi.net", "", 202, b'{"success":true}'),
    (".statsig.com", "", 202, b'{"success":true}'),
    ("statsig.anthropic.com", "", 202, b'{"success":true}'),
    (".segment.io", "", 200, b'{"success":true}'),
    (".segmentapis.com", "", 200, b'{"success":true}'),
    (".amplitude.com", "", 200, b'{"code":200}'),
    (".mixpanel.com", "", 200, b'{"status":1}'),
    (".datadoghq.com", "", 202, b"{}"),
    (".datadoghq.eu", "", 202, b"{}"),
)
"""End of the host, beginning of the path, status and body. The first that fits decides."""
_ENVELOPES = ("/envelope", "/store")
"""Ends of Sentry's paths, whose SDKs read JSON."""


class EmptySuccess(NamedTuple):
    """An answer that takes telemetry for delivered."""

    status: int
    headers: Headers
    body: bytes
    trailers: Headers = ()


def empty_success(request: Request) -> EmptySuccess | None:
    """Give the empty success of what telemetry sends; None for what asks, and for any other method."""
    if request.method.upper() not in SENT:
        return None
    if is_grpc(request):
        fields = ((b"content-type", b"application/grpc"), _MARK)
        return EmptySuccess(200, fields, _EMPTY_MESSAGE, ((b"grpc-status", b"0"),))
    host, path = request.host.lower(), request.path
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind == _PROTOBUF:
        return EmptySuccess(200, ((b"content-type", kind), _MARK), b"")
    for end, begin, status, body in _SUCCESSES:
        if host.endswith(end) and path.startswith(begin):
            return _answer(status, body)
    json = kind == _JSON or path.rstrip("/").endswith(_ENVELOPES)
    return _answer(200, b"{}" if json else b"")


def _answer(status: int, body: bytes) -> EmptySuccess:
    fields: Headers = ((b"content-type", _JSON), _MARK) if body else (_MARK,)
    return EmptySuccess(status, fields, body)
