"""Find personal data, where a configuration asks for it: `redact: {pii: [email, phone, iban, card, ssn]}`.

Each kind is one pattern of RE2, which takes time in proportion to the text, and a check of what it found.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ....config.values import compile_regex
from ..acceptance import is_card, is_iban
from .context import Found, ends_escape

_ESCAPE = re.compile(rb"u[0-9A-Fa-f]{4}|[nrtbf]")
_WORD = re.compile(rb"[A-Za-z0-9]")
_REMOTE = re.compile(rb":[A-Za-z0-9~/]")
_SEPARATORS = b" -"
_CARDS = re.compile(
    rb"(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0|6|8)\d{12}|35\d{14}|6(?:011|4[4-9]|5|2)\d{10,17})"
)
_IBANS = {
    country: int(size)
    for size, countries in (
        *(("15", "NO"), ("16", "BE"), ("18", "DK FI FO GL NL SD"), ("19", "MK SI"), ("20", "AT BA EE KZ LT LU XK")),
        *(("21", "CH HR LI LV"), ("22", "BG BH CR DE GB GE IE ME RS VA"), ("23", "AE GI IL IQ OM SO TL")),
        *(("24", "AD CZ ES MD PK RO SA SE SK TN VG"), ("25", "LY PT ST"), ("26", "IS TR"), ("27", "BI DJ FR GR IT MC MR SM")),
        *(("28", "AL AZ BY CY DO GT HU LB NI PL SV"), ("29", "BR EG PS QA UA"), ("30", "JO KW MU YE"), ("31", "MT SC"), ("32", "LC"), ("33", "RU")),
    )
    for country in countries.split()
}  # fmt: skip
"""Characters of an IBAN by its country (the registry of ISO 13616)."""
_BEHIND = r"""\\*["']?\s*[:=]?\s*\[?\\*["']?"""
_NAMED_PHONE = rf"(?i:phone|mobile|telephone|tel|fax)(?:[_-]?(?i:number|no))?\.?{_BEHIND}([0-9](?:[ ()./-]{{0,2}}[0-9]){{6,14}})"
_NAMED_SSN = rf"(?i:ssn|social[ _-]?security(?:[ _-]?(?:number|no))?)\.?{_BEHIND}([0-9]{{3}}[ -]?[0-9]{{2}}[ -]?[0-9]{{4}})"


class _Kind(NamedTuple):
    pattern: str
    """What it matches, or its first group that is there."""
    check: Callable[[bytes, int, int], int]
    """Takes the text, begin and end; gives the end, or 0 for something else."""


def _email(data: bytes, start: int, end: int) -> int:
    # `git@host:path` is where a repository is.
    return 0 if _REMOTE.match(data, end) or _is_word(data, end) else end


def _phone(data: bytes, start: int, end: int) -> int:
    return end if _stands_alone(data, start, end) and data[start - 1 : start] != b"+" else 0


def _iban(data: bytes, start: int, end: int) -> int:
    wanted = _IBANS.get(data[start : start + 2].decode(), 0)
    if not wanted or (_is_word(data, start - 1) and not ends_escape(data, start)):
        return 0
    at, plain = start, bytearray()
    while len(plain) < wanted and at < len(data):
        code = data[at]
        if code in _SEPARATORS and plain and data[at - 1] not in _SEPARATORS:
            at += 1
            continue
        if not (48 <= code <= 57 or 65 <= code <= 90):
            return 0
        plain.append(code)
        at += 1
    return at if is_iban(bytes(plain)) and not _is_word(data, at) else 0


def _card(data: bytes, start: int, end: int) -> int:
    if data[start - 1 : start] in (b".", b",") and data[start - 2 : start - 1].isdigit():
        return 0  # digits of a fraction
    digits = data[start:end].translate(None, _SEPARATORS)
    alone = _stands_alone(data, start, end)
    return end if alone and _CARDS.fullmatch(digits) and is_card(digits) else 0


def _ssn(data: bytes, start: int, end: int) -> int:
    digits = data[start:end].translate(None, _SEPARATORS)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    never = area in (b"000", b"666") or area[0] == 57 or group == b"00" or serial == b"0000"
    return end if not never and _stands_alone(data, start, end) else 0


_KINDS = {
    "email": _Kind(
        r"[A-Za-z0-9][A-Za-z0-9._%+'-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24}",
        _email,
    ),
    "phone": _Kind(
        r"\+[1-9][0-9](?:[ ().\-/]{0,2}[0-9]){5,13}|\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[-. ][0-9]{4}"
        rf"|[2-9][0-9]{{2}}[-. ][2-9][0-9]{{2}}[-. ][0-9]{{4}}|{_NAMED_PHONE}",
        _phone,
    ),
    "iban": _Kind(r"[A-Z]{2}[0-9]{2}[ -]?[A-Z0-9]{4}", _iban),
    "card": _Kind(
        (
            # A longer run of digits is none, and read at once.
            r"[0-9]{20,}|[2-6][0-9]{12,18}|[2-6][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{1,4}(?:[ -][0-9]{3})?"
            r"|3[0-9]{3}[ -][0-9]{6}[ -][0-9]{4,5}"
        ),
        _card,
    ),
    "ssn": _Kind(rf"[0-9]{{3}}-[0-9]{{2}}-[0-9]{{4}}|{_NAMED_SSN}", _ssn),
}


class PersonalData:
    """Finds the kinds of personal data that a configuration names."""

    def __init__(self, kinds: Iterable[str]) -> None:
        """Take the names of the kinds."""
        self._kinds = [
            (name, compile_regex(_KINDS[name].pattern), _KINDS[name].check)
            for name in dict.fromkeys(kinds)
        ]

    def find(self, data: bytes) -> list[Found]:
        """Find all of it in a text."""
        found = list[Found]()
        for name, pattern, check in self._kinds:
            for one in pattern.finditer(data):
                start, end = one.span(one.lastindex or 0)
                start = _behind_escape(data, start)
                end = check(data, start, end) if start < end else 0
                if end:
                    found.append(Found(start, end, name, learn=True))
        return found


def _behind_escape(data: bytes, start: int) -> int:
    r"""Give where a word begins that an escape of JSON is before: `\nbob@example.org`."""
    escape = _ESCAPE.match(data, start) if data[start - 1 : start] == b"\\" else None
    return escape.end() if escape else start


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    alone = not _is_word(data, start - 1) or ends_escape(data, start)
    return alone and not _is_word(data, end)


def _is_word(data: bytes, at: int) -> bool:
    return 0 <= at < len(data) and _WORD.match(data, at) is not None
