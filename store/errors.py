"""The errors of a store.

StoreError          path, and what to do
  NoStore           nothing was ever stored there
  StoreTooNew       written by a newer version
  StoreUnwritable   read-only, full, or not ours
  UnknownRun        no such run; carries the nearest names
  RunOpen           the run is still being recorded
  LogCorrupt        a record cannot be read; names run and number
"""

from pathlib import Path

from .. import PlayheadError
from ..tape.shell_words import shell_word
from .paths import DATA, LOG

_USUAL = ".playhead"
"""The store in a folder, where nobody says otherwise."""


class StoreError(PlayheadError):
    """The store cannot do what was asked."""


def _is_store(path: Path) -> bool:
    try:
        return (path / LOG / DATA).is_file()
    except OSError:
        return False


class NoStore(StoreError):
    """There is no store in a folder."""

    def __init__(self, path: Path) -> None:
        """Say so; name the store inside, where the folder that has it was named, and the one of a folder above, where none was."""
        advice = "record a run first (`playhead record -- COMMAND`), or name another with --store"
        if _is_store(inside := path / _USUAL):
            advice = f"one is in it: --store {inside}"
        elif path.name == _USUAL:
            above = (folder / _USUAL for folder in path.absolute().parent.parents)
            found = next(filter(_is_store, above), None)
            advice = f"one is in a folder above: --store {found}" if found is not None else advice
        super().__init__(f"no store at {path}", advice)


class StoreTooNew(StoreError):
    """The store was written by a newer version of Playhead."""


class StoreUnwritable(StoreError):
    """The store cannot be written: read-only, full, or somebody else's."""

    is_said: bool = False
    """Whether the log says it already."""


class UnknownRun(StoreError):
    """No run has this name."""

    def __init__(self, name: str, nearest: tuple[str, ...] = (), *, is_empty: bool = False) -> None:
        """Say what there is instead.

        nearest: names of runs that may be meant.
        is_empty: whether the store holds none at all.
        """
        listed = "`playhead runs` lists all"
        hint = f"nearest: {', '.join(nearest)}; {listed}" if nearest else listed
        if name.isdecimal() and not nearest:
            hint = f"a step is no run: `playhead show RUN {shell_word(name)}` shows it; {listed}"
        super().__init__(
            f"unknown run {name!r}", "the store holds no runs yet" if is_empty else hint
        )
        self.name = name
        self.nearest = nearest


class RunOpen(StoreError):
    """The run has not ended yet."""


class LogCorrupt(StoreError):
    """A record cannot be read; the text names run, table and number."""
