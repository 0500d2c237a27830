"""Open a run to look back at it; one that is archived is restored first."""

import contextlib
from collections.abc import Iterator

from ...config import Config
from ...store import Store
from ...timeline.state.calls_before import Exchanges
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_runs


@contextlib.contextmanager
def opened(config: Config, run: str) -> Iterator[tuple[Store, Exchanges]]:
    """Open the store of a configuration for reading, with the exchanges of a run.

    Raises: UnknownRun; StoreError.
    """
    restore_runs(config, run)
    with open_store(config, readonly=True) as store:
        yield store, Exchanges(store, store.runs.get(run))
