"""What may stand in a folder is listed as what it is, saved or named as left out."""

import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.proxy.folder import list_folder as module
from playhead.proxy.folder.file_contents import SaveLimits, Saver
from playhead.proxy.folder.git import find_tracked_ignored
from playhead.proxy.folder.list_folder import (
    BEYOND,
    OWN,
    IgnoreFilter,
    Limits,
    Listing,
    find_birth_ns,
    look,
)
from playhead.tape.folders.manifest import Entry
from playhead.tests.support.folder_cases import CONTENTS, Content
from playhead.tests.support.needs import need

SECRET = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2"


def _git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run([need("git"), *who, *words], cwd=folder, check=True, capture_output=True)


def _file(name: bytes | str, data: bytes = b"x", mode: int = 0o644) -> Callable[[Path], bytes]:
    raw = os.fsencode(name)

    def make(folder: Path) -> bytes:
        path = os.fsencode(folder) + b"/" + raw
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        return raw

    return make


def _link(target: str) -> Callable[[Path], bytes]:
    def make(folder: Path) -> bytes:
        (folder / "sub").mkdir()
        (folder / "link").symlink_to(target)
        return b"link"

    return make


def _folder(name: str) -> Callable[[Path], bytes]:
    def make(folder: Path) -> bytes:
        (folder / name).mkdir(parents=True)
        return name.encode()

    return make


def _second_name(folder: Path) -> bytes:
    (folder / "one").write_text("x")
    os.link(folder / "one", folder / "two")
    return b"two"


def _pipe(folder: Path) -> bytes:
    os.mkfifo(folder / "pipe")
    return b"pipe"


def _socket(folder: Path) -> bytes:
    held = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(folder)  # a path of a socket is short
    try:
        held.bind("sock")
    finally:
        os.chdir(before)
        held.close()
    return b"sock"


def _unreadable(folder: Path) -> bytes:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (folder / "closed").write_text("x")
    (folder / "closed").chmod(0)
    return b"closed"


def _ignored(rules: str, path: str, deeper: str = "") -> Callable[[Path], bytes]:
    def make(folder: Path) -> bytes:
        (folder / ".gitignore").write_text(rules)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
        if deeper:
            ((folder / path).parent / ".gitignore").write_text(deeper)
        return path.encode()

    return make


def _ignored_folder(folder: Path) -> bytes:
    _ignored("build/\n", "build/x")(folder)
    return b"build"


def _tracked(folder: Path) -> bytes:
    _git(folder, "init", "-q")
    (folder / "x.log").write_text("x")
    _git(folder, "add", "x.log")
    (folder / ".gitignore").write_text("*.log\n")
    return b"x.log"


def _repository(folder: Path) -> bytes:
    _git(folder, "init", "-q")
    (folder / "x").write_text("x")
    _git(folder, "add", "x")
    _git(folder, "commit", "-qm", "1")
    return b".git"


def _nested(folder: Path) -> bytes:
    (folder / "inner").mkdir()
    _repository(folder / "inner")
    return b"inner/.git"


def _submodule(folder: Path) -> bytes:
    (folder / "inner").mkdir()
    (folder / "inner" / ".git").write_text("gitdir: ../.git/modules/inner\n")
    return b"inner"


def _store(folder: Path) -> bytes:
    (folder / ".playhead").mkdir()
    return b".playhead"


MAKERS: dict[str, Callable[[Path], bytes]] = {
    "a file": _file("a"),
    "an empty file": _file("a", b""),
    "a program, with its mode": _file("run", mode=0o755),
    "a file that cannot be written to": _file("a", mode=0o444),
    "a file whose name is not UTF-8": _file(b"\xff\xfe"),
    "a file with a line feed in its name": _file("a\nb"),
    "a file with a comma, a colon and a backslash in its name": _file("a,b:c\\d"),
    "a file of bytes that are no text": _file("a", bytes(range(256))),
    "an empty folder": _folder("d"),
    "a folder in a folder": _folder("d/e"),
    "a link to a file": _link("a"),
    "a link to nothing": _link("nothing"),
    "a link out of the folder, which is not followed": _link("/etc"),
    "a link to a folder, which is not entered": _link("sub"),
    "two names of one file": _second_name,
    "a named pipe, which is not opened": _pipe,
    "a socket": _socket,
    "a file that cannot be read": _unreadable,
    "a file over the limit": _file("a", b"x" * 2000),
    "a file with a secret": _file(".env", f"KEY={SECRET}".encode()),
    "an ignored file": _ignored("*.log\n", "x.log"),
    "an ignored folder, which is not entered": _ignored_folder,
    "a file that a deeper ignore file lets in again": _ignored("*.log\n", "d/x.log", "!*.log\n"),
    "a file that is tracked by git although it is ignored": _tracked,
    "a repository, with its index, refs and objects": _repository,
    "a repository in the repository": _nested,
    "a submodule, whose .git is a file": _submodule,
    "the store itself": _store,
}


