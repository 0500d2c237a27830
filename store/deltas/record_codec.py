"""The bytes of a record on disk: a codec byte, then the value, compressed alone or against a delta base.

    0  8 bytes of BLAKE3 over the value, then the value as it is
    2  8 bytes of BLAKE3 over the value, then a frame without a delta base
    3  depth, seq of the delta base in the same run (4 bytes), 8 bytes of BLAKE3 over the value, then a frame
    4  depth, name of the shared prefix that is the delta base (16 bytes), 8 bytes of BLAKE3, then a frame
    5  as 3, but before the frame what is copied from the delta base (`splices.py`)
    6  as 4, with the same

The frames of 2 to 6 are stored without their magic number. A frame of 3 or 4 has the value of its delta base as prefix, so
it contains little more than what is new: the method of `zstd --patch-from`. One of 5 or 6 holds what is not copied, and has
parts of the base as prefix. `depth` counts the bases below a record, and a
base has a smaller depth than a delta against it. So a damaged file cannot lead a reader in a circle, or further than
MAX_DEPTH records.
"""

import struct
from typing import NamedTuple

from blake3 import blake3

from ...tape.records.codec import BadRecord
from ...tape.records.zstd import (
    CompressionParameter,
    DecompressionParameter,
    ZstdDecompressor,
    ZstdDict,
    ZstdError,
    compress,
    get_frame_info,
)
from .is_continuation import Body
from .splices import Splice, find_splice

_RAW = b"\0"
_WHOLE = b"\2"
_DELTA_ON_EXCHANGE = b"\3"
_DELTA_ON_PREFIX = b"\4"
_SPLICE_ON_EXCHANGE = b"\5"
_SPLICE_ON_PREFIX = b"\6"
_ON_EXCHANGE = (_DELTA_ON_EXCHANGE, _SPLICE_ON_EXCHANGE)
_ON_PREFIX = (_DELTA_ON_PREFIX, _SPLICE_ON_PREFIX)
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
_MAGIC = b"\x28\xb5\x2f\xfd"
_WRITING: dict[int, int] = {
    CompressionParameter.compression_level: _LEVEL,
    CompressionParameter.dict_id_flag: 0,
}
_READING: dict[int, int] = {DecompressionParameter.window_log_max: _WINDOW_LOG_MOST}
MAX_BYTES = 1 << 28
"""Largest value that is unpacked; a frame that states more is refused unread."""
MAX_DEPTH = 39
"""Largest depth: the number of bases that a reader unpacks before a record."""
MAX_SEQ = (1 << 32) - 1
"""Largest seq that can be named as a base."""

# glibc returns the memory of each large value of a chain to the system and gets it back page by page, until it has freed
# a block as large as this one. After that, reading 39 values of 0.6 MB takes 6.6 ms instead of 9.3 ms.
_ = bytes(4 << 20)

BaseKey = int | bytes
"""Key of a delta base: a seq of the run, or the name of a shared prefix."""


class Packed(NamedTuple):
    """A record, taken apart but not unpacked."""

    codec: bytes
    depth: int
    base: BaseKey | None
    check: bytes
    """BLAKE3 of the value, 8 bytes."""
    content: bytes | memoryview
    """The frame, or the value itself."""
    splice: Splice | None = None
    """What is copied from the base, where the frame has only what is not."""


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


def pack_delta(body: Body, base: BaseKey, base_body: Body, depth: int, check: bytes = b"") -> bytes:
    """Pack a value as a delta against a similar one. May be called from any thread.

    body: the value, and where its body begins.
    base: a seq of the same run, at most MAX_SEQ, or the name of a shared prefix.
    base_body: what the base unpacks to; 8 bytes at least, else zstd takes it for no prefix. And where its body begins.
    depth: one more than that of the base.
    check: the value's digest, where that is known.
    """
    assert 1 <= depth <= MAX_DEPTH
    value, base_value = body.value, base_body.value
    spliced = find_splice(body, base_body)
    if isinstance(base, int):
        head = _ON_EXCHANGE[spliced is not None] + _SEQ.pack(depth, base)
    else:
        head = _ON_PREFIX[spliced is not None] + _PREFIX_HEAD.pack(depth, base)
    check = check or digest(value)
    if spliced is None:
        return b"".join((head, check, _compress(value, base_value)))
    splice, fresh = spliced
    return b"".join((head, check, splice.encode(), _compress(fresh, splice.words(base_value))))


