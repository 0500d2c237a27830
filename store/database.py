"""One LMDB environment of a store: its tables, its read transactions and its one writer.

A read transaction lives for one call. Readers in any process see committed records only.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb

from .errors import StoreError
from .layout import number_key
from .writer import Writer


class Reading:
    """A read transaction, as `with` wants it: several a request, so without a generator."""

    __slots__ = ("_environment", "_path", "_transaction")

    def __init__(self, path: Path, environment: lmdb.Environment) -> None:
        self._path = path
        self._environment = environment

    def __enter__(self) -> "lmdb.Transaction[bytes]":
        try:
            self._transaction = self._environment.begin()
        except lmdb.Error as error:
            raise unreadable(self._path, error) from error
        return self._transaction

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._transaction.abort()
        if isinstance(error, lmdb.Error):
            raise unreadable(self._path, error) from error


class Database:
    """An open environment. Reads may come from any thread; writes go through `writer`."""

    def __init__(self, path: Path, environment: lmdb.Environment, writable: bool) -> None:
        """Hold an environment that was opened; see `opening`."""
        self.path = path
        self.environment = environment
        self.tables: dict[str, Any] = {}
        self.forgetting: list[Callable[[], None]] = []
        """Called on the writer's thread when a batch did not reach the disk, to drop what is remembered of it."""
        self._writer = Writer(environment, self._forget) if writable else None

    @property
    def writable(self) -> bool:
        """Whether it was opened for writing."""
        return self._writer is not None

    @property
    def writer(self) -> Writer:
        """The writer; a store opened for reading has none."""
        assert self._writer is not None, "the store was opened for reading"
        return self._writer

    def reading(self) -> Reading:
        """Give a read transaction; what LMDB says of it becomes an error that a person can act on."""
        return Reading(self.path, self.environment)

    def last(self, transaction: lmdb.Transaction, table: str, run: int) -> int:
        """Give the highest number that a run has in a table of (run, number); 0 where it has none."""
        with transaction.cursor(self.tables[table]) as cursor:
            found = cursor.set_range(number_key(run + 1))
            if not (cursor.prev() if found else cursor.last()):
                return 0
            key = cursor.key()
            return int.from_bytes(key[8:16], "big") if key[:8] == number_key(run) else 0

    def keys(
        self, transaction: lmdb.Transaction, table: str, run: int, first: bytes | None = None
    ) -> Iterator[bytes]:
        """Walk the keys of a run in a table.

        first: where to begin; the run's first key where it is not given.
        """
        return self.keys_under(transaction, table, number_key(run), first)

    def keys_under(
        self, transaction: lmdb.Transaction, table: str, prefix: bytes, first: bytes | None = None
    ) -> Iterator[bytes]:
        """Walk the keys that begin alike in a table.

        first: where to begin; the first of them where it is not given.
        """
        with transaction.cursor(self.tables[table]) as cursor:
            more = cursor.set_range(first or prefix)
            while more:
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    return
                yield key
                more = cursor.next()

    def check_readers(self) -> None:
        """Clear the slots of readers that died: each would keep pages from being used again."""
        with contextlib.suppress(lmdb.Error):
            self.environment.reader_check()

    def close(self) -> None:
        """Write what is left and let go of the file. Blocks."""
        if self._writer is not None:
            self._writer.close()
        self.environment.close()

    def _forget(self) -> None:
        for forget in self.forgetting:
            forget()


def unreadable(path: Path, error: Exception) -> StoreError:
    """Make the error for what LMDB says of a store."""
    return StoreError(
        f"the store at {path} cannot be read: {error}",
        "if the disk is sound the file is damaged: put back a copy of it",
    )
