"""Create the sockets of a sandbox for the proxy: listeners and packet captures."""

import contextlib
import errno
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..kernel.bpf import (
    AND,
    EQUAL,
    HEADER_LENGTH,
    LOAD,
    LOAD_AT,
    LOAD_BYTE,
    LOAD_BYTE_AT,
    LOAD_HALF,
    LOAD_HALF_AT,
    RETURN,
    Op,
    assemble,
)
from .netlink import OWN

PROXY_PORT = 1023
"""Of the proxy on loopback: below 1024, so that nothing in a sandbox can want it for itself."""
CAPTURED = (80, 443)
"""Ports on which every address answers, and it is the proxy that does."""
DNS_PORT = 53

_BACKLOG = 512
_IPV6_RECVPKTINFO = 49
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE = 26, 33
_EVERY_PROTOCOL = 0x0003
_SNAP_BYTES = 128
_CAPTURE_BYTES = 4 << 20
"""Of packets that wait to be read; the kernel counts 768 bytes and more for each."""

_KIND_OF_PACKET, _PROTOCOL = 0xFFFFF004, 0xFFFFF000
"""Places at which a filter finds what the kernel knows of a packet."""
_OUTGOING = 4
_IPV4, _IPV6 = 0x0800, 0x86DD
_ICMP, _TCP, _UDP, _ICMPV6, _OPTIONS = 1, 6, 17, 58, 0
_ACK, _RESET, _SYN = 0x10, 0x04, 0x02


class Service(NamedTuple):
    """An address of this machine at which a sandbox finds what listens there outside."""

    host: str
    port: int


def listen(
    families: Iterable[socket.AddressFamily],
    services: Iterable[Service],
    ports: Sequence[int] = (),
) -> list[tuple[str, socket.socket]]:
    """Open all sockets of a sandbox, each with its role: `proxy`, `captured`, `dns`, `service`, `leaving`, `refused`.

    ports: further ones on which the proxy answers at every address. Those of services come in the order of the services.
    Raises: OSError, also for two services with one address.
    """
    made = [("proxy", _tcp(socket.AF_INET, "127.0.0.1", PROXY_PORT))]
    captured = sorted({*CAPTURED, *ports})
    for family in families:
        everywhere = "::" if family is socket.AF_INET6 else "0.0.0.0"
        made += [("captured", _tcp(family, everywhere, port)) for port in captured]
        made.append(("dns", _dns(family, everywhere)))
    for service in services:
        family = socket.AF_INET6 if ":" in service.host else socket.AF_INET
        made.append(("service", _tcp(family, *service)))
    # A kernel may do without; then what is refused is counted, but not told by its address.
    with contextlib.suppress(OSError):
        captures = (("leaving", leaving_program(captured)), ("refused", refused_program()))
        made += [(role, _open_capture_socket(program)) for role, program in captures]
    return made


def _tcp(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    if family is socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                errno.EADDRINUSE, f"{host}:{port} is the proxy's own in a sandbox, or given twice"
            ) from error
        raise
    return made


def _dns(family: socket.AddressFamily, host: str) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    # Answers leave from the address that was asked, which a wildcard socket does not do by itself.
    if family is socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVPKTINFO, 1)
    else:
        made.setsockopt(socket.IPPROTO_IP, socket.IP_PKTINFO, 1)
    made.bind((host, DNS_PORT))
    return made


