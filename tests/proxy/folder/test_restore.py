"""A folder is made what a manifest says: byte by byte, writing only what differs, and losing nothing unasked."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from blake3 import blake3

from playhead.proxy.folder import put_and_remove_files
from playhead.proxy.folder import restore as module
from playhead.proxy.folder.left_out_paths import leave_out_ignored
from playhead.proxy.folder.list_folder import look
from playhead.proxy.folder.overlay_layers import write_file
from playhead.proxy.folder.restore import (
    NotBegun,
    Restored,
    apply_plan,
    make_plan,
    require_harmless,
)
from playhead.proxy.folder.unsaved_entries import find_unknown
from playhead.store import StoreError
from playhead.tape.folders.manifest import Entry, Kind, Manifest
from playhead.tests.support.folder_cases import HIDDEN, WRITES, Hidden
from playhead.tests.support.folders import PROGRAM, make_case, snapshot


class Held:
    """Contents by hash."""

    def __init__(self) -> None:
        self.contents: dict[bytes, bytes] = {}
        self.manifests: list[Manifest] = []

    def manifest(self, folder: Path) -> Manifest:
        """List a folder and keep all contents."""
        found = look(str(folder))
        entries = dict(found.entries)
        for path, entry in found.entries.items():
            if entry.kind is Kind.FILE:
                data = (folder / os.fsdecode(path)).read_bytes()
                digest = blake3(data).digest()
                self.contents[digest] = data
                entries[path] = entry._replace(digest=digest)
        self.manifests.append(Manifest(found.folder, entries, saved=True))
        return self.manifests[-1]

    def _find_unknown(self, entries: Mapping[bytes, Entry]) -> frozenset[bytes]:
        return find_unknown([one.entries for one in self.manifests], entries)

    def restore(
        self,
        target: Manifest,
        folder: Path,
        *,
        force: bool = False,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> Restored:
        """Restore a folder.

        meanwhile: what somebody else does between the look at the folder and the first file that is put in its place.
        """
        has = self.contents.__contains__
        present = look(str(folder), known=target.entries)
        present = leave_out_ignored(present, target, self.contents.__getitem__)
        known = {path for one in self.manifests for path in one.entries} | target.entries.keys()
        plan = make_plan(target, present, known, has, has, self._find_unknown)
        if not force:
            require_harmless(plan)
        done = False

        def read(digest: bytes) -> bytes:
            nonlocal done
            if not done:
                done = True
                meanwhile()
            return self.contents[digest]

        return apply_plan(plan, read)


def _run(folder: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, *(one.program for one in WRITES)]
    subprocess.run(words, cwd=folder, check=True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder for each case."""
    for at in range(len(WRITES)):
        make_case(tmp_path / "work" / f"c{at}")
    return tmp_path / "work"


def test_a_folder_is_as_it_was_after_each_write(work: Path) -> None:
    """Content, kinds, modes and times; and back to what the writes had made of it."""
    held = Held()
    start, before = held.manifest(work), snapshot(work)
    _run(work)
    end, after = held.manifest(work), snapshot(work)
    assert before != after
    held.restore(start, work)
    assert snapshot(work) == before
    for path, entry in start.entries.items():
        told = os.lstat(work / os.fsdecode(path))
        if entry.kind in (Kind.FILE, Kind.FOLDER):
            assert told.st_mtime_ns == entry.modified_ns, path
    held.restore(end, work)
    assert _without_sockets(snapshot(work)) == _without_sockets(after)


def _without_sockets(found: dict[str, str]) -> dict[str, str]:
    return {path: said for path, said in found.items() if not said.startswith("s")}


def test_nothing_is_written_where_nothing_differs(work: Path) -> None:
    """Files stay the very same."""
    held = Held()
    start = held.manifest(work)
    inodes = {path: entry.inode for path, entry in start.entries.items()}
    (work / "c0/edit.txt").write_text("else")
    assert held.restore(start, work, force=True) == Restored(1, 0, [], [])
    again = look(str(work))
    del inodes[b"c0/edit.txt"]
    assert {path: again.entries[path].inode for path in inodes} == inodes


