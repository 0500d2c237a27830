"""What is read from the packets of refused attempts, and which packets those are."""

import ipaddress
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.proxy.sandbox.bpf import assemble
from playhead.proxy.sandbox.listeners import tap_program
from playhead.proxy.sandbox.tap import Attempt, read_attempt
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


PACKETS = {
    # what: (packet, what is read from it, or None where the filter drops it)
    "refused": (ip(6, tcp(22, 40000, RST | ACK), "9.9.9.9", "9.9.9.9"), ("tcp", "9.9.9.9", 22)),
    "refused, with options": (
        ip(6, tcp(22, 40000, RST | ACK), "9.9.9.9", "9.9.9.9", bytes(8)),
        ("tcp", "9.9.9.9", 22),
    ),
    "refused over IPv6": (
        ip(6, tcp(22, 40000, RST | ACK), "2001:db8::1", "2001:db8::1"),
        ("tcp", "2001:db8::1", 22),
    ),
    "asked": (ip(6, tcp(40000, 22, SYN), "9.9.9.9", "9.9.9.9"), None),
    "accepted": (ip(6, tcp(80, 40000, SYN | ACK, 77), "9.9.9.9", "9.9.9.9"), None),
    "broken off": (ip(6, tcp(80, 40000, RST | ACK, 77), "9.9.9.9", "9.9.9.9"), None),
    "a datagram": (ip(17, udp(5000, 123), "9.9.9.9", "9.9.9.9"), ("udp", "9.9.9.9", 123)),
    "a datagram over IPv6": (ip(17, udp(5000, 123), "::1", "fd00::2"), ("udp", "fd00::2", 123)),
    "a question to DNS": (ip(17, udp(5000, 53), "9.9.9.9", "9.9.9.9"), None),
    "its answer": (ip(17, udp(53, 5000), "9.9.9.9", "9.9.9.9"), None),
    "DNS over IPv6": (ip(17, udp(5000, 53), "::1", "fd00::2"), None),
    "an ICMP error": (ip(1, bytes(8), "9.9.9.9", "9.9.9.9"), None),
    "who is there": (ip(58, bytes(8), "::1", "ff02::1"), None),
    "something else": (ip(132, bytes(12), "9.9.9.9", "8.8.8.8"), ("protocol 132", "8.8.8.8", 0)),
}


@pytest.mark.parametrize("what", PACKETS)
def test_what_was_tried_is_read(what: str) -> None:
    """From what the filter lets through, once: as it leaves."""
    packet, expected = PACKETS[what]
    code = assemble(tap_program())

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
        assert read_attempt(packet) == expected


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
