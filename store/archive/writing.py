"""Write the files of a batch: the records of runs, one run after another, as rows.

What is written is what `tape_file` knows of a run; a record becomes a row, and gives the same record when it is read
again. Bodies and header fields stand in columns of their own, neighbouring steps beside each other, so that what they
share is packed once; the rest of an exchange is its record without them.
"""

import contextlib
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from ...tape.exchange import Exchange, Headers, Spilled
from ...tape.records.codec import (
    BadRecord,
    decode_exchange,
    decode_message,
    encode_exchange,
    encode_message_rest,
    encode_rest,
    unpack,
)
from ...tape.records.events import CHAIN_START, check_link, decode_event
from ...tape.records.tape_file import Kind, Record, hash_record
from . import FILE_VERSION, VERSION
from .schema import (
    GROUP_BYTES,
    GROUP_ROWS,
    HEADER_WORDS,
    SCHEMAS,
    STEPS,
    VERSION_KEY,
    WORDS,
)
from .seal import SEAL_KEY, UNSEALED, FileSum, HashedFile, describe_files, seal
from .storage import Place

_LEVEL = 9
_KEY_BYTES = 16
NUMBER_BYTES = 8
"""Of a record of a folder: its number, before what it says."""
PIECES = {Kind.BODY: "bodies", Kind.CONTENT: "contents"}
"""Tables of what is kept in pieces."""
_HASH_BYTES = 8
"""Of a body, in `steps`: to find equal ones; they are a third of that table as it is."""
_SORTED = frozenset(("run", "archive_id", "seq", "number", "started", "at"))
"""Columns that have statistics, so that a query reads the groups it needs; those of bodies would hold bodies."""
_UNSPLIT = 1 << 30
"""Above any page: see `schema.WORDS`."""
_BATCH = 1 << 20
"""Values between two looks at the size of a page: Arrow allocates levels of lists for that many, however few there are."""


class Written(NamedTuple):
    """A run as it stands in a batch."""

    archive_id: str
    events: int
    digest: bytes
    """Over its records as they were put, bodies aside, whose names are hashes."""


