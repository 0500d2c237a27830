"""Large base64 in exchanges (screenshots, documents), extracted to blobs: each is stored once for a run, decoded.

Every step of a conversation repeats its screenshots, and base64 does not compress. A delta saves what the base contains,
but each keyframe would store the screenshots again, and reading one would unpack the megabytes of all bases below it. So
base64 is *extracted* from a value before the value is packed. A marker and the blob's name replace each stretch:

    0xC1  where the request's body begins (4 bytes)  the value, with each stretch as: _MARKER, 16 bytes of BLAKE3 of its text

A value without blobs begins with another byte. A value that already contains the marker is stored as it is. No byte occurs
twice in the marker, so blobs are put back in exactly one way. A stretch is extracted only if decoding and encoding it gives
the same text, and if the decoded bytes do not compress: the base64 of a text, or hex, is smaller as part of the value.
"""

import binascii
import string
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import lmdb
from blake3 import blake3

from ...tape.records.codec import BadRecord
from ..lmdb.database import Database, Row
from ..lmdb_keys import number_key
from . import record_codec

_EXTRACTED = b"\xc1"
"""No value of msgpack begins with it."""
_PLACE = struct.Struct(">I")
_HEAD_BYTES = len(_EXTRACTED) + _PLACE.size
_MARKER = b"\xc1\xfdblock\0"
_NAME_BYTES = 16
_LEAST_BYTES = 8 * 1024
"""Shorter stretches stay where they are."""
_STEP_BYTES = _LEAST_BYTES // 2
_WINDOW_BYTES = 64
"""Looked at once a step: a stretch that is long enough covers one."""
_SAMPLE_BYTES = 4096
_COMPRESSES = 0.9
"""A sample that compresses to less than this share is not worth a blob."""
_PREFIX_BYTES = 128
"""Longest `data:image/png;base64,` before a stretch."""
_LETTERS = f"{string.ascii_letters}{string.digits}+/".encode()
MOST_BYTES = 1 << 26
"""Nothing is extracted from larger values, and no value becomes larger when its blobs are put back."""
_KNOWN = 4096
"""Blocks that are remembered to be in the store."""


class Extracted(NamedTuple):
    """A value as it is packed, without its large base64."""

    value: bytes
    body_at: int
    """Where the request's body begins in it."""
    names: list[bytes]
    """Of the blobs that it needs."""
    rows: list[tuple[bytes, Row]]
    """Names and rows of those that may not be in the store yet."""


