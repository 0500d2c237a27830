"""What working folders held: manifests of runs, savepoints, and the contents of files, which all runs share.

A run's manifest is row 0, each savepoint a row that says how it differs from the one before. A content is stored once, by its
hash, in parts; it is counted how many runs need it, and it goes with the last of them. Manifest and contents that it needs
are there in one transaction or in several, but a manifest never before its contents. The tables are made when something is
first put into them.
"""

from collections.abc import Iterable, Iterator, Mapping
from secrets import randbits
from typing import NamedTuple

import lmdb
from blake3 import blake3

from ...tape.folders.manifest import (
    Manifest,
    Step,
    pack_manifest,
    pack_step,
    unpack_manifest,
    unpack_step,
)
from ...tape.records.codec import BadRecord, pack_map, unpack
from ..deltas import record_codec
from ..errors import LogCorrupt, StoreError
from ..lmdb.database import Database, Row
from ..lmdb.process_liveness import is_locked
from ..lmdb_keys import CONTENT_USES, CONTENTS, FOLDERS, number_key, pair_key
from .run_info import RunInfo

NAME_BYTES = 16
"""Of a content's hash: its name."""
_PART_BYTES = 1 << 20
_BATCH_BYTES = 8 << 20
"""Of contents that are written in one transaction."""
_LAST_LOOKS = pair_key(0, 0)
_MOST_FOLDERS = 64
"""Working folders of which it is known which run has looked at them last."""
_COUNT_BYTES = 8
_PROVISIONAL = 1 << 62
"""From here on numbers stand for runs that have not begun yet."""


class Content(NamedTuple):
    """The content of a file."""

    digest: bytes
    """32 bytes of BLAKE3."""
    data: bytes = b""
    """May be left out of one that the store holds: then a run only begins to need it."""


