"""What a live rule does not name does not leave, however it is spelled; what it plainly names does.

The cases, each with its reason, are in live_rules.yaml. They were written from the documents before there was code for
them; one that is taken out is listed there with its reason.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from .live_rules import CASES, _listed, is_tried
from .place import told_by

pytestmark = pytest.mark.timeout(1000)
"""Of a module's first test, which waits for all that is tried."""

_OWN = CASES["own"]


@pytest.fixture(scope="module")
def told() -> dict[str, list[dict[str, Any]]]:
    """What came of every case: rows of the shapes of rules, and of the proxy's own ports."""
    found: dict[str, list[dict[str, Any]]] = told_by("live_rules")
    return found


def _of_shapes() -> Iterator[Any]:
    for shape in CASES["shapes"]:
        for case, expected in _listed(shape):
            if not is_tried(case, shape):
                continue  # with another shape; with this one only with PLAYHEAD_FULL
            yield pytest.param(shape, case, expected, id=f"{shape}-{case['id']}")


def test_there_are_as_many_as_there_have_to_be() -> None:
    """Sixty spellings and mix-ups, and fifteen requests that a rule plainly names; each says why it is there."""
    assert len(CASES["cases"]) >= 60
    assert len(CASES["controls"]) >= 15
    every = [*CASES["cases"], *CASES["controls"], *_OWN["spellings"], *_OWN["controls"]]
    every += [case for cases in CASES["controls_of"].values() for case in cases]
    assert all(case["reason"] for case in every)
    assert len({case["id"] for case in CASES["cases"] + CASES["controls"]}) == len(
        CASES["cases"] + CASES["controls"]
    )


@pytest.mark.parametrize(("shape", "case", "expected"), _of_shapes())
def test_a_live_rule_lets_out_what_it_names(
    told: dict[str, list[dict[str, Any]]], shape: str, case: dict[str, Any], expected: str
) -> None:
    """Nothing reaches a host, path or method that the rule does not name, in any reading of the request."""
    rows = [row for row in told["shapes"] if (row["shape"], row["case"]) == (shape, case["id"])]
    assert rows
    for row in rows:
        why = f"{row['over']}: {case['reason']}; {row}"
        assert "skipped" not in row, why
        assert not row["objections"], why
        if expected == "refused":
            assert not row["arrivals"], why
        elif expected == "passes":
            assert row["reached"], why
            assert len(row["arrivals"]) == 1, why


@pytest.mark.parametrize("case", _OWN["spellings"], ids=lambda case: case["id"])
def test_no_spelling_of_loopback_reaches_the_proxy_itself(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """Neither its control port nor its own, in record and under a live rule that names everything."""
    rows = [row for row in told["own"] if row["case"] == case["id"] and row["port"] != 8080]
    assert rows
    reached = [row for row in rows if row["knocks"]]
    assert not reached, case["reason"]


@pytest.mark.parametrize("case", _OWN["controls"], ids=lambda case: case["id"])
def test_other_services_of_this_machine_are_within_reach(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """In record, and in playback by a rule."""
    rows = [row for row in told["own"] if row["case"] == case["id"] and row["port"] == 8080]
    assert len(rows) >= 4
    for row in rows:
        assert row["reached"], row


@pytest.mark.parametrize("case", CASES["tenants"], ids=lambda case: case["id"])
def test_one_tenant_is_not_given_anothers_answer(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """Every name of a request belongs to what is compared with the tape, in normal form."""
    rows = [row for row in told["tenants"] if row["case"] == case["id"]]
    assert rows
    for row in rows:
        assert row["reached"] is (case["expect"] == "served"), (case["reason"], row)


@pytest.mark.parametrize("case", CASES["written"], ids=lambda case: case["id"])
def test_a_rule_that_is_written_in_an_unusual_way_lets_out_what_it_names(
    told: dict[str, list[dict[str, Any]]], case: dict[str, Any]
) -> None:
    """And nothing else."""
    rows = [row for row in told["written"] if row["case"] == case["id"]]
    assert rows
    passes = case["expect"] == "passes"
    for row in rows:
        assert (row["reached"], row["arrived"]) == (passes, int(passes)), (case["reason"], row)
