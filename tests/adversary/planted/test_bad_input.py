"""Bad input is told apart, speaks of what is there, and hostile texts are on their tapes."""

from collections import Counter

import pytest

from .bad_input import (
    BAD_INPUT,
    BINARY,
    BROKEN,
    EMPTY,
    ENCODED,
    FORBIDDEN,
    HOSTILE,
    LAST,
    TEXT,
    VERBS,
    base,
    hostile,
    text_of_case,
)
from .streams import scalars


def test_cases_are_told_apart_and_each_verb_has_some() -> None:
    counts = Counter(case["id"] for case in BAD_INPUT)
    assert max(counts.values()) == 1, counts.most_common(2)
    assert {case["verb"] for case in BAD_INPUT} == set(VERBS)
    assert len({case["id"] for case in HOSTILE}) == len(HOSTILE)


def test_the_run_of_the_cases_has_what_they_speak_of() -> None:
    run = base()
    assert run == base()
    assert len(run) == LAST
    assert run[EMPTY - 1]["status"] == 204
    for seq in (BINARY, TEXT, BROKEN, ENCODED):
        assert isinstance(run[seq - 1]["request"], str)


@pytest.mark.parametrize(
    "case",
    [one for one in HOSTILE if isinstance(one["text"], str)],
    ids=lambda case: str(case["id"]),
)
def test_a_hostile_text_is_wherever_a_tape_can_have_it(case: dict[str, object]) -> None:
    run, text = hostile(case), text_of_case(case)
    assert any(text in str(leaf) for leaf in scalars(run[0], "request"))
    assert all(any(text in str(leaf) for leaf in scalars(one, "response")) for one in run)


def test_what_may_not_be_printed_is_of_the_forbidden() -> None:
    for case in HOSTILE:
        for text in case["must_not"]:
            assert text[0] in (*FORBIDDEN, "\n"), case["id"]
