"""A clock and randomness that a replay repeats, for unchanged programs: see `docs/determinism.md`.

`python/` and `node/` run in the program, under its own interpreter; the rest runs here.
"""

from .journal_keeper import keeping
from .preload_bundle import PreloadBundle, events, lacking

__all__ = ["PreloadBundle", "events", "keeping", "lacking"]
