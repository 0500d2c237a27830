"""HTTP/1 messages as received, bounded, and the parts that are not carried.

mitmproxy crashes on trailers, takes an interim answer (RFC 9110 section 15.2) for the answer, ends a 304 in
chunks with a chunk, and reads an answer's head for as long as it takes. Here

1. trailers pass and are kept, and so do interim answers, each as a head of its own; chunk extensions are left
   out, which is noted on the message, for the exchange's warnings;
2. what is no answer of HTTP/1, or one that can be read in two ways, is a failure of the upstream as soon as
   that can be seen; it is logged once, as is a body that breaks its framing;
3. heads, interim answers, trailers and chunk headers are bounded.

Replaces by name: `Http1Client` in `mitmproxy.proxy.layers.http`, `ChunkedReader` and `ReceiveBuffer` in
`._http1`, `connection_close` in `mitmproxy.net.http.http1`; `MessagesMixin` is a base of our `Http1Server`
too. Checked against 12.2.3. Test: tests/journeys/test_bytes.py, tests/journeys/test_bad_wire.py.
"""

import logging
import re
from typing import Any

import h11
from h11._readers import ChunkedReader, ContentLengthReader, Http10Reader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.net.http import http1, status_codes, validate
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import (
    ErrorCode,
    RequestEndOfMessage,
    RequestHeaders,
    RequestTrailers,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http import _http1 as http1_layer
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Connection

from ....addons.run.pending_exchange import find_redact_text
from ....addons.wire.convert_http_messages import note, with_scheme
from ....tape.exchange import Ending
from ..upstream.dial_through_proxy import forwarding, in_absolute_form, says_no

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES = 256 * 1024
"""Longest head and longest trailers; agents send up to some kilobytes, servers take 8 to 64 KiB."""
MAX_CHUNK_LINE_BYTES = 16 * 1024
"""Longest chunk header, with its extensions."""

_HEAD_END = re.compile(rb"\n\r?\n")
_VERSION = b"HTTP/1."
_STATUS_LINE = re.compile(rb"HTTP/1\.\d [1-9]\d\d(?: ([^\r\n\0]*))?\r?\n")
_INTERIM = re.compile(rb"HTTP/1\.\d (1(?!01)\d\d)[ \r\n]")
"""101 switches protocols and is an answer."""
_INTERIM_BYTES = 13
_STATUS_BYTES = len(b"103 ")
_PEEK_BYTES = 16 * 1024
_LAST_CHUNK = b"0\r\n\r\n"
_LINE_ENDS = re.compile(rb"[\r\n\0]")
_ZONE = re.compile(rb":[^ ]*:[^ ]*%|\[[^ ]*%")
"""Of IPv6 (RFC 6874): mitmproxy connects without it, which may be another machine."""
"""What some take for the end of a line."""
_CONNECTION_BYTES = len(b"connection")
_HOST_BYTES = len(b"host")
_PROXY_WANTS = 407
_PERSISTENCE = (b"close", b"keep-alive")
_PERSISTENT = ("HTTP/1.1", "HTTP/2.0", b"HTTP/1.1", b"HTTP/2.0")

INTERIM_LEFT_OUT = "an interim answer was left out: {status}"
"""A warning on an exchange, as are those below."""
_EXTENSIONS_LEFT_OUT = "chunk extensions of the {message} were left out"
_TRAILERS_LEFT_OUT = "trailers were left out: the message is not in chunks"
_REST_LEFT_OUT = "bytes after the end of the answer were left out"

Commands = Any
"""A generator of mitmproxy commands."""


class Buffer(ReceiveBuffer):
    """What has been received; knows of the chunk extensions that were taken out of it."""

    extended = False

    def maybe_extract_next_line(self) -> bytearray | None:
        """Give the next chunk header without its extensions, or None where it is not there yet.

        Raises: h11.RemoteProtocolError, where it is too long.
        """
        line = super().maybe_extract_next_line()
        if len(self if line is None else line) > MAX_CHUNK_LINE_BYTES:
            raise h11.RemoteProtocolError(
                f"a chunk header longer than {MAX_CHUNK_LINE_BYTES} bytes"
            )
        if line is None or b";" not in line:
            return line
        self.extended = True
        # White space before an extension is bad, and to be accepted (RFC 9112 section 7.1.1).
        return line[: line.index(b";")].rstrip(b" \t") + b"\r\n"

    def start(self, size: int) -> bytes:
        """Give its first bytes; not by `bytes(...)`, which copies all of it."""
        return bytes(self._data[:size])

    def overlong_head(self) -> bool:
        """Say whether a head stands in it that is too long, or will be."""
        if len(self) <= MAX_HEAD_BYTES:
            return False
        return _HEAD_END.search(self._data, 0, MAX_HEAD_BYTES) is None


class TrailersReader(ChunkedReader):
    """Reads chunks, and keeps the trailers that follow them for whoever asks."""

    trailers: http.Headers | None = None

    def __call__(self, buf: Any) -> Any:
        """Give the next event; the last one carries no trailers, which mitmproxy could not take."""
        event = super().__call__(buf)
        if self._reading_trailer and event is None and len(buf) > MAX_HEAD_BYTES:
            raise h11.RemoteProtocolError(f"trailers longer than {MAX_HEAD_BYTES} bytes")
        if isinstance(event, h11.EndOfMessage) and event.headers:
            self.trailers = http.Headers(event.headers.raw_items())
            return h11.EndOfMessage()
        return event


class MessagesMixin(Http1Connection):
    """Either side of HTTP/1."""

    buf: Buffer
    _trailers: http.Headers | None = None
    """To be sent at the end of the message."""

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, HttpEvent):
            return self.send(event)
        if isinstance(event, events.DataReceived) and self.state != self.passthrough:
            if self.state == self.read_body and self._is_nothing_else(event.data):
                return self._pass_piece(event)
            self.buf += event.data  # type: ignore[misc]  # h11's gives itself
        return self.state(event)

    def _is_nothing_else(self, data: bytes) -> bool:
        """Say whether what came is part of a body of known length, or its end, and nothing else."""
        reader = self.body_reader
        if type(reader) is not ContentLengthReader or len(self.buf):
            return False
        return 0 < len(data) <= reader._remaining

    def _pass_piece(self, event: events.DataReceived) -> Commands:
        """Hand on a piece of a body as it came: through the buffer it would be copied three times."""
        reader = self.body_reader
        assert isinstance(reader, ContentLengthReader)
        assert self.stream_id is not None
        reader._remaining -= len(event.data)
        yield ReceiveHttp(self.ReceiveData(self.stream_id, event.data))
        if not reader._remaining:
            yield from self.read_body(event)

    def read_body(self, event: events.Event) -> Commands:
        """Read a body, with its trailers."""
        assert self.stream_id is not None
        reading = isinstance(event, events.DataReceived)
        while True:
            try:
                found = self.body_reader(self.buf) if reading else self.body_reader.read_eof()
            except h11.ProtocolError as error:
                yield from self._break_off(f"HTTP/1 protocol error: {error}", reading)
                return
            if found is None:
                return
            self._note_extensions()
            if isinstance(found, h11.EndOfMessage):
                break
            if found.data:
                yield ReceiveHttp(self.ReceiveData(self.stream_id, bytes(found.data)))
        assert self.request is not None
        if self.request.data.method.upper() != b"CONNECT":
            yield from self._end_body()
            yield ReceiveHttp(self.ReceiveEndOfMessage(self.stream_id))
        yield from self.mark_done(request=self._is_server, response=not self._is_server)

    def _break_off(self, text: str, reading: bool) -> Commands:
        """End a connection whose peer broke a body's framing.

        reading: by what it sent, not by ending.
        """
        assert self.stream_id is not None
        yield commands.CloseConnection(self.conn)
        self._note_extensions()
        self.state = self.done  # what follows is no part of anything
        if reading:
            self.log(text)
        kind = self.ReceiveProtocolError
        yield ReceiveHttp(kind(self.stream_id, text, kind.code))

    def _note_extensions(self) -> None:
        if not self.buf.extended:
            return
        self.buf.extended = False
        if self._is_server:
            assert self.request is not None
            note(self.request, _EXTENSIONS_LEFT_OUT.format(message="request"))
        else:
            assert self.response is not None
            note(self.response, _EXTENSIONS_LEFT_OUT.format(message="answer"))

    def _end_body(self) -> Commands:
        """Hand on the trailers, and take note of what stands after the end of an answer.

        Behind one that switches protocols the other protocol begins.
        """
        trailers = getattr(self.body_reader, "trailers", None)
        if trailers is not None:
            self.body_reader.trailers = None  # type: ignore[union-attr]  # it has one
            kind = RequestTrailers if self._is_server else ResponseTrailers
            assert self.stream_id is not None
            yield ReceiveHttp(kind(self.stream_id, trailers))
        if len(self.buf) and not self._is_server:
            assert self.response is not None
            if self.response.status_code != status_codes.SWITCHING:
                note(self.response, _REST_LEFT_OUT)

    def log(self, text: str) -> None:
        """Say what is wrong with the peer, whose connection is closed for it."""
        log_peer(self.context, self.conn, text)

    def send(self, event: HttpEvent) -> Commands:
        """Send a part of a message; trailers go where chunks end, or nowhere."""
        if isinstance(event, (RequestTrailers, ResponseTrailers)):
            return self._keep_trailers(event.trailers)
        if isinstance(event, (RequestEndOfMessage, ResponseEndOfMessage)):
            return self._send_end(event)
        return super().send(event)

    def _keep_trailers(self, trailers: http.Headers) -> Commands:
        self._trailers = trailers
        yield from ()

    def _send_end(self, event: HttpEvent) -> Commands:
        trailers, self._trailers = self._trailers, None
        message = self.response if self._is_server else self.request
        bodiless = self._is_server and self.response is not None and _is_bodiless(self.response)
        for command in super().send(event):
            if isinstance(command, commands.SendData) and command.data == _LAST_CHUNK:
                if bodiless:
                    continue  # it would be taken for the beginning of the next answer
                if trailers is not None:
                    command.data = b"0\r\n" + bytes(trailers) + b"\r\n"
                    trailers = None
            yield command
        if trailers is not None and message is not None:
            note(message, _TRAILERS_LEFT_OUT)

    @property
    def _is_server(self) -> bool:
        return self.conn is self.context.client


