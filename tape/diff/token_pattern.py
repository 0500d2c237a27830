r"""Find the tokens in which texts differ that are otherwise equal, and the patterns that leave them out.

Two texts are cut into words and what stands between them. Where all that stands between is equal, the words that differ are tokens if
in every pair they have the same form: a UUID, digits, hexadecimal digits, a number, a day or time, or a long mixed word. The pattern of a token has the
text beside it, so that it finds nothing elsewhere. What differs in another way is content, and nothing is proposed for it.

A duration that its text names as one (`Wall time 0.2 seconds`) may be the same in both by chance; `find_durations` proposes it, too.
"""

import re
from collections.abc import Iterable, Sequence

from ...config.profiles.overbroad_patterns import OWN_LETTERS, check_narrow
from ..canonical.regex_masks import Pattern, what_is_left

_DAY, _MINUTE, _SECOND = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[0-9]{2}:[0-9]{2}", ":[0-9]{2}"
_FRACTION, _ZONE = r"\.[0-9]{%d}", "(?:Z|[+-][0-9]{2}:[0-9]{2})"
_TIME_OF_DAY = re.compile(rf"{_DAY}([T ]){_MINUTE}({_SECOND})?(\.[0-9]+)?({_ZONE})?")
"""ISO 8601, to the minute at least."""
_PIECES = re.compile(
    rf"{_DAY}[T ]{_MINUTE}(?:{_SECOND}(?:\.[0-9]+)?)?{_ZONE}?|"
    r"[0-9]+\.[0-9]+|[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*|[^0-9A-Za-z]+",
    re.DOTALL,
)
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_HEXADECIMAL = re.compile("[0-9a-f]+").fullmatch
_CAPITALS = re.compile("(?=.*[0-9])(?=.*[A-F])[0-9A-F]+").fullmatch
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_SECONDS = r"1[0-9]{9}\.[0-9]+"
"""Since the epoch."""
_LONG = 16
"""Characters from which on a mixed word is drawn and not written."""
_HEX = 5
_CAPITAL_HEX = 4
"""The same of digits that people seldom write, with capitals."""
_TIME = 10
"""Digits from which on a number says when."""
_BESIDE = 2
"""Pieces of text before a token that its pattern has."""
_OF_AN_ID = 4
"""The same before a UUID that is called the id of something: what of is part of its name."""
_ID = re.compile("id|uuid", re.IGNORECASE)

_DURATION = re.compile(
    r"\b((?:wall|elapsed|total)[ _]time|elapsed|duration|took)([^0-9A-Za-z\n]{1,3})([0-9]+(?:\.[0-9]+)?)"
    r"( ?(?:s|ms|sec|secs|seconds|milliseconds))\b",
    re.IGNORECASE,
)

Texts = Iterable[tuple[str, str]]
"""What stood in one place in two runs."""


def find_token_patterns(pairs: Texts) -> tuple[str, ...]:
    """Give patterns with one group each whose groups are all in which pairs of texts differ; empty where more differs."""
    different = [pair for pair in pairs if pair[0] != pair[1]]
    values: dict[tuple[tuple[str, str], str], list[str]] = {}
    for one, other in different:
        olds, news = _PIECES.findall(one), _PIECES.findall(other)
        if len(olds) != len(news):
            return ()
        for at, (old, new) in enumerate(zip(olds, news, strict=True)):
            if old != new:
                form = _form((old, new))
                if form is None:
                    return ()
                values.setdefault((_beside(olds, news, at, form), form), []).extend((old, new))
    made = [_pattern(beside, words) for (beside, _), words in values.items()]
    found = tuple(dict.fromkeys(one for one in made if one is not None))
    if len(found) < len(set(made)) or not _are_enough(found, different):
        return ()
    return found


def find_durations(texts: Iterable[str], found: Sequence[str] = ()) -> tuple[str, ...]:
    """Give patterns for the durations that texts name as such.

    found: patterns that there are already; what one of them finds needs no other.
    """
    known = tuple(map(Pattern, found))
    made: dict[str, None] = {}
    for text in texts:
        for one in _DURATION.finditer("".join(what_is_left(text, known))):
            before, behind = (re.escape(part) for part in (one[1] + one[2], one[4]))
            made[f"{before}({_NUMBER}){behind}"] = None
    return tuple(made)


