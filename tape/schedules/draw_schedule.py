"""Draw a schedule from a seed. The same seed gives the same schedule for the same tape, on every machine and version of Python."""

from collections.abc import Sequence
from hashlib import blake2b

from ..exchange import Seq
from .scheduled_fault import SHARES, FaultWord, Schedule, ScheduledFault

_MOST = 3
"""Faults of one schedule."""
_ONE_MORE = 3
"""One in so many schedules has one fault more."""


class _Draws:
    """Numbers that look drawn."""

    def __init__(self, seed: int) -> None:
        self._seed, self._count = seed, 0

    def below(self, most: int) -> int:
        """Give a number from 0 up to, but not including, a bound."""
        self._count += 1
        text = f"{self._seed} {self._count}".encode()
        return int.from_bytes(blake2b(text, digest_size=8).digest()) % most


def draw(seed: int, places: Sequence[ScheduledFault]) -> Schedule:
    """Draw one to three faults, each at an exchange of its own.

    places: as `find_places` gives them; at least one.
    """
    draws, found = _Draws(seed), dict[Seq, ScheduledFault]()
    count = 1
    while count < _MOST and not draws.below(_ONE_MORE):
        count += 1
    for _ in range(count):
        free = [one for one in places if one.seq not in found]
        if not free:
            break
        chosen = free[draws.below(len(free))]
        if chosen.word is FaultWord.CUT:
            chosen = chosen._replace(share=1 + draws.below(SHARES - 1))
        found[chosen.seq] = chosen
    return tuple(found[seq] for seq in sorted(found))


def find_smaller(schedule: Schedule) -> list[Schedule]:
    """Give the schedules that have one fault less."""
    if len(schedule) < 2:
        return []
    return [schedule[:at] + schedule[at + 1 :] for at in range(len(schedule))]
