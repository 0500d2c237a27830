"""Where layers are put, and what is left of them."""

import os
from pathlib import Path

import pytest

from playhead.proxy.folder import overlay_support
from playhead.proxy.folder.overlay_support import (
    Tried,
    explain,
    find_places,
    make_room,
    measure_free,
    overlay_rows,
    try_overlay,
)
from playhead.tests.support.folders import require_overlay


def test_layers_are_never_in_the_folder(tmp_path: Path) -> None:
    """Not even where the store is."""
    places = list(find_places(tmp_path / "work/store", [str(tmp_path / "work")]))
    assert places
    assert not any(place.startswith(str(tmp_path / "work")) for place in places)
    assert next(find_places(tmp_path / "other/store", [str(tmp_path / "work")])) == str(
        tmp_path / "other"
    )


def test_the_cache_is_a_place_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the room of the disk it will be on; nothing is made to look, and what cannot be written to has no room."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home/.cache"))
    place = str(tmp_path / "home/.cache/playhead/folders")
    assert place in find_places(tmp_path / "store", [])
    assert measure_free(place) == measure_free(str(tmp_path)) > 0
    assert not (tmp_path / "home").exists()
    assert measure_free("/proc") == measure_free(str(tmp_path / "missing")) == 0


def test_what_a_killed_process_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But nothing that is in use, or was made just now."""
    left = tmp_path / "playhead-folder-left"
    (left / "work").mkdir(parents=True)
    (left / "work").chmod(0)
    with make_room(str(tmp_path)) as one:
        assert left.exists()
        monkeypatch.setattr(overlay_support, "_YOUNG_NS", 0)
        with make_room(str(tmp_path)) as other:
            assert not left.exists()
            assert os.path.isdir(one)
            assert os.path.isdir(other)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("of_user", [True, False])
@pytest.mark.parametrize("name", ["work", "a,b:c\\d", "a b"])
def test_a_path_may_hold_any_character(tmp_path: Path, name: str, of_user: bool) -> None:
    """Layers are named by descriptors; nothing is left of the trial."""
    require_overlay(tmp_path, Path("/var/tmp"), of_user=of_user)
    folder = tmp_path / name
    folder.mkdir()
    assert try_overlay(str(folder), str(tmp_path), of_user=of_user) is None
    assert os.listdir(tmp_path) == [name]
    assert os.listdir(folder) == []


def test_a_place_that_does_not_do_is_told_with_its_error(tmp_path: Path) -> None:
    """As that of a folder that is not there."""
    failure = try_overlay(str(tmp_path), str(tmp_path / "none"), of_user=True)
    assert failure is not None
    assert failure.number == 2
    assert "ENOENT" in explain([failure])
    assert explain([]) == "no place for its layers outside of the folder"
    assert "EINVAL: no (/x)" in explain([Tried("/x", 22, "no")])


def test_what_is_kept_real_is_named(tmp_path: Path) -> None:
    """A folder in it that is written to for us."""
    (tmp_path / "work/tmp").mkdir(parents=True)
    with make_room(str(tmp_path)) as room:
        kept = [str(tmp_path / "work/tmp"), str(tmp_path)]
        (row,) = overlay_rows(str(tmp_path / "work"), room, kept=kept)
        assert row["kept"] == [str(tmp_path / "work/tmp")]
