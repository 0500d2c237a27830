"""Clients that see every byte of HTTP/1 and every frame of HTTP/2, and change none.

They block, so a test runs them on its own thread beside a `Deck`. What came is given as it stood on the
wire, with how it ended: a test compares that, not somebody's reading of it.
"""

import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError
from hyperframe.frame import GoAwayFrame

from .tls import client_context

PATIENCE_S = 15.0
"""Longest wait for anything; a test that needs it has failed."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.\d (\d{3}) [^\r\n]*\r\n")
_CHUNK = re.compile(rb"([0-9a-f]+)\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked[ \t]*\r\n", re.IGNORECASE)


class Answer(NamedTuple):
    """One answer as it stood on the wire."""

    head: bytes
    """With the empty line; nothing where the connection ended before."""
    body: bytes
    """With chunk headers and trailers where it has them."""
    ending: str = "whole"
    """`whole` by its framing; how the connection ended before that, `closed` or `reset`; or `garbled`."""
    interim: tuple[bytes, ...] = ()
    """Heads of 1xx that came before."""

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def fields(self) -> list[tuple[bytes, bytes]]:
        """Header fields in order, names as written."""
        lines = self.head.split(b"\r\n")[1:-2]
        return [
            (name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)
        ]

    @property
    def content(self) -> bytes:
        """The body without its framing."""
        if not _CHUNKED.search(self.head):
            return self.body
        content, rest = b"", self.body
        while rest:
            line, _, rest = rest.partition(b"\r\n")
            size = int(line.split(b";")[0], 16)
            if not size:
                break
            content, rest = content + rest[:size], rest[size + 2 :]
        return content


def tunnel(
    proxy: tuple[str, int], target: str, run: str, *, ca: Path | None = None, alpn: str = ""
) -> socket.socket:
    """Open a tunnel to HOST:PORT for a run, with TLS in it where `ca` is to be trusted."""
    opened = socket.create_connection(proxy, timeout=PATIENCE_S)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    given = b64encode(f"{run}:x".encode()).decode()
    opened.sendall(
        f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {given}\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = opened.recv(1)
        assert data, f"no tunnel: {head!r}"
        head += data
    assert head.startswith(b"HTTP/1.1 200 "), head
    if ca is None:
        return opened
    context = client_context(ca, *([alpn] if alpn else []))
    wrapped = context.wrap_socket(opened, server_hostname=target.rpartition(":")[0])
    assert (wrapped.selected_alpn_protocol() == "h2") is (alpn == "h2")
    return wrapped


class Wire:
    """One connection of HTTP/1. Use as a context manager."""

    def __init__(self, opened: socket.socket) -> None:
        self.sock = opened
        self._buffer = b""

    @classmethod
    def open(cls, host: str, port: int) -> Self:
        """Connect."""
        opened = socket.create_connection((host, port), timeout=PATIENCE_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(opened)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def ask(self, request: bytes) -> Answer:
        """Send a request as it stands and read its answer."""
        self.send(request)
        return self.read(request.split(b" ", 1)[0].decode("latin-1"))

    def send(self, data: bytes) -> None:
        """Send bytes; a peer that has left already is noticed when its answer is read."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            return

    def read(self, method: str = "GET") -> Answer:
        """Read one answer to its end, as its framing says where that is."""
        interim: list[bytes] = []
        while True:
            head, ending = self._until(b"\r\n\r\n")
            if ending != "whole":
                return Answer(b"", head, ending, tuple(interim))
            found = _STATUS.match(head)
            if found is None:
                return Answer(b"", head + self._buffer, "garbled", tuple(interim))
            status = int(found[1])
            if status == 101 or status >= 200:
                break
            interim.append(head)
        if method == "HEAD" or status in (101, 204, 304):
            return Answer(head, b"", "whole", tuple(interim))
        if _CHUNKED.search(head):
            body, ending = self._chunks()
        elif length := _LENGTH.search(head):
            body, ending = self._exactly(int(length[1]))
        else:
            body, ending = self.rest()
            ending = "whole" if ending == "closed" else ending
        return Answer(head, body, ending, tuple(interim))

    def rest(self) -> tuple[bytes, str]:
        """Read until the connection ends; give how it did."""
        while not (ending := self._more()):
            continue
        found, self._buffer = self._buffer, b""
        return found, ending

    def _chunks(self) -> tuple[bytes, str]:
        body = b""
        while True:
            line, ending = self._until(b"\r\n")
            body += line
            if ending != "whole":
                return body, ending
            found = _CHUNK.fullmatch(line)
            if found is None:
                return body + self._buffer, "garbled"
            size = int(found[1], 16)
            if not size:
                break
            data, ending = self._exactly(size + 2)
            body += data
            if ending != "whole":
                return body, ending
        while line != b"\r\n":
            line, ending = self._until(b"\r\n")
            body += line
            if ending != "whole":
                return body, ending
        return body, "whole"

    def _until(self, mark: bytes) -> tuple[bytes, str]:
        while mark not in self._buffer:
            if ending := self._more():
                found, self._buffer = self._buffer, b""
                return found, ending
        found, _, self._buffer = self._buffer.partition(mark)
        return found + mark, "whole"

    def _exactly(self, size: int) -> tuple[bytes, str]:
        while len(self._buffer) < size:
            if ending := self._more():
                found, self._buffer = self._buffer, b""
                return found, ending
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found, "whole"

    def _more(self) -> str:
        """Receive something; give how the connection ended, or nothing."""
        try:
            data = self.sock.recv(1 << 16)
        except (ConnectionResetError, ssl.SSLEOFError):
            return "reset"
        self._buffer += data
        return "" if data else "closed"


