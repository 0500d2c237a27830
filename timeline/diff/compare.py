"""Compare what two runs did: partners, where they first differ, and which differences follow from others.

1. Both are walked from their beginnings as long as they do the same. What was under way at one time, or is of agents that did not
   wait for each other, may come in any order. Where that ends is the first divergence.
2. What is behind it is aligned in order: by what is asked and answered, by what is asked, by likeness in the gaps.
3. Ids and times that are made anew (`made_anew.py`) are the same if each of one run stands for one of the other, from first to last, and
   both first appear in answers, at the same place.
4. Which differences follow from which is said by `find_causes.py`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...tape.dialects.common.untrusted_json import Json, find_json
from ...tape.diff.align import align_in_order
from ..state.calls_before import NO_OUTCOME
from ..steps.step import StepKind
from .acts import Act, Said, likeness
from .align_lists import align_lists
from .compare_settings import pair_settings, same_settings
from .find_causes import explain
from .made_anew import Anew, find_anew
from .pair_ids import pair_ids, zip_tokens
from .renaming import FEW_DIGITS, Pair, Renaming
from .row import Change, Row

_MOST = 1024 * 1024
"""Characters of a JSON text in which ids are named by their places."""
_AHEAD = 512
"""Acts that one may have come before, that was under way at the same time."""


@dataclass(slots=True)
class Divergence:
    """Where two runs first differ."""

    row: Row
    first: Act | None
    """What the first run did there; None where it had ended."""
    second: Act | None


@dataclass(slots=True)
class Compared:
    """Two runs side by side."""

    rows: list[Row]
    divergence: Divergence | None
    reordered: int = 0
    """Acts that came in another order, at a time when that says nothing."""
    counts: dict[str, int] = field(default_factory=dict)


def compare_acts(first: list[Act], second: list[Act]) -> Compared:
    """Compare what two runs did."""
    walk = _Walk(first, second)
    walk.run()
    left = [first[at] for at in walk.waiting]
    rest = second[walk.done :]
    rows = walk.rows
    compared = Compared(rows, None, walk.reordered)
    if left or rest:
        begin = len(rows)
        rows += _align(left, rest, walk.renaming)
        differing = [one for one in rows[begin:] if one.change is not Change.SAME]
        # The one that either run did first there; what it did at that place may be the same as something later of the other.
        heads = left[:1], rest[:1]
        row = next(
            (one for one in differing if [one.first] == heads[0] or [one.second] == heads[1]),
            next(iter(differing), None),
        )
        if walk.answer is not None:
            row = walk.answer
        if row is not None:
            compared.divergence = _divergence(row, walk, left, rest)
    elif walk.answer is not None:
        compared.divergence = _divergence(walk.answer, walk, left, rest)
    explain(rows)
    for one in rows:
        compared.counts[one.change.value] = compared.counts.get(one.change.value, 0) + 1
    return compared


def _divergence(row: Row, walk: "_Walk", left: list[Act], rest: list[Act]) -> Divergence:
    if walk.answer is not None:
        return Divergence(row, row.first, row.second)
    return Divergence(row, left[0] if left else None, rest[0] if rest else None)


class _Walk:
    """Walks both runs from their beginnings as long as they do the same."""

    def __init__(self, first: list[Act], second: list[Act]) -> None:
        self.first = first
        self.second = second
        self.waiting = list(range(len(first)))
        """Acts of the first that had no partner yet."""
        self.done = 0
        self.rows: list[Row] = []
        self.renaming = Renaming()
        self.reordered = 0
        self.answer: Row | None = None
        """Where the same was asked, and answered otherwise."""

    def run(self) -> None:
        """Go on to the first divergence."""
        start = 0
        waiting, taken = self.waiting, set[int]()
        for other in self.second:
            while start < len(waiting) and waiting[start] in taken:
                start += 1
            at = self._partner(other, start, taken)
            if at is None:
                break
            taken.add(at)
            self.done += 1
            row = Row(self.first[at], other)
            self.rows.append(row)
            if not same_answer(self.first[at], other, self.renaming):
                row.change = Change.ANSWERED
                _note_ids(row, self.renaming)
                self.answer = row
                break
        self.waiting = [at for at in waiting if at not in taken]

    def _partner(self, other: Act, start: int, taken: set[int]) -> int | None:
        """Find the act of the first run that may be this one."""
        passed: list[int] = []
        for at in range(start, min(len(self.first), start + _AHEAD)):
            if at in taken:
                continue
            one = self.first[at]
            alike = one.asked_key == other.asked_key or (
                bool(one.fingerprint) and one.fingerprint == other.fingerprint
            )
            alike = alike or _may_be_same(one, other)
            if alike and self._may_come(at, other, passed):
                if passed and one.answered_key != other.answered_key and self._better(at, other):
                    continue
                if same_question(one, other, self.renaming):
                    self.reordered += bool(passed)
                    return at
            passed.append(at)
        return None

    def _better(self, at: int, other: Act) -> bool:
        """Say whether a later act of the first asks the same, and is answered as this one is."""
        return any(
            one.asked_key == other.asked_key and one.answered_key == other.answered_key
            for one in self.first[at + 1 : at + _AHEAD]
        )

    def _may_come(self, at: int, other: Act, passed: list[int]) -> bool:
        one = self.first[at]
        return all(
            commute(self.first[earlier], one, self.first)
            or self._commutes_there(self.first[earlier], other)
            for earlier in passed
        )

    def _commutes_there(self, passed: Act, other: Act) -> bool:
        """Say whether the second run did both at one time."""
        later = next(
            (
                one
                for one in self.second[self.done : self.done + _AHEAD]
                if one is not other and one.asked_key == passed.asked_key
            ),
            None,
        )
        return later is not None and commute(other, later, self.second)


def commute(one: Act, later: Act, acts: list[Act]) -> bool:
    """Say whether two acts of one run may as well have come in the other order."""
    if one.seq in later.overlaps or one.seq == later.seq:
        return one.seq != later.seq
    if one.cause is not None and later.cause is not None and one.cause[0] == later.cause[0]:
        return one.cause[1] != later.cause[1]
    if not one.lane or not later.lane or one.lane == later.lane:
        return False
    return not _leads_to(one, later, acts)


def _leads_to(one: Act, later: Act, acts: list[Act]) -> bool:
    """Say whether an act is among those that a later one came from: by edges, or before it in its lane."""
    latest: dict[int, int] = {}
    """By seq the last act of it so far: edges do not name the part of a WebSocket."""
    last: dict[int, int] = {}
    sources: list[list[int]] = []
    first = len(acts)
    for at, act in enumerate(acts):
        came = [latest[edge.source] for edge in act.edges if edge.source in latest]
        if act.lane:
            came += [last[act.lane]] if act.lane in last else []
            last[act.lane] = at
        sources.append(came)
        latest[act.seq] = at
        if act is one:
            first = at
        if act is later:
            break
    level, seen = [len(sources) - 1], set[int]()
    while level:
        at = level.pop()
        if at == first:
            return True
        if at > first and at not in seen:
            seen.add(at)
            level += sources[at]
    return False


def same_question(one: Act, other: Act, renaming: Renaming) -> bool:
    """Say whether two acts ask the same; ids of one stand for those of the other from then on."""
    equal = bool(one.fingerprint) and one.fingerprint == other.fingerprint
    if NO_OUTCOME in (one.outcome, other.outcome):
        return equal or _may_be_same(one, other)
    if equal and [said.form for said in one.asked] != [said.form for said in other.asked]:
        return True  # a rule leaves out where they differ
    if one.is_call != other.is_call or one.drops != other.drops:
        return equal
    if one.first_item != other.first_item and (
        one.drops or not min(one.first_item, other.first_item)
    ):
        return equal  # the same words behind another conversation, or behind none
    if not same_settings(one.settings, other.settings):
        return equal
    if one.target[:2] != other.target[:2] or one.target.form != other.target.form:
        return equal
    found = _pairs(one.asked, other.asked)
    if found is None:
        return equal
    pairs = [*zip_tokens(one.target.tokens, other.target.tokens, begins=False), *found]
    if one.settings is not None and other.settings is not None:
        pairs += pair_settings(one.settings, other.settings)
    # What a rule leaves out may differ. The same id in both is another thing where it stands for another one of the other run; a few
    # digits are that by chance.
    if equal:
        pairs = [
            pair
            for pair in pairs
            if pair.first == pair.second and not (pair.is_counted and len(pair.first) <= FEW_DIGITS)
        ]
    return renaming.fits(pairs)


def _may_be_same(one: Act, other: Act) -> bool:
    """Say whether a request whose body is not known, as its run ended before it had an outcome, may be another one."""
    if NO_OUTCOME not in (one.outcome, other.outcome) or one.kind is not other.kind:
        return False
    if one.kind is StepKind.MODEL_CALL:
        return True
    queries = ([part.form for part in act.asked if part.what == "query"] for act in (one, other))
    same = one.target[:2] == other.target[:2] and one.target.form == other.target.form
    return same and next(queries) == next(queries)


def same_answer(one: Act, other: Act, renaming: Renaming) -> bool:
    """Say whether two acts were answered the same; ids of one stand for those of the other from then on."""
    ends = find_anew(one.outcome), find_anew(other.outcome)
    pairs = _pairs(one.answered, other.answered)
    if ends[0][0] != ends[1][0] or pairs is None:
        return False
    if not renaming.fits([*zip_tokens(ends[0][1], ends[1][1], begins=True), *pairs]):
        return False
    _note_id(one, other, renaming)
    return True


def _note_ids(row: Row, renaming: Renaming) -> None:
    """Note which ids of two acts that differ stand for each other, and which do not.

    Those that the answers made do so from then on, also where something else in the answers differs.
    """
    one, other = row.first, row.second
    assert one is not None
    assert other is not None
    row.renaming, row.known = renaming, renaming.count
    if row.change is Change.ASKED:
        for pair in _asked_pairs(one, other):
            (row.agreed if renaming.allows(pair) else row.at_odds).add(pair[:2])
        row.agreed |= _known(one.asked, renaming)
    _note_id(one, other, renaming)
    for first, second in _partners(one.answered, other.answered):
        if not (first.begins and second.begins):
            continue
        makes = first.makes and second.makes
        for pair in zip_tokens(*_same_places(first, second), begins=True, makes=makes):
            (row.agreed if renaming.fits([pair]) else row.at_odds).add(pair[:2])
    row.agreed |= _known(one.answered, renaming)


def _asked_pairs(one: Act, other: Act) -> list[Pair]:
    """Give the ids and times of two requests that are at the same places, whatever else in them differs."""
    pairs = zip_tokens(one.target.tokens, other.target.tokens, begins=False)
    for first, second in _partners(one.asked, other.asked):
        if one.first_item != other.first_item and first.key != second.key:
            continue  # they may be of two turns
        begins, makes = first.begins and second.begins, first.makes and second.makes
        pairs += zip_tokens(*_same_places(first, second), begins=begins, makes=makes)
        if first.call and second.call:
            pairs += pair_ids(first.call, second.call, begins=True)
    if one.settings is not None and other.settings is not None:
        pairs += pair_settings(one.settings, other.settings)
    return pairs


def _partners(one: list[Said], other: list[Said]) -> Iterator[tuple[Said, Said]]:
    """Give the parts of two requests or answers of which one is in the place of the other: one may have more of them."""
    pairs = align_lists(
        one,
        other,
        lambda first, second: first.key == second.key,
        lambda part: part.key,
        lambda part: part.what,
    )
    for at, there in pairs:
        if at is not None and there is not None and one[at].what == other[there].what:
            yield one[at], other[there]


def _known(parts: list[Said], renaming: Renaming) -> set[tuple[str, str]]:
    """Give the ids of the first run in some parts, each with the one that stands for it."""
    tokens = {token.text for part in parts for token in part.tokens if not token.is_time}
    partners = ((one, renaming.partner(one)) for one in tokens)
    return {(one, other) for one, other in partners if other is not None}


def _same_places(first: Said, second: Said) -> tuple[tuple[Anew, ...], tuple[Anew, ...]]:
    """Give the ids and times of two texts that are at the same places, in order.

    In JSON those are the places of members: what differs elsewhere moves no id. In any other text the names of all must agree.
    """
    if first.form == second.form or [one.label for one in first.tokens] == [
        one.label for one in second.tokens
    ]:
        return first.tokens, second.tokens
    places = _places_of(first), _places_of(second)
    found: list[tuple[Anew, Anew]] = []
    for place, here in places[0].items():
        there = places[1].get(place, [])
        if [token.label for token in here] == [token.label for token in there]:
            found += zip(here, there, strict=True)
    return tuple(one for one, _ in found), tuple(other for _, other in found)


def _json_of(text: str) -> Json:
    if len(text) > _MOST or text.lstrip()[:1] not in ("{", "["):
        return None
    return find_json(text.encode("utf-8", "surrogatepass"))


def _places_of(said: Said) -> dict[str, list[Anew]]:
    """Give the ids and times of a text of JSON by their places in it; nothing of any other text."""
    found: dict[str, list[Anew]] = {}
    tokens, at = said.tokens, 0
    for place, value in _leaves(_json_of(said.text), ""):
        if at == len(tokens):
            break
        left, here = value, list[Anew]()
        # Ids are in the order of the text, as the values are.
        while at < len(tokens) and tokens[at].text in left:
            left = left.partition(tokens[at].text)[2]
            here.append(tokens[at])
            at += 1
        if here:
            found[place] = here
    return found


def _leaves(tree: Json, place: str) -> Iterator[tuple[str, str]]:
    """Give the names and the values of a tree as JSON, with their places, in the order of the text."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            shown = json.dumps(name, ensure_ascii=False)
            yield f"{place}.{shown}:", shown
            yield from _leaves(value, f"{place}.{shown}")
    elif isinstance(tree, list):
        for number, value in enumerate(tree):
            yield from _leaves(value, f"{place}[{number}]")
    elif tree is not None:
        yield place, json.dumps(tree, ensure_ascii=False)


