"""The errors of a store.

StoreError          path, and what to do
  StoreTooNew       written by a newer version
  StoreUnwritable   read-only, full, or not ours
  UnknownRun        no such run; carries the nearest names
  RunOpen           the run is still being recorded
  LogCorrupt        a record cannot be read; names run and number
"""

from .. import PlayheadError


class StoreError(PlayheadError):
    """The store cannot do what was asked."""


class StoreTooNew(StoreError):
    """The store was written by a newer version of Playhead."""


class StoreUnwritable(StoreError):
    """The store cannot be written: read-only, full, or somebody else's."""


class UnknownRun(StoreError):
    """No run has this name."""

    def __init__(self, name: str, nearest: tuple[str, ...]) -> None:
        hint = f"nearest: {', '.join(nearest)}" if nearest else "the store holds no runs yet"
        super().__init__(f"unknown run {name!r}", hint)
        self.name = name
        self.nearest = nearest


class RunOpen(StoreError):
    """The run has not ended yet."""


class LogCorrupt(StoreError):
    """A record cannot be read; the text names run, table and number."""
