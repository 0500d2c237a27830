"""An HTTP/2 origin over TLS that sends exactly the frames a test gives it."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    RequestReceived,
    SettingsAcknowledged,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from hyperframe.frame import GoAwayFrame

from .certificates import Certificates


class Stream:
    """One request, and the frames that answer it."""

    def __init__(self, connection: H2Connection, sock: ssl.SSLSocket, stream: int) -> None:
        self.fields: list[tuple[bytes, bytes]] = []
        """Of the request, with the pseudo-header fields."""
        self.body = b""
        self.asked_trailers: list[tuple[bytes, bytes]] = []
        self.on_reset: Callable[[], object] = lambda: None
        """Called when the other side resets the stream, or leaves."""
        self.number = stream
        self._connection = connection
        self._socket = sock

    @property
    def path(self) -> str:
        return dict(self.fields)[b":path"].decode()

    def head(
        self,
        *fields: tuple[str | bytes, str | bytes],
        status: int | str = 200,
        end: bool = False,
    ) -> None:
        """Send HEADERS; with a status of 1xx they are those of an interim answer."""
        self._connection.send_headers(
            self.number, [(":status", str(status)), *fields], end_stream=end
        )
        self._flush()

    def trailers(self, *fields: tuple[str | bytes, str | bytes]) -> None:
        """Send HEADERS after the body, which end the stream."""
        self._connection.send_headers(self.number, list(fields), end_stream=True)
        self._flush()

    def go_away(self, last: int | None = None) -> None:
        """Send GOAWAY without an error; `last` is the highest stream that is answered."""
        frame = GoAwayFrame(0, last_stream_id=self.number if last is None else last)
        self._socket.sendall(frame.serialize())

    def data(self, data: bytes, *, end: bool = False) -> None:
        """Send one DATA frame."""
        self._connection.send_data(self.number, data, end_stream=end)
        self._flush()

    def reset(self, code: int) -> None:
        """Send RST_STREAM."""
        self._connection.reset_stream(self.number, code)
        self._flush()

    def raw(self, frames: bytes) -> None:
        """Send bytes that may be no frames at all."""
        self._socket.sendall(frames)

    def abort(self) -> None:
        """End the connection with RST."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def _flush(self) -> None:
        self._socket.sendall(self._connection.data_to_send())


def _end(sock: ssl.SSLSocket) -> None:
    """Send FIN without close_notify; what is still to be read would make it an RST."""
    with contextlib.suppress(OSError):  # the script may have ended it otherwise
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65536):
            pass


class FramesOrigin:
    """A server that calls `script` for every request; the connection ends with FIN when it gives True.

    A thread a connection, streams one after the other. Use as a context manager.
    """

    def __init__(
        self,
        script: Callable[[Stream], bool],
        certificates: Certificates,
        early: Callable[[Stream], object] = lambda _: None,
    ) -> None:
        """Listen; `early` is called for each request whose body has begun."""
        self._script = script
        self._early = early
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificates.chain)
        self._context.set_alpn_protocols(["h2"])
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.connections = 0
        """How many have asked for something."""
        self.port: int = self._listening.getsockname()[1]

    @property
    def url(self) -> str:
        """Base URL on 127.0.0.1."""
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port and every connection. Twice is once."""
        for sock in (self._listening, *self._open):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it has ended already
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            # What was sent before an RST has to have left: small writes do not wait for each other.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(accepted)
            threading.Thread(target=self._converse, args=(accepted,), daemon=True).start()

    def _converse(self, accepted: socket.socket) -> None:
        try:
            with self._context.wrap_socket(accepted, server_side=True) as sock:
                self._speak(sock)
        except OSError:
            pass
        finally:
            self._open.discard(accepted)

    def _speak(self, sock: ssl.SSLSocket) -> None:
        connection = H2Connection(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                # What a test sends is sent.
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        connection.initiate_connection()
        sock.sendall(connection.data_to_send())
        streams: dict[int, Stream] = {}
        begun: list[Stream] = []
        asked: list[Stream] = []
        settled = False
        self.connections += 1
        while data := sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    stream = streams[event.stream_id] = Stream(connection, sock, event.stream_id)
                    stream.fields = [(bytes(name), bytes(value)) for name, value in event.headers]
                elif isinstance(event, DataReceived):
                    stream = streams[event.stream_id]
                    if not stream.body:
                        begun.append(stream)
                    stream.body += event.data
                    size = event.flow_controlled_length
                    connection.acknowledge_received_data(size, event.stream_id)
                elif isinstance(event, TrailersReceived):
                    streams[event.stream_id].asked_trailers = list(event.headers)
                elif isinstance(event, StreamReset):
                    streams[event.stream_id].on_reset()
                elif isinstance(event, ConnectionTerminated):
                    break
                elif isinstance(event, StreamEnded):
                    asked.append(streams[event.stream_id])
                elif isinstance(event, SettingsAcknowledged):
                    settled = True
            sock.sendall(connection.data_to_send())
            while begun:
                self._early(begun.pop(0))
            # From here on a client only reads: what it makes of an end does not depend on when it comes.
            while settled and asked:
                if self._script(asked.pop(0)):
                    _end(sock)
                    return
        for stream in streams.values():
            stream.on_reset()
