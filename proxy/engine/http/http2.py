"""HTTP/2 connections: errors that must not end a stream, and the parts that are not carried.

1. A GOAWAY without an error (RFC 9113 section 6.8) ends nothing that is on its way: servers send it after
   so many requests, before they restart, and clients when they have no more to ask. hyper-h2 takes it for
   the end of the connection. Here the streams it lets live are read on, the others fail, and new requests
   get another connection.
2. Interim answers, which mitmproxy leaves out, are passed on, each as a head of its own.
3. An answer of HTTP/1 for a client of HTTP/2 keeps its fields, without what HTTP/2 forbids: mitmproxy sees
   to names and to fields of a connection, but neither to folded lines nor to the names of trailers, and
   clients end the connection over either (section 8.2.1).
4. A frame longer than allowed is an error when its header has come, not when the rest has; a status that is
   no status is one, too. What is wrong with a peer is logged once.
5. A client's stream is reset with the code that the upstream's was reset with, not with INTERNAL_ERROR or
   CANCEL: clients act on the difference, as on REFUSED_STREAM, which may be asked again.
6. What a peer's window does not take yet is kept without bound: the handler asks here how much that is, and
   reads no more of the other side while it is too much.

Replaces by name: `Http2Client` and `Http2Server` in `mitmproxy.proxy.layers.http`, `BufferedH2Connection` in
`._http2`. Checked against 12.2.3. Test: tests/journeys/test_bytes.py, tests/journeys/test_bad_wire.py,
tests/journeys/test_faults.py, tests/journeys/test_large_bodies.py.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from h2.errors import ErrorCodes
from h2.events import (
    Event,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import FrameTooLargeError
from h2.stream import StreamClosedBy
from hyperframe.frame import Frame, GoAwayFrame
from mitmproxy import http
from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import (
    ErrorCode,
    RequestHeaders,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http import _http2 as http2_layer
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._http2 import Http2Client, Http2Connection, Http2Server
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

from ....addons.attempts.log_failed_attempts import Stray
from ....addons.wire.convert_http_messages import with_scheme
from ....tape.exchange import Headers
from ....tape.records.failed_attempt import AttemptKind
from ..hooks.own_hooks import PlayheadStrayHook
from .http1_messages import MAX_HEAD_BYTES, find_wrong_field, log_peer

_STATUS = re.compile(rb"[1-9]\d\d")
_HEADER_BYTES = 9
_GONE_AWAY = (
    "stream reset by peer (REFUSED_STREAM): it went away before it looked at the request (GOAWAY)"
)
"""Who is told so may ask again (RFC 9113 section 8.7), as after a GOAWAY."""
_BY_CLIENT, _BY_SERVER = "stream reset by client (", "stream reset by server ("

Commands = Any
"""A generator of mitmproxy commands."""


@dataclass
class Draining(Event):
    """The peer takes no new streams, and lets those up to this one come to their end."""

    last_stream_id: int


class PlayheadH2Connection(BufferedH2Connection):
    """hyper-h2's connection, for which a GOAWAY without an error is not the end."""

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        if frame.error_code != ErrorCodes.NO_ERROR:
            return super()._receive_goaway_frame(frame)
        return [], [Draining(frame.last_stream_id)]

    def receive_data(self, data: bytes) -> list[Event]:
        """Receive bytes; give what they mean.

        Raises: h2.exceptions.ProtocolError.
        """
        found: list[Event] = super().receive_data(data)
        header = self.incoming_buffer._data[:_HEADER_BYTES]
        if len(header) == _HEADER_BYTES:
            length = int.from_bytes(header[:3])
            if length > self.max_inbound_frame_size:
                raise FrameTooLargeError(f"received a frame of {length} bytes")
        return found


