"""A large value as what it copies from its base, and fresh bytes."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.store.deltas.is_continuation import Body
from playhead.store.deltas.record_codec import pack_delta, parse, restore
from playhead.store.deltas.splices import LEAST_BYTES, Splice, find_splice
from playhead.tape.records.codec import BadRecord

_TEXT = random.Random(7).randbytes(3 * LEAST_BYTES)


def spliced(value: bytes, at: int, base: bytes, base_at: int) -> bytes:
    """Take a value apart and join it again."""
    found = find_splice(Body(value, at), Body(base, base_at))
    assert found is not None
    splice, fresh = found
    assert splice.fits(len(fresh), len(base))
    assert splice.copied_size + len(fresh) == len(value)
    encoded = splice.encode()
    assert Splice.parse(encoded + b"more") == (splice, len(encoded))
    return splice.join(fresh, base)


@given(
    st.binary(max_size=400),
    st.binary(max_size=400),
    st.binary(max_size=900),
    st.integers(LEAST_BYTES, len(_TEXT)),
    st.integers(0, 2 * LEAST_BYTES),
    st.integers(0, 700),
)
def test_a_value_comes_back(
    head: bytes, base_head: bytes, new: bytes, size: int, where: int, gone: int
) -> None:
    """With another head, something new anywhere in its body, and something that is gone."""
    body = _TEXT[:size]
    at = where % size
    value = head + new[::-1] + body[:at] + new + body[at:]
    base = base_head + body[: max(0, at - gone)] + body[at:]
    assert spliced(value, len(head), base, len(base_head)) == value
    record = parse(pack_delta(Body(value, len(head)), 3, Body(base, len(base_head)), 1))
    assert record.splice is not None
    assert restore([record], base) == value


def test_a_step_takes_what_is_new_and_no_more() -> None:
    """What was said in the answer before is known from the head of the base."""
    said = random.Random(8).randbytes(600).hex().encode()
    base = Body(b"head" + said + _TEXT, 4 + len(said))
    value = Body(b"head" + b"answer" * 3 + _TEXT + said, 22)
    assert len(pack_delta(value, 1, base, 1)) < 150


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (_TEXT[: LEAST_BYTES - 1], _TEXT[: LEAST_BYTES - 1]),
        (_TEXT[::-1], _TEXT),
        (_TEXT[LEAST_BYTES:] + _TEXT[:LEAST_BYTES], _TEXT),
    ],
    ids=["small", "nothing in common", "another order"],
)
def test_what_zstd_does_better_is_left_to_it(value: bytes, base: bytes) -> None:
    """Small values, and those with parts in another order."""
    assert find_splice(Body(value, 0), Body(base, 0)) is None


def test_a_clock_in_front_costs_little() -> None:
    """And some that are changed further on."""
    base = b"now: 12:00" + _TEXT
    value = b"now: 12:01, or so" + b"!".join(
        _TEXT[at : at + 30_000] for at in range(0, len(_TEXT), 30_000)
    )
    assert len(pack_delta(Body(value, 0), 1, Body(base, 0), 1)) < 300


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("number", [0, 1, len(_TEXT), 2**32 - 1])
def test_copies_outside_the_base_are_a_bad_record(place: int, number: int) -> None:
    """Whatever a damaged record states, nothing else comes back."""
    value = Body(b"head" + _TEXT + b"new", 4)
    packed = bytearray(pack_delta(value, 1, Body(b"h" + _TEXT, 1), 1))
    at = 1 + 5 + 8 + 1 + 4 * place
    if struct.unpack_from(">I", packed, at)[0] == number:
        return
    struct.pack_into(">I", packed, at, number)
    with pytest.raises(BadRecord):
        restore([parse(bytes(packed))], b"h" + _TEXT)


def test_a_splice_that_ends_too_early_is_a_bad_record() -> None:
    """Cut anywhere."""
    packed = pack_delta(Body(b"head" + _TEXT + b"new", 4), 1, Body(b"h" + _TEXT, 1), 1)
    for size in range(len(packed)):
        with pytest.raises(BadRecord):
            restore([parse(packed[:size])], b"h" + _TEXT)
