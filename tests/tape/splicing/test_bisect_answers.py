"""The search for the answer that turns a run bad: it names what it has seen, in few runs, or nothing."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.splicing.bisect_answers import PROOF_RUNS, Search, Standing, most_runs
from playhead.tests.support.counts import tries

GOOD, BAD, UNKNOWN = Standing.GOOD, Standing.BAD, Standing.UNKNOWN


def search(count: int, stands: Callable[[int, int], Standing]) -> Search:
    """Search; how a run stands is given by its number of answers, and how many runs came before."""
    made = Search(count)
    while (asked := made.next()) is not None:
        made.tell(asked, stands(asked, made.runs))
        assert made.runs <= 3 * most_runs(count) + 2
    return made


@tries(200)
@given(st.data(), st.integers(1, 300))
def test_a_fault_is_named_in_few_runs(data: st.DataObject, count: int) -> None:
    """At most ceil(log2 n) + 1, two for one answer; both runs of the pair are run."""
    fault = data.draw(st.integers(1, count))
    found = search(count, lambda asked, _: GOOD if asked >= fault else BAD)
    assert found.found == fault
    assert found.problem == ""
    assert found.runs <= max(2, math.ceil(math.log2(count)) + 1)
    assert (found.known[fault - 1], found.known[fault]) == (BAD, GOOD)


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
        assert not dark & {fault - 1, fault}


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


@pytest.mark.parametrize(
    ("good", "says"),
    [
        ({3}, "more than one answer decides, or the result comes by chance"),
        ({3, 4, 5, 6}, "more than one answer decides, or the result comes by chance"),
    ],
)
def test_an_end_that_is_not_as_its_tape_says_proves_nothing(good: set[int], says: str) -> None:
    """Tried with the run that is left over."""
    found = search(7, lambda asked, _: GOOD if asked in good else BAD)
    assert found.found is None
    assert says in found.problem


def test_an_end_that_cannot_be_tested_takes_nothing_away() -> None:
    """The pair was run, and stands."""
    found = search(7, lambda asked, _: UNKNOWN if asked == 7 else GOOD if asked >= 3 else BAD)
    assert found.found == 3


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
    assert len(asked) <= most_runs(count) + PROOF_RUNS


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
