"""Placeholders of short values: of one form each has its own."""

import string
from itertools import product

import pytest

from playhead.tape.redaction.placeholders.placeholder import Placeholders
from playhead.tape.redaction.placeholders.short_values import permute_short

_KEYS = (b"a test", b"another")


@pytest.mark.parametrize(
    "values",
    [
        [b"%d" % one for one in range(10)],
        [b"%03d" % one for one in range(1000)],
        [one.encode() for one in string.ascii_uppercase],
        ["".join(one).encode() for one in product(string.ascii_lowercase, "-", string.digits)],
    ],
    ids=["a digit", "three digits", "a capital", "letter and digit"],
)
def test_no_two_of_one_form_have_the_same(values: list[bytes]) -> None:
    """No character of one stays; with another key they are others."""
    made = [[Placeholders(key).of(one) for one in values] for key in _KEYS]
    for each in made:
        assert sorted(each) == sorted(values)
        for one, value in zip(each, values, strict=True):
            assert all(a != b for a, b in zip(one, value, strict=True) if bytes([b]).isalnum())
    assert made[0] != made[1]


@pytest.mark.parametrize("value", [b"", b"-", b"\xff", b"a-B9.z"])
def test_what_is_no_letter_or_digit_stays(value: bytes) -> None:
    """And every character keeps its class."""
    made = permute_short(value, b"k")
    assert len(made) == len(value)
    for old, new in zip(value.decode("latin-1"), made.decode("latin-1"), strict=True):
        assert (old.isdigit(), old.islower(), old.isupper()) == (
            new.isdigit(),
            new.islower(),
            new.isupper(),
        )
