"""How many repeats it takes."""

import math

import pytest

from playhead.proxy.experiments.statistical_power import (
    POWER,
    differs,
    estimate_repeats,
    find_least_repeats,
    find_repeats,
    tail,
)


@pytest.mark.parametrize(
    ("more", "fewer", "times", "chance"),
    [
        # Fisher's lady: all four cups right, of eight
        (4, 0, 4, 1 / 70),
        (3, 1, 4, 17 / 70),
        (2, 2, 4, 53 / 70),
        (0, 0, 4, 1.0),
    ],
)
def test_the_chance_of_a_difference(more: int, fewer: int, times: int, chance: float) -> None:
    """As Fisher gives it for the tea taster."""
    assert tail(more, fewer, times) == pytest.approx(chance)


@pytest.mark.parametrize(("high", "low"), [(0.9, 0.1), (0.75, 0.25), (1.0, 0.0)])
@pytest.mark.parametrize("comparisons", [1, 5])
def test_so_many_repeats_have_the_power(high: float, low: float, comparisons: int) -> None:
    """And fewer have not."""

    def power(times: int) -> float:
        def chance(count: int, share: float) -> float:
            return math.comb(times, count) * share**count * (1 - share) ** (times - count)

        return sum(
            chance(more, high) * chance(fewer, low)
            for more in range(times + 1)
            for fewer in range(times + 1)
            if more > fewer and differs(more, fewer, times, comparisons)
        )

    times = find_repeats(high, low, comparisons)
    assert power(times) >= POWER
    assert all(power(fewer) < POWER for fewer in range(1, times))


@pytest.mark.parametrize(("high", "low"), [(0.9, 0.1), (0.75, 0.25), (0.35, 0.0), (0.5, 0.2)])
@pytest.mark.parametrize("comparisons", [1, 5])
def test_the_estimate_is_near_what_it_takes(high: float, low: float, comparisons: int) -> None:
    """Somewhat too many where one share is none at all."""
    takes = find_repeats(high, low, comparisons)
    assert estimate_repeats(high, low, comparisons) == pytest.approx(takes, rel=0.35, abs=4)


def test_the_estimate_of_rare_shares_is_there_at_once() -> None:
    """Where counting takes very long."""
    assert 1000 < estimate_repeats(0.01, 0.0) < 1500


@pytest.mark.parametrize(("comparisons", "least"), [(1, 4), (3, 4), (6, 5), (13, 6)])
def test_fewer_repeats_than_the_least_prove_nothing(comparisons: int, least: int) -> None:
    """Not even where they agree."""
    assert find_least_repeats(comparisons) == least
    assert differs(least, 0, least, comparisons)
    assert not differs(least - 1, 0, least - 1, comparisons)
