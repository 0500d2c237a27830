"""The bytes of a record on disk: a codec byte, then the value, compressed alone or against a delta base.

    0  8 bytes of BLAKE3 over the value, then the value as it is
    1  one zstd frame that states its size and ends with a checksum; read, no longer written
    2  8 bytes of BLAKE3 over the value, then a frame without a delta base
    3  depth, seq of the delta base in the same run (4 bytes), 8 bytes of BLAKE3 over the value, then a frame
    4  depth, name of the shared prefix that is the delta base (16 bytes), 8 bytes of BLAKE3, then a frame

The frames of 2 to 4 are stored without their magic number. A frame of 3 or 4 has the value of its delta base as prefix, so
it contains little more than what is new: the method of `zstd --patch-from`. `depth` counts the bases below a record, and a
base has a smaller depth than a delta against it. So a damaged file cannot lead a reader in a circle, or further than
MAX_DEPTH records.
"""

import struct
import sys
from typing import NamedTuple

import zstandard
from blake3 import blake3

from ...tape.records.codec import BadRecord

# It alone takes a prefix to write; `zstandard` reads in half the time.
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_RAW = b"\0"
_FRAME = b"\1"
_WHOLE = b"\2"
_DELTA_ON_EXCHANGE = b"\3"
_DELTA_ON_PREFIX = b"\4"
_SMALL_BYTES = 128
CHECKSUM_BYTES = 8
PREFIX_NAME_BYTES = 16
"""Of the name of a shared prefix."""
_SEQ = struct.Struct(">BI")
_PREFIX_HEAD = struct.Struct(f">B{PREFIX_NAME_BYTES}s")
_LEVEL = 3
_QUICK_LEVEL = 2
"""From _SHORT_BYTES to _LARGE_BYTES: a sixth of the time, for a fiftieth of the space."""
_LARGE_BYTES = 256 * 1024
"""From here on the tables of the level do not remember all of a base: an edit in its first part would be missed."""
_SHORT_BYTES = 64 * 1024
"""Below, matches of four bytes count: what is new in a short value is ids and numbers."""
_WINDOW_LOG_MOST = 27
_WINDOW_MOST = 1 << _WINDOW_LOG_MOST
_MAGIC = b"\x28\xb5\x2f\xfd"
_WRITING: dict[int, int] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.dict_id_flag: 0,
}
MAX_BYTES = 1 << 28
"""Largest value that is unpacked; a frame that states more is refused unread."""
MAX_DEPTH = 39
"""Largest depth: the number of bases that a reader unpacks before a record."""
MAX_SEQ = (1 << 32) - 1
"""Largest seq that can be named as a base."""

BaseKey = int | bytes
"""Key of a delta base: a seq of the run, or the name of a shared prefix."""


class Packed(NamedTuple):
    """A record, taken apart but not unpacked."""

    codec: bytes
    depth: int
    base: BaseKey | None
    check: bytes
    """BLAKE3 of the value, 8 bytes; empty in codec 1, whose frame has its own."""
    content: bytes | memoryview
    """The frame, or the value itself."""


def digest(value: bytes) -> bytes:
    """Give the checksum that is stored with a value."""
    return blake3(value).digest(CHECKSUM_BYTES)


def pack(value: bytes, check: bytes = b"") -> bytes:
    """Pack a value without a delta base. May be called from any thread.

    check: its digest, where that is known.
    """
    check = check or digest(value)
    if len(value) < _SMALL_BYTES:
        return b"".join((_RAW, check, value))
    return b"".join((_WHOLE, check, _compress(value, None)))


def pack_delta(
    value: bytes, base: BaseKey, base_value: bytes, depth: int, check: bytes = b""
) -> bytes:
    """Pack a value as a delta against a similar one. May be called from any thread.

    base: a seq of the same run, at most MAX_SEQ, or the name of a shared prefix.
    base_value: what the base unpacks to; 8 bytes at least, else zstd takes it for no prefix.
    depth: one more than that of the base.
    check: the value's digest, where that is known.
    """
    assert 1 <= depth <= MAX_DEPTH
    if isinstance(base, int):
        head = _DELTA_ON_EXCHANGE + _SEQ.pack(depth, base)
    else:
        head = _DELTA_ON_PREFIX + _PREFIX_HEAD.pack(depth, base)
    return b"".join((head, check or digest(value), _compress(value, base_value)))


