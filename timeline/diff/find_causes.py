"""Find which differences follow from others, and which are roots.

1. A difference follows from an earlier one if an edge leads from that to it, or if a value of it is in what was asked. Each says on what
   it rests.
2. What is asked otherwise has to be explained whole: each value that differs is, on a side, from answers that differ, or the result of a
   tool call that differs. Else it is a root, whatever else leads to it: an edge says what an agent knew, and not why it asked for that.
3. What no earlier difference leads to is a root.
"""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from urllib.parse import unquote

from ...tape.dialects.common.untrusted_json import Json, find_json
from ..blame.distinctive_values import is_telling
from ..steps.step import Edge, Evidence
from .acts import Act, Said, Settings
from .compare_settings import find_differing, same_settings, tell_apart
from .renaming import FEW_DIGITS
from .row import Cause, Change, Row

_WORD = re.compile(r"[\w.-]{3,}")
_ANY_WORD = re.compile(r"\w(?:[\w.-]*\w)?")
_CALL = "tool call"
_NAME = 4
"""Words up to which a value is one thing, as a name is."""
_TOLD = 64 * 1024
"""Characters of a text in which words are looked for."""
_WORDS = 2000
"""Words of a difference that are looked for in what comes later."""

_Origin = tuple[int, str]
"""A place of an answer that differs: the number of its row, and where in its body."""


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
    told: dict[str, set[_Origin]] = field(default_factory=dict)
    """All words of answers that the other side's partners do not have, with the places that had them."""
    repeated: set[bytes] = field(default_factory=set)
    """Requests that the run makes more often than tool calls ask for them."""
    exchanged: set[tuple[str, str]] = field(default_factory=set)
    """Origins and paths at which either run alone did something: another method was taken there."""
    calls: set[str] = field(default_factory=set)
    """Ids of tool calls that the other side was not told to make so."""


def explain(rows: list[Row]) -> None:
    """Find what each difference follows from."""
    sides = _make_sides(rows)
    settings: dict[object, Row] = {}
    for number, row in enumerate(rows):
        if row.change is Change.SAME:
            if row.first is not None and row.first.is_call:
                row.converges = row.first.lane in sides[0].lanes
            continue
        row.cause = _find_cause(row, sides, settings)
        acts = row.first, row.second
        for side, act, other in zip(sides, acts, acts[::-1], strict=True):
            if act is not None:
                _note_row(side, row, act)
                _note_told(side, number, row, act.answered, other.answered if other else [])


def _make_sides(rows: list[Row]) -> tuple[_Side, _Side]:
    """Begin with what is known of a whole run."""
    sides, only = (_Side(), _Side()), list[set[tuple[str, str]]]()
    columns = [row.first for row in rows], [row.second for row in rows]
    for side, column, others in zip(sides, columns, columns[::-1], strict=True):
        side.repeated |= _find_repeated([act for act in column if act is not None])
        alone = [act for act, other in zip(column, others, strict=True) if act and other is None]
        only.append({_place_of(act) for act in alone if not act.is_call})
    for side in sides:
        side.exchanged |= only[0] & only[1]
    return sides


def _note_row(side: _Side, row: Row, act: Act) -> None:
    side.changed[act.seq] = row
    side.lanes.setdefault(act.lane, row)
    if row.change is Change.ANSWERED:
        side.asked[act.asked_key] = row


def _note_told(
    side: _Side, number: int, row: Row, answered: list[Said], others: list[Said]
) -> None:
    """Note what one side alone was told.

    number: of the row.
    """
    for word in sorted(_words_of(answered) - _words_of(others))[:_WORDS]:
        side.words.setdefault(word, row)
    for part, there in _differing_parts(answered, others):
        for place, value, value_there in _differing_values(part, there):
            for word in _words_apart(value, value_there):
                side.told.setdefault(word, set()).add((number, place))
    side.calls.update(one.call for one in _new_calls(answered, others) if one.call)


