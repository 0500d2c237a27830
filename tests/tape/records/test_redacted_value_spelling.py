"""How a replaced value was written, and what of it can be compared."""

import pytest

from playhead.tape.records.redacted_value_spelling import Spelling, are_alike

SIGNS = [
    b"%",
    b"%%",
    b"%/",
    b"%a",
    b"%zz",
    b"%2",
    b"%25",
    b"%2525",
    b"%25%",
    b"\\u12",
    b"\\",
    b"\\\\",
]


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("other", SIGNS)
def test_any_signs_can_be_compared(sign: bytes, other: bytes) -> None:
    """A token may have a percent sign that escapes nothing, at its end, too."""
    for behind in (b"", b"def"):
        one, two = Spelling(b"abc" + sign + behind), Spelling(b"xyz" + other + behind)
        assert are_alike(one, two, same=False) is are_alike(two, one, same=False)
        assert are_alike(one, one, same=False)


def test_a_sign_that_is_written_in_another_way_is_told() -> None:
    """A percent sign alone and an encoded one are two ways to write it."""
    assert not are_alike(Spelling(b"abc%25"), Spelling(b"xyz%"), same=False)
    assert are_alike(Spelling(b"abc%,"), Spelling(b"xyz%,"), same=False)
