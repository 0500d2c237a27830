"""Upstreams on loopback that note every connection, every request and every question of DNS, exactly as it came."""

import base64
import contextlib
import hashlib
import re
import socket
import ssl
import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded
from h2.exceptions import ProtocolError

MARK = b"reached the upstream"
"""Body of every answer; nothing else says it."""
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Fields = list[tuple[str, str]]


@dataclass(frozen=True)
class Arrival:
    """One request as an upstream received it."""

    address: str
    """Local address on which it came: which host it is."""
    port: int
    tls: bool
    sni: str | None
    version: str
    method: str
    target: str
    fields: Fields
    """Header fields; over HTTP/2 with the pseudo-header fields."""

    def values(self, *names: str) -> list[str]:
        """Give the values of fields, by lower-case name."""
        return [value for name, value in self.fields if name.lower() in names]

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON."""
        return dict(vars(self))


@dataclass
class Seen:
    """What was seen so far, in order of arrival."""

    arrivals: list[Arrival] = field(default_factory=list)
    connections: list[tuple[str, int]] = field(default_factory=list)
    """Local address and port of each connection."""
    questions: list[str] = field(default_factory=list)
    """Names that DNS was asked for."""

    def take(self) -> "Seen":
        """Give it all, and begin anew."""
        taken = Seen(self.arrivals[:], self.connections[:], self.questions[:])
        del self.arrivals[: len(taken.arrivals)]
        del self.connections[: len(taken.connections)]
        del self.questions[: len(taken.questions)]
        return taken


class Upstreams:
    """Servers at every address of loopback: HTTP at some ports, HTTPS with HTTP/2 at others, DNS at 53.

    Use as a context manager, in a network of one's own.
    """

    def __init__(
        self,
        chain: Path,
        addresses: dict[str, str],
        plain: Sequence[int] = (80, 8080),
        tls: Sequence[int] = (443, 8443),
        otherwise: str = "127.0.9.9",
        names_answered: bool = True,
    ) -> None:
        """Prepare.

        chain: PEM of key and certificate.
        addresses: of names, in lower case without trailing dot; any other name has `otherwise`.
        names_answered: whether DNS is served.
        """
        self.seen = Seen()
        self._addresses, self._otherwise = addresses, otherwise
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(chain)
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        self._context.sni_callback = self._note_name
        self._names: dict[int, str | None] = {}
        self._ports = [(port, False) for port in plain] + [(port, True) for port in tls]
        self._answers = names_answered
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        for port, tls in self._ports:
            for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                sock = socket.socket(family, socket.SOCK_STREAM)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.bind((address, port))
                sock.listen(256)
                self._open.append(sock)
                self._start(self._accept, sock, tls)
        if self._answers:
            names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            names.bind(("127.0.0.1", 53))
            self._open.append(names)
            self._start(self._answer_names, names)
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    @staticmethod
    def _start(work: Any, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self, listening: socket.socket, tls: bool) -> None:
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            local = sock.getsockname()
            place = local[0].removeprefix("::ffff:"), local[1]
            self.seen.connections.append(place)
            sock.settimeout(30)
            self._start(self._serve, sock, tls, place)

    def _serve(self, sock: socket.socket, tls: bool, place: tuple[str, int]) -> None:
        with contextlib.suppress(OSError, ValueError, ProtocolError, EOFError), sock:
            sni = None
            if tls:
                # Said at the wrong port: plain text is noted, too.
                if sock.recv(1, socket.MSG_PEEK) != b"\x16":
                    _Http1(self, sock, place, tls=False, sni=None).serve()
                    return
                wrapped = self._context.wrap_socket(sock, server_side=True)
                sni = self._names.pop(id(wrapped), None)
                with wrapped:
                    spoken = _Http2 if wrapped.selected_alpn_protocol() == "h2" else _Http1
                    spoken(self, wrapped, place, tls=True, sni=sni).serve()
            else:
                _Http1(self, sock, place, tls=False, sni=None).serve()

    def _note_name(self, sock: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        self._names[id(sock)] = name

    def _answer_names(self, sock: socket.socket) -> None:
        while True:
            try:
                question, peer = sock.recvfrom(4096)
            except OSError:
                return
            if len(question) < 17:
                return
            labels, place = [], 12
            while size := question[place]:
                labels.append(question[place + 1 : place + 1 + size].decode("latin-1"))
                place += size + 1
            (kind,) = struct.unpack_from("!H", question, place + 1)
            name = ".".join(labels).lower()
            self.seen.questions.append(name)
            asked = question[12 : place + 5]
            found = b""
            if kind == 1:
                address = socket.inet_aton(self._addresses.get(name, self._otherwise))
                found = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 0, 4) + address
            head = question[:2] + struct.pack("!HHHHH", 0x8580, 1, bool(found), 0, 0)
            with contextlib.suppress(OSError):
                sock.sendto(head + asked + found, peer)


class Knocks:
    """Connections that are made to some ports of loopback, read from packets. Use as a context manager."""

    def __init__(self, *ports: int) -> None:
        """Say which ports are watched."""
        self._ports = ports
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._sock.bind(("lo", 0))
        self._sock.setblocking(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def take(self) -> set[tuple[int, int]]:
        """Give port and source port of each that was accepted since this was last asked."""
        found: set[tuple[int, int]] = set()
        while True:
            try:
                packet = self._sock.recv(128)
            except BlockingIOError:
                return found
            family = packet[12:14]
            if family == b"\x08\x00" and packet[23] == 6:
                segment = packet[14 + (packet[14] & 15) * 4 :]
            elif family == b"\x86\xdd" and packet[20] == 6:
                segment = packet[54:]
            else:
                continue
            port, source = struct.unpack_from("!HH", segment)
            if port in self._ports and segment[13] & 0x12 == 0x12:
                found.add((port, source))


class _Http1:
    """HTTP/1 on one connection; nothing that comes is refused for its form."""

    def __init__(
        self, upstreams: Upstreams, sock: socket.socket, place: tuple[str, int], *, tls: bool, sni: str | None
    ) -> None:  # fmt: skip
        self._seen, self._sock, self._place, self._tls, self._sni = (
            upstreams.seen, sock, place, tls, sni
        )  # fmt: skip
        self._buffer = b""

    def serve(self) -> None:
        while head := self._until(b"\r\n\r\n"):
            # A line that begins with white space goes on with the value before it.
            line, *lines = re.sub(r"\r\n[ \t]+", " ", head.decode("latin-1")).split("\r\n")
            method, _, rest = line.partition(" ")
            target, _, version = rest.rpartition(" ")
            fields = [
                (name, value.strip()) for name, _, value in (one.partition(":") for one in lines)
            ]
            self._seen.arrivals.append(
                Arrival(*self._place, self._tls, self._sni, version, method, target, fields)
            )
            named = {name.lower(): value for name, value in fields}
            self._skip_body(named)
            if named.get("upgrade", "").lower() == "websocket":
                key = named.get("sec-websocket-key", "").encode()
                accepted = base64.b64encode(hashlib.sha1(key + _GUID).digest())
                self._sock.sendall(
                    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"
                )
                while self._sock.recv(4096):
                    pass
                return
            body = b"" if method == "HEAD" else MARK
            size = str(len(MARK)).encode()
            self._sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: " + size + b"\r\n\r\n" + body)

    def _skip_body(self, named: dict[str, str]) -> None:
        if "chunked" in named.get("transfer-encoding", "").lower():
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                self._exactly(size + 2)
            self._until(b"\r\n")
            return
        self._exactly(int(named.get("content-length") or 0))

    def _until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            data = self._sock.recv(65536)
            if not data:
                return b""
            self._buffer += data
        found, _, self._buffer = self._buffer.partition(end)
        return found

    def _exactly(self, size: int) -> None:
        while len(self._buffer) < size:
            data = self._sock.recv(65536)
            if not data:
                raise EOFError
            self._buffer += data
        self._buffer = self._buffer[size:]


class _Http2(_Http1):
    """HTTP/2 on one connection."""

    def serve(self) -> None:
        connection = H2Connection(
            H2Configuration(
                client_side=False, header_encoding="latin-1", validate_inbound_headers=False
            )
        )
        connection.initiate_connection()
        self._sock.sendall(connection.data_to_send())
        while data := self._sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    self._note(event.headers)
                elif isinstance(event, DataReceived):
                    connection.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
                elif isinstance(event, StreamEnded):
                    connection.send_headers(event.stream_id, [(":status", "200")])
                    connection.send_data(event.stream_id, MARK, end_stream=True)
            self._sock.sendall(connection.data_to_send())

    def _note(self, headers: Iterable[Any]) -> None:
        fields = [(str(name), str(value)) for name, value in headers]
        pseudo = dict(fields)
        self._seen.arrivals.append(
            Arrival(
                *self._place, self._tls, self._sni, "HTTP/2",
                pseudo.get(":method", ""), pseudo.get(":path", ""), fields,
            )
        )  # fmt: skip
