"""Open a store's database: check format, key and file size before a record is read; create a new store.

Settings follow measurements: no writemap (a full disk would kill the process), `metasync=False` unless `durability: power`
asks for it (a power cut then loses at most the last commit, never the file), a huge sparse map.
"""

import contextlib
import logging
import os
from functools import partial
from pathlib import Path
from typing import Any

import lmdb

from ..encryption.choose import choose_cipher
from ..encryption.cipher import StoreCipher
from ..encryption.key import ID_BYTES, VARIABLE, StoreKey
from ..errors import NoStore, StoreError, StoreTooNew, StoreUnwritable
from ..folder_ownership import make_own_folder, require_own_file, require_own_folder
from ..lmdb_keys import (
    CHECK_ROW,
    ERASED_ROW,
    FORMAT,
    LEFT_ROW,
    OLDEST_FORMAT,
    OPTIONAL_TABLES,
    ORIGINALS,
    TABLES,
    UPGRADE_ROW,
)
from ..paths import BODIES, DATA, DATA_LOCK, LOG, OWNERS
from .database import Database, unreadable
from .lock import StoreLock, hold_shared
from .missing_pages import UnreadablePages, find_lost_page
from .process_liveness import create_liveness_file

logger = logging.getLogger(__name__)

_MAP_BYTES = 1 << 40
_MOST_TABLES = 64


def open_database(
    path: Path,
    *,
    readonly: bool,
    key: StoreKey | None = None,
    held: StoreLock | None = None,
    power: bool = False,
    originals: bool = False,
) -> Database:
    """Open the database of the store in a folder; a writer makes it when it is not there.

    originals: make a table for what redaction replaces, if the store is encrypted.

    power: a power cut loses nothing that was told to be durable.
    key: what the store is encrypted under, or is to be if it is made.
    held: the store's lock, where whoever opens it holds it alone, and longer.
    Raises: StoreError (no store there, a damaged one, another key), StoreTooNew, StoreUnwritable.
    """
    folder = path / LOG
    _find_folder(path, folder, readonly)
    lock = hold_shared(path, readonly=readonly) if held is None else StoreLock(None)
    again = partial(open_environment, folder, readonly=readonly, power=power)
    try:
        environment = again()
    except BaseException:
        lock.close()
        raise
    owner = None if readonly else create_liveness_file(path)
    database = Database(path, environment, lock, choose_cipher(key), owner, again)
    try:
        _check_format(database, key, alone=held is not None)
        _open_optional(database, make=originals and not readonly and bool(database.cipher.check))
    except (lmdb.Error, OSError) as error:
        database.close()
        raise unreadable(path, error) from error
    except BaseException:
        database.close()
        raise
    return database


def _find_folder(path: Path, folder: Path, readonly: bool) -> None:
    try:
        require_own_folder(folder)
        for name in (DATA, DATA_LOCK):
            require_own_file(folder / name)
        for place in (path / OWNERS, *path.glob(f"{BODIES}*")):
            require_own_folder(place)
        if not readonly:
            # What agents and customers said is nobody else's to read on this machine.
            make_own_folder(folder)
        elif not holds_data(folder):
            raise NoStore(path)
    except OSError as error:
        raise _unopened(path, error) from error


def open_environment(folder: Path, *, readonly: bool, power: bool = False) -> lmdb.Environment:
    """Open the environment in a folder that is there, whatever it holds.

    power: flush LMDB's meta page with each commit.
    Raises: StoreError (damaged), StoreUnwritable.
    """
    try:
        environment = lmdb.open(
            str(folder),
            mode=0o600,
            map_size=_MAP_BYTES,
            max_dbs=_MOST_TABLES,
            metasync=power,
            readonly=readonly,
            max_readers=1024,
            lock=not readonly or _may_lock(folder),
        )
        try:
            _check_whole(folder, environment)
        except BaseException:
            environment.close()
            raise
        return environment
    except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
        raise StoreError(
            f"{str(folder / DATA)!r} is not a store: {error}",
            "move it away, or name another store with --store",
        ) from error
    except (lmdb.Error, OSError) as error:
        raise _unopened(folder.parent, error) from error