class BatchWriter:
    """Writes one batch. Use as a context manager; nothing of it counts before `finish` has returned."""

    def __init__(self, place: Place, batch: str, host: str) -> None:
        """Begin. host: who writes, for people."""
        self._place = place
        self._batch = batch
        self._host = host
        self._open = contextlib.ExitStack()
        self._tables: dict[str, _Table] = {}
        self._memory = io.BytesIO()
        self._steps = _Table(STEPS, self._memory)
        self._runs: list[_Run] = []
        self._digest = b""
        self._part = 0
        self._pieces = ""
        """Table of what the pieces at hand are of."""
        self.raw_bytes = 0
        """Of all that was put, before packing."""

    def __enter__(self) -> "BatchWriter":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None:
            # Else they would close themselves later, into files that are closed.
            for table in (*self._tables.values(), self._steps):
                with contextlib.suppress(OSError, ValueError, pa.ArrowException):
                    table.finish()
        self._open.__exit__(kind, error, trace)

    def begin(self, archive_id: str, record: Record, labels: Sequence[str]) -> None:
        """Begin a run; its records follow.

        archive_id: stays with it, in whatever batch it stands.
        record: of kind RUN.
        """
        run = _Run(archive_id, record.data, unpack(record.data), tuple(labels))
        hash_record(run.digest, record)
        self._runs.append(run)

    def put(self, record: Record) -> None:
        """Write a record of the run at hand.

        Raises: BadRecord, where it is none, or an event does not follow the one before; StoreUnwritable.
        """
        self.raw_bytes += len(record.data)
        if record.kind not in (*PIECES, Kind.PIECE):
            hash_record(self._runs[-1].digest, record)
        if record.kind is Kind.EVENT:
            self._put_event(record.data)
        elif record.kind is Kind.EXCHANGE:
            self._put_exchange(record.data)
        elif record.kind is Kind.MESSAGE:
            self._put_message(record.data)
        elif record.kind is Kind.FOLDER:
            self._put_folder(record.data)
        elif record.kind in PIECES:
            self._pieces, self._digest, self._part = PIECES[record.kind], record.data, 0
        elif record.kind is Kind.PIECE:
            self._table(self._pieces).add(
                {"digest": self._digest, "part": self._part, "data": record.data}, len(record.data)
            )
            self._part += 1

    def finish(self) -> list[Written]:
        """End the batch: from now on it counts; give its runs in order.

        Raises: StoreUnwritable.
        """
        runs = self._table("runs")
        for run in self._runs:
            runs.add(run.row(self._host), 0)
        sums = {folder: table.finish() for folder, table in self._tables.items()}
        self._open.close()  # now they are there whole
        self._steps.finish({**describe_files(sums), SEAL_KEY: UNSEALED})
        with self._place.writing(STEPS, self._batch) as file:
            file.write(seal(self._memory.getvalue()))
        return [Written(run.archive_id, run.events, run.digest.digest()) for run in self._runs]

    def _table(self, folder: str) -> "_Table":
        table = self._tables.get(folder)
        if table is None:
            file = self._open.enter_context(self._place.writing(folder, self._batch))
            table = self._tables[folder] = _Table(folder, file)
        return table

    def _put_event(self, data: bytes) -> None:
        run = self._runs[-1]
        link = check_link(data, run.chain)
        if link is None:
            raise BadRecord(f"event {run.events + 1} does not follow the one before it")
        run.chain, run.events = link, run.events + 1
        event = decode_event(data, run.events)
        table = self._table("events")
        run.event_groups.add(table.group)
        table.add(
            {
                **run.key,
                "number": run.events,
                "at": event.at_ns,
                "kind": event.kind.value,
                "seq": event.seq,
                "record": data[len(link) :],
            },
            len(data),
        )

    def _put_exchange(self, data: bytes) -> None:
        exchange = decode_exchange(data)
        if encode_exchange(exchange) != data:
            raise BadRecord(f"exchange {exchange.seq} is not written as this version writes it")
        run, table = self._runs[-1], self._table("exchanges")
        self._steps.add(_step(run, exchange, f"exchanges/{self._batch}.parquet", table.group), 0)
        request, response = exchange.request, exchange.response
        table.add(
            {
                **run.key,
                "seq": exchange.seq,
                "class": exchange.request_class.value,
                "method": _text(request.method),
                "url": _text(request.url),
                "request_headers": _fields(request.headers),
                "request_body": request.body,
                "status": response.status if response is not None else None,
                "response_headers": _fields(response.headers) if response is not None else None,
                "response_body": response.body if response is not None else None,
                "record": encode_rest(exchange),
            },
            len(data),
        )

    def _put_folder(self, data: bytes) -> None:
        number = int.from_bytes(data[:NUMBER_BYTES], "big")
        row = {**self._runs[-1].key, "number": number, "record": data[NUMBER_BYTES:]}
        self._table("folders").add(row, len(data))

    def _put_message(self, data: bytes) -> None:
        run, table = self._runs[-1], self._table("messages")
        run.message_groups.add(table.group)
        message = decode_message(data[_KEY_BYTES:])
        table.add(
            {
                **run.key,
                "seq": int.from_bytes(data[:8], "big"),
                "number": int.from_bytes(data[8:_KEY_BYTES], "big"),
                "at_us": message.at_us,
                "from_client": message.from_client,
                "kind": message.kind.value,
                "data": message.data,
                "record": encode_message_rest(message),
            },
            len(data),
        )


class _Run:
    """A run that is being written."""

    def __init__(self, archive_id: str, record: bytes, told: Any, labels: tuple[str, ...]) -> None:
        self.archive_id = archive_id
        self._record = record
        self._told = told
        self._labels = labels
        self.key = {"run": _text(told["id"]), "archive_id": archive_id}
        self.events = 0
        self.chain = CHAIN_START
        self.digest = blake3()
        self.event_groups: set[int] = set()
        self.message_groups: set[int] = set()

    def row(self, host: str) -> dict[str, Any]:
        told = self._told
        return {
            **self.key,
            "host": host,
            "mode": told["mode"],
            "status": told["status"],
            "parent": told["parent"],
            "started": told["created_ns"],
            "ended": told["sealed_ns"],
            "exchanges": told["exchanges"],
            "agent": _text(told["agent"]),
            "end": _text(told["end"]),
            "labels": list(self._labels),
            "events": self.events,
            "chain": self.chain,
            "event_groups": sorted(self.event_groups),
            "message_groups": sorted(self.message_groups),
            "record": self._record,
        }


