"""Remove runs and the body files that only they needed; remove the rows of a run, or put them under another number."""

from collections.abc import Iterable, Sequence

import lmdb

from ..deltas.shared_prefixes import erase, move_uses, release
from ..errors import RunOpen
from ..lmdb.database import Database
from ..lmdb.free_space import find_unused
from ..lmdb_keys import CONTENT_USES, ERASED_ROW, FOLDERS, ORIGINALS, number_key
from ..paths import COMPACTED, DATA, LOG
from ..spill.body_files import BodyFiles
from ..tables.body_file_uses import FileUses
from ..tables.folders import release_contents
from ..tables.run_info import RunInfo, RunStatus
from ..tables.runs import RunList

BY_RUN = (
    *("events", "exchanges", "blocks", "messages", "files", "origins", "mail", ORIGINALS),
    *(FOLDERS, CONTENT_USES),
)
BY_INDEX = ("fingerprints", "raws")
_LEAST_UNUSED_BYTES = 8 << 20
"""A compaction is owed for so much free space inside the file, if that is a quarter of it or more."""


class Removal:
    """Removes runs that have ended, `store.removal`. Blocks; never use it on an event loop.

    The rows of a run go at once. Its body files stay until `remove_unneeded_files`, and its bytes in the data file until
    `compact`.
    """

    def __init__(
        self, database: Database, runs: RunList, bodies: BodyFiles, file_uses: FileUses
    ) -> None:
        self._database = database
        self._runs = runs
        self._bodies = bodies
        self._file_uses = file_uses

    def delete(self, runs: Sequence[RunInfo]) -> int:
        """Delete runs that have ended, all in one transaction; give how many rows that were.

        runs: as they were looked at. One that was marked or archived since, or is being played, stays.
        Raises: RunOpen, and none is deleted; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> int:
            played = self._runs.played(transaction)
            there = [
                now
                for told, now in self._ended(transaction, runs)
                if (now.labels, now.pinned, now.archived)
                == (told.labels, told.pinned, told.archived)
                and now.number not in played
            ]
            return sum(self._remove(transaction, info) for info in there)

        count: int = self._database.writer.call(operation)
        return count

    def erase(self, runs: Sequence[RunInfo]) -> int:
        """Delete runs that have ended, and what other runs share with them; give how many rows that were.

        `delete` keeps a shared prefix for as long as a run uses it. This one also deletes what was marked since, or is being
        played. Until the files nobody needs are removed and `compact` is through, `erasing` is True.
        Raises: RunOpen, and none is deleted; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> int:
            there = [now for _, now in self._ended(transaction, runs)]
            transaction.put(ERASED_ROW, b"", db=self._database.tables["meta"])
            erase(self._database, transaction, [info.number for info in there])
            return sum(self._remove(transaction, info) for info in there)

        count: int = self._database.writer.call(operation)
        return count

    @property
    def erasing(self) -> bool:
        """Whether the bytes of a run that was erased or rewritten may still be in the files."""
        with self._database.reading() as transaction:
            return transaction.get(ERASED_ROW, db=self._database.tables["meta"]) is not None

    @property
    def owes_compaction(self) -> bool:
        """Whether a compaction was cut short or could not begin: it left a copy, or much of the file is free space."""
        database = self._database
        if (database.path / COMPACTED).exists():
            return True
        file = database.path / LOG / DATA
        unused = find_unused(file, database.environment, database.tables)
        return unused >= max(_LEAST_UNUSED_BYTES, file.stat().st_size // 4)

    def remove_unneeded_files(self, before_s: float) -> int:
        """Remove body files that no exchange needs any more; give how many bytes that were.

        before_s: files put there since then, in seconds since the epoch, stay: the exchange that needs one is
            written after it, a late answer's up to ten minutes.
        Raises: LogCorrupt; StoreUnwritable; OSError.
        """
        needed = self._file_uses.needed()
        self._database.sync()  # else a run whose deletion a power cut undoes would lack them
        return self._bodies.remove_unneeded(needed, before_s)

    def _ended(
        self, transaction: lmdb.Transaction, runs: Sequence[RunInfo]
    ) -> list[tuple[RunInfo, RunInfo]]:
        """Give those of some runs that are there, as told and as they now stand.

        Raises: RunOpen.
        """
        found = [(run, self._runs.load(transaction, run.number)) for run in runs]
        there = [(told, now) for told, now in found if now is not None]
        for _, now in there:
            if now.status is RunStatus.OPEN:
                raise RunOpen(f"run {now.id!r} has not ended")
        return there

    def _remove(self, transaction: lmdb.Transaction, info: RunInfo) -> int:
        indexes = {info.number, info.index_number, *info.stale}
        count = remove_rows(self._database, transaction, info.number, indexes)
        self._runs.remove(transaction, info)
        return count


def remove_rows(
    database: Database, transaction: lmdb.Transaction, run: int, indexes: Iterable[int]
) -> int:
    """Take out all rows of a run but those of the run list; give how many there were. Writer's thread.

    indexes: the numbers that its index and its stale ones stand under.
    """
    places = [(table, run) for table in BY_RUN if table in database.tables]
    places += [(table, number) for table in BY_INDEX for number in indexes]
    count = release_contents(database, transaction, run)
    for table, number in places:
        for place in list(database.places(transaction, table, number)):
            transaction.delete(place, db=database.tables[table])
            count += 1
    release(database, transaction, run)
    return count


def move_rows(database: Database, transaction: lmdb.Transaction, run: int, to: int) -> None:
    """Put all rows under a number, but those of the run list, under another that has none. Writer's thread.

    Raises: BadRecord, if one fails authentication.
    """
    for table in (*BY_RUN, *BY_INDEX):
        if table not in database.tables:
            continue
        for place in list(database.places(transaction, table, run)):
            data = database.get(transaction, table, place)
            assert data is not None
            # Where it lies counts in an encrypted store.
            key, value = database.cipher.decrypt_row(table, place, data)
            transaction.delete(place, db=database.tables[table])
            database.put(transaction, table, number_key(to) + key[8:], value)
    move_uses(database, transaction, run, to)
