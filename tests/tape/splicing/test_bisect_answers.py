"""The search for the answer that turns a run bad: it names what it has seen, in few runs, or nothing."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.splicing.bisect_answers import (
    END_RUNS,
    PROOF_RUNS,
    Search,
    Standing,
    most_runs,
)
from playhead.tests.support.counts import tries

GOOD, BAD, UNKNOWN = Standing.GOOD, Standing.BAD, Standing.UNKNOWN


def search(count: int, stands: Callable[[int, int], Standing]) -> Search:
    """Search; how a run stands is given by its number of answers, and how many runs came before."""
    made = Search(count)
    while (asked := made.next()) is not None:
        made.tell(asked, stands(asked, made.runs))
        assert made.runs <= 3 * (most_runs(count) + END_RUNS)
    return made


@tries(200)
@given(st.data(), st.integers(1, 300))
def test_a_fault_is_named_in_few_runs(data: st.DataObject, count: int) -> None:
    """At most ceil(log2 n) beside both ends; both runs of the pair are run, and the ends too."""
    fault = data.draw(st.integers(1, count))
    found = search(count, lambda asked, _: GOOD if asked >= fault else BAD)
    assert found.found == fault
    assert found.problem == ""
    assert found.runs <= math.ceil(math.log2(count))
    assert (found.known[fault - 1], found.known[fault]) == (BAD, GOOD)
    assert (found.known[0], found.known[count]) == (BAD, GOOD)


@tries(200)
@given(st.data(), st.integers(1, 60))
def test_what_cannot_be_tested_is_never_named(data: st.DataObject, count: int) -> None:
    """The pair is still one of a bad and a good run."""
    fault = data.draw(st.integers(1, count))
    dark = data.draw(st.frozensets(st.integers(0, count)))

    def stands(asked: int, _: int) -> Standing:
        if asked in dark:
            return UNKNOWN
        return GOOD if asked >= fault else BAD

    found = search(count, stands)
    if found.found is None:
        assert found.problem
    else:
        assert found.found == fault
        assert not dark & {fault - 1, fault, 0, count}


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize(
    ("stands", "says"),
    [
        (lambda *_: GOOD, "is good when it is run again"),
        (lambda *_: BAD, "bad with all answers of the good run"),
        (lambda *_: UNKNOWN, "could not be tested|could be tested"),
    ],
    ids=["always good", "always bad", "never tested"],
)
def test_ends_that_are_not_as_the_tapes_say_prove_nothing(
    count: int, stands: Callable[[int, int], Standing], says: str
) -> None:
    """Whatever was in between."""
    found = search(count, stands)
    assert found.found is None
    assert any(one in found.problem for one in says.split("|")), found.problem


def test_a_result_that_changes_is_chance() -> None:
    """Nothing is named after that."""
    made = Search(3)
    made.tell(1, GOOD)
    made.tell(1, BAD)
    assert (made.next(), made.found) == (None, None)
    assert "by chance" in made.problem


@pytest.mark.parametrize("count", [1, 2, 6, 64])
def test_a_bad_run_that_is_good_again_proves_nothing(count: int) -> None:
    """Not even if every mixture of the two is bad, as where the agent compares what it reads."""
    found = search(count, lambda asked, _: GOOD if asked in (0, count) else BAD)
    assert found.found is None
    assert "the bad run is good when it is run again" in found.problem
    assert list(found.known) == [0]


@pytest.mark.parametrize("good", [{3}, {3, 4, 5, 6}])
def test_a_good_run_that_is_bad_again_proves_nothing(good: set[int]) -> None:
    """It is not even searched."""
    found = search(7, lambda asked, _: GOOD if asked in good else BAD)
    assert (found.found, found.runs) == (None, 0)
    assert "bad with all answers of the good run" in found.problem


@pytest.mark.parametrize("end", [0, 7])
def test_an_end_that_cannot_be_tested_proves_nothing(end: int) -> None:
    """Its tape is no proof."""
    found = search(7, lambda asked, _: UNKNOWN if asked == end else GOOD if asked >= 3 else BAD)
    assert (found.found, found.runs) == (None, 0)
    assert "it could not be tested" in found.problem


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_the_pair_is_run_once_more_before_it_is_named(count: int) -> None:
    """Each of its runs is seen twice; that takes at most two runs beyond those of the search."""
    asked = list[int]()

    def stands(one: int, _: int) -> Standing:
        asked.append(one)
        return GOOD if one >= count else BAD

    found = search(count, stands)
    assert found.found == count
    assert min(asked.count(count - 1), asked.count(count)) >= 2
    assert len(asked) <= most_runs(count) + END_RUNS + PROOF_RUNS


@pytest.mark.parametrize("other", [0, 1], ids=["the bad one", "the good one"])
def test_a_pair_that_is_otherwise_the_second_time_proves_nothing(other: int) -> None:
    """Both outcomes are said."""
    seen = list[int]()

    def stands(one: int, _: int) -> Standing:
        seen.append(one)
        good = one >= 3
        if one == 2 + other and seen.count(one) == 2:
            good = not good
        return GOOD if good else BAD

    found = search(8, stands)
    assert found.found is None
    said = ("bad once and good", "good once and bad")[other]
    assert f"with {2 + other} answers of the good run it was {said} another time" in found.problem


def test_where_each_run_is_many_the_pair_is_not_repeated() -> None:
    """Its repeats have been made."""
    made = Search(1, proves=False)
    made.tell(0, BAD)
    made.tell(1, GOOD)
    assert (made.next(), made.found) == (None, 1)
