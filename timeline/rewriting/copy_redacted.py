"""Copy a run into another store as the rules of now would have recorded it: what is given away is read from there.

It is what `redact --rewrite` makes of the run, without the events that tell of it: the run itself stays as it is.
Of bodies in files and of the working folder the copy has what is told of them, and not their contents.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...store import RunInfo, Store
from ...store.tables.folders import Content
from .rewrite_run import Change, Progress, Rewriter, Staged, find_changes, rewrite_into


def find_lineage(store: Store, info: RunInfo) -> list[RunInfo]:
    """Give the runs that a run plays or went on from, the oldest first, and at last the run itself."""
    lineage = [info]
    while (tape := store.runs.find_tape(lineage[0])) is not None:
        lineage.insert(0, tape)
    return lineage


def has_changes(
    store: Store, lineage: list[RunInfo], rewriter: Rewriter, progress: Progress
) -> bool:
    """Say whether the rules of now change anything in a run or in what it plays; have the rewriter read them.

    Raises: LogCorrupt.
    """
    found = find_changes(store, _here(lineage), rewriter, progress)
    return any(one.rules for one in found)


def copy_redacted(
    store: Store, lineage: list[RunInfo], rewriter: Rewriter, other: Store, progress: Progress
) -> RunInfo:
    """Copy the last run of a lineage, and what it plays, into an empty store; give it as it stands there. Blocks.

    rewriter: has read them (`has_changes`).
    Raises: LogCorrupt; StoreUnwritable.
    """
    with other.ingest() as ingest:
        copies: list[RunInfo] = []
        numbers = {0: 0}
        for run in lineage:
            staged = _Copied(other, ingest)
            change = Change(run)
            if not run.is_only_in_archive:
                change = rewrite_into(store, run, rewriter, staged, None, progress)
            numbers[run.number] = staged.number
            copies.append(_row(run, change, rewriter, numbers))
        ingest.publish_copies(copies)
    return copies[-1]


def _row(run: RunInfo, change: Change, rewriter: Rewriter, numbers: dict[int, int]) -> RunInfo:
    return replace(
        run,
        number=numbers[run.number],
        parent_number=numbers.get(run.parent_number, 0),
        agent=change.told.agent,
        labels=rewriter.labels(run.labels)[0],
        end=rewriter.stored_text(run.end, "end")[0],
        rules=b"",
        canonical=0,
        index=0,
        stale=(),
    )


def _here(lineage: list[RunInfo]) -> list[RunInfo]:
    return [run for run in lineage if not run.is_only_in_archive]


class _Copied(Staged):
    """Writes under a new number, without what a rewrite tells of itself and without contents of files."""

    def body(
        self, pieces: Iterable[tuple[bytes, bytes]], boundary: bytes, is_needed: Callable[[], bool]
    ) -> None:
        """Drop it, once it was read."""
        for _ in pieces:
            pass

    def folder(self, number: int, packed: bytes, contents: Iterable[Content]) -> None:
        """Take a manifest or savepoint of the working folder."""
        self._ingest.put_folder(self.number, number, packed)
