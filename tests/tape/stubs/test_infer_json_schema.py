"""The schema of what was seen: everything seen is valid, and hardly anything else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.stubs.infer_json_schema import infer, is_valid

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)  # fmt: skip


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_what_was_seen_is_valid(seen: list[Any]) -> None:
    """Each value from which a schema was inferred."""
    schema = infer(seen)
    assert all(is_valid(value, schema) for value in seen)


@given(st.lists(VALUES, min_size=1, max_size=4), VALUES)
def test_it_is_json_schema(seen: list[Any], other: Any) -> None:
    """Another reader of JSON Schema says the same of what was seen and of what was not."""
    import jsonschema

    schema = infer(seen)
    reader = jsonschema.Draft202012Validator(schema)
    for value in (*seen, other):
        assert reader.is_valid(value) is is_valid(value, schema)


@pytest.mark.parametrize(
    ("seen", "value", "valid"),
    [
        ([{"id": 1}], {"id": 2}, True),
        ([{"id": 1}], {"id": "2"}, False),
        ([{"id": 1}], {}, False),
        ([{"id": 1}], {"id": 1, "more": 1}, False),
        # What one of several did not have is not required.
        ([{"id": 1}, {"id": 2, "note": "x"}], {"id": 3}, True),
        ([{"id": 1}, {"id": 2, "note": "x"}], {"id": 3, "note": 4}, False),
        # A whole number is a number.
        ([1, 1.5], 2, True),
        ([1], 1.5, False),
        # Of an empty list nothing is known.
        ([[]], [1, "x"], True),
        ([[1]], ["x"], False),
        ([None, "x"], None, True),
        ([True], 1, False),
    ],
)
def test_what_a_schema_says(seen: list[Any], value: Any, valid: bool) -> None:
    """Types, members, and nothing of values."""
    assert is_valid(value, infer(seen)) is valid


def test_a_schema_is_bounded() -> None:
    """Deep and large values are looked at so far."""
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    assert is_valid(deep, infer([deep]))
    wide = [{"n": number} for number in range(30_000)]
    assert is_valid(wide, infer([wide]))