def parse(data: bytes | memoryview) -> Packed:
    """Take a record apart.

    Raises: BadRecord.
    """
    codec = bytes(data[:1])
    base: BaseKey | None = None
    depth, at = 0, 1
    try:
        if codec in _ON_EXCHANGE:
            depth, base = _SEQ.unpack_from(data, 1)
            at += _SEQ.size
        elif codec in _ON_PREFIX:
            depth, base = _PREFIX_HEAD.unpack_from(data, 1)
            at += _PREFIX_HEAD.size
        elif codec not in (_RAW, _WHOLE):
            raise BadRecord(f"body codec {codec!r}; this version reads 0 and 2 to 6")
        check = bytes(data[at : at + CHECKSUM_BYTES])
        at += CHECKSUM_BYTES
        splice = None
        if codec in (_SPLICE_ON_EXCHANGE, _SPLICE_ON_PREFIX):
            splice, size = Splice.parse(data[at:])
            at += size
    except struct.error as error:
        raise BadRecord(f"a record that ends after {len(data)} bytes") from error
    if len(check) < CHECKSUM_BYTES:
        raise BadRecord(f"a record that ends after {len(data)} bytes")
    if base is not None and not 1 <= depth <= MAX_DEPTH:
        raise BadRecord(f"a delta of depth {depth}; 1 to {MAX_DEPTH} are read")
    return Packed(codec, depth, base, check, data[at:], splice)


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
    if digest(value) != chain[0].check:
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
    if record.splice is None or base_value is None:
        return _decompress(record.content, base_value)
    splice = record.splice
    fresh = _decompress(record.content, splice.words(base_value))
    if not splice.fits(len(fresh), len(base_value)) or len(fresh) + splice.copied_size > MAX_BYTES:
        raise BadRecord("a delta that copies more than its base has")
    return splice.join(fresh, base_value)


def _decompress(content: bytes | memoryview, base_value: bytes | None) -> bytes:
    """Unpack a frame.

    Raises: BadRecord.
    """
    frame = b"".join((_MAGIC, content))
    try:
        size = get_frame_info(frame).decompressed_size
        if size is None:
            raise BadRecord("a frame that does not state its size")
        if size > MAX_BYTES:
            raise BadRecord(f"a frame of {size} bytes; at most {MAX_BYTES} are read")
        prefix = None
        if base_value is not None:
            prefix = ZstdDict(base_value, is_raw=True).as_prefix
        reader = ZstdDecompressor(zstd_dict=prefix, options=_READING)
        # A frame that holds more than it states is cut here, and has not ended.
        value = reader.decompress(frame, size)
    except (ZstdError, ValueError, MemoryError) as error:
        raise BadRecord(f"broken frame: {error}") from error
    if len(value) != size or not reader.eof or reader.unused_data:
        raise BadRecord("broken frame: it does not end where it should")
    return value


def _compress(value: bytes, base_value: bytes | None) -> bytes:
    options = dict(_WRITING)
    prefix = None
    reach = len(value)
    if base_value is not None:
        prefix = ZstdDict(base_value, is_raw=True).as_prefix
        reach += len(base_value)
    if len(value) < _SHORT_BYTES:
        options[CompressionParameter.min_match] = 4
    elif len(value) <= _LARGE_BYTES:
        options[CompressionParameter.compression_level] = _QUICK_LEVEL
    else:
        options[CompressionParameter.enable_long_distance_matching] = 1
        options[CompressionParameter.window_log] = min(_WINDOW_LOG_MOST, reach.bit_length())
    return compress(value, options=options, zstd_dict=prefix)[len(_MAGIC) :]
