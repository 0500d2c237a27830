"""Sorts of personal data in a text: what has a form of its own, checked as far as the form goes.

Email addresses, telephone numbers in international form (ITU-T E.164), payment cards (ISO/IEC 7812, with the check digit), bank accounts
(IBAN, ISO 13616, with its check digits) and US social security numbers. Names and addresses have no form, and are not found. Nothing is
kept but how many there were.
"""

import re
from collections import Counter
from collections.abc import Callable

_EMAIL = re.compile(
    rb"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}(?![\w-])"
)
_PHONE = re.compile(rb"(?<![\w+])\+[1-9]\d{0,3}(?:[ ().-]{0,2}\d){6,12}(?!\d)")
_CARD = re.compile(rb"(?<![\w.-])[3-6]\d{3}(?:[ -]?\d){8,15}(?![\w-])")
_IBAN = re.compile(
    rb"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)
_SSN = re.compile(rb"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-])")


def _digits(text: bytes) -> list[int]:
    return [byte - 48 for byte in text if 48 <= byte <= 57]


def _is_card(text: bytes) -> bool:
    digits = _digits(text)
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: bytes) -> bool:
    short = text.replace(b" ", b"").decode()
    if not 15 <= len(short) <= 34:
        return False
    number = "".join(str(int(char, 36)) for char in short[4:] + short[:4])
    return int(number) % 97 == 1


def _is_phone(text: bytes) -> bool:
    return 8 <= len(_digits(text)) <= 15


_KINDS: tuple[tuple[str, re.Pattern[bytes], Callable[[bytes], bool], bytes], ...] = (
    ("email", _EMAIL, lambda _: True, b"@"),
    ("phone", _PHONE, _is_phone, b"+"),
    ("card", _CARD, _is_card, b""),
    ("iban", _IBAN, _is_iban, b""),
    ("ssn", _SSN, lambda _: True, b"-"),
)
"""Each with what checks it, and bytes without which there is none."""


def count_personal_data(text: bytes) -> Counter[str]:
    """Count the sorts of personal data in a text."""
    found: Counter[str] = Counter()
    for kind, pattern, check, mark in _KINDS:
        if mark and mark not in text:
            continue
        count = sum(check(one[0]) for one in pattern.finditer(text))
        if count:
            found[kind] = count
    return found
