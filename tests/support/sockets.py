"""A client that is nothing but a socket: it sees how a connection ends, and blocks; for threads."""

import socket
import ssl
from base64 import b64encode
from pathlib import Path
from urllib.parse import urlsplit

from playhead.tape.exchange import Ending

from .tls import client_context

_PATIENCE_S = 10.0


def connect(proxy: str, *, buffer: int = 0) -> socket.socket:
    """Connect to a proxy's URL.

    buffer: bytes that the kernel may hold for it; 0 leaves the default.
    """
    place = urlsplit(proxy)
    opened = socket.socket()
    try:
        if buffer:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        opened.settimeout(_PATIENCE_S)
        opened.connect((place.hostname, place.port))
    except BaseException:
        opened.close()
        raise
    return opened


def ask(proxy: str, url: str, *, buffer: int = 0) -> socket.socket:
    """Send a plain proxy request, with the credentials of the proxy's URL."""
    opened = connect(proxy, buffer=buffer)
    head = f"GET {url} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n{_authorize(proxy)}\r\n"
    opened.sendall(head.encode())
    return opened


def open_tunnel(
    proxy: str, url: str, ca: Path, patience_s: float = _PATIENCE_S, *, alpn: str = ""
) -> ssl.SSLSocket:
    """Open a tunnel to a URL's origin and speak TLS in it.

    patience_s: for the handshake.
    alpn: the one protocol that is offered; empty offers none.
    Raises: OSError, where the handshake fails; `ending_of` says how.
    """
    target = urlsplit(url)
    opened = connect(proxy)
    try:
        head = (
            f"CONNECT {target.netloc} HTTP/1.1\r\nHost: {target.netloc}\r\n{_authorize(proxy)}\r\n"
        )
        opened.sendall(head.encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += opened.recv(1) or b"ended\r\n\r\n"
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        context = client_context(ca, *([alpn] if alpn else []))
        opened.settimeout(patience_s)
        tunnel = context.wrap_socket(
            opened, server_hostname=target.hostname, suppress_ragged_eofs=False
        )
        tunnel.settimeout(_PATIENCE_S)
        return tunnel
    except BaseException:
        opened.close()
        raise


def get(tunnel: ssl.SSLSocket, url: str) -> None:
    """Ask in a tunnel."""
    target = urlsplit(url)
    tunnel.sendall(f"GET {target.path} HTTP/1.1\r\nHost: {target.netloc}\r\n\r\n".encode())


def post(tunnel: ssl.SSLSocket, url: str, body: bytes) -> None:
    """Ask with a JSON body in a tunnel."""
    target = urlsplit(url)
    head = f"POST {target.path} HTTP/1.1\r\nHost: {target.netloc}\r\nContent-Type: application/json\r\n"
    tunnel.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def read_to_end(opened: socket.socket, piece: int = 65536) -> tuple[bytes, Ending]:
    """Read until the connection ends; give what came, and how it ended.

    piece: most bytes read at once.
    """
    received = b""
    while True:
        try:
            data = opened.recv(piece)
        except OSError as error:
            return received, ending_of(error)
        if not data:
            tls = isinstance(opened, ssl.SSLSocket)
            return received, Ending.CLOSE if tls else Ending.FIN
        received += data


def ending_of(error: OSError) -> Ending:
    """Give how a connection ended that raised this; raises anything else again."""
    if isinstance(error, ConnectionResetError):
        return Ending.RST
    if isinstance(error, ssl.SSLEOFError):
        return Ending.FIN
    raise error


def _authorize(proxy: str) -> str:
    place = urlsplit(proxy)
    if not place.username:
        return ""
    given = b64encode(f"{place.username}:{place.password}".encode()).decode()
    return f"Proxy-Authorization: Basic {given}\r\n"
