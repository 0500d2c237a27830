"""The row that a sink gets of an effect: what answered it, who let it go, and how it differs from the tape."""

import json
from typing import Any, cast

import pytest

from playhead.addons.run.effect_row import effect_line
from playhead.addons.run.exchange_events import intent_row
from playhead.addons.run.pending_approvals import PendingApproval
from playhead.config import FaultRule, Inject, parse_match
from playhead.tape.diff.divergence_types import Difference, Divergence, DivergenceKind
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tape.policy.faults import Injection
from playhead.tests.support.exchanges import make_exchange, make_request

URL = "https://pay.test/refunds"
ASKED = make_request(f"POST {URL}", '{"to": "Zoë\u2028"}'.encode())
INTENT = intent_row(3, ASKED, RequestClass.EFFECT, b"f" * 16)
SERVED = {**INTENT, "verdict": "served", "tape_seq": 2, "reason": "on the tape"}
REFUSED = {**INTENT, "verdict": "refused", "reason": "not on the tape"}
STUBBED = {**INTENT, "verdict": "stubbed", "answered_by": "synthetic", "after": [1, 2]}


class Decided:
    """Stands in for a pending approval: one that was decided on, or not yet."""

    def __init__(self, decided: ApprovalDecision | None) -> None:
        self.decided = self
        self._decided = decided

    def done(self) -> bool:
        return self._decided is not None

    def result(self) -> ApprovalDecision | None:
        return self._decided


def row(logged: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Give the row of an effect, read back from its line."""
    given: dict[str, Any] = {
        "playback": "verdict" in logged,
        "injection": None,
        "asked": ASKED,
        "answered": make_exchange(3, f"POST {URL}", kind=RequestClass.EFFECT),
        "divergence": None,
        "approval": None,
    }
    line = effect_line("a@1", "a", logged, **given | changes)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert line.isascii()
    told: dict[str, Any] = json.loads(line)
    return told


@pytest.mark.parametrize(
    ("logged", "playback", "by", "answered_by", "tape_seq", "after"),
    [
        (INTENT, False, "upstream", "upstream", None, []),
        (INTENT, True, "live", "live rule", None, []),
        (SERVED, True, "tape", "tape seq 2", 2, []),
        (REFUSED, True, "refused", "refused", None, []),
        (STUBBED, True, "synthetic", "synthetic, after tape seq 1, 2", None, [1, 2]),
    ],
)
def test_a_row_says_what_answered(
    logged: dict[str, Any],
    playback: bool,
    by: str,
    answered_by: str,
    tape_seq: int | None,
    after: list[int],
) -> None:
    """Beside the run, its tape, and what was asked."""
    told = row(logged, playback=playback)
    assert (told["run"], told["tape"], told["seq"]) == ("a@1", "a", 3)
    assert (told["method"], told["url"]) == ("POST", URL)
    assert (told["by"], told["answered_by"]) == (by, answered_by)
    assert (told["tape_seq"], told["after"]) == (tape_seq, after)
    assert told["status"] == 200


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"answered": None}, "unknown: no outcome was recorded"),
        ({"answered": None, "asked": None}, "unknown: no outcome was recorded"),
    ],
)
def test_an_effect_without_an_answer_is_unknown(changes: dict[str, Any], outcome: str) -> None:
    """Never taken for one that did not happen."""
    told = row(INTENT, playback=False, **changes)
    assert (told["outcome"], told["status"]) == (outcome, None)


@pytest.mark.parametrize("kind", [kind for kind in RequestClass if kind is not RequestClass.EFFECT])
def test_what_is_no_effect_has_no_row(kind: RequestClass) -> None:
    """Whatever else it is."""
    logged = intent_row(3, ASKED, kind, b"f" * 16)
    nothing: dict[str, Any] = dict.fromkeys(
        ("injection", "asked", "answered", "divergence", "approval")
    )
    assert effect_line("a", None, logged, playback=False, **nothing) == b""


@pytest.mark.parametrize(
    ("approval", "gate"),
    [
        (None, None),
        (Decided(None), None),
        (
            Decided(ApprovalDecision(Ruling.APPROVED, "eve", "page", "checked")),
            {"ruling": "approved", "by": "eve", "via": "page", "reason": "checked"},
        ),
        (
            Decided(ApprovalDecision(Ruling.EXPIRED)),
            {"ruling": "expired", "by": "", "via": "", "reason": ""},
        ),
    ],
)
def test_a_row_says_who_let_it_go(approval: Decided | None, gate: dict[str, str] | None) -> None:
    """Once somebody has decided."""
    assert row(INTENT, approval=cast("PendingApproval", approval))["gate"] == gate


def test_a_row_says_how_it_differs_from_the_tape() -> None:
    """With the nearest exchange, and the places."""
    differs = (Difference("body $.to", '"a"', '"b"'),)
    divergence = Divergence(DivergenceKind.CHANGED, Seq(3), "POST", URL, Seq(2), differs, "near")
    told = row(REFUSED, divergence=divergence)
    assert (told["divergence"], told["nearest_seq"]) == ("changed", 2)
    assert [one["place"] for one in told["differences"]] == ["body $.to"]


def test_a_row_names_the_fault_that_hit_it() -> None:
    """In the place of what would have answered."""
    rule = FaultRule(match=parse_match(f"POST {URL}"), inject=Inject.RESET, name="broken")
    told = row(SERVED, injection=Injection(rule, 1))
    assert (told["by"], told["answered_by"]) == ("injected", "injected: broken")
