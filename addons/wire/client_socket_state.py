"""Ask the kernel whether a client is still connected, before anything is read.

What a client did last may lie unread in its socket: its leaving over HTTP/1.1 (FIN or RST) is told by poll whatever
lies before it; a RST_STREAM of HTTP/2 has to be read.

Source: poll(2), POLLRDHUP. Test: tests/journeys/test_gates.py.
"""

import array
import asyncio
import contextlib
import fcntl
import select
import socket
import termios

_SHUT = select.POLLRDHUP | select.POLLHUP | select.POLLERR
_TURNS = 50
"""Turns of the loop that reading what is there may take; what comes then came after."""


def is_shut(sock: socket.socket | None) -> bool:
    """Say whether a client has ended its connection, or its half of it."""
    return bool(_poll(sock, _SHUT) & _SHUT)


def is_readable(sock: socket.socket | None) -> bool:
    """Say whether something has come from a client that was not read yet, its leaving included."""
    return bool(_poll(sock, select.POLLIN))


def count_unread(sock: socket.socket | None) -> int:
    """Give how many bytes have come from a client that were not read yet."""
    number = sock.fileno() if sock is not None else -1
    if number < 0:
        return 0
    size = array.array("i", [0])
    with contextlib.suppress(OSError):  # it is closed
        fcntl.ioctl(number, termios.FIONREAD, size)
    return size[0]


async def heard(sock: socket.socket | None) -> None:
    """Wait until what lies in a client's socket has been read and handled."""
    for _ in range(_TURNS):
        unread = _poll(sock, select.POLLIN) & select.POLLIN
        # Once for the transport, once for whoever waits for what it has read.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if not unread:
            return


def _poll(sock: socket.socket | None, events: int) -> int:
    number = sock.fileno() if sock is not None else -1
    if number < 0:
        return select.POLLHUP
    poller = select.poll()
    poller.register(number, events)
    found = poller.poll(0)
    return found[0][1] if found else 0
