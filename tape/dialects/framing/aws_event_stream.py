"""AWS event stream frames, `application/vnd.amazon.eventstream`: bytes to frames.

A frame is a prelude (its length, the length of its header fields, a checksum of both; 4 bytes each, big
endian), header fields, a payload and a checksum of all. The prelude's checksum keeps the reader in step; the
frame's own is not asked for, because a payload may hold a placeholder where a secret stood.

Source: Amazon Transcribe Developer Guide, "Event stream encoding"; the specification of Smithy,
"Amazon Event Stream".
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

MAX_FRAME = 24 * 1024 * 1024
"""Bytes of a frame; the format allows 16 MiB of payload and 128 KiB of header fields."""

_PRELUDE = struct.Struct(">III")
_CHECKSUM = 4
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header value by its type; types 6 and 7 (bytes and text) carry their length."""
_BYTES, _TEXT = 6, 7


class Frame(NamedTuple):
    """One frame."""

    headers: dict[str, str]
    """The fields that are text, as `:event-type`; others are passed over."""
    payload: bytes
    end: int
    """Where it ends in the body."""


def is_frame(body: bytes) -> bool:
    """Say whether a body begins with a frame's prelude."""
    return _frame_size(body, 0) is not None


def read_frames(body: bytes) -> Iterator[Frame]:
    """Give the frames that are whole, up to the first that is none.

    What follows the last one given is a frame that was cut, or is no frame at all.
    """
    at = 0
    while (sizes := _frame_size(body, at)) is not None:
        size, headers_size = sizes
        end = at + size
        if end > len(body):
            return
        start = at + _PRELUDE.size
        payload = body[start + headers_size : end - _CHECKSUM]
        yield Frame(_headers(body[start : start + headers_size]), payload, end)
        at = end


def _frame_size(body: bytes, at: int) -> tuple[int, int] | None:
    """Give the sizes of a frame and of its header fields, or None where no frame begins."""
    if len(body) - at < _PRELUDE.size:
        return None
    size, headers_size, checksum = _PRELUDE.unpack_from(body, at)
    if zlib.crc32(body[at : at + 8]) != checksum or size > MAX_FRAME:
        return None
    return (size, headers_size) if size >= _PRELUDE.size + headers_size + _CHECKSUM else None


def _headers(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name = data[at + 1 : name_end].decode("utf-8", "replace")
        kind = data[name_end] if name_end < len(data) else -1
        at = name_end + 1
        if kind in (_BYTES, _TEXT):
            size = int.from_bytes(data[at : at + 2])
            if kind == _TEXT:
                found[name] = data[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
        elif kind in _SIZES:
            at += _SIZES[kind]
        else:
            break  # a type that does not exist: where the next field begins is not known
    return found
