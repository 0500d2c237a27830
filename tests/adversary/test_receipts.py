"""A green receipt is true: what matters and changed is noticed and named by its cause, what means nothing is served.

The cases, each with its reason, are in receipts_changed.yaml, receipts_unchanged.yaml and receipts_held_out.yaml. They were
written from the documents before there was code for them. Those for which there is none yet are listed in
receipts_open.yaml with what they wait for, those that are taken out with their reason.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from .place import told_by
from .receipts import FILES, OPEN, cases_of, read_cases, tried

pytestmark = pytest.mark.timeout(1000)
"""Of a module's first test, which waits for all that is tried."""

_GOOD = ("right", "served")


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    """What came of every case, by name."""
    return {row["name"]: row for row in told_by("receipts", *FILES)}


def _of(*files: str) -> Iterator[Any]:
    for file in files:
        for case in tried(cases_of(file)):
            yield pytest.param(case, id=case["name"])


def test_there_are_as_many_as_there_have_to_be() -> None:
    """Two hundred changes that mean something, and sixty that mean nothing; each says why it is there."""
    every = [case for file in FILES for case in read_cases(file)]
    assert len(cases_of("changed")) >= 200
    assert len(cases_of("unchanged")) >= 60
    assert all(case["why"] for case in every)
    assert len({case["name"] for case in every}) == len(every)


def test_every_exception_is_a_case_and_has_its_reason() -> None:
    """What is open or taken out is named once, and says why."""
    names = {case["name"] for file in FILES for case in read_cases(file)}
    assert set(OPEN["open"]) | set(OPEN["removed"]) <= names
    assert not set(OPEN["open"]) & set(OPEN["removed"])
    assert all((*OPEN["open"].values(), *OPEN["removed"].values()))


def _check(row: dict[str, Any], case: dict[str, Any]) -> None:
    waits = OPEN["open"].get(case["name"])
    if waits is None:
        assert row["outcome"] in _GOOD, (case["why"], row)
    else:
        assert row["outcome"] not in _GOOD, f"no longer open: {waits}; take it from the list"


@pytest.mark.parametrize("case", _of("changed"))
def test_a_change_is_noticed_and_named(
    told: dict[str, dict[str, Any]], case: dict[str, Any]
) -> None:
    """The replay is not faithful, its exit code says so, and its root divergence is the cause."""
    _check(told[case["name"]], case)


@pytest.mark.parametrize("case", _of("unchanged"))
def test_a_difference_without_meaning_is_served(
    told: dict[str, dict[str, Any]], case: dict[str, Any]
) -> None:
    """The replay is faithful, each answer is the recorded one, and what is to be reported is."""
    _check(told[case["name"]], case)
