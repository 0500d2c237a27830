"""Compact a store: write its database anew, without free pages.

LMDB reuses the pages of deleted rows, but its file does not shrink, and a page keeps deleted bytes until something else
overwrites them. So all rows are copied in order into a new file, which replaces the old one in one step. A kill leaves
either file, whole.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lmdb

from ..errors import NoStore, StoreUnwritable
from ..lmdb.lock import StoreLock, hold_alone
from ..lmdb.open import holds_data, open_environment, open_tables, read_check
from ..lmdb_keys import ERASED_ROW
from ..paths import COMPACTED, DATA, DATA_LOCK, LOG
from ..spill.partial_file import sync_folder
from .backup import remove_backups
from .leftovers import remove_leftovers

_BATCH_BYTES = 16 << 20
Progress = Callable[[int, int], None]


def compact(
    path: Path,
    progress: Progress = lambda _done, _of: None,
    held: StoreLock | None = None,
) -> tuple[int, int]:
    """Make the database of the store in a folder anew; give the bytes of its file before and after. Blocks.

    progress: told how many rows are done, of how many.
    held: the store's lock, where whoever asks holds it alone, and longer.
    Raises: StoreError, naming who has the store open; StoreUnwritable. The store is then as it was.
    """
    folder, target = path / LOG, path / COMPACTED
    if not holds_data(folder):
        raise NoStore(path)
    lock = hold_alone(path, "compaction") if held is None else StoreLock(None)
    try:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700)
        before = (folder / DATA).stat().st_size
        with (
            open_environment(folder, readonly=True) as old,
            open_environment(target, readonly=False) as new,
        ):
            _copy(path, old, new, progress)
            new.sync(True)
            check = read_check(old)
            if _is_erased(old):
                remove_backups(path)
        swap_in(target, folder)
        # What is gone from the store is to be gone from there, too.
        remove_leftovers(path, check)
        return before, (folder / DATA).stat().st_size
    except (lmdb.Error, OSError) as error:
        raise StoreUnwritable(
            f"cannot compact the store at {path}: {error}",
            "it needs free space for a second copy of the store; nothing is lost",
        ) from error
    finally:
        shutil.rmtree(target, ignore_errors=True)
        lock.close()


def _is_erased(environment: lmdb.Environment) -> bool:
    with environment.begin(db=environment.open_db(b"meta", create=False)) as transaction:
        return transaction.get(ERASED_ROW) is not None


def swap_in(made: Path, folder: Path) -> None:
    """Put a new database in the place of one that nobody has open."""
    # What it says of readers and of the last commit is of the old one.
    (folder / DATA_LOCK).unlink(missing_ok=True)
    os.replace(made / DATA, folder / DATA)
    sync_folder(folder)


def _copy(path: Path, old: lmdb.Environment, new: lmdb.Environment, progress: Progress) -> None:
    tables = open_tables(path, old)
    with old.begin() as reading:
        of = sum(reading.stat(table)["entries"] for table in tables.values())
        done = 0
        for name, table in tables.items():
            target = new.open_db(name.encode())
            with reading.cursor(table) as cursor:
                more = cursor.first()
                while more:
                    size = 0
                    with new.begin(write=True) as writing:
                        while more and size < _BATCH_BYTES:
                            key, value = cursor.item()
                            if (name, key) != (
                                "meta",
                                ERASED_ROW,
                            ):  # it is true of the old file alone
                                writing.put(key, value, db=target, append=True)
                            size += len(value)
                            done += 1
                            more = cursor.next()
                    progress(done, of)
