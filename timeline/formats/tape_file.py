"""Export a run as a tape file, and import it: what the file contains, and the checks before anything is stored.

A file holds a run, and before a playback its tape. What it holds is what the store held: events with their chain,
exchanges, messages, bodies; placeholders stand where secrets stood.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from ...store import Ingest, RunInfo, RunOpen, RunStatus, Store, StoreError, StoreTooNew
from ...store import Record as StoredRecord
from ...tape.canonical.canonical_request import raw_key
from ...tape.exchange import Exchange
from ...tape.records.codec import (
    BadRecord,
    decode_exchange,
    decode_message,
    encode_exchange,
    encode_message,
    pack_map,
    unpack,
)
from ...tape.records.event_shape import check_event
from ...tape.records.events import CHAIN_START, Event, EventKind, content_hash, decode_event
from ...tape.records.msgpack_limits import check_values
from ...tape.records.rewritten import read_rewritten, replace_hashes
from ...tape.records.tape_file import Kind, Record, TapeTooNewRecord, TapeWriter, read_records

_DIGEST_BYTES = 32
_KEY_BYTES = 16
_FINGERPRINT_BYTES = 16
_VALUE_AT = {Kind.EVENT: len(CHAIN_START), Kind.MESSAGE: _KEY_BYTES}
"""Where the packed value of a record begins."""
Progress = Callable[[int, int], None]


def export_tape(
    store: Store, info: RunInfo, write: Callable[[bytes], object], progress: Progress
) -> list[RunInfo]:
    """Write a run that has ended, behind the tape that it plays; give what was written.

    Raises: RunOpen; LogCorrupt, where the store cannot read it; StoreError.
    """
    runs = [info]
    if (tape := store.runs.find_tape(info)) is not None:
        runs.insert(0, tape)
    for run in runs:
        if run.status is RunStatus.OPEN:
            raise RunOpen(f"run {run.id!r} has not ended", f"end it with: playhead seal {run.id}")
    writer = TapeWriter(write)
    total = sum(run.exchanges for run in runs)
    done = 0
    bodies: set[bytes] = set()
    try:
        for run in runs:
            for record in records_of(store, run, bodies):
                writer.put(*record)
                done += record.kind is Kind.EXCHANGE
                progress(done, total)
            if not store.runs.exists(run):  # its rows went with its name, all at once
                raise StoreError(
                    f"run {run.id!r} was deleted while it was exported", "nothing was written"
                )
    except BadRecord as error:
        raise StoreError(f"run {info.id!r} cannot be exported: {error}") from error
    writer.close()
    return runs


def _row(run: RunInfo) -> dict[str, Any]:
    return {
        "id": run.id,
        "mode": run.mode,
        "status": run.status.value,
        "parent": run.parent,
        "created_ns": run.created_ns,
        "sealed_ns": run.sealed_ns,
        "exchanges": run.exchanges,
        "agent": run.agent,
        "end": run.end,
        # What an index was made under by `reindex` says nothing of the exchanges as they stand here.
        "rules": b"" if run.index else run.rules,
        "canonical": 0 if run.index else run.canonical,
    }


def records_of(store: Store, run: RunInfo, bodies: set[bytes]) -> Iterator[Record]:
    """Give what a store holds of a run: its row, its events, then its exchanges, each after the bodies it needs.

    bodies: digests of those that were given already; grows.
    Raises: LogCorrupt.
    """
    yield Record(Kind.RUN, pack_map(_row(run)))
    for value in store.events.raw(run):
        yield Record(Kind.EVENT, value)
    for exchange in store.exchanges.all(run):
        for digest in _files(exchange):
            if digest not in bodies:
                bodies.add(digest)
                yield Record(Kind.BODY, digest)
                for piece in store.bodies.read_file(digest):
                    yield Record(Kind.PIECE, piece)
        yield Record(Kind.EXCHANGE, encode_exchange(exchange))
        if exchange.websocket is not None:
            for number, message in enumerate(store.messages.all(run, exchange.seq)):
                key = exchange.seq.to_bytes(8, "big") + number.to_bytes(8, "big")
                yield Record(Kind.MESSAGE, key + encode_message(message))


def _files(exchange: Exchange) -> list[bytes]:
    return [digest for spilled in exchange.spilled for digest in spilled.files]


class RecordIngest:
    """The records of a file, as they become runs."""

    def __init__(self, store: Store, ingest: Ingest, restored: RunInfo | None = None) -> None:
        """Take runs into a store; restored: the one run that is restored from an archive."""
        self._store = store
        self._ingest = ingest
        self._restored = restored
        self._runs: list[RunInfo] = []
        self._bodies: set[bytes] = set()
        self._hashes: dict[int, bytes] = {}
        """What the log of the run at hand says of its exchanges that are yet to come."""
        self._events = 0
        self._seq = 0
        self._lacking = 0
        """Messages that the exchange at hand still lacks."""
        self._open_ended = False
        """Whether more may follow: of a WebSocket that was open when its recorder died the messages tell more than the exchange."""
        self._next = 0
        self.exchanges = 0

    def files(self, records: Iterator[Record]) -> Iterator[Record]:
        """Keep the bodies among records; give the others."""
        record = next(records, None)
        while record is not None:
            if record.kind is not Kind.BODY:
                yield record
                record = next(records, None)
                continue
            pieces = _Pieces(records)
            if len(record.data) != _DIGEST_BYTES:
                raise BadRecord(
                    f"a body's hash of {len(record.data)} bytes; expected {_DIGEST_BYTES}"
                )
            self._store.bodies.keep_file(record.data, pieces)
            self._bodies.add(record.data)
            record = pieces.after

    def ingest(self, record: Record) -> None:
        """Take a record that is no body."""
        check_values(record.data, _VALUE_AT.get(record.kind, 0))
        if record.kind is Kind.RUN:
            self._end_run()
            self._begin(record.data)
            return
        if not self._runs:
            raise BadRecord(f"a record of kind {record.kind.name.lower()} before any run")
        run = self._runs[-1].number
        if record.kind is Kind.EVENT:
            event = self._ingest.put_event(run, record.data)
            check_event(event)
            self._events += 1
            if event.kind is EventKind.OUTCOME and "hash" in event.data:
                self._hashes[event.seq] = event.data["hash"]
            elif event.kind is EventKind.REWRITTEN:
                replace_hashes(read_rewritten(event), self._hashes, {})
        elif record.kind is Kind.EXCHANGE:
            self._end_exchange()
            self._take_exchange(run, record.data)
        elif record.kind is Kind.MESSAGE:
            self._take_message(run, record.data)
        else:
            raise BadRecord("a piece of a body without one")

    def publish(self) -> list[RunInfo]:
        """Put the runs onto the store's list."""
        self._end_run()
        if not self._runs:
            raise BadRecord("it holds no run")
        return self._ingest.publish(self._runs)

    def publish_restored(self, info: RunInfo, at_ns: int) -> None:
        """End taking what an archive holds of a run that is away, the only one.

        Raises: BadRecord, where it is another, or not all of it.
        """
        self._end_run()
        if [run.number for run in self._runs] != [info.number]:
            raise BadRecord(f"it is not the run {info.id!r}")
        if info.archived is None or self._events != info.archived.events:
            raise BadRecord(f"it has {self._events} events, which are not those that were archived")
        self._ingest.publish_restored(info, at_ns)

    def _begin(self, data: bytes) -> None:
        told = read_row(data)
        if self._restored is not None:
            if self._runs or told.id != self._restored.id:
                raise BadRecord(f"run {told.id!r:.60} where {self._restored.id!r:.60} belongs")
            self._ingest.begin_restore(self._restored)
            self._runs.append(self._restored)
            return
        number = self._ingest.begin(told.id)
        parent = next((run.number for run in self._runs if run.id == told.parent), 0)
        self._runs.append(replace(told, number=number, parent_number=parent))
        self._seq = 0

    def _take_exchange(self, run: int, data: bytes) -> None:
        exchange = decode_exchange(data)
        if self._hashes.pop(exchange.seq, content_hash(data)) != content_hash(data):
            raise BadRecord(f"exchange {exchange.seq} does not fit the hash in its log")
        if not self._seq < exchange.seq < 1 << 63:
            raise BadRecord(f"exchange {exchange.seq} after exchange {self._seq}")
        if len(exchange.fingerprint) != _FINGERPRINT_BYTES:
            raise BadRecord(
                f"exchange {exchange.seq} has a fingerprint of {len(exchange.fingerprint)} bytes;"
                f" expected {_FINGERPRINT_BYTES}"
            )
        missing = [digest for digest in _files(exchange) if digest not in self._bodies]
        if missing:
            raise BadRecord(f"exchange {exchange.seq} has a body that is not in the file")
        self._seq = exchange.seq
        self.exchanges += 1
        websocket = exchange.websocket
        self._lacking, self._next = (websocket.messages if websocket is not None else 0), 0
        self._open_ended = websocket is not None and websocket.close is None
        raw = raw_key(exchange.request, exchange.request_class)
        self._ingest.save(run, StoredRecord(exchange, raw, None))

    def _take_message(self, run: int, data: bytes) -> None:
        seq, number = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:_KEY_BYTES], "big")
        belongs = self._lacking or self._open_ended
        if len(data) < _KEY_BYTES or (seq, number) != (self._seq, self._next) or not belongs:
            raise BadRecord(f"message {number} of exchange {seq} where none belongs")
        self._ingest.append_message(run, seq, number, decode_message(data[_KEY_BYTES:]))
        self._lacking = max(self._lacking - 1, 0)
        self._next += 1

    def _end_run(self) -> None:
        self._end_exchange()
        if self._hashes:
            raise BadRecord(f"exchange {min(self._hashes)} is missing, which its log tells of")

    def _end_exchange(self) -> None:
        if self._lacking:
            raise BadRecord(f"exchange {self._seq} lacks {self._lacking} of its messages")


