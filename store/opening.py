"""Open a store's database: what is refused before a record is read, and what a new one is made of.

Settings follow measurements: no writemap (a full disk would kill the process), `metasync=False` (a power cut
loses at most the last commit, never the file), a huge sparse map.
"""

import contextlib
import os
from pathlib import Path

import lmdb

from .database import Database, unreadable
from .errors import StoreError, StoreTooNew, StoreUnwritable
from .layout import FORMAT, TABLES

_MAP_BYTES = 1 << 40
_SPARED_BYTES = 1 << 20


def open_database(path: Path, *, readonly: bool) -> Database:
    """Open the database of the store in a folder; a writer makes it when it is not there.

    Raises: StoreError (no store there, or a damaged one), StoreTooNew, StoreUnwritable.
    """
    database = Database(path, _open_environment(path, readonly), writable=not readonly)
    try:
        _check_size(database)
        _check_format(database)
    except (lmdb.Error, OSError) as error:
        database.close()
        raise unreadable(path, error) from error
    except BaseException:
        database.close()
        raise
    return database


def _open_environment(path: Path, readonly: bool) -> lmdb.Environment:
    folder = path / "log.lmdb"
    try:
        if readonly and not _holds_data(folder):
            raise StoreError(
                f"no store at {path}", "name another with --store, or record a run first"
            )
        if not readonly:
            # What agents and customers said is nobody else's to read on this machine.
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return lmdb.open(
            str(folder),
            mode=0o600,
            map_size=_MAP_BYTES,
            max_dbs=len(TABLES),
            metasync=False,
            readonly=readonly,
            max_readers=1024,
            lock=not readonly or _may_lock(folder),
        )
    except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
        raise StoreError(
            f"{str(folder / 'data.mdb')!r} is not a store: {error}",
            "move it away, or name another store with --store",
        ) from error
    except (lmdb.Error, OSError) as error:
        raise StoreUnwritable(
            f"cannot open the store at {path}: {error}", _advice(error)
        ) from error


def _check_size(database: Database) -> None:
    """Refuse a file that was cut short: touching what is missing would kill the process (SIGBUS).

    Pages that were allocated and freed in one transaction need never be written, so a few may be
    missing at the end of a sound file.
    """
    environment = database.environment
    needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    size = (database.path / "log.lmdb" / "data.mdb").stat().st_size
    if needed - size > min(_SPARED_BYTES, needed // 2):
        raise StoreError(
            f"the store at {database.path} was cut short: {size} of {needed} bytes are there",
            "copy it again while nothing writes to it, or name another with --store",
        )


def _check_format(database: Database) -> None:
    found = _read_format(database)
    if found is None and database.writable:
        database.writer.call(lambda transaction: _make(database, transaction))
    elif found is None:
        raise StoreError(f"no store at {database.path}", "record a run first")
    elif found > FORMAT:
        raise StoreTooNew(
            f"the store at {database.path} has format {found}; this version reads up to {FORMAT}",
            "use a newer Playhead, or name another store with --store",
        )
    elif found < FORMAT and database.writable:
        # What earlier versions wrote is read as it is; they could not read what is written now.
        database.writer.call(lambda transaction: _put_format(database, transaction))
    for name in TABLES:
        # A store that an earlier version made lacks the tables that came later.
        with contextlib.suppress(lmdb.NotFoundError):
            table = database.environment.open_db(name.encode(), create=database.writable)
            database.tables[name] = table


def _read_format(database: Database) -> int | None:
    environment = database.environment
    try:
        meta = environment.open_db(b"meta", create=False)
    except (lmdb.NotFoundError, lmdb.ReadonlyError):
        found = None
    else:
        with environment.begin(db=meta) as transaction:
            found = transaction.get(b"format")
    if found is None:
        if environment.stat()["entries"]:
            raise StoreError(
                f"the database at {database.path / 'log.lmdb'} is not a store of Playhead",
                "name another folder with --store",
            )
        return None
    if not found.isdigit():
        raise StoreError(f"the store at {database.path} has no format version, but {found[:20]!r}")
    return int(found)


def _make(database: Database, transaction: lmdb.Transaction) -> None:
    for name in TABLES:
        database.tables[name] = database.environment.open_db(name.encode(), txn=transaction)
    _put_format(database, transaction)


def _put_format(database: Database, transaction: lmdb.Transaction) -> None:
    meta = database.environment.open_db(b"meta", txn=transaction)
    transaction.put(b"format", str(FORMAT).encode(), db=meta)


def _holds_data(folder: Path) -> bool:
    try:
        return (folder / "data.mdb").stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def _may_lock(folder: Path) -> bool:
    """Say whether a reader can hold its place in the lock file.

    On a read-only disk it cannot, and needs not: no writer is beside it.
    """
    file = folder / "lock.mdb"
    return os.access(
        file if file.exists() else folder,
        os.W_OK,
        effective_ids=os.access in os.supports_effective_ids,
    )


def _advice(error: Exception) -> str:
    if "already open" in str(error):
        return "this process has it open: use that one"
    return "is the folder writable and not full? --store names another"
