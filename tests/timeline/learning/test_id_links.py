"""Which tokens of a proposed profile are ids that tie requests together."""

import pytest

from playhead.timeline.learning.id_links import tie_requests

_HEX = "([0-9a-f]{16})"
A, B, C, D = (letter * 16 for letter in "abcd")


@pytest.mark.parametrize(
    ("regex", "requests", "linked"),
    [
        (f"^{_HEX}$", [[(A, C)], [(A, C)]], True),
        (f"^{_HEX}$", [[(A, C), (A, C)]], True),
        (f"^{_HEX}$", [[(A, C)], [(B, D)]], False),  # new in each request
        (f"^{_HEX}$", [[(A, C)], [(A, D)]], False),  # another one in one recording alone
        (f"^{_HEX}$", [[(A, C)], [(B, C)], [(A, C)]], False),
        (f"id={_HEX};", [[(f"id={A}; n", f"id={C}; m")]] * 2, True),
        ("read_([0-9]{13})_", [[("read_1732464000000_0", "read_1732464999999_0")]] * 2, True),
        ("^([0-9]{13})$", [[("1732464000000", "1732464999999")]] * 2, False),  # says when
        ("took ([0-9]+) ms", [[("it took 7 ms", "it took 8 ms")]] * 2, False),
        ("^never(x)$", [[(A, C)]] * 2, False),
    ],
)
def test_ids_that_come_again_are_linked(
    regex: str, requests: list[list[tuple[str, str]]], linked: bool
) -> None:
    """If one stands for one; what says when or how long is no id."""
    assert tie_requests(regex, requests) is linked
