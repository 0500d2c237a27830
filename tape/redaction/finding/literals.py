"""Many texts that are looked for as they are: learned values in all their spellings.

Three tiers, so that nobody waits for a compile:

* **pending**: each value by itself, needle by needle in a short text, in a longer one as an automaton that is made in some 0.02 ms;
* **recent**: up to 64 values as one database, which is compiled when four are pending, or when fewer have cost as much (some ms);
* **all**: up to `MAX_VALUES`, compiled when `recent` is full (some 0.1 s).

Whoever makes a set says who compiles: `later` takes the work. A database is put in its place by one assignment, and values are
pending until they are in one, so that a search finds each of them at any time. Without hyperscan the databases are automata.
"""

from collections.abc import Callable, Sequence
from operator import is_not
from typing import NamedTuple, Protocol

import ahocorasick_rs

from .pattern_prefilter import BYTES_A_LITERAL, Hits, compile_literals, most_places
from .searched_text import without_overlaps

_PENDING = 4
"""Values that wait for a compile; fewer cost a search less than a compile does."""
_RECENT = 64
_WORTH = 1 << 20
"""Bytes that are searched for values that are pending, for each value of a compile that spares the next text that."""
_A_TEXT = 4096
"""Bytes that cost as much as the fixed costs of a text."""
_BEGINNING = 24
"""Bytes of a needle that are looked for at first."""
_SHORT = 2048
"""Bytes below which a text is searched for each needle by itself."""


class Needle(NamedTuple):
    """One way in which a value may be written."""

    text: bytes
    value: bytes
    offset: int
    """Of base64 the bytes, modulo 3, before the value; -1 as it is; -2 hex; -3 hex in capitals; below -3 a text of JSON, once for each; from -9 on with escapes."""


class Match(NamedTuple):
    """Where a value was found."""

    start: int
    end: int
    needle: Needle


Later = Callable[[Callable[[], None]], object]
"""Takes work that nobody waits for."""


_STRANGE = (b"\x00\x01\x05\x02\x07\x01\x03\x06", b"\x06\x02\x01\x07\x03\x05\x04\x01")
"""Texts that are looked for too: needles that begin with few different bytes are found a hundred times slower (2026-11)."""


class _Finds(Protocol):
    def find(self, data: bytes) -> Hits | None: ...


class _Automaton:
    """Needles as an automaton; of long ones their beginnings, for it takes as long to make as it has bytes."""

    def __init__(self, needles: Sequence[Needle]) -> None:
        self._needles = needles
        by_beginning: dict[bytes, list[int]] = {}
        for which, needle in enumerate(needles):
            by_beginning.setdefault(needle.text[:_BEGINNING], []).append(which)
        self._which = list(by_beginning.values())
        self._cut = any(len(needle.text) > _BEGINNING for needle in needles)
        kinds = ahocorasick_rs.MatchKind
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            [*by_beginning, *_STRANGE],
            matchkind=kinds.Standard if self._cut else kinds.LeftmostLongest,
            implementation=ahocorasick_rs.Implementation.ContiguousNFA,
        )

    def find(self, data: bytes) -> Hits | None:
        found = self._automaton.find_matches_as_indexes(data, overlapping=self._cut)
        if not found:
            return None
        count, needles = len(self._which), self._needles
        ends = [
            (start + len(needles[number].text), number)
            for which, start, _ in found
            if which < count
            for number in self._which[which]
            if not self._cut or data.startswith(needles[number].text, start)
        ]
        ends.sort()
        most = most_places(len(data), BYTES_A_LITERAL)
        if len(ends) > most:
            return Hits(ends[:most], ends[most][0])
        return Hits(ends, len(data))


class _Waiting:
    """Needles of one value that wait for a compile."""

    def __init__(self, needles: Sequence[Needle]) -> None:
        self._needles = needles
        self._automaton: _Automaton | None = None

    def find(self, data: bytes) -> Hits | None:
        if len(data) < _SHORT:
            return self._find_each(data)
        automaton = self._automaton
        if automaton is None:
            automaton = self._automaton = _Automaton(self._needles)
        return automaton.find(data)

    def _find_each(self, data: bytes) -> Hits | None:
        found: list[tuple[int, int]] = []
        for which, needle in enumerate(self._needles):
            text = needle.text
            at = data.find(text)
            while at >= 0:
                found.append((at + len(text), which))
                at = data.find(text, at + len(text))
        found.sort()
        return Hits(found, len(data)) if found else None


class _Both:
    """Needles in two sets; those of the second are numbered behind those of the first."""

    def __init__(self, first: _Finds, second: _Finds, count: int) -> None:
        self._first = first
        self._second = second
        self._count = count

    def find(self, data: bytes) -> Hits | None:
        one, other = self._first.find(data), self._second.find(data)
        if other is None:
            return one
        more = [(end, which + self._count) for end, which in other.found]
        if one is None:
            return Hits(more, other.searched)
        return Hits(sorted([*one.found, *more]), min(one.searched, other.searched))


class _Tier(NamedTuple):
    values: tuple[bytes, ...]
    needles: tuple[Needle, ...]
    finds: _Finds


_EMPTY = _Tier((), (), _Automaton([Needle(b"\0", b"", -1)]))


