"""Bring a store to the current format, in place, one step after another.

1. The upgrade holds the store's lock alone. It makes and verifies a backup before it changes a row (`backup.py`).
2. A step rewrites the rows of one format in the layout of the next, in batches. Each batch is one transaction, which also
   writes the progress into `meta`. So a kill at any instant leaves the old store, or a store that the same command
   continues.
3. The first batch also writes the new format. So no version of Playhead opens a store that is half upgraded: an earlier
   version finds a newer format, the current version finds the row of rule 2.

To change the format: raise `FORMAT` in `store/lmdb_keys.py`, add the step from the format before to `STEPS`, and add a golden file
of the new format (`tests/golden/make.py`). The golden files of earlier formats stay: each is upgraded in the tests.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from ...tape.records.codec import BadRecord, pack_map, unpack
from ..encryption.choose import choose_cipher
from ..encryption.cipher import StoreCipher
from ..encryption.key import StoreKey
from ..errors import LogCorrupt, NoStore, StoreUnwritable
from ..lmdb.lock import hold_alone
from ..lmdb.open import (
    holds_data,
    open_environment,
    read_check,
    read_format,
    too_old,
    wrong_key,
)
from ..lmdb_keys import FORMAT, TABLES, UPGRADE_ROW
from ..paths import LOG
from .backup import make_backup

Progress = Callable[[int, int], None]


class Rows:
    """The rows of a store inside the transaction of one batch."""

    def __init__(
        self, environment: lmdb.Environment, transaction: lmdb.Transaction, cipher: StoreCipher
    ) -> None:
        self._environment = environment
        self.transaction = transaction
        self.cipher = cipher
        """Encrypts and decrypts values, as in the rest of the store."""

    def table(self, name: str) -> Any:
        """Open a table; create it if it does not exist."""
        return self._environment.open_db(name.encode(), txn=self.transaction)


class Batch(NamedTuple):
    """What a step did in one transaction."""

    at: bytes | None
    """Where the next batch begins, as the step defines it; None if the step is finished."""
    rows: int
    """The number of rows that were read."""


Step = Callable[[Rows, bytes], Batch]
"""Does the batch that begins at a place, b"" for the first. A step must not keep state in memory: after a kill, another process
continues at the place that was returned last. A batch is some thousand rows, or some megabytes. Raises: BadRecord."""


def _keep_rows(rows: Rows, at: bytes) -> Batch:
    """From 4 to 5: there are two more body codecs, and what was written before is read as it is."""
    del rows, at
    return Batch(None, 0)


STEPS: Mapping[int, Step] = {4: _keep_rows}
"""The steps, by the format that each starts from; it leads to the next format."""


class Upgraded(NamedTuple):
    """What was done."""

    before: int
    """The format that the store had; if an upgrade was continued, the format from which the current step started."""
    after: int
    backup: Path | None
    """None if there was nothing to do, or no backup was requested."""


class _State(NamedTuple):
    """The progress of an upgrade that has not finished."""

    step: int
    at: bytes
    rows: int
    of: int
    backup: str

    def encode(self) -> bytes:
        return pack_map(self._asdict())

    @classmethod
    def decode(cls, data: bytes) -> "_State":
        try:
            return cls(**unpack(data))
        except (BadRecord, TypeError) as error:
            raise LogCorrupt(
                f"the progress of the upgrade cannot be read: {error}",
                "put back the backup",
            ) from error


def upgrade(
    path: Path,
    key: StoreKey | None,
    *,
    backup: bool = True,
    copying: Progress = lambda _done, _of: None,
    progress: Progress = lambda _done, _of: None,
) -> Upgraded:
    """Bring the store in a folder to the current format, or continue an upgrade that was interrupted. Blocks.

    backup: False makes none.
    copying: receives the number of bytes of the backup that are copied, and of all.
    progress: receives the number of rows that are upgraded, and an estimate of all.
    Raises: StoreError: no store, another key, another process has it open, a format that cannot be upgraded;
        LogCorrupt; StoreTooNew; StoreUnwritable. The store is then as it was, or the next call continues.
    """
    try:
        if not holds_data(path / LOG):
            raise NoStore(path)
        lock = hold_alone(path, "upgrade")
        try:
            with open_environment(path / LOG, readonly=False, power=True) as environment:
                return _upgrade(path, environment, key, backup, copying, progress)
        finally:
            lock.close()
    except (lmdb.Error, OSError) as error:
        raise StoreUnwritable(
            f"cannot upgrade the store at {path}: {error}",
            "if the disk is full, free space; then run the same command again, which continues",
        ) from error


def _upgrade(
    path: Path,
    environment: lmdb.Environment,
    key: StoreKey | None,
    backup: bool,
    copying: Progress,
    progress: Progress,
) -> Upgraded:
    found = read_format(path, environment)
    if found is None:
        raise NoStore(path)
    cipher = choose_cipher(key)
    if (check := read_check(environment)) != cipher.check:
        raise wrong_key(path, check, key)
    state = _find_state(environment)
    if state is None:
        if found == FORMAT:
            return Upgraded(found, FORMAT, None)
        _check_steps(path, found)
        kept = make_backup(path, cipher.folder, found, copying).name if backup else ""
        state = _State(found, b"", 0, _count(environment) * (FORMAT - found), kept)
    else:
        _check_steps(path, state.step)
    try:
        _run(environment, cipher, state, progress)
    except BadRecord as error:
        advice = f"put back the backup, {path / state.backup}" if state.backup else ""
        raise LogCorrupt(f"the store at {path} cannot be upgraded: {error}", advice) from error
    return Upgraded(state.step, FORMAT, path / state.backup if state.backup else None)


def _check_steps(path: Path, first: int) -> None:
    if any(number not in STEPS for number in range(first, FORMAT)):
        raise too_old(path, first, min(STEPS, default=FORMAT))


def _find_state(environment: lmdb.Environment) -> _State | None:
    with environment.begin(db=environment.open_db(b"meta", create=False)) as transaction:
        data = transaction.get(UPGRADE_ROW)
    return None if data is None else _State.decode(bytes(data))


def _count(environment: lmdb.Environment) -> int:
    """Count the rows of all tables."""
    with environment.begin() as transaction:
        names = [bytes(name) for name, _ in transaction.cursor()]
    tables = [environment.open_db(name, create=False) for name in names]
    with environment.begin() as transaction:
        return sum(int(transaction.stat(table)["entries"]) for table in tables)


def _run(
    environment: lmdb.Environment, cipher: StoreCipher, state: _State, progress: Progress
) -> None:
    while state.step < FORMAT:
        with environment.begin(write=True) as transaction:
            state = _do_batch(Rows(environment, transaction, cipher), state)
        progress(state.rows, max(state.rows, state.of))
    environment.sync(True)


def _do_batch(rows: Rows, state: _State) -> _State:
    batch = STEPS[state.step](rows, state.at)
    step, at = (state.step, batch.at) if batch.at is not None else (state.step + 1, b"")
    state = state._replace(step=step, at=at, rows=state.rows + batch.rows)
    meta = rows.table("meta")
    rows.transaction.put(b"format", b"%d" % FORMAT, db=meta)
    if step < FORMAT:
        rows.transaction.put(UPGRADE_ROW, state.encode(), db=meta)
    else:
        rows.transaction.delete(UPGRADE_ROW, db=meta)
        for name in TABLES:
            rows.table(name)
    return state
