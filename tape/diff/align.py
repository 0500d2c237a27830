"""Align two recordings of one task: which request of one corresponds to which request of the other.

Rules, in the order they are applied; each sees what the ones before unused:

1. Requests with the same fingerprint are partners, in their order.
2. Of one method, origin and path, those are that are the same but for what looks like an id or a time.
3. Of the rest of these the nearest are, and of equally near ones those at the same place.
4. The same where paths differ in ids alone, and last where the origin is another one.
5. What is left has no partner.

Agents call in parallel, so order decides between equals only. A value that looks like an id or a time does not
make requests less near: the two recordings were made at other times.

`align_in_order` is for whoever compares what two agents did one after the other: there order counts, and what was put in or
left out moves nothing behind it. What is the same on both sides, but at another place, is told as moved.
"""

import re
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from hashlib import blake2b
from typing import NamedTuple

from ..exchange import Fingerprint, Request, Seq
from .path_shape import path_shape

Near = Callable[[Seq, Seq], float]
"""How far two requests are apart, by their seqs: one of each recording."""

Key = Callable[[Seq], Hashable]
"""What two requests of one endpoint have in common that are the same but for ids and times."""

_ALL_PAIRS = 1024
"""Pairs of one endpoint up to which each is looked at; beyond, those at about the same place are."""
_WINDOW = 12
"""Places that a partner may have moved then."""

_ALL_CELLS = 160_000
"""Pairs of one gap up to which each is weighed in order; beyond, those near its diagonal are."""
_BAND = 48
"""Places that a partner may have moved then, besides what one side has more."""

Keys = Sequence[Hashable]
"""What one element has in common with its partner, the strictest first; as many for each. None is common to nobody."""

Alike = Callable[[int, int], float]
"""How alike two elements are, by their places: 0 for what can be no partners."""

_SCRUBBED = re.compile(
    rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|(?<![0-9a-zA-Z])(?:\d{10,}|[0-9a-fA-F]{16,})(?![0-9a-zA-Z])"
    rb"|(?<=[_-])(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{8,}"
)


_MAY_BE = re.compile(r"\d|[0-9a-fA-F]{16}")
"""What looks like an id or a time has some of this."""


class Item(NamedTuple):
    """What alignment needs to know of a request."""

    seq: Seq
    fingerprint: Fingerprint
    method: str
    origin: str
    """Scheme and authority."""
    path: str


@dataclass(frozen=True, slots=True)
class Alignment:
    """Partners, and what has none."""

    pairs: tuple[tuple[Seq, Seq], ...]
    """By the seq of the first recording."""
    same: int
    """How many of the pairs are the same question."""
    only_first: tuple[Seq, ...]
    only_second: tuple[Seq, ...]


def align(
    first: Iterable[Item], second: Iterable[Item], near: Near, keys: tuple[Key, Key]
) -> Alignment:
    """Find the partner of each request of two recordings, given in order.

    near, keys: asked for requests that are not the same question.
    """
    left, right = list(first), list(second)
    pairs = _same(left, right, lambda item: item.fingerprint, lambda item: item.fingerprint)
    same = len(pairs)
    left, right = _without(left, right, pairs)
    pairs += _same(
        left,
        right,
        lambda item: (_endpoint(item), keys[0](item.seq)),
        lambda item: (_endpoint(item), keys[1](item.seq)),
    )
    for key in (_endpoint, _shaped, _elsewhere):
        left, right = _without(left, right, pairs)
        pairs += _by_endpoint(left, right, key, near)
    left, right = _without(left, right, pairs)
    return Alignment(
        tuple(sorted(pairs)),
        same,
        tuple(item.seq for item in left),
        tuple(item.seq for item in right),
    )


@dataclass(frozen=True, slots=True)
class InOrder:
    """Partners of two sequences by their places, from 0, and what has none."""

    pairs: tuple[tuple[int, int], ...]
    """In order on both sides."""
    moved: tuple[tuple[int, int], ...]
    """The same by its strictest key but one, at another place among the others."""
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]


