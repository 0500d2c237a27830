"""`playhead redact --rewrite`: apply the rules of redaction of now to runs that are stored."""

import contextlib
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...config import Config
from ...store import RunInfo, RunOpen, RunStatus, Store, StoreError, hold_alone, without_ballast
from ...tape.canonical.canonical_request import rules_of
from ...tape.exchange import Exchange, Fingerprint
from ...tape.matching.index import index_entry, reclassify
from ...tape.shell_words import shell_word
from ...timeline.checks.integrity import verify_run
from ...timeline.reading.placeholder_key import find_key
from ...timeline.rewriting.rewrite_run import (
    Change,
    Find,
    Rewriter,
    find_changes,
    make_rewriter,
    rewrite_run,
)
from ..progress import ProgressBar
from ..standard_streams import print_status
from ..trust.redaction_and_receipt_keys import open_redaction_key
from .find_tape import redactor_of
from .open_store import open_store
from .reindex import index_anew
from .restore_archived import (
    clear_archive,
    moving,
    open_place,
    require_pyarrow,
    restore_run,
    restore_runs,
)
from .retention import take_bytes_out

_DRY = b"nothing is made with it"
"""Key of placeholders that are not written."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What became of runs."""

    changes: list[Change]
    written: bool

    def to_json(self) -> list[dict[str, Any]]:
        """Give it as JSON types."""
        return [one.to_json(written=self.written) for one in self.changes]


def rewrite(config: Config, names: Sequence[str], *, dry_run: bool) -> Rewriting:
    """Rewrite runs, with what plays them, under the rules of a configuration; all runs of the store if none is named.

    What they held before is not in the store's files afterwards, nor in an archive.
    Raises: UnknownRun, RunOpen; LogCorrupt; StoreError, naming who has the store open, or what is wrong with a run: nothing
        of that run is rewritten then; PlayheadError without pyarrow, where a run is archived.
    """
    with open_store(
        config, readonly=True, as_recorded=True
    ) as store:  # so that a mistyped store is not made
        lines = _lines(store, names)
        archived = [run for line in lines for run in line if run.archived is not None]
        if archived:
            require_pyarrow()
    if dry_run:
        restore_runs(config, *(run.id for line in lines for run in line))
        with (
            open_store(config, readonly=True, as_recorded=True) as store,
            ProgressBar("reading") as progress,
        ):
            found = []
            for line in _lines(store, names):
                rewriter = make_rewriter(config, _DRY)
                found += find_changes(store, line, rewriter, progress)
            return Rewriting(found, written=False)
    key = open_redaction_key(config.store)
    # From first to last: who comes in between could keep the old bytes from their end.
    with (
        contextlib.closing(hold_alone(config.store, "rewriting")) as held,
        without_ballast(config.store),
    ):
        with open_store(config, held=held) as store:
            lines = _lines(store, names)
            if archived or store.archive.outdated():
                store.archive.check_home()
            changes: list[Change] = []
            failed: StoreError | None = None
            try:
                for line in lines:
                    changes += _rewrite_line(config, store, line, key)
            except StoreError as error:  # what others held before goes all the same
                failed = error
            with moving(store):
                clear_archive(store)
            erasing = store.removal.erasing
        if erasing:
            take_bytes_out(config, held)
        if failed is not None:
            raise failed
    return Rewriting(changes, written=True)


def _lines(store: Store, names: Sequence[str]) -> list[list[RunInfo]]:
    """Give each run that is named with those that play it, and no run twice.

    Raises: UnknownRun, RunOpen.
    """
    runs = sorted(store.runs.all(), key=lambda run: run.number)
    chosen = [store.runs.get(name) for name in names] or [
        run for run in runs if not _is_played_from(run, runs)
    ]
    lines: list[list[RunInfo]] = []
    seen: set[int] = set()
    for run in chosen:
        line = {run.number: run}
        for other in runs:
            if other.parent_number in line:
                line[other.number] = other
        for one in line.values():
            if one.status is RunStatus.OPEN:
                hint = f"end it first: playhead seal {shell_word(one.id)}"
                raise RunOpen(f"run {one.id!r} has not ended", hint)
        if left := [one for one in line.values() if one.number not in seen]:
            lines.append(left)
        seen |= line.keys()
    return lines


def _is_played_from(run: RunInfo, runs: Sequence[RunInfo]) -> bool:
    return any(run.parent_number == other.number for other in runs)


def _rewrite_line(config: Config, store: Store, line: list[RunInfo], key: bytes) -> list[Change]:
    away = [run for run in line if run.is_only_in_archive]
    for run in away:
        restore_run(store, run)
    line = [store.runs.reload(run) for run in line]
    rewriter = make_rewriter(config, key)
    rewriter.make_as(find_key(store, line[0]))
    with ProgressBar("reading") as progress:
        found = find_changes(store, line, rewriter, progress)
        for one in found:
            if one.rules:
                _require_sound(store, one.run, progress)
    changes = []
    # What plays a run goes before it: which values are secret may be known from the run alone, and after a kill it is read again.
    for one in reversed(found):
        changes.append(_rewrite_run(config, store, one, rewriter) if one.rules else one)
    changes.reverse()
    with moving(store):
        # What nothing was found in is dropped again.
        store.archive.drop_restored([store.runs.reload(run) for run in away])
    return changes


def _require_sound(store: Store, run: RunInfo, progress: Callable[[int, int], None]) -> None:
    """Refuse a run that is damaged: under new hashes it would look sound.

    Raises: StoreError.
    """
    problems = verify_run(store, run, progress).problems
    if problems:
        raise StoreError(
            f"run {run.id!r} is damaged: seq {problems[0].seq}: {problems[0].text}",
            "put back a copy of it, or erase it: playhead erase",
        )


def _rewrite_run(config: Config, store: Store, found: Change, rewriter: Rewriter) -> Change:
    # Another run of its batch may have been rewritten, and what is left of the batch was moved to a new one.
    now = store.runs.reload(found.run)
    run = now if replace(now, archived=found.run.archived) == found.run else found.run
    with ProgressBar("rewriting") as progress:
        made = rewrite_run(store, run, rewriter, _find(config), time.time_ns(), progress)
        if run.parent is None:
            made.run = index_anew(store, config, run.id)
    if run.archived is not None:
        _archive(store, made.run, run.archived.place)
    return made


def _find(config: Config) -> Find:
    """Give what finds the fingerprint of an exchange under the rules of now."""
    rules, redactor = rules_of(config, time.thread_time), redactor_of(config)

    def find(exchange: Exchange) -> Fingerprint:
        return index_entry(reclassify(exchange, config.classes), rules, redactor).fingerprint

    return find


def _archive(store: Store, run: RunInfo, place: str) -> None:
    """Move a run that was rewritten to the archive that holds what it was."""
    from ...timeline.archiving.move_runs import archive_runs

    with moving(store), ProgressBar("archiving") as progress:
        clear_archive(store)
        moved = archive_runs(
            store, open_place(place), [run], platform.node(), time.time_ns, progress
        )
    for _, why in moved.refused:
        print_status(f"playhead: run {run.id!r} was rewritten, and stays in the store: {why}")