def _open_capture_socket(program: list[Op | str]) -> socket.socket:
    """Open a socket that gets the packets that a filter lets through."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)  # none yet: first the filter
    # The kernel wants the program's address; the buffer lives until it has copied it.
    import ctypes

    code = assemble(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    made.setsockopt(
        socket.SOL_SOCKET,
        _SO_ATTACH_FILTER,
        struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)),
    )
    with contextlib.suppress(OSError):  # what overflows is counted
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _CAPTURE_BYTES)
    made.bind(("lo", _EVERY_PROTOCOL))
    return made


def leaving_program(captured: Sequence[int] = CAPTURED) -> list[Op | str]:
    """Write the filter of what would have left the machine: first packets of TCP, UDP, and what is neither nor ICMP.

    captured: ports on which the proxy answers.
    Not what the proxy answers: TCP to its ports, DNS. Each packet of loopback is seen as it leaves, and only then.
    What is answered by a server of the command's own (every address leads to it) was to leave nevertheless.
    """
    return [
        *_split(16, 24, own=("drop", "drop"), other=("next4", "next6")),
        "next4",
        Op(LOAD_BYTE, 9),
        Op(EQUAL, _TCP, "tcp4"),
        Op(EQUAL, _UDP, "udp4"),
        Op(EQUAL, _ICMP, "drop", "keep"),
        "tcp4",
        Op(HEADER_LENGTH, 0),
        Op(LOAD_BYTE_AT, 13),
        Op(AND, _SYN | _ACK),
        Op(EQUAL, _SYN, None, "drop"),
        Op(LOAD_HALF_AT, 2),
        *[Op(EQUAL, port, "drop") for port in captured],
        Op(RETURN, _SNAP_BYTES),
        "udp4",
        Op(HEADER_LENGTH, 0),
        Op(LOAD_HALF_AT, 0),
        Op(EQUAL, DNS_PORT, "drop"),
        Op(LOAD_HALF_AT, 2),
        Op(EQUAL, DNS_PORT, "drop", "keep"),
        "next6",
        Op(LOAD_BYTE, 6),
        Op(EQUAL, _TCP, "tcp6"),
        Op(EQUAL, _UDP, "udp6"),
        Op(EQUAL, _ICMPV6, "drop"),
        Op(EQUAL, _OPTIONS, "drop", "keep"),  # who listens to groups, which nobody asked for
        "tcp6",
        Op(LOAD_BYTE, 53),
        Op(AND, _SYN | _ACK),
        Op(EQUAL, _SYN, None, "drop"),
        Op(LOAD_HALF, 42),
        *[Op(EQUAL, port, "drop") for port in captured],
        Op(RETURN, _SNAP_BYTES),
        "udp6",
        Op(LOAD_HALF, 40),
        Op(EQUAL, DNS_PORT, "drop"),
        Op(LOAD_HALF, 42),
        Op(EQUAL, DNS_PORT, "drop", "keep"),
        *_END,
    ]


def refused_program() -> list[Op | str]:
    """Write the filter of what was refused on the sandbox's own addresses: resets that answer a first packet of TCP."""
    return [
        *_split(12, 8, own=("next4", "next6"), other=("drop", "drop")),
        "next4",
        Op(LOAD_BYTE, 9),
        Op(EQUAL, _TCP, None, "drop"),
        Op(HEADER_LENGTH, 0),
        Op(LOAD_AT, 4),
        Op(EQUAL, 0, None, "drop"),  # it has a sequence number: a connection that was made ends
        Op(LOAD_BYTE_AT, 13),
        Op(AND, _RESET | _ACK),
        Op(EQUAL, _RESET | _ACK, "keep", "drop"),
        "next6",
        Op(LOAD_BYTE, 6),
        Op(EQUAL, _TCP, None, "drop"),
        Op(LOAD, 44),
        Op(EQUAL, 0, None, "drop"),
        Op(LOAD_BYTE, 53),
        Op(AND, _RESET | _ACK),
        Op(EQUAL, _RESET | _ACK, "keep", "drop"),
        *_END,
    ]


def _split(at4: int, at6: int, *, own: tuple[str, str], other: tuple[str, str]) -> list[Op | str]:
    """Begin a filter: outgoing packets only, and go by an address of theirs, which is the sandbox's own or another.

    at4, at6: where the address is. own, other: labels to go to, of both versions.
    """
    own4 = int.from_bytes(socket.inet_pton(socket.AF_INET, OWN[socket.AF_INET][0]))
    own6 = struct.unpack("!4I", socket.inet_pton(socket.AF_INET6, OWN[socket.AF_INET6][0]))
    assert own6[2:] == (0, 1), "it ends as ::1 does"
    return [
        Op(LOAD, _KIND_OF_PACKET),
        Op(EQUAL, _OUTGOING, None, "drop"),
        Op(LOAD, _PROTOCOL),
        Op(EQUAL, _IPV6, "ipv6"),
        Op(EQUAL, _IPV4, None, "drop"),
        Op(LOAD, at4),
        Op(EQUAL, own4, own[0]),
        Op(AND, 0xFF000000),
        Op(EQUAL, 0x7F000000, own[0], other[0]),
        "ipv6",
        Op(LOAD, at6),
        Op(EQUAL, 0, "zeros"),
        Op(EQUAL, own6[0], None, other[1]),
        Op(LOAD, at6 + 4),
        Op(EQUAL, own6[1], "end", other[1]),
        "zeros",
        Op(LOAD, at6 + 4),
        Op(EQUAL, 0, None, other[1]),
        "end",
        Op(LOAD, at6 + 8),
        Op(EQUAL, 0, None, other[1]),
        Op(LOAD, at6 + 12),
        Op(EQUAL, 1, own[1], other[1]),
    ]


_END: list[Op | str] = ["keep", Op(RETURN, _SNAP_BYTES), "drop", Op(RETURN, 0)]
