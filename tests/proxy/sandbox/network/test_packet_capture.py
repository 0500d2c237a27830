"""What is read from the packets of refused attempts, and which packets those are."""

import ipaddress
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.proxy.sandbox.kernel.bpf import assemble
from playhead.proxy.sandbox.network.listeners import leaving_program, refused_program
from playhead.proxy.sandbox.network.netlink import OWN
from playhead.proxy.sandbox.network.packet_capture import Attempt, read_attempt
from playhead.tests.support.bpf import run

RST, ACK, SYN = 0x04, 0x10, 0x02
OUTGOING, INCOMING = 4, 0
_KIND, _PROTOCOL = 0xFFFFF004, 0xFFFFF000


def ip(protocol: int, payload: bytes, source: str, target: str, options: bytes = b"") -> bytes:
    """A packet of either version."""
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(target).packed
    if len(ends) == 8:
        words = 5 + len(options) // 4
        head = struct.pack("!BBHHHBBH", 0x40 | words, 0, 20 + len(payload), 0, 0, 64, protocol, 0)
        return head + ends + options + payload
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload


def tcp(source: int, target: int, flags: int, number: int = 0) -> bytes:
    """The head of a segment."""
    return struct.pack("!HHIIBBHHH", source, target, number, 1, 0x50, flags, 0, 0, 0)


def udp(source: int, target: int) -> bytes:
    """The head of a datagram."""
    return struct.pack("!HHHH", source, target, 8, 0)


OUT, OWN4, OWN6 = "9.9.9.9", OWN[socket.AF_INET][0], OWN[socket.AF_INET6][0]
LEAVING = {
    # what: (packet, what is read from it, or None where the filter drops it)
    "asked": (ip(6, tcp(40000, 22, SYN), OWN4, OUT), ("tcp", OUT, 22)),
    "asked, with options": (ip(6, tcp(40000, 22, SYN), OWN4, OUT, bytes(8)), ("tcp", OUT, 22)),
    "asked over IPv6": (ip(6, tcp(4000, 22, SYN), OWN6, "2001:db8::1"), ("tcp", "2001:db8::1", 22)),
    "asked, but captured": (ip(6, tcp(40000, 443, SYN), OWN4, OUT), None),
    "asked over IPv6, but captured": (ip(6, tcp(4000, 80, SYN), OWN6, "2001:db8::1"), None),
    "asked on loopback": (ip(6, tcp(40000, 22, SYN), "127.0.0.1", "127.1.2.3"), None),
    "asked on loopback over IPv6": (ip(6, tcp(40000, 22, SYN), "::1", "::1"), None),
    "asked of itself": (ip(6, tcp(40000, 22, SYN), OWN4, OWN4), None),
    "asked of itself over IPv6": (ip(6, tcp(40000, 22, SYN), OWN6, OWN6), None),
    "an address like loopback": (ip(6, tcp(1, 22, SYN), OWN6, "::2"), ("tcp", "::2", 22)),
    "an address like its own": (
        ip(6, tcp(1, 22, SYN), OWN6, "fd70:6c61:7968:1::1"),
        ("tcp", "fd70:6c61:7968:1::1", 22),
    ),
    "another like its own": (
        ip(6, tcp(1, 22, SYN), OWN6, "fd70:6c61:7968::2"),
        ("tcp", "fd70:6c61:7968::2", 22),
    ),
    "refused": (ip(6, tcp(22, 40000, RST | ACK), OUT, OWN4), None),
    "accepted": (ip(6, tcp(22, 40000, SYN | ACK, 77), OUT, OWN4), None),
    "said": (ip(6, tcp(40000, 22, ACK, 77), OWN4, OUT), None),
    "a datagram": (ip(17, udp(5000, 123), OWN4, OUT), ("udp", OUT, 123)),
    "a datagram over IPv6": (ip(17, udp(5000, 123), "::1", "fd00::2"), ("udp", "fd00::2", 123)),
    "a datagram to its own": (ip(17, udp(5000, 123), OUT, OWN4), None),
    "a question to DNS": (ip(17, udp(5000, 53), OWN4, OUT), None),
    "its answer": (ip(17, udp(53, 5000), OUT, OUT), None),
    "DNS over IPv6": (ip(17, udp(5000, 53), "::1", "fd00::2"), None),
    "an ICMP error": (ip(1, bytes(8), OUT, OUT), None),
    "who is there": (ip(58, bytes(8), "::1", "ff02::1"), None),
    "something else": (ip(132, bytes(12), OUT, "8.8.8.8"), ("protocol 132", "8.8.8.8", 0)),
    "a piece": (ip(44, bytes(12), OWN6, "fd00::2"), ("protocol 44", "fd00::2", 0)),
}
REFUSED = {
    "refused": (
        ip(6, tcp(22, 4000, RST | ACK), "127.0.0.2", "127.0.0.1"),
        ("tcp", "127.0.0.2", 22),
    ),
    "refused, with options": (
        ip(6, tcp(22, 40000, RST | ACK), "127.0.0.1", "127.0.0.1", bytes(8)),
        ("tcp", "127.0.0.1", 22),
    ),
    "refused over IPv6": (ip(6, tcp(22, 40000, RST | ACK), "::1", "::1"), ("tcp", "::1", 22)),
    "refused by itself": (ip(6, tcp(22, 40000, RST | ACK), OWN4, OWN4), ("tcp", OWN4, 22)),
    "refused outside": (ip(6, tcp(22, 40000, RST | ACK), OUT, OWN4), None),
    "refused outside over IPv6": (ip(6, tcp(22, 4000, RST | ACK), "2001:db8::1", OWN6), None),
    "asked": (ip(6, tcp(40000, 22, SYN), "127.0.0.1", "127.0.0.1"), None),
    "broken off": (ip(6, tcp(80, 40000, RST | ACK, 77), "127.0.0.1", "127.0.0.1"), None),
    "broken off at once": (ip(6, tcp(80, 40000, RST), "127.0.0.1", "127.0.0.1"), None),
    "a datagram": (ip(17, udp(5000, 123), "127.0.0.1", "127.0.0.1"), None),
}
ROWS = [(True, what) for what in LEAVING] + [(False, what) for what in REFUSED]


