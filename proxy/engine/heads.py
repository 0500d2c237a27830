"""Request heads, and what is no request at all: answered or closed at once, logged once, bounded.

mitmproxy waits for an empty line for as long as it takes and keeps whatever comes before it. A client that
speaks SOCKS or SSH to our port would hang, and one that never ends its head would fill the memory. It
also takes a request for a path alone (origin-form, RFC 9112 section 3.2.1) as one for whatever its `Host`
names, which on a proxy's own port is a mistake of whoever sent it.

A head that never comes is ended elsewhere, by time: `addons/connections.py`.
Replaces by name: `Http1Server` in `mitmproxy.proxy.layers.http`, where `HttpLayer` looks it up.
Checked against 12.2.3. Test: tests/journeys/test_bad_input.py.
"""

import logging
import re
from typing import Any

from mitmproxy.net.http import status_codes
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode, RequestHeaders
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._http1 import Http1Server

from .messages import TrailersMixin

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES = 256 * 1024
"""Longest request head; agents send up to some kilobytes, servers take 8 to 64 KiB."""

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]")
_REQUEST_LINE = re.compile(rb"[^\n]* HTTP/\d(\.\d)?\r?\n")
_PEEK_BYTES = 16 * 1024
_DIRECT = (
    "this is a proxy and no server: have the client use it as its proxy"
    " (HTTPS_PROXY and HTTP_PROXY=http://HOST:PORT)"
)


class PlayheadServer(TrailersMixin, Http1Server):
    """The client's side of HTTP/1."""

    def read_headers(self, event: events.ConnectionEvent) -> Any:
        """Read a head as mitmproxy does, unless it is clear already that there is none."""
        while self._start(2).startswith((b"\n", b"\r\n")):
            self.buf.maybe_extract_lines()  # empty lines before a request (RFC 9112 section 2.2)
        reading = isinstance(event, events.DataReceived)
        for command in super().read_headers(event):
            if self._is_direct(command):
                yield from self._end(400, _DIRECT)
                return
            yield command
            closed = reading and isinstance(command, commands.CloseConnection)
            if closed and self.state == self.read_headers:
                # It was answered already; what mitmproxy would show of it is no request of any run.
                self._log("a malformed request")
                self.state = self.done
                return
        if self.state == self.read_headers and len(self.buf):
            yield from self._judge()

    def _judge(self) -> Any:
        """End what cannot become a request any more."""
        start = self._start(_PEEK_BYTES)
        if not _TOKEN.match(start):
            # SOCKS or noise: no answer of ours would be understood.
            self._log(f"no request of HTTP, but {_named(start)}")
            yield commands.CloseConnection(self.conn)
            self.state = self.done
        elif b"\n" in start and not _REQUEST_LINE.match(start):
            yield from self._end(400, f"no request of HTTP, but {_named(start)}")
        elif len(self.buf) > MAX_HEAD_BYTES:
            yield from self._end(431, f"a request head longer than {MAX_HEAD_BYTES} bytes")

    def _start(self, size: int) -> bytes:
        # Not `bytes(self.buf)`, which copies all of it: a head that comes byte by byte would cost its square.
        return bytes(self.buf._data[:size])

    def _is_direct(self, command: commands.Command) -> bool:
        if not isinstance(command, ReceiveHttp) or not isinstance(command.event, RequestHeaders):
            return False
        if command.event.request.first_line_format != "relative":
            return False
        layers = [layer for layer in self.context.layers if isinstance(layer, HttpLayer)]
        return bool(layers) and layers[-1].mode is HTTPMode.regular

    def _end(self, status: int, text: str) -> Any:
        self._log(text)
        body = f"playhead: {text}\n".encode()
        head = (
            f"HTTP/1.1 {status} {status_codes.RESPONSES[status]}\r\n"
            f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        yield commands.SendData(self.conn, head.encode() + body)
        yield commands.CloseConnection(self.conn)
        self.state = self.done

    def _log(self, text: str) -> None:
        host, port = self.conn.peername[:2] if self.conn.peername else ("?", 0)
        logger.warning("client %s:%d: %s; closed", host, port, text)


def _named(start: bytes) -> str:
    """Name what a client speaks, by its first bytes."""
    if start[:1] in (b"\x04", b"\x05"):
        return "SOCKS"
    if start[:4] == b"SSH-":
        return "SSH"
    return repr(start[:24])


def install() -> None:
    """Have mitmproxy read heads so, for the whole process."""
    http_layer.Http1Server = PlayheadServer  # type: ignore[misc]
