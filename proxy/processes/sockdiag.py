"""Ask the Linux kernel about this machine's sockets, without reading text tables.

`/proc/net/tcp` walks and prints every bucket of the kernel's hash table, about 5 ms a file on a 2-core machine; a
`sock_diag` dump takes 0.15 ms and the question for one connection 0.013 ms (measured 2026-10, Linux 6.18).
Source: sock_diag(7); linux/inet_diag.h. Every function raises OSError where the kernel does not answer (other
systems, gVisor): callers then fall back to psutil.
"""

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST, _DUMP = 0x1, 0x300
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # any interface, any cookie
_ANSWER = struct.Struct("!4s2H16s16s")
_INODE_AT = 4 + 48 + 16

_TIME_WAIT, _CLOSED, _LISTEN = 6, 7, 10  # linux/tcp_states.h
_CONNECTED = 0xFFF & ~(1 << _TIME_WAIT | 1 << _CLOSED | 1 << _LISTEN)
"""States a process's socket with a peer may be in; an unconnected UDP socket counts as closed. After many short
connections most sockets of a machine are in TIME_WAIT, and no process's any more."""
_MAPPED = bytes(10) + b"\xff\xff"
"""What an IPv4 address in its IPv6 form begins with."""
_PROTOCOLS = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP}


_UNIX_QUESTION = struct.Struct("=BBxxIII8x")
_UNIX_ANSWER = struct.Struct("=BBBxI8x")
_SHOW_NAME_AND_PLACE = 0x1 | 0x2
_NAME, _PLACE = 0, 1


class Listening(NamedTuple):
    """A Unix socket with a path at which somebody listens, or takes datagrams."""

    path: str
    """As it was bound: it may lead from the folder that its program was in, and have been moved since."""
    file_number: int
    """The lower 32 bits of what its file is numbered."""
    inode: int
    """As in `/proc/PID/fd`."""
    device: tuple[int, int] = (0, 0)
    """Of the file system that its file is in, as in `/proc/PID/mountinfo`."""


class Socket(NamedTuple):
    """One socket with a peer. Addresses are text, IPv4 ones never in their IPv6 form."""

    protocol: str
    """`tcp` or `udp`."""
    local: tuple[str, int]
    remote: tuple[str, int]
    inode: int
    """As in `/proc/PID/fd`; 0 when no process owns the socket any more."""


def plain(address: str) -> str:
    """Write an address in its shortest form: no zone, IPv4 as IPv4."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def list_sockets() -> Iterator[Socket]:
    """List the sockets of this network namespace that have a peer and may have an owner.

    Raises: OSError.
    """
    for protocol, number in _PROTOCOLS.items():
        for family in (socket.AF_INET, socket.AF_INET6):
            body = _QUESTION.pack(family, number, 0, _CONNECTED) + bytes(48)
            for message in _ask(_REQUEST | _DUMP, body):
                yield _read(protocol, message)


def list_listening() -> Iterator[Listening]:
    """List the Unix sockets with a path that somebody can connect to, or send datagrams to.

    Raises: OSError.
    """
    body = _UNIX_QUESTION.pack(socket.AF_UNIX, 0, 0xFFFFFFFF, 0, _SHOW_NAME_AND_PLACE)
    for message in _ask(_REQUEST | _DUMP, body):
        _, kind, state, inode = _UNIX_ANSWER.unpack_from(message)
        rows = dict(_attributes(message[_UNIX_ANSWER.size :]))
        if _PLACE in rows and (state == _LISTEN or kind == socket.SOCK_DGRAM):
            path = os.fsdecode(rows.get(_NAME, b"").rstrip(b"\0"))
            number, device = struct.unpack_from("=II", rows[_PLACE])
            # Source: Linux, include/linux/kdev_t.h: 20 bits for the minor number.
            yield Listening(path, number, inode, (device >> 20, device & 0xFFFFF))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Take apart what stands behind an answer. Source: netlink(7), `struct nlattr`."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[max(4, length + 3 & ~3) :]


def list_listeners(port: int) -> Iterator[Socket]:
    """List the TCP sockets of this network namespace that listen at a port, on any address.

    Raises: OSError.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        body = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 1 << _LISTEN) + bytes(48)
        for message in _ask(_REQUEST | _DUMP, body):
            found = _read("tcp", message)
            if found.local[1] == port:
                yield found


def find_socket(local: tuple[str, int], remote: tuple[str, int]) -> Socket | None:
    """Find the TCP socket with these two ends in this network namespace.

    Raises: OSError; ValueError, when an address is none.
    """
    local, remote = (plain(local[0]), local[1]), (plain(remote[0]), remote[1])
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    ends = (socket.inet_pton(family, end).ljust(16, b"\0") for end in (local[0], remote[0]))
    ports = struct.pack("!HH", local[1], remote[1])
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
    try:
        for message in _ask(_REQUEST, question + ports + b"".join(ends) + _COOKIE):
            found = _read("tcp", message)
            # Without such a connection the kernel answers with a listener on the local port.
            if (found.local, found.remote) == (local, remote):
                return found
    except FileNotFoundError:
        _require_answers()
    return None


@cache
def _require_answers() -> None:
    """Tell "no such connection" from "no such question": the kernel's error is the same.

    Raises: OSError.
    """
    body = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 1 << _LISTEN) + bytes(48)
    for _ in _ask(_REQUEST | _DUMP, body):
        pass


def _read(protocol: str, message: bytes) -> Socket:
    head, local_port, remote_port, local, remote = _ANSWER.unpack_from(message)
    family = head[0]
    inode = struct.unpack_from("=I", message, _INODE_AT)[0]
    ends = _text(family, local), _text(family, remote)
    return Socket(protocol, (ends[0], local_port), (ends[1], remote_port), inode)


def _text(family: int, address: bytes) -> str:
    """Do as `plain`, from the kernel's own form."""
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, address[:4])
    if address.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, address[len(_MAPPED) :])
    return str(ipaddress.IPv6Address(address))


def _ask(flags: int, body: bytes) -> Iterator[bytes]:
    """Put one question to the kernel; yield what it answers, without the netlink headers."""
    if sys.platform != "linux":
        raise OSError("sock_diag is Linux only")
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG
    ) as kernel:
        kernel.settimeout(1.0)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, flags, 1, 0) + body)
        while True:
            data = kernel.recv(1 << 17)
            at = 0
            while at < len(data):
                length, kind = struct.unpack_from("=IH", data, at)
                payload = data[at + _HEADER.size : at + length]
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", payload)[0]
                    raise OSError(number, "the kernel refused a sock_diag question")
                yield payload
                at += (length + 3) & ~3
            if not flags & _DUMP:
                return
