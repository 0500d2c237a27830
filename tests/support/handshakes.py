"""Origins that fail before anything was asked: TLS handshakes that go wrong in every way, and ports without anybody."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Self

from .certificates import Certificates

ALERT = bytes.fromhex("15 0303 0002 0228")
"""A fatal alert of TLS: handshake_failure."""
PLAIN_TEXT = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 6\r\nConnection: close\r\n\r\nno TLS"

Accepted = Callable[[socket.socket], None]


class Acceptor:
    """Hands each connection to a function, on a thread of its own. Use as a context manager.

    The connection is closed when the function returns. `accepted` counts them.
    """

    def __init__(self, serve: Accepted, *, listening: bool = True) -> None:
        """Take a port; without `listening` whoever connects is refused until `listen` is called."""
        self._serve = serve
        self._listening_at_once = listening
        self._listening = _bind()
        self._open: set[socket.socket] = set()
        self.accepted = 0
        self.port: int = self._listening.getsockname()[1]

    @property
    def url(self) -> str:
        """Base URL on 127.0.0.1."""
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        if self._listening_at_once:
            self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port and every connection. Twice is once."""
        self.refuse()
        self._listening.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def listen(self) -> None:
        """Accept from now on."""
        self._listening.listen()
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def refuse(self) -> None:
        """Refuse from now on; what was accepted stays."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listening.accept()
            except OSError:
                return
            self.accepted += 1
            self._open.add(accepted)
            threading.Thread(target=self._run, args=(accepted,), daemon=True).start()

    def _run(self, accepted: socket.socket) -> None:
        try:
            with accepted:
                self._serve(accepted)
        except OSError:
            pass
        finally:
            self._open.discard(accepted)


def _bind() -> socket.socket:
    """Take a port by its number: only then is it kept when listening ends."""
    with socket.socket() as free, contextlib.ExitStack() as failed:
        bound = failed.enter_context(socket.socket())
        for sock in (free, bound):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        bound.bind(free.getsockname())
        failed.pop_all()
        return bound


def saying(data: bytes) -> Accepted:
    """Answer the first bytes of a handshake with these, and end with FIN."""

    def serve(sock: socket.socket) -> None:
        sock.recv(65536)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65536):
            pass

    return serve


def resetting(sock: socket.socket) -> None:
    """Answer the first bytes of a handshake with RST."""
    sock.recv(65536)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(sock: socket.socket) -> None:
    """Answer nothing until the other side leaves."""
    while sock.recv(65536):
        pass


def resetting_proxy(sock: socket.socket) -> None:
    """Be a proxy that cannot connect anybody: RST in the handshake inside a tunnel, or for a plain request."""
    if sock.recv(65536).startswith(b"CONNECT "):
        sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        sock.recv(65536)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def answering(certificates: Certificates, data: bytes) -> Accepted:
    """Speak TLS and answer every request without a body with these bytes, until the client leaves."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.chain)

    def serve(sock: socket.socket) -> None:
        with context.wrap_socket(sock, server_side=True) as tunnel:
            asked = b""
            while piece := tunnel.recv(65536):
                asked += piece
                while b"\r\n\r\n" in asked:
                    asked = asked.partition(b"\r\n\r\n")[2]
                    tunnel.sendall(data)

    return serve


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """Give a port on which nobody listens, and nobody else will."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