def _check_whole(folder: Path, environment: lmdb.Environment) -> None:
    """Refuse a file that was cut short: LMDB maps it, and touching what is missing would kill the process (SIGBUS).

    Raises: StoreError; lmdb.Error; OSError.
    """
    needed = (environment.info()["last_pgno"] + 1) * environment.stat()["psize"]
    with open(folder / DATA, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size >= needed:
            return
        try:
            with environment.begin() as transaction:
                lost = find_lost_page(file.fileno(), transaction.id())
        except UnreadablePages as error:
            missing = str(error)
        else:
            if lost is None:
                return
            missing = f"page {lost} is in use"
    raise StoreError(
        f"the store at {folder.parent} was cut short: {size} of {needed} bytes are there, and {missing}",
        "copy it again while nothing writes to it, or name another with --store",
    )


def _check_format(database: Database, key: StoreKey | None, *, alone: bool) -> None:
    found = read_format(database.path, database.environment)
    if found is None and database.writable:
        database.writer.call(lambda transaction: _make(database, transaction))
    elif found is None:
        raise NoStore(database.path)
    if found is not None:
        check_current(database.path, database.environment, found)
        _check_key(database, key, alone=alone)
    for name in TABLES:
        database.tables[name] = database.environment.open_db(name.encode(), create=False)


def _open_optional(database: Database, *, make: bool) -> None:
    """Open the tables that are there only where something needs them."""
    for name in OPTIONAL_TABLES:
        with contextlib.suppress(lmdb.NotFoundError, lmdb.ReadonlyError):
            create = make and name == ORIGINALS
            database.tables[name] = database.environment.open_db(name.encode(), create=create)


def read_format(path: Path, environment: lmdb.Environment) -> int | None:
    """Read which format an environment has; None where nothing was made in it yet.

    Raises: StoreError, where it is none of ours; StoreTooNew.
    """
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
                f"the database at {path / LOG} is not a store of Playhead",
                "name another folder with --store",
            )
        return None
    if not found.isdigit():
        raise StoreError(f"the store at {path} has no format version, but {found[:20]!r}")
    if int(found) > FORMAT:
        raise StoreTooNew(
            f"the store at {path} has format {int(found)}; this version reads up to {FORMAT}",
            "use a newer Playhead, or name another store with --store",
        )
    return int(found)


def check_current(path: Path, environment: lmdb.Environment, found: int) -> None:
    """Refuse a store that has to be upgraded first.

    found: the format that it has, at most the current one.
    Raises: StoreError.
    """
    with environment.begin(db=environment.open_db(b"meta", create=False)) as transaction:
        if transaction.get(UPGRADE_ROW) is not None:
            raise StoreError(
                f"an upgrade of the store at {path} was interrupted",
                "run `playhead upgrade` to finish it; nothing else can open the store before",
            )
    if found < FORMAT:
        raise too_old(path, found, OLDEST_FORMAT)


def too_old(path: Path, found: int, oldest: int) -> StoreError:
    """Make the error for a store of an earlier format.

    oldest: the earliest format that can be upgraded.
    """
    advice = "run `playhead upgrade`: it makes a backup, then brings the store to the new format"
    if found < oldest:
        advice = "no released version wrote that: name another store with --store, and record again"
    return StoreError(
        f"the store at {path} has format {found}; this version reads {FORMAT}", advice
    )


def _make(database: Database, transaction: lmdb.Transaction) -> None:
    for name in TABLES:
        database.tables[name] = database.environment.open_db(name.encode(), txn=transaction)
    write_head(transaction, database.tables["meta"], database.cipher)


def write_head(transaction: lmdb.Transaction, meta: Any, cipher: StoreCipher) -> None:
    """Write into `meta` which format a store has, and which key."""
    transaction.put(b"format", str(FORMAT).encode(), db=meta)
    if cipher.check:
        transaction.put(CHECK_ROW, cipher.check, db=meta)


