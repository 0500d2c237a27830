"""Which id or time of one run stands for which of the other, from first to last."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

FEW_DIGITS = 5
"""Digits up to which a number proves nothing: another may be the same by chance."""


class Pair(NamedTuple):
    """Two ids or times at one place."""

    first: str
    second: str
    may_begin: bool
    """Whether one may stand for the other from here on: both appear in an answer, or each request has its own."""
    is_time: bool = False
    is_counted: bool = False
    """Whether they are numbers of few digits: such a pair says nothing of the same numbers elsewhere."""
    label: str = ""
    """Name of the place, of such numbers."""


@dataclass(slots=True)
class Renaming:
    """Which id or time of the second run stands for one of the first."""

    _there: dict[str, str] = field(default_factory=dict)
    _back: dict[str, str] = field(default_factory=dict)
    _times: set[tuple[str, str]] = field(default_factory=set)
    _counted: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of numbers that answers made."""
    _made: set[tuple[str, str]] = field(default_factory=set)
    """Each of these numbers, on its side, with nothing and with the name of its place."""

    def allows(self, pair: Pair) -> bool:
        """Say whether a pair agrees with those before; it is not noted."""
        if pair.is_counted:
            return self._fits_counted(pair, self._counted, self._made)
        one, other = pair[:2]
        if one == other and (pair.is_time or not one):
            return True
        if pair.is_time:
            return pair.may_begin or (one, other) in self._times
        known, known_back = self._there.get(one), self._back.get(other)
        if known is None and known_back is None:
            return one == other or pair.may_begin
        return known == other and known_back == one

    @property
    def count(self) -> int:
        """How many ids are known to have a partner by now."""
        return len(self._there)

    def known(self, count: int) -> dict[str, str]:
        """Give the first pairs of ids that were noted: what was known when there were so many."""
        return dict(islice(self._there.items(), count))

    def partner(self, one: str) -> str | None:
        """Give the id of the second run that stands for one of the first; None if none does so far."""
        return self._there.get(one)

    def find_other(self, one: str) -> str:
        """Give the id of the second run that one of the first stands for, if it is another; empty where none is known."""
        known = self._there.get(one, "")
        counted = (there for first, there in self._counted if first == one)
        return known if known != one and known else next((t for t in counted if t != one), "")

    def fits(self, pairs: Iterable[Pair]) -> bool:
        """Say whether pairs agree with those before; they are noted if they do.

        What stands for itself does so from then on: an agent that was given both and takes the other one differs.
        """
        there, back = dict[str, str](), dict[str, str]()
        times = set[tuple[str, str]]()
        pairs = list(pairs)
        counted = {pair[:2] for pair in pairs if pair.is_counted and pair.may_begin}
        made = {
            (side, label)
            for pair in pairs
            if pair.is_counted and pair.may_begin
            for side in (f"A {pair.first}", f"B {pair.second}")
            for label in ("", pair.label)
        }
        for pair in pairs:
            one, other, may_begin, is_time = pair[:4]
            if pair.is_counted:
                if not self._fits_counted(pair, self._counted | counted, self._made | made):
                    return False
                continue
            if one == other and (is_time or not one):
                continue
            if is_time:
                if not may_begin and (one, other) not in self._times | times:
                    return False
                times.add((one, other))
                continue
            known = self._there.get(one, there.get(one))
            known_back = self._back.get(other, back.get(other))
            if known is None and known_back is None:
                if one != other and not may_begin:
                    return False
            elif known != other or known_back != one:
                return False
            there[one], back[other] = other, one
        self._times |= times
        self._counted |= counted
        self._made |= made
        self._there |= there
        self._back |= back
        return True

    @staticmethod
    def _fits_counted(
        pair: Pair, counted: set[tuple[str, str]], made: set[tuple[str, str]]
    ) -> bool:
        """Say whether two numbers are a pair that an answer made, or one number that none did.

        A few digits may be the same by chance: what was made at a place with another name says nothing of them.
        """
        if pair[:2] in counted:
            return True
        if pair.first != pair.second:
            return False
        is_told = len(pair.first) > FEW_DIGITS or not pair.first.isdecimal()
        label = "" if is_told else pair.label or None
        return label is None or not {(f"A {pair.first}", label), (f"B {pair.second}", label)} & made