def test_a_folder_that_is_empty_is_filled(work: Path, tmp_path: Path) -> None:
    """In another place."""
    held = Held()
    start = held.manifest(work)
    other = tmp_path / "other"
    other.mkdir()
    held.restore(start, other)
    assert snapshot(other) == snapshot(work)


def test_work_that_no_savepoint_has_is_not_lost(work: Path) -> None:
    """It is named; who means it says so."""
    held = Held()
    start, before = held.manifest(work), snapshot(work)
    (work / "c0/edit.txt").write_text("an hour's work")
    (work / "c1/edit.txt").write_text("more of it")
    with pytest.raises(StoreError, match=r"2 paths .* c0/edit.txt, c1/edit.txt") as refused:
        held.restore(start, work)
    assert "--force" in refused.value.hint
    assert (work / "c0/edit.txt").read_text() == "an hour's work"
    held.restore(start, work, force=True)
    assert snapshot(work) == before


def test_content_that_was_not_saved_is_named_and_left_as_it_is(work: Path) -> None:
    """The rest is restored."""
    held = Held()
    start = held.manifest(work)
    entry = start.entries[b"c0/edit.txt"]
    entries = {**start.entries, b"c0/edit.txt": entry._replace(unsaved="secret", digest=b"")}
    target = Manifest(start.folder, entries, saved=True)
    (work / "c0/edit.txt").write_text("else")
    (work / "c1/edit.txt").write_text("else")
    with pytest.raises(StoreError, match=r"was not saved: c0/edit.txt|would be lost"):
        held.restore(target, work)
    done = held.restore(target, work, force=True)
    assert done.skipped == [b"c0/edit.txt"]
    assert (work / "c0/edit.txt").read_text() == "else"
    assert (work / "c1/edit.txt").read_text() == "edit"


