"""How much is tried: all of it with PLAYHEAD_FULL, a part every day."""

import os
from collections.abc import Callable, Sequence

from hypothesis import settings

FULL = bool(os.environ.get("PLAYHEAD_FULL"))


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