def parse(data: bytes | memoryview) -> Packed:
    """Take a record apart.

    Raises: BadRecord.
    """
    codec = bytes(data[:1])
    base: BaseKey | None = None
    depth, at = 0, 1
    try:
        if codec == _DELTA_ON_EXCHANGE:
            depth, base = _SEQ.unpack_from(data, 1)
            at += _SEQ.size
        elif codec == _DELTA_ON_PREFIX:
            depth, base = _PREFIX_HEAD.unpack_from(data, 1)
            at += _PREFIX_HEAD.size
        elif codec == _FRAME:
            return Packed(codec, 0, None, b"", data[1:])
        elif codec not in (_RAW, _WHOLE):
            raise BadRecord(f"body codec {codec!r}; this version reads 0 to 4")
    except struct.error as error:
        raise BadRecord(f"a record that ends after {len(data)} bytes") from error
    check = bytes(data[at : at + CHECKSUM_BYTES])
    if len(check) < CHECKSUM_BYTES:
        raise BadRecord(f"a record that ends after {len(data)} bytes")
    if base is not None and not 1 <= depth <= MAX_DEPTH:
        raise BadRecord(f"a delta of depth {depth}; 1 to {MAX_DEPTH} are read")
    return Packed(codec, depth, base, check, data[at + CHECKSUM_BYTES :])


def unpack(data: bytes | memoryview) -> bytes:
    """Unpack a value without a delta base.

    Raises: BadRecord on an unknown codec, a broken frame, one that states more than MAX_BYTES, a value that does
    not fit its checksum, or a delta.
    """
    return restore([parse(data)])


def restore(chain: list[Packed], value: bytes | None = None) -> bytes:
    """Unpack records, each a delta against the next.

    value: of the last one's delta base; None if it has none.
    Raises: BadRecord.
    """
    for record in reversed(chain):
        value = _value(record, value)
    assert value is not None
    if chain[0].check and digest(value) != chain[0].check:
        raise BadRecord("a value that does not fit its checksum")
    return value


def check_base(record: Packed, base: Packed | None) -> Packed:
    """Give the record of a delta base if it is valid for a record.

    Raises: BadRecord, if it is missing, or if its depth is not smaller than the record's.
    """
    assert record.base is not None
    if base is None:
        raise BadRecord(f"its delta base, {describe_base(record.base)}, is missing")
    if base.depth >= record.depth:
        raise BadRecord(
            f"its delta base, {describe_base(record.base)}, has depth {base.depth}; expected less than {record.depth}"
        )
    return base


def describe_base(base: BaseKey) -> str:
    """Name a delta base in an error."""
    return f"exchange {base}" if isinstance(base, int) else f"shared prefix {base.hex()}"


def _value(record: Packed, base_value: bytes | None) -> bytes:
    if record.codec == _RAW:
        return bytes(record.content)
    if record.base is not None and base_value is None:
        raise BadRecord(
            f"a delta against {describe_base(record.base)}, where only a whole value may be"
        )
    frame = record.content if record.codec == _FRAME else b"".join((_MAGIC, record.content))
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= MAX_BYTES:
            raise BadRecord(f"a frame of {size} bytes; at most {MAX_BYTES} are read")
        prefix = None
        if base_value is not None:
            raw = zstandard.DICT_TYPE_RAWCONTENT
            prefix = zstandard.ZstdCompressionDict(base_value, dict_type=raw)
        # Unpacks straight into the value, which takes half of what a stream of blocks does.
        reader = zstandard.ZstdDecompressor(dict_data=prefix, max_window_size=_WINDOW_MOST)
        return bytes(reader.decompress(frame, allow_extra_data=False))
    except (zstandard.ZstdError, MemoryError) as error:
        raise BadRecord(f"broken frame: {error}") from error


def _compress(value: bytes, base_value: bytes | None) -> bytes:
    options = dict(_WRITING)
    prefix = None
    reach = len(value)
    if base_value is not None:
        prefix = zstd.ZstdDict(base_value, is_raw=True).as_prefix
        reach += len(base_value)
    if len(value) < _SHORT_BYTES:
        options[zstd.CompressionParameter.min_match] = 4
    elif len(value) <= _LARGE_BYTES:
        options[zstd.CompressionParameter.compression_level] = _QUICK_LEVEL
    else:
        options[zstd.CompressionParameter.enable_long_distance_matching] = 1
        options[zstd.CompressionParameter.window_log] = min(_WINDOW_LOG_MOST, reach.bit_length())
    return zstd.compress(value, options=options, zstd_dict=prefix)[len(_MAGIC) :]
