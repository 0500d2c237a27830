"""A number and its noun."""

import pytest

from playhead.tape.counted import counted


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 answers"), (1, "1 answer"), (2, "2 answers"), (1000, "1000 answers")],
)
def test_one_is_alone(number: int, shown: str) -> None:
    """The plural is for every number but one."""
    assert counted(number, "answer") == shown


def test_thousands_may_be_grouped() -> None:
    """Where numbers are large."""
    assert counted(12345, "call", grouped=True) == "12,345 calls"


def test_plural_of_its_own() -> None:
    """A noun may have another plural."""
    assert counted(2, "process", "es") == "2 processes"
