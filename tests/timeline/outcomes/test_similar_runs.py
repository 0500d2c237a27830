"""Which runs are like one, by what was said to their models."""

import pytest

from playhead.store import RunInfo
from playhead.tape.exchange import RunId
from playhead.tests.support.agent_tapes import TAPES, claude_code
from playhead.timeline.outcomes.similar_runs import context_text, count_grams, find_similar

SYSTEM = "You are an agent of a shop. Use the tools that you have. "
TEXTS = {
    "refund": "Refund the order seven of Ana, who sent it back broken.",
    "refund again": "Refund the order nine of Ana, who sent it back unopened.",
    "stock": "How many lamps are left in the warehouse in Oslo?",
    "poem": "Write a poem about the sea.",
}


def ranked(asked: str) -> list[tuple[str, float]]:
    """Rank all texts by their likeness to one."""
    grams = {
        RunInfo(number, RunId(name), "record", 1): count_grams(SYSTEM * 20 + text)
        for number, (name, text) in enumerate(TEXTS.items(), 1)
    }
    found = find_similar(count_grams(SYSTEM * 20 + asked), list(grams.items()))
    return [(one.run.id, round(one.likeness, 3)) for one in found]


def test_the_nearest_comes_first() -> None:
    """What all share, as a system prompt, does not hide what differs."""
    names = [name for name, _ in ranked(TEXTS["refund"])]
    assert names[:2] == ["refund", "refund again"]
    assert ranked(TEXTS["refund"])[0][1] == pytest.approx(1.0)
    assert ranked("Is there a lamp left in the warehouse in Rome?")[0][0] == "stock"


def test_nothing_in_common_is_no_likeness() -> None:
    """And a run without words is like none."""
    run = RunInfo(1, RunId("one"), "record", 1)
    found = find_similar(count_grams("alpha beta"), [(run, count_grams("gamma delta"))])
    assert found[0].likeness == 0
    assert find_similar(count_grams(""), [(run, count_grams("x"))])[0].likeness == 0


@pytest.mark.parametrize("make", TAPES, ids=lambda make: make.__name__)
def test_the_context_of_any_call_is_text(make: object) -> None:
    """Whatever dialect it is of, and nothing of what is none."""
    tape = make()  # type: ignore[operator]  # a maker of tapes
    assert all(isinstance(context_text(one), str) for one in tape.exchanges)
    assert "Refund order 7." in context_text(claude_code().exchanges[2])
