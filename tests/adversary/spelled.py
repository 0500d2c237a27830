"""One request, spelled as a case says, sent over each way that leads through a proxy.

A case is a mapping of a data file. Its texts may hold `{host}`, `{other}`, `{base}`, `{leaf}`, `{ip}` and other words that
the caller gives. Its keys, all of which may be left out:

    name      authority without port, in place of `{host}` in tunnel, TLS greeting, Host and URL alike
    port      port of tunnel and URL, and of Host where it is not the scheme's own
    tunnel    authority of CONNECT
    sni       name in the TLS greeting; null sends none
    url       authority of an absolute URL
    host      Host field, or a list of several; null sends none. Over HTTP/2 `:authority`
    method    by default POST; of a WebSocket's handshake GET
    path      by default `{base}/{leaf}`
    target    the target as it stands in the request line, or `:path`, in place of the path
    headers   list of [name, value]
    pseudo    over HTTP/2 all pseudo-header fields, in place of ours
    body      what it carries; over a WebSocket nothing
    trailers  list of [name, value] behind the body, which is sent in chunks then
    fill      MiB of it that come before, in a pair of a form or a part of their own
    coding    `gzip` has the body in that coding, and says so; any other word is said alone
    raw       the whole head, in place of ours
    first     a request that the rule plainly names goes before it, on the same connection
    then      bytes that follow the request at once, on the same connection
    over      the ways, by default all for which a key of the case makes a difference
"""

import gzip
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError

from .arrivals import MARK

OVER: tuple[str, ...] = ("h1", "h2", "absolute", "absolute-tls", "plain", "ws", "ws-plain")
"""CONNECT and TLS with HTTP/1.1, the same with HTTP/2, an absolute http URL, an absolute https URL, CONNECT and plain
HTTP, a WebSocket in TLS, and one in a plain tunnel."""
_TUNNELS = ("h1", "h2", "plain", "ws", "ws-plain")
_TLS = ("h1", "h2", "ws")
_SOCKETS = ("ws", "ws-plain")
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class NotSpoken(Exception):
    """The case makes no difference over this way, or the way is not offered."""


def ways(case: dict[str, Any]) -> tuple[str, ...]:
    """Give the ways over which a case is another request than without it."""
    if "over" in case:
        return tuple(case["over"])
    found = OVER
    if {"tunnel", "sni"} & case.keys() and "url" not in case:
        found = tuple(way for way in found if way in _TUNNELS)
    if "sni" in case and not {"tunnel", "host", "url"} & case.keys():
        found = tuple(way for way in found if way in _TLS)
    if "url" in case and not {"tunnel", "sni", "host"} & case.keys():
        found = tuple(way for way in found if way not in _TUNNELS)
    if "method" in case:
        found = tuple(way for way in found if way not in _SOCKETS)
    if "body" in case or "trailers" in case:
        found = tuple(way for way in found if way not in _SOCKETS)
    if "raw" in case or "then" in case or "fill" in case:
        found = tuple(way for way in found if way != "h2")
    return found


def filled(value: Any, words: dict[str, str]) -> Any:
    """Put words into a case's texts."""
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace("{" + name + "}", word)
        return value
    if isinstance(value, list):
        return [filled(item, words) for item in value]
    if isinstance(value, dict):
        return {name: filled(item, words) for name, item in value.items()}
    return value


