r"""How a replaced value was written: it counts beside the value.

`a.b@shop.com` and `a.b%40shop.com` have one placeholder, each written as its value was. To whoever reads the request they are two
values. So two places agree only if they are written alike, too, once what their container undoes (a string of JSON, a form) is undone.

Base64 and hexadecimal of a placeholder do not show in which alphabet the value was written: `Secret.coded` says it. In an answer it
also says where in the base64 the value is: the characters that have it also have some bytes around it, and the agent decodes it.
"""

import binascii
import re
from collections.abc import Iterator
from itertools import islice
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
_HEX = re.compile(rb"[0-9A-Fa-f]*")
_PLACE = re.compile(r" ([0-3]):([0-2]):([0-9]{1,9})\Z")
_RUN = re.compile(rb"[A-Za-z0-9+/_-]{16,}")
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_GROUP = 4
_SLASH = re.compile(rb"/")
_MOST_SLASHES = 16
_SEEN = 16
"""Characters of base64 that say whether it is of text."""


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


def tell_place(group: int, before: int, size: int) -> str:
    """Say where in base64 a value is, for the end of `Secret.coded`.

    group: characters of its first group of four that are before the replaced ones.
    before: bytes before the value in that group. size: bytes of the value.
    """
    return f" {group}:{before}:{size}"


def read_coded(raw: bytes, coded: str) -> bytes:
    """Give the value that replaced characters mean, as far as it is known how they are coded; else the characters.

    raw: without escapes.
    """
    if coded.startswith("hex"):
        return binascii.unhexlify(raw) if len(raw) % 2 == 0 and _HEX.fullmatch(raw) else raw
    found = _PLACE.search(coded)
    if found is None:
        return raw
    group, before, size = map(int, found.groups())
    plain = _decode(b"A" * group + raw)[before : before + size]
    return plain if len(plain) == size else raw


def _decode(run: bytes) -> bytes:
    """Decode characters of base64, without padding at their end; nothing if they are none."""
    run = run.rstrip(b"=").translate(_TO_STANDARD)
    if len(run) % _GROUP == 1:
        run = run[:-1]
    try:
        return binascii.a2b_base64(run + b"=" * (-len(run) % _GROUP))
    except binascii.Error:
        return b""


def list_texts_in_base64(data: bytes) -> Iterator[bytes]:
    """Yield what base64 in a text means, where that is text.

    What is before it may be of its alphabet, too, as a path is: it may begin at each of four characters, or behind a `/`.
    """
    for found in _RUN.finditer(data):
        run = found[0]
        slashes = (one.end() for one in islice(_SLASH.finditer(run), _MOST_SLASHES))
        for at in sorted({*range(_GROUP), *slashes}):
            begins = _decode(run[at : at + _SEEN])
            if begins and begins.isascii() and min(begins) >= ord("\t"):
                yield _decode(run[at:])


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
    (coding, *marks), (other_coding, *other_marks) = one.split(), other.split()
    if same:
        # An agent that has the placeholder codes that: it may have no sign that shows the alphabet.
        if _PLACE.findall(one) != _PLACE.findall(other):
            return False
        marks = [mark for mark in marks if ":" not in mark]
        other_marks = [mark for mark in other_marks if ":" not in mark]
    return coding == other_coding and (marks == other_marks or not (marks and other_marks))


def _list_ways(text: bytes) -> dict[bytes, set[bytes]]:
    """List the ways in which each sign of a value is written; all letters and digits are one."""
    found: dict[bytes, set[bytes]] = {}
    for unit in _NESTED.findall(text):
        sign = meaning_of(b"%" + unit[-2:] if len(unit) > 1 and unit[:1] == b"%" else unit)
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