class PlayheadClient(MessagesMixin, Http1Client):
    """The upstream's side of HTTP/1."""

    _interim_bytes = 0
    """Length of the interim answers to one request."""

    def send(self, event: HttpEvent) -> Commands:
        """Send a part of a request; its head states the scheme that it was sent with."""
        if isinstance(event, RequestHeaders):
            sent = with_scheme(event.request)
            if (proxy := forwarding(self.conn)) is not None:
                sent = in_absolute_form(sent, proxy, self.conn)
            event = RequestHeaders(event.stream_id, sent, event.end_stream)
        return super().send(event)

    def read_headers(self, event: events.ConnectionEvent) -> Commands:
        """Read the head of an answer, and those of interim answers before it."""
        if self.request is None or not isinstance(event, events.DataReceived):
            yield from super().read_headers(event)
            return
        if wrong := (yield from self._read_interim()):
            yield from self._fail(wrong)
            return
        start = self.buf.start(_PEEK_BYTES)
        line = _STATUS_LINE.match(start)
        if line is None and (wrong := _find_wrong_start(start)):
            yield from self._fail(wrong)
            return
        reason = line[1] or b"" if line else b""
        for command in super().read_headers(event):
            if isinstance(command, ReceiveHttp):
                if isinstance(command.event, ResponseHeaders):
                    self._interim_bytes = 0
                    response = command.event.response
                    response.data.reason = reason  # mitmproxy trims it
                    if wrong := find_wrong_field(response):
                        yield from self._fail(wrong)
                        return
                    proxy = forwarding(self.conn)
                    if proxy is not None and response.status_code == _PROXY_WANTS:
                        # Not the upstream's, nor for the client: it knows of no proxy but ours.
                        why = says_no(response.status_code, proxy)
                        yield from self._give_up(f"upstream proxy {proxy}: {why}")
                        return
                elif self.state == self.read_headers:
                    assert isinstance(command.event, ResponseProtocolError)
                    self.log(command.event.message)
                    self.state = self.done
            yield command

    def read_body(self, event: events.Event) -> Commands:
        """Read a body; one that lasts until the connection ends was cut where that was reset."""
        reset = isinstance(event, events.ConnectionClosed) and _was_reset(event.connection)
        if reset and isinstance(self.body_reader, Http10Reader):
            return self._fail_over_reset()
        return super().read_body(event)

    def _fail_over_reset(self) -> Commands:
        assert self.stream_id is not None
        self.state = self.done
        yield commands.CloseConnection(self.conn)
        yield ReceiveHttp(
            ResponseProtocolError(
                self.stream_id, "peer reset the connection", ErrorCode.GENERIC_SERVER_ERROR
            )
        )

    def _read_interim(self) -> Commands:
        """Hand on interim answers; give what is wrong with them, or nothing."""
        assert self.stream_id is not None
        while not self.buf.overlong_head():
            size = len(self.buf)
            if not _INTERIM.match(self.buf.start(_INTERIM_BYTES)):
                return ""
            lines = self.buf.maybe_extract_lines()
            if lines is None:
                return ""
            self._interim_bytes += size - len(self.buf)
            if self._interim_bytes > MAX_HEAD_BYTES:
                return f"interim answers longer than {MAX_HEAD_BYTES} bytes"
            try:
                response = http1.read_response_head([bytes(line) for line in lines])
            except ValueError as error:
                return f"an interim answer that cannot be read: {error}"
            response.data.reason = bytes(lines[0]).partition(b" ")[2][_STATUS_BYTES:]
            if wrong := find_wrong_field(response):
                return wrong
            yield ReceiveHttp(ResponseHeaders(self.stream_id, response))
        return f"a head longer than {MAX_HEAD_BYTES} bytes"

    def _fail(self, wrong: str) -> Commands:
        yield from self._give_up(f"received {wrong}")

    def _give_up(self, text: str) -> Commands:
        assert self.stream_id is not None
        self.log(text)
        yield commands.CloseConnection(self.conn)
        self.state = self.done
        yield ReceiveHttp(
            ResponseProtocolError(self.stream_id, text, ErrorCode.GENERIC_SERVER_ERROR)
        )