def _check_key(database: Database, key: StoreKey | None, *, alone: bool) -> None:
    check = read_check(database.environment)
    meta = database.environment.open_db(b"meta", create=False)
    with database.environment.begin(db=meta) as transaction:
        left = transaction.get(LEFT_ROW) is not None
        erased = transaction.get(ERASED_ROW) is not None
    if check != database.cipher.check:
        raise wrong_key(database.path, check, key)
    if left:
        logger.warning(
            "the store at %s was rekeyed, but its old files are still beside it: run"
            " `playhead rekey` again",
            database.path,
        )
    if erased and not alone:  # else it is about to take them out
        logger.warning(
            "a run of the store at %s was erased or rewritten, but its old bytes may still be in the files:"
            " `playhead gc` takes them out",
            database.path,
        )


def open_tables(path: Path, environment: lmdb.Environment) -> dict[str, Any]:
    """Open all tables that an environment has, for a copy of everything.

    Raises: StoreTooNew, where there is one that this version does not know: a copy would lack it; StoreError, where
        the store has to be upgraded first.
    """
    if (found := read_format(path, environment)) is not None:
        check_current(path, environment, found)
    with environment.begin() as transaction:
        names = [bytes(name).decode("latin-1") for name, _ in transaction.cursor()]
    known = (*TABLES, *OPTIONAL_TABLES)
    if unknown := sorted(set(names).difference(known)):
        raise StoreTooNew(
            f"the store at {path} has a table {unknown[0]!r} that this version does not know",
            "use a newer Playhead",
        )
    return {
        name: environment.open_db(name.encode(), create=False) for name in known if name in names
    }


def read_check(environment: lmdb.Environment) -> bytes:
    """Read what a store says of its key; b"" where it is not encrypted."""
    with environment.begin(db=environment.open_db(b"meta", create=False)) as transaction:
        return bytes(transaction.get(CHECK_ROW, b""))


def find_key_id(path: Path) -> str:
    """Give what names the key of the store in a folder; empty where it is not encrypted, or cannot be read."""
    folder = path / LOG
    try:
        if not holds_data(folder):
            return ""
        with open_environment(folder, readonly=True) as environment:
            return read_check(environment)[:ID_BYTES].hex()
    except (StoreError, lmdb.Error, OSError):
        return ""


def wrong_key(path: Path, check: bytes, key: StoreKey | None) -> StoreError:
    """Make the error for a store that has another key than the one that was given.

    check: what the store says of its key; b"" where it is not encrypted.
    """
    given = "no key was given" if key is None else f"{key.where} holds key {key.id.hex()}"
    if not check:
        return StoreError(
            f"the store at {path} is not encrypted, but {given}",
            "`playhead rekey` encrypts it under that key; or leave the key out, or name another"
            " store with --store",
        )
    return StoreError(
        f"the store at {path} is encrypted under key {check[:ID_BYTES].hex()}, but {given}",
        f"give that key: encrypt.key_file in the configuration, or {VARIABLE} in the environment",
    )


def holds_data(folder: Path) -> bool:
    """Say whether anything was ever written into an environment."""
    try:
        return (folder / DATA).stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def _may_lock(folder: Path) -> bool:
    """Say whether a reader can hold its place in the lock file.

    On a read-only disk it cannot, and needs not: no writer is beside it.
    """
    file = folder / DATA_LOCK
    return os.access(
        file if file.exists() else folder,
        os.W_OK,
        effective_ids=os.access in os.supports_effective_ids,
    )


def _unopened(path: Path, error: Exception) -> StoreUnwritable:
    advice = "is the folder writable and not full? --store names another"
    if isinstance(error, PermissionError) or "Permission denied" in str(error):
        advice = "run as the user whose store it is (`ls -ld` names the owner), or name another with --store"
    if "already open" in str(error):
        advice = "this process has it open: use that one"
    return StoreUnwritable(f"cannot open the store at {path}: {error}", advice)
