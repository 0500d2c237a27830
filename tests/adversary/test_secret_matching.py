"""Values that redaction replaces count when requests are compared: each case of secrets_matching.yaml, which explains them.

Those that fail are listed in secrets_matching_open.yaml, each with its reason.
"""

from typing import Any

import pytest
import yaml

from .place import told_by
from .secret_matching import FOLDER, cases, tried

pytestmark = pytest.mark.timeout(600)
"""Of a module's first test, which waits for all that is tried."""

OPEN: dict[str, str] = yaml.safe_load((FOLDER / "secrets_matching_open.yaml").read_text("utf-8"))[
    "open"
]


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What is wrong with each case, by id."""
    return {row["name"]: row["problem"] for row in told_by("secret_matching")}


def test_every_exception_is_a_case_and_has_its_reason() -> None:
    """And nobody lists what is not there."""
    assert set(OPEN) <= {case["id"] for case in cases()}
    assert all(OPEN.values())


@pytest.mark.parametrize("case", tried(cases()), ids=lambda case: case["id"])
def test_a_value_counts_or_varies_as_stated(told: dict[str, str], case: dict[str, Any]) -> None:
    """The replay is served or diverges, at the stated place."""
    problem, reason = told[case["id"]], OPEN.get(case["id"])
    if reason is None:
        assert not problem, (case["reason"], problem)
    else:
        assert problem, f"no longer open: {reason}; take it from the list"
