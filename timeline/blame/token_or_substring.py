"""How a value is in a longer text: alone, as a token of its own, or as a piece of a longer value, which others may have by chance.

1. A piece has letters or digits behind a sign that joins: a hyphen, a point, a colon, an `@`. So is a number in an id, in an address,
   behind the colon of a port, in a date or in a phone number. A URL or path is a piece of a longer one.
2. A date or a time of day out of an ISO time stamp is a piece of it, though a letter joins it: `T` between them, `Z` at the end.
3. A number stands alone between blanks, brackets, quotes and the like. Digits that go on behind a blank are a phone number, or a
   thousand. A short number between slashes is a piece, too: these are dates, and counts in paths.
4. What is inside of a UUID has nothing to do with it, and is told apart: nobody takes four digits out of the midst of one.
"""

import re
from enum import IntEnum

_LONG = 6
"""Digits from which on a number between slashes is an id."""
_DASHES = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
"""Hyphens, and signs of a negative number."""
_JOINTS = frozenset(f"{_DASHES}.:@+~")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_LABEL = re.compile(r"(?:^|[^A-Za-z0-9_.:@+~/-])[A-Za-z_]+:$")
_DIGITS_BEFORE = re.compile(r"(?:[0-9]\)?[ \u00a0\u202f\u2009/]\(?|[0-9]\) ?|\+)$")
_DIGITS_BEHIND = re.compile(r"(?:[ \u00a0\u202f\u2009/]\(?|\) ?)[0-9]")
_STAMP = re.compile(
    r"(?<![0-9A-Za-z_])(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8})[Tt]"
    r"(?P<time>(?P<minute>[0-9]{2}:[0-9]{2})(?::[0-9]{2})?|[0-9]{6})(?P<fraction>[.,][0-9]{1,9})?"
    r"(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?(?![0-9A-Za-z_])"
)
_AROUND = 40
"""Characters around a value that are looked at."""


class Standing(IntEnum):
    """How a value is in a text; the higher, the more it says."""

    NOWHERE = 0
    """Not between the ends of words, or as digits of a number."""
    FOREIGN = 1
    """Inside of a UUID."""
    PIECE = 2
    """Inside of a longer value."""
    ALONE = 3


def find_standing(text: str, other: str) -> Standing:
    """Say how a text is in another one; of several places the best."""
    best = Standing.NOWHERE
    if not text:
        return best
    at = other.find(text)
    while at >= 0:
        best = max(best, judge_place(other, at, at + len(text)))
        if best is Standing.ALONE:
            break
        at = other.find(text, at + 1)
    return best


def judge_place(other: str, at: int, end: int) -> Standing:
    """Say how the characters from `at` to `end` are in a text."""
    before, behind = other[max(0, at - _AROUND) : at], other[end : end + _AROUND]
    first, last = other[at], other[end - 1]
    if first.isdigit() and _in_stamp(other, at, end):
        return Standing.PIECE
    if (_in_word(before[-1:]) and _in_word(first)) or (_in_word(behind[:1]) and _in_word(last)):
        return Standing.NOWHERE
    text = other[at:end]
    is_number = not any(map(str.isalpha, text))
    if is_number and _in_number(before, text, behind):
        return Standing.NOWHERE
    if "-" in before + behind and _in_uuid(other, at, end):
        return Standing.FOREIGN
    if _goes_on(before, behind, text) or (is_number and _digits_go_on(before, behind, text)):
        return Standing.PIECE
    return Standing.ALONE


def _goes_on(before: str, behind: str, text: str) -> bool:
    """Say whether letters or digits are joined to a text."""
    joined = _in_word(text[0]) and before[-1:] in _JOINTS and _in_word(before[-2:-1])
    if text[0] in _JOINTS and _in_word(before[-1:]) and _in_word(text[1:2]):
        return True  # what seems to be a sign is a hyphen
    if joined and (text.isdigit() or _LABEL.search(before) is None):
        return True
    if _in_word(text[-1]) and behind[:1] in _JOINTS and _in_word(behind[1:2]):
        return True
    if "/" not in text:
        # `7/2` is another number than 7; between slashes it is a step of a path.
        joins = behind[:1] in ("/", "#") and before[-1:] not in ("/", "#", "=")
        return joins and _in_word(text[-1]) and _in_word(behind[1:2])
    # A URL, or a path: another one where it goes on.
    return behind[:1] in ("/", "?", "#", "&", "=") and _in_word(behind[1:2])


def _digits_go_on(before: str, behind: str, text: str) -> bool:
    """Say whether a number is one of a date, a phone number, an address or a row."""
    if not text[0].isdigit():
        return False
    if before[-1:] == "." or (before and before[-1] in _DASHES):
        return True  # a fraction, or a negative number
    if before[-1:] == "," and before[-2:-1].isdigit():
        return True
    if behind[:1] == "," and behind[1:2].isalnum():
        return True
    if _DIGITS_BEFORE.search(before) or _DIGITS_BEHIND.match(behind):
        return True
    in_path = before.endswith("/") or (behind.startswith("/") and behind[1:2].isalnum())
    return in_path and sum(map(str.isdigit, text)) < _LONG


def _in_number(before: str, text: str, behind: str) -> bool:
    """Say whether a number is but digits of another: of its fraction, its thousands or what is before these."""
    ahead = text[0].isdigit() and before[-2:-1].isdigit()
    if ahead and (before[-1:] == "." or (before[-1:] == "," and _digits(text) == 3)):
        return True
    if text[-1].isdigit() and behind[1:2].isdigit():
        return behind[:1] == "." or (behind[:1] == "," and _digits(behind[1:]) == 3)
    return False


def _digits(text: str) -> int:
    """Count the digits at the beginning."""
    return next((at for at, char in enumerate(text) if not char.isdigit()), len(text))


def _in_uuid(other: str, at: int, end: int) -> bool:
    start = max(0, at - _AROUND)
    at, end = at - start, end - start
    return any(
        found.start() <= at and end <= found.end() and (at, end) != found.span()
        for found in _UUID.finditer(other[start : start + end + _AROUND])
    )


def _in_stamp(other: str, at: int, end: int) -> bool:
    """Say whether the characters are a date or a time of day out of an ISO time stamp, but not all of it."""
    start = max(0, at - _AROUND)
    around = other[start : end + _AROUND]
    at, end = at - start, end - start
    if "T" not in around and "t" not in around:
        return False
    for found in _STAMP.finditer(around):
        begins = (found.start("day"), found.start("time"))
        ends = [found.end(part) for part in ("day", "minute", "time", "fraction")]
        if at in begins and (end in ends or end == found.end()):
            return (at, end) != found.span()
    return False


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"
