"""The cursor of a playback: which recorded exchange answers a request next.

Identical requests are served in recorded order; between different fingerprints the order is free,
because agents call in parallel. Finding and moving are apart: `find` looks, `take` moves.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..exchange import Fingerprint, RequestClass, Seq

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

    def __init__(self, next_use: NextUse, taken: Callable[[Seq], None] = lambda _: None) -> None:
        """Start at the beginning of the tape that `next_use` reads.

        taken: told of each exchange that is about to be served.
        """
        self._next_use = next_use
        self._taken = taken
        self._last: dict[Fingerprint, Seq] = {}
        self._times: dict[Fingerprint, int] = {}
        self._served: set[Seq] = set()

    def find(
        self, fingerprint: Fingerprint, request_class: RequestClass, *, repeat: bool = False
    ) -> Hit | Exhausted | Unknown:
        """Find what answers a request, without moving.

        repeat: a rule says that the last answer to this read is to be served again; of other classes it says
            nothing.
        """
        last = self._last.get(fingerprint, Seq(0))
        following = self._next_use(fingerprint, last)
        if following is not None:
            return Hit(following)
        if not last:
            return Unknown()
        if request_class is RequestClass.TELEMETRY or (
            repeat and request_class is RequestClass.READ
        ):
            return Hit(last, repeated=True)
        return Exhausted(last, self._times[fingerprint])

    def take(self, fingerprint: Fingerprint, hit: Hit) -> None:
        """Move past an exchange that is about to be served."""
        self._last[fingerprint] = hit.seq
        self._times[fingerprint] = self._times.get(fingerprint, 0) + 1
        self._served.add(hit.seq)
        self._taken(hit.seq)

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
