"""`playhead policy`: recorded runs judged again under other rules."""

from pathlib import Path

from ..config import Config, load
from ..store import StoreError
from ..timeline.rejudge import Rejudged, rejudge
from .progress import ProgressBar
from .stores import open_store


def rejudge_runs(config: Config, names: tuple[str, ...], file: Path) -> list[Rejudged]:
    """Judge runs again under the rules of a file; every run of the store where none is named.

    Raises: ConfigError; UnknownRun; LogCorrupt; StoreError, where there is no store.
    """
    rules = load(file)
    with open_store(config, readonly=True) as store:
        runs = [store.get_run(name) for name in names] or store.runs()
        if not runs:
            raise StoreError("there is no run to judge", "record one with: playhead record")
        made = []
        with ProgressBar("judging") as progress:
            for number, run in enumerate(runs, 1):
                made.append(rejudge(store, run, rules))
                progress(number, len(runs))
        return made
