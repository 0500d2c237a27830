"""What changes a decision after the policy has made it: the table, and what confirms an approval."""

from dataclasses import replace

import pytest

from playhead.config import Gate
from playhead.tape.diff.divergence_types import Dependence, Difference
from playhead.tape.exchange import Seq, VerdictKind
from playhead.tape.matching.header_agreement import Drift
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling, confirm
from playhead.tape.policy.decide import CONTRACTS, LIMITS, Action, Decision
from playhead.tape.policy.decide import STOPPED as STOPPED_RULE
from playhead.tape.policy.refusal import (
    CONTRACT_BROKEN,
    LIMIT_REACHED,
    NOT_ON_TAPE,
    STOPPED,
)
from playhead.tape.policy.revise import (
    Cause,
    Disagreement,
    Finding,
    Injected,
    MissedTunnel,
    Recognised,
    Refused,
    Ruled,
    TooEarly,
    Unreadable,
    Unsearched,
    refusal_code,
    revise,
)

_SERVED = Decision(Action.SERVE, "on tape", "tape", Seq(4))
_HELD = Decision(
    Action.HOLD, "held by the gate", "effects POST *", gate=Gate("always"), then=Action.FORWARD
)
_LIVE = replace(_HELD, then=Action.LIVE)
_FORWARDED = Decision(Action.FORWARD, "mode record", "mode")
_NEEDS = Dependence(Seq(2), "body $.id", "body $.id", "7")
_KEY = Drift("another key", Difference("header authorization", "(a)", "(b)"))
_ID = Drift("another run id", Difference("body $.run", "(a)", "(b)"))
_APPROVED = ApprovalDecision(Ruling.APPROVED, "ann", "page")
_DENIED = ApprovalDecision(Ruling.DENIED, "ann", "page", "too much")


@pytest.mark.parametrize(
    ("before", "finding", "action", "reason", "rule", "seq"),
    [
        # What the tape has is served otherwise.
        (_SERVED, MissedTunnel(Seq(3)), "serve", "on tape: the tunnel that failed before this request", "tape", 3),
        (None, Recognised(Seq(3), "on tape: so far"), "serve", "on tape: so far", "tape", 3),
        (_SERVED, Recognised(Seq(5), "on tape: the other"), "serve", "on tape: the other", "tape", 5),
        # What the tape has is not served.
        (
            _SERVED, TooEarly(Seq(4), _NEEDS), "refuse",
            "reordered: on the tape as seq 4, but body $.id has a value from the answer to seq 2, which has not been asked for yet",
            "tape", None,
        ),
        (
            _SERVED, Unreadable(Seq(4), "it is missing"), "refuse",
            "on the tape as seq 4, which cannot be read (it is missing); record it again, or restore the store from a copy",
            "tape", None,
        ),
        (
            _SERVED, Unsearched(Seq(4), 20, 100), "refuse",
            "on the tape as seq 4, whose answer was not kept whole: 20 bytes from byte 100 on; it has more places that look like"
            " secrets than are judged in one text (docs/secrets.md); ask for less at once",
            "tape", None,
        ),
        (
            _SERVED, Unsearched(Seq(4), 20, 0), "refuse",
            "on the tape as seq 4, whose answer was not kept whole: 20 bytes from byte 0 on; its content codings end too early or"
            " are damaged, or its first bytes have more places that look like secrets than are judged (docs/secrets.md);"
            " record it without `accept-encoding`, or ask for less at once",
            "tape", None,
        ),
        (
            _SERVED, Disagreement(Seq(4), (_KEY, _ID)), "refuse",
            "on the tape as seq 4, but another key; another run id", "tape", None,
        ),
        # A gate has let go of it.
        (_HELD, Ruled(_APPROVED), "forward", "held by the gate; approved by ann", "effects POST *", None),
        (_LIVE, Ruled(_APPROVED), "live", "held by the gate; approved by ann", "effects POST *", None),
        (_HELD, Ruled(_DENIED), "refuse", "held by the gate; denied by ann: too much", "effects POST *", None),
        (_SERVED, Ruled(_APPROVED), "refuse", "on tape; approved by ann", "tape", None),
        (None, Ruled(_APPROVED), "refuse", "; approved by ann", "", None),
        # A fault changes what is said of it, and nothing else.
        (_SERVED, Injected("fault reset"), "serve", "on tape; fault reset", "tape", 4),
        (_FORWARDED, Injected("fault delay"), "forward", "mode record; fault delay", "mode", None),
        # Refused whatever was decided.
        (_HELD, Refused(Cause.UNASKED, "nobody"), "refuse", "nobody", "effects POST *", None),
        (_SERVED, Refused(Cause.UNPLAYABLE, "needs HTTP/2"), "refuse", "needs HTTP/2", "tape", 4),
        (_SERVED, Refused(Cause.LATE, "too late"), "refuse", "too late", "tape", 4),
        (_SERVED, Refused(Cause.STOPPED, "by ann", STOPPED_RULE), "refuse", "by ann", "stopped", 4),
        (None, Refused(Cause.CUT, "left"), "refuse", "left", "", None),
    ],
)  # fmt: skip
def test_a_finding_revises_a_decision(
    before: Decision | None, finding: Finding, action: str, reason: str, rule: str, seq: int | None
) -> None:
    """Each finding has one outcome: an action, a reason in one line, and what decided."""
    after = revise(before, finding)
    assert (after.action, after.reason, after.rule, after.seq) == (action, reason, rule, seq)


@pytest.mark.parametrize("cause", Cause)
def test_a_refusal_lets_nothing_out(cause: Cause) -> None:
    """Whatever was decided before, what is refused is logged as refused."""
    for before in (None, _SERVED, _HELD, _LIVE, _FORWARDED):
        assert revise(before, Refused(cause, "text")).verdict is VerdictKind.REFUSED


@pytest.mark.parametrize(
    ("left", "stopped", "withdrawn", "ruling", "reason"),
    [
        (False, "", False, Ruling.APPROVED, ""),
        (True, "by ann", True, Ruling.LEFT, ""),
        (False, "by ann", True, Ruling.ENDED, "by ann"),
        (False, "", True, Ruling.ENDED, "its live rule was removed from the configuration while it was held"),
    ],
)  # fmt: skip
def test_an_approval_is_confirmed_by_what_happened_meanwhile(
    left: bool, stopped: str, withdrawn: bool, ruling: Ruling, reason: str
) -> None:
    """A client that left comes first, then who stopped the run, then the rule that is gone."""
    found = confirm(_APPROVED, left=left, stopped=stopped, withdrawn=withdrawn)
    assert (found.ruling, found.reason) == (ruling, reason)
    assert confirm(_DENIED, left=left, stopped=stopped, withdrawn=withdrawn) is _DENIED


@pytest.mark.parametrize(
    ("rule", "stopped", "code"),
    [
        ("not on tape", False, NOT_ON_TAPE),
        ("tape", False, NOT_ON_TAPE),
        ("effects POST *", False, NOT_ON_TAPE),
        (LIMITS, False, LIMIT_REACHED),
        (f"{CONTRACTS} POST *", False, CONTRACT_BROKEN),
        (LIMITS, True, STOPPED),
        (STOPPED_RULE, True, STOPPED),
    ],
)
def test_the_code_of_a_refusal_follows_from_what_decided(
    rule: str, stopped: bool, code: str
) -> None:
    """A run that was stopped says so in all its refusals."""
    assert refusal_code(Decision(Action.REFUSE, "text", rule), stopped=stopped) == code