class Folders:
    """Manifests, savepoints and contents, `store.folders`. Any thread; what writes blocks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self) -> int:
        """Give a number under which contents can be saved for a run that has not begun yet; see `adopt`.

        What processes that have died left under such numbers is removed.
        Raises: StoreUnwritable.
        """
        self._make_tables()
        database = self._database
        number = _PROVISIONAL + randbits(40)
        owner = database.owner_file.encode()

        def operation(transaction: lmdb.Transaction) -> None:
            for place in list(database.places(transaction, FOLDERS, 0)):
                other = int.from_bytes(place[8:16], "big")
                if other < _PROVISIONAL:
                    continue
                held = (database.find(transaction, FOLDERS, place) or b"").decode()
                if held != database.owner_file and not is_locked(database.path, held):
                    self._drop(transaction, other)
            database.put(transaction, FOLDERS, pair_key(0, number), owner)

        database.writer.call(operation)
        return number

    def _drop(self, transaction: lmdb.Transaction, number: int) -> None:
        release_contents(self._database, transaction, number)
        for table in (FOLDERS, CONTENT_USES):
            for place in list(self._database.places(transaction, table, number)):
                transaction.delete(place, db=self._database.tables[table])
        self._database.delete(transaction, FOLDERS, pair_key(0, number))

    def adopt(self, number: int, run: int) -> None:
        """Give what was saved under a number of `begin` to a run that has begun. Raises: StoreUnwritable."""
        database = self._database

        def operation(transaction: lmdb.Transaction) -> None:
            for table in (FOLDERS, CONTENT_USES):
                for place in list(database.places(transaction, table, number)):
                    data = database.get(transaction, table, place)
                    assert data is not None
                    key, value = database.cipher.decrypt_row(table, place, data)
                    transaction.delete(place, db=database.tables[table])
                    database.put(transaction, table, number_key(run) + key[8:], value)
            database.delete(transaction, FOLDERS, pair_key(0, number))

        database.writer.call(operation)

    def save(self, run: int, manifest: Manifest, contents: Iterable[Content] = ()) -> None:
        """Save what a folder held when a run began, with the contents of its files.

        Raises: StoreUnwritable.
        """
        self._save(run, 0, pack_manifest(manifest), contents, manifest.folder)

    def save_step(self, run: int, number: int, step: Step, contents: Iterable[Content]) -> None:
        """Save a savepoint, which follows the one with the number before it.

        number: from 1.
        Raises: StoreUnwritable.
        """
        self._save(run, number, pack_step(step), contents, b"")

    def add_contents(self, run: int, contents: Iterable[Content]) -> None:
        """Save contents that a run's manifest is going to need. Raises: StoreUnwritable."""
        self._make_tables()
        for batch in _batches(contents):
            rows = [self._content_rows(content) for content in batch]

            def operation(transaction: lmdb.Transaction, rows: list[_Rows] = rows) -> None:
                for one in rows:
                    self._put_content(transaction, run, one)

            self._database.writer.call(operation)

    def _save(
        self, run: int, number: int, packed: bytes, contents: Iterable[Content], folder: bytes
    ) -> None:
        self.add_contents(run, contents)
        self._put(run, number, packed, folder)

    def put(self, run: int, number: int, packed: bytes) -> None:
        """Save a manifest or savepoint as `rows` gave it, once its contents are saved. Raises: StoreUnwritable."""
        self._make_tables()
        self._put(run, number, packed, b"")

    def _put(self, run: int, number: int, packed: bytes, folder: bytes) -> None:
        row = self._database.row(FOLDERS, pair_key(run, number), record_codec.pack(packed))

        def operation(transaction: lmdb.Transaction) -> None:
            self._database.put_row(transaction, row)
            if folder:
                self._note_look(transaction, folder, run)

        self._database.writer.call(operation)

    def _note_look(self, transaction: lmdb.Transaction, folder: bytes, run: int) -> None:
        looks = {**self._last_looks(transaction)}
        looks.pop(folder, None)
        looks[folder] = run
        packed = pack_map({"looks": list(looks.items())[-_MOST_FOLDERS:]})
        self._database.put(transaction, FOLDERS, _LAST_LOOKS, record_codec.pack(packed))

    def _last_looks(self, transaction: lmdb.Transaction) -> Mapping[bytes, int]:
        data = self._database.find(transaction, FOLDERS, _LAST_LOOKS)
        return {} if data is None else dict(unpack(record_codec.unpack(data))["looks"])

    def find_last_look(self, folder: bytes) -> Manifest | None:
        """Find the manifest of the run that has looked at a folder last: what nobody touched since need not be read again."""
        if FOLDERS not in self._database.tables:
            return None
        try:
            with self._database.reading() as transaction:
                run = self._last_looks(transaction).get(folder)
                return None if run is None else self._load(transaction, run)
        except (BadRecord, LogCorrupt):
            return None  # it saves reading; it is no evidence

    def find(self, info: RunInfo, seq: int | None = None) -> Manifest | None:
        """Find what a run's folder held: at its start, or before an exchange.

        seq: of the exchange; the last savepoint before it, or at it, counts. None for the start.
        Raises: LogCorrupt.
        """
        if FOLDERS not in self._database.tables:
            return None
        try:
            with self._database.reading() as transaction:
                manifest = self._load(transaction, info.number)
                if manifest is None or seq is None:
                    return manifest
                for step in self._steps(transaction, info.number):
                    if step.seq > seq:
                        break
                    manifest = step.apply(manifest)
                return manifest
        except BadRecord as error:
            raise LogCorrupt(f"the manifest of run {info.id}: {error}") from error

    def list_savepoints(self, info: RunInfo) -> list[Step]:
        """List the savepoints of a run in their order. Raises: LogCorrupt."""
        if FOLDERS not in self._database.tables:
            return []
        try:
            with self._database.reading() as transaction:
                return list(self._steps(transaction, info.number))
        except BadRecord as error:
            raise LogCorrupt(f"a savepoint of run {info.id}: {error}") from error

    def rows(self, info: RunInfo) -> Iterator[bytes]:
        """Give what is stored of a run's folder, packed: its manifest, then each savepoint. Raises: LogCorrupt."""
        number = 0
        while FOLDERS in self._database.tables:
            try:
                with self._database.reading() as transaction:
                    data = self._database.read(transaction, FOLDERS, pair_key(info.number, number))
                    packed = None if data is None else record_codec.unpack(data)
            except BadRecord as error:
                raise LogCorrupt(f"savepoint {number} of run {info.id}: {error}") from error
            if packed is None:
                return
            yield packed
            number += 1

    def _load(self, transaction: lmdb.Transaction, run: int) -> Manifest | None:
        data = self._database.read(transaction, FOLDERS, pair_key(run, 0))
        return None if data is None else unpack_manifest(record_codec.unpack(data))

    def _steps(self, transaction: lmdb.Transaction, run: int) -> Iterable[Step]:
        number = 1
        while (
            data := self._database.read(transaction, FOLDERS, pair_key(run, number))
        ) is not None:
            yield unpack_step(record_codec.unpack(data))
            number += 1

    def holds(self, digest: bytes) -> bool:
        """Say whether a content is there."""
        if CONTENTS not in self._database.tables:
            return False
        with self._database.reading() as transaction:
            return self._database.holds(transaction, CONTENTS, digest[:NAME_BYTES])

    def read(self, digest: bytes) -> bytes:
        """Give the content of a file.

        digest: 32 bytes of BLAKE3.
        Raises: StoreError, where it is not there; LogCorrupt, where it does not fit its hash.
        """
        parts: list[bytes] = []
        if CONTENTS in self._database.tables:
            try:
                with self._database.reading() as transaction:
                    name = digest[:NAME_BYTES]
                    while (
                        data := self._database.read(
                            transaction, CONTENTS, name + len(parts).to_bytes(4, "big")
                        )
                    ) is not None:
                        parts.append(record_codec.unpack(data))
            except BadRecord as error:
                raise LogCorrupt(f"the content {digest.hex()[:16]}: {error}") from error
        if not parts:
            raise StoreError(
                f"the content {digest.hex()[:16]} of a file was not saved",
                "record with --save-files to keep contents",
            )
        data = b"".join(parts)
        if blake3(data).digest() != digest:
            raise LogCorrupt(f"the content {digest.hex()[:16]} of a file does not fit its hash")
        return data

    def _content_rows(self, content: Content) -> "_Rows":
        name = content.digest[:NAME_BYTES]
        data = content.data
        parts = [data[at : at + _PART_BYTES] for at in range(0, len(data), _PART_BYTES)] or [b""]
        if self.holds(content.digest):
            parts = []  # most are: nothing is packed for them
        rows = [
            self._database.row(CONTENTS, name + at.to_bytes(4, "big"), record_codec.pack(part))
            for at, part in enumerate(parts)
        ]
        return _Rows(content, name, rows)

    def _put_content(self, transaction: lmdb.Transaction, run: int, rows: "_Rows") -> None:
        use = number_key(run) + rows.name
        if self._database.holds(transaction, CONTENT_USES, use):
            return
        count = _count(self._database, transaction, rows.name)
        if count == 0 and not rows.rows:  # another process has just taken it out
            if blake3(rows.content.data).digest() != rows.content.digest:
                return  # nobody has its bytes any more; whoever reads it is told
            rows = self._content_rows_anew(rows)
        for row in rows.rows if count == 0 else ():
            self._database.put_row(transaction, row)
        self._database.put(transaction, CONTENT_USES, use, b"")
        _set_count(self._database, transaction, rows.name, count + 1)

    def _content_rows_anew(self, rows: "_Rows") -> "_Rows":
        data = rows.content.data
        parts = [data[at : at + _PART_BYTES] for at in range(0, len(data), _PART_BYTES)] or [b""]
        made = [
            self._database.row(CONTENTS, rows.name + at.to_bytes(4, "big"), record_codec.pack(part))
            for at, part in enumerate(parts)
        ]
        return rows._replace(rows=made)

    def _make_tables(self) -> None:
        database = self._database
        missing = [
            name for name in (FOLDERS, CONTENTS, CONTENT_USES) if name not in database.tables
        ]
        if not missing:
            return

        def operation(transaction: lmdb.Transaction) -> dict[str, object]:
            return {
                name: database.environment.open_db(name.encode(), txn=transaction)
                for name in missing
            }

        # Known to others once it is committed.
        database.tables.update(database.writer.call(operation))