def find_unfit(store: Store, run: RunInfo) -> str:
    """Say why an import would refuse the records of a run, or nothing; the bytes of large bodies are not looked at."""
    ingest = RecordIngest(store, cast("Ingest", _Nowhere()))
    ingest._bodies = _Everything()
    try:
        for record in records_of(store, run, _Everything()):
            ingest.ingest(record)
        ingest._end_run()
    except BadRecord as error:
        return str(error)
    return ""


class _Nowhere:
    """Takes what an `Ingest` does, and keeps nothing."""

    def __init__(self) -> None:
        self._events = 0

    def begin(self, _: str) -> int:
        return 0

    def put_event(self, _: int, value: bytes) -> Event:
        self._events += 1
        return decode_event(value, self._events)

    def save(self, *_: object) -> None:
        pass

    def append_message(self, *_: object) -> None:
        pass


class _Everything(set[bytes]):
    """All bodies that there are: none has to be given."""

    def __contains__(self, _: object) -> bool:
        return True


class _Pieces:
    """The pieces that follow a body; `after` is the first record that is none."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self.after: Record | None = None

    def __iter__(self) -> Iterator[bytes]:
        for record in self._records:
            if record.kind is not Kind.PIECE:
                self.after = record
                return
            yield record.data


def read_row(data: bytes) -> RunInfo:
    """Read what a file says of a run; its number is 0.

    Raises: BadRecord.
    """
    told: Any = unpack(data)
    if type(told) is not dict:
        raise BadRecord(f"a run that is no map: {told!r:.60}")
    for name, kinds in _ROW.items():
        if name not in told or not isinstance(told[name], kinds):
            raise BadRecord(f"a run whose {name!r} is {told.get(name, 'missing')!r:.60}")
    row = {name: told[name] for name in _ROW}
    try:
        status = RunStatus(row.pop("status"))
    except ValueError as error:
        raise BadRecord(str(error)) from error
    if status is RunStatus.OPEN or row["mode"] not in ("record", "playback"):
        raise BadRecord(f"a run that is {status.value!r}, of mode {row['mode']!r:.20}")
    if min(row[name] for name in ("created_ns", "sealed_ns", "exchanges", "canonical")) < 0:
        raise BadRecord("a run with a number below zero")
    return RunInfo(number=0, status=status, **row)


_ROW: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "mode": (str,),
    "status": (str,),
    "parent": (str, type(None)),
    "created_ns": (int,),
    "sealed_ns": (int,),
    "exchanges": (int,),
    "agent": (str,),
    "end": (str,),
    "rules": (bytes,),
    "canonical": (int,),
}


def import_tape(
    store: Store, data: Callable[[], Iterable[bytes]], limit_bytes: int, progress: Progress
) -> list[RunInfo]:
    """Take the runs of a file into a store: all of them or none. Blocks.

    data: gives the file's bytes from the start; read twice, since nothing is written before all of it was checked.
    limit_bytes: most that it may unpack to.
    Raises: StoreError, naming what is wrong with it; StoreTooNew.
    """
    try:
        records = read_records(data(), limit_bytes)
        total = sum(record.kind is Kind.EXCHANGE for record in records)
        with store.ingest() as ingest:
            record_ingest = RecordIngest(store, ingest)
            for record in record_ingest.files(read_records(data(), limit_bytes)):
                record_ingest.ingest(record)
                progress(record_ingest.exchanges, total)
            return record_ingest.publish()
    except TapeTooNewRecord as error:
        raise StoreTooNew(str(error), "use a newer Playhead; nothing was imported") from error
    except BadRecord as error:
        raise StoreError(f"no tape that can be read: {error}", "nothing was imported") from error
