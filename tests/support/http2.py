"""A client of HTTP/2 that is nothing but frames; it blocks, for threads."""

import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

CANCEL = 8
"""Error code of RFC 9113, section 7."""


class Http2Client:
    """One connection, on a socket that has negotiated HTTP/2.

    `got` holds, by stream, what came, in order: heads as dicts, pieces of bodies, trailers as lists, and
    `end`, `reset CODE`, or `gone` where the connection ended.
    """

    def __init__(self, sock: ssl.SSLSocket) -> None:
        """Begin with the connection's preface."""
        assert sock.selected_alpn_protocol() == "h2"
        self._socket = sock
        self._connection = H2Connection(H2Configuration(header_encoding="utf-8"))
        self._connection.initiate_connection()
        self.got: dict[int, list[Any]] = {}
        self._settled = True

    def ask(
        self,
        method: str,
        url: str,
        body: bytes = b"",
        *,
        kind: str = "application/json",
        end: bool = True,
        cancel: bool = False,
    ) -> int:
        """Send a request, or its beginning; give its stream. `kind` is the content type of its body.

        cancel: whether RST_STREAM goes in the same write.
        """
        target = urlsplit(url)
        stream = self._connection.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", "https"), (":authority", target.netloc)]
        fields += [(":path", target.path)]
        fields += [("content-type", kind)] if body else []
        self._connection.send_headers(stream, fields, end_stream=not body)
        if body:
            self._connection.send_data(stream, body, end_stream=end)
        if cancel:
            self._connection.reset_stream(stream, CANCEL)
        self.got[stream] = []
        self._flush()
        return stream

    def say(self, stream: int, body: bytes) -> None:
        """Send more of a request."""
        self._connection.send_data(stream, body)
        self._flush()

    def end(self, stream: int, body: bytes) -> None:
        """Send the rest of a request."""
        self._connection.send_data(stream, body, end_stream=True)
        self._flush()

    def cancel(self, stream: int) -> None:
        """Send RST_STREAM."""
        self._connection.reset_stream(stream, CANCEL)
        self._flush()

    def settle(self) -> None:
        """Wait until the other side has read everything that was sent."""
        self._settled = False
        self._connection.ping(b"settled?")
        self._flush()
        self.read_until(lambda: self._settled)

    def data(self, stream: int) -> bytes:
        """Give what came of a body."""
        return b"".join(item for item in self.got[stream] if isinstance(item, bytes))

    def read_until(self, check: Callable[[], bool], patience_s: float = 10) -> None:
        """Read until something is so.

        Raises: TimeoutError, after so long without a byte.
        """
        self._socket.settimeout(patience_s)
        while not check():
            data = self._socket.recv(65536)
            for event in self._connection.receive_data(data):
                self._take(event)
            if not data:
                for got in self.got.values():
                    got.append("gone")
                return
            self._flush()

    def _take(self, event: Any) -> None:
        found = self.got.get(getattr(event, "stream_id", 0) or 0, [])
        match event:
            case ResponseReceived():
                found.append(dict(event.headers))
            case DataReceived():
                found.extend([event.data] if event.data else [])
                self._connection.acknowledge_received_data(
                    event.flow_controlled_length, event.stream_id
                )
            case TrailersReceived():
                found.append(list(event.headers))
            case StreamEnded():
                found.append("end")
            case StreamReset():
                found.append(f"reset {int(event.error_code)}")
            case PingAckReceived():
                self._settled = True
            case ConnectionTerminated():
                for got in self.got.values():
                    got.append("gone")

    def _flush(self) -> None:
        self._socket.sendall(self._connection.data_to_send())
