"""Say whether what a pattern finds in a request of a client is proved to be made anew: a profile may leave out nothing else.

1. A time or a day of its own recording is where the name of its place says so. In what a model is asked it may be when something is due: there it is
   only if it is the time of the request that first has it, and the words before say that it is now, and nothing else of it.
2. An id is where the name of its place says that a request or process has its own (`tape/diff/field_name_meaning.py`).
3. So is a UUID inside of a text, where the words before it are `session id`, `turn_id` or the like, and nothing else before them says of what.
4. A number, a hash or a mixed word is not: it may be the sum that is paid, or the wallet that it is paid to.
5. What was there before the client sent it is nowhere (`seen_before_sent.py`).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...tape.canonical.regex_masks import Pattern
from ...tape.diff.field_name_meaning import (
    name_words,
    names_party,
    names_quantity,
    names_request,
    names_time,
)
from ...tape.diff.made_anew import Window, is_day_of, is_moment_of, is_time_of

_UUID = re.compile("[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_OF = frozenset(
    ("session", "request", "trace", "span", "turn", "prompt", "correlation", "invocation")
)
"""That a client gives an id to by itself."""
_IDS = frozenset(("id", "uuid"))
_BEFORE = re.compile("([A-Za-z]+[ _-]?[A-Za-z]+)[^0-9A-Za-z]{1,4}$")
"""Two words, or one in camel case, and signs."""
_ALONE = re.compile(r"(?:^|[\n{\[(,;>\"'`]|\b[Yy]our|\b[Cc]urrent)[ \t\"'`]*$")
"""What may be before the two: the beginning of a line or member, or words that say whose it is."""
_NOW = re.compile(
    r"(?:^|[\n{\[(,;<>\"'`.!?*#|])[ \t\"'`*#-]*(?:(?:the|your|my|it is|it's) )?"
    r"(?:now|today|timestamp|(?:current|present|today'?s?)(?:[ _-]?(?:local|system|utc))?[ _-]?(?:date|time|day|timestamp)"
    r"(?:(?:[ _/-]?| and )(?:date|time))?)"
    r"(?: ?\((?:utc|local|iso(?: 8601)?)\))?(?: is)?[^0-9A-Za-z\n]{0,8}$",
    re.IGNORECASE,
)
"""Words by which a client says what time it is, at the beginning of a text, line, sentence, member or tag."""
_LOOKED_AT = 100
"""Characters before a token that are looked at for them."""
_MEMBER = re.compile(r"\"(\w{1,60})\": ?\"?$")


class Times(NamedTuple):
    """When two values that stand in one place of two recordings were made."""

    old: Window
    new: Window


def are_proved(
    place: str,
    regex: str,
    values: Iterable[tuple[tuple[str, str], Times]],
    own: frozenset[str] = frozenset(),
    *,
    is_question: bool,
) -> bool:
    """Say whether all that a pattern finds at one place of two recordings is made anew, by its name and its form.

    own: words of the client's own name.
    is_question: the place is in what a model is asked, or in the body of a read.
    """
    pattern = Pattern(regex)
    if names_party(place) or names_quantity(place):
        return False
    if names_request(place, own=own):
        return True
    both = list(values)
    first_s: dict[tuple[int, str], float] = {}
    for side, text, window in _sides(both):
        for _, found in _find(pattern, text):
            key = side, found
            first_s[key] = min(window.asked_s, first_s.get(key, window.asked_s))

    def is_clock(side: int, found: str, before: str, window: Window) -> bool:
        if not is_question:
            is_named = names_time(place) or _names_time(before)
            return is_named and (is_time_of(found, window) or is_day_of(found, window))
        if not (_says_now(before) or (not before and names_time(place))):
            return False
        at_s = first_s[side, found]
        return is_moment_of(found, at_s) or is_day_of(found, Window(at_s, at_s))

    return all(
        is_clock(side, found, text[:start], window)
        or (_UUID.fullmatch(found) is not None and _names_own_id(text[:start]))
        for side, text, window in _sides(both)
        for start, found in _find(pattern, text)
    )


def _sides(
    values: Iterable[tuple[tuple[str, str], Times]],
) -> Iterator[tuple[int, str, Window]]:
    """Give the texts of both recordings, with which of them it is and when each was made."""
    for pair, times in values:
        for side in (0, 1):
            yield side, pair[side], times[side]


def _find(pattern: Pattern, text: str) -> Iterator[tuple[int, str]]:
    """Give what a pattern finds, and where it begins."""
    told = text.encode("utf-8", "surrogatepass")
    for start, end in pattern.find(told):
        yield (
            len(told[:start].decode("utf-8", "surrogatepass")),
            told[start:end].decode("utf-8", "replace"),
        )


def _names_own_id(before: str) -> bool:
    """Say whether a text ends with the name of an id of the client, and with nothing that says of what else it is."""
    said = _BEFORE.search(before)
    if said is None or _ALONE.search(before[: said.start()]) is None:
        return False
    words = name_words(said[1])
    return len(words) == 2 and words[-1] in _IDS and words[-2] in _OF


def _says_now(before: str) -> bool:
    """Say whether a text ends with words that say what time it is."""
    start = max(len(before) - _LOOKED_AT, 0)
    # What is cut off is no beginning.
    return _NOW.search(("\x00" if start else "") + before[start:]) is not None


def _names_time(before: str) -> bool:
    """Say whether a text of JSON ends with the name of a member that has a time."""
    said = _MEMBER.search(before)
    return said is not None and names_time(f"body $.{said[1]}")
