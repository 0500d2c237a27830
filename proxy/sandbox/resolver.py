"""The resolver's sockets: questions in, answers out, each from the address that was asked."""

import asyncio
import contextlib
import socket
import struct

from .names import Names

_IPV6_PKTINFO = 50
_MOST_BYTES = 4096
_AT_ONCE = 64
"""Questions that are answered before others have their turn."""


class Resolver:
    """Answers what is asked on sockets of a sandbox."""

    def __init__(self, names: Names) -> None:
        """Answer out of `names`."""
        self._names = names
        self._sockets: list[socket.socket] = []

    def serve(self, sock: socket.socket) -> None:
        """Answer on a socket from now on; it is closed with us."""
        self._sockets.append(sock)
        asyncio.get_running_loop().add_reader(sock.fileno(), self._read, sock)

    def close(self) -> None:
        """Answer no more."""
        for sock in self._sockets:
            asyncio.get_running_loop().remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    def _read(self, sock: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                question, rows, _, asker = sock.recvmsg(_MOST_BYTES, 128)
            except OSError:
                return
            answer = self._names.answer(question)
            if answer is not None:
                # Who has left, or asks from where nothing can be sent to, gets none.
                with contextlib.suppress(OSError):
                    sock.sendmsg([answer], _from_where_asked(rows), 0, asker)


def _from_where_asked(rows: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Have an answer leave from the address that was asked: resolvers drop it otherwise."""
    for level, kind, value in rows:
        if level == socket.IPPROTO_IP and kind == socket.IP_PKTINFO:
            # Interface, the address to send from, the address asked. Source: ip(7).
            return [(level, kind, struct.pack("=i4s4x", 0, value[8:12]))]
        if level == socket.IPPROTO_IPV6 and kind == _IPV6_PKTINFO:
            return [(level, kind, value[:16] + struct.pack("=i", 0))]
    return []
