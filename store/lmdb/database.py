"""One LMDB environment of a store: its tables, its rows, its read transactions and its one writer.

Every row passes through the store's cipher here and nowhere else; only `meta` is stored unencrypted. A read transaction is
open for one call. Readers in any process see committed records only.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from ...tape.records.codec import BadRecord
from ..encryption.cipher import StoreCipher
from ..errors import LogCorrupt, StoreError, StoreUnwritable
from ..lmdb_keys import number_key
from .free_space import FreeSpace
from .lock import StoreLock
from .process_liveness import LivenessFile
from .writer import Writer

_PATIENCE_S = 5.0
"""How long what is being read is waited for, before the environment is opened again."""
_EVERY_S = 0.001


class Reading:
    """A read transaction, as `with` wants it: several a request, so without a generator."""

    __slots__ = ("_database", "_transaction")

    def __init__(self, database: "Database") -> None:
        self._database = database

    def __enter__(self) -> "lmdb.Transaction[bytes]":
        self._database.begin_use(self)
        try:
            self._transaction = self._begin(self._database.environment)
        except lmdb.Error as error:
            self._database.uses.discard(self)
            raise unreadable(self._database.path, error) from error
        return self._transaction

    def _begin(self, environment: lmdb.Environment) -> "lmdb.Transaction[bytes]":
        try:
            return environment.begin()
        except lmdb.ReadersFullError:
            environment.reader_check()  # killed ones keep their places until somebody looks
            return environment.begin()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._transaction.abort()
        self._database.uses.discard(self)
        if isinstance(error, lmdb.Error):
            raise unreadable(self._database.path, error) from error


class Row(NamedTuple):
    """A row as LMDB holds it."""

    table: Any
    place: bytes
    value: bytes


class Database:
    """An open environment. Reads may come from any thread; writes go through `writer`."""

    def __init__(
        self,
        path: Path,
        environment: lmdb.Environment,
        lock: StoreLock,
        cipher: StoreCipher,
        owner: LivenessFile | None,
        again: Callable[[], lmdb.Environment],
    ) -> None:
        """Hold an environment that was opened; see `open.py`.

        owner: the file of this process; None opens it for reading.
        again: opens the environment, once this one is closed.
        """
        self.path = path
        self.environment = environment
        self._again = again
        self.uses: set[object] = set()
        """Who reads now, or does something else with the environment. Not the writer."""
        self._reopening = False
        self.cipher = cipher
        self._lock = lock
        self.tables: dict[str, Any] = {}
        self.forgetting: list[Callable[[], None]] = []
        """Called on the writer's thread when a batch did not reach the disk, to drop what is remembered of it."""
        self._owner = owner
        self._writer: Writer | None = None
        if owner is not None:
            free_space = FreeSpace(path, environment, self.tables)
            self._writer = Writer(environment, free_space, self._forget, self._reopen)

    @property
    def writable(self) -> bool:
        """Whether it was opened for writing."""
        return self._writer is not None

    @property
    def owner_file(self) -> str:
        """Name of the file that this process holds while it writes; empty where there is none."""
        return self._owner.name if self._owner is not None else ""

    @property
    def writer(self) -> Writer:
        """The writer; a store opened for reading has none."""
        assert self._writer is not None, "the store was opened for reading"
        return self._writer

    def reading(self) -> Reading:
        """Give a read transaction; what LMDB says of it becomes an error that a person can act on."""
        return Reading(self)

    def begin_use(self, user: object) -> None:
        """Note that somebody uses the environment, until `uses` is without them again.

        Raises: StoreError, while it is opened again.
        """
        self.uses.add(user)
        # In this order, and the other way round in `_reopen`: one of the two sees the other.
        if self._reopening:
            self.uses.discard(user)
            raise StoreError(
                f"the store at {self.path} is being opened again after an error of its disk",
                "try again",
            )

    @contextlib.contextmanager
    def _used(self) -> Iterator[lmdb.Environment]:
        user = object()
        self.begin_use(user)
        try:
            yield self.environment
        finally:
            self.uses.discard(user)

    def _reopen(self) -> lmdb.Environment | None:
        """Open the environment anew, which LMDB gave up after an error of the disk. Writer's thread.

        None where somebody reads for too long: nothing of it may be touched while it is closed.
        Raises: StoreError, lmdb.Error.
        """
        self._reopening = True
        try:
            end = time.monotonic() + _PATIENCE_S
            while self.uses:
                if time.monotonic() > end:
                    return None
                time.sleep(_EVERY_S)
            self.environment.close()
            environment = self.environment = self._again()
            for name in self.tables:
                self.tables[name] = environment.open_db(name.encode(), create=False)
            return environment
        finally:
            self._reopening = False

    def cursor(self, transaction: lmdb.Transaction, table: str) -> "lmdb.Cursor[Any]":
        """Give a cursor for reading a table."""
        return transaction.cursor(self.tables[table])

    def get(self, transaction: lmdb.Transaction, table: str, place: bytes) -> bytes | None:
        """Read the value of a row as LMDB holds it, or None where there is no such row."""
        data = transaction.get(place, db=self.tables[table])
        return None if data is None else bytes(data)

    def row(self, table: str, key: bytes, value: bytes) -> Row:
        """Make a row, outside a transaction where there is much in it."""
        return Row(self.tables[table], *self.cipher.encrypt(table, key, value))

    def append_row(self, transaction: lmdb.Transaction, row: Row) -> None:
        """Put a row that comes behind all others of its table."""
        transaction.put(row.place, row.value, db=row.table, append=True)

    def put_row(self, transaction: lmdb.Transaction, row: Row, *, overwrite: bool = True) -> bool:
        """Put a row that was made; say whether it was."""
        return transaction.put(row.place, row.value, db=row.table, overwrite=overwrite)

    def put(
        self,
        transaction: lmdb.Transaction,
        table: str,
        key: bytes,
        value: bytes,
        *,
        overwrite: bool = True,
    ) -> bool:
        """Put a row; say whether it was."""
        return self.put_row(transaction, self.row(table, key, value), overwrite=overwrite)

    def read(self, transaction: lmdb.Transaction, table: str, key: bytes) -> bytes | None:
        """Read the value of a row, or None where there is no such row.

        Raises: BadRecord, if it fails authentication.
        """
        place = self.cipher.stored_key(table, key)
        data = self.get(transaction, table, place)
        return None if data is None else self.cipher.decrypt(table, place, data)

    def read_from(self, transaction: lmdb.Transaction, table: str, key: bytes) -> Iterator[bytes]:
        """Read the value of a row, if it is there, and of those behind it whose keys begin with its key.

        Raises: BadRecord, if one fails authentication.
        """
        place = self.cipher.stored_key(table, key)
        with self.cursor(transaction, table) as cursor:
            if not cursor.set_key(place):
                return
            for at, data in cursor.iternext():
                if not bytes(at).startswith(place):
                    return
                yield self.cipher.decrypt(table, bytes(at), bytes(data))

    def find(self, transaction: lmdb.Transaction, table: str, key: bytes) -> bytes | None:
        """Find the value of a row that nobody can name better than by its table.

        Raises: LogCorrupt.
        """
        try:
            return self.read(transaction, table, key)
        except BadRecord as error:
            raise LogCorrupt(f"a row of the table {table}: {error}") from error

    def holds(self, transaction: lmdb.Transaction, table: str, key: bytes) -> bool:
        """Say whether there is a row, without reading it."""
        place = self.cipher.stored_key(table, key)
        return self.get(transaction, table, place) is not None

    def delete(self, transaction: lmdb.Transaction, table: str, key: bytes) -> None:
        """Delete a row, if it is there."""
        transaction.delete(self.cipher.stored_key(table, key), db=self.tables[table])

    def last(self, transaction: lmdb.Transaction, table: str, run: int) -> int:
        """Give the highest number that a run has in a table of (run, number); 0 where it has none."""
        with self.cursor(transaction, table) as cursor:
            found = cursor.set_range(number_key(run + 1))
            if not (cursor.prev() if found else cursor.last()):
                return 0
            key = cursor.key()
            return int.from_bytes(key[8:16], "big") if key[:8] == number_key(run) else 0

    def places(
        self, transaction: lmdb.Transaction, table: str, run: int, first: bytes | None = None
    ) -> Iterator[bytes]:
        """Walk the places of a run's rows in a table.

        first: where to begin; the run's first key where it is not given.
        """
        return self._walk(transaction, table, number_key(run), first)

    def places_under(
        self, transaction: lmdb.Transaction, table: str, key: bytes
    ) -> Iterator[bytes]:
        """Walk the places of the rows whose keys begin with a whole key."""
        return self._walk(transaction, table, self.cipher.stored_key(table, key))

    def _walk(
        self, transaction: lmdb.Transaction, table: str, prefix: bytes, first: bytes | None = None
    ) -> Iterator[bytes]:
        with self.cursor(transaction, table) as cursor:
            more = cursor.set_range(first or prefix)
            while more:
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    return
                yield key
                more = cursor.next()

    def check_readers(self) -> None:
        """Clear the slots of readers that died: each would keep pages from being used again."""
        with contextlib.suppress(lmdb.Error, StoreError), self._used() as environment:
            environment.reader_check()

    def sync(self) -> None:
        """Have all that was committed outlast a power cut, whatever the setting: before files are removed for it.

        Raises: StoreUnwritable.
        """
        try:
            with self._used() as environment:
                environment.sync(True)
        except lmdb.Error as error:
            raise StoreUnwritable(f"cannot write the store at {self.path}: {error}") from error

    def close(self) -> None:
        """Write what is left and let go of the file. Blocks."""
        if self._writer is not None:
            self._writer.close()
        self.environment.close()
        if self._owner is not None:
            self._owner.close()
        self._lock.close()

    def _forget(self) -> None:
        for forget in self.forgetting:
            forget()


def unreadable(path: Path, error: Exception) -> StoreError:
    """Make the error for what LMDB says of a store."""
    return StoreError(
        f"the store at {path} cannot be read: {error}",
        "if the disk is sound the file is damaged: put back a copy of it",
    )
