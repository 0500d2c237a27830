"""The tape file format: runs as one file that can be sent to somebody.

    14 bytes   PLAYHEAD-TAPE and a line feed
     2 bytes   version of the format, big endian
    the rest   one zstd stream of records

A record is its kind (1 byte), its length (4 bytes, big endian) and so many bytes. The last is `END`: 32 bytes of
BLAKE3 over all before it, so that a file which was cut short or changed is known for one. Rules of reading:

1. Nothing is trusted: a record longer than `MAX_RECORD_BYTES`, more than `limit_bytes` in all, a window larger than
   `WINDOW_LOG`, a kind that is not known, anything after the end: each is refused by name. So a small file that
   unpacks to a disk full of zeros is.
2. What a record holds is read by whoever knows it, as strictly.

One stream, not one a record: neighbouring steps of a conversation are nearly the same.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from blake3 import blake3

from .codec import BadRecord
from .zstd import (
    CompressionParameter,
    DecompressionParameter,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdError,
)

MAGIC = b"PLAYHEAD-TAPE\n"
VERSION = 1
HEAD_BYTES = len(MAGIC) + 2
"""Of what comes before the stream."""
MAX_RECORD_BYTES = 64 * 1024 * 1024
WINDOW_LOG = 25
"""32 MiB: several steps of the longest conversations, and what reading needs of memory."""
LIMIT_BYTES = 64 << 30
"""Most bytes that a file may unpack to, by default."""
_HEAD = struct.Struct(">BI")
_LEVEL = 9
_READ_BYTES = 1 << 20
_HASH_BYTES = 32


class Kind(IntEnum):
    """What a record holds."""

    RUN = 1
    """A map: the run that the records after it belong to."""
    EVENT = 2
    """Chain hash and event, as in the log; in order."""
    EXCHANGE = 3
    """An exchange; by seq."""
    MESSAGE = 4
    """Seq and number (8 bytes each, big endian), then a message of a WebSocket."""
    BODY = 5
    """32 bytes: the hash that names a spilled body, or the list of its pieces; its bytes follow in pieces."""
    PIECE = 6
    """The next bytes of the body or content before it."""
    END = 7
    """BLAKE3 over all records before it."""
    CONTENT = 8
    """32 bytes: the hash of a file in the working folder; its bytes follow in pieces."""
    FOLDER = 9
    """Number (8 bytes, big endian), then what the working folder held: at the start (0), or how it differs at a savepoint."""


class Record(NamedTuple):
    """One record of a tape file."""

    kind: Kind
    data: bytes


Given = set[tuple[Kind, bytes]]
"""Which bodies and contents were given already, by their hashes."""


class TapeTooNewRecord(BadRecord):
    """The file has a version that is not known yet."""


def hash_record(digest: blake3, record: Record) -> None:
    """Put a record into a hash over records."""
    digest.update(_HEAD.pack(record.kind, len(record.data)))
    digest.update(record.data)


class TapeWriter:
    """Packs records one after another."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Begin a file; `write` takes its bytes."""
        self._write = write
        self._packer = ZstdCompressor(
            options={
                CompressionParameter.compression_level: _LEVEL,
                CompressionParameter.window_log: WINDOW_LOG,
                CompressionParameter.enable_long_distance_matching: 1,
                CompressionParameter.checksum_flag: 1,
            }
        )
        self._hash = blake3()
        write(MAGIC + VERSION.to_bytes(2, "big"))

    def put(self, kind: Kind, data: bytes) -> None:
        """Pack a record.

        Raises: BadRecord, where it is too long to be read again.
        """
        if len(data) > MAX_RECORD_BYTES:
            raise BadRecord(f"a record of {len(data)} bytes; at most {MAX_RECORD_BYTES} are packed")
        for part in (_HEAD.pack(kind, len(data)), data):
            self._hash.update(part)
            self._pack(part)

    def close(self) -> None:
        """End the file."""
        digest = self._hash.digest()
        self._pack(_HEAD.pack(Kind.END, len(digest)) + digest)
        self._write(self._packer.flush())

    def _pack(self, data: bytes) -> None:
        if packed := self._packer.compress(data):
            self._write(packed)


