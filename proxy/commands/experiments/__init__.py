"""Commands that run an agent many times against one tape, each time otherwise: bisect, sweep, explore."""

from .bisect import bisect
from .explore import explore
from .sweep import sweep

__all__ = ["bisect", "explore", "sweep"]
