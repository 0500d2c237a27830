"""Open the runs that a question is about: one, those that are named, or those since a time. What is archived is fetched first."""

import contextlib
from collections.abc import Iterator, Sequence

from ...config import Config
from ...store import RunInfo, Store
from ...timeline.state.calls_before import Exchanges
from ..operations.open_store import open_store
from ..operations.restore_archived import choose_runs, fetch_since, find_none_since, restore_runs


@contextlib.contextmanager
def opened(config: Config, run: str) -> Iterator[tuple[Store, Exchanges]]:
    """Open the store of a configuration for reading, with the exchanges of a run.

    Raises: UnknownRun; StoreError.
    """
    restore_runs(config, run)
    with open_store(config, readonly=True) as store:
        yield store, Exchanges(store, store.runs.get(run))


@contextlib.contextmanager
def opened_runs(
    config: Config, names: Sequence[str], since_ns: int
) -> Iterator[tuple[Store, list[RunInfo]]]:
    """Open the store of a configuration for reading, with the runs that are named, else those that went on since a time.

    Of the latter those that cannot be fetched from their archive are left out, and that is said on stderr.
    Raises: UnknownRun; LogCorrupt; StoreError, also where there is no run.
    """
    if names:
        restore_runs(config, *names)
    else:
        fetch_since(config, since_ns)
    with open_store(config, readonly=True) as store:
        runs, _ = choose_runs(store, names, since_ns)
        if not runs:
            raise find_none_since(store, since_ns)
        yield store, runs
