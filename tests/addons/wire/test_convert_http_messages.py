"""Messages of mitmproxy and ours: what is carried over, what is made, and what is found not to agree."""

from dataclasses import replace
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from playhead.addons.wire.convert_http_messages import (
    announced_length,
    is_interim,
    keep_scheme,
    make_answer,
    make_head,
    make_interim,
    needs_http2,
    note,
    noted,
    read_names,
    read_request,
    with_scheme,
)
from playhead.tape.exchange import Headers, Interim, Spilled
from playhead.tests.support.exchanges import make_exchange, make_request, make_response


def make_flow(url: str = "https://api.test/x", **changes: Any) -> http.HTTPFlow:
    """A flow that asks for a URL; changes are attributes of its request."""
    flow = tflow.tflow(req=http.Request.make("GET", url))
    flow.client_conn.sni = None
    for name, value in changes.items():
        setattr(flow.request, name, value)
    return flow


@pytest.mark.parametrize(
    ("url", "stated", "sent"),
    [
        ("https://api.test/", "http", "http"),
        ("http://api.test/", "https", "https"),
        ("https://api.test/", "https", "https"),
        ("https://api.test/", "wss", "https"),
        ("http://api.test/", "ws", "http"),
    ],
)
def test_a_request_is_sent_on_with_the_scheme_that_it_stated(
    url: str, stated: str, sent: str
) -> None:
    """A WebSocket's is that of HTTP; the request itself keeps the scheme of its connection."""
    message = http.Request.make("GET", url)
    own = message.scheme
    message.scheme = stated
    keep_scheme(message)
    message.scheme = own
    given = with_scheme(message)
    assert (given.scheme, message.scheme) == (sent, own)
    assert (given is message) == (sent == own)


def test_a_request_that_stated_nothing_is_sent_on_as_it_is() -> None:
    """Nobody has noted a scheme for it."""
    message = http.Request.make("GET", "https://api.test/")
    assert with_scheme(message) is message


@pytest.mark.parametrize(
    ("url", "sni", "authority", "tunnelled", "version", "names"),
    [
        ("https://api.test/", None, "", True, "HTTP/1.1", ()),
        ("https://api.test/", "api.test", "", True, "HTTP/1.1", ()),
        ("https://api.test/", "API.test.", "", True, "HTTP/1.1", ()),
        ("https://api.test/", "other.test", "", True, "HTTP/1.1", (("sni", "other.test"),)),
        ("https://api.test/", "proxy.test", "", False, "HTTP/1.1", ()),
        ("http://api.test/", "other.test", "", True, "HTTP/1.1", ()),
        ("https://api.test/", None, "api.test", True, "HTTP/2.0", ()),
        ("https://api.test/", None, "api.test:443", True, "HTTP/2.0", ()),
        (
            "https://api.test/",
            None,
            "api.test:8443",
            True,
            "HTTP/2.0",
            (("authority", "api.test:8443"),),
        ),
        ("https://api.test/", None, "b.test", True, "HTTP/2.0", (("authority", "b.test"),)),
        ("http://api.test/", None, "b.test", False, "HTTP/1.1", (("target", "b.test"),)),
        (
            "https://api.test/",
            "a.test",
            "b.test",
            True,
            "HTTP/2.0",
            (("sni", "a.test"), ("authority", "b.test")),
        ),
    ],
)
def test_names_that_do_not_agree_are_found(
    url: str,
    sni: str | None,
    authority: str,
    tunnelled: bool,
    version: str,
    names: tuple[tuple[str, str], ...],
) -> None:
    """Each with where it stands; without a tunnel the name in TLS is the proxy's own."""
    flow = make_flow(url, http_version=version)
    flow.request.data.authority = authority.encode()
    flow.client_conn.sni = sni
    assert read_names(flow, tunnelled=tunnelled) == names


def test_a_scheme_that_is_not_that_of_its_connection_is_found() -> None:
    """As a name of the request, behind the others."""
    flow = make_flow("https://api.test/")
    flow.request.scheme = "http"
    keep_scheme(flow.request)
    flow.request.scheme = "https"
    assert read_names(flow, tunnelled=True) == (("scheme", "http"),)


def test_a_request_is_read_as_it_came() -> None:
    """Method in its own case, target and fields as bytes; the body of a spilled one is elsewhere."""
    message = http.Request(
        host="api.test",
        port=8443,
        method=b"PoSt",
        scheme=b"https",
        authority=b"",
        path=b"/\xe9?a=%20",
        http_version=b"HTTP/1.1",
        headers=http.Headers(()),
        content=b"body",
        trailers=http.Headers(((b"X-End", b"1"),)),
        timestamp_start=0,
        timestamp_end=0,
    )
    flow = tflow.tflow(req=message)
    headers: Headers = ((b"Expect", b"100-continue"),)
    read = read_request(flow, headers, names=(("sni", "b.test"),))
    assert (read.method, read.scheme, read.host, read.port) == ("PoSt", "https", "api.test", 8443)
    assert (read.target, read.http_version, read.headers) == ("/\xe9?a=%20", "HTTP/1.1", headers)
    assert (read.body, read.trailers) == (b"body", ((b"X-End", b"1"),))
    assert read.names == (("sni", "b.test"),)
    message.content = None
    spilled = Spilled(b"d" * 32, 9, b"m" * 32)
    assert read_request(flow, headers, spilled).spilled == spilled
    assert read_request(flow, headers, spilled).body == b""


