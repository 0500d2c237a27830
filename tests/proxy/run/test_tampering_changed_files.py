"""Which files count as changed while a command ran."""

import base64
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from playhead.proxy.run.installed_file_changes import InstalledFiles
from playhead.proxy.run.tampering import _look, _states, _was_changed


def _copy(file: Path) -> None:
    """Give a file an inode of its own, with its content and time."""
    found, data = file.stat(), file.read_bytes()
    file.with_suffix(".new").write_bytes(data)
    file.with_suffix(".new").replace(file)
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


def _rewrite(file: Path) -> None:
    _copy(file)
    file.write_bytes(b"other")


def _link(file: Path) -> None:
    file.with_suffix(".link").hardlink_to(file)


def _leave(_: Path) -> None:
    """Do nothing."""


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize(
    ("do", "changed"), [(_leave, (False, False)), (_rewrite, (True, True)), (_link, (False, False))]
)
def test_another_content_is_a_change(
    do: Callable[[Path], None], changed: tuple[bool, bool], linked: bool, tmp_path: Path
) -> None:
    """Another count of links alone is none."""
    assert _is_changed(do, tmp_path, linked=linked) is changed[linked]


@pytest.mark.parametrize(("linked", "changed"), [(True, False), (False, True)])
def test_an_inode_of_its_own_is_no_change_of_a_file_that_had_several_names(
    linked: bool, changed: bool, tmp_path: Path
) -> None:
    """Another run, the first in this environment, may do that while this one goes on."""
    assert _is_changed(_copy, tmp_path, linked=linked) is changed


def _is_changed(do: Callable[[Path], None], folder: Path, *, linked: bool) -> bool:
    file = folder / "module.py"
    file.write_bytes(b"before")
    if linked:
        (folder / "cache").hardlink_to(file)
    before = dict(_states([str(file)]))
    do(file)
    return _was_changed(before[str(file)], dict(_states([str(file)]))[str(file)])


def test_a_file_that_is_made_while_it_is_looked_at_was_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have no hash, and another content than none later; the control API makes its token at the start."""
    path = tmp_path / "token"

    real = os.open

    def open_late(*_: object) -> int:
        os.close(real(path, os.O_CREAT | os.O_WRONLY))
        raise FileNotFoundError(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_late)
        assert _look(path, content=True) is None
    assert _look(path, content=True) is not None


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A file of a package, with its list, and a second name for it as an installer makes."""
    place = tmp_path / "site-packages"
    (place / "some-1.dist-info").mkdir(parents=True)
    file = place / "some.py"
    file.write_bytes(b"before")
    digest = base64.urlsafe_b64encode(sha256(b"before").digest()).rstrip(b"=").decode()
    row = f"some.py,sha256={digest},6\nsome-1.dist-info/RECORD,,\n"
    (place / "some-1.dist-info/RECORD").write_text(row)
    (tmp_path / "cache").hardlink_to(file)
    return file


def _write_with_its_time(file: Path) -> None:
    found = file.stat()
    file.write_bytes(b"others")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))


def _write_list_too(file: Path) -> None:
    _write_with_its_time(file)
    digest = base64.urlsafe_b64encode(sha256(b"others").digest()).rstrip(b"=").decode()
    (file.parent / "some-1.dist-info/RECORD").write_text(f"some.py,sha256={digest},6\n")


@pytest.mark.parametrize(
    ("do", "has"), [(_leave, True), (_write_with_its_time, False), (_write_list_too, False)]
)
def test_a_file_with_other_links_is_compared_with_the_list_of_its_package(
    do: Callable[[Path], None], has: bool, installed: Path, tmp_path: Path
) -> None:
    """One environment was made and another one removed, which share it: its count of links is as it was, and its last time is not."""
    before = dict(_states([str(installed)]))[str(installed)]
    known = InstalledFiles([str(installed)])
    do(installed)
    (tmp_path / "another").hardlink_to(installed)
    (tmp_path / "cache").unlink()
    assert _was_changed(before, dict(_states([str(installed)]))[str(installed)])
    assert known.has(str(installed)) is has


def test_a_file_of_no_package_is_not_as_it_was_installed(tmp_path: Path) -> None:
    """Nobody knows what it held."""
    (tmp_path / "own.py").write_bytes(b"")
    assert not InstalledFiles([str(tmp_path / "own.py")]).has(str(tmp_path / "own.py"))
