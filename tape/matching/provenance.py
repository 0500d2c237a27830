"""Find the earlier answer that a changed value came from.

Looked for is the whole value, or the part of it that differs, if it is long enough to be no coincidence; a
shorter one only as a whole string of a JSON document, and only if a single answer holds it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ..diff.difference import common_prefix
from ..diff.divergence_types import Origin
from ..exchange import Request, Response, Seq
from .dependence import core, may_stand_in_answer
from .values import MIN_VALUE, answer_leaves, ids, request_leaves

_MIN_LEAF = 6
"""Characters of a shorter value that may still be looked for, as a whole string."""
_MAX_SOUGHT = 4


class Sought(NamedTuple):
    """One text that is looked for in answers."""

    text: str
    whole: bool
    """It has to be a whole value there, and stand in one answer alone."""


class Answer(NamedTuple):
    """An answer in which is looked."""

    seq: Seq | None
    tape_seq: Seq | None
    response: Response | None


def find_texts(
    place: str,
    recorded: Request,
    asked: Request,
    untraced: frozenset[str] = frozenset(),
) -> tuple[str | None, str | None]:
    """Find the whole values at a place at which two requests differ; None where there is none to be traced."""
    old = [text for at, text in request_leaves(recorded, untraced) if at == place]
    new = [text for at, text in request_leaves(asked, untraced) if at == place]
    for index in range(max(len(old), len(new))):
        one = old[index] if index < len(old) else None
        other = new[index] if index < len(new) else None
        if one != other:
            return one, other
    return None, None


def sought(place: str, text: str | None, other: str | None) -> tuple[Sought, ...]:
    """Give what to look for, the most telling first."""
    if text is None:
        return ()
    found = [Sought(text, whole=False)] if _is_long(text) else []
    if other is not None and text != other:
        part = _differing(text, other)
        found += [Sought(one, whole=False) for one in (part, *ids(part)) if _is_long(one)]
    elif other is None:
        found += [Sought(one, whole=False) for one in ids(text)]
    if not found and place.startswith("body $") and len(text) >= _MIN_LEAF:
        found.append(Sought(text, whole=True))
    return tuple(dict.fromkeys(found))[:_MAX_SOUGHT]


def find_origin(wanted: tuple[Sought, ...], answers: Iterable[Answer]) -> Origin | None:
    """Find the first answer that holds one of the texts; of two texts the more telling one counts.

    answers: in the order in which they were given; may end early where time runs out.
    """
    if not wanted:
        return None
    needles = [core(one.text) for one in wanted]
    found: list[Origin | None] = [None] * len(wanted)
    for answer in answers:
        if answer.response is None:
            continue
        for index, one in enumerate(wanted):
            if found[index] is not None and not one.whole:
                continue
            if not may_stand_in_answer(answer.response, needles[index]):
                continue
            place = _place_of(one, answer.response)
            if place is None:
                continue
            if one.whole and found[index] is not None:
                return None  # two answers hold it: either may be meant
            found[index] = Origin(answer.seq, answer.tape_seq, place)
            if index == 0 and not one.whole:
                return found[0]
    return next((one for one in found if one is not None), None)


def _place_of(one: Sought, response: Response) -> str | None:
    best: str | None = None
    for place, text in answer_leaves(response):
        if text == one.text:
            return place
        if best is None and not one.whole and one.text in text:
            best = place
    return best


def _is_long(text: str) -> bool:
    return len(text.encode("utf-8", "replace")) >= MIN_VALUE


def _differing(text: str, other: str) -> str:
    """Give the part of a text that another does not share, out to the ends of the words it begins and ends in."""
    start = common_prefix(text, other)
    rest = min(len(text), len(other)) - start
    end = len(text) - (common_prefix(text[-rest:][::-1], other[-rest:][::-1]) if rest else 0)
    while start and _in_word(text[start - 1]):
        start -= 1
    while end < len(text) and _in_word(text[end]):
        end += 1
    return text[start:end]


def _in_word(char: str) -> bool:
    return char.isalnum() or char in "_-"