@pytest.mark.parametrize("case", CONTENTS, ids=lambda case: case.name)
def test_it_is_listed_and_saved_or_named(tmp_path: Path, case: Content) -> None:
    """And nothing hangs, follows a link or enters what is ignored."""
    path = MAKERS[case.name](tmp_path)
    tracked = find_tracked_ignored(str(tmp_path))
    found = look(str(tmp_path), left_out=frozenset([str(tmp_path / ".playhead")]), tracked=tracked)
    if not case.manifest:
        assert found.left_out[path] == case.saved
        assert not any(one == path or one.startswith(path + b"/") for one in found.entries)
        return
    entry = found.entries[path]
    assert entry.kind == case.manifest
    held: set[bytes] = set()
    saver = Saver(
        os.fsencode(tmp_path),
        held.__contains__,
        lambda data: data.replace(SECRET.encode(), b"x" * len(SECRET)),
        SaveLimits(file_bytes=1000),
    )
    contents = {one.digest: one.data for one in saver.read({path: entry})}
    made = saver.entries[path]
    assert (made.unsaved or "yes") == case.saved
    assert set(contents) == ({made.digest} if made.kind == "file" and not made.unsaved else set())
    for data in contents.values():
        assert SECRET.encode() not in data


def test_an_object_of_git_with_a_secret_is_not_saved(tmp_path: Path) -> None:
    """It is compressed, and searched all the same."""
    _git(tmp_path, "init", "-q")
    (tmp_path / "x").write_text(SECRET)
    _git(tmp_path, "add", "x")
    found = look(str(tmp_path))
    saver = Saver(
        os.fsencode(tmp_path),
        lambda _: False,
        lambda data: data.replace(SECRET.encode(), b"x"),
        SaveLimits(),
    )
    list(saver.read(found.entries))
    secret = [path for path, entry in saver.entries.items() if entry.unsaved == "secret"]
    assert b"x" in secret
    assert any(path.startswith(b".git/objects/") for path in secret)


def test_what_nobody_touched_is_taken_from_an_earlier_look(tmp_path: Path) -> None:
    """The very entry, with its hash."""
    for name in "ab":
        (tmp_path / name).write_text(name)
    first = look(str(tmp_path))
    known = {path: entry._replace(digest=b"d" * 32) for path, entry in first.entries.items()}
    (tmp_path / "b").write_text("B")
    again = look(str(tmp_path), known=known)
    assert again.entries[b"a"] is known[b"a"]
    assert not again.entries[b"b"].digest


@pytest.mark.parametrize("limits", [Limits(entries=2), Limits(time_s=-1)])
def test_what_is_beyond_the_limit_is_named(tmp_path: Path, limits: Limits) -> None:
    """A manifest that is not complete says so."""
    for name in ("a", "b", "c"):
        (tmp_path / name / "in").mkdir(parents=True)
    found = look(str(tmp_path), limits=limits)
    assert found.omitted == len(found.unlisted)
    assert found.unlisted == {path for path, why in found.left_out.items() if why == BEYOND}
    assert found.cut_by


class Clock:
    """Clocks that go on at each folder: by the thread's work, and on the wall."""

    def __init__(self, work_s: float, wall_s: float) -> None:
        self.now = [0.0, 0.0]
        self.steps = work_s, wall_s

    def tell(self, which: int) -> float:
        """Give seconds, and go on."""
        self.now[which] += self.steps[which]
        return self.now[which] - self.steps[which]


@pytest.mark.parametrize(
    ("work_s", "wall_s", "why"),
    [
        # A busy machine: much time passes, and little of it is ours.
        (0.01, 0.8, ""),
        (0.2, 0.2, "that would take more than 0.5 s of processor time"),
        (0.01, 4.0, "that would take more than 10 s"),
    ],
)
def test_a_busy_machine_lists_what_an_idle_one_does(
    tmp_path: Path, work_s: float, wall_s: float, why: str
) -> None:
    """The time that counts is that of the thread. A disk that does not answer ends it all the same."""
    for name in "abcdefgh":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
    clock = Clock(work_s, wall_s)
    found = look(
        str(tmp_path),
        limits=Limits(time_s=0.5),
        work_clock=lambda: clock.tell(0),
        clock=lambda: clock.tell(1),
    )
    assert found.cut_by == why
    assert bool(found.unlisted) is bool(why)
    assert all(found.knows(name + b"/x") == (name not in found.unlisted) for name in (b"a", b"h"))
    assert (len(found.entries) == 16) is not bool(why)