class Spelled:
    """One case over one way, ready to be sent."""

    def __init__(self, case: dict[str, Any], over: str, words: dict[str, str], mark: str) -> None:
        """Read a case.

        mark: value of the field `x-case`, by which the upstream's note is told from others.
        """
        case = filled(case, words)
        self.over, self._case, self._mark = over, case, mark
        self._named = words["host"]
        name = case.get("name", self._named)
        self.tls = over in (*_TLS, "absolute-tls")
        own = 443 if self.tls else 80
        port = case.get("port", own)
        self.tunnel = case.get("tunnel", name)
        if not re.search(r":\d+$", self.tunnel):
            self.tunnel = f"{self.tunnel}:{port}"
        self.sni = case.get("sni", re.sub(r":\d*$", "", name))
        written = name if port == own else f"{name}:{port}"
        self.url = case.get("url", written)
        hosts = case.get("host", written)
        self.hosts: list[str] = (
            hosts if isinstance(hosts, list) else [] if hosts is None else [hosts]
        )
        self.method: str = case.get("method", "GET" if over in _SOCKETS else "POST")
        self.body = self._made_body(case)
        self.plain_path = filled("{base}/{leaf}", words)
        self.path: str = case.get("path", self.plain_path)

    def _made_body(self, case: dict[str, Any]) -> bytes:
        body: bytes = case.get("body", "").encode("latin-1")
        if self.over in _SOCKETS or not body:
            return b""
        if "fill" in case:
            fill = b"x" * (case["fill"] << 20)
            part = b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n'
            body = (
                part + fill + b"\r\n" + body
                if body.startswith(b"--")
                else b"f=" + fill + b"&" + body
            )
        return gzip.compress(body, 1) if case.get("coding") == "gzip" else body

    def _more(self) -> list[list[str]]:
        more: list[list[str]] = list(self._case.get("headers", []))
        if "coding" in self._case:
            more.append(["Content-Encoding", self._case["coding"]])
        return more

    @property
    def target(self) -> str:
        """The target of the request line."""
        if "target" in self._case:
            return str(self._case["target"])
        if self.over in ("absolute", "absolute-tls"):
            return f"{'https' if self.tls else 'http'}://{self.url}{self.path}"
        return self.path

    def head(self, run: str) -> bytes:
        """Give the head as it is sent."""
        if "raw" in self._case:
            return str(self._case["raw"]).replace("{mark}", self._mark).encode("latin-1")
        return self._head(self.method, self.target, self.hosts, self._more(), run)

    def plain_head(self, run: str) -> bytes:
        """Give the head of a request that the rule plainly names."""
        target = self.plain_path
        if self.over in ("absolute", "absolute-tls"):
            target = f"{'https' if self.tls else 'http'}://{self._named}{target}"
        return self._head("POST", target, [self._named], [], run, mark="first", upgrade=False)

    def _head(
        self,
        method: str,
        target: str,
        hosts: list[str],
        more: list[list[str]],
        run: str,
        mark: str = "",
        upgrade: bool = True,
    ) -> bytes:
        fields = [("Host", host) for host in hosts] + [("x-case", mark or self._mark)]
        fields += [(name, value) for name, value in more]
        if self.over not in _TUNNELS:
            fields.append(("Proxy-Authorization", f"Basic {b64encode(run.encode()).decode()}"))
        if upgrade and self.over in _SOCKETS:
            fields += [("Upgrade", "websocket"), ("Connection", "Upgrade")]
            fields += [("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", _KEY)]
        elif self.trailers and not mark:
            fields += [("Transfer-Encoding", "chunked"), ("TE", "trailers")]
        elif method not in ("GET", "HEAD", "CONNECT", "OPTIONS", "TRACE"):
            size = 0 if mark else len(self.body)
            fields.append(("Content-Length", str(size)))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")

    @property
    def trailers(self) -> list[list[str]]:
        return list(self._case.get("trailers", []))

    @property
    def sent_body(self) -> bytes:
        """The body as it is sent over HTTP/1.1: in a chunk, with what follows, where there are trailers."""
        if not self.trailers:
            return self.body
        chunk = b"%x\r\n%b\r\n" % (len(self.body), self.body) if self.body else b""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.trailers)
        return chunk + b"0\r\n" + lines.encode() + b"\r\n"

    @property
    def first(self) -> bool:
        return bool(self._case.get("first"))

    @property
    def then(self) -> bytes:
        return str(self._case.get("then", "")).encode("latin-1")

    def pseudo(self) -> list[tuple[str, str]]:
        """Give the fields of a request over HTTP/2."""
        given = self._case.get("pseudo")
        fields = [(name, value) for name, value in given] if given is not None else None
        if fields is None:
            fields = [(":method", self.method), (":scheme", "https")]
            fields += [(":authority", host) for host in self.hosts]
            fields += [(":path", self.target)]
        fields.append(("x-case", self._mark))
        return fields + [(name.lower(), value) for name, value in self._more()]


def send(
    spelled: Spelled, proxy: tuple[str, int], run: str, patience_s: float = 4.0
) -> dict[str, Any]:
    """Send it; give `status` (0 where none came), and `reached`: whether an upstream's answer came back.

    `source` is the local port of its connection.
    Raises: NotSpoken, where the way is not offered.
    """
    told: dict[str, Any] = {"status": 0, "reached": False, "how": ""}
    try:
        with socket.create_connection(proxy, patience_s) as connection:
            told["source"] = connection.getsockname()[1]
            with _opened(spelled, connection, run) as sock:
                told |= _asked(sock, spelled, run)
    except (OSError, ProtocolError, _Refused) as error:
        told["how"] = f"{type(error).__name__}: {error}"[:120]
    return told


