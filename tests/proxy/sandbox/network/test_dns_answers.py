"""Answers to DNS in a sandbox, packet by packet."""

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.proxy.sandbox.network import dns_answers as module
from playhead.proxy.sandbox.network.dns_answers import AAAA, A, Names

TXT, HTTPS = 16, 65


def question(name: str, kind: int = A, *, flags: int = 0x0100, of: int = 1) -> bytes:
    """A packet that asks for a name."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".") if part)
    return struct.pack("!6H", 7, flags, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, of)


def read(answer: bytes | None) -> tuple[int, str]:
    """Its code, and the address that it gives."""
    assert answer is not None
    number, flags, _, count = struct.unpack_from("!4H", answer)
    assert number == 7
    assert flags & 0x8000
    size = {0: 0, 1: struct.unpack_from("!H", answer, -6)[0] if answer[-6:-4] == b"\0\4" else 16}
    return flags & 0xF, str(ipaddress.ip_address(answer[-size[count] :])) if count else ""


def test_a_name_is_known_again_by_its_address() -> None:
    """Of either kind, in any case of letters; different names have different addresses."""
    names = Names(ipv6=True)
    found = {}
    for name in ("api.example.com", "b.example.com", "API.example.com."):
        for kind in (A, AAAA):
            code, address = read(names.answer(question(name, kind)))
            assert code == 0
            found[name, kind] = address
            assert names.find(address) == name.lower().rstrip(".")
    assert len(set(found.values())) == 4
    assert names.find(f"::ffff:{found['b.example.com', A]}") == "b.example.com"
    assert names.find("198.18.200.1") is None
    assert names.find("8.8.8.8") is None


@pytest.mark.parametrize("kind", [TXT, HTTPS, 255])
def test_other_records_are_empty(kind: int) -> None:
    """The name is there, and has none of these; what was asked is counted all the same."""
    names = Names(ipv6=True)
    assert read(names.answer(question("a.example", kind))) == (0, "")
    assert names.asked.total() == 1


def test_there_is_no_address_that_cannot_be_reached() -> None:
    """Without IPv6 inside."""
    assert read(Names(ipv6=False).answer(question("a.example", AAAA))) == (0, "")


def test_localhost_is_loopback() -> None:
    """As everywhere (RFC 6761)."""
    names = Names(ipv6=True)
    assert read(names.answer(question("localhost"))) == (0, "127.0.0.1")
    assert read(names.answer(question("a.localhost", AAAA))) == (0, "::1")


def test_what_was_asked_is_counted() -> None:
    """By name and type, up to a number."""
    names = Names(ipv6=True)
    for name in ("a.b", "a.b", "secret.evil.example"):
        names.answer(question(name))
    assert names.asked == {("a.b", "A"): 2, ("secret.evil.example", "A"): 1}
    for number in range(module.MOST_LISTED + 5):
        names.answer(question(f"n{number}.b", TXT))
    assert len(names.asked) == module.MOST_LISTED
    assert names.omitted == 7


def test_who_asks_for_too_many_names_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays bounded; names that were given an address keep it."""
    monkeypatch.setattr(module, "_MOST_NAMES", 1)
    names = Names(ipv6=False)
    assert read(names.answer(question("a.b")))[0] == 0
    assert read(names.answer(question("b.b"))) == (2, "")
    assert read(names.answer(question("a.b")))[0] == 0


ODD = {
    "an answer": (question("a.b", flags=0x8000), None),
    "too short": (b"\0\7\1", None),
    "another opcode": (question("a.b", flags=0x2800), 4),
    "a name without end": (question("a.b")[:-6], 1),
    "a label that is too long": (struct.pack("!6H", 7, 0, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1", 1),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_questions(what: str) -> None:
    """Get an error or nothing."""
    packet, code = ODD[what]
    answer = Names(ipv6=True).answer(packet)
    assert (answer is None) == (code is None)
    if code is not None:
        assert read(answer) == (code, "")


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(packet: bytes) -> None:
    """An answer is never longer than the question and one address."""
    answer = Names(ipv6=True).answer(packet)
    assert answer is None or len(answer) <= len(packet) + 28
