"""Requests that a gate holds: who may decide on one, what is said to whoever comes too late, and how the waiting ends."""

import asyncio
from dataclasses import replace

import pytest

from playhead.addons.run import pending_approvals as module
from playhead.addons.run.pending_approvals import ApprovalError, PendingApproval, PendingApprovals
from playhead.config import Gate
from playhead.tape.exchange import Seq
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling, request_digest
from playhead.tests.support.exchanges import make_request

REQUEST = make_request("POST https://pay.test/refunds", b"5 EUR")
APPROVED = ApprovalDecision(Ruling.APPROVED, "eve", "command", "checked with 4711")
DENIED = ApprovalDecision(Ruling.DENIED, "eve")


def hold(approvals: PendingApprovals, seq: int = 3, deadline_s: float = 60) -> PendingApproval:
    """Hold a request of run `a`."""
    return approvals.hold(
        "a",
        Seq(seq),
        REQUEST,
        replace(Gate(), deadline_s=deadline_s),
        reason="gated",
        rule="POST https://pay.test/*",
        repeat=None,
        redact_text=lambda text: text.replace("4711", "####"),
    )


async def test_what_is_held_has_a_name_and_a_digest() -> None:
    """It is listed, oldest first, and found by its name."""
    approvals = PendingApprovals()
    first, second = hold(approvals), hold(approvals, 4)
    assert (first.name, first.digest) == ("a:3", request_digest(REQUEST))
    assert approvals.listed() == [first, second]
    assert approvals.listed(1) == [first]
    assert (approvals.find("a:4"), approvals.find("a:5")) == (second, None)
    assert len(approvals) == 2


@pytest.mark.parametrize(
    ("name", "digest", "decided", "wrong"),
    [
        ("a:3", "right", APPROVED, ""),
        ("a:3", "right", DENIED, ""),
        ("a:3", None, DENIED, ""),
        ("a:3", None, APPROVED, "an approval names the request it is for"),
        ("a:3", "0" * 32, APPROVED, "another request than the one approved"),
        ("a:3", "0" * 32, DENIED, "another request than the one approved"),
        ("a:4", "right", APPROVED, "nothing is held as a:4"),
        ("", None, DENIED, "nothing is held as "),
    ],
)
async def test_who_decides_names_what_was_looked_at(
    name: str, digest: str | None, decided: ApprovalDecision, wrong: str
) -> None:
    """An approval with its digest; a denial needs none, and one that is wrong is refused all the same."""
    approvals = PendingApprovals()
    approval = hold(approvals)
    given = approval.digest if digest == "right" else digest
    if wrong:
        with pytest.raises(ApprovalError, match=wrong):
            approvals.decide(name, given, decided)
        assert not approval.decided.done()
    else:
        assert approvals.decide(name, given, decided) is approval
        assert (await approval.wait()).ruling is decided.ruling


async def test_the_first_decision_stands() -> None:
    """Before it is let go, and for a while after; its reason is kept without secrets."""
    approvals = PendingApprovals()
    approval = hold(approvals)
    approvals.decide("a:3", approval.digest, APPROVED)
    with pytest.raises(ApprovalError, match=r"a:3 is held no more: approved by eve: .* ####"):
        approvals.decide("a:3", None, DENIED)
    decided = await approval.wait()
    assert decided.reason == "checked with ####"
    approvals.let_go(approval, decided)
    approvals.let_go(approval, decided)
    assert (len(approvals), approvals.listed()) == (0, [])
    with pytest.raises(ApprovalError, match="a:3 is held no more: approved by eve"):
        approvals.decide("a:3", approval.digest, APPROVED)


async def test_nobody_decides_in_time() -> None:
    """The deadline is a decision; so is a client that left first."""
    approvals = PendingApprovals()
    assert (await hold(approvals, 1, 0).wait()).ruling is Ruling.EXPIRED
    left = hold(approvals, 2, 0)
    assert left.decide(ApprovalDecision(Ruling.LEFT))
    assert not left.decide(APPROVED)
    assert (await left.wait()).ruling is Ruling.LEFT
    await asyncio.sleep(0)
    assert left.decided.result().ruling is Ruling.LEFT


async def test_decisions_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the last are remembered."""
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    approvals = PendingApprovals()
    for seq in (1, 2, 3):
        approvals.let_go(hold(approvals, seq), DENIED)
    for seq, known in ((1, "nothing is held as a:1"), (2, "a:2 is held no more: denied by eve")):
        with pytest.raises(ApprovalError, match=known):
            approvals.decide(f"a:{seq}", None, DENIED)