def read_version(head: bytes) -> int:
    """Read the version of a file's format out of its first bytes; `HEAD_BYTES` are enough.

    Raises: BadRecord; TapeTooNewRecord.
    """
    if not head.startswith(MAGIC):
        raise BadRecord("it does not begin as a tape does")
    if len(head) < HEAD_BYTES:
        raise BadRecord("a tape that was cut short: it ends before its version")
    version = int.from_bytes(head[len(MAGIC) : HEAD_BYTES], "big")
    if version > VERSION:
        raise TapeTooNewRecord(f"a tape of format {version}; this version reads up to {VERSION}")
    if version < 1:
        raise BadRecord(f"a tape of format {version}; expected 1 to {VERSION}")
    return version


def read_records(data: Iterable[bytes], limit_bytes: int = LIMIT_BYTES) -> Iterator[Record]:
    """Read a file's records, the end not among them; it has been checked when the last was given.

    data: the file's bytes, in pieces of any size.
    limit_bytes: most that it may unpack to.
    Raises: BadRecord; TapeTooNewRecord.
    """
    pieces = iter(data)
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    version = read_version(head)
    if version != VERSION:
        raise BadRecord(
            f"a tape of format {version}; `playhead upgrade FILE` brings it to {VERSION}"
        )
    unpacked = _Unpacked(_chain(head[HEAD_BYTES:], pieces), limit_bytes)
    digest = blake3()
    while True:
        row = unpacked.take(_HEAD.size)
        number, size = _HEAD.unpack(row)
        if size > MAX_RECORD_BYTES:
            raise BadRecord(f"a record of {size} bytes; at most {MAX_RECORD_BYTES} are read")
        try:
            kind = Kind(number)
        except ValueError as error:
            raise BadRecord(
                f"a record of the kind {number}, which this version does not know"
            ) from error
        body = unpacked.take(size)
        if kind is Kind.END:
            if body != digest.digest():
                raise BadRecord("its records do not fit their hash: it was changed, or damaged")
            unpacked.finish()
            return
        digest.update(row)
        digest.update(body)
        yield Record(kind, body)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    # An empty piece would be taken for the end.
    yield from filter(None, (first,))
    yield from filter(None, rest)


class _Unpacked:
    """The unpacked stream, taken in exact sizes; no more of it is in memory than was asked for."""

    def __init__(self, packed: Iterator[bytes], limit_bytes: int) -> None:
        self._packed = packed
        self._unpacker = ZstdDecompressor(
            options={DecompressionParameter.window_log_max: WINDOW_LOG}
        )
        self._left = self._limit = limit_bytes

    def take(self, size: int) -> bytes:
        if size > self._left:
            raise BadRecord(
                f"it unpacks to more than {self._limit} bytes; a higher limit can be given"
            )
        self._left -= size
        parts = []
        while size:
            part = self._read(size)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def finish(self) -> None:
        """Raise BadRecord where anything is left."""
        while not self._unpacker.eof:  # the checksum of the stream
            if self._read(1, end=True):
                raise BadRecord("there are records after its end")
        if self._unpacker.unused_data or next(self._packed, b""):
            raise BadRecord("there is something after its end")

    def _read(self, size: int, *, end: bool = False) -> bytes:
        """Give some bytes, at most `size`; none only where `end` says that none may be left."""
        while True:
            if self._unpacker.eof:
                raise BadRecord("it was cut short: records are missing at its end")
            more = b""
            if self._unpacker.needs_input:
                more = next(self._packed, b"")
                if not more:
                    raise BadRecord("it was cut short: its packed bytes end too soon")
            try:
                found = self._unpacker.decompress(more, size)
            except (ZstdError, MemoryError) as error:
                raise BadRecord(f"its packed bytes are broken: {error}") from error
            if found or (end and self._unpacker.eof):
                return found
