"""Pseudonyms: placeholders of personal data, which are valid where the data are.

A pseudonym depends on what the data are and not on how they are written: `4111 1111 1111 1111` and `4111111111111111` get the same
digits, `Bob@Example.org` and `bob@example.org` the same letters. It is written as they are, and as long.
"""

import re
from collections.abc import Callable
from hashlib import shake_256

from ..acceptance import iban_rest, is_card, is_iban, luhn_rest

_EMAIL = re.compile(rb"[A-Za-z0-9._%+'-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_NUMBER = re.compile(rb"\+?[0-9(][0-9 ().\-/]*[0-9]")
_IBAN = re.compile(rb"[A-Z]{2}[0-9]{2}[A-Z0-9 -]*[A-Z0-9]")
_BEGIN = frozenset(bytes([code]) for code in b"+(0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""How numbers of all sorts begin."""
_BETWEEN = bytes(frozenset(range(128)) - frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
_RESERVED = b".test"
"""A top-level domain in which nobody has an address (RFC 2606)."""
_NOWHERE = b".zz"
"""One that ISO 3166 leaves to its users, so that no country will ever have it."""
_LETTERS, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789"
_SSN = re.compile(rb"[0-9]{3}-[0-9]{2}-[0-9]{4}")
_NATIONAL = 10
"""Digits of a number of North America."""


def normal_form(value: bytes) -> bytes | None:
    """Give what a value is, however it is written; None where it is no personal data."""
    if b"@" in value and _EMAIL.fullmatch(value):
        return value.lower()
    if value[:1] not in _BEGIN:
        return None
    plain = value.translate(None, _BETWEEN)
    if _NUMBER.fullmatch(value) and 7 <= len(plain) <= 19:
        return b"+" * value.startswith(b"+") + plain
    return plain if _IBAN.fullmatch(value) and is_iban(plain) else None


def make_pseudonym(value: bytes, normal: bytes, seed: bytes) -> bytes:
    """Make the pseudonym of a value.

    normal: its normal form.
    seed: what it depends on.
    """
    drawn = iter(shake_256(seed).digest(len(normal) + 8))

    def draw(choice: bytes) -> int:
        return choice[next(drawn) * len(choice) >> 8]

    if b"@" in normal:
        made = _email(normal, draw)
        pairs = zip(value, made, strict=True)
        return bytes([new - 32 if 65 <= old <= 90 and new >= 97 else new for old, new in pairs])
    if normal[:1].isalpha():
        made = _iban(normal, draw)
    elif is_card(normal):
        made = normal[:2] + bytes([draw(_DIGITS) for _ in normal[3:]])
        made += b"%d" % (-luhn_rest(made + b"0") % 10)
    elif _SSN.fullmatch(value):
        made = b"9" + bytes([draw(_DIGITS) for _ in normal[1:]])  # no number begins with it
    else:
        made = _phone(normal, draw)
    return _written(value, made)


def _email(normal: bytes, draw: Callable[[bytes], int]) -> bytes:
    local, _, domain = normal.rpartition(b"@")
    name = bytes([_other(code, draw) for code in local])
    # A domain of few letters has one of two letters that no country has.
    last = _RESERVED if len(domain) > len(_RESERVED) else _NOWHERE
    host = bytes([draw(_LETTERS) for _ in range(len(domain) - len(last))])
    return name + b"@" + host + last


def _other(code: int, draw: Callable[[bytes], int]) -> int:
    for choice in (_LETTERS, _DIGITS):
        if code in choice:
            return draw(choice.replace(bytes([code]), b""))
    return code


def _iban(normal: bytes, draw: Callable[[bytes], int]) -> bytes:
    rest = bytes([draw(_DIGITS if code in _DIGITS else _LETTERS.upper()) for code in normal[4:]])
    check = 98 - iban_rest(normal[:2] + b"00" + rest)
    return normal[:2] + b"%02d" % check + rest


def _phone(normal: bytes, draw: Callable[[bytes], int]) -> bytes:
    """Keep a country, and have what a number of North America needs: no group begins with 0 or 1."""
    digits = normal.lstrip(b"+")
    kept = 2 if normal.startswith(b"+") else 0
    made = bytearray(digits[:kept]) + bytes([draw(_DIGITS) for _ in digits[kept:]])
    national = len(digits) - _NATIONAL
    if (national == 0 and not kept) or digits.startswith(b"1"):
        for at in (national, national + 3):
            if at >= kept:
                made[at] = draw(b"23456789")
    return bytes(made)


def _written(value: bytes, made: bytes) -> bytes:
    """Write letters and digits where those of `value` are, what separates them staying."""
    codes = iter(made)
    return bytes([code if code in _BETWEEN else next(codes) for code in value])