def test_no_link_is_followed_out_of_the_folder(tmp_path: Path) -> None:
    """A link in the place of a folder is replaced, and what it led to stays."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    make_case(work)
    held = Held()
    start, before = held.manifest(work), snapshot(work)
    outside.mkdir()
    (outside / "a.txt").write_text("mine")
    for name in ("a.txt", "b.txt"):
        (work / "sub" / name).unlink()
    (work / "sub").rmdir()
    (work / "sub").symlink_to(outside)
    held.restore(start, work, force=True)
    assert snapshot(work) == before
    assert (outside / "a.txt").read_text() == "mine"


WORK = (
    # what the user made of the folder after the last savepoint, and the path that would be lost: all are in some manifest
    ("os.unlink('link'); os.symlink('/mine', 'link')", "link"),
    ("os.unlink('edit.txt'); os.symlink('/mine', 'edit.txt')", "edit.txt"),
    ("shutil.rmtree('sub'); os.symlink('/mine', 'sub')", "sub"),
    ("os.unlink('new'); os.symlink('/mine', 'new')", "new"),
    ("os.unlink('new'); os.mkfifo('new')", "new"),
    ("os.unlink('edit.txt'); os.mkfifo('edit.txt')", "edit.txt"),
    ("os.unlink('new'); socket.socket(socket.AF_UNIX).bind('new')", "new"),
    ("os.unlink('new'); os.mkdir('new')", "new"),
    ("os.unlink('edit.txt'); os.mkdir('edit.txt')", "edit.txt"),
)


@pytest.mark.parametrize(("program", "path"), WORK, ids=[row[0] for row in WORK])
def test_work_without_a_content_is_not_lost(tmp_path: Path, program: str, path: str) -> None:
    """A link's target, and that there is anything else, is work as a file's content is; what some savepoint has is not lost."""
    work, held = tmp_path / "work", Held()
    make_case(work)
    start = held.manifest(work)
    (work / "new").write_text("the command's")
    held.manifest(work)
    subprocess.run(
        [sys.executable, "-c", f"import os, shutil, socket\n{program}"], cwd=work, check=True
    )
    after = snapshot(work)
    with pytest.raises(StoreError, match=f"one path .* would be lost, .* has it: {path}$"):
        held.restore(start, work)
    assert snapshot(work) == after
    held.manifest(work)
    held.restore(start, work)
    assert snapshot(work) != after


def test_a_closed_folder_is_opened_and_closed_again(tmp_path: Path) -> None:
    """Its mode is in the manifest."""
    work = tmp_path / "work"
    make_case(work)
    (work / "sub").chmod(0o555)
    held = Held()
    start, before = held.manifest(work), snapshot(work)
    (work / "sub").chmod(0o755)
    (work / "sub/a.txt").unlink()
    (work / "sub").chmod(0o555)
    held.restore(start, work)
    assert snapshot(work) == before


@pytest.mark.parametrize("case", HIDDEN, ids=lambda case: case.name)
def test_work_that_is_left_out_of_a_listing_is_not_lost(case: Hidden, tmp_path: Path) -> None:
    """Whatever rules of now ignore; `--force` makes the folder what it was, but for what is in no manifest."""
    work = tmp_path / "work"
    make_case(work)
    held = Held()
    start, before = held.manifest(work), snapshot(work)
    subprocess.run(
        [sys.executable, "-c", f"import os, shutil\n{case.program}"], cwd=work, check=True
    )
    after = snapshot(work)
    says = f"would be lost, .*{case.work}(,|$)"
    if case.stays:
        says = "is a folder now, and {}/{} in it".format(*case.work.split("/"))
    with pytest.raises(StoreError, match=says):
        held.restore(start, work)
    assert snapshot(work) == after
    done = held.restore(start, work, force=True)
    found = snapshot(work)
    if case.stays:
        above = case.work.partition("/")[0]
        assert done.blocked == (os.fsencode(above),)
        kept = {path for path in after if path.partition("/")[0] == above}
        assert {path: found[path] for path in kept} == {path: after[path] for path in kept}
        del before[above]
    else:
        assert done.blocked == ()
    assert found.items() >= before.items()


UNKNOWN = (
    # what somebody made that no manifest has, and what is named
    ("open('mine', 'w').write('m')", (b"mine",)),
    ("open('sub/mine', 'w').write('m')", (b"sub/mine",)),
    ("os.makedirs('d/e'); open('d/e/mine', 'w').write('m')", (b"d",)),
    ("os.mkdir('sub/d')", (b"sub/d",)),
    ("os.symlink('/x', 'l'); os.mkfifo('p')", (b"l", b"p")),
    ("shutil.copy('keep.txt', 'copy')", (b"copy",)),  # its content is kept, the path is not
    ("open('new/mine', 'w').write('m')", (b"new/mine",)),
    ("os.makedirs('.git/refs/heads'); open('.git/refs/heads/mine', 'w').write('m')", ()),
)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("program", "named"), UNKNOWN, ids=[row[0] for row in UNKNOWN])
def test_what_is_in_no_manifest_stays(
    tmp_path: Path, program: str, named: tuple[bytes, ...], *, force: bool
) -> None:
    """It is no reason to refuse, and `--force` does not remove it; what the command made goes."""
    work, held = tmp_path / "work", Held()
    make_case(work)
    start, before = held.manifest(work), snapshot(work)
    (work / "new").mkdir()
    (work / "new/x").write_text("the command's")
    held.manifest(work)
    theirs = snapshot(work)
    subprocess.run([sys.executable, "-c", f"import os, shutil\n{program}"], cwd=work, check=True)
    theirs = {path: one for path, one in snapshot(work).items() if path not in theirs}
    done = held.restore(start, work, force=force)
    assert done.unknown == named
    assert done.blocked == ()
    found = snapshot(work)
    assert found.items() >= {**before, **theirs}.items()
    assert "new/x" not in found


def test_a_folder_that_holds_only_ignored_files_is_no_loss(tmp_path: Path) -> None:
    """It stays, for a folder is removed only if it is empty, even where a manifest had something else at its path."""
    work, held = tmp_path / "work", Held()
    make_case(work)
    (work / ".gitignore").write_text("*.log\n")
    start = held.manifest(work)
    (work / "logs").write_text("a file of the command's")
    held.manifest(work)
    (work / "logs").unlink()
    for name in ("logs", "more"):
        (work / name).mkdir()
        (work / name / "x.log").write_text("mine")
    assert held.restore(start, work).removed == 0
    assert (work / "logs/x.log").read_text() == (work / "more/x.log").read_text() == "mine"


def test_an_ignored_file_that_nobody_touched_stays_the_very_same(tmp_path: Path) -> None:
    """Rules of now make no difference to it, nor to ignored files that were never listed."""
    work = tmp_path / "work"
    make_case(work)
    held = Held()
    start = held.manifest(work)
    (work / ".gitignore").write_text("edit.txt\n*.log\n")
    (work / "sub/x.log").write_text("never listed")
    held.contents[blake3((work / ".gitignore").read_bytes()).digest()] = b""
    inode = (work / "edit.txt").stat().st_ino
    assert held.restore(start, work) == Restored(0, 0, [], [], (), (b".gitignore",))
    assert (work / "edit.txt").stat().st_ino == inode
    assert (work / "sub/x.log").read_text() == "never listed"


def test_work_in_a_folder_that_nobody_may_enter_is_not_lost(tmp_path: Path) -> None:
    """What cannot be looked at is taken for work."""
    if os.geteuid() == 0:
        pytest.skip("root enters everything")
    work = tmp_path / "work"
    make_case(work)
    held = Held()
    start = held.manifest(work)
    (work / "sub").chmod(0)
    with pytest.raises(StoreError, match=r"would be lost, .*sub/a.txt, sub/b.txt"):
        held.restore(start, work)
    (work / "sub").chmod(0o755)


def test_where_there_is_no_room_nothing_is_changed(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are written before the first one is put in its place or removed."""
    held = Held()
    start = held.manifest(work)
    (work / "c0/edit.txt").unlink()
    (work / "c2/edit.txt").unlink()
    (work / "c1/more.txt").write_text("keep")
    before = snapshot(work)
    written: list[bytes] = []

    def write(path: bytes, data: bytes, entry: Entry) -> None:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        write_file(path, data, entry)

    monkeypatch.setattr(module, "write_file", write)
    with pytest.raises(NotBegun, match="No space left"):
        held.restore(start, work)
    assert written
    assert snapshot(work) == before


