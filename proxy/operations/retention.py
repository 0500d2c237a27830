"""`playhead gc`, `erase`, `label` and `pin`: retention of runs."""

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...config import Config
from ...config.parse_values import LABEL_RULE, is_label
from ...store import (
    RunInfo,
    RunOpen,
    RunStatus,
    Store,
    StoreError,
    StoreLock,
    compact,
    hold_alone,
    without_ballast,
)
from ...store.paths import DATA, LOG
from ...tape.policy.retention import Listed, Sentence, decide_retention
from ...tape.records.events import Event, EventKind
from ...tape.shell_words import shell_word
from ...timeline.reading.placeholder_key import find_key
from ..progress import ProgressBar
from ..trust.redaction_and_receipt_keys import open_redaction_key
from .find_tape import redactor_of
from .notes import user_name
from .open_store import open_store
from .restore_archived import (
    check_removable,
    clear_archive,
    moving,
    remove_from_archive,
    restore_runs,
)

SPARE_S = 3600.0
"""Younger body files stay; longer than a late answer is waited for."""
_BATCH_RUNS = 100


@dataclass(frozen=True, slots=True)
class Collected:
    """What became of a store."""

    sentences: list[Sentence]
    deleted: bool
    file_bytes: int
    """Of body files that were removed."""
    before_bytes: int
    after_bytes: int
    """Of the database's file; as before where it could not be made anew."""
    waiting: str
    """Why the database's file could not be made anew, or empty."""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {
            "runs": [
                {"run": one.run.name, "goes": one.goes, "reason": one.reason}
                for one in self.sentences
            ],
            "deleted": self.deleted,
            "file_bytes": self.file_bytes,
            "before_bytes": self.before_bytes,
            "after_bytes": self.after_bytes,
            "waiting": self.waiting,
        }


def collect(config: Config, *, dry_run: bool) -> Collected:
    """Delete the runs past their retention, and free their space.

    Raises: StoreError, LogCorrupt.
    """
    with open_store(config, readonly=True) as store:  # so that a mistyped store is not made
        sentences = _decide(config, store.runs.all())
    size = _size(config)
    if dry_run:
        return Collected(sentences, False, 0, size, size, "")
    with without_ballast(config.store):
        return _collect(config, size)


def _collect(config: Config, size: int) -> Collected:
    with open_store(config) as store, ProgressBar("deleting") as progress:
        runs = {run.number: run for run in store.runs.all()}
        sentences = _decide(config, runs.values())
        gone = [runs[one.run.number] for one in sentences if one.goes]
        here = [run for run in gone if run.archived is None]
        for at in range(0, len(here), _BATCH_RUNS):
            store.removal.delete(here[at : at + _BATCH_RUNS])
            progress(at + _BATCH_RUNS, len(here))
        archive_error: StoreError | None = None
        try:
            away = [run for run in gone if run.archived is not None]
            _tidy_archive(config, store, away, progress)
        except StoreError as error:  # what was deleted here gives its space back all the same
            archive_error = error
        sentences = _carried_out(store, sentences)
        freed = store.removal.remove_unneeded_files(time.time_ns() / 1e9 - SPARE_S)
        erasing = store.removal.erasing
        compacting = bool(gone) or store.removal.owes_compaction
    after, waiting = size, ""
    try:
        if erasing:  # somebody began to, and was killed
            with contextlib.closing(hold_alone(config.store, "erasing")) as held:
                more, (size, after) = take_bytes_out(config, held)
                freed += more
        elif compacting:
            with ProgressBar("compacting") as progress:
                size, after = compact(config.store, progress)
    except StoreError as error:
        waiting = str(error)
    if archive_error is not None:
        raise archive_error
    return Collected(sentences, True, freed, size, after, waiting)


def _tidy_archive(config: Config, store: Store, gone: list[RunInfo], progress: ProgressBar) -> None:
    """Delete archived runs, what a kill left in an archive, and copies that were restored long enough ago."""
    since_ns = time.time_ns() - int(config.retention.hot_s * 1e9)
    going = {run.number for run in gone}
    old = [
        one
        for one in store.runs.all()
        if one.archived and 0 < one.archived.restored_ns < since_ns and one.number not in going
    ]
    if not (gone or old or store.archive.unneeded() or store.archive.outdated()):
        return
    with moving(store):
        clear_archive(store)
        store.archive.drop_restored(old)
        # One that was marked since it was looked at stays.
        still = [run for run in gone if store.runs.reload(run) == run]
        remove_from_archive(store, still, progress)


def _carried_out(store: Store, sentences: list[Sentence]) -> list[Sentence]:
    """Say of what was to go and is still there that it stays."""
    left = {run.number for run in store.runs.all()}
    return [
        one._replace(
            goes=False, reason="it was marked or archived, or is played, since it was looked at"
        )
        if one.goes and one.run.number in left
        else one
        for one in sentences
    ]


def _decide(config: Config, runs: Iterable[RunInfo]) -> list[Sentence]:
    return decide_retention([listed(run) for run in runs], config.retention, time.time_ns())


