"""The outside as a leak test sees it: every connection, byte, datagram and look-up is counted, by name.

A name `cN.upstream.test` has the address 127.1.x.y that belongs to N, so that what arrives is told apart
by where it was sent. Ports are open on all of loopback; who connects is answered like an origin.
"""

import re
import selectors
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

SUFFIX = ".upstream.test"
TCP_PORTS = (80, 443, 853, 8080, 9999)
UDP_PORTS = (443, 853, 9999)
_IP_PKTINFO = 8
_RESOLVER = "127.0.0.1"


def host_of(number: int) -> str:
    """Name of what is counted under `number`."""
    return f"c{number}{SUFFIX}"


def address_of(number: int) -> str:
    """Address of what is counted under `number`."""
    return f"127.1.{number // 250}.{number % 250 + 1}"


class Probes:
    """Counting listeners on loopback. `counts` has (number or "stray", kind) -> how often.

    Kinds: connections, bytes, datagrams, lookups, and `asked` with the method and target of a request.
    """

    def __init__(self, chain: Path) -> None:
        """Begin to count. chain: PEM with the key and certificate for TLS."""
        self.counts: Counter[tuple[int | str, str]] = Counter()
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(chain)
        self._tls.set_alpn_protocols(["http/1.1"])
        for port in (53, *TCP_PORTS):
            listener = socket.create_server(("0.0.0.0", port), backlog=512)
            self._watch(listener, self._accept)
        for port in (53, *UDP_PORTS):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            sock.bind(("0.0.0.0", port))
            self._watch(sock, self._datagram)
        threading.Thread(target=self._run, daemon=True).start()

    def read(self) -> Counter[tuple[int | str, str]]:
        """Give the counts, with all that the kernel has for us already."""
        self._poll(0)
        return self.counts.copy()

    def reset(self) -> None:
        """Begin anew: what was seen until now was meant."""
        self._poll(0)
        self.counts.clear()

    def _watch(self, sock: socket.socket, act: Callable[[socket.socket], None]) -> None:
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, act)

    def _run(self) -> None:
        while True:
            self._selector.select()
            self._poll(0)

    def _poll(self, timeout_s: float) -> None:
        with self._lock:
            while ready := self._selector.select(timeout_s):
                for key, _ in ready:
                    key.data(key.fileobj)

    def _count(self, address: str, kind: str, number: int = 1) -> None:
        parts = [int(part) for part in address.split(".")]
        ours = parts[:2] == [127, 1]
        self.counts[parts[2] * 250 + parts[3] - 1 if ours else "stray", kind] += number

    # ---- TCP -----------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        self._count(accepted.getsockname()[0], "connections")
        threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        """Answer requests, over TLS where that is spoken; take whatever else comes."""
        address = sock.getsockname()[0]
        try:
            sock.settimeout(300)
            if sock.recv(1, socket.MSG_PEEK) == b"\x16":
                sock = self._tls.wrap_socket(sock, server_side=True)
            buffer = b""
            while data := sock.recv(65536):
                with self._lock:
                    self._count(address, "bytes", len(data))
                buffer += data
                if asked := _whole(buffer):
                    buffer = b""
                    with self._lock:
                        self._count(address, f"asked {asked}")
                    sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        except OSError:
            pass
        finally:
            sock.close()

    # ---- UDP -----------------------------------------------------------------------------------

    def _datagram(self, sock: socket.socket) -> None:
        data, ancillary, _, peer = sock.recvmsg(65536, 256)
        target = _RESOLVER
        for level, kind, value in ancillary:
            if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                target = socket.inet_ntoa(struct.unpack("=I4s4s", value)[2])
        if sock.getsockname()[1] == 53 and target == _RESOLVER:
            self._look_up(sock, data, peer)
        else:
            self._count(target, "datagrams")

    def _look_up(self, sock: socket.socket, query: bytes, peer: tuple[str, int]) -> None:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        question, wanted = query[12 : at + 5], struct.unpack_from("!H", query, at + 1)[0]
        ours = len(labels) == 3 and labels[0][1:].isdigit()
        number = int(labels[0][1:]) if ours else "stray"
        self.counts[number, "lookups"] += 1
        answers = b""
        if wanted == 1 and isinstance(number, int):
            packed = socket.inet_aton(address_of(number))
            answers = struct.pack("!HHHIH", 0xC00C, 1, 1, 1, 4) + packed
        head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, bool(answers), 0, 0)
        sock.sendto(head + question + answers, peer)


def _whole(data: bytes) -> str:
    """Give method and target of a request that has come to its end; else nothing."""
    head, end, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    if not end or len(body) < int(length[1] if length else 0):
        return ""
    return head.partition(b" HTTP/")[0].decode("ascii", "replace")
