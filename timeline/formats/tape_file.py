"""Export a run as a tape file, and import it: what the file contains, and the checks before anything is stored.

A file holds a run, and before a playback its tape. What it holds is what the store held: events with their chain,
exchanges, messages, bodies, what the working folder held with the contents that were saved; placeholders stand where
secrets stood.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from blake3 import blake3

from ...store import Ingest, Made, RunInfo, RunOpen, RunStatus, Store, StoreError, StoreTooNew
from ...store import Record as StoredRecord
from ...store.tables.folders import Content
from ...tape.canonical.canonical_request import raw_key
from ...tape.exchange import Exchange
from ...tape.folders.check_imported_manifest import ImportedFolder
from ...tape.folders.manifest import Entry, find_saved, read_rows
from ...tape.records.check_event_fields import check_event
from ...tape.records.codec import (
    BadRecord,
    decode_exchange,
    decode_message,
    encode_exchange,
    encode_message,
    pack_map,
    unpack,
)
from ...tape.records.events import CHAIN_START, Event, EventKind, content_hash, decode_event
from ...tape.records.msgpack_limits import check_values
from ...tape.records.rewrite_tombstones import read_rewritten, replace_hashes
from ...tape.records.tape_file import (
    Given,
    Kind,
    Record,
    TapeTooNewRecord,
    TapeWriter,
    read_records,
)
from ...tape.shell_words import shell_word
from ..lookup.resumed_by import was_gone_on

_DIGEST_BYTES = 32
_KEY_BYTES = 16
_FINGERPRINT_BYTES = 16
_NUMBER_BYTES = 8
_PIECE_BYTES = 1 << 20
_MOST_CONTENT_BYTES = 1 << 30
"""The highest `files.max_file_mib`: a content is held in memory."""
_VALUE_AT = {
    Kind.EVENT: len(CHAIN_START),
    Kind.MESSAGE: _KEY_BYTES,
    Kind.FOLDER: _NUMBER_BYTES,
}
"""Where the packed value of a record begins."""
_WITH_PIECES = (Kind.BODY, Kind.CONTENT)
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
            raise RunOpen(
                f"run {run.id!r} has not ended", f"end it with: playhead seal {shell_word(run.id)}"
            )
    writer = TapeWriter(write)
    total = sum(run.exchanges for run in runs)
    done = 0
    given: Given = set()
    try:
        for run in runs:
            for record in records_of(store, run, given):
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


def _row(store: Store, run: RunInfo) -> dict[str, Any]:
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
        "resumes": run.has_resumed,
        "classes": run.classes,
        "gone_on": was_gone_on(store, run),
    }


def records_of(store: Store, run: RunInfo, given: Given) -> Iterator[Record]:
    """Give what a store holds of a run: its row, its events, its folder, its exchanges.

    Contents of files come before the manifest that needs them, bodies before their exchange.

    given: what was given already; grows.
    Raises: LogCorrupt.
    """
    yield Record(Kind.RUN, pack_map(_row(store, run)))
    for value in store.events.raw(run):
        yield Record(Kind.EVENT, value)
    yield from _folder_records(store, run, given)
    for exchange in store.exchanges.all(run):
        for digest in _files(exchange):
            if (Kind.BODY, digest) not in given:
                given.add((Kind.BODY, digest))
                yield Record(Kind.BODY, digest)
                for piece in store.bodies.read_file(digest):
                    yield Record(Kind.PIECE, piece)
        yield Record(Kind.EXCHANGE, encode_exchange(exchange))
        if exchange.websocket is not None:
            for number, message in enumerate(store.messages.all(run, exchange.seq)):
                key = exchange.seq.to_bytes(8, "big") + number.to_bytes(8, "big")
                yield Record(Kind.MESSAGE, key + encode_message(message))


def _folder_records(store: Store, run: RunInfo, given: Given) -> Iterator[Record]:
    for number, (packed, files) in enumerate(read_rows(store.folders.rows(run))):
        for entry in files.values():
            name = Kind.CONTENT, entry.digest
            if name not in given and store.folders.holds(entry.digest):
                given.add(name)
                yield Record(*name)
                data = store.folders.read(entry.digest)
                for at in range(0, max(len(data), 1), _PIECE_BYTES):
                    yield Record(Kind.PIECE, data[at : at + _PIECE_BYTES])
        yield Record(Kind.FOLDER, number.to_bytes(_NUMBER_BYTES, "big") + packed)


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
        self._gone_on: set[int] = set()
        """Numbers of those that crashed and were resumed where they were recorded."""
        self._given: Given = set()
        self._folder = ImportedFolder()
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
        """Keep the bodies and contents among records; give the others."""
        record = next(records, None)
        while record is not None:
            if record.kind not in _WITH_PIECES:
                yield record
                record = next(records, None)
                continue
            pieces = _Pieces(records)
            if len(record.data) != _DIGEST_BYTES:
                raise BadRecord(
                    f"the hash of a {record.kind.name.lower()} has {len(record.data)} bytes; expected {_DIGEST_BYTES}"
                )
            if record.kind is Kind.BODY:
                self._store.bodies.keep_file(record.data, pieces)
            else:
                self._take_content(record.data, pieces)
            self._given.add((record.kind, record.data))
            record = pieces.after

    def _take_content(self, digest: bytes, pieces: Iterable[bytes]) -> None:
        if not self._runs:
            raise BadRecord("a content before any run")
        parts, size = [], 0
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size > _MOST_CONTENT_BYTES:
                raise BadRecord(f"a content of more than {_MOST_CONTENT_BYTES} bytes")
        data = b"".join(parts)
        if blake3(data).digest() != digest:
            raise BadRecord(f"the content {digest.hex()[:16]} does not fit its hash")
        self._ingest.put_contents(self._runs[-1].number, [Content(digest, data)])

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
        elif record.kind is Kind.FOLDER:
            self._take_folder(run, record.data)
        else:
            raise BadRecord("a piece of a body without one")

    def _take_folder(self, run: int, data: bytes) -> None:
        if len(data) < _NUMBER_BYTES:
            raise BadRecord("a savepoint without a number")
        number, packed = int.from_bytes(data[:_NUMBER_BYTES], "big"), data[_NUMBER_BYTES:]
        entries, checked = self._folder.take(number, packed)
        # Another run of the file may have brought them.
        self._ingest.put_contents(run, map(Content, self._known(entries)))
        # What this store has archived is its own: it comes back byte by byte.
        self._ingest.put_folder(run, number, checked if self._restored is None else packed)

    def _known(self, entries: Mapping[bytes, Entry]) -> Iterator[bytes]:
        digests = dict.fromkeys(entry.digest for entry in find_saved(entries).values())
        return (digest for digest in digests if (Kind.CONTENT, digest) in self._given)

    def publish(self) -> list[RunInfo]:
        """Put the runs onto the store's list."""
        self._end_run()
        if not self._runs:
            raise BadRecord("it holds no run")
        return self._ingest.publish(self._runs, self._gone_on)

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
        if _is_gone_on(data):
            self._gone_on.add(number)
        self._seq = 0
        self._folder = ImportedFolder()

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
        missing = [digest for digest in _files(exchange) if (Kind.BODY, digest) not in self._given]
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
            raise BadRecord(f"exchange {min(self._hashes)} is missing, although its log has it")

    def _end_exchange(self) -> None:
        if self._lacking:
            raise BadRecord(f"exchange {self._seq} lacks {self._lacking} of its messages")