def align_in_order(first: Sequence[Keys], second: Sequence[Keys], alike: Alike) -> InOrder:
    """Find the partners of two sequences: by each key in turn, then by likeness inside the gaps, then what moved.

    alike: asked for pairs inside one gap alone.
    """
    pairs: list[tuple[int, int]] = []
    gaps = [(0, len(first), 0, len(second))]
    levels = min((len(keys) for keys in (*first[:1], *second[:1])), default=0)
    for level in range(levels):
        left: list[tuple[int, int, int, int]] = []
        for gap in gaps:
            found, rest = _match_gap(first, second, gap, level)
            pairs += found
            left += rest
        gaps = left
    held, others = {one for one, _ in pairs}, {other for _, other in pairs}
    moved = _find_moved(first, second, held, others, levels)
    if moved:
        pairs, moved = _straighten(first, second, pairs, moved, min(levels, 2))
    taken, given = {one for one, _ in moved}, {other for _, other in moved}
    for begin, end, start, stop in gaps:
        ones = [at for at in range(begin, end) if at not in taken]
        rest_of_second = [at for at in range(start, stop) if at not in given]
        pairs += _weigh_gap(ones, rest_of_second, alike)
    held, others = {one for one, _ in pairs} | taken, {other for _, other in pairs} | given
    return InOrder(
        tuple(sorted(pairs)),
        tuple(sorted(moved)),
        tuple(at for at in range(len(first)) if at not in held),
        tuple(at for at in range(len(second)) if at not in others),
    )


def _match_gap(
    first: Sequence[Keys], second: Sequence[Keys], gap: tuple[int, int, int, int], level: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int, int, int]]]:
    """Pair what has one key in a gap, in order; give the gaps that are left."""
    begin, end, start, stop = gap
    if begin == end or start == stop:
        return [], [gap]
    # None is the key of nothing: what it stands for on one side is no match for it on the other.
    ones = [_own(first[at][level], at) for at in range(begin, end)]
    others = [_own(second[at][level], ~at) for at in range(start, stop)]
    matcher = SequenceMatcher(None, ones, others, autojunk=False)
    pairs, rest, last, other_last = list[tuple[int, int]](), [], begin, start
    for block in matcher.get_matching_blocks():
        one, other = begin + block.a, start + block.b
        if last < one or other_last < other:
            rest.append((last, one, other_last, other))
        pairs += [(one + at, other + at) for at in range(block.size)]
        last, other_last = one + block.size, other + block.size
    return pairs, rest


def _own(key: Hashable, at: int) -> Hashable:
    return ("no key", at) if key is None else key


def _find_moved(
    first: Sequence[Keys],
    second: Sequence[Keys],
    held: set[int],
    others: set[int],
    levels: int,
) -> list[tuple[int, int]]:
    """Pair what is the same at another place, in order; the strictest keys alone tell that."""
    moved: list[tuple[int, int]] = []
    for level in range(min(levels, 2)):
        waiting: dict[Hashable, deque[int]] = {}
        for at, keys in enumerate(second):
            if at not in others and keys[level] is not None:
                waiting.setdefault(keys[level], deque()).append(at)
        for at, keys in enumerate(first):
            partners = waiting.get(keys[level]) if at not in held else None
            if partners:
                moved.append((at, partners.popleft()))
        held |= {one for one, _ in moved}
        others |= {other for _, other in moved}
    return moved