MEANWHILE = (
    # what the command did since the manifest, what somebody does meanwhile, the path that stays as somebody made it
    ("open('edit.txt', 'w').write('else')", "open('edit.txt', 'w').write('work')", "edit.txt"),
    ("os.unlink('edit.txt')", "open('edit.txt', 'w').write('work')", "edit.txt"),
    ("open('new.txt', 'w').write('new')", "open('new.txt', 'w').write('work')", "new.txt"),
    ("os.chmod('run.sh', 0o700)", "open('run.sh', 'a').write('work')", "run.sh"),
    ("os.utime('run.sh')", "open('run.sh', 'a').write('work')", "run.sh"),
    ("os.unlink('link')", "open('link', 'w').write('work')", "link"),
    ("os.mkdir('d')", "os.rmdir('d'); open('d', 'w').write('work')", "d"),
    ("shutil.rmtree('sub')", "open('sub', 'w').write('work')", "sub"),
    (
        "open('sub/a.txt', 'w').write('A')",
        "shutil.rmtree('sub'); os.symlink('empty', 'sub')",
        "sub",
    ),
    (
        "open('edit.txt', 'w').write('else')",
        "os.unlink('edit.txt'); os.mkdir('edit.txt'); open('edit.txt/x', 'w').write('work')",
        "edit.txt/x",
    ),
)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("before", "meanwhile", "path"), MEANWHILE, ids=[row[0] for row in MEANWHILE]
)
def test_what_somebody_saved_meanwhile_stays(
    tmp_path: Path, before: str, meanwhile: str, path: str, *, force: bool
) -> None:
    """It is named; all else is made what it was. `--force` is for what was there when the command began."""
    work = tmp_path / "work"
    make_case(work)
    held = Held()
    start = held.manifest(work)
    program = [sys.executable, "-c", "import os, shutil, sys; exec(sys.argv[1])"]
    subprocess.run([*program, before], cwd=work, check=True)
    held.manifest(work)  # all of that is kept
    (work / "keep.txt").unlink()
    theirs: dict[str, str] = {}

    def act() -> None:
        subprocess.run([*program, meanwhile], cwd=work, check=True)
        theirs.update(snapshot(work))

    done = held.restore(start, work, force=force, meanwhile=act)
    assert any(
        path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/")
        for one in map(os.fsdecode, done.left)
    )
    assert snapshot(work)[path] == theirs[path]
    assert (work / "keep.txt").read_text() == "keep"
    assert not [one for one in os.listdir(work) if one.startswith(".playhead")]
    assert not list((work / "empty").iterdir())