def _find_repeated(acts: list[Act]) -> set[bytes]:
    counts = Counter(act.asked_key for act in acts)
    calls: dict[bytes, set[tuple[int, int]]] = {}
    for act in acts:
        made = {(edge.source, edge.number) for edge in act.edges if edge.number}
        calls.setdefault(act.asked_key, set()).update(made)
    return {key for key, count in counts.items() if count > max(1, len(calls[key]))}


def _is_unexplained(act: Act, side: _Side) -> bool:
    """Say whether what led to an act of one run says nothing of why it did that: once more, or by another method."""
    return act.asked_key in side.repeated or _place_of(act) in side.exchanged


def _place_of(act: Act) -> tuple[str, str]:
    return act.target.origin, act.target.form


def _find_cause(row: Row, sides: tuple[_Side, _Side], settings: dict[object, Row]) -> Cause | None:
    new = _new_settings(row, settings)
    cause = new[0] if new is not None else _find_lead(row, sides)
    return cause if cause is None or _is_explained(row, sides) else None


def _find_lead(row: Row, sides: tuple[_Side, _Side]) -> Cause | None:
    """Find what leads to a difference."""
    acts = row.first, row.second
    for number, (side, act) in enumerate(zip(sides, acts, strict=True)):
        if act is None or (acts[1 - number] is None and _is_unexplained(act, side)):
            continue
        for edge in act.edges:
            before = side.changed.get(edge.source)
            if before is None or before is row:
                continue
            if _matters(before, act, edge, number) or (act.is_call and act.lane in side.lanes):
                return _cause(before, edge.evidence, edge.rule)
    if row.change is Change.ANSWERED:
        for side, act in zip(sides, acts, strict=True):
            if act is not None and act.is_call and act.lane in side.lanes:
                return _cause(side.lanes[act.lane], Evidence.INFERRED, "its context differs")
        return _answered_before(row, sides)
    return _asked_again(row, sides) or _by_value(row, sides)


def _answered_before(row: Row, sides: tuple[_Side, _Side]) -> Cause | None:
    """Find the same request before, for which both sides had the same two answers."""
    one, other = row.first, row.second
    before = sides[0].asked.get(one.asked_key) if one is not None and not one.is_call else None
    if before is None or one is None or other is None:
        return None
    acts = (before.first, one), (before.second, other)
    if all(
        earlier is not None and earlier.answered_key == act.answered_key for earlier, act in acts
    ):
        return _cause(before, Evidence.RECORDED, "the same two answers as there")
    return None


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


def _matters(before: Row, act: Act, edge: Edge, number: int) -> bool:
    """Say whether a difference can be why an act differs: an answer, or the tool call in it, that both sides have cannot.

    number: of the side, from 0.
    """
    acts = before.first, before.second
    mine, theirs = acts[number], acts[1 - number]
    if mine is None or theirs is None:
        return True
    if edge.number and not act.is_call:
        calls = [one for one in mine.answered if one.what == _CALL]
        call = calls[edge.number - 1] if edge.number <= len(calls) else None
        if call is not None:
            return any(one is call for one in _new_calls(mine.answered, theirs.answered))
    return before.change is not Change.ASKED or mine.answered_key != theirs.answered_key


def _new_calls(parts: list[Said], others: list[Said]) -> Iterator[Said]:
    """Give the tool calls that others have not, or not as often."""
    return (one for one in _new_parts(parts, others) if one.what == _CALL)


def _new_parts(parts: list[Said], others: list[Said]) -> Iterator[Said]:
    """Give the parts that others have not, or not as often."""
    left = Counter(one.key for one in others)
    for one in parts:
        left[one.key] -= 1
        if left[one.key] < 0:
            yield one


