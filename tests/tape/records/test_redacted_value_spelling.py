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


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("hex lower", "hex lower", True),
        ("hex lower", "hex", True),
        ("hex", "hex lower", True),
        ("hex lower", "hex upper", False),
        ("hex lower", "base64", False),
        ("base64 url", "base64", True),
        ("base64 url", "base64 standard", False),
        ("base64 url 1:2:30", "base64 1:2:30", True),
        ("base64 1:2:30", "base64 2:1:30", False),
    ],
)
def test_a_placeholder_may_not_show_the_alphabet(one: str, other: str, *, alike: bool) -> None:
    """An agent codes what it was given: its letters and signs are others than those of the value."""
    assert are_alike(Spelling(b"a", one), Spelling(b"a", other), same=True) is alike
