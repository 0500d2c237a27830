"""The exchanges of runs: each is written once its outcome is known, with all its rows or not at all."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import batched
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from ...tape.exchange import Exchange, RawAnswer, Seq
from ...tape.records.codec import (
    BadRecord,
    EncodedExchange,
    decode_exchange,
    encode_exchange,
    split_exchange,
)
from ...tape.records.events import Event, content_hash, with_hashes
from ..deltas import record_codec
from ..deltas.base64_blobs import Blobs, Extracted
from ..deltas.choose_base import DeltaChains, Placement, Stored
from ..deltas.records import KEY_BYTES, Records
from ..deltas.shared_prefixes import SharedPrefixes
from ..errors import LogCorrupt
from ..lmdb.database import Database, Row
from ..lmdb.writer import Operation
from ..lmdb_keys import can_be_number, fingerprint_key, number_key, pair_key
from .alpn import Origins
from .body_file_uses import files_row
from .events import EventLog
from .redacted_originals import Originals
from .run_info import RunInfo
from .websocket_messages import Messages

if TYPE_CHECKING:
    import asyncio

_BLOCK = 16
"""Exchanges that are read in one transaction where many are."""


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
    came: RawAnswer | None = None
    """Its answer as it came, where the store is to keep what redaction replaced; None leaves what it has."""


class _Prepared(NamedTuple):
    """An exchange as it is going to be put."""

    run: int
    exchange: Exchange
    outcome: Event | None
    """With the hash of what is written."""
    place: Placement
    whole: bytes
    """Itself."""
    extracted: Extracted
    """The same without its large base64."""
    value: bytes
    """Its record on disk."""
    prefix: bytes | None
    """Record of the new shared prefix that it makes."""
    rows: Sequence[Row]
    raw: Row
    final: bool
    originals: Row | None
    keeps: bool
    """Whether `originals` stands for what there is now."""


class Exchanges:
    """The exchanges of runs, `store.exchanges`: the table `exchanges`, and the rows of others that go with each.

    Reads come from any thread; they raise StoreError where LMDB cannot be read.
    """

    def __init__(
        self,
        database: Database,
        log: EventLog,
        origins: Origins,
        messages: Messages,
        originals: Originals,
    ) -> None:
        self._database = database
        self._log = log
        self._origins = origins
        self._messages = messages
        self._originals = originals
        self._records = Records(database)
        self._blobs = Blobs(database)
        self._chains = DeltaChains()
        self._shared_prefixes = SharedPrefixes(database, self._records)
        self._passing: set[tuple[int, int]] = set()
        """Run and seq of what is going to be written again."""
        self._change: Callable[[RunInfo, Exchange], Exchange] | None = None
        database.forgetting += [self._chains.clear, self._passing.clear]

    def read_through(self, change: Callable[[RunInfo, Exchange], Exchange]) -> "Exchanges":
        """Give the same exchanges, each as a function gives it where it is read; nothing is written that way."""
        changed = copy(self)
        changed._change = change
        return changed

    def forget(self, run: int) -> None:
        """Drop what is remembered of a run that has ended. Writer's thread."""
        self._chains.drop(run)
        self._blobs.forget(run)
        self._passing -= {key for key in self._passing if key[0] == run}

    def save(
        self, run: int, make: Callable[[], Record], *, collect: bool = False
    ) -> "asyncio.Future[None]":
        """Write an exchange with its outcome event; the future is done once both are durable. On a running loop.

        run: number of a run that is open.
        make: builds the record; called once, on the writer's thread.
        collect: wait up to a millisecond for others, whose exchanges are under way.
        Raises: StoreUnwritable, at once or in the future; in the future also whatever `make` raises.
        """
        return self._database.writer.submit(
            lambda: self._prepare(run, make()), run, collect=collect
        )

    def save_unwaited(self, run: int, make: Callable[[], Record]) -> None:
        """Write an exchange with its outcome event; nobody waits. See `save`.

        Raises: StoreUnwritable, while nothing can be written.
        """
        self._database.writer.append(lambda: self._prepare(run, make()), run)

    def ingest(self, run: int, record: Record) -> None:
        """Write an exchange that is final though its outcome event may come by itself; nobody waits."""
        self._database.writer.append(lambda: self._prepare(run, record, final=True))

    def _prepare(self, run: int, record: Record, *, final: bool = False) -> Operation:
        exchange = record.exchange
        encoded = encode_exchange(exchange)
        written = content_hash(encoded)
        outcome = record.outcome
        if outcome is not None:
            final = True
            said = b""
            if exchange.websocket is not None:
                said = self._messages.take_hash(run, exchange.seq)
            outcome = with_hashes(outcome, written, said)
        extracted = self._blobs.extract(run, encoded, len(encoded) - len(exchange.request.body))
        check = b"" if extracted.names else written[: record_codec.CHECKSUM_BYTES]
        stored = Stored(exchange.seq, extracted.value, extracted.body_at)
        find = self._shared_prefixes.find
        place = self._chains.place(run, stored, exchange.request, find, final=final)
        if place.makes_prefix:
            assert place.base is not None
            self._shared_prefixes.keep(place.base)
        row = self._database.row
        rows = [row("fingerprints", fingerprint_key(run, exchange.fingerprint, exchange.seq), b"")]
        if exchange.spilled:
            rows.append(files_row(self._database, run, exchange))
        prepared = _Prepared(
            run,
            exchange,
            outcome,
            place,
            encoded,
            extracted,
            _pack(place, check),
            record_codec.pack(extracted.value, check) if place.makes_prefix else None,
            rows,
            row("raws", number_key(run) + record.raw, exchange.fingerprint),
            final,
            self._originals.row(run, record.came, exchange) if record.came is not None else None,
            record.came is not None,
        )
        return lambda txn: self._save(txn, prepared)

    def _save(self, transaction: lmdb.Transaction, prepared: _Prepared) -> None:
        run, exchange, outcome = prepared.run, prepared.exchange, prepared.outcome
        # Everything that may raise comes first: an exchange is written with all its rows or not at all.
        origins = self._origins.find_new(run, exchange)
        linked = self._log.link(transaction, run, outcome) if outcome else None
        self._put(transaction, prepared)
        for row in prepared.rows:
            self._database.put_row(transaction, row)
        if prepared.keeps:
            self._originals.put(transaction, run, exchange.seq, prepared.originals)
        self._database.put_row(transaction, prepared.raw, overwrite=False)
        for origin in origins:
            self._origins.put(transaction, origin, exchange)
        if linked is not None:
            self._log.put_linked(transaction, run, linked)

    def _put(self, transaction: lmdb.Transaction, prepared: _Prepared) -> None:
        run, place = prepared.run, prepared.place
        key = run, prepared.exchange.seq
        if key not in self._passing and self._records.holds(transaction, *key):
            self._detach_deltas(transaction, *key)
        self._passing.discard(key)
        if not prepared.final:
            self._passing.add(key)
        value = prepared.value
        if place.base is not None and not self._is_base_stored(transaction, prepared, place.base):
            value = record_codec.pack(place.stored.value)
        whole = self._blobs.put(transaction, run, prepared.extracted)
        self._records.put(transaction, *key, value if whole else record_codec.pack(prepared.whole))
        place.stored.written = whole  # else the record is not the value that a delta would need

    def _is_base_stored(
        self, transaction: lmdb.Transaction, prepared: _Prepared, base: Stored
    ) -> bool:
        """Say whether the delta base of an exchange is stored."""
        if isinstance(base.key, int):
            return base.written
        return self._shared_prefixes.use(transaction, prepared.run, base, prepared.prefix)

    def _detach_deltas(self, transaction: lmdb.Transaction, run: int, seq: int) -> None:
        """Store the deltas against an exchange whole, before it is written again."""
        try:
            before = self._records.find(transaction, run, seq)
        except BadRecord:  # its deltas are lost with it
            return
        for other, value in self._records.deltas_on(transaction, run, seq, before):
            self._records.put(transaction, run, other, record_codec.pack(value))

    def find(self, info: RunInfo, seq: int) -> Exchange | None:
        """Find an exchange by its seq; None where the run holds none. The bodies that spilled stay in their files.

        seq: any number; people may ask for one.
        Raises: LogCorrupt, naming the run and the seq.
        """
        if not can_be_number(seq):
            return None
        try:
            with self._database.reading() as transaction:
                value = self._records.find(transaction, info.number, seq)
                if value is not None:
                    value = self._blobs.restore(transaction, info.number, value)
            found = decode_exchange(value) if value is not None else None
        except BadRecord as error:
            raise LogCorrupt(f"run {info.id}, exchange {seq}: {error}") from error
        return found if found is None or self._change is None else self._change(info, found)

    def raw(self, info: RunInfo, seqs: Iterable[int]) -> Iterator[tuple[int, EncodedExchange]]:
        """Read exchanges as they are encoded, a few in each transaction: to look for bytes in many of them.

        seqs: in order, or each is unpacked from its delta bases anew; those that the run does not hold are left out.
        Raises: LogCorrupt, naming the run and the seq.
        """
        for block in batched(seqs, _BLOCK):
            found: list[tuple[int, EncodedExchange]] = []
            seq = block[0]
            try:
                with self._database.reading() as transaction:
                    for seq in block:
                        value = self._records.find(transaction, info.number, seq)
                        if value is not None:
                            value = self._blobs.restore(transaction, info.number, value)
                            found.append((seq, split_exchange(value)))
            except BadRecord as error:
                raise LogCorrupt(f"run {info.id}, exchange {seq}: {error}") from error
            yield from found

    def holds(self, info: RunInfo, seq: int) -> bool:
        """Say whether a run holds an exchange, without reading it; people may ask for any number."""
        if not can_be_number(seq):
            return False
        with self._database.reading() as transaction:
            return self._records.holds(transaction, info.number, seq)

    def all(self, info: RunInfo, after: int = 0) -> Iterator[Exchange]:
        """Read the exchanges of a run by seq, one transaction each.

        after: last seq already seen; 0 reads from the start.
        Raises: LogCorrupt, naming the run and the seq.
        """
        for seq in self.seqs(info, after):
            exchange = self.find(info, seq)
            if exchange is not None:
                yield exchange

    def seqs(self, info: RunInfo, after: int = 0) -> list[Seq]:
        """List the seqs that a run holds, in order, without reading an exchange.

        after: last seq already seen; 0 lists all.
        """
        first = pair_key(info.number, after + 1)
        with self._database.reading() as transaction:
            places = self._database.places(transaction, "exchanges", info.number, first)
            numbers = [place[8:] for place in places if len(place) == KEY_BYTES]
        return [Seq(int.from_bytes(number, "big")) for number in numbers]


def _pack(place: Placement, check: bytes) -> bytes:
    stored, base, _ = place
    if base is None:
        return record_codec.pack(stored.value, check)
    return record_codec.pack_delta(stored.body, base.key, base.body, stored.depth, check)