@pytest.mark.parametrize(
    ("headers", "length"),
    [
        ((), -1),
        (((b"Content-Length", b"12"),), 12),
        (((b"x", b"1"), (b"CONTENT-LENGTH", b"0")), 0),
        (((b"content-length", b"+1"),), -1),
        (((b"content-length", b""),), -1),
        (((b"content-length", b"1, 1"),), -1),
        (((b"content-length", b"3"), (b"content-length", b"4")), 3),
    ],
)
def test_the_length_that_a_head_states(headers: Headers, length: int) -> None:
    """-1 where it states none that can be read."""
    assert announced_length(headers) == length


@pytest.mark.parametrize(
    ("recorded", "asked", "method", "status", "fields", "chunked"),
    [
        ("HTTP/2.0", "HTTP/1.1", "GET", 200, (), True),
        ("HTTP/2.0", "HTTP/1.1", "GET", 200, ((b"Content-Length", b"1"),), False),
        ("HTTP/2.0", "HTTP/1.1", "GET", 200, ((b"transfer-encoding", b"chunked"),), False),
        ("HTTP/2.0", "HTTP/1.1", "HEAD", 200, (), False),
        ("HTTP/2.0", "HTTP/1.1", "GET", 204, (), False),
        ("HTTP/2.0", "HTTP/1.1", "GET", 304, (), False),
        ("HTTP/2.0", "HTTP/2.0", "GET", 200, (), False),
        ("HTTP/1.1", "HTTP/1.1", "GET", 200, (), False),
    ],
)
def test_an_answer_without_a_length_is_sent_in_chunks_over_http1(
    recorded: str, asked: str, method: str, status: int, fields: Headers, chunked: bool
) -> None:
    """If it was recorded over HTTP/2, where the end of a body needs no length."""
    request = http.Request.make(method, "https://api.test/")
    request.http_version = asked
    response = make_response(b"", status, http_version=recorded, headers=fields)
    head = make_head(response, request)
    added = ((b"transfer-encoding", b"chunked"),) if chunked else ()
    assert head.data.headers.fields == (*fields, *added)
    assert (head.status_code, head.data.http_version) == (status, recorded.encode())
    assert head.trailers is None


def test_a_head_keeps_reason_and_trailers() -> None:
    """As they were recorded, byte for byte."""
    trailers: Headers = ((b"grpc-status", b"0"),)
    response = make_response(reason=b"Fine \xe9", trailers=trailers)
    head = make_head(response, http.Request.make("GET", "https://api.test/"))
    assert head.data.reason == b"Fine \xe9"
    assert head.data.trailers is not None
    assert head.data.trailers.fields == trailers


@pytest.mark.parametrize(
    ("recorded", "asked", "kind", "needed"),
    [
        ("HTTP/2.0", "HTTP/1.1", b"application/grpc", True),
        ("HTTP/2.0", "HTTP/1.1", b"Application/GRPC+proto", True),
        ("HTTP/2.0", "HTTP/1.1", b"application/grpc-web", False),
        ("HTTP/2.0", "HTTP/1.1", b"application/json", False),
        ("HTTP/2.0", "HTTP/1.1", None, False),
        ("HTTP/2.0", "HTTP/2.0", b"application/grpc", False),
        ("HTTP/1.1", "HTTP/1.1", b"application/grpc", False),
    ],
)
def test_grpc_needs_http2(recorded: str, asked: str, kind: bytes | None, needed: bool) -> None:
    """Only what was recorded over it; the reason names what the client speaks."""
    fields = () if kind is None else ((b"Content-Type", kind),)
    tape = replace(
        make_exchange(), request=replace(make_request(), http_version=recorded, headers=fields)
    )
    reason = needs_http2(replace(make_request(), http_version=asked), tape)
    assert bool(reason) == needed
    assert reason.endswith(f"this client speaks {asked}" if needed else "")


@pytest.mark.parametrize(
    ("status", "interim"), [(100, True), (101, False), (103, True), (199, True), (200, False)]
)
def test_what_is_below_200_is_interim(status: int, interim: bool) -> None:
    """But for 101, which switches protocols."""
    made = make_interim(Interim(5, status, b"Hints", ((b"link", b"</a>"),)))
    assert is_interim(made) == interim
    assert (made.status_code, made.data.reason) == (status, b"Hints")
    assert made.data.headers.fields == ((b"link", b"</a>"),)


@pytest.mark.parametrize(
    ("status", "headers", "reason", "fields"),
    [
        (200, (), b"OK", ()),
        (424, ((b"a", b"b"),), b"Failed Dependency", ((b"a", b"b"),)),
        (299, (), b"", ()),
        (200, ((b"Content-Length", b"99"), (b"Transfer-Encoding", b"chunked")), b"OK", ()),
    ],
)
def test_an_answer_of_ours_has_the_length_of_its_body(
    status: int, headers: Headers, reason: bytes, fields: Headers
) -> None:
    """Whatever framing was given, and the usual words for its status."""
    made = make_answer(status, headers, b"four")
    assert (made.status_code, made.data.reason, made.content) == (status, reason, b"four")
    assert made.data.headers.fields == (*fields, (b"content-length", b"4"))


def test_what_is_not_carried_is_noted_once() -> None:
    """Of both messages, the request's first."""
    flow = make_flow()
    assert noted(flow) == ()
    note(flow.request, "a")
    note(flow.request, "a")
    note(flow.request, "b")
    assert noted(flow) == ("a", "b")
    flow.response = http.Response.make()
    note(flow.response, "a")
    assert noted(flow) == ("a", "b", "a")