class _Rows(NamedTuple):
    """A content on its way into the store."""

    content: Content
    name: bytes
    rows: list[Row]


def _batches(contents: Iterable[Content]) -> Iterable[list[Content]]:
    batch: list[Content] = []
    size = 0
    for content in contents:
        batch.append(content)
        size += len(content.data)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _count(database: Database, transaction: lmdb.Transaction, name: bytes) -> int:
    data = database.read(transaction, CONTENTS, name)
    return 0 if data is None else int.from_bytes(data, "big")


def _set_count(database: Database, transaction: lmdb.Transaction, name: bytes, count: int) -> None:
    database.put(transaction, CONTENTS, name, count.to_bytes(_COUNT_BYTES, "big"))


def release_contents(database: Database, transaction: lmdb.Transaction, run: int) -> int:
    """Take out the contents that a run alone needs; give how many rows that were. Writer's thread."""
    if CONTENT_USES not in database.tables:
        return 0
    removed = 0
    for place in list(database.places(transaction, CONTENT_USES, run)):
        name = database.cipher.plain_key(CONTENT_USES, place)[8:]
        count = _count(database, transaction, name)
        if count > 1:
            _set_count(database, transaction, name, count - 1)
            continue
        for row in list(database.places_under(transaction, CONTENTS, name)):
            transaction.delete(row, db=database.tables[CONTENTS])
            removed += 1
    return removed
