"""Find personal data, where a configuration asks for it: `redact: {pii: [email, phone, iban, card, ssn]}`.

Each kind is one pattern of RE2, which takes time in proportion to the text, and a check of what it found.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ....config.parse_values import compile_regex
from ..looks_like_secret import IBAN_SIZES, is_card, is_iban
from .searched_text import Found, ends_escape

_ESCAPE = re.compile(rb"u[0-9A-Fa-f]{4}|[nrtbf]")
_WORD = re.compile(rb"[A-Za-z0-9]")
_REMOTE = re.compile(rb":[A-Za-z0-9~/]")
_WIDE = (
    r"[\x{a0}\x{202f}\x{2007}\x{2009}\x{2011}\x{2013}]|\\+u(?:00[aA]0|202[fF]|2007|2009|2011|2013)"
)
"""Blanks that do not break, and dashes, as they are and as an escape of JSON."""
_BETWEEN = rf"(?:[ ().\-/]|{_WIDE})"
_BLANK = rf"(?: |{_WIDE})"
_BLANK_OR_DASH = rf"(?:[ -]|{_WIDE})"
_BLANK_DASH_OR_DOT = rf"(?:[-. ]|{_WIDE})"
_SEPARATOR = re.compile(
    rb"[ -]|\xc2\xa0|\xe2\x80[\xaf\x87\x89\x91\x93]|\\+u(?:00[aA]0|202[fF]|2007|2009|2011|2013)"
)
_LETTER = r"\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{24f}\x{370}-\x{373}\x{386}-\x{481}\x{48a}-\x{52f}"
"""Letters beyond ASCII of scripts that have blanks between words: Latin, Greek, Cyrillic."""
_ESCAPED_LETTER = (
    r"\\+u(?:00[c-fC-F]|01[0-9a-fA-F]|02[0-4]|03[89a-fA-F]|04[0-9a-fA-F]|05[0-2])[0-9a-fA-F]"
)
_LOCAL = rf"(?:[A-Za-z0-9._%+'{_LETTER}-]|{_ESCAPED_LETTER})"
_LABEL = rf"(?:[A-Za-z0-9{_LETTER}-]|{_ESCAPED_LETTER}){{1,63}}"
_CARDS = re.compile(
    rb"(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0|6|8)\d{12}|35\d{14}|6(?:011|4[4-9]|5|2)\d{10,17})"
)
_BEHIND = r"""\\*["']?\s*[:=]?\s*\[?\\*["']?"""
_NAMED_PHONE = rf"(?i:phone|mobile|telephone|tel|fax)(?:[_-]?(?i:number|no))?\.?{_BEHIND}([0-9](?:{_BETWEEN}{{0,2}}[0-9]){{6,14}})"
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
    wanted = IBAN_SIZES.get(data[start : start + 2].decode().upper(), 0)
    if not wanted or (_is_word(data, start - 1) and not ends_escape(data, start)):
        return 0
    at, plain, separated = start, bytearray(), True
    while len(plain) < wanted and at < len(data):
        between = None if separated else _SEPARATOR.match(data, at)
        if between is not None:
            at, separated = between.end(), True
            continue
        if not _WORD.match(data, at):
            return 0
        plain.append(data[at])
        at, separated = at + 1, False
    # In one case: a name in both is none.
    same_case = not (plain.upper() != plain and plain.lower() != plain)
    return at if same_case and is_iban(bytes(plain.upper())) and not _is_word(data, at) else 0


def _card(data: bytes, start: int, end: int) -> int:
    if data[start - 1 : start] in (b".", b",") and data[start - 2 : start - 1].isdigit():
        return 0  # digits of a fraction
    digits = _SEPARATOR.sub(b"", data[start:end])
    if b"." in digits and data[end : end + 1] == b"." and data[end + 1 : end + 2].isdigit():
        return 0  # a part of something longer with dots
    digits = digits.replace(b".", b"")
    alone = _stands_alone(data, start, end)
    return end if alone and _CARDS.fullmatch(digits) and is_card(digits) else 0


def _ssn(data: bytes, start: int, end: int) -> int:
    digits = _SEPARATOR.sub(b"", data[start:end])
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    never = area in (b"000", b"666") or area[0] == 57 or group == b"00" or serial == b"0000"
    return end if not never and _stands_alone(data, start, end) else 0


_KINDS = {
    "email": _Kind(
        rf"(?:[A-Za-z0-9{_LETTER}]|{_ESCAPED_LETTER}){_LOCAL}{{0,63}}@{_LABEL}(?:\.{_LABEL}){{0,6}}\.[A-Za-z]{{2,24}}",
        _email,
    ),
    "phone": _Kind(
        # ` / ` is behind a prefix, and before a number that is still to come.
        rf"\+[1-9][0-9](?:{_BETWEEN}{{0,2}}[0-9]){{1,5}}{_BLANK}/{_BLANK}[0-9]{{3}}(?:{_BETWEEN}{{0,2}}[0-9]){{1,8}}"
        rf"|\+[1-9][0-9](?:{_BETWEEN}{{0,2}}[0-9]){{5,13}}"
        rf"|\([2-9][0-9]{{2}}\){_BLANK}?[2-9][0-9]{{2}}{_BLANK_DASH_OR_DOT}[0-9]{{4}}"
        rf"|[2-9][0-9]{{2}}{_BLANK_DASH_OR_DOT}[2-9][0-9]{{2}}{_BLANK_DASH_OR_DOT}[0-9]{{4}}|{_NAMED_PHONE}",
        _phone,
    ),
    "iban": _Kind(rf"[A-Za-z]{{2}}[0-9]{{2}}{_BLANK_OR_DASH}?[A-Za-z0-9]{{4}}", _iban),
    "card": _Kind(
        (
            # A longer run of digits is none, and read at once.
            r"[0-9]{20,}|[2-6][0-9]{12,18}"
            rf"|[2-6][0-9]{{3}}(?:{_BLANK_OR_DASH}[0-9]{{4}}){{2}}{_BLANK_OR_DASH}[0-9]{{1,4}}(?:{_BLANK_OR_DASH}[0-9]{{3}})?"
            rf"|3[0-9]{{3}}{_BLANK_OR_DASH}[0-9]{{6}}{_BLANK_OR_DASH}[0-9]{{4,5}}"
            r"|[2-6][0-9]{3}\.[0-9]{4}\.[0-9]{4}\.[0-9]{1,4}|3[0-9]{3}\.[0-9]{6}\.[0-9]{4,5}"
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
