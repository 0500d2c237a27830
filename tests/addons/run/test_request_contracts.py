"""The contracts of one request: what of its answer breaks them, whether that is refused, and what the log says."""

from typing import Any

import pytest

from playhead.addons.run.request_contracts import (
    MAX_REASON,
    ContractState,
    ContractViolation,
    report,
)
from playhead.config import ContractRule, OnViolation, parse_match
from playhead.tape.contracts.applicable_contracts import ApplicableContracts
from playhead.tape.contracts.check import FINE, Checked, Violation
from playhead.tape.exchange import RedactedText, Seq
from playhead.tape.records.events import EventKind
from playhead.tests.support.exchanges import make_request, make_response
from playhead.tests.support.pending import NotedRun

WHAT = "POST https://pay.test/refunds"
SCHEMA = '{"type": "object", "required": ["id"]}'
WRONG = Checked.of([Violation("response", "$", "an id", "nothing")])
UNSURE = Checked(unchecked=("too large",))
JSON = ((b"content-type", b"application/json"),)


def text(words: str) -> RedactedText:
    """Take a secret out of words."""
    return RedactedText(words.replace("4711", "####"))


def check(body: bytes, on: OnViolation, *, held: bool = True, status: int = 200) -> ContractState:
    """Hold an answer to a contract."""
    rule = ContractRule(parse_match(WHAT), response=SCHEMA, on_violation=on)
    state = ContractState(ApplicableContracts(None, rule, None))
    response = make_response(body, status, headers=JSON)
    state.check_answer(make_request(WHAT), response, response, text, held=held)
    return state


@pytest.mark.parametrize(
    ("of", "checked", "refuses", "refused"),
    [
        ("response", WRONG, True, True),
        ("response", WRONG, False, False),
        ("response", FINE, True, False),
        ("response", UNSURE, True, False),
        ("model", WRONG, True, True),
        ("model", UNSURE, True, False),
        ("request", WRONG, True, True),
        ("request", UNSURE, True, True),
        ("request", UNSURE, False, False),
    ],
)
def test_what_cannot_be_checked_is_refused_of_a_request_alone(
    of: str, checked: Checked, refuses: bool, refused: bool
) -> None:
    """What has been answered has happened."""
    assert ContractViolation(of, "rule", checked, refuses).refused is refused


@pytest.mark.parametrize(
    ("body", "on", "held", "status", "withheld"),
    [
        (b"{}", OnViolation.REFUSE, True, 200, True),
        (b"{}", OnViolation.NOTE, True, 200, False),
        (b"{}", OnViolation.REFUSE, False, 200, False),
        (b"{}", OnViolation.REFUSE, True, 500, False),
        (b'{"id": 1}', OnViolation.REFUSE, True, 200, False),
        (b"no json", OnViolation.REFUSE, True, 200, True),
    ],
)
def test_an_answer_that_breaks_its_contract_is_withheld(
    body: bytes, on: OnViolation, held: bool, status: int, withheld: bool
) -> None:
    """Where the rule says so, and none of it has reached the client."""
    state = check(body, on, held=held, status=status)
    assert bool(state.withheld) is withheld
    if withheld:
        assert f"the upstream answered {status}" in state.withheld
        assert WHAT in state.withheld


def test_the_reason_has_no_secret_and_is_short() -> None:
    """One line of it."""
    rule = ContractRule(
        parse_match(f"{WHAT}/4711" + "x" * 700), response=SCHEMA, on_violation=OnViolation.REFUSE
    )
    state = ContractState(ApplicableContracts(None, rule, None))
    response = make_response(b"{}", headers=JSON)
    state.check_answer(make_request(WHAT), response, response, text, held=True)
    assert "4711" not in state.withheld
    assert len(state.withheld) <= MAX_REASON
    assert "\n" not in state.withheld


def test_an_answer_is_checked_anew() -> None:
    """What was found before is not told again, as where the engine hands on a part first."""
    state = check(b"{}", OnViolation.NOTE)
    response = make_response(b'{"id": 1}', headers=JSON)
    state.check_answer(make_request(WHAT), response, response, text, held=True)
    open_run = NotedRun()
    state.report(open_run, Seq(2))
    assert open_run.noted == []


@pytest.mark.parametrize("recorded", [False, True])
def test_the_log_is_told_of_violations(recorded: bool) -> None:
    """And the counters of how many."""
    open_run = NotedRun()
    check(b"{}", OnViolation.NOTE).report(open_run, Seq(2), recorded=recorded)
    ((kind, data),) = open_run.noted
    assert (kind, data["seq"], data["of"]) == (EventKind.CONTRACT, 2, "response")
    assert (data["refused"], data["recorded"], data["count"]) == (False, recorded, 1)
    assert data["violations"][0][0] == "response"
    assert open_run.counters.contracts == {"response": 1}


@pytest.mark.parametrize(
    ("checked", "told"),
    [
        (FINE, None),
        (UNSURE, {"count": 0, "violations": [], "unchecked": ["too large"]}),
        (
            WRONG,
            {"count": 1, "violations": [["response", "$", "an id", "nothing"]], "unchecked": []},
        ),
    ],
)
def test_what_is_fine_is_not_told(checked: Checked, told: dict[str, Any] | None) -> None:
    """What could not be checked is."""
    open_run = NotedRun()
    report(open_run, Seq(3), ContractViolation("request", "rule", checked, refuses=True))
    noted = [{name: data[name] for name in told or ()} for _, data in open_run.noted]
    assert noted == ([] if told is None else [told])