def find_unfit(store: Store, run: RunInfo) -> str:
    """Say why an import would refuse the records of a run, or nothing; the bytes of large bodies are not looked at."""
    ingest = RecordIngest(store, cast("Ingest", _Nowhere()))
    ingest._given = _Everything()
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

    def put_contents(self, *_: object) -> None:
        pass

    def put_folder(self, *_: object) -> None:
        pass


class _Everything(Given):
    """All bodies and contents that there are: none has to be given."""

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
    classes = told.get("classes")
    row["made"] = Made(told.get("resumes") is True, classes if isinstance(classes, bytes) else b"")
    try:
        status = RunStatus(row.pop("status"))
    except ValueError as error:
        raise BadRecord(str(error)) from error
    if status is RunStatus.OPEN or row["mode"] not in ("record", "playback"):
        raise BadRecord(f"a run that is {status.value!r}, of mode {row['mode']!r:.20}")
    if min(row[name] for name in ("created_ns", "sealed_ns", "exchanges", "canonical")) < 0:
        raise BadRecord("a run with a number below zero")
    return RunInfo(number=0, status=status, **row)


def _is_gone_on(data: bytes) -> bool:
    """Say whether a run of a file crashed and was resumed before the file was written."""
    told: Any = unpack(data)
    return bool(told.get("gone_on"))


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
