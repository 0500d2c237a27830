"""What changes a decision after the policy has made it: one pure function beside `decide`.

| finding          | found by                              | the decision becomes                                         |
|------------------|---------------------------------------|--------------------------------------------------------------|
| `MissedTunnel`   | `deciding/tape_lookup.py`             | SERVE the failed tunnel that comes before the request        |
| `Recognised`     | `early_answers/serve_early.py`, `websockets/player.py` | SERVE the exchange whose request begins in the same way      |
| `TooEarly`       | `deciding/tape_lookup.py`             | REFUSE: it needs an answer that was not asked for yet       |
| `Unreadable`     | `deciding/check_recorded_exchange.py` | REFUSE: the recorded exchange cannot be read                 |
| `Unsearched`     | `deciding/check_recorded_exchange.py` | REFUSE: the recorded answer was not kept whole               |
| `Disagreement`   | `deciding/tape_lookup.py`             | REFUSE: another credential or run id than the recorded one   |
| `Supposed`       | `deciding/tape_lookup.py`, `branching/hold_at_break.py` | STUB with the hypothetical answer that was given for it |
| `Ruled`          | `gate.py`                             | what the gate held it from, if it was approved; else REFUSE  |
| `Injected`       | `faults/inject.py`                    | the same, and its reason names the fault                     |
| `Refused`        | see `Cause`                           | REFUSE                                                       |

Limits and contracts change no decision: `decide` is given them as `Constraints`. So these two functions and the tables
of `Cause` are all the places in which a request is refused.
"""

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple, assert_never

from ...config import Answer
from ..diff.divergence_types import UNKEPT, Dependence
from ..exchange import Seq
from ..matching.header_agreement import Drift
from .approval_decision import ApprovalDecision, Ruling
from .decide import BRANCH, CONTRACTS, LIMITS, Action, Decision
from .refusal import CONTRACT_BROKEN, LIMIT_REACHED, NOT_ON_TAPE, STOPPED

_TAPE = "tape"
_MEND = "record it again, or restore the store from a copy"
_UNKEPT_REMEDY = "it has more places that look like secrets than are judged in one text (docs/secrets.md); ask for less at once"
_UNCODED = (
    "its content codings end too early or are damaged, or its first bytes have more places that look like secrets than are judged"
    " (docs/secrets.md); record it without `accept-encoding`, or ask for less at once"
)
"""Of an answer of which nothing was kept."""


class Cause(StrEnum):
    """Why a request is refused whatever the tape has for it."""

    NO_TAPE = "no tape"
    """There is no tape to play, or it cannot be played (`answer/refuse.py`)."""
    UNASKED = "unasked"
    """A gate holds it, and nobody can be asked (`gate.py`)."""
    UNPLAYABLE = "unplayable"
    """The recorded answer cannot be given over the protocol that was asked in (`playback.py`)."""
    TAPE_BROKEN = "tape broken"
    """The recorded answer cannot be read on (`proxy/engine/http/playback_stream.py`)."""
    LATE = "late"
    """Its client waits for what the recorded one had left (`answer/partial_delivery.py`)."""
    CUT = "cut"
    """Its client left before it had ended, and the tape has no such request (`answer/incomplete_requests.py`)."""
    STOPPED = "stopped"
    """Somebody stopped the run while it was answered (`stop.py`, `record.py`)."""
    CRASHED = "crashed"
    """An error of ours ended its connection (`record.py`)."""
    UNCHANGED = "unchanged"
    """A branch has it asked otherwise, and that cannot be done (`deciding/tape_lookup.py`)."""
    PLACEHOLDER = "placeholder"
    """A resumed run would send what stands on its tape in the place of a secret (`deciding/tape_lookup.py`)."""
    FAILED = "failed"
    """It could not be decided on (`answer/refuse.py`)."""


class Refused(NamedTuple):
    """It is refused, whatever was decided before."""

    cause: Cause
    text: str
    rule: str = ""
    """What decided that; empty for what decided before."""


class MissedTunnel(NamedTuple):
    """A tunnel that failed on the tape comes before the request, and was not asked for."""

    seq: Seq


class Recognised(NamedTuple):
    """A request that has not ended is a recorded one, as far as it has come."""

    seq: Seq
    text: str


