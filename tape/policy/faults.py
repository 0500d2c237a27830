"""Injected faults: which requests they hit, and what the client receives.

1. Which are hit follows from the rules, their seed and the order in which matching requests arrive, and from nothing
   else: no clock, no chance. Each rule counts all that match it, whether or not another rule hits them; of several
   rules that hit a request the first does.
2. What a fault does is in `tape/faults/`: it is laid over the recorded answer as steps, the same steps that play a
   recorded fault.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from ...config import FaultRule, Inject, Mode
from ..exchange import Ending

if TYPE_CHECKING:
    from .decide import Facts


class Injection(NamedTuple):
    """A rule that hits a request."""

    rule: FaultRule
    nth: int
    """Which of the requests that match the rule it is, from 1."""

    @property
    def kind(self) -> Inject:
        """What is injected."""
        return self.rule.inject

    @property
    def ending(self) -> Ending:
        """How the client's connection ends, where it does."""
        return Ending(self.rule.ending)

    @property
    def text(self) -> str:
        """One line for people."""
        return f"injected: {self.rule.label}"


class Faults:
    """The rules of one run, and how many requests each has matched so far."""

    def __init__(self, rules: Sequence[FaultRule], seed: int, mode: Mode) -> None:
        """Begin a run in this mode; rules for other modes are left out."""
        self.seed = seed
        self._rules = [rule for rule in rules if mode in rule.modes]
        self._counts = [0] * len(self._rules)

    def take(self, facts: "Facts", *, upgrade: bool = False) -> Injection | None:
        """Count a request that has arrived; give what is injected into it.

        upgrade: it asks for a WebSocket, which is hit by what needs no answer alone.
        """
        found = None
        ways = facts.ways if self._rules else None
        for index, rule in enumerate(self._rules):
            if upgrade and not rule.inject.short_circuits:
                continue
            if ways is None or not rule.match.maybe(ways):
                continue
            self._counts[index] += 1
            if found is None and hits(rule, self._counts[index], self.seed):
                found = Injection(rule, self._counts[index])
        return found


def hits(rule: FaultRule, nth: int, seed: int) -> bool:
    """Say whether a rule hits the nth request that matches it, from 1."""
    if rule.nth is not None:
        return nth == rule.nth
    if rule.every is not None:
        return nth % rule.every == 0
    if rule.share is not None:
        return _draw(rule.label, nth, seed) < rule.share
    return True


def _draw(label: str, nth: int, seed: int) -> float:
    """Give a number from 0 up to 1 that looks drawn, and is always the same."""
    text = f"{seed} {nth} {label}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") / 2**64