@pytest.mark.parametrize(("leaving", "what"), ROWS)
def test_what_was_tried_is_read(leaving: bool, what: str) -> None:
    """From what the filter lets through, once: as it leaves."""
    packet, expected = (LEAVING if leaving else REFUSED)[what]
    code = assemble(leaving_program() if leaving else refused_program())

    def kept(kind: int) -> bool:
        def look(place: int, size: int) -> int:
            if place == _KIND:
                return kind
            if place == _PROTOCOL:
                return 0x0800 if packet[0] >> 4 == 4 else 0x86DD
            return int.from_bytes(packet[place : place + size])

        return bool(run(code, look))

    assert kept(OUTGOING) == (expected is not None)
    assert not kept(INCOMING)
    if expected is not None:
        read = read_attempt(packet)
        assert read == expected
        assert read.leaves is leaving


@given(st.binary(max_size=80))
def test_any_bytes_are_survived(packet: bytes) -> None:
    """A packet may be anything: an address comes out, or nothing."""
    read = read_attempt(packet)
    assert read is None or ipaddress.ip_address(read.address)


@pytest.mark.parametrize(
    ("address", "leaves"),
    [
        ("127.0.0.1", False),
        ("::1", False),
        ("0.0.0.0", False),
        ("198.18.0.1", False),
        ("198.18.1.1", True),
        ("10.0.0.1", True),
        ("fe80::1", True),
    ],
)
def test_only_what_is_not_loopback_would_have_left(address: str, leaves: bool) -> None:
    """An agent may look for a server of its own."""
    attempt = Attempt("tcp", address, 22)
    assert attempt.leaves is leaves
    assert attempt.target == (f"[{address}]:22" if ":" in address else f"{address}:22")
    assert socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