def _note_id(one: Act, other: Act, renaming: Renaming) -> None:
    """Note that the answer of one stands for that of the other, where later requests may name it."""
    if one.answer_id and other.answer_id:
        for pair in pair_ids(one.answer_id, other.answer_id, begins=True):
            renaming.fits([pair])


def _pairs(one: list[Said], other: list[Said]) -> list[Pair] | None:
    """Give the ids and times that are at the same places; None where anything else differs."""
    if len(one) != len(other):
        return None
    pairs: list[Pair] = []
    for first, second in zip(one, other, strict=True):
        if first.key != second.key:
            return None
        if len(first.tokens) != len(second.tokens) or bool(first.call) != bool(second.call):
            return None
        if first.call and second.call:
            pairs += pair_ids(first.call, second.call, begins=True)
        pairs += zip_tokens(
            first.tokens,
            second.tokens,
            begins=first.begins and second.begins,
            makes=first.makes and second.makes,
        )
    return pairs


def _align(left: list[Act], rest: list[Act], renaming: Renaming) -> list[Row]:
    """Give the rows behind the first divergence."""

    def keys(act: Act) -> tuple[bytes, bytes, bytes | None]:
        said = act.asked_key + act.answered_key
        # What a model was asked with is told by its answer, too, where an earlier answer made the question another.
        return said, act.asked_key, act.answered_key if act.is_call and act.answered else None

    sorts = [_sort(one) for one in left], [_sort(one) for one in rest]
    open_ended = any(one.outcome == NO_OUTCOME for one in (*left, *rest))

    def alike(at: int, other: int) -> float:
        one, two = left[at], rest[other]
        if open_ended and _may_be_same(one, two):
            return 0.6
        if sorts[0][at] != sorts[1][other]:
            return 0.0
        same = one.target[2] == two.target[2]
        if not one.is_call and not same:
            return 0.25 + 0.25 * likeness(one.sketch, two.sketch) if _near(one, two) else 0.0
        return 0.5 + likeness(one.sketch, two.sketch)

    found = align_in_order([keys(one) for one in left], [keys(one) for one in rest], alike)
    rows = []
    partners = dict(found.pairs)
    moved = dict(found.moved)
    taken = {other for _, other in found.moved}
    other = 0
    for at, one in enumerate(left):
        to = partners.get(at)
        if to is None:
            if at in moved:
                rows.append(Row(one, rest[moved[at]], Change.MOVED))
            else:
                rows.append(Row(one, None, Change.ONLY_FIRST))
            continue
        rows += [
            Row(None, rest[add], Change.ONLY_SECOND) for add in range(other, to) if add not in taken
        ]
        other = to + 1
        rows.append(_pair_row(one, rest[to], renaming))
    rows += [
        Row(None, rest[add], Change.ONLY_SECOND)
        for add in range(other, len(rest))
        if add not in taken
    ]
    for row in rows:
        if row.change is Change.MOVED and _is_parallel(row, left, rest, found.pairs):
            assert row.first is not None
            assert row.second is not None
            row.change = _pair_row(row.first, row.second, renaming).change
    return rows


