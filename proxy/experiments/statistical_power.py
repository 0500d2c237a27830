"""How many repeats it takes to tell two shares apart, by Fisher's exact test. Source: R. A. Fisher, 1935."""

import math
from functools import cache
from statistics import NormalDist

POWER = 0.95
"""The chance that a difference is found which is there."""
_LEVEL = 0.05
"""The chance that one is found which is not there, over all comparisons."""
_MOST = 400


@cache
def _chance(count: int, total: int, share: float) -> float:
    """Give how likely so many of a total are, each with this chance."""
    return math.comb(total, count) * share**count * (1 - share) ** (total - count)


def tail(more: int, fewer: int, times: int) -> float:
    """Give how likely chance alone makes one of two groups of this size exceed the other at least so.

    more, fewer: how many of each group.
    """
    both = more + fewer
    whole = math.comb(2 * times, both)
    found = range(more, min(both, times) + 1)
    return sum(math.comb(times, one) * math.comb(times, both - one) for one in found) / whole


def differs(more: int, fewer: int, times: int, comparisons: int = 1) -> bool:
    """Say whether two groups of this size differ, with 95 % confidence over all comparisons."""
    return tail(more, fewer, times) < _LEVEL / comparisons


def find_least_repeats(comparisons: int = 1) -> int:
    """Give how many repeats of each of two it takes at least to tell them apart, where all of one are bad and none of the other is."""
    return next(times for times in range(2, _MOST) if differs(times, 0, times, comparisons))


def find_repeats(high: float, low: float, comparisons: int = 1) -> int:
    """Give how many repeats of each of two it takes to find, with 95 % power, that their shares are these two."""
    for times in range(2, _MOST):
        power = sum(
            _chance(more, times, high) * _chance(fewer, times, low)
            for more in range(times + 1)
            for fewer in range(more)
            if differs(more, fewer, times, comparisons)
        )
        if power >= POWER:
            return times
    return _MOST


def estimate_repeats(high: float, low: float, comparisons: int = 1) -> int:
    """Give about how many repeats of each of two it takes to find, with 95 % power, that their shares are these two; at once, also for many.

    Source: J. L. Fleiss, 1981: the normal approximation, with the correction for Fisher's test.
    """
    normal, apart = NormalDist(), high - low
    sure, found = normal.inv_cdf(1 - _LEVEL / comparisons), normal.inv_cdf(POWER)
    both = high + low
    spread = sure * math.sqrt(both * (1 - both / 2)) + found * math.sqrt(
        high * (1 - high) + low * (1 - low)
    )
    plain = (spread / apart) ** 2
    return math.ceil(plain / 4 * (1 + math.sqrt(1 + 4 / (plain * apart))) ** 2)
