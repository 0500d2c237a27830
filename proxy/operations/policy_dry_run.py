"""`playhead policy` and `playhead contracts`: look at recorded runs again under other rules."""

from pathlib import Path

from ...config import Config, load
from ...store import StoreError
from ...tape.contracts.applicable_contracts import Contracts
from ...timeline.reading.contract_row import ContractRow
from ...timeline.rules.contract_recheck import recheck_contracts
from ...timeline.rules.contract_violations import began_with_contracts, found_in
from ...timeline.rules.policy_dry_run import PolicyDryRun, dry_run_policy
from ...timeline.rules.policy_summary import PolicySummary
from ..progress import ProgressBar
from .open_store import open_store
from .restore_archived import choose_runs, fetch_since, find_none_since, restore_runs


def dry_run_runs(config: Config, names: tuple[str, ...], file: Path) -> list[PolicyDryRun]:
    """Decide on runs again under the rules of a file; on every run of the store if none is named.

    Raises: ConfigError; UnknownRun; LogCorrupt; StoreError, where there is no store.
    """
    rules = load(file)
    if names:
        restore_runs(config, *names)
    else:
        fetch_since(config, 0)
    with open_store(config, readonly=True, as_recorded=True) as store:
        runs, _ = choose_runs(store, names, 0)
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
    fetch_since(config, since_ns)
    with open_store(config, readonly=True, as_recorded=True) as store:
        runs, _ = choose_runs(store, (), since_ns)
        if not runs:
            raise find_none_since(store, since_ns)
        summary = PolicySummary(rules)
        with ProgressBar("judging") as progress:
            for number, run in enumerate(runs, 1):
                summary.add(store, run)
                progress(number, len(runs))
        return summary


def say_unchecked(config: Config, name: str, file: Path | None) -> str:
    """Say that no contract was there to be broken; empty where there was one.

    Raises: ConfigError; UnknownRun; LogCorrupt; StoreError, where there is no store.
    """
    if file is not None:
        is_checked = Contracts.of(load(file)) is not None
        return "" if is_checked else f"nothing was checked: {file} has no contracts"
    with open_store(config, readonly=True) as store:
        if began_with_contracts(store, store.runs.get(name)):
            return ""
    return "no violation was noted, and it began without rules of `contracts`; --with FILE tries those of another file"


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
