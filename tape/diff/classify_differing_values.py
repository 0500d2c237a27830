"""Classify a value that differs between two recordings of one task: id, time, counter, random or content.

Rules:

1. `id`, `time`, `counter` and `random` are what a program makes anew each time; all else is `content`, which is
   what a task is about. When in doubt it is content: a place that is not proposed costs a person a line, one that
   is ignored wrongly hides a change.
2. Both values must be of the same kind: an id beside a time is content.
3. A value that is not whole (shortened, or missing on one side) is never more than content.
4. A number that counts by one from a small start may count requests; whether it does is in the name of its place
   (`field_name_meaning.py`).

Values are as `Difference` shows them: text in quotes where it stood in JSON.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

from .divergence_types import ABSENT, MAX_SHOWN


class ValueClass(StrEnum):
    """What sort of thing a value is."""

    ID = "id"
    TIME = "time"
    COUNTER = "counter"
    RANDOM = "random"
    CONTENT = "content"


class Seen(NamedTuple):
    """One value of each recording, and when each was recorded."""

    one: str
    other: str
    one_s: float
    """Seconds since the epoch."""
    other_s: float


_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_PREFIXED_UUID = re.compile(
    rf"(?P<prefix>[A-Za-z][A-Za-z0-9_:.-]{{0,40}}?[_:.-])(?:{_UUID.pattern})"
)
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]{8,}|[0-9A-F]{8,})")
_PREFIXED = re.compile(r"(?P<prefix>[A-Za-z][A-Za-z0-9_:.-]{0,40}?[_:-])(?P<tail>[A-Za-z0-9]{8,})")
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\d{8}T\d{6}(?:\.\d+)?Z?"
)
_HTTP_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? \d{1,2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d (?:GMT|UTC)"
)
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?")
_WORD = re.compile(r"[A-Za-z0-9]+")
_TOKEN = re.compile(r"[A-Za-z0-9+/_=.~-]{16,}")

_BASE64_OF_16 = re.compile(r"[A-Za-z0-9+/_-]{21}[AQgw](?:==)?")
"""Of 16 bytes, as nonces have; the last sign has two bits."""

_YEAR_S = 366 * 86400.0
"""How far a time may lie from when it was recorded."""
_ENTROPY_BITS = 3.2
"""A character of 16 or more that were drawn at random carries more, one of words less."""
_MIXED = 5
"""Turns between digits, small letters and capitals in base64 of 16 bytes; of 10,000 that are drawn, three have fewer."""
_LARGE = 10**15
"""Whole numbers from here on are drawn at random, or times."""
_SMALL = 100
"""The most that what counts requests begins with."""
_LONG_FRACTION = 10
"""Digits behind the point of a number that was drawn or measured."""


def classify_values(seen: Sequence[Seen]) -> tuple[ValueClass, str]:
    """Say what the values of one place are, over all pairs in the order they were asked, and of which form.

    The form is for people: `uuid`, `prefix_uuid`, `hex`, `prefix_alnum`, `ISO 8601`, `epoch s`, `epoch ms`, `HTTP date`, or empty.
    """
    found = {_classify(pair) for pair in seen}
    kinds = {kind for kind, _ in found}
    if kinds == {ValueClass.CONTENT} and _counts(seen):
        return ValueClass.COUNTER, ""
    if len(kinds) == 1:
        forms = sorted({form for _, form in found if form})
        return kinds.pop(), ", ".join(forms)
    if kinds == {ValueClass.ID, ValueClass.RANDOM}:
        return ValueClass.RANDOM, ""
    ids = [form for kind, form in map(_classify, seen) if kind is ValueClass.ID]
    if 2 * len(ids) >= len(seen) and _share_a_mould(seen):
        # Among many drawn ids some look drawn less: `req_1234567890` beside `req_9f8e7d6c5b`.
        return ValueClass.ID, ", ".join(sorted(set(ids)))
    return ValueClass.CONTENT, ""


def is_whole(shown: str) -> bool:
    """Say whether a value is shown from beginning to end."""
    return shown != ABSENT and not shown.startswith(("...", "(")) and len(shown) < MAX_SHOWN


def decode_shown(place: str, shown: str) -> str:
    """Give a value as its program meant it: in queries and forms without percent-encoding.

    A plus is a blank where that makes it a time, else as it is: not all clients write a plus of a value as `%2B`.
    """
    if not place.startswith(("query ", "form ")) or not is_whole(shown):
        return shown
    spaced = unquote_plus(shown)
    return spaced if _is_iso(spaced) or _is_http_date(spaced) else unquote(shown)


def bare(shown: str) -> str:
    """Give the text of a value that may stand in quotes."""
    if len(shown) > 1 and shown[0] == shown[-1] == '"':
        try:
            return str(json.loads(shown))
        except ValueError:
            return shown[1:-1]
    return shown


def _classify(pair: Seen) -> tuple[ValueClass, str]:
    if not is_whole(pair.one) or not is_whole(pair.other):
        return ValueClass.CONTENT, ""
    one, other = bare(pair.one), bare(pair.other)
    for kind, form, test in (
        (ValueClass.ID, "uuid", _is_uuid),
        (ValueClass.TIME, "ISO 8601", _is_iso),
        (ValueClass.TIME, "HTTP date", _is_http_date),
    ):
        if test(one) and test(other):
            return kind, form
    for form, unit in (("epoch s", 1.0), ("epoch ms", 1e3), ("epoch us", 1e6), ("epoch ns", 1e9)):
        if _is_epoch(one, unit, pair.one_s) and _is_epoch(other, unit, pair.other_s):
            return ValueClass.TIME, form
    if _NUMBER.fullmatch(one) and _NUMBER.fullmatch(other):
        drawn = _is_drawn(one) and _is_drawn(other)
        return (ValueClass.RANDOM if drawn else ValueClass.CONTENT), ""
    if _is_hex(one) and _is_hex(other) and len(one) == len(other):
        return ValueClass.ID, "hex"
    if _share_a_prefix_of_uuids(one, other):
        return ValueClass.ID, "prefix_uuid"
    if _share_a_prefix(one, other):
        return ValueClass.ID, "prefix_alnum"
    if _is_random(one) and _is_random(other):
        return ValueClass.RANDOM, ""
    return ValueClass.CONTENT, ""


def _is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text.removeprefix("urn:uuid:").strip("{}")) is not None


def _is_iso(text: str) -> bool:
    return _ISO.fullmatch(text) is not None


def _is_http_date(text: str) -> bool:
    return _HTTP_DATE.fullmatch(text) is not None


def _is_epoch(text: str, unit: float, recorded_s: float) -> bool:
    if not _NUMBER.fullmatch(text):
        return False
    return abs(float(text) / unit - recorded_s) < _YEAR_S


def _is_drawn(text: str) -> bool:
    whole, _, fraction = text.partition(".")
    return len(fraction) >= _LONG_FRACTION or (not fraction and abs(int(whole)) >= _LARGE)


def _is_hex(text: str) -> bool:
    # Eight letters could be a word; eight digits an amount.
    return _HEX.fullmatch(text) is not None and _turns(text.removeprefix("0x")) >= 1


def _turns(text: str) -> int:
    """Count where digits, small letters and capitals meet: often where characters are drawn, seldom in names."""
    kinds = [0 if char.isdigit() else 1 if char.islower() else 2 for char in text]
    return sum(one != other for one, other in pairwise(kinds))


def _share_a_prefix_of_uuids(one: str, other: str) -> bool:
    first, second = _PREFIXED_UUID.fullmatch(one), _PREFIXED_UUID.fullmatch(other)
    return first is not None and second is not None and first["prefix"] == second["prefix"]


def _share_a_prefix(one: str, other: str) -> bool:
    first, second = _PREFIXED.fullmatch(one), _PREFIXED.fullmatch(other)
    if first is None or second is None or first["prefix"] != second["prefix"]:
        return False
    return _looks_made(first["tail"]) and _looks_made(second["tail"])


def _share_a_mould(seen: Sequence[Seen]) -> bool:
    """Say whether all values have one prefix and one length, or are hexadecimal of one length."""
    texts = [bare(text) for pair in seen for text in (pair.one, pair.other)]
    found = [_PREFIXED.fullmatch(text) for text in texts]
    moulds = {
        (match["prefix"] if match else "", len(text))
        for text, match in zip(texts, found, strict=True)
    }
    return len(moulds) == 1 and (all(found) or all(_HEX.fullmatch(text) for text in texts))


def _looks_made(tail: str) -> bool:
    return _turns(tail) >= 2


def _is_random(text: str) -> bool:
    # The name of a model is long and mixed too, but made of short words.
    run = max(_WORD.findall(text), key=len, default="")
    if _BASE64_OF_16.fullmatch(text) is not None and _turns("".join(_WORD.findall(text))) >= _MIXED:
        return True
    return (
        _TOKEN.fullmatch(text) is not None
        and len(run) >= 16
        and _turns(run) >= 3
        and _entropy(run) >= _ENTROPY_BITS
    )


def _entropy(text: str) -> float:
    """Give the bits that a character carries, by how often each occurs."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())


def _counts(seen: Sequence[Seen]) -> bool:
    """Say whether whole numbers count by one in both recordings, from a small start; two are the fewest that can."""
    if len(seen) < 2:
        return False
    for values in ([bare(pair.one) for pair in seen], [bare(pair.other) for pair in seen]):
        if not all(value.isascii() and value.isdigit() and len(value) < 19 for value in values):
            return False
        numbers = [int(value) for value in values]
        if numbers[0] > _SMALL or any(after != before + 1 for before, after in pairwise(numbers)):
            return False
    return True
