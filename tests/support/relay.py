"""A relay: passes bytes on to a server and keeps what the server said, connection by connection."""

import re
import socket
import threading
from typing import Self

_NUMBER = re.compile(rb"\r\nx-number: (\d+)\r\n")


class Relay:
    """A relay on a port of its own. Use as a context manager.

    `said` holds, by the value of `x-number` in the first request of a connection, what the server said there.
    """

    def __init__(self, target: int) -> None:
        self.said: dict[bytes, bytearray] = {}
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port: int = self._listening.getsockname()[1]

    @property
    def url(self) -> str:
        """Base URL on 127.0.0.1."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port and every connection. Twice is once."""
        with self._lock:
            for sock in (self._listening, *self._open):
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # it has ended already
            self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            try:
                first = client.recv(65536)
                number = _NUMBER.search(first)
                kept = self.said.setdefault(number[1] if number else b"", bytearray())
                server.sendall(first)
                back = threading.Thread(target=_copy, args=(client, server, None), daemon=True)
                back.start()
                _copy(server, client, kept)
                back.join(10)
            except OSError:
                pass
        with self._lock:
            self._open -= {client, server}


def _copy(source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
    try:
        while data := source.recv(65536):
            if kept is not None:
                kept += data
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return
