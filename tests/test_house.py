"""The figures of `just house` only get better."""

from pathlib import Path

import pytest

from playhead.tests.support.house import FIGURES, INSIDE, is_mirrored, limits
from playhead.tests.support.import_graph import ROOT, Arrow, climbs, cycles


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_gets_worse(name: str) -> None:
    """Each figure is at most its limit in tests/house.json; a lower one lowers the limit."""
    places = FIGURES[name]()
    assert len(places) == limits()[name], places


@pytest.mark.parametrize("folder", INSIDE)
def test_the_order_inside_a_folder_names_every_member(folder: str) -> None:
    """A new module or subpackage takes its place in the order before it is imported."""
    path = ROOT.joinpath(*folder.split("."))
    members = {
        one.stem
        for one in path.iterdir()
        if (one.suffix == ".py" and one.stem != "__init__") or (one / "__init__.py").exists()
    }
    assert set(INSIDE[folder].split()) == members


def test_a_folder_with_subpackages_has_an_order() -> None:
    """Without one its imports could run in any direction."""
    nested = {
        ".".join(path.parent.parent.relative_to(ROOT).parts)
        for part in ("config", "tape", "store", "timeline", "addons", "proxy", "web")
        for path in (ROOT / part).rglob("*/__init__.py")
        if "python" not in path.parts
    }
    flat = {"proxy.commands", "proxy.run"}
    assert nested - flat <= set(INSIDE)


@pytest.mark.parametrize(
    ("test", "mirrored"),
    [
        ("tests/store/test_keys.py", True),
        ("tests/store/test_keys_of_runs.py", True),
        ("tests/store/test_tables.py", True),
        ("tests/store/tables/test_keys.py", False),
        ("tests/store/test_key.py", False),
        ("tests/tape/test_keys.py", False),
    ],
)
def test_a_test_is_named_after_what_it_tests(test: str, mirrored: bool) -> None:
    """A module or a folder at the same place, and perhaps one aspect of it."""
    there = {"store/keys.py", "store/tables"}
    assert is_mirrored(Path(test), lambda path: path.as_posix() in there) == mirrored


def arrow(source: str, target: str) -> Arrow:
    """Give an import."""
    return Arrow(source, target, 1, False)


def test_an_import_against_the_order_is_found() -> None:
    """The check can fail."""
    found = [arrow("store.keys", "store.tables.runs"), arrow("store.tables.runs", "store.keys")]
    assert climbs(found, "store", ("keys", "tables")) == ["store.keys:1 imports store.tables.runs"]


def test_a_circle_is_found() -> None:
    """Also one of three, and none where the imports only share a target."""
    assert cycles([arrow("a", "b"), arrow("b", "c"), arrow("c", "a"), arrow("d", "a")]) == [
        ["a", "b", "c"]
    ]
    assert cycles([arrow("a", "c"), arrow("b", "c"), arrow("a", "b")]) == []
