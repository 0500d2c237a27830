"""Whether replaced values are those that were recorded, on a tape of this store and of another one."""

import pytest

from playhead.tape.matching.compare_redacted_values import Replaced, ReplacedValues


def told(**values: str) -> tuple[Replaced, ...]:
    """Make replaced values by their places."""
    return tuple(
        Replaced(place, value.encode(), value.partition(":")[0].encode() if ":" in value else b"")
        for place, value in values.items()
    )


def changed(
    table: ReplacedValues, old: tuple[Replaced, ...], new: tuple[Replaced, ...]
) -> list[str]:
    """Give the places that changed; remember the others."""
    found = [one.place for one in table.find_changed(old, new)]
    if not found:
        table.note(old, new)
    return found


def stands_for(old: bytes, new: bytes) -> bool:
    """As a header field showed."""
    return (old, new) == (b"header-old", b"header-new")


def test_in_one_store_another_value_is_another_request() -> None:
    """Unless a header field showed what it stands for."""
    table = ReplacedValues(True, stands_for)
    assert changed(table, told(a="x", b="y"), told(a="x", b="y")) == []
    assert changed(table, told(a="x", b="y"), told(a="x", b="z")) == ["b"]
    assert changed(table, told(a="header-old"), told(a="header-new")) == []


ROWS = [
    ("one for one", [("x", "1"), ("y", "2"), ("x", "1")], [[], [], []]),
    ("two for one", [("x", "1"), ("x", "2")], [[], ["a"]]),
    ("one for two", [("x", "1"), ("y", "1")], [[], ["a"]]),
    ("another service", [("sk-proj-:x", "xoxb-:1")], [["a"]]),
    ("a dummy of the service", [("sk-proj-:x", "sk-:1")], [[]]),
]


@pytest.mark.parametrize(
    ("pairs", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_of_another_store_values_are_renamed(
    pairs: list[tuple[str, str]], expected: list[list[str]]
) -> None:
    """Each stands for one, throughout."""
    table = ReplacedValues(False, stands_for)
    assert [changed(table, told(a=old), told(a=new)) for old, new in pairs] == expected


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (told(a="x", b="x"), told(a="1", b="2"), ["b"]),
        (told(a="x", b="y"), told(a="1", b="1"), ["b"]),
        (told(a="x", b="y"), told(a="1", b="2"), []),
    ],
)
def test_within_one_body_they_are_renamed_alike(
    old: tuple[Replaced, ...], new: tuple[Replaced, ...], place: list[str]
) -> None:
    """Before anything is known of them."""
    assert changed(ReplacedValues(False, stands_for), old, new) == place


def test_the_first_match_of_a_pair_rests_on_its_kind() -> None:
    """The next one on what is known by then."""
    table = ReplacedValues(False, stands_for)
    assert table.note(told(a="x"), told(a="1"))
    assert not table.note(told(b="x"), told(b="1"))
    assert not table.note(told(b="same"), told(b="same"))
