"""`playhead reindex` as a person runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from playhead import PlayheadError
from playhead import __file__ as FACE
from playhead.store import Store
from playhead.tests.support.other_process import recording_elsewhere
from playhead.tests.support.recordings import ask, record_run

from .test_learn import run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A recording, and one that is not sealed."""
    folder = tmp_path / "store"
    with Store.open(folder) as opened:
        record_run(opened, "tape", [ask({"id": n}, {"n": n}) for n in (1, 2)])
    (tmp_path / "p.yaml").write_text(
        'ignore: [{match: "*://api.test", json: ["$.id"]}]\nstore: store'
    )
    return folder


def reindex(store: Path, *flags: str) -> Any:
    return json.loads(run("reindex", "tape", "-c", store.parent / "p.yaml", "--json", *flags))


def test_reindex_applies_the_rules_of_the_configuration(store: Path) -> None:
    """A second time there is nothing to change."""
    dry = reindex(store, "--dry-run")
    assert (dry["changed"], dry["counts"]["collisions"], dry["written"]) == (2, 1, False)
    assert reindex(store) == dry | {"written": True}
    again = reindex(store)
    assert (again["changed"], again["equal"], len(again["collisions"])) == (0, [], 1)


def test_reindex_tells_people_the_same(store: Path) -> None:
    """Lines for a terminal."""
    text = run("reindex", "tape", "-c", store.parent / "p.yaml")
    assert text.startswith("tape: 2 of 2 fingerprints change\nbecame equal (1):\n  seqs 1, 2\n")
    assert text.endswith("indexed anew\n")


def test_reindex_names_the_nearest_run(store: Path) -> None:
    """An error with a hint."""
    with pytest.raises(PlayheadError, match="unknown run 'tep'") as caught:
        run("reindex", "tep", "--store", store)
    assert caught.value.hint


def test_reindex_leaves_a_run_alone_that_is_being_recorded(store: Path) -> None:
    """It says so, and how to end it."""
    with (
        recording_elsewhere(store, "open"),
        pytest.raises(PlayheadError, match="run 'open' is still being recorded") as caught,
    ):
        run("reindex", "open", "--store", store)
    assert caught.value.hint


def test_a_mistyped_store_is_not_made(tmp_path: Path) -> None:
    """Nor opened for writing."""
    with pytest.raises(PlayheadError, match="no store at"):
        run("reindex", "tape", "--store", tmp_path / "stroe")
    assert list(tmp_path.iterdir()) == []


def test_the_json_of_reindex_is_documented(store: Path) -> None:
    """Each key stands in the command's section."""
    page = (Path(FACE).parent / "docs" / "commands-rules.md").read_text()
    section = page.partition("## `playhead reindex`\n")[2].partition("\n## ")[0]
    found = reindex(store)
    for key in {*found, *found["canonical"], *found["collisions"][0], *found["counts"]}:
        assert f"`{key}`" in section, key
