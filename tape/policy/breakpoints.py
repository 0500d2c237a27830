"""Breakpoints: at which requests of a playback its agent is held, and what may be said then.

A breakpoint is one of four: the exchange of the tape that answers (`27`), any `effect`, any `divergence`, or a match pattern.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from ...config import Match, parse_match
from ..exchange import RequestClass, Seq, VerdictKind
from .decide import Action, Decision, Facts

EFFECT, DIVERGENCE = "effect", "divergence"
_NUMBER = re.compile(r"[0-9]{1,18}")


class BreakCommand(StrEnum):
    """What is said of a request that is held at a breakpoint."""

    STEP = "step"
    """It goes on, and the next request of the run is held."""
    CONTINUE = "continue"
    """It goes on, and so does the run up to the next breakpoint."""
    ANSWER = "answer"
    """It is given another answer, and the run goes on up to the next breakpoint."""
    QUIT = "quit"
    """The run is stopped."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where an agent is held."""

    text: str
    """As it was written."""
    seq: Seq | None = None
    match: Match | None = None

    def hits(self, facts: Facts, decision: Decision, tape_seq: Seq | None) -> bool:
        """Say whether a request on which was decided is to be held.

        tape_seq: of the recorded exchange that was found for it.
        """
        if facts.request_class is RequestClass.TELEMETRY or decision.action is Action.CONTROL:
            return False
        if self.seq is not None:
            return tape_seq == self.seq
        if self.match is not None:
            return self.match.maybe(facts.ways)
        if self.text == EFFECT:
            return facts.request_class is RequestClass.EFFECT
        return decision.verdict in (VerdictKind.REFUSED, VerdictKind.STUBBED)

    @property
    def unmet(self) -> str:
        """Why nothing was held there, where nothing was."""
        if self.seq is not None:
            return f"no request came that exchange {self.seq} of the tape answers"
        if self.match is not None:
            return "no request came that it names"
        if self.text == EFFECT:
            return "no effect was requested"
        return "no request was refused or stubbed because the tape does not have it"


def parse_breakpoint(text: str) -> Breakpoint:
    """Parse a breakpoint.

    Raises: ValueError, whose text says what would be right.
    """
    if text in (EFFECT, DIVERGENCE):
        return Breakpoint(text)
    if _NUMBER.fullmatch(text):
        if int(text) < 1:
            raise ValueError(f"{text!r} is no exchange; expected a number from 1 on")
        return Breakpoint(text, Seq(int(text)))
    try:
        return Breakpoint(text, match=parse_match(text))
    except ValueError as error:
        raise ValueError(
            f"{text[:60]!r} is no breakpoint: expected a seq of the tape, {EFFECT}, {DIVERGENCE} or a match pattern;"
            f" as a pattern: {error}"
        ) from None
