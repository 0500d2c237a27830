"""How a value lies on disk: back byte for byte, or refused."""

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.store.deltas import record_codec
from playhead.store.deltas.is_continuation import Body
from playhead.store.deltas.record_codec import MAX_SEQ, parse, restore
from playhead.tape.records.codec import BadRecord
from playhead.tape.records.zstd import ZstdCompressor

_streamed = ZstdCompressor()
_STREAMED = _streamed.compress(b"x" * 99) + _streamed.flush()
"""A frame whose writer did not know its size."""


@given(st.binary(max_size=300) | st.binary(min_size=1, max_size=40).map(lambda piece: piece * 100))
def test_a_value_comes_back(value: bytes) -> None:
    """Small or large, packed or not."""
    assert record_codec.unpack(record_codec.pack(value)) == value
    assert record_codec.unpack(memoryview(record_codec.pack(value))) == value


@given(st.binary(max_size=3000), st.binary(min_size=8, max_size=3000), st.integers(0, 3000))
def test_a_value_comes_back_with_the_one_it_stands_on(new: bytes, base: bytes, at: int) -> None:
    """A seq of its run, or a shared prefix."""
    value = base[:at] + new + base[at:]
    for name in (7, MAX_SEQ, b"opening's name..", 0):
        record = parse(record_codec.pack_delta(Body(value, 0), name, Body(base, 0), 3))
        assert (record.base, record.depth) == (name, 3)
        assert restore([record], base) == value
        with pytest.raises(BadRecord, match="only a whole value"):
            restore([record])


def test_a_value_takes_little_on_a_similar_one() -> None:
    """And a short one is kept as it is."""
    base = random.Random(1).randbytes(300_000)
    for size in (1000, 60_000, 300_000):
        value = base[: size // 2] + b"something new" + base[size // 2 : size]
        assert len(record_codec.pack_delta(Body(value, 0), 1, Body(base[:size], 0), 1)) < 200
    assert len(record_codec.pack(b"conversation " * 100_000)) < 300
    assert record_codec.pack(b"short").endswith(b"short")


def test_an_edit_in_the_first_part_of_a_large_value_is_not_missed() -> None:
    """Beyond what the tables of the level remember of a base."""
    base = random.Random(2).randbytes(5_000_000)
    value = b"-".join(base[at : at + 10_000] for at in range(0, len(base), 10_000))
    assert len(record_codec.pack_delta(Body(value, 0), 1, Body(base, 0), 1)) < len(base) // 100


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_never_comes_back_as_something_else(place: int, change: int) -> None:
    """What was said is what is served: there is a checksum beside each value."""
    base = bytes(range(256)) * (8 if change % 2 else 2000)
    value = base[:100] + b"new" + base[100:]
    for packed in (
        record_codec.pack(b"short"),
        record_codec.pack(value),
        record_codec.pack_delta(Body(value, 0), 1, Body(base, 0), 2),
    ):
        flipped = bytearray(packed)
        flipped[place % len(packed)] ^= change
        with contextlib.suppress(BadRecord):
            record = parse(bytes(flipped))
            found = restore([record], base if record.base is not None else None)
            assert found in (value, b"short")  # a bit that says nothing


@given(st.binary(max_size=200))
def test_garbage_is_a_bad_record(data: bytes) -> None:
    """Behind every codec byte."""
    for codec in (b"\0", b"\1", b"\2", b"\3", b"\4", b""):
        with contextlib.suppress(BadRecord):
            restore([parse(codec + data)], b"what it stands on")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "codec"),
        (b"\x07x", r"codec b'\\x07'"),
        (b"\1" + record_codec.pack(b"x" * 999)[1:], r"codec b'\\x01'"),
        (b"\2" + bytes(8) + b"not a frame", "broken frame"),
        # A frame that states a terabyte: refused unread.
        (b"\2" + bytes(8) + b"\xe0" + (1 << 40).to_bytes(8, "little"), "at most"),
        # One that states no size, and one that holds more than it states.
        (b"\2" + bytes(8) + _STREAMED[4:], "does not state its size"),
        (b"\2" + bytes(8) + b"\x20\x10" + _STREAMED[6:], "broken frame"),
        (record_codec.pack(b"x" * 999)[:-3], "broken frame"),
        (record_codec.pack(b"x" * 999) + b"x", "broken frame"),
        (record_codec.pack(b"x" * 999)[:5], "ends after 5 bytes"),
        (b"\3\1\0", "ends after 3 bytes"),
        (b"\3\0" + bytes(30), "depth 0"),
        (b"\3\x28" + bytes(30), "depth 40"),
        (b"\3\1" + bytes(30), "against exchange 0"),
        (b"\4\1" + bytes(40), "against shared prefix 0000"),
    ],
    ids=[
        *("empty", "codec", "never written", "no frame", "a terabyte", "no size", "a lie"),
        *("cut", "more", "no checksum", "no base", "no depth", "depth", "on a seq", "on a prefix"),
    ],
)  # fmt: skip
def test_what_cannot_be_unpacked_says_why(data: bytes, text: str) -> None:
    """And is a BadRecord, whatever it is."""
    with pytest.raises(BadRecord, match=text):
        record_codec.unpack(data)
