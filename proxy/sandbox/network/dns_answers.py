"""Answer DNS in a sandbox: each name gets its own addresses, which identify it when a client connects.

No name is looked up: an answer says nothing of the world, and a question leaves for nobody. Names are given addresses
in the order in which they are asked for. Source: RFC 1035; 198.18.0.0/15 is for benchmarks (RFC 2544), fd00::/8 is
private (RFC 4193).
"""

import ipaddress
import struct
from collections import Counter

A, AAAA = 1, 28
_IN = 1
_HEADER = struct.Struct("!6H")
_ANSWER, _RECURSION, _ASKED_RECURSION = 0x8000, 0x0080, 0x0100
_BROKEN, _FULL, _UNKNOWN_QUESTION = 1, 2, 4
_OPCODE = 0x7800
_TTL_S = 5
_MOST_NAMES = 100_000
_MOST_LABEL = 63
_MOST_BYTES = 255
MOST_LISTED = 1000
"""Different names that are counted one by one."""
_KINDS = {A: "A", AAAA: "AAAA", 5: "CNAME", 12: "PTR", 15: "MX", 16: "TXT", 33: "SRV", 65: "HTTPS"}

_FIRST4 = int(ipaddress.IPv4Address("198.18.1.1"))
_FIRST6 = int(ipaddress.IPv6Address("fd70:6c61:7968:1::1"))


class Names:
    """The names that were asked for, and their addresses."""

    def __init__(self, *, ipv6: bool) -> None:
        """Begin with none.

        ipv6: whether the sandbox can reach such addresses, so that they are worth giving.
        """
        self._ipv6 = ipv6
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self.asked: Counter[tuple[str, str]] = Counter()
        """How often each name was asked for, by name and type."""
        self.questions = 0
        """All of them."""
        self.omitted = 0
        """Questions that found no place in that."""

    def find(self, address: str) -> str | None:
        """Find the name that has an address; None for one that has none, and for what is no address."""
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return None
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        number = int(parsed) - (_FIRST4 if parsed.version == 4 else _FIRST6)
        return self._names[number] if 0 <= number < len(self._names) else None

    def answer(self, question: bytes) -> bytes | None:
        """Answer a packet; None for what deserves none."""
        if len(question) < _HEADER.size:
            return None
        number, flags, count = _HEADER.unpack_from(question)[:3]
        if flags & _ANSWER:
            return None
        said = _ANSWER | _RECURSION | flags & (_OPCODE | _ASKED_RECURSION)
        if flags & _OPCODE or count != 1:
            return _HEADER.pack(number, said | _UNKNOWN_QUESTION, 0, 0, 0, 0)
        read = _read_question(question)
        if read is None:
            return _HEADER.pack(number, said | _BROKEN, 0, 0, 0, 0)
        name, kind, of, end = read
        self._count(name, kind)
        asked = question[_HEADER.size : end]
        address = self._address(name, kind) if of == _IN else b""
        if address is None:
            return _HEADER.pack(number, said | _FULL, 1, 0, 0, 0) + asked
        head = _HEADER.pack(number, said, 1, 1 if address else 0, 0, 0)
        if not address:
            return head + asked
        # The name of the answer is that of the question, 12 bytes from the start.
        row = struct.pack("!HHHIH", 0xC000 | _HEADER.size, kind, _IN, _TTL_S, len(address))
        return head + asked + row + address

    def _count(self, name: str, kind: int) -> None:
        self.questions += 1
        key = (name, _KINDS.get(kind, f"TYPE{kind}"))
        if key in self.asked or len(self.asked) < MOST_LISTED:
            self.asked[key] += 1
        else:
            self.omitted += 1

    def _address(self, name: str, kind: int) -> bytes | None:
        """Give the address of a name, nothing where it has none of this kind, None where there is no more room."""
        if kind not in (A, AAAA) or (kind == AAAA and not self._ipv6) or not name:
            return b""
        if name == "localhost" or name.endswith(".localhost"):
            return b"\x7f\0\0\1" if kind == A else bytes(15) + b"\1"
        number = self._numbers.get(name)
        if number is None:
            if len(self._names) >= _MOST_NAMES:
                return None
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        if kind == A:
            return (_FIRST4 + number).to_bytes(4)
        return (_FIRST6 + number).to_bytes(16)


def _read_question(packet: bytes) -> tuple[str, int, int, int] | None:
    """Read the question of a packet: name, type, class, and where it ends; None where it is broken."""
    at = _HEADER.size
    labels: list[str] = []
    while True:
        if at >= len(packet):
            return None
        size = packet[at]
        label = packet[at + 1 : at + 1 + size]
        at += 1 + size
        if size == 0:
            break
        if size > _MOST_LABEL or len(label) < size or at - _HEADER.size > _MOST_BYTES:
            return None
        labels.append(label.decode("latin-1").lower())
    if len(packet) < at + 4:
        return None
    kind, of = struct.unpack_from("!HH", packet, at)
    return ".".join(labels), kind, of, at + 4
