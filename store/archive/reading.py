"""Read a batch of an archive: its runs as the records that were written, or one step alone.

Nothing is trusted: `steps` fits its seal; the other files are those that it describes, with their lengths, of the schema;
pages fit their checksums, and `check_files` compares the hash of each whole file. The caller checks what the records say. A
fault is a StoreError that names the file.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...tape.exchange import Exchange, Headers, Message
from ...tape.folders.manifest import read_rows
from ...tape.records.codec import (
    Apart,
    BadRecord,
    decode_exchange,
    decode_message,
    encode_exchange,
    encode_message,
)
from ...tape.records.events import CHAIN_START, link_of
from ...tape.records.msgpack_limits import check_values
from ...tape.records.tape_file import Given, Kind, Record
from ..errors import StoreError, StoreTooNew
from . import FILE_VERSION, VERSION
from .schema import FILES_KEY, SCHEMAS, STEPS, VERSION_KEY
from .seal import FileSum, check_sum, fits_seal, parse_files, sum_file
from .storage import Place
from .writing import NUMBER_BYTES, PIECES

FOLDERS = tuple(SCHEMAS)
_READ = {
    folder: [field.name for field in schema if not pa.types.is_timestamp(field.type)]
    for folder, schema in SCHEMAS.items()
}
"""Times are for queries; what is read again stands in `record`."""
_MAX_GROUP_BYTES = 1 << 30
"""Most that a group may unpack to, with its largest row."""
_MAX_GROUP_ROWS = 1 << 20


class BatchReader:
    """The files of one batch, for reading. Use as a context manager."""

    def __init__(self, place: Place, name: str) -> None:
        """Open it.

        Raises: StoreError, where a file is missing, foreign or not as it was written; StoreTooNew.
        """
        self._place = place
        self.name = name
        self._files: dict[str, pq.ParquetFile] = {}
        self._pieces: dict[str, dict[bytes, list[int]]] = {}
        """Groups by the digests in them, of a table of pieces."""
        self._open = contextlib.ExitStack()
        try:
            with self._reading(STEPS):
                self._sums = self._read_sums()
            self._check_sizes()
        except BaseException:
            self._open.close()
            raise

    def __enter__(self) -> "BatchReader":
        return self

    def __exit__(self, *details: Any) -> None:
        self._open.__exit__(*details)

    def check_files(self) -> None:
        """Compare every byte of every file of the batch with the hash of its file. Reads all of them.

        Raises: StoreError.
        """
        for folder, expected in self._sums.items():
            with self._reading(folder), self._place.open(folder, self.name) as file:
                found = sum_file(file)
            check_sum(
                f"{folder}/{self.name}.parquet of the archive {self._place.name}", expected, found
            )

    def runs(self) -> list[dict[str, Any]]:
        """Give the rows of its runs, in order.

        Raises: StoreError.
        """
        return [row for group in self._groups("runs") for row in self._rows("runs", group)]

    def records(self, archive_id: str, given: Given | None = None) -> Iterator[Record]:
        """Give the records of a run as they were put: the run, its events, its folder, its exchanges, with what they need.

        given: which bodies and contents were given already; grows.
        Raises: StoreError.
        """
        run = self._run(archive_id)
        given = set() if given is None else given
        yield Record(Kind.RUN, run["record"])
        yield from self._events(run)
        yield from self._folder(archive_id, given)
        messages = self._messages(run)
        message = next(messages, None)
        for exchange in self._exchanges(archive_id):
            for spilled in exchange.spilled:
                for digest in spilled.files:
                    yield from self._in_pieces(Kind.BODY, digest, given)
            yield Record(Kind.EXCHANGE, encode_exchange(exchange))
            while message is not None and message[0] <= exchange.seq:
                yield Record(Kind.MESSAGE, message[1])
                message = next(messages, None)
        if message is not None:
            raise self._bad("messages", f"messages of exchange {message[0]}, which is not there")

    def find_step(self, archive_id: str, seq: int) -> Exchange | None:
        """Find one exchange of a run, by reading one group.

        Raises: StoreError.
        """
        for group in self._exchange_groups(archive_id, seq):
            for row in self._rows("exchanges", group, archive_id, seq):
                with self._reading("exchanges"):
                    return _exchange(row)
        return None

    def messages(self, archive_id: str, seq: int) -> Iterator[Message]:
        """Read the messages of one WebSocket of a run.

        Raises: StoreError.
        """
        for group in self._run(archive_id)["message_groups"]:
            for row in self._rows("messages", group, archive_id, seq):
                with self._reading("messages"):
                    found = decode_message(row["record"], _bytes(row["data"]))
                yield found

    def events(self, archive_id: str) -> Iterator[bytes]:
        """Give the events of a run, each with its chain hash.

        Raises: StoreError.
        """
        return (record.data for record in self._events(self._run(archive_id)))

    def body(self, digest: bytes) -> Iterator[bytes]:
        """Give the pieces of a body that is a file in a store.

        Raises: StoreError.
        """
        return self._read_pieces("bodies", digest)

    def _read_pieces(self, folder: str, digest: bytes) -> Iterator[bytes]:
        for group in self._piece_groups(folder).get(digest, ()):
            for row in self._rows(folder, group):
                if row["digest"] == digest:
                    yield row["data"]

    def _in_pieces(self, kind: Kind, digest: bytes, given: Given) -> Iterator[Record]:
        if (kind, digest) in given:
            return
        given.add((kind, digest))
        yield Record(kind, digest)
        for piece in self._read_pieces(PIECES[kind], digest):
            yield Record(Kind.PIECE, piece)

    def _folder(self, archive_id: str, given: Given) -> Iterator[Record]:
        contents = self._piece_groups("contents")
        with self._reading("folders"):
            rows = read_rows(self._folder_rows(archive_id))
            for number, (packed, files) in enumerate(rows):
                for entry in files.values():
                    if entry.digest in contents:
                        yield from self._in_pieces(Kind.CONTENT, entry.digest, given)
                yield Record(Kind.FOLDER, number.to_bytes(NUMBER_BYTES, "big") + packed)

    def _folder_rows(self, archive_id: str) -> Iterator[bytes]:
        count = 0
        for group in self._groups("folders"):
            with self._reading("folders"):
                named = self._group("folders", group, ["archive_id"])["archive_id"].unique()
            if archive_id not in named.to_pylist():
                continue
            for row in self._rows("folders", group, archive_id):
                if row["number"] != count:
                    found = f"{row['number']!r:.20}"
                    raise self._bad("folders", f"savepoint {found} where {count} belongs")
                count += 1
                yield _bytes(row["record"])

    def _run(self, archive_id: str) -> dict[str, Any]:
        for row in self.runs():
            if row["archive_id"] == archive_id:
                if any(value is None for name, value in row.items() if name != "parent"):
                    raise self._bad("runs", "a run without all that is known of one")
                return row
        raise self._bad("runs", f"it does not hold the run {archive_id!r:.60}")

    def _events(self, run: dict[str, Any]) -> Iterator[Record]:
        link, count = CHAIN_START, 0
        for group in run["event_groups"]:
            for row in self._rows("events", group, run["archive_id"]):
                count += 1
                if row["number"] != count or row["record"] is None:
                    raise self._bad(
                        "events",
                        f"event {row['number']!r:.20} of run {run['run']!r:.60} where {count} belongs",
                    )
                link = link_of(row["record"], link)
                yield Record(Kind.EVENT, link + row["record"])
        if (count, link) != (run["events"], run["chain"]):
            raise self._bad(
                "events",
                f"the {count} events of run {run['run']!r:.60} do not end in the hash they ended in",
            )

    def _exchanges(self, archive_id: str) -> Iterator[Exchange]:
        for group in self._exchange_groups(archive_id):
            for row in self._rows("exchanges", group, archive_id):
                with self._reading("exchanges"):
                    found = _exchange(row)
                yield found

    def _messages(self, run: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
        for group in run["message_groups"]:
            for row in self._rows("messages", group, run["archive_id"]):
                with self._reading("messages"):
                    seq, number = int(row["seq"]), int(row["number"])
                    key = seq.to_bytes(8, "big") + number.to_bytes(8, "big")
                    found = (
                        seq,
                        key + encode_message(decode_message(row["record"], _bytes(row["data"]))),
                    )
                yield found

    def _exchange_groups(self, archive_id: str, seq: int | None = None) -> list[int]:
        found: set[int] = set()
        with self._reading(STEPS):
            file = self._file(STEPS)
            for group in range(file.num_row_groups):
                rows = self._group(STEPS, group, ["archive_id", "seq", "row_group"]).to_pylist()
                found.update(
                    row["row_group"]
                    for row in rows
                    if row["archive_id"] == archive_id and seq in (None, row["seq"])
                )
        return sorted(found)

    def _piece_groups(self, folder: str) -> dict[bytes, list[int]]:
        found = self._pieces.get(folder)
        if found is None:
            found = self._pieces[folder] = {}
            for group in self._groups(folder):
                with self._reading(folder):
                    named = self._group(folder, group, ["digest"])["digest"].unique()
                for digest in named.to_pylist():
                    found.setdefault(digest, []).append(group)
        return found

    def _groups(self, folder: str) -> range:
        if folder not in self._sums:
            return range(0)
        with self._reading(folder):
            return range(self._file(folder).num_row_groups)

    def _rows(
        self, folder: str, group: int, archive_id: str | None = None, seq: int | None = None
    ) -> list[dict[str, Any]]:
        with self._reading(folder):
            rows = self._group(folder, group, _READ[folder])
            for column, value in (("archive_id", archive_id), ("seq", seq)):
                if value is not None:
                    rows = rows.filter(pc.equal(rows[column], value))
            found: list[dict[str, Any]] = rows.to_pylist()
            for row in found:
                check_values(row.get("record") or b"")
        return found

    def _group(self, folder: str, group: int, columns: list[str]) -> Any:
        file = self._file(folder)
        if not 0 <= group < file.num_row_groups:
            raise self._bad(folder, f"it has no group {group}")
        about = file.metadata.row_group(group)
        if about.total_byte_size > _MAX_GROUP_BYTES or about.num_rows > _MAX_GROUP_ROWS:
            raise self._bad(
                folder,
                f"a group of {about.num_rows} rows and {about.total_byte_size} bytes; at most"
                f" {_MAX_GROUP_ROWS} and {_MAX_GROUP_BYTES} are read",
            )
        return file.read_row_group(group, columns=columns)

    def _file(self, folder: str) -> pq.ParquetFile:
        found = self._files.get(folder)
        if found is None:
            stream = self._open.enter_context(self._place.open(folder, self.name))
            sealed = None
            if folder == STEPS:
                stream, sealed = self._check_seal(stream)
            found = pq.ParquetFile(stream, page_checksum_verification=True)
            self._check(folder, found)
            if folder == STEPS and not sealed:
                raise self._bad(folder, "it has no seal")
            self._files[folder] = found
        return found

    def _check_seal(self, stream: Any) -> tuple[Any, bool | None]:
        size = stream.size()
        if size > _MAX_GROUP_BYTES:
            raise self._bad(STEPS, f"it is {size} bytes long; at most {_MAX_GROUP_BYTES} are read")
        data = stream.read()
        sealed = fits_seal(data)
        if sealed is False:
            raise self._bad(STEPS, "it does not fit its seal: it was changed after it was written")
        return pa.BufferReader(data), sealed

    def _check(self, folder: str, file: pq.ParquetFile) -> None:
        told = (file.metadata.metadata or {}).get(VERSION_KEY, b"")
        if not told.isdigit() or not int(told):
            raise self._bad(folder, "no file of an archive: it does not say of which version it is")
        current = VERSION if folder == STEPS else FILE_VERSION
        if int(told) > current:
            raise StoreTooNew(
                f"{folder}/{self.name} of the archive {self._place.name} has format {int(told)};"
                f" this version reads up to {current}",
                "use a newer Playhead",
            )
        if int(told) < current:
            raise self._bad(
                folder, f"it has format {int(told)}; `playhead upgrade` brings it to {current}"
            )
        schema = file.schema_arrow
        for field in SCHEMAS[folder]:
            at = schema.get_field_index(field.name)
            if at < 0 or not schema.field(at).type.equals(field.type):
                was = schema.field(at).type if at >= 0 else "missing"
                raise self._bad(
                    folder, f"its column {field.name!r} is {was}; expected {field.type}"
                )

    def _read_sums(self) -> dict[str, FileSum]:
        return parse_files(self._file(STEPS).metadata.metadata)

    def _check_sizes(self) -> None:
        found = self._place.sizes(self.name, FOLDERS)
        for folder, expected in self._sums.items():
            if found.get(folder) != expected.size:
                was = f"{found[folder]} bytes long" if folder in found else "missing"
                raise self._bad(folder, f"it is {was}; expected {expected.size} bytes")

    def _bad(self, folder: str, text: str) -> StoreError:
        return StoreError(
            f"{folder}/{self.name}.parquet of the archive {self._place.name}: {text}",
            "put back a copy of it; nothing was taken from it",
        )

    @contextlib.contextmanager
    def _reading(self, folder: str) -> Iterator[None]:
        try:
            yield
        except (
            OSError,
            pa.ArrowException,
            BadRecord,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            OverflowError,
            RecursionError,
            MemoryError,
        ) as error:
            raise self._bad(folder, " ".join(str(error).split())[:300] or repr(error)) from error


def read_versions(path: Path) -> tuple[int, int]:
    """Read the version of a file of an archive; give it with the current version of such a file.

    Raises: BadRecord, where it is none; OSError.
    """
    try:
        metadata = pq.read_metadata(path).metadata or {}
    except pa.ArrowException as error:
        raise BadRecord(f"no Parquet file that can be read: {error}") from error
    told = metadata.get(VERSION_KEY, b"")
    if not told.isdigit() or not int(told):
        raise BadRecord("no file of an archive: it does not say of which version it is")
    return int(told), VERSION if FILES_KEY in metadata else FILE_VERSION


def _exchange(row: dict[str, Any]) -> Exchange:
    answered = row["response_headers"] is not None
    exchange = decode_exchange(
        row["record"],
        Apart(
            _headers(row["request_headers"]),
            _bytes(row["request_body"]),
            _headers(row["response_headers"]) if answered else None,
            _bytes(row["response_body"]) if answered else None,
        ),
    )
    if exchange.seq != row["seq"]:
        raise BadRecord(f"exchange {exchange.seq} in the place of {row['seq']}")
    return exchange


def _headers(fields: list[dict[str, Any]]) -> Headers:
    return tuple((_bytes(field["name"]), _bytes(field["value"])) for field in fields)


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise BadRecord(f"{value!r:.20} where bytes belong")
    return value
