"""The index of runs: by which fingerprint, and by which bytes, an exchange is found."""

from dataclasses import replace

import lmdb

from ..tape.index import Index
from ..tape.model import Exchange, Fingerprint, Seq
from .database import Database
from .errors import RunOpen, UnknownRun
from .layout import fingerprint_key, number_key
from .run_list import RunList
from .runs import RunInfo, RunStatus

_FINGERPRINT_BYTES = 16


class Indexes:
    """The tables `fingerprints` and `raws`."""

    def __init__(self, database: Database, runs: RunList) -> None:
        self._database = database
        self._runs = runs

    def find_fingerprint(self, info: RunInfo, raw: bytes) -> Fingerprint | None:
        """Find the fingerprint that bytes seen before were given."""
        with self._database.reading() as transaction:
            key = number_key(info.index_number) + raw
            found = transaction.get(key, db=self._database.tables["raws"])
            return Fingerprint(found) if found is not None else None

    def next_use(self, info: RunInfo, fingerprint: Fingerprint, after: int) -> Seq | None:
        """Find the first exchange with a fingerprint whose seq is above `after`."""
        with (
            self._database.reading() as transaction,
            transaction.cursor(self._database.tables["fingerprints"]) as cursor,
        ):
            if not cursor.set_range(fingerprint_key(info.index_number, fingerprint, after + 1)):
                return None
            key = cursor.key()
            prefix = number_key(info.index_number) + fingerprint
            same = key[: 8 + _FINGERPRINT_BYTES] == prefix
            return Seq(int.from_bytes(key[8 + _FINGERPRINT_BYTES :], "big")) if same else None

    def indexed(self, info: RunInfo, exchange: Exchange) -> Exchange:
        """Give an exchange of a run under the fingerprint that finds it; it was recorded under another before `reindex`.

        Looks through the whole index: for people.
        """
        if not info.index:
            return exchange
        with self._database.reading() as transaction:
            for key in self._database.keys(transaction, "fingerprints", info.index_number):
                if int.from_bytes(key[8 + _FINGERPRINT_BYTES :], "big") == exchange.seq:
                    found = Fingerprint(key[8 : 8 + _FINGERPRINT_BYTES])
                    return replace(exchange, fingerprint=found)
        return exchange

    def fingerprints(self, info: RunInfo) -> dict[Seq, Fingerprint]:
        """Read a run's index: the fingerprint of each exchange."""
        found = {}
        with self._database.reading() as transaction:
            for key in self._database.keys(transaction, "fingerprints", info.index_number):
                seq = int.from_bytes(key[8 + _FINGERPRINT_BYTES :], "big")
                found[Seq(seq)] = Fingerprint(key[8 : 8 + _FINGERPRINT_BYTES])
        return found

    def replace_index(self, info: RunInfo, index: Index) -> RunInfo:
        """Put another index in the place of a sealed run's; give the run as it now stands. Blocks.

        One transaction, so whoever reads sees the old one or the new one. A playback that is open goes on with
        the one it began with, whose rows stay until the next time.
        Raises: UnknownRun, RunOpen.
        """

        def operation(transaction: lmdb.Transaction) -> RunInfo:
            now = self._runs.load(transaction, info.number)
            if now is None:
                raise UnknownRun(info.id, ())
            if now.status is RunStatus.OPEN:
                raise RunOpen(f"run {info.id!r} is still being recorded")
            meta, tables = self._database.tables["meta"], self._database.tables
            # A number of its own, from those of runs: no row can be taken for one of another index.
            number = int(transaction.get(b"next-run", db=meta) or b"1")
            transaction.put(b"next-run", str(number + 1).encode(), db=meta)
            for entry in index.entries:
                used = fingerprint_key(number, entry.fingerprint, entry.seq)
                transaction.put(used, b"", db=tables["fingerprints"])
                raw = number_key(number) + entry.raw
                transaction.put(raw, entry.fingerprint, db=tables["raws"], overwrite=False)
            stale = (*now.stale, now.index_number)
            if not self._is_played(transaction, now):
                for old in stale:
                    self._drop_index(transaction, old)
                stale = ()
            made = replace(
                now, rules=index.digest, canonical=index.canonical, index=number, stale=stale
            )
            transaction.put(number_key(now.number), made.encode(), db=tables["runs"])
            return made

        done: RunInfo = self._database.writer.call(operation)
        return done

    def _is_played(self, transaction: lmdb.Transaction, tape: RunInfo) -> bool:
        numbers = self._runs.open_numbers(transaction)
        found = (self._runs.load(transaction, number) for number in numbers)
        return any(run is not None and run.parent_number == tape.number for run in found)

    def _drop_index(self, transaction: lmdb.Transaction, number: int) -> None:
        for table in ("fingerprints", "raws"):
            for key in list(self._database.keys(transaction, table, number)):
                transaction.delete(key, db=self._database.tables[table])
