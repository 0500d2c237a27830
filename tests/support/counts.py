"""How much is tried: all of it with PLAYHEAD_FULL, a part every day."""

import os
from collections.abc import Callable, Sequence

import pytest
from hypothesis import settings

from playhead.tests.support.fast import is_fast

FULL = bool(os.environ.get("PLAYHEAD_FULL"))
CASES = 12
"""Of a table of cases so many are run, spread over it, where all tests are asked for at once."""
CASES_WITH_PROCESSES = 4
"""The same in a file that starts processes, where each case takes a second."""
_SAMPLED = "playhead_sampled"


def tries(reduced: int, full: int = 500) -> settings:
    """Give the settings of a property that says itself how often it is tried."""
    return settings(max_examples=full if FULL else reduced, deadline=None)


def some[T](cases: Sequence[T], kind: Callable[[T], object]) -> list[T]:
    """Give all cases in a full run, else the first and the last of each kind."""
    if FULL:
        return list(cases)
    kinds: dict[object, list[T]] = {}
    for case in cases:
        kinds.setdefault(kind(case), []).append(case)
    return [
        case
        for alike in kinds.values()
        for case in ([alike[0], alike[-1]] if len(alike) > 1 else alike)
    ]


def is_sampled(config: pytest.Config) -> bool:
    """Say whether tables are run in part: `pytest` by itself does, `pytest PATH`, `-k` and PLAYHEAD_CASES=all do not."""
    given = getattr(config, "workerinput", None)
    if given is not None:  # a worker is given the paths of all tests, whatever was asked for
        return bool(given.get(_SAMPLED))
    chosen = config.option.keyword or config.option.markexpr or config.getoption("--fast")
    is_all = FULL or os.environ.get("PLAYHEAD_CASES") == "all"
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen and not is_all


def tell_worker(config: pytest.Config, given: dict[str, object]) -> None:
    """Have a worker of pytest-xdist do the same."""
    given[_SAMPLED] = is_sampled(config)


def sample(
    items: Sequence[pytest.Item], most: Callable[[pytest.Item], int]
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide tests, in their order, into those that are run and those that are not.

    most: cases of the function of a test that are run, at least 2; the first and the last are among them.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen: set[pytest.Item] = set()
    for alike in cases.values():
        count = min(len(alike), most(alike[0]))
        chosen.update(alike[at * (len(alike) - 1) // max(count - 1, 1)] for at in range(count))
    return [one for one in items if one in chosen], [one for one in items if one not in chosen]


def count_cases(item: pytest.Item) -> int:
    """Give how many cases of a test's function are run where all tests are asked for at once."""
    return CASES if is_fast(item.path) else CASES_WITH_PROCESSES
