"""HTTP/2 on either side: streams are reset with the code they were reset with, and what waits is known.

mitmproxy resets every stream with INTERNAL_ERROR or CANCEL; clients act on the difference, as on
REFUSED_STREAM, which may be asked again. It also keeps without bound what a peer's window does not take yet:
the handler asks here how much that is, and reads no more of the other side while it is too much.

Replaces by name: `Http2Server` and `Http2Client` in `mitmproxy.proxy.layers.http`. Checked against 12.2.3.
Test: tests/journeys/test_faults.py, tests/proxy/engine/test_handler.py.
"""

from typing import Any

from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import Http2Client, Http2Server, ResponseProtocolError
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

Commands = Any
"""A generator of mitmproxy commands."""


class PlayheadHttp2Server(Http2Server):
    """The client's side of HTTP/2."""

    def __init__(self, context: Context) -> None:
        """Serve the client of `context`."""
        super().__init__(context)
        self.conn.h2 = self.h2_conn  # type: ignore[attr-defined]  # read by `waiting_bytes`

    def _handle_event(self, event: events.Event) -> Commands:
        code = getattr(event, "h2_code", None)
        if code is None or not isinstance(event, ResponseProtocolError):
            yield from super()._handle_event(event)
        elif not self.is_closed(event.stream_id):
            self.h2_conn.reset_stream(event.stream_id, int(code))
            yield commands.SendData(self.conn, self.h2_conn.data_to_send())


class PlayheadHttp2Client(Http2Client):
    """The upstream's side of HTTP/2."""

    def __init__(self, context: Context) -> None:
        """Ask the upstream of `context`."""
        super().__init__(context)
        self.conn.h2 = self.h2_conn  # type: ignore[attr-defined]  # read by `waiting_bytes`


def waiting_bytes(connection: Connection) -> int:
    """Give the bytes that a peer's windows have not taken yet; 0 where it does not speak HTTP/2."""
    found: BufferedH2Connection | None = getattr(connection, "h2", None)
    if found is None or not found.stream_buffers:
        return 0
    return sum(len(piece.data) for pieces in found.stream_buffers.values() for piece in pieces)


def install() -> None:
    """Have mitmproxy speak HTTP/2 so, for the whole process."""
    http_layer.Http2Server = PlayheadHttp2Server  # type: ignore[misc]
    http_layer.Http2Client = PlayheadHttp2Client  # type: ignore[misc]
