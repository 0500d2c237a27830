"""Files that others read while they are written."""

import os
import stat
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.trust.atomic_files import write_new, write_public


def test_public_file_is_replaced_whole_and_only_when_it_changed(tmp_path: Path) -> None:
    """A reader of the old one keeps the old one; nothing is left beside it."""
    path = tmp_path / "new folder" / "file"
    assert write_public(path, b"one")
    with path.open("rb") as reader:
        assert not write_public(path, b"one")
        assert write_public(path, b"two")
        assert reader.read() == b"one"
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_mode_is_as_asked_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    """Neither more nor less."""
    for umask in (0, 0o077):
        old = os.umask(umask)
        try:
            write_new(tmp_path / str(umask), b"x", mode)
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / str(umask)).stat().st_mode) == mode


def test_new_file_replaces_none(tmp_path: Path) -> None:
    """Not even through a link that somebody put there."""
    (tmp_path / "file").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", b"x", 0o600)
    assert not (tmp_path / "target").exists()


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """One sentence and a hint, and nothing left over."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(EngineError, match="cannot write") as caught:
        write_public(tmp_path / "folder", b"x")
    assert caught.value.hint
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
