"""A socket of the command's, as one of ours: look at it, and connect it to the proxy in the place of where it was to lead."""

import contextlib
import errno
import os
import socket
import struct
from typing import NamedTuple

from .destination import Destination

_NETNS_COOKIE = 71
_DOMAIN, _PROTOCOL, _BIND_TO_DEVICE = 39, 38, 25
_NO_PORT = 24
"""IP_BIND_ADDRESS_NO_PORT."""
_MPTCP = 262
_SEND_TIMEOUT = 21


class Sides(NamedTuple):
    """Where the proxy takes connections."""

    ipv4: tuple[str, int]
    ipv6: tuple[str, int] | None
    """None on a machine without."""


def find_cookie() -> bytes:
    """Give what names this process's network; nothing on a kernel before 5.14."""
    with socket.socket() as sock:
        return _cookie(sock)


def _cookie(sock: socket.socket) -> bytes:
    try:
        return sock.getsockopt(socket.SOL_SOCKET, _NETNS_COOKIE, 8)
    except OSError:
        return b""


def is_in(sock: socket.socket, cookie: bytes, thread: int) -> bool:
    """Say whether a socket of a thread is in the network of this cookie; a sandbox of the command's own is not."""
    if cookie:
        return _cookie(sock) == cookie
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{thread}/ns/net") == os.readlink("/proc/self/ns/net")
    return False


def is_datagram(sock: socket.socket) -> bool:
    """Say whether it is one of UDP."""
    return sock.type == socket.SOCK_DGRAM


def may_be_led(sock: socket.socket) -> bool:
    """Say whether a socket can be connected to the proxy: one of TCP, which is bound to no device."""
    domain = sock.getsockopt(socket.SOL_SOCKET, _DOMAIN)
    protocol = sock.getsockopt(socket.SOL_SOCKET, _PROTOCOL)
    if domain not in (socket.AF_INET, socket.AF_INET6) or sock.type != socket.SOCK_STREAM:
        return False
    if protocol not in (socket.IPPROTO_TCP, _MPTCP):
        return False
    return not sock.getsockopt(socket.SOL_SOCKET, _BIND_TO_DEVICE, 16).strip(b"\0")


def patience_of(sock: socket.socket, most_s: float) -> float:
    """Give how long its `connect` may wait, at most so long."""
    seconds, micros = struct.unpack("@ll", sock.getsockopt(socket.SOL_SOCKET, _SEND_TIMEOUT, 16))
    given = seconds + micros / 1e6
    return min(given, most_s) if given else most_s


def is_blocking(descriptor: int) -> bool:
    """Say whether the command waits in its calls."""
    return os.get_blocking(descriptor)


def dial(
    there: Destination, like: socket.socket, patience_s: float
) -> tuple[socket.socket | None, int]:
    """Connect to where a socket was to lead, from the address that it is bound to if it is.

    Gives the connection, which does not block, and 0; or None and an error number, ETIMEDOUT where nobody answers in time.
    """
    family = socket.AF_INET6 if ":" in there.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.settimeout(patience_s)
        with contextlib.suppress(OSError):  # it is then as good from any
            bound = like.getsockname()[0].removeprefix("::ffff:")
            if bound not in ("0.0.0.0", "::") and (":" in bound) == (family == socket.AF_INET6):
                made.bind((bound, 0))
        made.connect((there.host, there.port))
    except TimeoutError:
        made.close()
        return None, errno.ETIMEDOUT
    except OSError as error:
        made.close()
        return None, error.errno or errno.ECONNREFUSED
    made.setblocking(False)
    return made, 0


def find_side(sock: socket.socket, sides: Sides) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """Give the address to connect a socket to, as its family writes it, and the one that the proxy will see it at.

    It has a port of its own then, but no address that would be in the way if it is connected elsewhere after all.
    None where its family has none. Raises: OSError.
    """
    if sock.family == socket.AF_INET:
        to, wildcard = sides.ipv4, "0.0.0.0"
    elif sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
        if sides.ipv6 is None:
            return None
        to, wildcard = sides.ipv6, "::"
    else:
        to, wildcard = (f"::ffff:{sides.ipv4[0]}", sides.ipv4[1]), "::"
    name = sock.getsockname()
    if not name[1]:
        sock.bind((name[0] if name[0] not in ("0.0.0.0", "::") else wildcard, 0))
        if not sock.getsockname()[1]:  # its port was to be chosen when it is connected
            sock.setsockopt(socket.IPPROTO_IP, _NO_PORT, 0)
            sock.bind((wildcard, 0))
        name = sock.getsockname()
    bound = name[0].removeprefix("::ffff:")
    seen = to[0].removeprefix("::ffff:") if bound in ("0.0.0.0", "::") else bound
    if (":" in seen) != (":" in to[0].removeprefix("::ffff:")):
        return None
    return to, (seen, name[1])
