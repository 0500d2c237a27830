"""Convert between mitmproxy's HTTP messages and ours, preserving bytes and order."""

from mitmproxy import http
from mitmproxy.net.http import status_codes

from ...tape.canonical.target_overrides import ClaimKind, agrees, agrees_without_port
from ...tape.exchange import (
    Exchange,
    Headers,
    HttpResponse,
    Interim,
    RawInterim,
    RawRequest,
    Request,
    Spilled,
)
from ...tape.policy.refusal import REFUSAL_REASON, REFUSAL_STATUS

_HTTP2 = "HTTP/2"
_FRAMING = (b"content-length", b"transfer-encoding")
_BODILESS = frozenset({204, 304})
_NOTED = "playhead_warnings"
_SCHEME = "playhead_scheme"
_SOCKETS = {"ws": "http", "wss": "https"}
_BOTH_WAYS = ("application/grpc", "application/connect+", "application/vnd.amazon.eventstream")
"""Content types of protocols that stream both ways."""


def keep_scheme(message: http.Request) -> None:
    """Remember the scheme that a request states, before the one of its connection takes its place."""
    stated = message.scheme
    setattr(message, _SCHEME, _SOCKETS.get(stated, stated))


def with_scheme(message: http.Request) -> http.Request:
    """Give a request with the scheme that it stated, to be sent on; itself where that is the one of its connection."""
    stated: str = getattr(message, _SCHEME, message.scheme)
    if stated == message.scheme:
        return message
    sent = message.copy()
    sent.scheme = stated
    return sent


def read_names(flow: http.HTTPFlow, *, tunnelled: bool) -> tuple[tuple[str, str], ...]:
    """Give the names of a request's host, and its scheme, that stand in none of its fields and do not agree with where it goes.

    tunnelled: whether it came through a tunnel; else the name in its TLS is the proxy's own.
    """
    message = flow.request
    found = []
    sni = flow.client_conn.sni if tunnelled and message.scheme == "https" else None
    if sni and not agrees_without_port(sni, message.host):
        found.append((ClaimKind.SNI.value, sni))
    authority = message.data.authority.decode("latin-1")
    if authority and not agrees(authority, message.scheme, message.host, message.port):
        kind = ClaimKind.AUTHORITY if message.is_http2 else ClaimKind.TARGET
        found.append((kind.value, authority))
    stated: str = getattr(message, _SCHEME, message.scheme)
    if stated != message.scheme:
        found.append((ClaimKind.SCHEME.value, stated))
    return tuple(found)


def read_request(
    flow: http.HTTPFlow,
    headers: Headers,
    spilled: Spilled | None = None,
    names: tuple[tuple[str, str], ...] = (),
) -> RawRequest:
    """Give a flow's request as the client sent it.

    headers: as they were when its head arrived; mitmproxy takes `Expect` away later.
    spilled: its body, where that is too large to be held.
    names: of its host, where they do not agree.
    """
    message = flow.request
    data = message.data
    return RawRequest(
        method=data.method.decode("latin-1"),  # `message.method` is in capitals
        scheme=message.scheme,
        host=message.host,
        port=message.port,
        target=data.path.decode("latin-1"),
        http_version=data.http_version.decode("latin-1"),
        headers=headers,
        body=data.content or b"",
        trailers=data.trailers.fields if data.trailers else (),
        spilled=spilled,
        names=names,
    )


def announced_length(headers: Headers) -> int:
    """Give the content-length that a head states, or -1."""
    for name, value in headers:
        if name.lower() == b"content-length":
            return int(value) if value.isdigit() else -1
    return -1


def make_head(response: HttpResponse, request: http.Request) -> http.Response:
    """Give a recorded response's head for a client, framed for the protocol it speaks.

    A response recorded over HTTP/2 may have no length; over HTTP/1 it is sent in chunks then, or the
    end of its body could not be told.
    """
    headers = response.headers
    if (
        response.http_version.startswith(_HTTP2)
        and not request.is_http2
        and request.method != "HEAD"
        and response.status not in _BODILESS
        and not any(name.lower() in _FRAMING for name, _ in headers)
    ):
        headers = (*headers, (b"transfer-encoding", b"chunked"))
    return http.Response(
        http_version=response.http_version.encode("latin-1"),
        status_code=response.status,
        reason=response.reason,
        headers=http.Headers(headers),
        content=b"",
        trailers=http.Headers(response.trailers) if response.trailers else None,
        timestamp_start=0.0,
        timestamp_end=0.0,
    )


def needs_http2(request: Request, recorded: Exchange) -> str:
    """Say why an exchange cannot be played to a client of HTTP/1, or nothing."""
    over = request.http_version
    if over.startswith(_HTTP2) or not recorded.request.http_version.startswith(_HTTP2):
        return ""
    kind = (recorded.request.header(b"content-type") or b"").lower()
    if not kind.startswith(b"application/grpc") or kind.startswith(b"application/grpc-web"):
        return ""
    return f"gRPC needs HTTP/2, over which it was recorded; this client speaks {over}"


def make_interim(interim: RawInterim | Interim) -> http.Response:
    """Give a recorded interim answer for a client."""
    return http.Response(
        http_version=b"HTTP/1.1",
        status_code=interim.status,
        reason=interim.reason,
        headers=http.Headers(interim.headers),
        content=b"",
        trailers=None,
        timestamp_start=0.0,
        timestamp_end=0.0,
    )


def is_interim(response: http.Response) -> bool:
    """Say whether an answer is an interim one; 101 switches protocols and is an answer."""
    return response.status_code < 200 and response.status_code != 101


def make_answer(status: int, headers: Headers, body: bytes, reason: bytes = b"") -> http.Response:
    """Give an answer that we made up.

    reason: in place of the status's own; HTTP/2 carries none.
    """
    length = (b"content-length", str(len(body)).encode())
    fields = tuple(field for field in headers if field[0].lower() not in _FRAMING)
    return http.Response(
        http_version=b"HTTP/1.1",
        status_code=status,
        reason=reason or status_codes.RESPONSES.get(status, "").encode(),
        headers=http.Headers((*fields, length)),
        content=body,
        trailers=None,
        timestamp_start=0.0,
        timestamp_end=0.0,
    )


def make_refusing_answer(status: int, headers: Headers, body: bytes) -> http.Response:
    """Give a refusal. Where a model's client expects another status it has a shape of its own, and prints the body."""
    reason = REFUSAL_REASON if status == REFUSAL_STATUS else b""
    return make_answer(status, headers, body, reason)


def note(message: http.Message, warning: str) -> None:
    """Remember of a request or response that something of it is not carried; the same once."""
    found: tuple[str, ...] = getattr(message, _NOTED, ())
    if warning not in found:
        setattr(message, _NOTED, (*found, warning))


def noted(flow: http.HTTPFlow) -> tuple[str, ...]:
    """Give what was noted of both messages of an exchange, for `Exchange.warnings`."""
    asked: tuple[str, ...] = getattr(flow.request, _NOTED, ())
    if flow.response is None:
        return asked
    answered: tuple[str, ...] = getattr(flow.response, _NOTED, ())
    return (*asked, *answered)


def is_bidirectional(request: http.Request) -> bool:
    """Say whether a request may be answered before it has ended."""
    if not request.is_http2:
        return False
    kind: str = request.headers.get("content-type", "")
    return kind.lower().startswith(_BOTH_WAYS)
