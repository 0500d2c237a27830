"""Where a `connect` leads, and what is made of it. Pure."""

import ipaddress
import socket
import struct
from dataclasses import dataclass
from typing import NamedTuple

HTTP_PORTS = (80, 443)
QUIC_PORT = 443
_IPV4, _IPV6 = struct.Struct("!2xH4s"), struct.Struct("!2xHI16sI")


class Destination(NamedTuple):
    """An address of IP and a port."""

    host: str
    """IPv4 ones never in their IPv6 form."""
    port: int
    is_loopback: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is taken to the proxy."""

    ports: frozenset[int]
    own: frozenset[int]
    """Ports of loopback at which something of ours listens: who asks for it, gets it."""
    dials: bool = True
    """Whether an upstream is connected to before its client is: not where that goes by way of a proxy of the network."""


def read_address(raw: bytes) -> Destination | None:
    """Read what a program has given to `connect`; None for anything but IPv4 and IPv6, and what the kernel would refuse."""
    if len(raw) < 2:
        return None
    family = struct.unpack_from("=H", raw)[0]
    if family == socket.AF_INET and len(raw) >= _IPV4.size:
        port, packed = _IPV4.unpack_from(raw)
        address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv4Address(packed)
    elif family == socket.AF_INET6 and len(raw) >= _IPV6.size - 4:
        port, _, packed, _ = _IPV6.unpack_from(raw.ljust(_IPV6.size, b"\0"))
        address = ipaddress.IPv6Address(packed)
        address = address.ipv4_mapped or address
        if isinstance(address, ipaddress.IPv6Address) and address.is_link_local:
            return None  # it says nothing without its scope
    else:
        return None
    # To the unspecified address is to this machine.
    return Destination(str(address), port, address.is_loopback or address.is_unspecified)


def is_taken(there: Destination, wanted: Wanted) -> bool:
    """Say whether a connection is taken to the proxy, if its socket allows that."""
    if there.port not in wanted.ports:
        return False
    return not (there.is_loopback and there.port in wanted.own)
