"""Compare attempts that came to nothing with those of a tape, by their number: of each kind, host and port as many.

What merely may have been asked on another connection is reported alone, since clients connect ahead of what they ask, as often as
they like: see `Attempt.beside`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..records.failed_attempt import Attempt, AttemptKind

MAY_VARY = frozenset({AttemptKind.EMPTY_TUNNEL, AttemptKind.FAILED_HANDSHAKE})
"""Kinds that clients leave behind which connect ahead of what they ask, or to several addresses at once."""
_KEPT = 1000
"""Attempts of one kind at one place that are kept; the counts stay exact."""
_NAMED = 20

Key = tuple[AttemptKind, str, int]


@dataclass(slots=True)
class AttemptCount:
    """The attempts of one kind at one host and port in a run."""

    count: int = 0
    firm: int = 0
    """Those that another run of the same agent is to have, too."""
    kept: list[Attempt] = field(default_factory=list)
    """The first of those, and the very first of all if there are none."""
    processes: dict[str, None] = field(default_factory=dict)

    def add(self, one: Attempt) -> None:
        """Count one more."""
        varies = one.kind in MAY_VARY and one.beside and not one.distrusted
        if not varies and not self.firm:
            self.kept.clear()
        self.count += 1
        self.firm += not varies
        if (not varies or not self.kept) and len(self.kept) < _KEPT:
            self.kept.append(one)
        if one.process and len(self.processes) < _NAMED:
            self.processes[one.process] = None


AttemptCounts = dict[Key, AttemptCount]


def add(counts: AttemptCounts, one: Attempt) -> None:
    """Count one more attempt."""
    counts.setdefault((one.kind, one.host, one.port), AttemptCount()).add(one)


@dataclass(frozen=True, slots=True)
class Compared:
    """All attempts of one kind at one place, and what became of the comparison with the tape."""

    first: Attempt
    """Of those that the tape does not have; else of those of the run; of the tape's where the run has none."""
    count: int
    firm: int
    recorded: int | None
    """None where there is no tape."""
    surplus: tuple[Attempt, ...] = ()
    """Those that the tape does not have, in order; the first."""
    missing: bool = False
    """Whether the tape has more."""
    processes: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether it is a divergence."""
        return bool(self.surplus) or self.missing


def summarize(counts: Mapping[Key, AttemptCount]) -> list[Compared]:
    """Give the attempts of a run that has no tape."""
    return [
        Compared(one.kept[0], one.count, one.firm, None, processes=tuple(one.processes))
        for one in counts.values()
    ]


def compare(
    present: Mapping[Key, AttemptCount], recorded: Mapping[Key, AttemptCount]
) -> list[Compared]:
    """Compare the attempts of a replay with those of its tape, by their number."""
    none = AttemptCount()
    return [
        _compare(present.get(key, none), recorded.get(key, none))
        for key in dict.fromkeys((*present, *recorded))
    ]


def _compare(now: AttemptCount, then: AttemptCount) -> Compared:
    """Compare those of one kind at one place: an attempt that may vary is neither missed nor surplus."""
    surplus: tuple[Attempt, ...] = ()
    if now.firm > then.count:
        surplus = tuple(now.kept[then.count :] or now.kept[-1:])
    return Compared(
        (surplus or now.kept or then.kept)[0],
        now.count,
        now.firm,
        then.count,
        surplus,
        missing=then.firm > now.count,
        processes=tuple(now.processes or then.processes),
    )
