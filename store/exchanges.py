"""The exchanges of runs: each is written once its outcome is known, with all its rows or not at all."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import lmdb

from ..tape.codec import BadRecord, decode_exchange, encode_exchange
from ..tape.events import Event
from ..tape.model import Exchange, Seq
from . import bodies
from .database import Database
from .errors import LogCorrupt
from .lanes import Lanes, Place
from .layout import fingerprint_key, number_key, pair_key
from .log import EventLog
from .openings import Openings
from .origins import Origins
from .runs import RunInfo
from .values import KEY_BYTES, Values
from .writer import Operation


@dataclass(frozen=True, slots=True)
class Record:
    """An exchange as it goes into the store."""

    exchange: Exchange
    raw: bytes
    """16-byte hash of the request's bytes, under which its fingerprint is found without parsing."""
    outcome: Event | None
    """None writes what has passed so far, to be written again when the outcome is known."""


class _Prepared(NamedTuple):
    """An exchange as it is going to be put."""

    key: tuple[int, int]
    """Run and seq."""
    place: Place
    record: bytes
    opening: bytes | None
    """Record of the opening that it makes."""


class Exchanges:
    """The table `exchanges`, and the rows of others that go with each."""

    def __init__(self, database: Database, log: EventLog, origins: Origins) -> None:
        self._database = database
        self._log = log
        self._origins = origins
        self._values = Values(database)
        self._lanes = Lanes()
        self._openings = Openings(database, self._values)
        self._passing: set[tuple[int, int]] = set()
        """Run and seq of what is going to be written again."""
        database.forgetting += [self._lanes.clear, self._passing.clear]

    def forget(self, run: int) -> None:
        """Drop what is remembered of a run that has ended. Writer's thread."""
        self._lanes.drop(run)
        self._passing -= {key for key in self._passing if key[0] == run}

    def save(self, run: int, make: Callable[[], Record]) -> "asyncio.Future[None]":
        """Write an exchange with its outcome event; the future is done once both are durable.

        make: builds the record; called once, on the writer's thread.
        """
        return self._database.writer.submit(lambda: self._prepare(run, make()))

    def save_unwaited(self, run: int, make: Callable[[], Record]) -> None:
        """Write an exchange with its outcome event; nobody waits."""
        self._database.writer.append(lambda: self._prepare(run, make()))

    def _prepare(self, run: int, record: Record) -> Operation:
        exchange = record.exchange
        value = encode_exchange(exchange)
        place = self._lanes.place(
            run,
            exchange.seq,
            exchange.request,
            value,
            self._openings.find,
            final=record.outcome is not None,
        )
        opening = None
        if place.opens:
            assert place.on is not None
            opening = bodies.pack(value)
            self._openings.keep(place.on)
        packed = _pack(place)
        prepared = _Prepared((run, exchange.seq), place, packed, opening)
        return lambda txn: self._save(txn, record, prepared)

    def _save(self, transaction: lmdb.Transaction, record: Record, prepared: _Prepared) -> None:
        tables = self._database.tables
        exchange = record.exchange
        run, seq = prepared.key
        # Everything that may raise comes first: an exchange is written with all its rows or not at all.
        used = fingerprint_key(run, exchange.fingerprint, exchange.seq)
        origin = self._origins.find_new(run, exchange)
        linked = self._log.link(transaction, run, record.outcome) if record.outcome else None
        if prepared.key not in self._passing and self._values.holds(transaction, run, seq):
            self._free(transaction, run, seq)
        self._passing.discard(prepared.key)
        if record.outcome is None:
            self._passing.add(prepared.key)
        self._values.put(transaction, run, seq, self._settle(transaction, prepared))
        prepared.place.stored.written = True
        transaction.put(used, b"", db=tables["fingerprints"])
        transaction.put(
            number_key(run) + record.raw, exchange.fingerprint, db=tables["raws"], overwrite=False
        )
        if origin is not None:
            self._origins.put(transaction, origin, exchange)
        if linked is not None:
            self._log.put_linked(transaction, run, linked)

    def _settle(self, transaction: lmdb.Transaction, prepared: _Prepared) -> bytes:
        """Give the record to be put; one that stands alone where what it was to stand on is not there."""
        run, _ = prepared.key
        stored, on, _ = prepared.place
        if on is None:
            return prepared.record
        if prepared.opening is not None:
            self._openings.add(transaction, run, on, prepared.opening)
            return prepared.record
        there = on.written
        if isinstance(on.base, bytes):
            there = self._openings.use(transaction, run, on)
        return prepared.record if there else bodies.pack(stored.value)

    def _free(self, transaction: lmdb.Transaction, run: int, seq: int) -> None:
        """Let what stands on an exchange stand alone, before it is written anew."""
        for other, value in self._values.standing_on(transaction, run, seq):
            self._values.put(transaction, run, other, bodies.pack(value))

    def find(self, info: RunInfo, seq: int) -> Exchange | None:
        """Find an exchange by its seq.

        Raises: LogCorrupt.
        """
        try:
            with self._database.reading() as transaction:
                value = self._values.find(transaction, info.number, seq)
            return decode_exchange(value) if value is not None else None
        except BadRecord as error:
            raise LogCorrupt(f"run {info.id}, exchange {seq}: {error}") from error

    def delete(self, transaction: lmdb.Transaction, run: int) -> None:
        """Delete the exchanges of a run, and the openings that only it used; inside a write transaction."""
        self._values.delete(transaction, run)
        self._openings.release(transaction, run)
        self.forget(run)

    def erase(self, transaction: lmdb.Transaction, run: int) -> None:
        """Delete the exchanges of a run for good: no opening holds any of it either. Inside a write transaction.

        Raises: BadRecord, where a run that shares an opening with it is damaged: give up the transaction then.
        """
        self._values.delete(transaction, run)
        self._openings.erase(transaction, run)
        self.forget(run)

    def holds(self, info: RunInfo, seq: int) -> bool:
        """Say whether a run holds an exchange, without reading it."""
        with self._database.reading() as transaction:
            return self._values.holds(transaction, info.number, seq)

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
            return [Seq(int.from_bytes(key[8:], "big")) for key in keys if len(key) == KEY_BYTES]


def _pack(place: Place) -> bytes:
    stored, on, _ = place
    if on is None:
        return bodies.pack(stored.value)
    return bodies.pack_on(stored.value, on.base, on.value, stored.hops)