def _sort(act: Act) -> tuple[bool, StepKind, str, str]:
    """Give what two acts that are alike have in common."""
    return act.is_call, act.kind, *act.target[:2]


def _near(one: Act, other: Act) -> bool:
    """Say whether two paths differ in their last step alone, or in ids."""
    return one.target[2].rpartition("/")[0] == other.target[2].rpartition("/")[0]


def _pair_row(one: Act, other: Act, renaming: Renaming) -> Row:
    row = Row(one, other)
    if not same_question(one, other, renaming):
        row.change = Change.ASKED
        _note_ids(row, renaming)
    elif not same_answer(one, other, renaming):
        row.change = Change.ANSWERED
        _note_ids(row, renaming)
    return row


def _is_parallel(
    row: Row, left: list[Act], rest: list[Act], pairs: tuple[tuple[int, int], ...]
) -> bool:
    """Say whether an act that moved was under way, on either side, with all that it changed places with."""
    one, other = row.first, row.second
    assert one is not None
    assert other is not None
    own = next(at for at, act in enumerate(left) if act is one)
    own_there = next(at for at, act in enumerate(rest) if act is other)
    for at, to in pairs:
        first, second = left[at], rest[to]
        before, before_there = at < own, to < own_there
        if before == before_there:
            continue
        here = (first, one) if before else (one, first)
        there = (second, other) if before_there else (other, second)
        if not commute(*here, left) and not commute(*there, rest):
            return False
    return True
