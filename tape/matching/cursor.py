"""The cursor of a playback: which recorded exchange answers a request next.

Among identical requests the one whose other header fields agree best is served, and of those that agree alike the first that
was recorded; between different fingerprints the order is free, because agents call in parallel. Finding and moving are apart: `find` looks, `take` moves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from ..exchange import Fingerprint, RequestClass, Seq

_LOOKED_AT = 64
"""Candidates of one request that are compared by their other header fields."""

Rank = Callable[[Seq], int]
"""How well the other header fields of a recorded request agree with those of the present one: 0 is in all."""
NextUse = Callable[[Fingerprint, int], Seq | None]
"""First seq above a number that carries a fingerprint on the tape, or None."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A recorded exchange answers."""

    seq: Seq
    repeated: bool = False
    """It was served before: only telemetry is, and a read whose last answer was declared to be repeated."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The tape held this request, and every answer to it has been served."""

    last: Seq
    times: int


@dataclass(frozen=True, slots=True)
class Unknown:
    """The tape never held this request."""


class Cursor:
    """Position of one playback, per fingerprint."""

    def __init__(
        self,
        next_use: NextUse,
        taken: Callable[[Seq], None] = lambda _: None,
        given_back: Callable[[Seq], None] = lambda _: None,
    ) -> None:
        """Start at the beginning of the tape that `next_use` reads.

        taken: told of each exchange that is about to be served.
        given_back: told of one that is not served after all.
        """
        self._next_use = next_use
        self._taken = taken
        self._given_back = given_back
        self._last: dict[Fingerprint, Seq] = {}
        self._behind: dict[Fingerprint, Seq] = {}
        """Up to which every exchange has been served."""
        self._times: dict[Fingerprint, int] = {}
        self._served: set[Seq] = set()

    def find(
        self,
        fingerprint: Fingerprint,
        request_class: RequestClass,
        *,
        repeat: bool = False,
        rank: Rank | None = None,
    ) -> Hit | Exhausted | Unknown:
        """Find what answers a request, without moving.

        rank: chooses where several may.
        repeat: a rule says that the last answer to this read is to be served again; of other classes it says
            nothing.
        """
        following = self._find_unserved(fingerprint, rank)
        if following is not None:
            return Hit(following)
        last = self._last.get(fingerprint)
        if not last:
            return Unknown()
        if request_class is RequestClass.TELEMETRY or (
            repeat and request_class is RequestClass.READ
        ):
            return Hit(last, repeated=True)
        return Exhausted(last, self._times[fingerprint])

    def take(self, fingerprint: Fingerprint, hit: Hit) -> None:
        """Move past an exchange that is about to be served."""
        self._last[fingerprint] = max(hit.seq, self._last.get(fingerprint, hit.seq))
        self._times[fingerprint] = self._times.get(fingerprint, 0) + 1
        self._served.add(hit.seq)
        behind = self._behind.get(fingerprint, Seq(0))
        while (following := self._next_use(fingerprint, behind)) in self._served:
            assert following is not None
            behind = following
        self._behind[fingerprint] = behind
        self._taken(hit.seq)

    def exchange(self, fingerprint: Fingerprint, served: Seq, other: Seq) -> None:
        """Serve another exchange of a fingerprint in the place of one that was taken, which is to be served later."""
        self._served.discard(served)
        self._behind[fingerprint] = min(self._behind.get(fingerprint, Seq(0)), Seq(served - 1))
        self._times[fingerprint] -= 1
        self._given_back(served)
        self.take(fingerprint, Hit(other))

    def uses(self, fingerprint: Fingerprint) -> Iterator[Seq]:
        """Give the exchanges that carry a fingerprint, served or not, in recorded order; the first of many."""
        return islice(self._after(fingerprint, Seq(0)), _LOOKED_AT)

    def _after(self, fingerprint: Fingerprint, seq: Seq) -> Iterator[Seq]:
        while (following := self._next_use(fingerprint, seq)) is not None:
            yield following
            seq = following

    def _find_unserved(self, fingerprint: Fingerprint, rank: Rank | None) -> Seq | None:
        after = self._after(fingerprint, self._behind.get(fingerprint, Seq(0)))
        unserved = (seq for seq in after if seq not in self._served)
        first = next(unserved, None)
        if first is None or rank is None:
            return first
        second = next(unserved, None)
        if second is None:
            return first
        best, least = first, rank(first)
        for seq in islice(chain((second,), unserved), _LOOKED_AT - 1):
            if not least:
                break
            found = rank(seq)
            if found < least:
                best, least = seq, found
        return best

    def served(self, seq: Seq) -> bool:
        """Say whether an exchange has been served."""
        return seq in self._served

    @property
    def served_seqs(self) -> frozenset[Seq]:
        """All exchanges that have been served, as they are now."""
        return frozenset(self._served)

    @property
    def count(self) -> int:
        """How many exchanges of the tape have been served."""
        return len(self._served)
