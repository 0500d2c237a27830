r"""How a replaced value was written: it counts beside the value.

`a.b@shop.com` and `a.b%40shop.com` have one placeholder, each written as its value was. To whoever reads the request they are two
values. So two places agree only if they are written alike, too, once what their container undoes (a string of JSON, a form) is undone.

Base64 and hexadecimal of a placeholder do not show in which alphabet the value was written: `Secret.coded` says it.
"""

import re
from typing import NamedTuple

UNIT = re.compile(
    rb"%[0-9A-Fa-f]{2}|\\(?<!\\\\)\\*+(?:u[dD][89abAB][0-9A-Fa-f]{2}\\+u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[^u\\])|.",
    re.DOTALL,
)
"""One character, or one byte of UTF-8, as it may be written in a URL, a form or a string of JSON, however deep that is nested."""
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
"""What a URL need not encode. Source: RFC 3986 section 2.3."""
_NESTED = re.compile(rb"%(?:25)*[0-9A-Fa-f]{2}|" + UNIT.pattern, re.DOTALL)
_CONTROLS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_STANDARD, _URL = re.compile(rb"[+/]"), re.compile(rb"[-_]")
_LOWER, _UPPER = re.compile(rb"[a-f]"), re.compile(rb"[A-F]")


class Spelling(NamedTuple):
    """How a value is written."""

    text: bytes = b""
    """Its placeholder, as its container says it; empty where nobody knows."""
    coded: str = ""
    """See `Secret.coded`."""
    number: bool = False
    """Whether it is a number of JSON, and no string."""


class InnerSecret(NamedTuple):
    """A value outside of header fields for credentials that was replaced."""

    place: str
    value: bytes
    """Its placeholder, without escapes."""
    prefix: bytes
    """Its known prefix, as that of a service's keys."""
    counts: bool
    """All do but those in places of credentials."""
    spelling: Spelling


def in_base64(raw: bytes) -> str:
    """Say in which alphabet of base64 a text is written, as far as it shows it."""
    return _name("base64", raw, standard=_STANDARD, url=_URL)


def in_hex(raw: bytes) -> str:
    """Say in which letters hexadecimal is written, as far as it shows it."""
    return _name("hex", raw, lower=_LOWER, upper=_UPPER)


def _name(coding: str, raw: bytes, **signs: re.Pattern[bytes]) -> str:
    return " ".join([coding, *(name for name, sign in signs.items() if sign.search(raw))])


def are_alike(one: Spelling, other: Spelling, *, same: bool) -> bool:
    """Say whether two values are written alike.

    same: whether they are the same value. Of two others each sign that both have has to be written alike, and all letters and digits.
    """
    if one == other or not (one.text and other.text):
        return True
    if one.number != other.number:
        return False
    if one.coded and other.coded and not _are_coded_alike(one.coded, other.coded, same=same):
        return False
    if same:
        return one.text == other.text
    ways, others = _list_ways(one.text), _list_ways(other.text)
    return all(ways[sign] & others[sign] for sign in ways.keys() & others.keys())


def _are_coded_alike(one: str, other: str, *, same: bool) -> bool:
    if same:
        return one == other
    (coding, *marks), (other_coding, *other_marks) = one.split(), other.split()
    return coding == other_coding and (marks == other_marks or not (marks and other_marks))


def _list_ways(text: bytes) -> dict[bytes, set[bytes]]:
    """List the ways in which each sign of a value is written; all letters and digits are one."""
    found: dict[bytes, set[bytes]] = {}
    for unit in _NESTED.findall(text):
        sign = meaning_of(unit if unit[:1] != b"%" else b"%" + unit[-2:])
        if sign.isalnum():
            sign, unit = b"", unit[:-2] if len(unit) > 1 else b""
        found.setdefault(sign, set()).add(unit)
    return found


def meaning_of(unit: bytes) -> bytes:
    """Give what a character means that may be written with an escape, as UTF-8."""
    if len(unit) == 1:
        return unit
    if unit[:1] == b"%":
        return bytes((int(unit[1:], 16),))
    escaped = unit.lstrip(b"\\")
    if len(escaped) >= 5:
        code = int(escaped[1:5], 16)
        if len(escaped) > 5:  # two halves of UTF-16
            code = 0x10000 + (code - 0xD800 << 10) + int(escaped[-4:], 16) - 0xDC00
        return chr(code).encode("utf-8", "surrogatepass")
    return _CONTROLS.get(escaped, escaped[:1])
