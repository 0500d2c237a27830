"""How a value lies on disk: back byte for byte, or refused."""

import contextlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from playhead.store import bodies
from playhead.tape.codec import BadRecord


@given(st.binary(max_size=300) | st.binary(min_size=1, max_size=40).map(lambda piece: piece * 100))
def test_a_value_comes_back(value: bytes) -> None:
    """Small or large, packed or not."""
    assert bodies.unpack(bodies.pack(value)) == value
    assert bodies.unpack(memoryview(bodies.pack(value))) == value


def test_what_is_large_is_packed_and_the_rest_is_plain() -> None:
    """A frame costs more than it saves below some hundred kilobytes."""
    assert len(bodies.pack(b"conversation " * 100_000)) < 2000
    assert bodies.pack(b"short").endswith(b"short")


@given(st.integers(1, 10**6), st.integers(1, 255))
def test_a_flipped_byte_never_comes_back_as_something_else(place: int, change: int) -> None:
    """What was said is what is served: a frame carries a checksum."""
    value = bytes(range(256)) * (8 if change % 2 else 2000)
    packed = bytearray(bodies.pack(value))
    packed[1 + place % (len(packed) - 1)] ^= change
    with contextlib.suppress(BadRecord):
        assert bodies.unpack(bytes(packed)) == value  # a bit that says nothing


@given(st.binary(max_size=200))
def test_garbage_is_a_bad_record(data: bytes) -> None:
    """Behind every codec byte."""
    for codec in (b"\0", b"\1", b"\2", b""):
        with contextlib.suppress(BadRecord):
            bodies.unpack(codec + data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "codec"),
        (b"\x07x", r"codec b'\\x07'"),
        (b"\1not a frame", "broken frame|a frame of"),
        # A frame that states a terabyte: refused unread.
        (b"\1\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little"), "at most"),
        # One that does not say.
        (b"\1" + zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 99), "a frame of"),
        (b"\1" + zstandard.ZstdCompressor().compress(b"x" * 999)[:-3], "broken frame"),
    ],
    ids=["empty", "codec", "no frame", "a terabyte", "no size", "cut"],
)  # fmt: skip
def test_what_cannot_be_unpacked_says_why(data: bytes, text: str) -> None:
    """And is a BadRecord, whatever it is."""
    with pytest.raises(BadRecord, match=text):
        bodies.unpack(data)
