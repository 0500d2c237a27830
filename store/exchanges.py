"""The exchanges of runs: each is written once its outcome is known, with all its rows or not at all."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import lmdb

from ..tape.codec import BadRecord, decode_exchange, encode_exchange
from ..tape.events import Event
from ..tape.model import Exchange, Seq
from . import bodies
from .database import Database
from .errors import LogCorrupt
from .layout import fingerprint_key, number_key, pair_key
from .log import EventLog
from .origins import Origins
from .runs import RunInfo
from .writer import Operation


@dataclass(frozen=True, slots=True)
class Record:
    """An exchange as it goes into the store."""

    exchange: Exchange
    raw: bytes
    """16-byte hash of the request's bytes, under which its fingerprint is found without parsing."""
    outcome: Event | None
    """None writes what has passed so far, to be written again when the outcome is known."""


class Exchanges:
    """The table `exchanges`, and the rows of others that go with each."""

    def __init__(self, database: Database, log: EventLog, origins: Origins) -> None:
        self._database = database
        self._log = log
        self._origins = origins

    def save(self, run: int, make: Callable[[], Record]) -> "asyncio.Future[None]":
        """Write an exchange with its outcome event; the future is done once both are durable.

        make: builds the record; called once, on the writer's thread.
        """
        return self._database.writer.submit(lambda: self._prepare(run, make()))

    def save_unwaited(self, run: int, make: Callable[[], Record]) -> None:
        """Write an exchange with its outcome event; nobody waits."""
        self._database.writer.append(lambda: self._prepare(run, make()))

    def _prepare(self, run: int, record: Record) -> Operation:
        value = bodies.pack(encode_exchange(record.exchange))
        return lambda txn: self._save(txn, run, record, value)

    def _save(self, transaction: lmdb.Transaction, run: int, record: Record, value: bytes) -> None:
        tables = self._database.tables
        exchange = record.exchange
        # Everything that may raise comes first: an exchange is written with all its rows or not at all.
        key = pair_key(run, exchange.seq)
        used = fingerprint_key(run, exchange.fingerprint, exchange.seq)
        origin = self._origins.find_new(run, exchange)
        linked = self._log.link(transaction, run, record.outcome) if record.outcome else None
        transaction.put(key, value, db=tables["exchanges"])
        transaction.put(used, b"", db=tables["fingerprints"])
        transaction.put(
            number_key(run) + record.raw, exchange.fingerprint, db=tables["raws"], overwrite=False
        )
        if origin is not None:
            self._origins.put(transaction, origin, exchange)
        if linked is not None:
            self._log.put_linked(transaction, run, linked)

    def find(self, info: RunInfo, seq: int) -> Exchange | None:
        """Find an exchange by its seq.

        Raises: LogCorrupt.
        """
        with self._database.reading() as transaction:
            value = transaction.get(
                pair_key(info.number, seq), db=self._database.tables["exchanges"]
            )
            if value is None:
                return None
            try:
                return decode_exchange(bodies.unpack(value))
            except BadRecord as error:
                raise LogCorrupt(f"run {info.id}, exchange {seq}: {error}") from error

    def holds(self, info: RunInfo, seq: int) -> bool:
        """Say whether a run holds an exchange, without reading it."""
        with self._database.reading() as transaction:
            key = pair_key(info.number, seq)
            return transaction.get(key, db=self._database.tables["exchanges"]) is not None

    def all(self, info: RunInfo, after: int = 0) -> Iterator[Exchange]:
        """Read the exchanges of a run by seq, one transaction each.

        Raises: LogCorrupt.
        """
        for seq in self.seqs(info, after):
            exchange = self.find(info, seq)
            if exchange is not None:
                yield exchange

    def seqs(self, info: RunInfo, after: int = 0) -> list[Seq]:
        """List the seqs that a run holds."""
        first = pair_key(info.number, after + 1)
        with self._database.reading() as transaction:
            keys = self._database.keys(transaction, "exchanges", info.number, first)
            return [Seq(int.from_bytes(key[8:], "big")) for key in keys]
