"""Say whether what a pattern finds in the question of a model call is proved to be made anew: a profile may leave out nothing else there.

1. A time or a day of its own recording is.
2. A UUID is where the words of the pattern before it, or the name of the member, say that it is the id of a session, request, run or the like.
3. A number, a hash or a mixed word is not: it may be the sum that is paid, or the wallet that it is paid to.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...tape.canonical.masks import Pattern
from ...tape.diff.made_anew import Window, is_day_of, is_time_of
from ...tape.diff.place_names import name_words

_UUID = re.compile("[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_OF = frozenset(
    (
        *("session", "request", "run", "trace", "span", "turn", "prompt", "thread", "correlation"),
        *("invocation", "conversation", "chat", "installation", "device", "window", "instance"),
    )
)
"""That a client gives an id to by itself."""
_IDS = frozenset(("id", "uuid"))
_BEFORE = re.compile("([A-Za-z]+[ _-]?[A-Za-z]+)[^0-9A-Za-z]{1,4}$")
"""Two words, or one in camel case, and signs."""
_ESCAPED = re.compile(r"\\(.)")
_ARGUMENTS = frozenset(("args", "arguments", "parameters", "response", "output", "result"))
"""Members that hold what a tool is told, and what it says."""
_STEP = re.compile(r"[^.\[\]'\"*$]+")


class Times(NamedTuple):
    """When two values that stand in one place of two recordings were made."""

    old: Window
    new: Window


def are_proved(place: str, regex: str, values: Iterable[tuple[tuple[str, str], Times]]) -> bool:
    """Say whether all that a pattern finds at one place of two recordings is made anew."""
    pattern = Pattern(regex)
    is_id = _names_own_id(place) or _ends_with_id(regex)
    return all(
        is_time_of(found, window)
        or is_day_of(found, window)
        or (is_id and _UUID.fullmatch(found) is not None)
        for pair, times in values
        for text, window in zip(pair, times, strict=True)
        for found in _find(pattern, text)
    )


def _find(pattern: Pattern, text: str) -> Iterator[str]:
    told = text.encode("utf-8", "surrogatepass")
    return (told[start:end].decode("utf-8", "replace") for start, end in pattern.find(told))


def _ends_with_id(regex: str) -> bool:
    """Say whether what a pattern wants before its group names an id of the client."""
    said = _BEFORE.search(_ESCAPED.sub(r"\1", regex.partition("(")[0]))
    return said is not None and _is_own_id(name_words(said[1]))


def _is_own_id(words: list[str]) -> bool:
    return len(words) > 1 and words[-1] in _IDS and words[-2] in _OF


def _names_own_id(place: str) -> bool:
    """Say whether a place of JSON is called as an id of the client is: of an item of the question, or of a session and the like."""
    steps = [one for one in _STEP.findall(place.removeprefix("body ")) if not one.isdigit()]
    if len(steps) < 2 or not _ARGUMENTS.isdisjoint(steps) or "input" in steps[1:]:
        return False
    words = name_words(steps[-1])
    return words == ["id"] or _is_own_id(words)