class Blobs:
    """The table `blocks`. Extracting and putting belong to the writer's thread; reads may come from any."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[tuple[int, bytes], bool] = OrderedDict()
        """By run and name: whether a blob is in the store, or stays in its value; used last at the end."""
        database.forgetting.append(self._known.clear)

    def forget(self, run: int) -> None:
        """Drop what is remembered of a run that has ended."""
        for key in [key for key in self._known if key[0] == run]:
            del self._known[key]

    def extract(self, run: int, value: bytes, body_at: int) -> Extracted:
        """Replace large base64 with the names of blobs.

        body_at: where the request's body begins.
        """
        spans = list(_find(value)) if len(value) <= MOST_BYTES else []
        if not spans or _MARKER in value:
            return Extracted(value, body_at, [], [])
        names: list[bytes] = []
        rows: dict[bytes, Row] = {}
        parts: list[bytes] = []
        at, body = 0, body_at
        for start, end in spans:
            text = value[start:end]
            name = _name(text)
            known = self._known.get((run, name))
            if known is not None:
                self._known.move_to_end((run, name))
            elif name not in rows:
                raw = _decode(text)
                known = raw is not None
                if raw is not None:
                    key = number_key(run) + name
                    rows[name] = self._database.row("blocks", key, record_codec.pack(raw))
                else:
                    self._remember(run, name, there=False)
            if known is False:
                continue
            parts += (value[at:start], _MARKER, name)
            names.append(name)
            if start < body_at:
                body -= len(text) - len(_MARKER) - _NAME_BYTES
            at = end
        if not names:
            return Extracted(value, body_at, [], [])
        body += _HEAD_BYTES
        extracted = b"".join((_EXTRACTED, _PLACE.pack(body), *parts, value[at:]))
        return Extracted(extracted, body, names, list(rows.items()))

    def put(self, transaction: lmdb.Transaction, run: int, extracted: Extracted) -> bool:
        """Put the blobs that a value needs; say whether all are there. Inside a write transaction."""
        for name, row in extracted.rows:
            self._database.put_row(transaction, row, overwrite=False)
            self._remember(run, name, there=True)
        # Another process may have taken out what this one remembers.
        missing = [name for name in extracted.names if not self._holds(transaction, run, name)]
        for name in missing:
            self._known.pop((run, name), None)
        return not missing

    def _remember(self, run: int, name: bytes, *, there: bool) -> None:
        self._known[run, name] = there
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    def _holds(self, transaction: lmdb.Transaction, run: int, name: bytes) -> bool:
        place = self._database.cipher.stored_key("blocks", number_key(run) + name)
        with self._database.cursor(transaction, "blocks") as cursor:
            return cursor.set_key(place)

    def restore(self, transaction: lmdb.Transaction, run: int, value: bytes) -> bytes:
        """Put the blobs of a value back.

        Raises: BadRecord.
        """
        if not has_blobs(value):
            return value
        found: dict[bytes, bytes] = {}

        def text(name: bytes) -> bytes:
            if name not in found:
                found[name] = self._read(transaction, run, name)
            return found[name]

        return _fill(value, text)

    def _read(self, transaction: lmdb.Transaction, run: int, name: bytes) -> bytes:
        data = self._database.read(transaction, "blocks", number_key(run) + name)
        if data is None:
            raise BadRecord(f"blob {name.hex()}, which it holds, is missing")
        try:
            text = binascii.b2a_base64(record_codec.unpack(data), newline=False)
        except BadRecord as error:
            raise BadRecord(f"blob {name.hex()}, which it holds, is damaged: {error}") from error
        if _name(text) != name:
            raise BadRecord(f"blob {name.hex()}, which it holds, is another")
        return text


def has_blobs(value: bytes) -> bool:
    """Say whether blobs were extracted from a value."""
    return value.startswith(_EXTRACTED)


def body_place(value: bytes) -> int:
    """Give where the request's body begins in a value with blobs.

    Raises: BadRecord.
    """
    if len(value) < _HEAD_BYTES:
        raise BadRecord(f"a value that ends after {len(value)} bytes")
    place: int = _PLACE.unpack_from(value, len(_EXTRACTED))[0]
    if not _HEAD_BYTES <= place <= len(value):
        raise BadRecord(f"a body at {place} in a value of {len(value)} bytes")
    return place


def _fill(value: bytes, text: Callable[[bytes], bytes]) -> bytes:
    parts: list[bytes] = []
    at, size = _HEAD_BYTES, len(value)
    while (place := value.find(_MARKER, at)) >= 0:
        start = place + len(_MARKER)
        name = value[start : start + _NAME_BYTES]
        if len(name) < _NAME_BYTES:
            raise BadRecord(f"a value that ends after {len(value)} bytes, in the name of a blob")
        parts += (value[at:place], text(name))
        size += len(parts[-1])
        if size > MOST_BYTES + len(value):
            raise BadRecord(f"blobs of more than {MOST_BYTES} bytes in one value")
        at = start + _NAME_BYTES
    return b"".join((*parts, value[at:]))


def _find(value: bytes) -> Iterator[tuple[int, int]]:
    """Find the long stretches that look like base64.

    A stretch is between quotes. Time is linear in the length of the value.
    """
    at, place = 0, _STEP_BYTES
    while place + _WINDOW_BYTES <= len(value):
        if value[place : place + _WINDOW_BYTES].translate(None, _LETTERS):
            place += _STEP_BYTES
            continue
        start = value.rfind(b'"', at, place) + 1
        end = value.find(b'"', place)
        at = end if end >= 0 else len(value)
        place = at + _STEP_BYTES
        if start == 0 or end < 0:
            continue
        start = max(start, value.rfind(b",", start, start + _PREFIX_BYTES) + 1)
        while value[end - 1 : end] == b"\\":
            end -= 1
        end -= (end - start) % 4
        if end - start >= _LEAST_BYTES:
            yield start, end


def _name(text: bytes) -> bytes:
    return blake3(text).digest(_NAME_BYTES)


def _decode(text: bytes) -> bytes | None:
    """Decode base64; None where it would not come back as it is, or takes less as it is."""
    middle = len(text) // 8 * 4
    try:
        sample = binascii.a2b_base64(
            text[middle - _SAMPLE_BYTES // 2 : middle + _SAMPLE_BYTES // 2]
        )
        if len(record_codec.pack(sample)) < _COMPRESSES * len(sample):
            return None
        raw = binascii.a2b_base64(text)
    except binascii.Error:
        return None
    return raw if binascii.b2a_base64(raw, newline=False) == text else None
