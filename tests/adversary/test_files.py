"""What Playhead writes is for its owner alone, and is written through no link.

The cases, each with its reason, are in files.yaml. They were written from the documents before there was code for them; one
that is taken out is listed there with its reason.
"""

import fnmatch
import os
from typing import Any

import pytest

from .files import CASES
from .place import told_by

pytestmark = pytest.mark.timeout(1000)
"""Of a module's first test, which waits for all that is tried."""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What came of every case, with a mask of nothing: no mode is what a mask made of it."""
    found: dict[str, Any] = told_by("files")
    return found


def test_everything_can_be_done(told: dict[str, Any]) -> None:
    """What writes the files works, so that it is they which are looked at."""
    assert told["all"]["failed"] == []
    assert {what: done["err"] for what, done in told["clean"].items() if done["code"]} == {}


@pytest.mark.parametrize("case", CASES["written"], ids=lambda case: case["id"])
def test_what_is_written_is_for_its_owner_alone(told: dict[str, Any], case: dict[str, Any]) -> None:
    """Mode 0600; public certificates aside."""
    found = {
        path: said
        for path, said in told["all"]["found"].items()
        if fnmatch.fnmatchcase(path, case["path"]) and not said["folder"]
    }
    assert found or case.get("may_be_missing"), case["path"]
    modes = {path: oct(said["mode"]) for path, said in found.items() if not said["certificates"]}
    assert {path: mode for path, mode in modes.items() if mode != "0o600"} == {}


def test_nothing_else_is_open(told: dict[str, Any]) -> None:
    """No file that Playhead wrote can be read by others, but certificates; the configuration is ours."""
    open_to_others = {
        path: oct(said["mode"])
        for path, said in told["all"]["found"].items()
        if not said["folder"] and not said["certificates"] and said["mode"] & 0o177
    }
    open_to_others.pop("playhead.yaml")
    assert open_to_others == {}


def test_folders_are_closed(told: dict[str, Any]) -> None:
    """Who may write to a folder may put another file there, whatever the modes of the files are."""
    folders = {path: said["mode"] for path, said in told["all"]["found"].items() if said["folder"]}
    for name in CASES["closed_folders"]:
        assert folders.get(f"store/{name}", 0o700) == 0o700, name
    folders.pop("out")  # ours
    assert {path: oct(mode) for path, mode in folders.items() if mode & 0o022} == {}


@pytest.mark.parametrize("case", CASES["links"], ids=lambda case: case["id"])
def test_no_link_is_followed(told: dict[str, Any], case: dict[str, Any]) -> None:
    """What it leads to is as it was; the command says so and ends, or puts a file of its own in the link's place."""
    if case["id"] not in told["links"]:
        pytest.skip("tried only with PLAYHEAD_FULL")
    found = told["links"][case["id"]]
    why = (case["reason"], found)
    assert found["before"] == found["after"], why
    assert "Traceback" not in found["err"], why
    refused = 125 if case["do"].startswith("replay") else 2
    if case["expect"] == "refused" or found["code"]:
        assert found["code"] == refused, why
        assert os.path.basename(case["place"]) in found["err"], why
    else:
        assert not found["link"], why
        public = case["place"].startswith("store/ca/") and case["place"].endswith(".pem")
        assert found["mode"] in (None, 0o600, *((0o644,) if public else ())), why


@pytest.mark.parametrize(
    "case",
    [f"{case['id']}-{what}" for case in CASES["others"] for what in case["do"]],
)
def test_what_belongs_to_another_user_is_refused(told: dict[str, Any], case: str) -> None:
    """By root, too, who could read it: whoever owns it can put something else there."""
    if not told["others"]:
        pytest.skip("only root can have what belongs to others")
    found = told["others"][case]
    assert found["code"] == (125 if case.endswith("replay") else 2), found
    assert ("private" if case.startswith("private") else "log.lmdb") in found["err"], found
    assert "Traceback" not in found["err"], found


@pytest.mark.parametrize("case", CASES["allowed"], ids=lambda case: case["id"])
def test_a_link_to_a_folder_of_ones_own_is_ones_own_affair(
    told: dict[str, Any], case: dict[str, Any]
) -> None:
    """The folder that is named to Playhead may be reached by a link."""
    assert told["allowed"][case["id"]]["code"] == 0, (case["reason"], told["allowed"][case["id"]])