class _Table:
    """The rows of one file; they are written a group at a time."""

    def __init__(self, folder: str, file: Any) -> None:
        schema = SCHEMAS[folder]
        self._file = HashedFile(file)
        self._schema = schema
        self._rows: dict[str, list[Any]] = {name: [] for name in schema.names}
        self._most = GROUP_ROWS[folder]
        self._count = 0
        self._bytes = 0
        self.group = 0
        """Number of the group that the next row goes into."""
        self._writer = _open_writer(folder, self._file)

    def add(self, row: dict[str, Any], size: int) -> None:
        for name, column in self._rows.items():
            column.append(row[name])
        self._count += 1
        self._bytes += size
        if self._bytes >= GROUP_BYTES or self._count >= self._most:
            self._flush()

    def finish(self, metadata: dict[str, str] | None = None) -> FileSum:
        """Write what is left; give the file's length and hash."""
        if self._count:
            self._flush()
        if metadata:
            self._writer.add_key_value_metadata(metadata)
        self._writer.close()
        return self._file.sum()

    def _flush(self) -> None:
        rows = pa.table(
            [pa.array(self._rows[field.name], field.type) for field in self._schema],
            schema=self._schema,
        )
        self._writer.write_table(rows, row_group_size=max(self._count, 1))
        for column in self._rows.values():
            column.clear()
        self._count = self._bytes = 0
        self.group += 1


def rewrite_steps(source: pq.ParquetFile, sums: dict[str, FileSum]) -> bytes:
    """Give a `steps` file of an earlier version in the current one; its rows and their groups stay as they are.

    sums: of the other files of the batch, by folder.
    """
    memory = io.BytesIO()
    with _open_writer(STEPS, memory) as writer:
        for group in range(source.num_row_groups):
            rows = source.read_row_group(group)
            writer.write_table(rows.cast(SCHEMAS[STEPS]), row_group_size=max(rows.num_rows, 1))
        writer.add_key_value_metadata({**describe_files(sums), SEAL_KEY: UNSEALED})
    return seal(memory.getvalue())


def _open_writer(folder: str, file: Any) -> pq.ParquetWriter:
    schema = SCHEMAS[folder]
    version = VERSION if folder == STEPS else FILE_VERSION
    return pq.ParquetWriter(
        file,
        schema.with_metadata({VERSION_KEY: str(version).encode()}),
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[*WORDS[folder], *(HEADER_WORDS if folder == "exchanges" else ())],
        write_statistics=[name for name in schema.names if name in _SORTED],
        write_batch_size=_BATCH,
        data_page_size=_UNSPLIT,
        max_rows_per_page=_UNSPLIT,
        write_page_checksum=True,
    )


def _step(run: "_Run", exchange: Exchange, file: str, group: int) -> dict[str, Any]:
    request, response, fault = exchange.request, exchange.response, exchange.fault
    return {
        **run.key,
        "seq": exchange.seq,
        "started": exchange.started_ns,
        "duration_us": exchange.end_us,
        "class": exchange.request_class.value,
        "verdict": exchange.verdict.value,
        "method": _text(request.method),
        "host": _text(request.authority),
        "path": _text(request.path),
        "status": response.status if response is not None else None,
        "fault": fault.kind.value if fault is not None else None,
        "request_bytes": request.body_bytes,
        "response_bytes": response.body_bytes if response is not None else None,
        "request_hash": _hash(request.body, request.spilled),
        "response_hash": _hash(response.body, response.spilled) if response is not None else None,
        "file": file,
        "row_group": group,
    }


def _hash(body: bytes, spilled: Spilled | None) -> bytes:
    return spilled.digest[:_HASH_BYTES] if spilled is not None else blake3(body).digest(_HASH_BYTES)


def _fields(headers: Headers) -> list[dict[str, bytes]]:
    return [{"name": name, "value": value} for name, value in headers]


def _text(text: str) -> str:
    """Give a text as people read it: one out of a JSON body may hold what is no UTF-8; `record` has it as it was."""
    return text.encode("utf-8", "replace").decode()
