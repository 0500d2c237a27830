"""The index of a run: finds an exchange by its fingerprint or by its raw bytes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import lmdb

from ...tape.exchange import Exchange, Fingerprint, Seq
from ..errors import RunOpen, UnknownRun
from ..lmdb.database import Database
from ..lmdb_keys import fingerprint_key, number_key
from .run_info import RunInfo, RunStatus
from .runs import RunList

if TYPE_CHECKING:
    from ...tape.matching.index import Index

_SEQ_AT = 8 + 16
"""Where the seq begins in a key of `fingerprints`."""


class Indexes:
    """The index of each run, `store.index`: the tables `fingerprints` and `raws`.

    A fingerprint is 16 bytes, and so is the hash of a request's bytes. Reads come from any thread; they raise LogCorrupt
    where a row cannot be read, StoreError where LMDB cannot.
    """

    def __init__(self, database: Database, runs: RunList) -> None:
        self._database = database
        self._runs = runs

    def find_fingerprint(self, info: RunInfo, raw: bytes) -> Fingerprint | None:
        """Find the fingerprint that a request of the same bytes was given; None where no such bytes were seen.

        raw: 16-byte hash of a request's bytes (`raw_key`).
        """
        with self._database.reading() as transaction:
            key = number_key(info.index_number) + raw
            found = self._database.find(transaction, "raws", key)
            return Fingerprint(found) if found is not None else None

    def next_use(self, info: RunInfo, fingerprint: Fingerprint, after: int) -> Seq | None:
        """Find the seq of the first exchange with a fingerprint, above `after`; None where there is no further one."""
        with (
            self._database.reading() as transaction,
            self._database.cursor(transaction, "fingerprints") as cursor,
        ):
            first = fingerprint_key(info.index_number, fingerprint, after + 1)
            place = self._database.cipher.stored_key("fingerprints", first)
            if not cursor.set_range(place):
                return None
            found = cursor.key()
            same = found[:_SEQ_AT] == place[:_SEQ_AT]
            return Seq(int.from_bytes(found[_SEQ_AT:], "big")) if same else None

    def indexed(self, info: RunInfo, exchange: Exchange) -> Exchange:
        """Give an exchange of a run under the fingerprint that finds it; it was recorded under another before `reindex`.

        Looks through the whole index: for people.
        """
        if not info.index:
            return exchange
        with self._database.reading() as transaction:
            for seq, found in self._entries(transaction, info):
                if seq == exchange.seq:
                    return replace(exchange, fingerprint=found)
        return exchange

    def fingerprints(self, info: RunInfo) -> dict[Seq, Fingerprint]:
        """Read a run's index: the fingerprint of each exchange."""
        return dict(self.rows(info))

    def rows(self, info: RunInfo) -> list[tuple[Seq, Fingerprint]]:
        """Read a run's index row by row: should it be damaged, an exchange may stand there twice."""
        with self._database.reading() as transaction:
            return list(self._entries(transaction, info))

    def _entries(
        self, transaction: lmdb.Transaction, info: RunInfo
    ) -> Iterator[tuple[Seq, Fingerprint]]:
        database = self._database
        for place in database.places(transaction, "fingerprints", info.index_number):
            key = database.cipher.plain_key("fingerprints", place)
            yield Seq(int.from_bytes(key[_SEQ_AT:], "big")), Fingerprint(key[8:_SEQ_AT])

    def replace(self, info: RunInfo, index: "Index") -> RunInfo:
        """Put another index in the place of a sealed run's; give the run as it now stands. Blocks.

        One transaction, so whoever reads sees the old one or the new one. A playback that is open goes on with
        the one it began with, whose rows stay until the next time.
        Raises: UnknownRun; RunOpen; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> RunInfo:
            now = self._runs.load(transaction, info.number)
            if now is None:
                raise UnknownRun(info.id)
            if now.status is RunStatus.OPEN:
                raise RunOpen(f"run {info.id!r} is still being recorded")
            put = self._database.put
            # A number of its own, from those of runs: no row can be taken for one of another index.
            number = self._runs.allocate_number(transaction)
            for entry in index.entries:
                used = fingerprint_key(number, entry.fingerprint, entry.seq)
                put(transaction, "fingerprints", used, b"")
                raw = number_key(number) + entry.raw
                put(transaction, "raws", raw, entry.fingerprint, overwrite=False)
            stale = (*now.stale, now.index_number)
            if now.number not in self._runs.played(transaction):
                for old in stale:
                    self._drop_index(transaction, old)
                stale = ()
            made = replace(
                now, rules=index.digest, canonical=index.canonical, index=number, stale=stale
            )
            self._runs.put(transaction, made)
            return made

        done: RunInfo = self._database.writer.call(operation)
        return done

    def _drop_index(self, transaction: lmdb.Transaction, number: int) -> None:
        for table in ("fingerprints", "raws"):
            for place in list(self._database.places(transaction, table, number)):
                transaction.delete(place, db=self._database.tables[table])
