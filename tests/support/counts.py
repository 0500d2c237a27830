"""How often properties are tried: often with PLAYHEAD_FULL, a few times every day."""

import os

from hypothesis import settings

FULL = bool(os.environ.get("PLAYHEAD_FULL"))


def tries(reduced: int, full: int = 500) -> settings:
    """Give the settings of a property that says itself how often it is tried."""
    return settings(max_examples=full if FULL else reduced, deadline=None)
