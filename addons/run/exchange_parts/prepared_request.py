"""A request as it is compared and stored, and what a tape was found to have for it."""

from dataclasses import dataclass

from ....tape.exchange import Exchange, Fingerprint, Redaction, Request, Seq
from ....tape.policy.decide import Found
from ....tape.policy.resume import UnknownEffect
from ....tape.policy.revise import Unanswerable
from ....tape.stubs.synthesize import Made


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What was asked, without its secrets, before anything is changed for the upstream."""

    request: Request
    """Without its body until that is searched."""
    redactions: tuple[Redaction, ...] = ()
    fingerprint: Fingerprint | None = None
    effect_key: bytes | None = None
    """Of an effect that was read whole, or that the tape answers before it has ended."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the tape has for a request."""

    found: Found | None = None
    reordered_results: bool = False
    """Whether it lists the results of tools in another order than the recorded one."""
    wrong: Unanswerable | None = None
    """Why it is not answered by what was found."""
    recorded: Exchange | None = None
    """What is to be served, read before the cursor moved past it."""
    asked_otherwise: bool = False
    """Whether a branch has it asked otherwise than the agent did."""
    passed_over: Seq | None = None
    """The recorded exchange that would answer it, where a branch asks the model all the same."""
    made: Made | None = None
    """What is answered after the pattern of the tape, where it does not hold the effect."""
    unknown: UnknownEffect | None = None
    """The effect of a crashed run without an outcome that it asks for again."""
    answered: bool = False
    """Whether somebody answers it at a breakpoint in whose place the tape, or a live rule, would have: it diverges from nothing."""
    in_place_of: Seq | None = None
    """The recorded exchange that would have been served then."""
    given: Seq | None = None
    """Under `runs.resume: auto`: the earlier request that was the same, and another process's."""