def _asked(sock: socket.socket, spelled: Spelled, run: str) -> dict[str, Any]:
    if spelled.over == "h2":
        return _ask_http2(sock, spelled)
    if spelled.first:
        sock.sendall(spelled.plain_head(run))
        _read(sock)
    sock.sendall(spelled.head(run) + spelled.sent_body + spelled.then)
    told = _read(sock)
    if spelled.then:
        _read(sock)
    return told


class _Refused(Exception):
    """There is no tunnel."""


@contextmanager
def _opened(spelled: Spelled, sock: socket.socket, run: str) -> Iterator[socket.socket]:
    """Ask for the tunnel that this way needs, and speak TLS in it."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if spelled.over not in _TUNNELS:
        yield sock
        return
    given = b64encode(run.encode()).decode()
    named = f"CONNECT {spelled.tunnel} HTTP/1.1\r\nHost: {spelled.tunnel}\r\n"
    sock.sendall(f"{named}Proxy-Authorization: Basic {given}\r\n\r\n".encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        piece = sock.recv(1)
        if not piece:
            raise _Refused(f"CONNECT: {answer[:60]!r}")
        answer += piece
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise _Refused(f"CONNECT: {answer[:60]!r}")
    if spelled.over not in _TLS:
        yield sock
        return
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2" if spelled.over == "h2" else "http/1.1"])
    with context.wrap_socket(sock, server_hostname=spelled.sni or None) as tunnel:
        if spelled.over == "h2" and tunnel.selected_alpn_protocol() != "h2":
            raise NotSpoken(f"HTTP/2 was not agreed on: {tunnel.selected_alpn_protocol()}")
        yield tunnel


def _read(sock: socket.socket) -> dict[str, Any]:
    """Read an answer of HTTP/1."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return {"status": 0, "reached": False, "how": f"closed after {data[:60]!r}"}
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if status == 101:
        return {"status": status, "reached": True, "how": ""}
    found = _LENGTH.search(head)
    while len(body) < (int(found[1]) if found else 0):
        piece = sock.recv(65536)
        if not piece:
            break
        body += piece
    how = "" if body == MARK else body[:100].decode("utf-8", "replace")
    return {"status": status, "reached": body == MARK, "how": how}


def _ask_http2(sock: socket.socket, spelled: Spelled) -> dict[str, Any]:
    connection = H2Connection(
        H2Configuration(
            header_encoding=None,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
    )
    connection.initiate_connection()
    stream = 1
    if spelled.first:
        plain = Spelled({}, "h2", {"host": spelled._named, "base": "", "leaf": ""}, "first")
        plain.path = spelled.plain_path
        connection.send_headers(1, plain.pseudo(), end_stream=True)
        stream = 3
    trailers = [(name.lower(), value) for name, value in spelled.trailers]
    connection.send_headers(stream, spelled.pseudo(), end_stream=not spelled.body and not trailers)
    if spelled.body:
        connection.send_data(stream, spelled.body, end_stream=not trailers)
    if trailers:
        connection.send_headers(stream, trailers, end_stream=True)
    sock.sendall(connection.data_to_send())
    status, body = 0, b""
    while data := sock.recv(65536):
        for event in connection.receive_data(data):
            match event:
                case ResponseReceived() if event.stream_id == stream:
                    status = int(next(value for name, value in event.headers if name == b":status"))
                case DataReceived():
                    connection.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
                    body += event.data if event.stream_id == stream else b""
                case StreamEnded() if event.stream_id == stream:
                    how = "" if body == MARK else body[:100].decode("utf-8", "replace")
                    return {"status": status, "reached": body == MARK, "how": how}
                case StreamReset() if event.stream_id == stream:
                    return {"status": 0, "reached": False, "how": f"reset {event.error_code}"}
                case ConnectionTerminated():
                    return {"status": 0, "reached": False, "how": f"goaway {event.error_code}"}
        sock.sendall(connection.data_to_send())
    return {"status": status, "reached": False, "how": "closed"}
