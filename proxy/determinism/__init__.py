"""Record and replay the clock and randomness of unchanged programs: see `docs/determinism.md`.

`python/`, `node/` and `bun/` run in the program, under its own interpreter, and so does the library that `libc/` compiles; the
rest runs here.
"""

from .journal_keeper import keeping
from .preload_bundle import PreloadBundle, events, lacking

__all__ = ["PreloadBundle", "events", "keeping", "lacking"]
