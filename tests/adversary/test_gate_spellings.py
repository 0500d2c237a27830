"""A gated endpoint is held at the gate however it is spelled; so are faults and repeats, and other endpoints are not.

The cases, each with its reason, are in gates.yaml. They were written from the documents before there was code for them; one
that is taken out is listed there with its reason.
"""

from typing import Any

import pytest

from playhead.tests.support.counts import FULL

from .gates import CASES
from .place import told_by

pytestmark = pytest.mark.timeout(1000)
"""Of a module's first test, which waits for all that is tried."""


@pytest.fixture(scope="module")
def told() -> dict[str, list[dict[str, Any]]]:
    """What came of every case: with the gate, without it, with a fault, with a limit on repeats."""
    found: dict[str, list[dict[str, Any]]] = told_by("gates")
    return found


def _rows(told: dict[str, list[dict[str, Any]]], place: str, case: str) -> list[dict[str, Any]]:
    rows = [row for row in told[place] if row["case"] == case]
    assert rows
    assert not [row for row in rows if "skipped" in row]
    return rows


def test_there_are_as_many_as_there_have_to_be(told: dict[str, list[dict[str, Any]]]) -> None:
    """Sixty spellings, each with its reason, that reach the upstream where there is no gate; nothing else reached it."""
    ids = [case["id"] for case in [*CASES["cases"], *CASES["controls"]]]
    assert len(ids) == len(set(ids))
    assert all(case["reason"] for case in [*CASES["cases"], *CASES["controls"]])
    assert len(CASES["cases"]) >= 60
    reached = {row["case"] for row in told["open"] if row.get("arrived")}
    assert len(reached) >= (60 if FULL else 10)
    assert [rows[-1]["strange"] for rows in told.values()] == [[]] * len(told)


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["id"])
def test_no_spelling_passes_a_gate_unasked(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """It is held until its deadline, and then refused; or it is refused at once."""
    for row in _rows(told, "gated", case["id"]):
        assert not row["arrived"], (case["reason"], row)
        assert not row["reached"], (case["reason"], row)


@pytest.mark.parametrize("case", CASES["controls"], ids=lambda case: case["id"])
def test_another_endpoint_is_not_held(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """A gate holds what it names, and nothing else."""
    for row in _rows(told, "gated", case["id"]):
        assert row["arrived"] == 1, (case["reason"], row)
        assert row["reached"], (case["reason"], row)


@pytest.mark.parametrize("case", CASES["stopped"]["paths"], ids=lambda case: case["id"])
def test_no_spelling_passes_a_fault(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """A fault that answers in place of the upstream does so for every spelling of what it names."""
    for row in _rows(told, "stopped", case["id"]):
        assert not row["arrived"], (case["reason"], row)
        assert row["status"] == 503, (case["reason"], row)


@pytest.mark.parametrize("case", CASES["doubled"]["pairs"], ids=lambda case: case["id"])
def test_a_duplicate_in_another_spelling_is_held(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """Two effects are the same for a gate if they may be the same for any server."""
    (first,), (second,) = (_rows(told, "doubled", f"{case['id']}{end}") for end in ("-first", ""))
    assert (first["arrived"], second["arrived"], second["status"]) == (1, 0, 424), (case, second)


@pytest.mark.parametrize("case", CASES["doubled"]["apart"], ids=lambda case: case["id"])
def test_another_effect_is_no_duplicate(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """Another body or query is another effect."""
    (second,) = _rows(told, "doubled", case["id"])
    assert second["arrived"] == 1, (case, second)


def test_no_spelling_begins_a_row_of_repeats_anew(told: dict[str, list[dict[str, Any]]]) -> None:
    """One request that is spelled in ever other ways is one request in a row at its endpoint."""
    limit = CASES["repeated"]["limit"]
    assert sum(row.get("arrived", 0) for row in told["repeated"]) <= limit, told["repeated"]
