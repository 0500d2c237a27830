"""What a program gives to `connect`, read as the kernel would, and what is taken."""

import socket
import struct

import pytest

from playhead.proxy.capture.destination import Destination, Wanted, is_taken, read_address


def _v4(host: str, port: int) -> bytes:
    return (
        struct.pack("=H", socket.AF_INET)
        + struct.pack("!H", port)
        + socket.inet_aton(host)
        + bytes(8)
    )


def _v6(host: str, port: int, scope: bool = True) -> bytes:
    packed = socket.inet_pton(socket.AF_INET6, host)
    family = struct.pack("=H", socket.AF_INET6)
    return family + struct.pack("!HI", port, 0) + packed + bytes(4 if scope else 0)


READ = {
    "IPv4": (_v4("203.0.113.9", 443), Destination("203.0.113.9", 443, False)),
    "loopback": (_v4("127.3.2.1", 80), Destination("127.3.2.1", 80, True)),
    "this machine": (_v4("0.0.0.0", 80), Destination("0.0.0.0", 80, True)),
    "IPv6": (_v6("2001:db8::9", 443), Destination("2001:db8::9", 443, False)),
    "IPv6 without its scope": (
        _v6("2001:db8::9", 443, False),
        Destination("2001:db8::9", 443, False),
    ),
    "loopback of IPv6": (_v6("::1", 443), Destination("::1", 443, True)),
    "IPv4 in IPv6": (_v6("::ffff:203.0.113.9", 443), Destination("203.0.113.9", 443, False)),
    "of one link": (_v6("fe80::1", 443), None),
    "too short": (_v4("203.0.113.9", 443)[:7], None),
    "too short for IPv6": (_v6("2001:db8::9", 443)[:20], None),
    "no family": (b"\x02", None),
    "nothing": (b"", None),
    "disconnect": (struct.pack("=H", socket.AF_UNSPEC) + bytes(14), None),
    "a path": (struct.pack("=H", socket.AF_UNIX) + b"/run/docker.sock\0", None),
}


@pytest.mark.parametrize("name", READ)
def test_an_address_is_read(name: str) -> None:
    """None is for what is none of ours."""
    raw, found = READ[name]
    assert read_address(raw) == found


WANTED = Wanted(frozenset((80, 443, 8443)), frozenset((8443,)))
TAKEN = {
    Destination("203.0.113.9", 443, False): True,
    Destination("203.0.113.9", 8443, False): True,
    Destination("127.0.0.1", 8443, True): False,  # ours
    Destination("127.0.0.1", 80, True): True,
    Destination("203.0.113.9", 5432, False): False,
}


@pytest.mark.parametrize("there", TAKEN, ids=str)
def test_ports_of_http_are_taken(there: Destination) -> None:
    """Those that are named, but for what listens for us."""
    assert is_taken(there, WANTED) is TAKEN[there]