Frame = tuple[Any, ...]
"""`("head", fields)`, `("interim", fields)`, `("data", bytes)`, `("trailers", fields)`, `("end",)`,
`("reset", code)`, or how the connection ended: `("closed",)`, `("reset",)`, `("goaway",)`, `("garbled",)`."""


class H2Wire:
    """One connection of HTTP/2, and what came on each stream. Use as a context manager."""

    def __init__(self, opened: socket.socket, authority: str) -> None:
        self.sock = opened
        self.got: dict[int, list[Frame]] = {}
        self._authority = authority
        # Neither library may tidy what is sent or hide what comes.
        self._h2 = H2Connection(
            H2Configuration(
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
                normalize_inbound_headers=False,
            )
        )
        self._h2.decoder.max_header_list_size = 1 << 24
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(1 << 24)
        self._ended = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(
        self,
        method: str,
        path: str,
        fields: Sequence[tuple[bytes, bytes]] = (),
        body: Iterable[bytes] = (),
        trailers: Iterable[tuple[bytes, bytes]] = (),
    ) -> int:
        """Ask on a stream of its own; give its number. Pseudo-header fields among `fields` go before ours."""
        stream = self._h2.get_next_available_stream_id()
        pseudo = {
            b":method": method.encode(),
            b":scheme": b"https",
            b":authority": self._authority.encode(),
            b":path": path.encode(),
        }
        pseudo.update((name, value) for name, value in fields if name in pseudo)
        head = [*pseudo.items(), *(pair for pair in fields if pair[0] not in pseudo)]
        pieces, last = list(body), list(trailers)
        self.got[stream] = []
        self._h2.send_headers(stream, head, end_stream=not pieces and not last)
        self._flush()
        for index, piece in enumerate(pieces, 1):
            self._send_piece(stream, piece, end=index == len(pieces) and not last)
        if last:
            self._h2.send_headers(stream, last, end_stream=True)
        self._flush()
        return stream

    def _send_piece(self, stream: int, piece: bytes, *, end: bool) -> None:
        """Send a piece as far as it is taken; an answer that has come already ends it."""
        while piece and not self._is_over(stream) and not self._ended:
            window = self._h2.local_flow_control_window(stream)
            size = min(window, self._h2.max_outbound_frame_size, len(piece))
            if not size:
                self._receive()
                continue
            self._h2.send_data(stream, piece[:size], end_stream=end and size == len(piece))
            self._flush()
            piece = piece[size:]

    def ask(
        self,
        method: str,
        path: str,
        *more: Iterable[Any],
        fields: Sequence[tuple[bytes, bytes]] = (),
    ) -> list[Frame]:
        """Ask and read to the stream's end; where the connection has ended, how."""
        if self._ended:
            return [(self._ended,)]
        stream = self.send(method, path, fields, *more)
        self.read(stream)
        return self.got[stream]

    def begin(self, stream: int) -> None:
        """Read until something of a body has come on a stream."""
        while not self._ended and not any(frame[0] == "data" for frame in self.got[stream]):
            self._receive()

    def reset(self, stream: int) -> None:
        """Give a stream up."""
        self._h2.reset_stream(stream, ErrorCodes.CANCEL)
        self._flush()

    def go_away(self) -> None:
        """Send GOAWAY without an error: nothing more will be asked."""
        self.sock.sendall(GoAwayFrame(0).serialize())

    def read(self, *streams: int) -> None:
        """Read until these streams have ended, or the connection has."""
        while not self._ended and not all(self._is_over(stream) for stream in streams):
            self._receive()

    def _receive(self) -> None:
        """Wait for bytes and take what they mean."""
        try:
            data = self.sock.recv(1 << 16)
        except (ConnectionResetError, ssl.SSLEOFError):
            self._end("reset")
            return
        if not data:
            self._end("closed")
            return
        try:
            found = self._h2.receive_data(data)
        except ProtocolError:
            self._end("garbled")
            return
        for event in found:
            self._take(event)
        self._flush()

    def _is_over(self, stream: int) -> bool:
        got = self.got[stream]
        return bool(got) and got[-1][0] in ("end", "reset")

    def _end(self, how: str) -> None:
        self._ended = how
        for got in self.got.values():
            if not got or got[-1][0] not in ("end", "reset"):
                got.append((how,))

    def _take(self, event: object) -> None:
        if isinstance(event, ConnectionTerminated):
            self._end("goaway")
            return
        got = self.got.get(getattr(event, "stream_id", 0))
        if got is None:
            return
        match event:
            case ResponseReceived():
                got.append(("head", tuple(event.headers)))
            case InformationalResponseReceived():
                got.append(("interim", tuple(event.headers)))
            case DataReceived():
                got.extend([("data", event.data)] if event.data else [])
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case TrailersReceived():
                got.append(("trailers", tuple(event.headers)))
            case StreamEnded():
                got.append(("end",))
            case StreamReset():
                got.append(("reset", int(event.error_code)))

    def _flush(self) -> None:
        try:
            self.sock.sendall(self._h2.data_to_send())
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self._end("reset")


def body_of(frames: Iterable[Frame]) -> bytes:
    """Give the body that stands in frames."""
    return b"".join(frame[1] for frame in frames if frame[0] == "data")
