"""What runs at the same time may use up is never more than the caps, all together."""

from decimal import Decimal

import pytest

from playhead.proxy.experiments.budget import Budget
from playhead.proxy.experiments.run_command_once import Ran
from playhead.proxy.run_again.branch import Caps


def ran(calls: int, usd: str = "0") -> Ran:
    return Ran("r", 0, 0, (), 0, calls, Decimal(usd), 0, False)


@pytest.mark.parametrize(
    ("left", "expected", "parts"),
    [
        (100, 10, [50, 50]),
        (100, 80, [80, 20]),
        (5, 10, [5, None]),
        (0, 10, [None, None]),
        (None, 10, [None, None]),
    ],
)
def test_calls_are_shared(left: int | None, expected: int, parts: list[int | None]) -> None:
    """One run may make what is expected of it; the rest is divided."""
    budget = Budget(Caps(calls=left), 2, expected)
    given = [budget.give(number) for number in range(2)]
    if left is None:
        assert given == [Caps(), Caps()]
    else:
        assert [one.calls if one else None for one in given] == parts


def test_what_was_not_used_is_there_again() -> None:
    """And what was is not."""
    budget = Budget(Caps(calls=10), 1, 8)
    assert budget.give(1) == Caps(calls=10)
    assert budget.give(2) is None
    waited = budget.waits
    budget.take(1, ran(3))
    assert (waited, budget.waits) == (True, False)
    assert budget.give(2) == Caps(calls=7)
    assert budget.show() == "spent 3 calls, 0.00 USD; left 7 calls"


def test_a_run_gets_what_it_is_expected_to_need() -> None:
    """A part with which none could ask its model is none: runs wait for each other, and the rest is not begun."""
    budget = Budget(Caps(Decimal("0.12")), 4, 10, Decimal("0.10"), Decimal("0.05"))
    assert budget.give(0) == Caps(Decimal("0.10"))
    assert budget.give(1) is None
    assert budget.waits
    budget.take(0, ran(1, "0.05"))
    assert budget.give(1) == Caps(Decimal("0.07"))
    budget.take(1, ran(1, "0.05"))
    assert (budget.give(2), budget.waits, budget.is_used_up) == (None, False, True)


def test_money_is_shared() -> None:
    """Down to nothing."""
    budget = Budget(Caps(Decimal(6)), 3, 10)
    assert [budget.give(number) for number in range(3)] == [Caps(Decimal(2))] * 3
    assert budget.give(3) is None
    budget.take(0, ran(1, "2"))
    assert budget.give(3) is None
    budget.take(1, ran(1, "0.5"))
    assert budget.give(3) == Caps(Decimal("0.75"))
