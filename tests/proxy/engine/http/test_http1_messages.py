"""Messages of HTTP/1 as they are written, where whole journeys do not lead."""

import pytest
from mitmproxy import http, options
from mitmproxy.connection import Client, Server
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import RequestEndOfMessage, RequestHeaders, RequestTrailers

from playhead.addons.wire.convert_http_messages import noted
from playhead.proxy.engine.http.http1_messages import PlayheadClient, find_wrong_field


def _said(*fields: tuple[bytes, bytes]) -> tuple[bytes, tuple[str, ...]]:
    """Write a request of HTTP/2 with trailers over HTTP/1; give its bytes, and what was noted."""
    client = Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
    context = Context(client, options.Options())
    context.server = Server(address=("127.0.0.1", 3))
    layer = PlayheadClient(context)
    request = http.Request.make("POST", "http://x/", b"", http.Headers(fields))
    request.http_version = "HTTP/2.0"
    asked = [
        events.Start(),
        RequestHeaders(1, request, end_stream=False),
        RequestTrailers(1, http.Headers([(b"x-sum", b"7")])),
        RequestEndOfMessage(1),
    ]
    sent = [command for event in asked for command in layer.handle_event(event)]
    data = b"".join(each.data for each in sent if isinstance(each, commands.SendData))
    flow = http.HTTPFlow(client, context.server)
    flow.request = request
    return data.partition(b"\r\n\r\n")[2], noted(flow)


def test_trailers_go_where_chunks_end_or_are_noted() -> None:
    """HTTP/1 has a place for them behind chunks alone; elsewhere it is said that they are missing."""
    assert _said((b"transfer-encoding", b"chunked")) == (b"0\r\nx-sum: 7\r\n\r\n", ())
    rest, warnings = _said((b"content-length", b"0"))
    assert rest == b""
    assert warnings == ("trailers were left out: the message is not in chunks",)


@pytest.mark.parametrize(
    ("host", "authority", "field", "refused"),
    [
        ("fe80::1%eth0", b"", b"", True),
        ("h", b"[fe80::1%25eth0]:443", b"", True),
        ("h", b"", b"[FE80::1%d1]:80", True),
        ("fe80::1", b"[fe80::1]:443", b"[fe80::1]:443", False),
        ("a%2eb", b"", b"a%2eb:80", False),
    ],
)
def test_a_zone_is_refused(host: str, authority: bytes, field: bytes, refused: bool) -> None:
    """Wherever a request names its host."""
    asked = http.Request.make("GET", "http://h/")
    asked.headers = http.Headers(((b"Host", field),))
    asked.data.host, asked.data.authority = host, authority
    assert ("zone" in find_wrong_field(asked)) is refused
