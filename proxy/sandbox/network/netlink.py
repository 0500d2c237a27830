"""Create a network in which every address is local: loopback, and a route for all other addresses.

Whoever connects to any address arrives at a socket of the same namespace, and that socket's own address is the
one that was asked for. Source: rtnetlink(7); "AnyIP" in Linux, ip-route(8) `local`.
"""

import os
import socket
import struct

_NEWLINK, _NEWADDR, _NEWROUTE = 16, 20, 24
_REQUEST, _ACK, _CREATE, _EXCL = 0x1, 0x4, 0x400, 0x200
_LOOPBACK, _UP = 1, 1
_IFA_ADDRESS, _IFA_LOCAL, _RTA_OIF, _RTA_PREFSRC = 1, 2, 4, 7
_NODAD = 0x02
"""Of an address: use it at once, without asking whether somebody else has it."""
_TABLE_LOCAL, _PROTO_STATIC, _SCOPE_HOST, _TYPE_LOCAL = 255, 4, 254, 2

OWN = {socket.AF_INET: ("198.18.0.1", 32), socket.AF_INET6: ("fd70:6c61:7968::1", 128)}
"""Addresses beside loopback: resolvers leave out what a machine without any could not reach. Who asks for the
machine's own address, as by connecting a UDP socket to somewhere, is told these."""


def make_all_local() -> tuple[socket.AddressFamily, ...]:
    """Bring loopback up and have all addresses lead to it; give the families for which that was done.

    Raises: OSError, where it cannot be done for IPv4.
    """
    _ask(_NEWLINK, 0, struct.pack("=BBHiII", socket.AF_UNSPEC, 0, 0, _LOOPBACK, _UP, _UP))
    _claim(socket.AF_INET)
    try:
        _claim(socket.AF_INET6)
    except OSError:  # a machine without it
        return (socket.AF_INET,)
    return (socket.AF_INET, socket.AF_INET6)


def _claim(family: socket.AddressFamily) -> None:
    address, bits = OWN[family]
    packed = socket.inet_pton(family, address)
    body = struct.pack("=BBBBI", family, bits, _NODAD, 0, _LOOPBACK)
    _ask(
        _NEWADDR,
        _CREATE | _EXCL,
        body + _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed),
    )
    route = (family, 0, 0, 0, _TABLE_LOCAL, _PROTO_STATIC, _SCOPE_HOST, _TYPE_LOCAL, 0)
    body = struct.pack("=BBBBBBBBI", *route)
    device = _attribute(_RTA_OIF, struct.pack("=I", _LOOPBACK))
    _ask(_NEWROUTE, _CREATE, body + device + _attribute(_RTA_PREFSRC, packed))


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value


def _ask(kind: int, flags: int, body: bytes) -> None:
    """Have the kernel do one thing, and wait for its word that it is done."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0) as kernel:
        head = struct.pack("=IHHII", 16 + len(body), kind, flags | _REQUEST | _ACK, 1, 0)
        kernel.sendall(head + body)
        number = -struct.unpack_from("=i", kernel.recv(4096), 16)[0]
    if number:
        raise OSError(number, f"netlink {kind}: {os.strerror(number)}")