class TooEarly(NamedTuple):
    """It depends on a recorded answer that nobody has asked for yet."""

    seq: Seq
    """Of the exchange that would answer it."""
    needs: Dependence

    @property
    def text(self) -> str:
        """In one line."""
        return (
            f"reordered: on the tape as seq {self.seq}, but {self.needs.place} has a value from the answer to"
            f" seq {self.needs.tape_seq}, which has not been asked for yet"
        )


class Unreadable(NamedTuple):
    """The exchange that would answer it cannot be read."""

    seq: Seq
    problem: str

    @property
    def text(self) -> str:
        """In one line."""
        return f"on the tape as seq {self.seq}, which cannot be read ({self.problem}); {_MEND}"


class Unsearched(NamedTuple):
    """A part of the recorded answer was not searched for secrets, and so was not kept."""

    seq: Seq
    size: int
    at: int

    @property
    def text(self) -> str:
        """In one line."""
        remedy = _UNKEPT_REMEDY if self.at else _UNCODED
        return f"on the tape as seq {self.seq}, {UNKEPT}: {self.size} bytes from byte {self.at} on; {remedy}"


class Disagreement(NamedTuple):
    """It has another credential or run id than what would answer it stands for."""

    seq: Seq
    places: tuple[Drift, ...]

    @property
    def text(self) -> str:
        """In one line."""
        return f"on the tape as seq {self.seq}, but {'; '.join(one.what for one in self.places)}"


class Supposed(NamedTuple):
    """It is at the point of a branch, or held at a breakpoint, and is given another answer there."""

    seq: Seq | None
    """Of the exchange whose answer it replaces; None where there is none."""
    answer: Answer
    source: str = ""
    """Whose answer it is, in words; empty for one that somebody gave."""

    @property
    def text(self) -> str:
        """In one line."""
        more = f", {self.source}" if self.source else ""
        if self.seq is None:
            return f"given for a request that is not on the tape{more}"
        return f"in the place of the answer of tape seq {self.seq}{more}"


class Ruled(NamedTuple):
    """The gate that held it has let go of it."""

    decision: ApprovalDecision


class Injected(NamedTuple):
    """A fault on purpose hits it."""

    text: str


Unanswerable = TooEarly | Unreadable | Unsearched | Disagreement
"""Why the tape does not answer a request that it has."""
Finding = MissedTunnel | Recognised | Unanswerable | Supposed | Ruled | Injected | Refused

_UNDECIDED = Decision(Action.REFUSE, "", "")


def revise(decision: Decision | None, finding: Finding) -> Decision:
    """Give the decision on a request, now that more is known.

    decision: the one before; None for a request that nobody has decided on, which nothing but a recorded request answers.
    """
    before = decision or _UNDECIDED
    match finding:
        case MissedTunnel(seq):
            text = "on tape: the tunnel that failed before this request"
            return Decision(Action.SERVE, text, _TAPE, seq)
        case Recognised(seq, text):
            return Decision(Action.SERVE, text, _TAPE, seq)
        case TooEarly() | Unreadable() | Unsearched() | Disagreement():
            return Decision(Action.REFUSE, finding.text, _TAPE)
        case Ruled(approval):
            then = before.then if approval.ruling is Ruling.APPROVED else None
            text = f"{before.reason}; {approval.text}"
            return Decision(then or Action.REFUSE, text, before.rule, route=before.route)
        case Supposed(_, answer, _):
            return Decision(Action.STUB, finding.text, BRANCH, answer=answer)
        case Injected(text):
            return replace(before, reason=f"{before.reason}; {text}")
        case Refused(_, text, rule):
            return replace(before, action=Action.REFUSE, reason=text, rule=rule or before.rule)
        case _:
            assert_never(finding)


def refusal_code(decision: Decision, *, stopped: bool) -> str:
    """Give the code of a refusal.

    stopped: whether the run was stopped by now, whatever the request was refused for.
    """
    if stopped:
        return STOPPED
    if decision.rule == LIMITS:
        return LIMIT_REACHED
    return CONTRACT_BROKEN if decision.rule.startswith(f"{CONTRACTS} ") else NOT_ON_TAPE
