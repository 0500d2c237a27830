"""Rules that cannot both hold: told at load, with both places.

Two rules contradict each other where they speak of exactly the same requests and one of them can never have
its say. Patterns that merely overlap are no contradiction: of those the first that fits decides, which is how
an exception to a wider rule is written.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .match_pattern import Match
from .schema import FaultRule


class Said(NamedTuple):
    """One thing that a rule says, and where."""

    match: Match
    what: str
    """As `live`, `effects.answer`, `classes.read`."""
    value: object
    """What it says; whoever says the same twice does not contradict himself."""
    line: int
    """From 1."""


_BEATEN = {
    "effects.answer": "live",
    "effects.on_miss": "live",
    "reads.repeat": "live",
}
"""What never has its say beside what, whichever stands first: a live rule goes before the tape."""


def find_contradictions(said: Iterable[Said]) -> list[tuple[int, str]]:
    """Give what contradicts an earlier rule, as index into `said` and text."""
    earlier: dict[tuple[object, ...], list[Said]] = {}
    found = []
    for index, one in enumerate(said):
        known = earlier.setdefault(_requests(one.match), [])
        wrong = next((text for other in known if (text := _compare(other, one))), "")
        if wrong:
            found.append((index, wrong))
        known.append(one)
    return found


def _requests(match: Match) -> tuple[object, ...]:
    return (match.methods, match.scheme, match.host, match.port, match.path)


def _compare(first: Said, second: Said) -> str:
    where = f"contradicts line {first.line}"
    if first.what == second.what:
        if first.value == second.value:
            return ""
        return f"{where}, which matches the same requests and comes first; remove one of the two"
    if _BEATEN.get(first.what) == second.what or _BEATEN.get(second.what) == first.what:
        idle = first.what if first.what in _BEATEN else second.what
        return f"{where}: what is live never comes to `{idle}`; remove one of the two"
    if first.what.startswith("classes.") and second.what.startswith("classes."):
        return f"{where}, which puts the same requests into {first.what}; remove one of the two"
    return ""


def find_hidden(faults: Sequence[FaultRule]) -> Iterator[tuple[int, int]]:
    """Give the faults that never hit anything, and the earlier one that is always first, both by index."""
    for index, fault in enumerate(faults):
        first = next((at for at in range(index) if _hides(faults[at], fault)), None)
        if first is not None:
            yield index, first


def _hides(first: FaultRule, second: FaultRule) -> bool:
    """Say whether a fault is injected into all that a later rule could hit."""
    if any(limit is not None for limit in (first.nth, first.every, first.share)):
        return False
    if second.inject.short_circuits and not first.inject.short_circuits:
        return False  # which hits WebSockets too
    same = _requests(first.match) == _requests(second.match)
    return same and set(second.modes) <= set(first.modes)
