"""A line of a search shows what was found."""

import re

import pytest

from playhead.tape.exchange import Seq
from playhead.timeline.show.listing import Counts, list_steps
from playhead.timeline.show.pattern_in_step import find_match, with_match
from playhead.timeline.steps.step import Step, StepKind

_LONG = "word " * 200
_SEQ = Seq(1)


@pytest.mark.parametrize(
    "step",
    [
        Step(StepKind.THOUGHT, _SEQ, "said", "needle, which is said beside a tool call"),
        Step(StepKind.OUTPUT, _SEQ, "", f"{_LONG}needle"),
        Step(StepKind.TOOL_RESULT, _SEQ, "look", f"{_LONG}needle {_LONG}"),
        Step(StepKind.TOOL_CALL, _SEQ, "look", f'{{"q": "{_LONG}", "r": "needle"}}'),
        Step(
            StepKind.HTTP, _SEQ, "GET https://a.test/", "200, 9 bytes", beside=(f"{_LONG}needle",)
        ),
        Step(StepKind.MODEL_CALL, _SEQ, "gpt-5", beside=("Where is the needle?",)),
    ],
    ids=lambda step: step.kind.value,
)
def test_a_line_shows_what_was_found(step: Step) -> None:
    """Wherever in a step it is, and also where the shorter page has no line for the step."""
    pattern = re.compile("needle")
    found = with_match(step, pattern)
    (line,) = list_steps([found], Counts(), everything=True)
    assert "needle" in line
    assert "needle" in (find_match(step, pattern) or "")
    assert with_match(step, re.compile("nothing")) is None
