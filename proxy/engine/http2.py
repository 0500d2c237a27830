"""HTTP/2 on either side, where mitmproxy does not carry what passes, or carries it without bound.

1. A client's stream is reset with the code that the upstream's was reset with, not with INTERNAL_ERROR or
   CANCEL: clients act on the difference, as on REFUSED_STREAM, which may be asked again.
2. What a peer's window does not take yet is kept without bound: the handler asks here how much that is, and
   reads no more of the other side while it is too much.
3. Interim answers are left out, as mitmproxy leaves them out, and noted on the answer that follows.
4. An answer of HTTP/1 for a client of HTTP/2 keeps its fields, without what HTTP/2 forbids. mitmproxy sees to
   names and fields of a connection, but neither to folded lines (RFC 9113 section 8.2.1 forbids CR and LF)
   nor to the names of trailers, and clients end the connection over either.

Replaces by name: `Http2Client` and `Http2Server` in `mitmproxy.proxy.layers.http`. Checked against 12.2.3.
Test: tests/journeys/test_bytes.py, tests/journeys/test_faults.py, tests/journeys/test_large_bodies.py.
"""

from typing import Any

from h2.events import Event as H2Event
from h2.events import InformationalResponseReceived, StreamEnded, StreamReset
from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import ResponseHeaders, ResponseProtocolError, ResponseTrailers
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._http2 import Http2Client, Http2Server
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

from ...addons.wire import note
from ...tape.model import Headers
from .messages import INTERIM_LEFT_OUT

Commands = Any
"""A generator of mitmproxy commands."""


class PlayheadHttp2Client(Http2Client):
    """The upstream's side of HTTP/2."""

    def __init__(self, context: Context) -> None:
        """Ask the upstream of `context`."""
        super().__init__(context)
        self.conn.h2 = self.h2_conn  # type: ignore[attr-defined]  # read by `waiting_bytes`
        self._interim: dict[int, set[str]] = {}
        """Statuses that came before the answer of a stream."""

    def handle_h2_event(self, event: H2Event) -> Commands:
        """Handle an event as mitmproxy does; remember interim answers until the answer comes."""
        if isinstance(event, InformationalResponseReceived):
            status = dict(event.headers).get(b":status", b"").decode("latin-1")
            if status != "100":
                self._interim.setdefault(event.stream_id, set()).add(status)
        elif isinstance(event, (StreamEnded, StreamReset)):
            self._interim.pop(event.stream_id, None)
        return (yield from self._noting(super().handle_h2_event(event)))

    def _noting(self, generator: Commands) -> Commands:
        try:
            while True:
                command = next(generator)
                if isinstance(command, ReceiveHttp) and isinstance(command.event, ResponseHeaders):
                    for status in sorted(self._interim.pop(command.event.stream_id, ())):
                        note(command.event.response, INTERIM_LEFT_OUT.format(status=status))
                yield command
        except StopIteration as stop:
            return stop.value


class PlayheadHttp2Server(Http2Server):
    """The client's side of HTTP/2."""

    def __init__(self, context: Context) -> None:
        """Serve the client of `context`."""
        super().__init__(context)
        self.conn.h2 = self.h2_conn  # type: ignore[attr-defined]  # read by `waiting_bytes`

    def _handle_event(self, event: events.Event) -> Commands:
        code = getattr(event, "h2_code", None)  # put there by the streams
        if code is not None and isinstance(event, ResponseProtocolError):
            if not self.is_closed(event.stream_id):
                self.h2_conn.reset_stream(event.stream_id, int(code))
                yield commands.SendData(self.conn, self.h2_conn.data_to_send())
            return
        if isinstance(event, ResponseHeaders) and not event.response.is_http2:
            if any(b"\n" in value for _, value in event.response.headers.fields):
                response = event.response.copy()
                response.headers = http.Headers(_flat(response.headers.fields))
                event = ResponseHeaders(event.stream_id, response, event.end_stream)
        elif isinstance(event, ResponseTrailers):
            fields = [(name.lower(), value) for name, value in event.trailers.fields]
            event = ResponseTrailers(event.stream_id, http.Headers(_flat(tuple(fields))))
        yield from super()._handle_event(event)


def waiting_bytes(connection: Connection) -> int:
    """Give the bytes that a peer's windows have not taken yet; 0 where it does not speak HTTP/2."""
    found: BufferedH2Connection | None = getattr(connection, "h2", None)
    if found is None or not found.stream_buffers:
        return 0
    return sum(len(piece.data) for pieces in found.stream_buffers.values() for piece in pieces)


def _flat(fields: Headers) -> Headers:
    """Give fields with folded lines in one."""
    return tuple((name, value.replace(b"\r\n ", b" ")) for name, value in fields)


def install() -> None:
    """Have mitmproxy speak HTTP/2 so, for the whole process."""
    http_layer.Http2Client = PlayheadHttp2Client  # type: ignore[misc]
    http_layer.Http2Server = PlayheadHttp2Server  # type: ignore[misc]
