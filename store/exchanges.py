"""The exchanges of runs: each is written once its outcome is known, with all its rows or not at all."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import lmdb

from ..tape.codec import BadRecord, decode_exchange, encode_exchange
from ..tape.events import Event, vouched
from ..tape.model import Exchange, Seq
from . import bodies
from .database import Database, Row
from .errors import LogCorrupt
from .file_uses import files_row
from .layout import fingerprint_key, number_key, pair_key
from .log import EventLog
from .messages import Messages
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
    """What the log tells of it; it gets the hash of what is written.

    None writes what has passed so far, to be written again when the outcome is known.
    """


class Exchanges:
    """The table `exchanges`, and the rows of others that go with each."""

    def __init__(
        self, database: Database, log: EventLog, origins: Origins, messages: Messages
    ) -> None:
        self._database = database
        self._log = log
        self._origins = origins
        self._messages = messages

    def save(self, run: int, make: Callable[[], Record]) -> "asyncio.Future[None]":
        """Write an exchange with its outcome event; the future is done once both are durable.

        make: builds the record; called once, on the writer's thread.
        """
        return self._database.writer.submit(lambda: self._prepare(run, make()), run)

    def save_unwaited(self, run: int, make: Callable[[], Record]) -> None:
        """Write an exchange with its outcome event; nobody waits."""
        self._database.writer.append(lambda: self._prepare(run, make()), run)

    def _prepare(self, run: int, record: Record) -> Operation:
        exchange = record.exchange
        encoded = encode_exchange(exchange)
        if record.outcome is not None:
            said = b""
            if exchange.conversation is not None:
                said = self._messages.take_hash(run, exchange.seq)
            record = replace(record, outcome=vouched(record.outcome, encoded, said))
        used = fingerprint_key(run, exchange.fingerprint, exchange.seq)
        value = bodies.pack(encoded)
        row = self._database.row
        rows = [
            row("exchanges", pair_key(run, exchange.seq), value),
            row("fingerprints", used, b""),
        ]
        if exchange.spilled:
            rows.append(files_row(self._database, run, exchange))
        raw = row("raws", number_key(run) + record.raw, exchange.fingerprint)
        return lambda txn: self._save(txn, run, record, rows, raw)

    def _save(
        self,
        transaction: lmdb.Transaction,
        run: int,
        record: Record,
        rows: Sequence[Row],
        raw: Row,
    ) -> None:
        exchange = record.exchange
        # Everything that may raise comes first: an exchange is written with all its rows or not at all.
        origin = self._origins.find_new(run, exchange)
        linked = self._log.link(transaction, run, record.outcome) if record.outcome else None
        for row in rows:
            self._database.put_row(transaction, row)
        self._database.put_row(transaction, raw, overwrite=False)
        if origin is not None:
            self._origins.put(transaction, origin, exchange)
        if linked is not None:
            self._log.put_linked(transaction, run, linked)

    def find(self, info: RunInfo, seq: int) -> Exchange | None:
        """Find an exchange by its seq.

        Raises: LogCorrupt.
        """
        with self._database.reading() as transaction:
            try:
                value = self._database.read(transaction, "exchanges", pair_key(info.number, seq))
                if value is None:
                    return None
                return decode_exchange(bodies.unpack(value))
            except BadRecord as error:
                raise LogCorrupt(f"run {info.id}, exchange {seq}: {error}") from error

    def holds(self, info: RunInfo, seq: int) -> bool:
        """Say whether a run holds an exchange, without reading it."""
        with self._database.reading() as transaction:
            return self._database.holds(transaction, "exchanges", pair_key(info.number, seq))

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
            places = self._database.places(transaction, "exchanges", info.number, first)
            return [Seq(int.from_bytes(place[8:], "big")) for place in places]