def _straighten(
    first: Sequence[Keys],
    second: Sequence[Keys],
    pairs: list[tuple[int, int]],
    moved: list[tuple[int, int]],
    levels: int,
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Of two that changed places with each other, say of the one that moved farther that it did."""
    pairs, left = sorted(pairs), list[tuple[int, int]]()
    for one, other in sorted(moved, key=lambda pair: abs(pair[0] - pair[1])):
        at = bisect_left(pairs, (one, other))
        # Of pairs in order, those that it crosses are side by side.
        crossed = [
            pair for pair in pairs[max(0, at - 2) : at + 2] if (pair[0] < one) != (pair[1] < other)
        ]
        if len(crossed) != 1 or abs(crossed[0][0] - crossed[0][1]) <= abs(one - other):
            left.append((one, other))
            continue
        (begin, end) = crossed[0]
        if not any(first[begin][level] == second[end][level] for level in range(levels)):
            left.append((one, other))
            continue
        pairs.remove((begin, end))
        insort(pairs, (one, other))
        left.append((begin, end))
    return pairs, left


def _weigh_gap(ones: list[int], others: list[int], alike: Alike) -> list[tuple[int, int]]:
    """Pair what is alike in a gap, in order, so that the sum of the likenesses is greatest."""
    rows, columns = len(ones), len(others)
    if not rows or not columns:
        return []
    band = max(rows, columns)
    if rows * columns > _ALL_CELLS:
        band = _BAND + abs(rows - columns)
    above = [0.0] * (columns + 1)
    steps: list[bytearray] = []
    for row, one in enumerate(ones):
        middle = row * columns // rows
        low, high = max(0, middle - band), min(columns, middle + band + 1)
        current, step = above.copy(), bytearray(columns + 1)
        best = current[low]
        for column in range(low, high):
            weight = alike(one, others[column])
            through = above[column] + weight if weight > 0 else -1.0
            over = above[column + 1]
            if through >= over and through >= best and weight > 0:
                best, step[column + 1] = through, 2
            elif over >= best:
                best = over
            else:
                step[column + 1] = 1
            current[column + 1] = best
        for column in range(high, columns):
            if current[column + 1] < best:
                current[column + 1], step[column + 1] = best, 1
        above = current
        steps.append(step)
    return _walk_back(ones, others, steps)


def _walk_back(ones: list[int], others: list[int], steps: list[bytearray]) -> list[tuple[int, int]]:
    pairs, row, column = list[tuple[int, int]](), len(ones), len(others)
    while row and column:
        step = steps[row - 1][column]
        if step == 2:
            pairs.append((ones[row - 1], others[column - 1]))
            row, column = row - 1, column - 1
        elif step == 1:
            column -= 1
        else:
            row -= 1
    return pairs[::-1]


def scrub(request: Request) -> Request:
    """Give a request with a constant for whatever in its body looks like an id or a time."""
    return replace(request, body=_SCRUBBED.sub(b"0", request.body)) if request.body else request


def find_made_anew(text: str) -> tuple[str, list[str]]:
    """Give a text with a constant for whatever looks like an id or a time, and what looked so, in order."""
    if _MAY_BE.search(text) is None:
        return text, []
    found: list[str] = []

    def take(match: re.Match[bytes]) -> bytes:
        found.append(match[0].decode("ascii"))
        return b"0"

    shown = _SCRUBBED.sub(take, text.encode("utf-8", "surrogatepass"))
    return (shown.decode("utf-8", "surrogatepass"), found) if found else (text, [])


def scrubbed_key(request: Request) -> bytes:
    """Give 16 bytes over target and body, with a constant for whatever looks like an id or a time."""
    told = request.target.encode("utf-8", "surrogatepass") + b"\n" + request.body
    return blake2b(_SCRUBBED.sub(b"0", told), digest_size=16).digest()


def _endpoint(item: Item) -> Hashable:
    return item.method, item.origin, item.path


def _shaped(item: Item) -> Hashable:
    return item.method, item.origin, path_shape(item.path)


def _elsewhere(item: Item) -> Hashable:
    return item.method, path_shape(item.path)


def _same(
    left: list[Item],
    right: list[Item],
    left_key: Callable[[Item], Hashable],
    right_key: Callable[[Item], Hashable],
) -> list[tuple[Seq, Seq]]:
    """Pair what has the same key, in order."""
    waiting: dict[Hashable, deque[Seq]] = {}
    for item in right:
        waiting.setdefault(right_key(item), deque()).append(item.seq)
    return [
        (item.seq, partners.popleft()) for item in left if (partners := waiting.get(left_key(item)))
    ]


def _without(
    left: list[Item], right: list[Item], pairs: list[tuple[Seq, Seq]]
) -> tuple[list[Item], list[Item]]:
    ones, others = {one for one, _ in pairs}, {other for _, other in pairs}
    return (
        [item for item in left if item.seq not in ones],
        [item for item in right if item.seq not in others],
    )


def _by_endpoint(
    left: list[Item], right: list[Item], key: Callable[[Item], Hashable], near: Near
) -> list[tuple[Seq, Seq]]:
    groups: dict[Hashable, list[Seq]] = {}
    for item in right:
        groups.setdefault(key(item), []).append(item.seq)
    asked: dict[Hashable, list[Seq]] = {}
    for item in left:
        asked.setdefault(key(item), []).append(item.seq)
    pairs: list[tuple[Seq, Seq]] = []
    for name, seqs in asked.items():
        if name in groups:
            pairs += _nearest(seqs, groups[name], near)
    return pairs


def _nearest(left: list[Seq], right: list[Seq], near: Near) -> list[tuple[Seq, Seq]]:
    if len(left) == len(right) == 1:
        return [(left[0], right[0])]
    window = max(len(left), len(right))
    if len(left) * len(right) > _ALL_PAIRS:
        window = _WINDOW + abs(len(left) - len(right))
    ranked = sorted(
        (round(near(one, other), 3), abs(at - to), at, to)
        for at, one in enumerate(left)
        for to, other in enumerate(
            right[max(0, at - window) : at + window + 1], max(0, at - window)
        )
    )
    pairs, ones, others = [], set(), set()
    for _, _, at, to in ranked:
        if at not in ones and to not in others:
            ones.add(at)
            others.add(to)
            pairs.append((left[at], right[to]))
    return pairs
