"""Describe a large value by the parts that it copies from its delta base, and by what is fresh between them.

A step of a conversation repeats a megabyte and adds a kilobyte. zstd finds that out by reading all of it; to compare two bodies
from both ends takes a fifteenth of that. Where they part, a sample of what follows is looked for near by, so that a clock in
the system prompt costs no more. What is fresh, the head before the body among it, is compressed with parts of the base where
the same words probably were: its own head, which holds the answer that is now repeated, and where the bodies part.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from .is_continuation import SAMPLE_BYTES, Body, common_end, common_start

LEAST_BYTES = 64 * 1024
"""Values below are quicker to compress whole."""
_MOST_FRESH = 12 * 1024
"""Fresh bytes: of more, zstd finds what is the same elsewhere."""
_MOST_COPIES = 12
_LEAST_COPY = 64
_DISTANCES = (32, 128, 512, 2048, 8192, 32768)
"""Bytes behind where two bodies part at which a sample is taken."""
_NEAR_BYTES = 64 * 1024
_HEAD_BYTES = 64 * 1024
_AROUND_BYTES = 48 * 1024
"""Of the base on either side of where the bodies part."""
_MOST_WORDS_BYTES = 256 * 1024
_COPY = struct.Struct(">III")


class Copy(NamedTuple):
    """A part of a value that is in its base."""

    fresh: int
    """Bytes of the value between the copy before and this one."""
    at: int
    """Where it is in the base."""
    size: int


class Splice(NamedTuple):
    """The parts of a value that are copied from its base, in their order; all else is fresh."""

    copies: tuple[Copy, ...]

    def encode(self) -> bytes:
        """Give the bytes that `parse` reads."""
        return bytes([len(self.copies)]) + b"".join(_COPY.pack(*copy) for copy in self.copies)

    @classmethod
    def parse(cls, data: bytes | memoryview) -> tuple["Splice", int]:
        """Read what `encode` gave; gives also how many bytes that were.

        Raises: struct.error where the data ends too early.
        """
        (count,) = struct.unpack_from("B", data)
        end = 1 + count * _COPY.size
        if len(data) < end:
            raise struct.error(f"{count} copies in {len(data)} bytes")
        return cls(tuple(map(Copy._make, _COPY.iter_unpack(data[1:end])))), end

    @property
    def copied_size(self) -> int:
        """How many bytes of the value are copied."""
        return sum(copy.size for copy in self.copies)

    def fits(self, fresh_size: int, base_size: int) -> bool:
        """Say whether all that is copied, and all that is between, is there."""
        return sum(copy.fresh for copy in self.copies) <= fresh_size and all(
            copy.at + copy.size <= base_size for copy in self.copies
        )

    def join(self, fresh: bytes, base: bytes) -> bytes:
        """Give the value again, of the fresh bytes and a base that `fits`."""
        rest, there = memoryview(fresh), memoryview(base)
        parts = []
        for copy in self.copies:
            parts += [rest[: copy.fresh], there[copy.at : copy.at + copy.size]]
            rest = rest[copy.fresh :]
        return b"".join((*parts, rest))

    def words(self, base: bytes) -> bytes:
        """Give the parts of the base that fresh bytes are compressed with."""
        first = self.copies[0].at if self.copies else 0
        parts = [base[: min(first, _HEAD_BYTES)]]
        end = len(parts[0])
        for copy in self.copies:
            at = copy.at + copy.size
            parts.append(base[max(end, at - _AROUND_BYTES) : at + _AROUND_BYTES])
            end = max(end, at + _AROUND_BYTES)
        return b"".join(parts)[-_MOST_WORDS_BYTES:]


def find_splice(body: Body, base: Body) -> tuple[Splice, bytes] | None:
    """Find how a value with a body at its end is made of a base, and its fresh bytes; None where too much is fresh."""
    value = body.value
    if len(value) < LEAST_BYTES:
        return None
    copies: list[Copy] = []
    fresh: list[bytes] = []
    fresh_size = end = 0
    for at, there, size in _in_common(body, base):
        copies.append(Copy(at - end, there, size))
        fresh.append(value[end:at])
        fresh_size += at - end
        end = at + size
    fresh.append(value[end:])
    if not copies or fresh_size + len(value) - end > _MOST_FRESH:
        return None
    return Splice(tuple(copies)), b"".join(fresh)


def _in_common(body: Body, base: Body) -> Iterator[tuple[int, int, int]]:
    """Yield what two bodies have in common, as far as it is in one order: its place in either value, and its size."""
    value, other = body.value, base.value
    at, there = body.at, base.at
    most = min(body.size, base.size)
    size = common_start(base, body, most)
    if size:
        yield at, there, size
        at, there = at + size, there + size
    tail = common_end(other, value, most - size)
    until, until_there = len(value) - tail, len(other) - tail
    for _ in range(_MOST_COPIES - 2):
        found = _meet_again(value, at, until, other, there, until_there)
        if found is None:
            break
        at, there = found
        size = common_start(
            Body(other, there), Body(value, at), min(until - at, until_there - there)
        )
        if size >= _LEAST_COPY:
            yield at, there, size
        at, there = at + size, there + size
    if tail:
        yield until, until_there, tail


def _meet_again(
    value: bytes, at: int, until: int, other: bytes, there: int, until_there: int
) -> tuple[int, int] | None:
    """Find where two values go on alike after they parted; None where they do not, near by."""
    for distance in _DISTANCES:
        begin = at + distance
        if begin + SAMPLE_BYTES > until:
            return None
        near = min(until_there, there + distance + _NEAR_BYTES)
        found = other.find(value[begin : begin + SAMPLE_BYTES], there, near)
        if found >= 0:
            most = min(distance, found - there)
            back = common_end(other[found - most : found], value[begin - most : begin], most)
            return begin - back, found - back
    return None