def log_peer(context: Context, conn: Connection, text: str) -> None:
    """Say in one line what is wrong with a peer that is closed for it."""
    ours = conn is context.client
    peer = conn.peername if ours else context.server.address
    host, port = peer[:2] if peer else ("?", 0)
    text = find_redact_text(context.client)(text)
    logger.warning("%s %s:%d: %s; closed", "client" if ours else "upstream", host, port, text)


def _find_wrong_start(start: bytes) -> str:
    """Say what is wrong with the beginning of an answer that is no status line yet, or nothing."""
    if not _VERSION.startswith(start[: len(_VERSION)]):
        return f"no answer of HTTP/1, but {_quoted(start, 24)!r}"
    if b"\n" in start:
        line = start.partition(b"\n")[0]
        return f"no status line, but {_quoted(line, 80)!r}"
    if len(start) == _PEEK_BYTES:
        return f"a status line longer than {_PEEK_BYTES} bytes"
    return ""


def _quoted(said: bytes, most: int) -> bytes:
    """Give the beginning of what a peer said, in whole words: half a secret is not found, and is one all the same."""
    if len(said) <= most:
        return said
    return said[:most].rpartition(b" ")[0] or said[:4]


def find_wrong_field(message: http.Message) -> str:
    """Say what makes a head one that can be read in two ways, or nothing.

    Its framing, and values with what some take for the end of a line; a folded line (RFC 9112 section 5.2)
    is none of these.
    """
    try:
        validate.validate_headers(message)
    except ValueError as error:
        return str(error)
    fields = message.headers.fields
    if isinstance(message, http.Request) and (wrong := _find_wrong_host(message.data)):
        return wrong
    if not _LINE_ENDS.search(b" ".join([value for _, value in fields])):
        return ""
    for name, value in fields:
        if _LINE_ENDS.search(value):
            flat = value.replace(b"\r\n ", b"")
            if _LINE_ENDS.search(flat):
                return f"a field with NUL, CR or LF in its value: {name!r}"
    return ""


