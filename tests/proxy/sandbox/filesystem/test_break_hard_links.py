"""What the proxy runs from has one name each."""

import os
from pathlib import Path

import pytest

from playhead.proxy.errors import EngineError
from playhead.proxy.sandbox.filesystem import break_hard_links
from playhead.proxy.sandbox.filesystem.break_hard_links import find_second_names


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of an installation, which has a second name; and one that has not."""
    path = tmp_path / "installed" / "module.py"
    path.parent.mkdir()
    path.write_text("ANSWER = 42\n")
    path.chmod(0o640)
    os.utime(path, ns=(1_000_000_001, 2_000_000_002))
    os.link(path, tmp_path / "cached.py")
    single = path.parent / "single.py"
    single.write_text("")
    found = [str(path), str(single)]
    monkeypatch.setattr(break_hard_links, "_loaded", lambda: found)
    monkeypatch.setattr(break_hard_links, "_installed", lambda: found)
    monkeypatch.setattr(break_hard_links, "_stamp", lambda: tmp_path / "made" / "stamp.json")
    return path


def test_a_file_with_two_names_is_replaced_by_a_copy(linked: Path) -> None:
    """With the same content, mode and times; what is written by the other name is not in it."""
    before, single = linked.stat(), (linked.parent / "single.py").stat()
    assert break_hard_links.separate() == 1
    now = linked.stat()
    assert now.st_ino != before.st_ino
    assert (now.st_nlink, now.st_mode, now.st_mtime_ns) == (1, before.st_mode, before.st_mtime_ns)
    (linked.parents[1] / "cached.py").write_text("")
    assert linked.read_text() == "ANSWER = 42\n"
    assert (linked.parent / "single.py").stat() == single
    assert sorted(os.listdir(linked.parent)) == ["module.py", "single.py"]
    assert break_hard_links.separate() == 0


def test_a_file_that_another_process_has_replaced_is_left_as_it_is(linked: Path) -> None:
    """A run that began after the first copy would find another file after the second."""
    inodes = []

    def be_first(_done: int, _of: int) -> None:
        break_hard_links._replace(str(linked))
        inodes.append(linked.stat().st_ino)

    assert break_hard_links.separate(be_first) == 1
    assert inodes == [linked.stat().st_ino]


def test_an_installation_is_looked_at_once(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again once something was installed; what was loaded is looked at each time."""
    break_hard_links.separate()
    again = linked.parent / "again.py"
    os.link(linked, again)
    monkeypatch.setattr(break_hard_links, "_loaded", list)
    assert break_hard_links.separate() == 0
    monkeypatch.setattr(break_hard_links, "_loaded", lambda: [str(linked)])
    assert break_hard_links.separate() == 1
    os.link(linked, linked.parent / "once more.py")
    monkeypatch.setattr(break_hard_links, "_loaded", list)
    monkeypatch.setattr(break_hard_links, "_describe_installation", lambda: [["another"]])
    assert break_hard_links.separate() == 1


def test_what_cannot_be_replaced_is_named(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is run then, and what there is to do is said; nothing is left behind."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(EngineError, match=r"module\.py has a second name") as caught:
        break_hard_links.separate()
    assert "UV_LINK_MODE=copy" in caught.value.hint
    assert sorted(os.listdir(linked.parent)) == ["module.py", "single.py"]


def test_what_playhead_requires_is_known() -> None:
    """Its packages are found by what they say of themselves, and so is what nobody has imported yet."""
    parts = break_hard_links._required(break_hard_links._site_folders())
    assert {"mitmproxy", "lmdb", "msgspec", "yaml"} <= parts
    assert not {"_pytest", "hypothesis"} & parts


def test_a_second_name_of_a_body_outside_of_its_store_is_found(tmp_path: Path) -> None:
    """One in a backup of the store itself is its own; so is a file with one name."""
    store = tmp_path / "store"
    for folder in ("bodies/ab", "bodies-0123/ab", "backup-4/bodies/ab", "private"):
        (store / folder).mkdir(parents=True)
    alone, shared, sealed = (
        store / name for name in ("bodies/ab/alone", "bodies/ab/shared", "bodies-0123/ab/sealed")
    )
    for file in (alone, shared, sealed, store / "private" / "key"):
        file.write_bytes(b"x")
    (store / "backup-4/bodies/ab/shared").hardlink_to(shared)
    assert find_second_names(store) == []
    (tmp_path / "outside").hardlink_to(sealed)
    assert find_second_names(store) == [str(sealed)]
    (tmp_path / "again").hardlink_to(shared)
    (tmp_path / "key").hardlink_to(store / "private" / "key")
    assert set(find_second_names(store)) == {
        str(sealed),
        str(shared),
        str(store / "private" / "key"),
    }