def _beside(olds: Sequence[str], news: Sequence[str], at: int, form: str) -> tuple[str, str]:
    """Give the pattern of what stands before and behind a piece, as far as it is the same in both."""
    before = ""
    least = OWN_LETTERS if form == _NUMBER else 0
    most = _OF_AN_ID if form == _UUID and _is_named_id(olds, at) else _BESIDE
    for place in range(at - 1, -1, -1):
        enough = place < at - most and sum(map(str.isalpha, "".join(olds[place + 1 : at]))) >= least
        if olds[place] != news[place] or enough:
            break
        before = re.escape(olds[place].rpartition("\n")[2]) + before
        if "\n" in olds[place]:
            before = r"\n" + before
            break
    if at == 0:
        before = "^"
    if at == len(olds) - 1:
        return before, "$"
    behind = olds[at + 1]
    return before, re.escape(behind[:1]) if behind[:1] != "\n" else r"\n"


def _is_named_id(pieces: Sequence[str], at: int) -> bool:
    """Say whether the words before a piece are `session id`, `turn_id` or the like."""
    if at < _OF_AN_ID:
        return False
    of, between, what, _ = pieces[at - _OF_AN_ID : at]
    return of.isalpha() and between in (" ", "_", "-") and _ID.fullmatch(what) is not None


def _pattern(beside: tuple[str, str], words: Sequence[str]) -> str | None:
    form = _form(words)
    if form is None:
        return None
    # A short number, or a day, is no token by itself: only the words beside say what it is.
    if form in (_NUMBER, _DAY) and not re.search("[A-Za-z]{2}", beside[0]):
        return None
    text = f"{beside[0]}({form}){beside[1]}"
    try:
        return check_narrow(text)
    except ValueError:
        return None


def _form(words: Sequence[str]) -> str | None:
    """Give the form that all words have, or None where they have none, or one that people write."""
    stamps = [_TIME_OF_DAY.fullmatch(word) for word in words]
    if all(stamps):
        return _stamp_form([one for one in stamps if one is not None])
    if all(re.fullmatch(_DAY, word) for word in words):
        return _DAY
    sizes = {len(word) for word in words}
    size = min(sizes)
    if all(re.fullmatch(_UUID, word) for word in words):
        return _UUID
    if len(sizes) == 1 and size >= _TIME and all(word.isdigit() for word in words):
        return f"[0-9]{{{size}}}"
    if all(re.fullmatch(_SECONDS, word) for word in words):
        return _SECONDS
    if all(re.fullmatch(_NUMBER, word) for word in words):
        return _NUMBER
    drawn = any(map(str.isdigit, "".join(words)))  # else they are words such as `facade`
    if len(sizes) == 1 and size >= _HEX and drawn and all(map(_HEXADECIMAL, words)):
        return f"[0-9a-f]{{{size}}}"
    if len(sizes) == 1 and size >= _CAPITAL_HEX and all(map(_CAPITALS, words)):
        return f"[0-9A-Fa-f]{{{size}}}"
    mixed = re.compile("(?=.*[0-9])(?=.*[A-Za-z])[0-9A-Za-z]+")
    if len(sizes) == 1 and size >= _LONG and all(mixed.fullmatch(word) for word in words):
        return f"[0-9A-Za-z]{{{size}}}"
    return None


def _stamp_form(stamps: Sequence[re.Match[str]]) -> str | None:
    """Give the form of times, where all of them are written in one way."""
    written = {
        (one[1], one[2] is not None, len(one[3] or "."), one[4] is not None) for one in stamps
    }
    if len(written) != 1:
        return None
    between, has_second, size, has_zone = written.pop()
    fraction = _FRACTION % (size - 1) if size > 1 else ""
    return f"{_DAY}{between}{_MINUTE}{_SECOND if has_second else ''}{fraction}{_ZONE if has_zone else ''}"


def _are_enough(found: Sequence[str], pairs: Texts) -> bool:
    patterns = tuple(map(Pattern, found))
    return bool(found) and all(
        what_is_left(one, patterns) == what_is_left(other, patterns) for one, other in pairs
    )
