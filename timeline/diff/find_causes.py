"""Find which differences follow from others, and which are roots.

A difference follows from an earlier one if an edge leads from that to it, or if a value of it is in what was asked; else it is a root.
Each says on what it rests.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..blame.distinctive_values import is_telling
from ..steps.step import Evidence
from .acts import Act, Said, Settings
from .compare_settings import find_differing, same_settings, tell_apart
from .renaming import FEW_DIGITS
from .row import Cause, Change, Row

_WORD = re.compile(r"[\w.-]{3,}")
_TOLD = 64 * 1024
"""Characters of a text in which words are looked for."""
_WORDS = 2000
"""Words of a difference that are looked for in what comes later."""


@dataclass(slots=True)
class _Side:
    """What differs on one side so far."""

    changed: dict[int, Row] = field(default_factory=dict)
    """Rows by seq."""
    words: dict[str, Row] = field(default_factory=dict)
    """Words that the other side was not told, by the row whose answer had them."""
    lanes: dict[int, Row] = field(default_factory=dict)
    """The first difference in each lane."""
    asked: dict[bytes, Row] = field(default_factory=dict)
    """Requests that were answered otherwise."""


def explain(rows: list[Row]) -> None:
    """Find what each difference follows from."""
    sides = _Side(), _Side()
    settings: dict[object, Row] = {}
    for row in rows:
        acts = row.first, row.second
        if row.change is not Change.SAME:
            row.cause = _find_cause(row, sides, settings)
        elif row.first is not None and row.first.is_call:
            row.converges = row.first.lane in sides[0].lanes
        if row.change is Change.SAME:
            continue
        for side, act, other in zip(sides, acts, acts[::-1], strict=True):
            if act is None:
                continue
            side.changed[act.seq] = row
            side.lanes.setdefault(act.lane, row)
            if row.change is Change.ANSWERED:
                side.asked[act.asked_key] = row
            told = _words_of(act.answered) - _words_of(other.answered if other else [])
            for word in sorted(told)[:_WORDS]:
                side.words.setdefault(word, row)


def _find_cause(row: Row, sides: tuple[_Side, _Side], settings: dict[object, Row]) -> Cause | None:
    acts = row.first, row.second
    new = _new_settings(row, settings)
    if new is not None:
        return new[0]
    for side, act in zip(sides, acts, strict=True):
        if act is None:
            continue
        for edge in act.edges:
            before = side.changed.get(edge.source)
            if before is not None and before is not row and _matters(before, act, side):
                return _cause(before, edge.evidence, edge.rule)
    if row.change is Change.ANSWERED:
        for side, act in zip(sides, acts, strict=True):
            if act is not None and act.is_call and act.lane in side.lanes:
                return _cause(side.lanes[act.lane], Evidence.INFERRED, "its context differs")
        return None
    return _asked_again(row, sides) or _by_value(row, sides)


def _asked_again(row: Row, sides: tuple[_Side, _Side]) -> Cause | None:
    """Find the same request before, on the side that has this one alone, that was answered otherwise."""
    for side, act, other in zip(
        sides, (row.first, row.second), (row.second, row.first), strict=True
    ):
        if act is None or other is not None or act.is_call:
            continue
        before = side.asked.get(act.asked_key)
        if before is not None:
            return _cause(before, Evidence.INFERRED, "asked again, after another answer")
    return None


def _matters(before: Row, act: Act, side: _Side) -> bool:
    """Say whether a difference can be why an act differs: an answer that is the same on both sides cannot."""
    if before.change is not Change.ASKED or before.first is None or before.second is None:
        return True
    return before.first.answered_key != before.second.answered_key or act.lane in side.lanes


def _by_value(row: Row, sides: tuple[_Side, _Side]) -> Cause | None:
    acts = row.first, row.second
    for side, act, other in zip(sides, acts, acts[::-1], strict=True):
        if act is None or not side.words:
            continue
        told = _words_of(act.asked) | _telling_words(act.target.path)
        if other is not None:
            told -= _words_of(other.asked) | _telling_words(other.target.path)
        word = next((one for one in sorted(told, key=len, reverse=True) if one in side.words), None)
        if word is not None:
            evidence = Evidence.RECORDED if is_telling(word) else Evidence.INFERRED
            return _cause(side.words[word], evidence, f"{word[:60]!r} is from its answer")
    return None


def _new_settings(row: Row, settings: dict[object, Row]) -> tuple[Cause | None] | None:
    """Say whether what a model is asked with beside its messages differs: the first time that is a root, then it follows from that."""
    one, other = row.first, row.second
    if one is None or other is None or same_settings(one.settings, other.settings):
        return None
    if one.settings is None or other.settings is None:
        return None
    names = find_differing(one.settings, other.settings)
    differing = tuple(
        tell_apart(one.settings.system, other.settings.system)
        if name == "system"
        else (name, _setting(one.settings, name), _setting(other.settings, name))
        for name in names
    )
    before = settings.setdefault(differing, row)
    if before is row:
        return (None,)
    return (_cause(before, Evidence.RECORDED, f"the same {', '.join(names)} as there"),)


def _setting(settings: Settings, name: str) -> str:
    if name == "model":
        return settings.model or ""
    return settings.beside.get(name) or repr([link[1] for link in settings.links])


def _cause(before: Row, evidence: Evidence, rule: str) -> Cause:
    first, second = before.first, before.second
    return Cause(
        first.place if first is not None else "",
        second.place if second is not None else "",
        evidence,
        rule,
    )


def _words_of(parts: list[Said]) -> set[str]:
    return {word for part in parts for word in _telling_words(part.text[:_TOLD])}


def _telling_words(text: str) -> set[str]:
    """Give the words of a text, and the numbers that have enough digits to be no coincidence."""
    return {
        word
        for word in _WORD.findall(text)
        if any(map(str.isalpha, word)) or sum(map(str.isdigit, word)) > FEW_DIGITS
    }


def roots(rows: Iterable[Row]) -> Iterator[Row]:
    """Give the differences that follow from no other."""
    return (row for row in rows if row.is_root)