class _Mixin(Http2Connection):
    """Either side of HTTP/2."""

    def protocol_error(self, message: str, error_code: int = ErrorCodes.PROTOCOL_ERROR) -> Commands:
        """End the connection over what the peer did."""
        self.log(" ".join(message.split()))
        yield from super().protocol_error(message, error_code)

    def log(self, text: str) -> None:
        """Say what is wrong with the peer, whose connection or stream is closed for it."""
        log_peer(self.context, self.conn, text)

    def _look_at(self, generator: Commands) -> Commands:
        """Pass commands on; refuse heads that can be read in two ways."""
        try:
            while True:
                command = next(generator)
                event = command.event if isinstance(command, ReceiveHttp) else None
                if isinstance(event, (RequestHeaders, ResponseHeaders)):
                    wrong = self._find_wrong(event)
                    if wrong:
                        yield from self._refuse(event.stream_id, wrong)
                        continue
                yield command
        except StopIteration as stop:
            return stop.value

    def _find_wrong(self, event: Any) -> str:
        """Say what is wrong with a head, or nothing."""
        raise NotImplementedError

    def _refuse(self, stream: int, wrong: str) -> Commands:
        """End a stream over its head."""
        raise NotImplementedError


class PlayheadHttp2Client(_Mixin, Http2Client):
    """The upstream's side of HTTP/2."""

    def __init__(self, context: Context) -> None:
        """Ask the upstream of `context`."""
        super().__init__(context)
        self.conn.h2 = self.h2_conn  # type: ignore[attr-defined]  # read by `waiting_bytes`
        self._interim_bytes: Counter[int] = Counter()
        """Length of the interim answers on each stream."""
        self._draining = False

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, RequestHeaders):
            event = RequestHeaders(event.stream_id, with_scheme(event.request), event.end_stream)
        yield from super()._handle_event(event)

    def handle_h2_event(self, event: Event) -> Commands:
        """Handle an event as mitmproxy does, and what it does not know."""
        if isinstance(event, Draining):
            yield from self._drain(event.last_stream_id)
            return False
        if isinstance(event, (InformationalResponseReceived, ResponseReceived)):
            status = _status(event.headers)
            if not _STATUS.fullmatch(status):
                yield from self.protocol_error(f"received no status, but {status!r}")
                return True
        if isinstance(event, InformationalResponseReceived):
            yield from self._pass_interim(event)
            return False
        over = yield from self._name_resetter(self._look_at(super().handle_h2_event(event)))
        if isinstance(event, (StreamEnded, StreamReset)):
            del self._interim_bytes[event.stream_id]
            if self._draining and not self.streams and not over:
                yield commands.CloseConnection(self.conn)
        return over

    def _name_resetter(self, generator: Commands) -> Commands:
        """Pass commands on; mitmproxy says of either side that the client has reset a stream."""
        try:
            while True:
                command = next(generator)
                event = command.event if isinstance(command, ReceiveHttp) else None
                if isinstance(event, ResponseProtocolError):
                    event.message = event.message.replace(_BY_CLIENT, _BY_SERVER)
                yield command
        except StopIteration as stop:
            return stop.value

    def _pass_interim(self, event: InformationalResponseReceived) -> Commands:
        """Hand on an interim answer."""
        stream, fields = event.stream_id, event.headers
        if stream not in self.streams:
            return
        self._interim_bytes[stream] += sum(len(name) + len(value) for name, value in fields)
        response = http.Response(
            http_version=b"HTTP/2.0",
            status_code=int(_status(fields)),
            reason=b"",
            headers=http.Headers([field for field in fields if not field[0].startswith(b":")]),
            content=b"",
            trailers=None,
            timestamp_start=0.0,
            timestamp_end=0.0,
        )
        wrong = find_wrong_field(response)
        if response.status_code == http.status_codes.SWITCHING:
            wrong = "101, which HTTP/2 does not have"
        if self._interim_bytes[stream] > MAX_HEAD_BYTES:
            wrong = f"interim answers longer than {MAX_HEAD_BYTES} bytes"
        if wrong:
            yield from self._refuse(stream, wrong)
        else:
            yield ReceiveHttp(ResponseHeaders(stream, response))

    def _find_wrong(self, event: ResponseHeaders) -> str:
        return find_wrong_field(event.response)

    def _refuse(self, stream: int, wrong: str) -> Commands:
        """End one stream over what the upstream said on it; the others go on."""
        text = f"received {wrong}"
        self.log(text)
        self.streams.pop(stream, None)
        if not self.is_closed(stream):
            self.h2_conn.reset_stream(stream, ErrorCodes.PROTOCOL_ERROR)
            yield commands.SendData(self.conn, self.h2_conn.data_to_send())
        yield _failure(stream, text)

    def _drain(self, last: int) -> Commands:
        """Begin nothing new on this connection; end what the upstream will not answer."""
        self._draining = True
        self.conn.state &= (
            ~ConnectionState.CAN_WRITE
        )  # so that it is not chosen for another request
        for theirs in self.stream_queue:
            # They never had a number here, and get one that no stream has.
            self.our_stream_id[theirs], self.their_stream_id[-theirs] = -theirs, theirs
            yield _failure(-theirs, _GONE_AWAY)
        self.stream_queue.clear()
        for ours in [stream for stream in self.streams if stream > last]:
            del self.streams[ours]
            yield _failure(ours, _GONE_AWAY)
        if not self.streams:
            yield commands.CloseConnection(self.conn)


