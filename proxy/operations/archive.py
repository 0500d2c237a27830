"""`playhead archive`: move runs to an archive."""

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...config import Config
from ...store import RunInfo, RunOpen, RunStatus, Store, StoreError
from ...tape.policy.retention import Listed, Sentence, decide_archiving
from ...tape.shell_words import shell_word
from ..progress import ProgressBar
from ..standard_streams import print_status
from .open_store import open_store
from .restore_archived import clear_archive, moving, open_place, require_pyarrow
from .retention import SPARE_S, listed


@dataclass(frozen=True, slots=True)
class Archiving:
    """What became of the runs of a store."""

    sentences: list[Sentence]
    archived: bool
    """False where it was only said."""
    refused: list[tuple[str, str]]
    """Names of runs that could not be moved, and why."""

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON types."""
        return {
            "runs": [
                {"run": one.run.name, "goes": one.goes, "reason": one.reason}
                for one in self.sentences
            ],
            "archived": self.archived,
            "refused": [{"run": name, "reason": reason} for name, reason in self.refused],
        }


def archive(
    config: Config,
    names: Sequence[str],
    *,
    dry_run: bool,
    unencrypted: bool,
    adopt: bool = False,
) -> Archiving:
    """Move runs to the archive: those that have ended longer ago than `retention.hot`, or those that are named.

    unencrypted: whether what an encrypted store holds may lie there as it is.
    adopt: whether the archive of the store that this is a copy of is this store's from now on.
    Raises: StoreError, RunOpen, UnknownRun; PlayheadError without pyarrow.
    """
    where = config.retention.archive
    with open_store(config, readonly=True) as store:
        for name in names:  # a name that is mistyped is, whether there is an archive or not
            store.runs.get(name)
        if where is None:
            raise StoreError(
                "there is no archive", "set retention.archive to a folder or s3://BUCKET/PREFIX"
            )
        require_pyarrow()
        if store.encrypted and not unencrypted:
            raise StoreError(
                "the store is encrypted, and its runs would lie in the archive as they are",
                "if the archive is protected otherwise, say so with --unencrypted",
            )
        sentences = _chosen(config, store, names)
        if dry_run:
            return Archiving(sentences, False, [])
    from ...store.archive.storage import Place
    from ...timeline.archiving.move_runs import archive_runs, release_changed

    place = Place(where)
    with open_store(config) as store, moving(store), ProgressBar("archiving") as progress:
        if adopt:
            store.archive.adopt()
        sentences = _chosen(config, store, names)
        chosen = [store.runs.get(one.run.name) for one in sentences if one.goes]
        changed = [run for run in chosen if run.archived is not None]
        refused = release_changed(store, changed, open_place, platform.node(), time.time_ns)
        try:
            clear_archive(store)
        except StoreError as error:  # of a place that runs went to before, perhaps
            print_status(
                f"playhead: files of an earlier, failed batch are not removed yet: {error}"
            )
        runs = [run for run in map(store.runs.reload, chosen) if run.archived is None]
        moved = archive_runs(store, place, runs, platform.node(), time.time_ns, progress)
        store.removal.remove_unneeded_files(time.time_ns() / 1e9 - SPARE_S)
    return Archiving(sentences, True, [(run.id, why) for run, why in refused + moved.refused])


def _chosen(config: Config, store: Store, names: Sequence[str]) -> list[Sentence]:
    if not names:
        runs = [_listed(store, run) for run in store.runs.all()]
        return decide_archiving(runs, config.retention, time.time_ns())
    return [_named(store, store.runs.get(name)) for name in dict.fromkeys(names)]


def _listed(store: Store, run: RunInfo) -> Listed:
    one = listed(run)
    if run.archived is not None and store.archive.was_changed(run):
        return one._replace(changed_ns=run.archived.restored_ns)
    return one


def _named(store: Store, run: RunInfo) -> Sentence:
    if run.status is RunStatus.OPEN:
        raise RunOpen(
            f"run {run.id!r} has not ended", f"end it first: playhead seal {shell_word(run.id)}"
        )
    one = _listed(store, run)
    goes = not one.archived or one.changed_ns > 0
    return Sentence(one, goes, "named" if goes else "it is archived")
