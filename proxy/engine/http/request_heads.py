"""Check request heads: malformed requests are answered or closed at once, logged once, and bounded.

mitmproxy waits for an empty line for as long as it takes and keeps whatever comes before it. A client that
speaks SOCKS or SSH to our port would hang, and one that never ends its head would fill the memory. It
also takes a request for a path alone (origin-form, RFC 9112 section 3.2.1) as one for whatever its `Host`
names, which on a proxy's own port is a mistake of whoever sent it.

A head that never comes is ended elsewhere, by time: `addons/client_sockets.py`.
Replaces by name: `Http1Server` in `mitmproxy.proxy.layers.http`, where `HttpLayer` looks it up.
Checked against 12.2.3. Test: tests/journeys/test_bad_input.py.
"""

import re
from typing import Any

from mitmproxy.connection import Server
from mitmproxy.net.http import status_codes
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import (
    ErrorCode,
    HttpLayer,
    HTTPMode,
    RequestHeaders,
    RequestProtocolError,
)
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._http1 import Http1Server

from ....addons.attempts.log_failed_attempts import Stray
from ....tape.records.failed_attempt import CUT_BEHIND, CUT_HEAD, AttemptKind
from ..hooks.own_hooks import PlayheadStrayHook
from .http1_messages import MAX_HEAD_BYTES, MessagesMixin, find_wrong_field

MAX_AHEAD_BYTES = 1024 * 1024
"""Most that a client may send before it has been answered: requests in a pipeline, or a flood."""

_TOO_LONG = f"a request head longer than {MAX_HEAD_BYTES} bytes"
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]")
_REQUEST_LINE = re.compile(rb"[^\n]* HTTP/\d(\.\d)?\r?\n")
_PEEK_BYTES = 16 * 1024
_DIRECT = (
    "this is a proxy and no server: have the client use it as its proxy"
    " (HTTPS_PROXY and HTTP_PROXY=http://HOST:PORT)"
)


class PlayheadServer(MessagesMixin, Http1Server):
    """The client's side of HTTP/1."""

    _reported = False
    """Whether what the client said last was noted: nothing comes after it."""
    _left = False
    """Whether the client left while it waited; a request that it leaves behind may go on without it."""

    def read_headers(self, event: events.ConnectionEvent) -> Any:
        """Read a head as mitmproxy does, unless it is clear already that there is none."""
        while self.buf.start(2).startswith((b"\n", b"\r\n")):
            self.buf.maybe_extract_lines()  # empty lines before a request (RFC 9112 section 2.2)
        reading = isinstance(event, events.DataReceived)
        if isinstance(event, events.ConnectionClosed) and self.buf.start(_PEEK_BYTES).strip():
            yield from self._report(CUT_HEAD, AttemptKind.CUT_REQUEST)
        if reading and self.buf.overlong_head():
            yield from self._end(431, _TOO_LONG)
            return
        for command in super().read_headers(event):
            if reading and isinstance(command, commands.SendData):
                # mitmproxy's page; what it would show of the rest is no request of any run.
                yield from self._end(400, "a malformed request")
                return
            if wrong := self._find_wrong(command):
                yield from self._end(*wrong)
                return
            yield command
        if self.state == self.read_headers and len(self.buf):
            yield from self._check()

    def _check(self) -> Any:
        """End what cannot become a request any more."""
        start = self.buf.start(_PEEK_BYTES)
        if not _TOKEN.match(start):
            # SOCKS or noise: no answer of ours would be understood.
            self.log(f"no request of HTTP, but {_named(start)}")
            yield from self._report_foreign(start)
            yield commands.CloseConnection(self.conn)
            self.state = self.done
        elif b"\n" in start and not _REQUEST_LINE.match(start):
            yield from self._report_foreign(start)
            yield from self._end(400, f"no request of HTTP, but {_named(start)}")

    def _report_foreign(self, start: bytes) -> Any:
        yield from self._report(_named(start), foreign=True)

    def _report(
        self,
        said: str,
        kind: AttemptKind = AttemptKind.MALFORMED_REQUEST,
        *,
        foreign: bool = False,
    ) -> Any:
        """Have it noted, once for a connection."""
        if self._reported:
            return
        self._reported = True
        context, tunnelled = self.context, self._mode is HTTPMode.transparent
        server = context.server if tunnelled else Server(address=None)
        yield PlayheadStrayHook(Stray(context.client, server, said, kind, foreign))

    def wait(self, event: events.Event) -> Any:
        """Wait for the answer, and keep what the client asks meanwhile, up to a limit."""
        if isinstance(event, events.DataReceived) and len(self.buf) > MAX_AHEAD_BYTES:
            text = f"more than {MAX_AHEAD_BYTES} bytes sent ahead of an answer"
            self.log(text)
            yield commands.CloseConnection(self.conn)
            yield ReceiveHttp(
                RequestProtocolError(self.stream_id, text, ErrorCode.CLIENT_DISCONNECTED)
            )
            self.state = self.done
            return
        yield from super().wait(event)
        if isinstance(event, events.ConnectionClosed):
            self._left = True
            if self.buf.start(_PEEK_BYTES).strip():
                yield from self._report(CUT_BEHIND, AttemptKind.CUT_REQUEST)

    def mark_done(self, *, request: bool = False, response: bool = False) -> Any:
        """Read the next request, unless the client has left: nobody would be there for its answer."""
        if self._left:
            self.state = self.done
            return
        yield from super().mark_done(request=request, response=response)

    def _find_wrong(self, command: commands.Command) -> tuple[int, str] | None:
        """Give status and sentence for a request that is not to be handled."""
        if not isinstance(command, ReceiveHttp) or not isinstance(command.event, RequestHeaders):
            return None
        request = command.event.request
        tunnelled = self._mode is HTTPMode.transparent
        if request.first_line_format == "relative" and not tunnelled:
            return 400, _DIRECT
        if request.first_line_format == "authority" and tunnelled:
            return 400, "a request for a tunnel inside a tunnel"
        if not request.http_version.startswith("HTTP/1."):
            return 505, f"a request of {request.http_version} in a connection of HTTP/1"
        wrong = find_wrong_field(request)
        return (400, wrong) if wrong else None

    @property
    def _mode(self) -> HTTPMode:
        # The innermost one: a tunnel's own HTTP is around it.
        return next(
            layer.mode for layer in reversed(self.context.layers) if isinstance(layer, HttpLayer)
        )

    def _end(self, status: int, text: str) -> Any:
        self.log(text)
        yield from self._report(text)
        body = f"playhead: {text}\n".encode()
        head = (
            f"HTTP/1.1 {status} {status_codes.RESPONSES[status]}\r\n"
            f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        yield commands.SendData(self.conn, head.encode() + body)
        yield commands.CloseConnection(self.conn)
        self.state = self.done


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
