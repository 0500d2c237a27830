"""Align two recordings of one task: which request of one corresponds to which request of the other.

Rules, in the order they are applied; each sees what the ones before unused:

1. Requests with the same fingerprint are partners, in their order.
2. Of one method, origin and path, those are that are the same but for what looks like an id or a time.
3. Of the rest of these the nearest are, and of equally near ones those at the same place.
4. The same where paths differ in ids alone, and last where the origin is another one.
5. What is left has no partner.

Agents call in parallel, so order decides between equals only. A value that looks like an id or a time does not
make requests less near: the two recordings were made at other times.
"""

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
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

_SCRUBBED = re.compile(
    rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|(?<![0-9a-zA-Z])(?:\d{10,}|[0-9a-fA-F]{16,})(?![0-9a-zA-Z])"
    rb"|(?<=[_-])(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{8,}"
)


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


def scrub(request: Request) -> Request:
    """Give a request with a constant for whatever in its body looks like an id or a time."""
    return replace(request, body=_SCRUBBED.sub(b"0", request.body)) if request.body else request


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
