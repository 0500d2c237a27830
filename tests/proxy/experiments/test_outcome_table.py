"""The table of a sweep shows no money as spent that may not have been, and none as saved that may have been billed."""

from decimal import Decimal

import pytest

from playhead.proxy.experiments.outcome_table import Row, render_table
from playhead.proxy.run_again.branch import Spent


@pytest.mark.parametrize(
    ("spent", "shown", "below"),
    [
        (Spent(), "0.00", ""),
        (Spent(Decimal("0.5"), 2, billed=2), "0.50", ""),
        (Spent(Decimal(0), 2, at_least=2, billed=2), "≥ 0.00", "(≥: more"),
        (Spent(Decimal(0), 2, unpriced=2, billed=2), "?", "(≥: more"),
        (Spent(Decimal("0.5"), 2, unpriced=1, billed=2), "≥ 0.50", "(≥: more"),
        (Spent(Decimal("0.0764"), 6, estimated=Decimal("0.0734"), billed=6), "~ 0.0764", "(0.0734 USD are"),
    ],
)  # fmt: skip
def test_money_is_marked(spent: Spent, shown: str, below: str) -> None:
    """As the bill of `playhead cost` is, and what it means is said below."""
    row = Row("as it was", 1, 1, 0, spent, ("r@1", "r@2"), "why")
    _, line, _, *more = render_table([row], "the exit code")
    assert f" {shown}  why" in line
    assert "".join(more).startswith(below)
    assert bool(more) == bool(below)
