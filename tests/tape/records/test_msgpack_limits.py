"""What a value from elsewhere would take of memory is known before it is unpacked."""

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.records import msgpack_limits as bounded
from playhead.tape.records.codec import BadRecord
from playhead.tape.records.msgpack_limits import check_values

_LONG = st.sampled_from([0, 15, 16, 31, 32, 255, 256, 65_536])
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | _LONG.map(bytes)
    | _LONG.map(lambda size: "x" * size)
    | st.sampled_from([0, 1, 2, 3, 4, 8, 16, 17, 256, 65_536]).map(
        lambda size: msgpack.ExtType(5, bytes(size))
    )
)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.integers(0, 99), inner),
    max_leaves=40,
)


def _count(value: Any) -> int:
    if isinstance(value, list):
        return 1 + sum(map(_count, value))
    if isinstance(value, dict):
        return 1 + sum(1 + _count(one) for one in value.values())
    return 1


@given(VALUES)
def test_every_value_is_counted_once(value: Any) -> None:
    """So many are let pass, and one fewer is not."""
    packed, count = msgpack.packb(value), _count(value)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bounded, "MOST_VALUES", count)
        check_values(b"before" + packed, 6)
        patched.setattr(bounded, "MOST_VALUES", count - 1)
        with pytest.raises(BadRecord, match="so many are not unpacked"):
            check_values(packed)


@pytest.mark.parametrize(
    "packed",
    [
        b"\xdd\xff\xff\xff\xff",  # announced, and not there
        b"\xdf\x00\x40\x00\x00" + bytes(100),
        b"\xdd\x00\x50\x00\x00" + b"\x80" * 0x500000,  # a byte each here, 64 there
        b"\x91" * 0x500000,
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(packed: bytes) -> None:
    """By what it announces or by what it holds."""
    with pytest.raises(BadRecord, match="more than"):
        check_values(packed)


@pytest.mark.parametrize("packed", [b"", b"\xdc", b"\xdb\x00\x00\x01\x00", b"\xc1", b"\x93\x01"])
def test_what_ends_too_soon_is_left_to_who_unpacks_it(packed: bytes) -> None:
    """It takes no memory."""
    check_values(packed)
