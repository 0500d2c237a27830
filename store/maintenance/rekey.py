"""Put a store under another key, or remove its key, in place.

1. The store is locked exclusively. Its rows and body files are decrypted and encrypted again beside it: rows into
   `rekey.lmdb`, files into the folder of the new key. The store itself is not touched, so until the swap a kill loses
   nothing. The next attempt continues from there, unless the store was written to meanwhile.
2. The new database replaces the old one in one step. It is made from nothing, so no page of it contains old bytes.
3. The data under the old key is removed, backups too; until that is done a row of `meta` says so.
"""

import bisect
import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from ...tape.records.codec import BadRecord
from ..encryption.choose import choose_cipher
from ..encryption.cipher import StoreCipher
from ..encryption.key import StoreKey
from ..errors import LogCorrupt, NoStore, StoreUnwritable
from ..lmdb.lock import hold_alone
from ..lmdb.open import (
    check_current,
    holds_data,
    open_environment,
    open_tables,
    read_check,
    read_format,
    write_head,
    wrong_key,
)
from ..lmdb_keys import CHECK_ROW, LEFT_ROW, ORIGINALS, TABLES, TEXT_FROM
from ..paths import DATA, LOG, REKEYED
from ..spill.body_files import BodyFiles
from ..spill.partial_file import Partial, sync_folder
from .backup import remove_backups
from .compact import swap_in
from .leftovers import remove_leftovers

_AT_ROW = b"rekey-at"
"""Of `meta` in the new database: what it is made of, and how many rows it has."""
_FILE_ROW = b"rekey-file"
"""The name of the last file that was encrypted again. Not how many: files come and go without a commit."""
_OWN_ROWS = (CHECK_ROW, LEFT_ROW, b"format")
_BATCH_ROWS = 500
_BATCH_BYTES = 8 << 20
_READ_BYTES = 1 << 20

Progress = Callable[[int, int], None]


class Rekeyed(NamedTuple):
    """What was done."""

    rows: int
    files: int
    already: bool
    """The store had this key before; what an earlier attempt had left was removed."""
    dropped: int = 0
    """Originals of secrets that were left out, since the new key is none from outside the store."""


def rekey(
    path: Path,
    before: StoreKey | None,
    after: StoreKey | None,
    progress: Progress = lambda _done, _of: None,
    *,
    originals: bool = False,
) -> Rekeyed:
    """Put a store under another key; None is none. Blocks for as long as it takes to read and write it all.

    originals: keep what redaction replaced; only for a key that lies outside the store, and never without one.
    progress: told how many rows and files are done, of how many.
    Raises: StoreError: another process has it open, it has another key than `before`, something in it cannot be
        opened; StoreUnwritable. The store is then as it was.
    """
    try:
        if not holds_data(path / LOG):
            raise NoStore(path)
        lock = hold_alone(path, "rekey")
        try:
            return _rekey(path, before, after, progress, originals=originals and after is not None)
        finally:
            lock.close()
    except (lmdb.Error, OSError) as error:
        raise StoreUnwritable(
            f"cannot rekey the store at {path}: {error}",
            "it needs free space for a second copy of the store; nothing is lost, run the same command again",
        ) from error


def _rekey(
    path: Path,
    before: StoreKey | None,
    after: StoreKey | None,
    progress: Progress,
    *,
    originals: bool,
) -> Rekeyed:
    check, wanted = _read_check(path), choose_cipher(after)
    if check == wanted.check:
        _clean(path, wanted)
        return Rekeyed(0, 0, already=True)
    if check != choose_cipher(before).check:
        raise wrong_key(path, check, before or after)
    done = _copy(path, choose_cipher(before), wanted, progress, originals=originals)
    swap_in(path / REKEYED, path / LOG)
    _clean(path, wanted)
    return done


def _copy(
    path: Path, before: StoreCipher, after: StoreCipher, progress: Progress, *, originals: bool
) -> Rekeyed:
    with open_environment(path / LOG, readonly=True) as source:
        data = (path / LOG / DATA).stat()
        # Any commit to the store in between changes this.
        origin = b"%d %d %d %b %b" % (
            originals,
            data.st_ino,
            source.info()["last_txnid"],
            before.check.hex().encode(),
            after.check.hex().encode(),
        )
        with _open_target(path / REKEYED, origin) as target:
            copy = _Copy(path, before, after, progress, originals=originals)
            return copy.make(source, target, origin)


def _open_target(folder: Path, origin: bytes) -> lmdb.Environment:
    """Open what an earlier attempt has made of the same, or begin."""
    if holds_data(folder):
        target = open_environment(folder, readonly=False)
        with target.begin(db=target.open_db(b"meta")) as transaction:
            at = bytes(transaction.get(_AT_ROW, b""))
        if at.rpartition(b" ")[0] == origin:
            return target
        target.close()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return open_environment(folder, readonly=False)


def _read_check(path: Path) -> bytes:
    with open_environment(path / LOG, readonly=True) as environment:
        found = read_format(path, environment)
        if found is None:
            raise NoStore(path)
        check_current(path, environment, found)
        return read_check(environment)


