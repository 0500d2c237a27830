"""Names of runs on a command line: the whole name, its beginning where it is that of one run, or `latest`.

A run is found in this order: the one of exactly that name; for `latest`, the newest recording that has ended; the one whose
name begins so. Numbered runs (`mine~2`, `mine@1`) do not make the beginning of `mine` ambiguous.
"""

import re
from collections.abc import Collection

from ...config import Config
from ...config.value_types import LATEST
from ...store import Store, StoreError
from ...tape.exchange import RunId
from ..operations.find_tape import choose_recording, say_which_is_meant, say_which_is_played
from ..operations.open_store import open_store

_NUMBER = re.compile(r"(?:[@~]\d+)+\Z")
_MOST_SHOWN = 5


def complete_name(store: Store, name: str) -> str:
    """Give the whole name of the run that is meant; a name that no run's begins with is given as it is.

    Raises: StoreError, where it is the beginning of several names; LogCorrupt.
    """
    if not name or store.runs.find(name) is not None:
        return name
    if name == LATEST and (latest := store.runs.find_latest()) is not None:
        return latest.id
    known = [run.id for run in store.runs.all()]
    fitting = [one for one in known if one.startswith(name)]
    base, _, number = name.rpartition("~")
    if number == "1" and base in known:  # which `replay` reads as the first of that name
        return name
    bases = dict.fromkeys(_base(one, name) for one in fitting)
    if len(bases) > 1:
        shown = ", ".join(repr(str(one)) for one in [*bases][:_MOST_SHOWN])
        more = " ..." if len(bases) > _MOST_SHOWN else ""
        raise StoreError(
            f"{name!r} begins the names of {len(bases)} runs: {shown}{more}",
            "give more of the name; `playhead runs` lists all",
        )
    return next(iter(bases), name)


def _base(run: RunId, beginning: str) -> str:
    """Give a name without its numbers; with them where the beginning reaches into these."""
    base = _NUMBER.sub("", run)
    return base if base.startswith(beginning) else run


def complete_configured_name(config: Config, name: str) -> str:
    """Give the whole name of a run of a configuration's store, where that can be opened; else the name as it is.

    A store that cannot be read is an error of the command, which opens it next.
    Raises: StoreError, where it is the beginning of several names.
    """
    try:
        store = open_store(config, readonly=True)
    except StoreError:
        return name
    with store:
        return complete_name(store, name)


def find_meant(
    config: Config, name: str, *, plays: bool, beside: Collection[str] = ()
) -> tuple[str, str]:
    """Give the whole name of a run of a configuration's store, as `complete_configured_name`, and what is to be said of it.

    plays: whether the command plays the newest recording of the name, as `replay` does; else it takes the run itself, which `NAME~1`
        names, too, where there are later ones.
    beside: what else is named; who names the newest as well knows of it.
    Raises: StoreError, where it is the beginning of several names; LogCorrupt.
    """
    try:
        store = open_store(config, readonly=True)
    except StoreError:
        return name, ""
    with store:
        whole = complete_name(store, name)
        played, others = choose_recording(store, whole)
        if plays:
            return whole, say_which_is_played(whole, played, others)
        if store.runs.find(whole) is None:
            return played, ""
        is_known = name == LATEST or played in beside
        return whole, "" if is_known else say_which_is_meant(whole, played)


def list_names(config: Config, beginning: str) -> list[str]:
    """List the names of runs that begin so, the newest first, and `latest`; nothing where the store cannot be read."""
    try:
        with open_store(config, readonly=True) as store:
            known = [run.id for run in reversed(store.runs.all())]
    except StoreError:
        return []
    return [one for one in (LATEST, *known) if one.startswith(beginning)]
