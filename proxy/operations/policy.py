"""`playhead policy` and `playhead contracts`: look at recorded runs again under other rules."""

from pathlib import Path

from ...config import Config, load
from ...store import RunInfo, Store, StoreError
from ...timeline.reading.contract_row import ContractRow
from ...timeline.rules.contract_recheck import recheck_contracts
from ...timeline.rules.contracts import found_in
from ...timeline.rules.policy_dry_run import PolicyDryRun, dry_run_policy
from ...timeline.rules.policy_summary import PolicySummary
from ..progress import ProgressBar
from .open_store import open_store
from .restore_archived import restore_runs


def dry_run_runs(config: Config, names: tuple[str, ...], file: Path) -> list[PolicyDryRun]:
    """Decide on runs again under the rules of a file; on every run of the store if none is named.

    Raises: ConfigError; UnknownRun; LogCorrupt; StoreError, where there is no store.
    """
    rules = load(file)
    if names:
        restore_runs(config, *names)
    with open_store(config, readonly=True) as store:
        runs = [store.runs.get(name) for name in names]
        runs = runs or _here(store)
        if not runs:
            raise StoreError("there is no run to decide on", "record one with: playhead record")
        made = []
        with ProgressBar("judging") as progress:
            for number, run in enumerate(runs, 1):
                made.append(dry_run_policy(store, run, rules))
                progress(number, len(runs))
        return made


def summarise_runs(config: Config, since_ns: int, file: Path) -> PolicySummary:
    """Decide on all runs since a time again under the rules of a file, and count by rule.

    Raises: ConfigError; LogCorrupt; StoreError, where there is no store or no run.
    """
    rules = load(file)
    with open_store(config, readonly=True) as store:
        runs = [run for run in _here(store) if not run.sealed_ns or run.sealed_ns >= since_ns]
        if not runs:
            raise StoreError(
                "there is no run to decide on since then", "give an earlier time to --since"
            )
        summary = PolicySummary(rules)
        with ProgressBar("judging") as progress:
            for number, run in enumerate(runs, 1):
                summary.add(store, run)
                progress(number, len(runs))
        return summary


def _here(store: Store) -> list[RunInfo]:
    """Give the runs that the store holds with what they play."""
    runs = store.runs.all()
    away = {run.number for run in runs if run.is_only_in_archive}
    return [run for run in runs if not {run.number, run.parent_number} & away]


def list_found(config: Config, name: str, file: Path | None) -> list[ContractRow]:
    """Give what was found while the run went on, or what is found under the contracts of a file.

    Raises: ConfigError; UnknownRun; LogCorrupt; StoreError, where there is no store.
    """
    rules = load(file) if file is not None else None
    restore_runs(config, name)
    with open_store(config, readonly=True) as store:
        run = store.runs.get(name)
        if rules is None:
            return found_in(store, run)
        return list(recheck_contracts(store, run, rules))
