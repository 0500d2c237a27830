r"""Sorts of personal data in a text: what has a form of its own, checked as far as the form goes.

Email addresses, telephone numbers in international form (ITU-T E.164), payment cards (ISO/IEC 7812, with the check digit), bank accounts
(IBAN, ISO 13616, with its check digits) and US social security numbers. Names and addresses have no form, and are not found. Nothing is
kept but how many there were: a value that a text has twice counts once. Clients write an `@` as `%40` or `\u0040`, so percent-encoding and
escapes of JSON are undone first.
"""

import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from ...tape.records.json_escapes import unescape

_DEPTH = 3
"""Ways of writing inside each other that are undone."""
_SIGN_OF_PHONE = re.compile(rb"(?<==)\+(?=[1-9])")
"""A sign that a client should have encoded: it is no blank there."""
_EMAIL = re.compile(
    rb"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}(?![\w-])"
)
_PHONE = re.compile(rb"(?<![\w+])\+[1-9]\d{0,3}(?:[ ().-]{0,2}\d){6,12}(?!\d)")
_CARD = re.compile(rb"(?<![\w.+-])[3-6]\d{3}(?:[ -]?\d){8,15}(?![\w-])")
_IBAN = re.compile(
    rb"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)
_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 "
    "GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 "
    "MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 "
    "TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
"""Characters of an IBAN by country. Source: SWIFT, "IBAN Registry"."""
_LIKE_IBAN = re.compile(
    "|".join(
        rf"(?<![A-Za-z0-9]){one[:2]}\d{{2}}(?: ?[A-Z0-9]){{{int(one[2:]) - 4}}}(?![A-Za-z0-9])"
        for one in _LENGTHS.split()
    ).encode()
)
"""What is written as an IBAN, whatever its check digits: the digits in it are of no card."""
_LONGEST = 66
"""Characters of the longest IBAN, with a space between any two."""
_SIGNS = re.compile(rb"[ ().-]")
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


def as_said(text: bytes, *, is_form: bool = False) -> bytes:
    """Give a text without percent-encoding and without escapes of JSON, also where these are inside each other.

    is_form: whether it is a form or a query, in which a plus is a blank.
    """
    if is_form and b"+" in text:
        text = _SIGN_OF_PHONE.sub(b"%2B", text).replace(b"+", b" ")
    for _ in range(_DEPTH):
        before = text
        if b"%" in text:
            text = unquote_to_bytes(text)
        if b"\\" in text:
            text = unescape(text.decode("utf-8", "replace")).encode("utf-8", "surrogatepass")
        if text == before:
            break
    return text


def count_personal_data(text: bytes) -> Counter[str]:
    """Count the sorts of personal data in a text."""
    return Counter(kind for kind, _ in find_personal_data(text))


def find_personal_data(text: bytes) -> set[tuple[str, bytes]]:
    """Find the personal data in a text: each sort and value once, however it is grouped."""
    found = set[tuple[str, bytes]]()
    for kind, pattern, check, mark in _KINDS:
        if mark and mark not in text:
            continue
        for one in pattern.finditer(text):
            if check(one[0]) and not (kind == "card" and _is_in_iban(text, one.start())):
                value = one[0].lower() if kind == "email" else _SIGNS.sub(b"", one[0])
                found.add((kind, value))
    return found


def _is_in_iban(text: bytes, at: int) -> bool:
    """Say whether a place is in what is written as an IBAN."""
    begin = max(0, at - _LONGEST)
    spans = (one.span() for one in _LIKE_IBAN.finditer(text, begin, at + _LONGEST))
    return any(first <= at < last for first, last in spans)
