"""Pseudonyms: placeholders of personal data, which are valid where the data are.

A pseudonym depends on what the data are and not on how they are written: `4111 1111 1111 1111` and `4111111111111111` get the same
digits, `Bob@Example.org` and `bob@example.org` the same letters. It is written as they are, and as long.
"""

import re
from collections.abc import Callable
from hashlib import shake_256

from ..looks_like_secret import IBAN_SIZES, iban_rest, is_card, is_iban, luhn_rest

_EMAIL = re.compile(
    "[A-Za-z0-9._%+'\xc0-\u052f-]+@[A-Za-z0-9\xc0-\u052f-]+(?:\\.[A-Za-z0-9\xc0-\u052f-]+)*\\.[A-Za-z0-9-]+"
)
_WIDE = rb"|\xc2\xa0|\xe2\x80[\xaf\x87\x89\x91\x93]|[\x07\t\x11\x13\xa0]"
"""Blanks that do not break and dashes, in UTF-8 and as the last byte of an escape."""
_NUMBER = re.compile(rb"\+?[0-9(](?:[0-9 ().\-/]" + _WIDE + rb")*[0-9]")
_IBAN = re.compile(rb"[A-Z]{2}[0-9]{2}(?:[A-Z0-9 /-]" + _WIDE + rb")*[A-Z0-9]")
_ALNUM = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BEGIN = frozenset(bytes([code]) for code in b"+(" + _ALNUM)
"""How numbers of all sorts begin."""
_LONGEST = 256
_BETWEEN = bytes(frozenset(range(256)) - frozenset(_ALNUM))
_RESERVED = b".test"
"""A top-level domain in which nobody has an address (RFC 2606)."""
_NOWHERE = b".zz"
"""One that ISO 3166 leaves to its users, so that no country will ever have it."""
_LETTERS, _DIGITS = b"abcdefghijklmnopqrstuvwxyz", b"0123456789"
_BEYOND = bytes(range(0xE0, 0xF7))
"""Letters of Latin that are none of ASCII: two bytes in UTF-8, as each letter that `_EMAIL` takes."""
_SSN = re.compile(rb"[0-9]{3}-[0-9]{2}-[0-9]{4}")
_NATIONAL = 10
"""Digits of a number of North America."""


def normal_form(value: bytes) -> bytes | None:
    """Give what a value is, however it is written; None where it is no personal data."""
    if b"@" in value:
        text = _read(value)
        if _EMAIL.fullmatch(text):
            lower = text.lower()
            return (lower if len(lower) == len(text) else text).encode()
    if value[:1] not in _BEGIN or len(value) > _LONGEST:
        return None
    plain = value.translate(None, _BETWEEN)
    if _NUMBER.fullmatch(value) and 7 <= len(plain) <= 19:
        return b"+" * value.startswith(b"+") + plain
    upper = value.upper()
    if not _IBAN.fullmatch(upper) or not is_iban(plain.upper()):
        return None
    if value != upper and IBAN_SIZES.get(plain[:2].upper().decode()) != len(plain):
        return None
    return plain.upper()


def _read(value: bytes) -> str:
    """Read a text; of one that is not in UTF-8 each byte is a letter, as an escape of JSON leaves it."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def read_address(value: bytes) -> bytes:
    """Give an address with letters beyond ASCII as UTF-8 has it, however it is written; what is none as it is."""
    text = _read(value)
    return text.encode() if b"@" in value and _EMAIL.fullmatch(text) else value


def make_pseudonym(value: bytes, normal: bytes, seed: bytes) -> bytes:
    """Make the pseudonym of a value.

    normal: its normal form.
    seed: what it depends on.
    """
    drawn = iter(shake_256(seed).digest(len(normal) + 8))

    def draw(choice: bytes) -> int:
        return choice[next(drawn) * len(choice) >> 8]

    if b"@" in normal:
        text = _read(value)
        codes = _email(normal.decode(), draw)
        written = "".join(
            chr(new).upper() if old.isupper() else chr(new)
            for old, new in zip(text, codes, strict=True)
        )
        return written.encode() if text.encode() == value else written.encode("latin-1")
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


def _email(normal: str, draw: Callable[[bytes], int]) -> list[int]:
    local, _, domain = normal.rpartition("@")
    name = [_other(ord(char), draw) for char in local]
    # A domain of few letters has one of two letters that no country has.
    last = _RESERVED if len(domain) > len(_RESERVED) else _NOWHERE
    if not domain[-len(last) :].isascii():
        last = _NOWHERE
    host = [draw(_LETTERS if char.isascii() else _BEYOND) for char in domain[: -len(last)]]
    return [*name, ord("@"), *host, *last]


def _other(code: int, draw: Callable[[bytes], int]) -> int:
    if code >= 0x80:
        return draw(_BEYOND)
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
    if value.upper() != value:
        codes = iter(made.lower())
    return bytes([code if code in _BETWEEN else next(codes) for code in value])