class _Copy:
    """The store once more, under the other key."""

    def __init__(
        self,
        path: Path,
        before: StoreCipher,
        after: StoreCipher,
        progress: Progress,
        *,
        originals: bool,
    ) -> None:
        self._path = path
        self._before, self._after = before, after
        self._old_files, self._new_files = BodyFiles(path, before), BodyFiles(path, after)
        self._progress = progress
        self._originals = originals

    def make(self, source: lmdb.Environment, target: lmdb.Environment, origin: bytes) -> Rekeyed:
        """Copy rows and files, from where `target` says that an earlier attempt has come."""
        self._source, self._target, self._origin = source, target, origin
        self._meta = target.open_db(b"meta")
        for name in TABLES:  # also those without rows
            target.open_db(name.encode())
        with target.begin(db=self._meta) as transaction:
            done = int(bytes(transaction.get(_AT_ROW, b" 0")).rpartition(b" ")[2])
            last = bytes(transaction.get(_FILE_ROW, b"")).decode()
        tables = open_tables(self._path, source)
        with source.begin() as transaction:
            counts = {name: transaction.stat(tables[name])["entries"] for name in tables}
        dropped = 0 if self._originals else counts.pop(ORIGINALS, 0)
        if not self._originals:
            tables.pop(ORIGINALS, None)
        self._old_files.clear_partial()
        files = self._old_files.kept()
        begun = bisect.bisect_right(files, last, key=lambda path: path.name)
        rows = sum(counts.values())
        self._of = rows + len(files)
        self._progress(done + begun, self._of)
        start = 0
        for name, table in tables.items():
            if done < start + counts[name]:
                done = self._copy_table(name, table, done - start, done)
            start += counts[name]
        for number, path in enumerate(files[begun:], start=begun + 1):
            self._copy_file(path)
            with target.begin(write=True) as transaction:
                transaction.put(_FILE_ROW, path.name.encode(), db=self._meta)
            self._progress(rows + number, self._of)
        sync_folder(self._path)  # where the folder of files has its name
        with target.begin(write=True) as transaction:
            for row in (_AT_ROW, _FILE_ROW):
                transaction.delete(row, db=self._meta)
            transaction.put(LEFT_ROW, b"", db=self._meta)
            write_head(transaction, self._meta, self._after)
        target.sync(True)
        return Rekeyed(rows, len(files), already=False, dropped=dropped)

    def _copy_table(self, name: str, table: Any, skip: int, done: int) -> int:
        """Copy the rows of a table but the first `skip`; give how much is done of all then."""
        target = self._target.open_db(name.encode())
        with self._source.begin() as transaction, transaction.cursor(table) as cursor:
            rows = itertools.islice(cursor, skip, None)
            while batch := list(self._batch(name, rows)):
                with self._target.begin(write=True) as writing:
                    for row in batch:
                        if row is not None:
                            writing.put(*row, db=target)
                    done += len(batch)
                    self._note(writing, done)
        return done

    def _batch(
        self, name: str, rows: Iterator[tuple[bytes, bytes]]
    ) -> Iterator[tuple[bytes, bytes] | None]:
        """Give rows as they are to be, so many as are to be written at once; None for one that is not copied."""
        size = 0
        for count, (place, data) in enumerate(rows, start=1):
            own = name == "meta" and place in _OWN_ROWS
            yield None if own else self._reencrypted(name, place, data)
            size += len(data)
            if count == _BATCH_ROWS or size > _BATCH_BYTES:
                return

    def _reencrypted(self, name: str, place: bytes, data: bytes) -> tuple[bytes, bytes]:
        try:
            key, value = self._before.decrypt_row(name, place, data)
        except BadRecord as error:
            numbers = " ".join(str(int.from_bytes(place[at : at + 8], "big")) for at in (0, 8))
            where = f"table {name}" + ("" if name in TEXT_FROM else f", row {numbers}")
            raise _damaged(f"{where}: {error}") from error
        return self._after.encrypt(name, key, value)

    def _copy_file(self, path: Path) -> None:
        made = Partial(self._new_files)
        try:
            try:
                with self._before.open_file(path) as body:
                    while data := body.read(_READ_BYTES):
                        made.write([data])
            except BadRecord as error:
                raise _damaged(str(error)) from error
            if self._before.body_name(made.finish()[0]) != path.name:
                raise _damaged(f"{path} does not fit its hash")
            made.keep()
        finally:
            made.drop()

    def _note(self, transaction: lmdb.Transaction, done: int) -> None:
        transaction.put(_AT_ROW, b"%b %d" % (self._origin, done), db=self._meta)
        self._progress(done, self._of)


def _damaged(text: str) -> LogCorrupt:
    return LogCorrupt(text, "nothing was changed; put back a copy of the store that is sound")


def _clean(path: Path, cipher: StoreCipher) -> None:
    """Remove what lay under another key, and say that it is done."""
    remove_leftovers(path, cipher.check)
    remove_backups(path)
    sync_folder(path)
    with open_environment(path / LOG, readonly=False) as environment:
        meta = environment.open_db(b"meta", create=False)
        with environment.begin(write=True) as transaction:
            transaction.delete(LEFT_ROW, db=meta)
