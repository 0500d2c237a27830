"""HTTP/1 messages as they come: trailers after a body, interim answers before one.

mitmproxy crashes on trailers and takes an interim answer (RFC 9110 section 15.2) for the answer; either way
the client waits for ever. Here trailers pass and are kept, and interim answers are left out: they are no
part of the outcome, and 100 (Continue) the client has had from us.

Replaces by name: `Http1Client` in `mitmproxy.proxy.layers.http`, `ChunkedReader` in `._http1`; `TrailersMixin`
is a base of our `Http1Server` too. Checked against 12.2.3. Test: tests/journeys/test_clients.py.
"""

import re
from typing import Any

import h11
from h11._readers import ChunkedReader
from mitmproxy import http
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import (
    RequestEndOfMessage,
    RequestTrailers,
    ResponseEndOfMessage,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http import _http1 as http1_layer
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Connection

_INTERIM = re.compile(rb"HTTP/1\.[01] 1(?!01)\d\d[ \r\n]")
"""101 switches protocols and is an answer."""
_INTERIM_BYTES = 13

Commands = Any
"""A generator of mitmproxy commands."""


class TrailersReader(ChunkedReader):
    """Reads chunks, and keeps the trailers that follow them for whoever asks."""

    trailers: http.Headers | None = None

    def __call__(self, buf: Any) -> Any:
        """Give the next event; the last one carries no trailers, which mitmproxy could not take."""
        event = super().__call__(buf)
        if isinstance(event, h11.EndOfMessage) and event.headers:
            self.trailers = http.Headers(event.headers.raw_items())
            return h11.EndOfMessage()
        return event


class TrailersMixin(Http1Connection):
    """Either side of HTTP/1, with trailers."""

    _trailers: http.Headers | None = None
    """To be sent at the end of the message."""

    def read_body(self, event: events.Event) -> Commands:
        """Read a body as mitmproxy does, with its trailers."""
        for command in super().read_body(event):
            trailers = getattr(self.body_reader, "trailers", None)
            if trailers is not None and _is_end(command):
                self.body_reader.trailers = None  # type: ignore[union-attr]  # it has one
                kind = RequestTrailers if self._is_server else ResponseTrailers
                assert self.stream_id is not None
                yield ReceiveHttp(kind(self.stream_id, trailers))
            yield command

    def send(self, event: HttpEvent) -> Commands:
        """Send a part of a message; trailers go where chunks end, or nowhere."""
        if isinstance(event, (RequestTrailers, ResponseTrailers)):
            self._trailers = event.trailers
            return
        ending = isinstance(event, (RequestEndOfMessage, ResponseEndOfMessage))
        trailers = self._trailers
        if trailers is None or not ending:
            yield from super().send(event)
            return
        self._trailers = None
        for command in super().send(event):
            if isinstance(command, commands.SendData) and command.data == b"0\r\n\r\n":
                yield commands.SendData(command.connection, b"0\r\n" + bytes(trailers) + b"\r\n")
            else:
                yield command

    @property
    def _is_server(self) -> bool:
        return self.conn is self.context.client


class PlayheadClient(TrailersMixin, Http1Client):
    """The upstream's side of HTTP/1."""

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        """Read the head of an answer; leave out those of interim answers."""
        while self._is_interim() and self.buf.maybe_extract_lines():
            pass
        yield from super().read_headers(event)

    def _is_interim(self) -> bool:
        # Not `bytes(self.buf)`, which copies all of it.
        return _INTERIM.match(bytes(self.buf._data[:_INTERIM_BYTES])) is not None


def _is_end(command: commands.Command) -> bool:
    return isinstance(command, ReceiveHttp) and isinstance(
        command.event, (RequestEndOfMessage, ResponseEndOfMessage)
    )


def install() -> None:
    """Have mitmproxy read and write messages so, for the whole process."""
    http_layer.Http1Client = PlayheadClient  # type: ignore[misc]
    http1_layer.ChunkedReader = TrailersReader  # type: ignore[misc]