def listed(run: RunInfo) -> Listed:
    """Give what is asked of a run."""
    ended = max(run.sealed_ns, run.created_ns) if run.status is not RunStatus.OPEN else 0
    return Listed(
        run.number,
        run.id,
        ended,
        run.parent_number,
        run.labels,
        run.pinned,
        archived=run.archived is not None,
    )


def _size(config: Config) -> int:
    return (config.store / LOG / DATA).stat().st_size


def find_erased(config: Config, name: str) -> list[RunInfo]:
    """Give what goes with a run that is erased: the run, and what plays it or was made from it.

    Raises: UnknownRun, RunOpen.
    """
    with open_store(config, readonly=True) as store:
        return _line(store, store.runs.get(name))


def _line(store: Store, run: RunInfo) -> list[RunInfo]:
    found = {run.number: run}
    for other in sorted(store.runs.all(), key=lambda one: one.number):
        if other.parent_number in found:
            found[other.number] = other
    for one in found.values():
        if one.status is RunStatus.OPEN:
            raise RunOpen(
                f"run {one.id!r} has not ended", f"end it first: playhead seal {shell_word(one.id)}"
            )
    return list(found.values())


def erase(config: Config, name: str) -> list[RunInfo]:
    """Erase a run and what was made from it: their bytes are not in the store's files afterwards, nor in an archive.

    Raises: UnknownRun, RunOpen; StoreError, naming who has the store open or the archive that cannot be read: nothing is erased then.
    """
    find_erased(config, name)
    # From first to last: who comes in between could put a body there that nothing needs yet, or keep it from its end.
    with (
        contextlib.closing(hold_alone(config.store, "erasing")) as held,
        without_ballast(config.store),
    ):
        with open_store(config, held=held) as store:
            gone = _line(store, store.runs.get(name))
            away = [run for run in gone if run.archived is not None]
            try:
                check_removable(store, away)
            except StoreError as error:
                # Who erases half of it would believe that all of it is gone.
                text = (
                    f"nothing of run {name!r} was erased, since a part of it is archived: {error}"
                )
                raise StoreError(text, f"{error.hint}; then erase it again") from error
            store.removal.erase([run for run in gone if run.archived is None])
            if away:
                with moving(store), ProgressBar("erasing") as progress:
                    remove_from_archive(store, away, progress)
        take_bytes_out(config, held)
        return gone


def take_bytes_out(config: Config, held: StoreLock) -> tuple[int, tuple[int, int]]:
    """Remove all files and pages that nothing needs; give the bytes of files, and of the database before and after.

    Raises: StoreError.
    """
    with open_store(config, held=held) as store:
        freed = store.removal.remove_unneeded_files(time.time_ns() / 1e9 + 1)
    with ProgressBar("compacting") as progress:
        return freed, compact(config.store, progress, held)


def mark(
    config: Config,
    name: str,
    *,
    add: tuple[str, ...] = (),
    remove: tuple[str, ...] = (),
    pin: bool | None = None,
) -> RunInfo:
    """Give a run labels, take some, pin it or let it go; give it as it now stands.

    A label with a secret in it is stored, and taken away, with the placeholder.

    Raises: UnknownRun; StoreError for what is no label.
    """
    for label in add:
        if not is_label(label):
            raise StoreError(f"{label[:80]!r} is no label", LABEL_RULE)
    restore_runs(config, name)
    with open_store(config, readonly=True) as store:
        run = store.runs.get(name)
        added = _redact_labels(config, store, run, add)
        removed = {*remove, *_redact_labels(config, store, run, remove)}

    def make(now: RunInfo) -> Event | None:
        labels = tuple(sorted({*now.labels, *added}.difference(removed)))
        pinned = now.pinned if pin is None else pin
        if (labels, pinned) == (now.labels, now.pinned):
            return None
        data = {"labels": labels, "pinned": pinned, "by": user_name()}
        return Event(EventKind.MARKED, time.time_ns(), data)

    if make(run) is None:
        return run
    with open_store(config) as store:
        return store.runs.mark(store.runs.get(name), make)


def unlabel(config: Config, name: str, labels: tuple[str, ...]) -> tuple[RunInfo, list[str]]:
    """Take labels from a run; give it as it now stands, and the labels that it did not have.

    Raises: UnknownRun.
    """
    restore_runs(config, name)
    with open_store(config, readonly=True) as store:
        run = store.runs.get(name)
        shown = _redact_labels(config, store, run, labels)
    absent = [
        one
        for label, one in zip(labels, shown, strict=True)
        if not {label, one}.intersection(run.labels)
    ]
    return mark(config, name, remove=labels), absent


def _redact_labels(
    config: Config, store: Store, run: RunInfo, labels: tuple[str, ...]
) -> list[str]:
    """Give labels without their secrets, with the placeholders that the run has."""
    if not labels:
        return []
    redactor = redactor_of(config, open_redaction_key(config.store))
    redactor.make_as(find_key(store, run))
    return [redactor.redact_text(label) for label in labels]
