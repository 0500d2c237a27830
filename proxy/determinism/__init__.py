"""A clock and randomness that a replay repeats, for unchanged programs: see `docs/determinism.md`.

`python/` and `node/` run in the program, under its own interpreter; the rest runs here.
"""

from .keeper import keeping
from .kit import Kit, events, lacking

__all__ = ["Kit", "events", "keeping", "lacking"]