class PlayheadHttp2Server(_Mixin, Http2Server):
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
            fields = tuple((name.lower(), value) for name, value in event.trailers.fields)
            event = ResponseTrailers(event.stream_id, http.Headers(_flat(fields)))
        yield from super()._handle_event(event)

    def handle_h2_event(self, event: Event) -> Commands:
        """Handle an event as mitmproxy does; a client that asks no more is answered all the same."""
        if isinstance(event, Draining):
            return False
        stream = event.stream_id if isinstance(event, StreamEnded) else None
        state = self.streams.get(stream) if stream is not None else None
        over = yield from self._look_at(super().handle_h2_event(event))
        if stream is not None and state is not None and self._is_reset(stream):
            # Its reset came in the same read, and is the next event: mitmproxy has forgotten the stream by then.
            self.streams[stream] = state
        return over

    def _is_reset(self, stream: int) -> bool:
        return self.h2_conn._stream_closed_by(stream) is StreamClosedBy.RECV_RST_STREAM

    def _find_wrong(self, event: RequestHeaders) -> str:
        if event.request.scheme not in ("http", "https"):
            return f"a request for {event.request.scheme!r}, which is neither http nor https"
        return find_wrong_field(event.request)

    def protocol_error(self, message: str, error_code: int = ErrorCodes.PROTOCOL_ERROR) -> Commands:
        """End the connection over what the client did, and have that noted."""
        yield self._stray(message)
        yield from super().protocol_error(message, error_code)

    def _stray(self, said: str) -> PlayheadStrayHook:
        context, kind = self.context, AttemptKind.MALFORMED_REQUEST
        said = " ".join(said.split())
        return PlayheadStrayHook(Stray(context.client, context.server, said, kind, foreign=False))

    def _refuse(self, stream: int, wrong: str) -> Commands:
        """Answer that there is no answer; other streams go on."""
        self.log(wrong)
        yield self._stray(wrong)
        self.streams.pop(stream, None)
        body = f"playhead: {wrong}\n".encode()
        kind = (b"content-type", b"text/plain; charset=utf-8")
        length = (b"content-length", b"%d" % len(body))
        self.h2_conn.send_headers(stream, [(b":status", b"400"), kind, length])
        self.h2_conn.send_data(stream, body, end_stream=True)
        yield commands.SendData(self.conn, self.h2_conn.data_to_send())


def _failure(stream: int, text: str) -> ReceiveHttp:
    return ReceiveHttp(ResponseProtocolError(stream, text, ErrorCode.GENERIC_SERVER_ERROR))


def _status(fields: Iterable[Any]) -> bytes:
    return next((bytes(value) for name, value in fields if name == b":status"), b"")


def has_reset(connection: Connection, stream: int) -> bool:
    """Say whether a peer of HTTP/2 has reset a stream that has not been answered."""
    found: BufferedH2Connection | None = getattr(connection, "h2", None)
    if found is None:
        return False
    state = found.streams.get(stream)
    return state is None or bool(state.closed)


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
    http2_layer.BufferedH2Connection = PlayheadH2Connection  # type: ignore[misc]
