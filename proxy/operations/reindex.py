"""`playhead reindex`: index a tape again under the current rules."""

from ...config import Config
from ...store import RunInfo, Store
from ...timeline.rules.reindex import Plan, plan
from ..progress import ProgressBar
from .find_tape import get_recording, redactor_of
from .open_store import open_store
from .restore_archived import restore_runs


def reindex_run(config: Config, name: str, *, write: bool) -> Plan:
    """Make a recording's index anew under the rules of a configuration; say what changes.

    write: False only says it.
    Raises: UnknownRun, RunOpen; StoreError for a playback, or where the store cannot be written.
    """
    restore_runs(config, name)
    with open_store(config, readonly=True) as store:
        get_recording(store, name)  # so that a mistyped store is not made
        if not write:
            return _plan(store, config, name)
    with open_store(config) as store:
        made = _plan(store, config, name)
        store.index.replace(made.run, made.index)
        return made


def index_anew(store: Store, config: Config, name: str) -> RunInfo:
    """Make a recording's index anew under the rules of a configuration, in an open store; give the run as it now stands."""
    made = _plan(store, config, name)
    return store.index.replace(made.run, made.index)


def _plan(store: Store, config: Config, name: str) -> Plan:
    run = get_recording(store, name)
    with ProgressBar("indexing") as progress:
        return plan(store, run, config, redactor_of(config), progress)
