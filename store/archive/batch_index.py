"""The store's knowledge of archives: which runs are in which batch, and which batches nobody needs.

Rules:

1. This store says where a run is; what an archive contains of it before or after does not count. One transaction removes a
   run's rows and records its place in the archive, and the reverse.
2. A *batch* is what is written into an archive at once. It is listed in `meta` as unneeded from before its first byte until
   its runs are removed from the store, and again from the moment its runs leave it until its files are removed. So the
   remains of a kill are found without searching the archive.
3. A batch that holds what a run was before it was rewritten is listed in `meta` until another takes its place.
4. One process at a time moves runs: a lock of its own beside the store's.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import lmdb

from ...tape.records.codec import BadRecord, pack_map, unpack
from ..deltas.shared_prefixes import erase
from ..errors import LogCorrupt, StoreError
from ..lmdb.database import Database
from ..lmdb.lock import StoreLock, hold_alone
from ..lmdb_keys import REWRITTEN_ROWS
from ..maintenance.removal import remove_rows
from ..paths import MOVING
from ..tables.run_info import Archived, RunInfo
from ..tables.runs import RunList

_MARK = b"archive/"
_HOME = b"home-of-archived"
"""Key of where the store was when it first archived: its path and the number of its folder on the disk."""


class ArchivedRuns:
    """What the store knows of archives, `store.archive`. Blocks; never use it on an event loop.

    A batch is named by the archive it is in (`place`, as the configuration writes it) and by its own name (`batch`). What writes
    is durable when it returns, and raises StoreUnwritable.
    """

    def __init__(self, database: Database, runs: RunList) -> None:
        self._database = database
        self._runs = runs

    def hold(self) -> StoreLock:
        """Keep other processes from moving runs of this store.

        Raises: StoreError, naming who does.
        """
        folder = self._database.path / MOVING
        folder.mkdir(mode=0o700, exist_ok=True)
        return hold_alone(folder, "moving runs to or from an archive")

    def begin(self, place: str, batch: str) -> None:
        """Say that a batch is about to be written: its files are unneeded until `moved` says otherwise."""

        def operation(transaction: lmdb.Transaction) -> None:
            self._mark(transaction, place, batch)
            if transaction.get(_HOME, db=self._meta) is None:
                transaction.put(_HOME, pack_map(self._home()), db=self._meta)

        self._database.writer.call(operation)
        self._database.sync()

    def check_home(self) -> None:
        """Refuse to remove files of an archive where this is a copy of a store: the other one may read them.

        Raises: StoreError; LogCorrupt.
        """
        with self._database.reading() as transaction:
            known = transaction.get(_HOME, db=self._meta)
        if known is None:
            self.adopt()
            return
        try:
            told = unpack(bytes(known))
            path, number = told["path"], told["inode"]
        except (BadRecord, TypeError, KeyError) as error:
            raise LogCorrupt(f"a row of the table meta: {error!r:.200}") from error
        here = self._home()
        if path != here["path"] and number != here["inode"]:
            raise StoreError(
                f"this store is a copy of {path}, or was moved from there to another disk: files of its archive may be those of"
                " the other one, and none is removed",
                "erase the run there; or, where that store is gone, take its archive over first: playhead archive --adopt",
            )

    def adopt(self) -> None:
        """Take the files of the archive for this store's own from now on; a store that this is a copy of loses them."""
        value = pack_map(self._home())
        self._database.writer.call(lambda txn: txn.put(_HOME, value, db=self._meta))
        self._database.sync()

    @property
    def _meta(self) -> Any:
        return self._database.tables["meta"]

    def _home(self) -> dict[str, Any]:
        # A folder that is moved on its disk keeps its number, one that is put back from a backup its path.
        folder = self._database.path.resolve()
        return {"path": str(folder), "inode": folder.stat().st_ino}

    def unneeded(self) -> list[tuple[str, str]]:
        """List the batches whose files nobody needs, each with its place.

        Raises: LogCorrupt.
        """
        return self._batches(_MARK)

    def outdated(self) -> list[tuple[str, str]]:
        """List the batches that hold what runs were before they were rewritten, each with its place.

        Raises: LogCorrupt.
        """
        return self._batches(REWRITTEN_ROWS)

    def _batches(self, mark: bytes) -> list[tuple[str, str]]:
        found = []
        with (
            self._database.reading() as transaction,
            self._database.cursor(transaction, "meta") as cursor,
        ):
            more = cursor.set_range(mark)
            while more and bytes(cursor.key()).startswith(mark):
                try:
                    told: Any = unpack(bytes(cursor.value()))
                    found.append((str(told["place"]), str(told["go"])))
                except (BadRecord, TypeError, KeyError) as error:
                    raise LogCorrupt(f"a row of the table meta: {error!r:.200}") from error
                more = cursor.next()
        return found

    def removed(self, batch: str) -> None:
        """Say that the files of a batch are gone."""
        self._database.writer.call(lambda txn: self._unmark(txn, batch))

    def moved(self, batch: str, runs: Sequence[tuple[RunInfo, Archived]]) -> list[RunInfo]:
        """Say that runs lie in a batch that is there whole, and take out what the store holds of them.

        Those that were changed meanwhile, or are being played, stay as they are. Give those that were moved.
        """

        def operation(transaction: lmdb.Transaction) -> list[RunInfo]:
            done, taken = [], []
            played = self._runs.played(transaction)
            for told, archived in runs:
                now = self._runs.load(transaction, told.number)
                if now is None or now != told or now.number in played:
                    continue
                if self._events(transaction, now) != archived.events:
                    continue
                taken.append(now)
                info = replace(now, archived=archived, index=0, stale=())
                if now.index:
                    # What an index was made under by `reindex` says nothing of the exchanges in the archive.
                    info = replace(info, rules=b"", canonical=0)
                self._runs.put(transaction, info)
                done.append(info)
            self._take_out(transaction, taken)
            if done:
                self._unmark(transaction, batch)
            return done

        made: list[RunInfo] = self._database.writer.call(operation)
        return made

    def rewritten(
        self, place: str, old: str, new: str | None, gone: Iterable[int], freed: Iterable[int] = ()
    ) -> None:
        """Say that a batch took the place of another, without some of its runs.

        new: None where nothing is left.
        gone: numbers of the runs that are deleted with it.
        freed: of those that the store holds a copy of, which is all there is of them from now on.
        """
        left_out, let_go = set(gone), set(freed)

        def operation(transaction: lmdb.Transaction) -> None:
            with self._database.cursor(transaction, "runs") as cursor:
                numbers = [int.from_bytes(key, "big") for key, _ in cursor]
            # All are read before anything is written: what cannot be read stops it whole.
            for info in [self._runs.load(transaction, number) for number in numbers]:
                if info is None or info.archived is None or info.archived.batch != old:
                    continue
                if info.number in left_out:
                    self._take_out(transaction, [info])
                    self._runs.remove(transaction, info)
                elif info.number in let_go:
                    assert not info.is_only_in_archive
                    self._runs.put(transaction, replace(info, archived=None))
                else:
                    assert new is not None
                    moved = replace(info, archived=replace(info.archived, batch=new))
                    self._runs.put(transaction, moved)
            if new is not None:
                self._unmark(transaction, new)
            transaction.delete(REWRITTEN_ROWS + old.encode(), db=self._meta)
            self._mark(transaction, place, old)

        self._database.writer.call(operation)
        # The files of the old one go next: should this be forgotten by then, the runs would be, too.
        self._database.sync()

    def drop_restored(self, runs: Sequence[RunInfo]) -> list[RunInfo]:
        """Take the copies of archived runs out again; give which: one that was written to since, or is played, stays."""

        def operation(transaction: lmdb.Transaction) -> list[RunInfo]:
            done = []
            played = self._runs.played(transaction)
            for told in runs:
                now = self._runs.load(transaction, told.number)
                if (
                    now is None
                    or now.archived is None
                    or now.is_only_in_archive
                    or now.number in played
                ):
                    continue
                if self._changed(transaction, now, now.archived):
                    continue
                self._runs.put(
                    transaction, replace(now, archived=replace(now.archived, restored_ns=0))
                )
                done.append(now)
            self._take_out(transaction, done)
            return done

        made: list[RunInfo] = self._database.writer.call(operation)
        return made

    def was_changed(self, info: RunInfo) -> bool:
        """Say whether the store holds a copy of an archived run that was written to since it was restored."""
        if info.archived is None or info.is_only_in_archive:
            return False
        with self._database.reading() as transaction:
            return self._changed(transaction, info, info.archived)

    def _changed(self, transaction: lmdb.Transaction, info: RunInfo, archived: Archived) -> bool:
        return bool(info.index) or self._events(transaction, info) != archived.events

    def _take_out(self, transaction: lmdb.Transaction, runs: Collection[RunInfo]) -> None:
        # Also what others share with them: they can be erased for good while they are away.
        erase(self._database, transaction, [info.number for info in runs])
        for info in runs:
            indexes = {info.number, info.index_number, *info.stale}
            remove_rows(self._database, transaction, info.number, indexes)
            for forget in self._runs.ended:
                forget(info.number)

    def _events(self, transaction: lmdb.Transaction, info: RunInfo) -> int:
        return self._database.last(transaction, "events", info.number)

    def _mark(self, transaction: lmdb.Transaction, place: str, batch: str) -> None:
        value = pack_map({"place": place, "go": batch})
        transaction.put(_MARK + batch.encode(), value, db=self._meta)

    def _unmark(self, transaction: lmdb.Transaction, batch: str) -> None:
        transaction.delete(_MARK + batch.encode(), db=self._meta)
