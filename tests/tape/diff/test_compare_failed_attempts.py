"""Attempts that came to nothing are compared by their number, as far as another run has to have as many."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.diff.compare_failed_attempts import (
    AttemptCounts,
    Compared,
    add,
    compare,
    summarize,
)
from playhead.tape.exchange import RedactedText, Seq
from playhead.tape.records.failed_attempt import Attempt, AttemptKind

EMPTY = Attempt(AttemptKind.EMPTY_TUNNEL, "api.test", 443)
BESIDE = replace(EMPTY, beside=True)
LEFT = replace(EMPTY, kind=AttemptKind.FAILED_HANDSHAKE)
DISTRUST = replace(LEFT, distrusted=True)
MALFORMED = replace(EMPTY, kind=AttemptKind.MALFORMED_REQUEST)
OTHER = replace(EMPTY, host="other.test")
PORT = replace(EMPTY, port=8443)


def count(*attempts: Attempt) -> AttemptCounts:
    """Count attempts."""
    made: AttemptCounts = {}
    for one in attempts:
        add(made, one)
    return made


def found(present: tuple[Attempt, ...], recorded: tuple[Attempt, ...]) -> list[Compared]:
    """Give what is a divergence."""
    return [one for one in compare(count(*present), count(*recorded)) if one.differs]


@pytest.mark.parametrize(
    ("present", "recorded"),
    [
        ((), ()),
        ((EMPTY,), (EMPTY,)),
        ((DISTRUST, EMPTY), (EMPTY, DISTRUST)),  # in another order
        ((BESIDE,) * 3, ()),  # of a pool
        ((), (BESIDE,) * 3),
        ((replace(LEFT, beside=True),), ()),
        ((EMPTY,), (BESIDE,)),  # the same at another moment
        ((BESIDE,), (EMPTY,)),
        ((EMPTY, BESIDE), (EMPTY,)),
        ((EMPTY,), (EMPTY, BESIDE)),
        ((replace(EMPTY, process=RedactedText("node"), detail=RedactedText("x")),), (EMPTY,)),
    ],
)
def test_the_same_is_no_divergence(
    present: tuple[Attempt, ...], recorded: tuple[Attempt, ...]
) -> None:
    """As many of each kind at each place, and any number of what was made beside requests."""
    assert found(present, recorded) == []


@pytest.mark.parametrize(
    ("present", "recorded", "surplus", "missing"),
    [
        ((EMPTY,), (), 1, False),
        ((EMPTY, EMPTY), (EMPTY,), 1, False),
        ((EMPTY, EMPTY), (BESIDE,), 1, False),
        ((), (EMPTY,), 0, True),
        ((EMPTY,), (EMPTY, EMPTY), 0, True),
        ((LEFT,), (), 1, False),
        ((replace(DISTRUST, beside=True),), (), 1, False),  # it said so
        ((replace(MALFORMED, beside=True),), (), 1, False),
        ((MALFORMED,) * 1500, (MALFORMED,) * 1200, 1, False),  # more than are kept
    ],
)
def test_another_number_is_a_divergence(
    present: tuple[Attempt, ...], recorded: tuple[Attempt, ...], surplus: int, missing: bool
) -> None:
    """What is surplus is named, and what is missing."""
    (row,) = found(present, recorded)
    assert (len(row.surplus), row.missing) == (surplus, missing)
    assert (row.count, row.recorded) == (len(present), len(recorded))


@pytest.mark.parametrize("other", [OTHER, PORT, LEFT, MALFORMED])
def test_another_place_or_kind_is_another(other: Attempt) -> None:
    """One is surplus, and one is missing."""
    rows = found((other,), (EMPTY,))
    assert sorted((bool(row.surplus), row.missing) for row in rows) == [
        (False, True),
        (True, False),
    ]


def test_the_first_surplus_one_is_given() -> None:
    """As many as the tape has come before it."""
    (row,) = found(
        (replace(EMPTY, detail=RedactedText("1")), replace(EMPTY, detail=RedactedText("2"))),
        (EMPTY,),
    )
    assert row.first.detail == "2"


def test_those_of_a_recording_are_counted() -> None:
    """With the processes that made them, and without a tape to compare with."""
    one, two = (
        replace(DISTRUST, process=RedactedText("node")),
        replace(DISTRUST, process=RedactedText("curl")),
    )
    (row,) = summarize(count(one, two, one))
    assert (row.count, row.recorded, row.processes) == (3, None, ("node", "curl"))
    assert not row.differs


@given(st.lists(st.sampled_from([EMPTY, BESIDE, LEFT, DISTRUST, MALFORMED, OTHER]), max_size=12))
def test_a_run_equals_itself_in_any_order(attempts: list[Attempt]) -> None:
    """However many there were."""
    assert found(tuple(attempts), tuple(reversed(attempts))) == []


@given(st.sampled_from([EMPTY, BESIDE, DISTRUST]), st.booleans(), st.integers(0, 1 << 40))
def test_what_is_logged_is_read_again(one: Attempt, spared: bool, after: int) -> None:
    """With every field."""
    made = replace(
        one, spared=spared, after=Seq(after), egress=RedactedText("x"), process=RedactedText("y")
    )
    assert Attempt.from_event(made.to_event()) == made
