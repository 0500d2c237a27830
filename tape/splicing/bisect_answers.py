"""Search for the answer that turns a run bad: how many answers of the good run are spliced in next, and what has been found.

Rules:

1. Nothing is named that did not happen. First both ends are run: with no answer of the good run it has to be bad, with all of them good.
   What its tapes say is not enough, since something beside the answers may have made the recording bad.
2. Then a pair of neighbours is looked for, of which the one with fewer answers is bad and the other good.
3. What cannot be tested says nothing: its nearest neighbours are tried instead. An end that cannot be tested ends the search.
4. A result that comes by chance is none: unless each number of answers is run several times anyway, both runs of the pair are made
   once more before it is named, and have to be as they were.
5. Among `count` answers the search takes at most ceil(log2 count) runs, and more only for what cannot be tested. The ends are two
   beside these, and the proof takes at most two more, which repeat the pair.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Standing(StrEnum):
    """How a run stands."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    """It could not be tested."""


def most_runs(count: int) -> int:
    """Give how many runs the search takes at most to name one of so many answers, if each run can be tested."""
    return math.ceil(math.log2(count))


END_RUNS = 2
"""Runs that repeat both recordings before the search."""
PROOF_RUNS = 2
"""Runs that repeat the pair."""


@dataclass(slots=True)
class Search:
    """A search among so many answers."""

    count: int
    proves: bool = True
    """Whether the pair is run once more before it is named; not where each of its runs is many already."""
    runs: int = 0
    """Those of the ends and of the proof not among them."""
    problem: str = ""
    """Why nothing can be named; empty while that is open, and once something is."""
    _known: dict[int, Standing] = field(default_factory=dict)
    _seen: Counter[int] = field(default_factory=Counter)
    """How often each number of answers has been tried."""

    @property
    def known(self) -> Mapping[int, Standing]:
        """How each number of answers stands that has been tried."""
        return MappingProxyType(self._known)

    @property
    def low(self) -> int:
        """The most answers with which a run is bad."""
        return max((one for one, how in self._known.items() if how is Standing.BAD), default=0)

    @property
    def high(self) -> int:
        """The fewest answers with which a run is good."""
        found = (one for one, how in self._known.items() if how is Standing.GOOD)
        return min(found, default=self.count)

    @property
    def found(self) -> int | None:
        """The answer that turns the run bad, by its place from 1; None while none is proved."""
        if self.problem or self._next() is not None or self._unproved() is not None:
            return None
        return self.high

    def next(self) -> int | None:
        """Give how many answers to splice in next; None where nothing is left to be tried."""
        if self.problem:
            return None
        count = self._next()
        return self._unproved() if count is None else count

    def _unproved(self) -> int | None:
        """Give the run of the pair that has been seen once only; None where both have been seen twice."""
        if not self.proves or self.high - self.low > 1:
            return None
        return next((one for one in (self.low, self.high) if self._seen[one] < 2), None)

    def _next(self) -> int | None:
        ends = (one for one in (0, self.count) if one not in self._known)
        if (end := next(ends, None)) is not None:
            return end
        untried = [one for one in range(self.low + 1, self.high) if one not in self._known]
        if not untried or self.runs >= 3 * (most_runs(self.count) + END_RUNS):
            return None
        middle = (self.low + self.high) / 2
        return min(untried, key=lambda one: (abs(one - middle), one))

    def tell(self, count: int, standing: Standing) -> None:
        """Note how a run with so many answers stands."""
        self.runs += 0 < count < self.count and count not in self._known
        self._seen[count] += 1
        before = self._known.setdefault(count, standing)
        if before is not standing:
            self.problem = (
                f"with {count} answers of the good run it was {before} once and {standing} another time:"
                " the result comes by chance"
            )
        elif standing is Standing.UNKNOWN and count in (0, self.count):
            which = "without any answer of the good run" if not count else "with all of them"
            self.problem = f"{which} it could not be tested"
        elif count == 0 and standing is Standing.GOOD:
            self.problem = (
                "the bad run is good when it is run again, without any answer of the good run:"
                " something else than its answers made it bad"
            )
        elif count == self.count and standing is Standing.BAD:
            self.problem = "it is bad with all answers of the good run: none of them turns it bad"
        elif self._next() is None and self.high - self.low > 1:
            self.problem = f"between {self.low} and {self.high} answers of the good run nothing could be tested"