def test_a_filter_says_of_single_paths_what_a_look_does(tmp_path: Path) -> None:
    """For what is written later."""
    (tmp_path / ".gitignore").write_text("*.log\nout/\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".gitignore").write_text("!keep.log\n")
    rules = IgnoreFilter(str(tmp_path), frozenset([b"tracked.log"]))
    out = {b"x.log", b"out/x", b"d/x.log", b"node_modules/a/b", b"a/__pycache__/x.pyc"}
    for path in (*out, b"x.txt", b"d/keep.log", b"tracked.log", b".git/out/x", b"out"):
        assert rules.leaves_out(path, folder=False) == (path in out), path
    assert rules.leaves_out(b"out", folder=True)


def test_the_own_folder_is_named(tmp_path: Path) -> None:
    """Nobody takes the store for the command's."""
    (tmp_path / "store").mkdir()
    found = look(str(tmp_path), left_out=frozenset([str(tmp_path / "store")]))
    assert found.left_out == {b"store": OWN}


TOUCHES = {
    "nothing": "",
    "another content": "echo else > d/a",
    "another content of the same size": "echo b > d/a",
    "another mode": "chmod 700 d/a",
    "a new file": "touch d/new",
    "a new file in a new folder": "mkdir d/n && touch d/n/x",
    "a file is gone": "rm d/a",
    "a file put in the place of another": "mv d/b d/a",
    "another link": "ln -sfn b d/link",
    "a folder renamed": "mv d/sub d/other",
    "a folder in the place of a file": "rm d/a && mkdir d/a",
    "a link in the place of a folder": "rm -r d/sub && ln -s b d/sub",
    "a file deep in a folder": "touch d/sub/deep/new",
    "another ignore file above": "echo '*.txt' >> .gitignore",
    "another ignore file in the folder": "echo '!x.log' > d/.gitignore",
    "an ignored file is new": "touch d/y.log",
}


@pytest.mark.parametrize("name", TOUCHES)
def test_a_look_by_known_names_is_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever was touched since the names were read."""
    (tmp_path / "d/sub/deep").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    for path in ("d/a", "d/b", "d/sub/c", "d/sub/deep/e.txt", "d/x.log"):
        (tmp_path / path).write_text("a\n")
    (tmp_path / "d/.gitignore").write_text("# nothing\n")
    (tmp_path / "d/link").symlink_to("a")
    monkeypatch.setattr(module, "_TICK_NS", 0)
    _wait_for_a_tick(tmp_path)
    listings: dict[bytes, Listing] = {}
    known = look(str(tmp_path), listings=listings)
    assert {b"d/", b"d/sub/", b"d/sub/deep/"} <= listings.keys()
    _wait_for_a_tick(tmp_path)
    subprocess.run(["sh", "-c", TOUCHES[name]], cwd=tmp_path, check=True)
    for _ in range(2):
        fresh: dict[bytes, Entry] = {}
        found = look(str(tmp_path), known=known.entries, fresh=fresh, listings=listings)
        plain = look(str(tmp_path))
        assert found.entries == plain.entries
        assert found.left_out == plain.left_out
        assert found.left_out_count == plain.left_out_count
        assert {path for path, one in found.entries.items() if known.entries.get(path) != one} <= {
            *fresh
        }
        known = found


def _wait_for_a_tick(folder: Path) -> None:
    """Wait until the clock of the file system has gone on."""
    probe = folder.parent / "probe"
    probe.write_text("")
    begin = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == begin:
        probe.chmod(0o600)


def test_names_that_were_read_too_soon_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A further change in the same moment would not show in the folder's time."""
    monkeypatch.setattr(module, "_TICK_NS", 3600 * 10**9)  # a slow machine is not too late for it
    (tmp_path / "d").mkdir()
    listings: dict[bytes, Listing] = {}
    look(str(tmp_path), listings=listings)
    assert not listings


def test_objects_of_git_that_come_and_go_are_seen(tmp_path: Path) -> None:
    """Their folders are looked at again where they have changed."""
    _repository(tmp_path)
    objects: dict[bytes, dict[bytes, Entry]] = {}
    first = look(str(tmp_path))
    again = look(str(tmp_path), known=first.entries, objects=objects)
    assert again.entries == first.entries
    (tmp_path / "y").write_text("y")
    _git(tmp_path, "add", "y")
    gone = next(path for path in first.entries if b"/objects/" in path and len(path) > 40)
    (tmp_path / os.fsdecode(gone)).unlink()
    fresh: dict[bytes, Entry] = {}
    now = look(str(tmp_path), known=again.entries, fresh=fresh, objects=objects)
    assert now.entries == look(str(tmp_path)).entries
    assert gone not in now.entries
    assert any(b"/objects/" in path for path in fresh)
    assert look(str(tmp_path), known=now.entries, objects=objects).entries == now.entries


def test_a_rename_leaves_the_time_of_birth_and_a_new_folder_has_another(tmp_path: Path) -> None:
    """Where the file system knows it; its inode may be that of one that was removed."""
    old, new = os.fsencode(tmp_path / "old"), os.fsencode(tmp_path / "new")
    os.mkdir(old)
    born_ns = find_birth_ns(old)
    if born_ns is None:
        pytest.skip("no time of birth on this file system")
    assert abs(born_ns - os.lstat(old).st_ctime_ns) < 10**9
    os.rename(old, new)
    os.utime(new, ns=(1, 1))
    assert find_birth_ns(new) == born_ns
    limit = time.monotonic() + 5
    while find_birth_ns(new) == born_ns and time.monotonic() < limit:
        os.rmdir(new)
        os.mkdir(new)
    assert (find_birth_ns(new) or 0) > born_ns
    assert find_birth_ns(tmp_path.joinpath("none").as_posix().encode()) is None
