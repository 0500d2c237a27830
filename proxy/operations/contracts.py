"""`playhead contracts`: the contract violations of a recorded run, under its own rules or others."""

from pathlib import Path

from ...config import Config, load
from ...timeline.reading.contract_row import ContractRow
from ...timeline.rules.contract_recheck import recheck_contracts
from ...timeline.rules.contracts import found_in
from .open_store import open_store
from .restore_archived import restore_runs


def list_found(config: Config, name: str, file: Path | None) -> list[ContractRow]:
    """Give what was found while the run went on, or what is found under the contracts of a file.

    Raises: ConfigError; UnknownRun; LogCorrupt; StoreError, where there is no store.
    """
    rules = load(file) if file is not None else None
    restore_runs(config, name)
    with open_store(config, readonly=True) as store:
        run = store.get_run(name)
        if rules is None:
            return found_in(store, run)
        return list(recheck_contracts(store, run, rules))
