"""The resolver's sockets: read questions, and answer each from the address that was asked."""

import asyncio
import contextlib
import socket
import struct
from collections import Counter

from .dns_answers import Names
from .listeners import DNS_PORT
from .packet_capture import Attempt

_IPV6_PKTINFO = 50
_MOST_BYTES = 4096
_MOST_STRANGE = 1000
_AT_ONCE = 64
"""Questions that are answered before others have their turn."""


class Resolver:
    """Answers what is asked on sockets of a sandbox."""

    def __init__(self, names: Names) -> None:
        """Answer out of `names`."""
        self._names = names
        self._sockets: list[socket.socket] = []
        self.strange: Counter[Attempt] = Counter()
        """What was sent to resolvers, and is no question."""

    def serve(self, sock: socket.socket) -> None:
        """Answer on a socket from now on; it is closed with us."""
        self._sockets.append(sock)
        asyncio.get_running_loop().add_reader(sock.fileno(), self._read, sock)

    def close(self) -> None:
        """Answer what has come until now, and no more. Twice is once."""
        for sock in self._sockets:
            while self._read(sock):
                pass
            asyncio.get_running_loop().remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    def _read(self, sock: socket.socket) -> bool:
        """Answer what has come, up to a number; say whether there may be more."""
        for _ in range(_AT_ONCE):
            try:
                question, rows, _, asker = sock.recvmsg(_MOST_BYTES, 128)
            except OSError:
                return False
            before = self._names.questions
            answer = self._names.answer(question)
            if self._names.questions == before:
                self._note(rows)
            if answer is not None:
                # Who has left, or asks from where nothing can be sent to, gets none.
                with contextlib.suppress(OSError):
                    sock.sendmsg([answer], _from_where_asked(rows), 0, asker)
        return True

    def _note(self, rows: list[tuple[int, int, bytes]]) -> None:
        attempt = Attempt("udp", _asked(rows), DNS_PORT)
        if attempt in self.strange or len(self.strange) < _MOST_STRANGE:
            self.strange[attempt] += 1


def _asked(rows: list[tuple[int, int, bytes]]) -> str:
    """Give the address that a packet was sent to."""
    for level, kind, value in rows:
        if level == socket.IPPROTO_IP and kind == socket.IP_PKTINFO:
            return socket.inet_ntop(socket.AF_INET, value[8:12])
        if level == socket.IPPROTO_IPV6 and kind == _IPV6_PKTINFO:
            return socket.inet_ntop(socket.AF_INET6, value[:16])
    return "0.0.0.0"


def _from_where_asked(rows: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Have an answer leave from the address that was asked: resolvers drop it otherwise."""
    for level, kind, value in rows:
        if level == socket.IPPROTO_IP and kind == socket.IP_PKTINFO:
            # Interface, the address to send from, the address asked. Source: ip(7).
            return [(level, kind, struct.pack("=i4s4x", 0, value[8:12]))]
        if level == socket.IPPROTO_IPV6 and kind == _IPV6_PKTINFO:
            return [(level, kind, value[:16] + struct.pack("=i", 0))]
    return []
