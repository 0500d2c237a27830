"""`playhead verify`: check the integrity of a store, and search it for secrets."""

import time

from ...config import Config
from ...store import RunInfo, Store, StoreError
from ...store.lmdb.page_check import check_pages
from ...tape.canonical.canonical_request import rules_of
from ...tape.exchange import Exchange
from ...tape.matching.index import Entry, index_digest, index_entry, reclassify
from ...timeline.checks.integrity import Find, Problem, Verified, verify_run, with_archive
from ...timeline.checks.secrets import Finding, detect_nothing, find_detectors, find_secrets
from ..progress import ProgressBar
from ..standard_streams import print_status
from .find_tape import redactor_of
from .open_store import open_store
from .restore_archived import open_place, require_pyarrow, restore_runs

WITHOUT_DETECTORS = "searched without detect-secrets, which is not installed: pip install 'playhead[secrets]' adds it"


def verify_runs(config: Config, run: str | None) -> list[Verified]:
    """Check the log, the exchanges and the bodies of a run, or of all; before that the pages of the store's file.

    Runs that are archived are checked in their archive; nothing is restored.
    Raises: StoreError for a damaged file; UnknownRun, LogCorrupt for the list of runs itself; PlayheadError where a
        run is archived and pyarrow is not installed.
    """
    if unread := check_pages(config.store):
        print_status(f"playhead: the file's pages are not looked at: {unread}")
    with (
        open_store(config, readonly=True, as_recorded=True) as store,
        ProgressBar("verifying") as progress,
    ):
        runs = store.runs.all() if run is None else [store.runs.get(run)]
        find, digest = _keys(config)
        away = _verify_archived(store, runs, progress)
        found = []
        for one in runs:
            there = away.get(one.number)
            if one.is_only_in_archive and there is not None:
                found.append(there)
                continue
            here = verify_run(store, one, progress, find if one.rules == digest else None)
            found.append(with_archive(here, there) if there is not None else here)
        return found


def _verify_archived(
    store: Store, runs: list[RunInfo], progress: ProgressBar
) -> dict[int, Verified]:
    """Check those runs that are archived, one batch after the other; give what was found by the run's number."""
    found = _verify_batches(runs, progress)
    for number, one in found.items():
        # Another process may have moved the run to another batch meanwhile.
        now = store.runs.reload(one.run) if one.problems else one.run
        if now.archived != one.run.archived:
            found[number] = _verify_batches([now], progress).get(number, one)
    return found


def _verify_batches(runs: list[RunInfo], progress: ProgressBar) -> dict[int, Verified]:
    runs = [run for run in runs if run.archived is not None]
    if not runs:
        return {}
    require_pyarrow()
    from ...timeline.archiving.move_runs import by_batch
    from ...timeline.checks.verify_archived_runs import verify_batch

    found: dict[int, Verified] = {}
    for (place, batch), members in by_batch(runs).items():
        try:
            checked = verify_batch(open_place(place), batch, members, progress)
        except StoreError as error:
            problem = Problem(0, 0, f"its archive: {error}")
            checked = [Verified(one, one.exchanges, 0, (problem,)) for one in members]
        found.update((one.run.number, one) for one in checked)
    return found


def _keys(config: Config) -> tuple[Find, bytes]:
    """Give what finds the keys of an exchange under the rules of now, and which rules these are."""
    rules, redactor = rules_of(config, time.thread_time), redactor_of(config)

    def find(exchange: Exchange) -> Entry:
        return index_entry(reclassify(exchange, config.classes), rules, redactor)

    return find, index_digest(rules, config)


def verify_secrets(config: Config, run: str | None) -> tuple[list[Finding], int]:
    """Give what reads like a secret in a run, or in all; and how many runs were looked at.

    Says so where detect-secrets is not installed, and searches without it.
    Raises: UnknownRun, LogCorrupt.
    """
    detect = find_detectors()
    if detect is None:
        detect = detect_nothing
        print_status(f"playhead: {WITHOUT_DETECTORS}")
    if run is not None:
        restore_runs(config, run)
    with (
        open_store(config, readonly=True, as_recorded=True) as store,
        ProgressBar("reading") as progress,
    ):
        runs = _chosen(store, run)
        found = find_secrets(store, runs, lambda: redactor_of(config), detect, progress)
        return list(found), len(runs)


def _chosen(store: Store, name: str | None) -> list[RunInfo]:
    """Give the run that is named, or all that the store holds; those that are archived are said to be left out."""
    if name is not None:
        return [store.runs.get(name)]
    runs = store.runs.all()
    here = [run for run in runs if not run.is_only_in_archive]
    if len(here) < len(runs):
        away = len(runs) - len(here)
        print_status(f"playhead: {away} archived runs are not looked at; name one to restore it")
    return here