def _is_explained(row: Row, sides: tuple[_Side, _Side]) -> bool:
    """Say whether answers that differ have all that is asked otherwise."""
    one, other = row.first, row.second
    if row.change is not Change.ASKED or one is None or other is None or one.drops != other.drops:
        return True
    if one.target[:2] != other.target[:2]:
        return False
    calls = [
        side.calls | {edge.call or "" for edge in act.edges if edge.source in side.changed}
        for side, act in zip(sides, (one, other), strict=True)
    ]
    for pair in _differing_parts(one.asked, other.asked):
        is_of_call = (
            part is not None and part.call is not None and part.call in made
            for part, made in zip(pair, calls, strict=True)
        )
        if not any(is_of_call) and not all(
            _is_told(values, sides) for _, *values in _differing_values(*pair)
        ):
            return False
    paths = [unquote(one.target.path), unquote(other.target.path)]
    return one.target.form == other.target.form or _is_told(paths, sides)


def _is_told(values: list[str], sides: tuple[_Side, _Side]) -> bool:
    """Say whether most words that either value alone has were told to its side alone; a few may be of the agent's own code around them.

    Where both were told, it was in one answer, and at one place of it unless they are texts: else the code took another value.
    """
    is_text = any(value[:1] in ("{", "[") or len(value.split()) > _NAME for value in values)
    found = list[set[Hashable]]()
    for side, value, there in zip(sides, values, values[::-1], strict=True):
        words = _words_apart(value, there)
        told = words & side.told.keys()
        if not told or 2 * len(told) < len(words):
            continue
        origins = Counter(origin for word in told for origin in side.told[word])
        most = max(origins.values())
        found.append(
            {row for row, _ in origins}
            if is_text
            else {origin for origin, count in origins.items() if count == most}
        )
    return bool(found) and bool(set.intersection(*found))


def _differing_parts(
    ones: list[Said], others: list[Said]
) -> Iterator[tuple[Said | None, Said | None]]:
    """Pair the parts that either side alone has, those of one kind in order."""
    kinds: dict[tuple[str, str], tuple[list[Said], list[Said]]] = {}
    for number, (parts, there) in enumerate(((ones, others), (others, ones))):
        for one in _new_parts(parts, there):
            kinds.setdefault((one.what, one.name), ([], []))[number].append(one)
    for pair in kinds.values():
        yield from zip_longest(*pair)


def _differing_values(one: Said | None, other: Said | None) -> Iterator[tuple[str, str, str]]:
    """Give the values in which two parts differ, ids and times aside, which are compared by themselves; of JSON each with its place."""
    texts = _text_of(one), _text_of(other)
    trees = [_leaves(text) for text in texts]
    if trees[0] is None or trees[1] is None:
        yield "", *texts
        return
    for place in {**trees[0], **trees[1]}:
        values = trees[0].get(place, ""), trees[1].get(place, "")
        if values[0] != values[1]:
            yield place, *values


def _text_of(part: Said | None) -> str:
    if part is None:
        return ""
    text = part.text[:_TOLD]
    for one in part.tokens:
        if len(one.text) > FEW_DIGITS:
            text = text.replace(one.text, "0")
    return text


def _words_apart(value: str, other: str) -> set[str]:
    return set(_ANY_WORD.findall(value)) - set(_ANY_WORD.findall(other))


def _leaves(text: str) -> dict[str, str] | None:
    """Give the values of a text of JSON by their places; None of any other."""
    tree = find_json(text.encode("utf-8", "surrogatepass")) if text[:1] in ("{", "[") else None
    return dict(_walk(tree, "")) if tree is not None else None


def _walk(tree: Json, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _walk(value, f"{place}.{name}")
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _walk(value, f"{place}[{number}]")
    else:
        yield place, tree if isinstance(tree, str) else json.dumps(tree)


def _by_value(row: Row, sides: tuple[_Side, _Side]) -> Cause | None:
    """Find the answer that a value of a request is from."""
    acts = row.first, row.second
    for side, act, other in zip(sides, acts, acts[::-1], strict=True):
        if act is None or not side.words or (other is None and _is_unexplained(act, side)):
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
