"""Write the records of exchanges and shared prefixes, and restore their values through their delta bases.

If exchanges are read in order, each is unpacked once: the values that were read last are cached, up to CACHE_BYTES. A
cached value is found by its key and its checksum, so a record that was rewritten is never mistaken for the old one.

A record of middling size is put in parts: LMDB gives a page of its own to what is longer than half of one, and would
leave a third of the file empty. The first part has the record's key, the others that and their number in one byte.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator

import lmdb

from ...tape.records.codec import BadRecord
from ..lmdb.database import Database
from ..lmdb_keys import pair_key
from . import record_codec
from .record_codec import BaseKey, Packed

CACHE_BYTES = 8 << 20
KEY_BYTES = 16
"""Of an exchange's key; those of further parts of its record are longer."""
_PART_BYTES = 1332
"""Three of these, with their keys, fill a page of 4,096 bytes."""
_MOST_PARTS = 12
"""Longer records leave little of their last page empty."""


class Records:
    """Records of the tables `exchanges` and `openings`. Reads may come from any thread."""

    def __init__(self, database: Database, cache_bytes: int = CACHE_BYTES) -> None:
        self._database = database
        self._cache = _Cache(cache_bytes)

    def holds(self, transaction: lmdb.Transaction, run: int, seq: int) -> bool:
        """Say whether a run holds an exchange, without reading it."""
        return self._database.holds(transaction, "exchanges", pair_key(run, seq))

    def put(self, transaction: lmdb.Transaction, run: int, seq: int, record: bytes) -> None:
        """Put the record of an exchange, in the place of the one that may be there."""
        self._put(transaction, "exchanges", pair_key(run, seq), record)

    def put_prefix(self, transaction: lmdb.Transaction, name: bytes, record: bytes) -> None:
        """Put the record of a shared prefix."""
        self._put(transaction, "openings", name, record)

    def delete_prefix(self, transaction: lmdb.Transaction, name: bytes) -> None:
        """Delete the record of a shared prefix."""
        self._delete(transaction, "openings", name)

    def find_check(self, transaction: lmdb.Transaction, name: bytes) -> bytes | None:
        """Find the checksum of a shared prefix's value; b"" of one that is damaged."""
        try:
            record = self._find_record(transaction, 0, name)
        except BadRecord:
            return b""
        return None if record is None else record.check

    def find(self, transaction: lmdb.Transaction, run: int, base: BaseKey) -> bytes | None:
        """Find the value of an exchange of a run, or of a shared prefix.

        Raises: BadRecord.
        """
        record = self._find_record(transaction, run, base)
        if record is None:
            return None
        chain: list[tuple[BaseKey, Packed]] = []
        at = base
        value = self._cache.find((run, at), record.check)
        while value is None:
            chain.append((at, record))
            if record.base is None:
                break
            at = record.base
            record = record_codec.check_base(record, self._find_record(transaction, run, at))
            value = self._cache.find((run, at), record.check)
        if chain:
            value = _restore(chain, value)
            self._cache.keep((run, base), chain[0][1].check, value)
        return value

    def deltas_on(
        self, transaction: lmdb.Transaction, run: int, base: BaseKey, base_value: bytes | None
    ) -> Iterator[tuple[int, bytes]]:
        """Read the exchanges whose delta base is `base`: seq and value. Reads every record of the run.

        base_value: the value of the base, which need not be in the store any more; None if it is lost.
        Damaged records are left out: they are lost, with their base or without.
        """
        if base_value is None:
            return
        for place in list(self._database.places(transaction, "exchanges", run)):
            if len(place) != KEY_BYTES:
                continue
            seq = int.from_bytes(place[8:], "big")
            with contextlib.suppress(BadRecord):
                record = self._find_record(transaction, run, seq)
                if record is not None and record.base == base:
                    yield seq, record_codec.restore([record], base_value)

    def _find_record(self, transaction: lmdb.Transaction, run: int, base: BaseKey) -> Packed | None:
        if isinstance(base, int):
            found = self._get(transaction, "exchanges", pair_key(run, base))
        else:
            found = self._get(transaction, "openings", base)
        return record_codec.parse(found) if found is not None else None

    def _get(self, transaction: lmdb.Transaction, table: str, key: bytes) -> bytes | None:
        first = self._database.read(transaction, table, key)  # nearly always all there is
        if first is None or len(first) != _PART_BYTES:
            return first
        parts: list[bytes] = []
        for part in self._database.read_from(transaction, table, key):
            parts.append(part)
            if len(part) != _PART_BYTES:
                break
        return b"".join(parts) if parts else None

    def _put(self, transaction: lmdb.Transaction, table: str, key: bytes, record: bytes) -> None:
        database = self._database
        size = _PART_BYTES if len(record) <= _MOST_PARTS * _PART_BYTES else len(record)
        parts = [record[start : start + size] for start in range(0, len(record), size)]
        keys = [key, *(key + bytes([number]) for number in range(1, len(parts)))]
        rows = [database.row(table, *row) for row in zip(keys, parts, strict=True)]
        with transaction.cursor(database.tables[table]) as cursor:
            behind = not cursor.last() or bytes(cursor.key()) < rows[0].place
        if behind:
            # A page is left full where a row is appended; a split takes from it.
            for row in rows:
                database.append_row(transaction, row)
            return
        self._delete(transaction, table, key)
        for row in rows:
            database.put_row(transaction, row)

    def _delete(self, transaction: lmdb.Transaction, table: str, key: bytes) -> None:
        for place in list(self._database.places_under(transaction, table, key)):
            transaction.delete(place, db=self._database.tables[table])


def _restore(chain: list[tuple[BaseKey, Packed]], value: bytes | None) -> bytes:
    """Unpack records, each a delta against the next; an error names the damaged one.

    Raises: BadRecord.
    """
    try:
        return record_codec.restore([record for _, record in chain], value)
    except BadRecord:
        for base, record in reversed(chain[1:]):
            try:
                value = record_codec.restore([record], value)
            except BadRecord as error:
                text = f"its delta base, {record_codec.describe_base(base)}, is damaged: {error}"
                raise BadRecord(text) from error
        raise


class _Cache:
    """The values that were used last."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._values: OrderedDict[tuple[int, BaseKey], tuple[bytes, bytes]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, key: tuple[int, BaseKey], check: bytes) -> bytes | None:
        with self._lock:
            kept = self._values.get(key)
            if kept is None or kept[0] != check:
                return None
            self._values.move_to_end(key)
            return kept[1]

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def keep(self, key: tuple[int, BaseKey], check: bytes, value: bytes) -> None:
        if not check or len(value) > self._most_bytes // 2:
            return
        with self._lock:
            if (before := self._values.pop(key, None)) is not None:
                self._bytes -= len(before[1])
            self._values[key] = check, value
            self._bytes += len(value)
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._values.popitem(last=False)[1][1])