@pytest.mark.parametrize("case", ["edit.txt", "new.txt"])
def test_what_is_saved_at_the_very_moment_of_a_rename_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """What came out of a place is looked at, too."""
    work = tmp_path / "work"
    make_case(work)
    held = Held()
    start = held.manifest(work)
    (work / case).write_text("else")
    held.manifest(work)

    for name in ("exchange", "rename_new"):
        real = getattr(put_and_remove_files, name)

        def late(one: bytes, other: bytes, real: Callable[..., None] = real) -> None:
            if (work / case).exists() and (work / case).read_text() == "else":
                (work / case).write_text("work")
            real(one, other)

        monkeypatch.setattr(put_and_remove_files, name, late)
    assert held.restore(start, work).left == [os.fsencode(case)]
    assert (work / case).read_text() == "work"


def test_where_a_file_system_exchanges_nothing_places_are_looked_at(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right before each rename."""

    def refuse(*_: bytes) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(put_and_remove_files, "exchange", refuse)
    monkeypatch.setattr(put_and_remove_files, "rename_new", refuse)
    held = Held()
    start, before = held.manifest(work), snapshot(work)
    _run(work)
    end, after = held.manifest(work), snapshot(work)
    held.restore(start, work)
    assert snapshot(work) == before
    edit = work / "c3/edit.txt"
    done = held.restore(end, work, meanwhile=lambda: edit.write_text("mine"))
    assert done.left == [b"c3/edit.txt"]
    assert edit.read_text() == "mine"
    assert len(snapshot(work).keys() & after.keys()) >= len(_without_sockets(after))


def test_names_of_one_file_are_restored_together(tmp_path: Path) -> None:
    """That one of them was put in its place is no change of the others by somebody else."""
    work = tmp_path / "work"
    make_case(work)
    os.link(work / "edit.txt", work / "other")
    held = Held()
    start, before = held.manifest(work), snapshot(work)
    (work / "edit.txt").write_text("else")
    held.manifest(work)
    assert held.restore(start, work).left == []
    assert snapshot(work) == before


FORWARD = (
    # what an ignore file of the target says, and a path that it leaves out
    ("*.log", "x.log"),
    ("*.log", "sub/x.log"),
    ("made/", "made/deep/x"),
    ("*.txt\n!keep.txt\n!edit.txt", "more.txt"),
)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("rules", "path"), FORWARD)
def test_what_the_target_ignores_stays(
    tmp_path: Path, rules: str, path: str, *, force: bool
) -> None:
    """Back before the ignore file was written, and forward again."""
    work = tmp_path / "work"
    make_case(work)
    held = Held()
    start = held.manifest(work)
    (work / ".gitignore").write_text(rules)
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text("ignored work")
    (work / "new.txt.md").write_text("x")
    end, after = held.manifest(work), snapshot(work)
    assert os.fsencode(path) not in end.entries
    for target in (start, end):
        held.restore(target, work, force=force)
        assert (work / path).read_text() == "ignored work"
    assert snapshot(work) == after


def test_what_nobody_knows_to_be_new_is_not_removed(tmp_path: Path) -> None:
    """Its folder was not listed when the manifest was made."""
    work, held = tmp_path / "work", Held()
    make_case(work)
    whole = held.manifest(work)
    entries = {path: one for path, one in whole.entries.items() if not path.startswith(b"sub/")}
    cut = replace(whole, entries=entries, omitted=1, unlisted=frozenset([b"sub"]))
    (work / "keep.txt").write_text("else")
    held.restore(cut, work, force=True)
    assert (work / "keep.txt").read_text() == "keep"
    assert (work / "sub" / "a.txt").read_text() == "a"