class Literals:
    """A set of values that grows. May be used from any thread."""

    def __init__(
        self,
        spell: Callable[[bytes], list[Needle]],
        known: dict[bytes, None],
        later: Later | None = None,
    ) -> None:
        """Begin with none.

        known: the values that count; one that is in it no more is forgotten, and taken out at the next compile of all. spell: gives the ways in which a value may be written. later: takes work to be done by another thread; without it a
            search does the work that is due.
        """
        self._spell = spell
        self._known = known
        self._later = later
        self._pending: dict[bytes, _Tier | None] = {}
        self._spent = 0
        """What texts have cost for values that are pending, in bytes."""
        self._tiers: tuple[_Tier, _Tier] = (_EMPTY, _EMPTY)
        self._joined: tuple[list[_Tier], _Tier] = ([], _EMPTY)
        self._turn = [True]
        """The right to compile: taken out and put back in one step each."""

    def add(self, value: bytes) -> None:
        """Take a value."""
        self._pending[value] = None
        if self._later is not None and len(self._pending) >= _PENDING:
            self._begin(self._later)

    def _begin(self, later: Later) -> None:
        try:
            self._turn.pop()
        except IndexError:
            return  # somebody is at it, and takes what is pending then
        later(self._compile)

    def forget(self, value: bytes) -> None:
        """Forget a value; those that are pending are gone at once."""
        self._pending.pop(value, None)

    def is_clean(self, data: bytes) -> bool:
        """Say whether a text has none of the values, not even one that was forgotten, and was searched to its end."""
        if self._pending:
            matches, searched = self.find(data)
            return not matches and searched == len(data)
        recent, every = self._tiers
        return (recent is _EMPTY or recent.finds.find(data) is None) and (
            every is _EMPTY or every.finds.find(data) is None
        )

    def find(self, data: bytes) -> tuple[list[Match], int]:
        """Find where values are in a text, and how much of it was searched; of places that overlap, the first and longest."""
        known = self._known
        if not known:
            return [], len(data)
        pending = self._take_pending(len(data)) if self._pending else []
        if len(pending) > _RECENT:
            pending = [self._join(pending)]
        searched = len(data)
        found: list[Match] = []
        for tier in (*pending, *self._tiers) if pending else self._tiers:
            if not tier.values or (hits := tier.finds.find(data)) is None:
                continue
            searched = min(searched, hits.searched)
            for end, which in hits.found:
                needle = tier.needles[which]
                if needle.value in known:
                    found.append(Match(end - len(needle.text), end, needle))
        if not found:
            return found, searched
        found.sort(key=lambda match: (match.start, -match.end))
        return without_overlaps(found), searched

    def _join(self, pending: list[_Tier]) -> _Tier:
        """Make one of many that are pending; the next text has mostly the same ones."""
        of, joined = self._joined
        if len(of) != len(pending) or any(map(is_not, of, pending)):
            joined = _joined(pending, fast=False)
            self._joined = pending, joined
        return joined

    def _take_pending(self, size: int) -> list[_Tier]:
        """Give what is pending, and have it compiled where that has become worth it."""
        if self._later is None:
            if len(self._pending) >= _RECENT:
                self._begin(lambda work: work())
            return self._made()
        pending = self._made()
        self._spent += (size + _A_TEXT) * len(pending)
        if self._spent > _WORTH * (len(pending) + len(self._tiers[0].values)):
            self._begin(self._later)
        return pending

    def _made(self) -> list[_Tier]:
        """Give what is pending; what nobody looked for yet is made now."""
        made = []
        for value, tier in tuple(self._pending.items()):
            if tier is None:
                needles = _once(self._spell(value))
                tier = _Tier((value,), needles, _Waiting(needles))
                if value in self._pending:
                    self._pending[value] = tier
            made.append(tier)
        return made

    def _compile(self) -> None:
        """Move what is pending into a database."""
        try:
            while True:
                pending = self._made()
                self._spent = 0
                recent, every = self._tiers
                if len(recent.values) + len(pending) <= _RECENT:
                    self._tiers = _joined((recent, *pending)), every
                else:
                    self._tiers = _EMPTY, _joined((every, recent, *pending), self._known)
                for tier in pending:
                    self._pending.pop(tier.values[0], None)
                if len(self._pending) < _PENDING:
                    break
        finally:
            self._turn.append(True)


def _joined(
    tiers: Sequence[_Tier], known: dict[bytes, None] | None = None, *, fast: bool = True
) -> _Tier:
    needles = [
        needle
        for tier in tiers
        for needle in tier.needles
        if known is None or needle.value in known
    ]
    # The binding of hyperscan takes a text for one that ends at its first zero byte.
    every = sorted(_once(needles), key=lambda needle: b"\0" in needle.text)
    whole = sum(b"\0" not in needle.text for needle in every)
    fast_set = compile_literals([needle.text for needle in every[:whole]]) if fast else None
    finds: _Finds
    if fast_set is None:
        finds = _Automaton(every)
    elif whole < len(every):
        finds = _Both(fast_set, _Automaton(every[whole:]), whole)
    else:
        finds = fast_set
    return _Tier(tuple({needle.value: None for needle in every}), tuple(every), finds)


def _once(needles: Sequence[Needle]) -> tuple[Needle, ...]:
    """Give needles without those that are spelt as an earlier one."""
    found: dict[bytes, Needle] = {}
    for needle in needles:
        found.setdefault(needle.text, needle)
    return tuple(found.values())