def _find_wrong_host(request: http.RequestData) -> str:
    """Say what is wrong with the names of a request's host, or nothing: RFC 9112 section 3.2 wants one field."""
    fields = request.headers.fields
    named = [
        value for name, value in fields if len(name) == _HOST_BYTES and name.lower() == b"host"
    ]
    if len(named) > 1:
        return "several Host fields, which may name several servers"
    text = b" ".join([request.host.encode("utf-8", "surrogateescape"), request.authority, *named])
    if b"%" in text and _ZONE.search(text):
        return "an IPv6 address with a zone, which names a link of one machine"
    return ""


def connection_close(http_version: str | bytes, headers: http.Headers) -> bool:
    """Say whether a message ends its connection; mitmproxy does not know `Close` and `Keep-Alive`."""
    said = b",".join(
        [
            value
            for name, value in headers.fields
            if len(name) == _CONNECTION_BYTES and name.lower() == b"connection"
        ]
    )
    if said:
        words = {word.strip() for word in said.lower().split(b",")}
        if not words.isdisjoint(_PERSISTENCE):
            return b"close" in words
    return http_version not in _PERSISTENT


def _was_reset(connection: Connection) -> bool:
    return getattr(connection, "ending", None) is Ending.RST  # put there by our handler


def _is_bodiless(response: http.Response) -> bool:
    return response.status_code in (204, 304)


def install() -> None:
    """Have mitmproxy read and write messages so, for the whole process."""
    http_layer.Http1Client = PlayheadClient  # type: ignore[misc]
    http1_layer.ChunkedReader = TrailersReader  # type: ignore[misc]
    http1_layer.ReceiveBuffer = Buffer  # type: ignore[misc]
    http1.connection_close = connection_close
