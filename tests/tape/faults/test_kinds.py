"""Kinds of faults on purpose: what is laid over an answer, as steps, and answers of ours."""

import json
from dataclasses import replace

import pytest

from playhead.config import FaultRule, Inject, parse_match
from playhead.tape.exchange import Ending, Request
from playhead.tape.faults.kinds import KINDS
from playhead.tape.faults.none import NoFault
from playhead.tape.playback.script import Step, StepKind
from playhead.tape.policy.faults import Injection

PAY = parse_match("POST https://pay.test/refunds")
ASKED = Request("POST", "https", "pay.test", 443, "/refunds", "HTTP/1.1", ())


def rule(**more: object) -> FaultRule:
    return FaultRule(PAY, **{"inject": Inject.RESET, **more})  # type: ignore[arg-type]  # rows of a table


def test_each_word_of_the_configuration_is_a_kind() -> None:
    """`inject` takes what the list holds."""
    assert set(KINDS) == set(Inject)


def test_a_kind_begins_as_nothing() -> None:
    """What it does not say itself changes neither request nor answer."""
    injection = Injection(rule(), 1)
    assert list(NoFault().lay_over(WHOLE, injection)) == WHOLE
    assert NoFault().make_answer(ASKED, injection) is None
    assert NoFault().delay_s(injection) == 0


HEAD, END = Step(1, StepKind.HEAD), Step(9, StepKind.END)
WHOLE = [HEAD, Step(2, StepKind.DATA, b"abc"), Step(3, StepKind.DATA, b"defg"), END]
RST, FIN = Step(2, StepKind.FAIL, ending=Ending.RST), Step(3, StepKind.FAIL, ending=Ending.FIN)


@pytest.mark.parametrize(
    ("told", "steps"),
    [
        # the whole answer later
        (
            rule(inject=Inject.DELAY, delay_s=0.5),
            [step._replace(at_us=step.at_us + 500_000) for step in WHOLE],
        ),
        # behind the head, inside a piece, at its end, inside the next, behind the last
        (
            rule(inject=Inject.CUT),
            [HEAD, Step(1, StepKind.FAIL, ending=Ending.RST)],
        ),
        (
            rule(inject=Inject.CUT, after_bytes=2),
            [HEAD, Step(2, StepKind.DATA, b"ab"), RST],
        ),
        (
            rule(inject=Inject.CUT, after_bytes=3),
            [HEAD, Step(2, StepKind.DATA, b"abc"), RST],
        ),
        (
            rule(inject=Inject.CUT, after_bytes=4, ending="fin"),
            [*WHOLE[:2], Step(3, StepKind.DATA, b"d"), FIN],
        ),
        (
            rule(inject=Inject.CUT, after_bytes=7, ending="fin"),
            [*WHOLE[:3], FIN],
        ),
        # a shorter answer ends as it does
        (rule(inject=Inject.CUT, after_bytes=8), WHOLE),
        # nothing of it
        (rule(inject=Inject.RESET), [Step(0, StepKind.FAIL, ending=Ending.RST)]),
        (rule(inject=Inject.RESET, ending="fin"), [Step(0, StepKind.FAIL, ending=Ending.FIN)]),
        (rule(inject=Inject.TIMEOUT), [Step(0, StepKind.HANG)]),
        (rule(inject=Inject.TIMEOUT_AFTER_SUCCESS), [Step(0, StepKind.HANG)]),
    ],
)
def test_a_fault_is_laid_over_an_answer(told: FaultRule, steps: list[Step]) -> None:
    """As steps: what is played, and when."""
    assert list(KINDS[told.inject].lay_over(WHOLE, Injection(told, 1))) == steps


def test_a_made_answer_names_its_rule() -> None:
    """In the header field and where SDKs look for a message."""
    told = rule(inject=Inject.STATUS, status=503, retry_after_s=3, name="busy")
    made = KINDS[Inject.STATUS].make_answer(ASKED, Injection(told, 1))
    assert made is not None
    status, headers, body = made
    assert status == 503
    assert dict(headers)[b"x-playhead"] == b"injected; busy"
    assert dict(headers)[b"retry-after"] == b"3"
    assert "busy" in json.loads(body)["error"]["message"]


def test_a_made_answer_to_grpc_is_one_of_grpc() -> None:
    """Its clients read fields, and no body."""
    request = replace(ASKED, headers=((b"content-type", b"application/grpc"),))
    told = rule(inject=Inject.STATUS, status=503, name="busy")
    made = KINDS[Inject.STATUS].make_answer(request, Injection(told, 1))
    assert made is not None
    status, headers, body = made
    assert (status, body) == (200, b"")
    assert dict(headers)[b"grpc-status"] == b"14"
    assert dict(headers)[b"grpc-message"] == b"injected%3A busy"
