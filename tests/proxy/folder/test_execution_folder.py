"""One call gives a fresh folder: by an overlay, a copy or in place, as it is or as it was, and says what it did."""

import contextlib
import errno
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from playhead.config import Config, override
from playhead.proxy.errors import EngineError
from playhead.proxy.folder import execution_folder as module
from playhead.proxy.folder import put_and_remove_files as putting
from playhead.proxy.folder import recording as recording_module
from playhead.proxy.folder.command_folders import Area
from playhead.proxy.folder.execution_folder import Execution, Wanted, prepare
from playhead.proxy.folder.list_folder import Limits, look
from playhead.proxy.folder.overlay_support import Trial, Tried, command_words
from playhead.proxy.folder.recording import FolderRecording
from playhead.proxy.folder.restore import Plan, Restored, apply_plan
from playhead.proxy.looking_back import working_folder_files
from playhead.store import RunInfo, Store, StoreError
from playhead.tape.folders.changes import Change
from playhead.tape.folders.manifest import Manifest
from playhead.tests.support.folder_cases import DIFFERENCES, Difference
from playhead.tests.support.folders import make_case, require_overlay, snapshot


class Recorded(NamedTuple):
    """A store with a run, and its folder."""

    store: Store
    run: RunInfo
    work: Path

    def prepare(self, mode: str = "auto", **wanted: object) -> Execution:
        """Prepare a folder for an execution."""
        area = Area(str(self.work))
        return prepare(self.store, self.run, area, Wanted(mode, **wanted))  # type: ignore[arg-type]


def make_recording(store: Store, config: Config, work: Path) -> FolderRecording:
    """Look at a folder as a recording does."""
    recording = FolderRecording(store, Area(str(work)), config, lambda data: data, frozenset())
    recording.begin()
    return recording


@pytest.fixture(params=["saved"])
async def recorded(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Recorded]:
    """A recording of a command that did nothing."""
    work = tmp_path / "work"
    make_case(work)
    (work / ".gitignore").write_text("*.log\n")
    with Store.open(tmp_path / "store") as store:
        config = override(Config(), {"save_files": str(request.param == "saved").lower()})
        recording = make_recording(store, config, work)
        run = await store.runs.create("r", mode="record", at_ns=1)
        recording.finish(run.number)
        await store.runs.seal(run, reason="it ended", at_ns=2)
        yield Recorded(store, store.runs.reload(run), work)


def run(execution: Execution, program: str) -> str:
    """Run a program on the folder of an execution; give what it printed."""
    words = [sys.executable, "-c", f"import os, shutil\n{program}"]
    if execution.mounts:
        words = [*command_words(execution.mounts, execution.hidden, of_user=True), *words]
    done = subprocess.run(
        words, cwd=execution.area.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told(execution: Execution) -> list[str]:
    """Give what was written, as text."""
    return [f"{one.change} {one.text}" for one in execution.find_written().effects]


WRITING = (
    "open('edit.txt', 'w').write('else'); open('new.txt', 'w').write('x'); os.unlink('keep.txt')"
)


@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_what_is_written_is_listed_and_discarded(
    recorded: Recorded, tmp_path: Path, mode: str
) -> None:
    """Two at once do not see each other, nor does either see the layers; nothing is left of them."""
    require_overlay(recorded.work, tmp_path)
    before = snapshot(recorded.work)
    with closing(recorded.prepare(mode)) as one, closing(recorded.prepare(mode)) as other:
        rooms = [one.room, other.room]
        run(one, WRITING)
        assert run(other, "print(sorted(os.listdir()))") == f"{sorted(os.listdir(recorded.work))}\n"
        hidden = f"print(os.listdir({one.room!r})); open({one.room!r} + '/x', 'w')"
        with pytest.raises(AssertionError, match="Read-only"):
            run(one, hidden)
        assert told(one) == ["changed edit.txt", "deleted keep.txt", "created new.txt"]
        assert told(other) == []
        assert (one.mode, one.said, one.restored) == (mode, [], False)
    assert snapshot(recorded.work) == before
    assert not any(map(os.path.exists, rooms))


@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_what_is_written_can_be_kept(recorded: Recorded, tmp_path: Path, mode: str) -> None:
    """Then the folder is what it would be without us."""
    require_overlay(recorded.work, tmp_path)
    other = tmp_path / "other"
    make_case(other)
    (other / ".gitignore").write_text("*.log\n")
    program = f"{WRITING}; shutil.rmtree('sub'); os.mkdir('d'); open('d/x', 'w').close(); os.chmod('run.sh', 0o700)"
    subprocess.run([sys.executable, "-c", f"import os, shutil\n{program}"], cwd=other, check=True)
    with closing(recorded.prepare(mode, stays=True)) as execution:
        run(execution, program)
        assert execution.keep() == (len(execution.find_written().effects), [])
    assert snapshot(recorded.work) == snapshot(other)


IGNORED_WRITES = (
    "open('old.log', 'w').write('else'); open('new.log', 'w').write('x'); os.unlink('gone.log'); shutil.rmtree('cache.log');"
    " os.makedirs('node_modules/a'); open('node_modules/a/x', 'w').write('x'); open('edit.txt', 'w').write('else');"
    " open('.gitignore', 'a').write('keep.txt\\nsub\\n'); open('closed', 'w').close(); os.chmod('closed', 0)"
)


@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_all_writes_are_kept_and_nothing_else_is_changed(
    recorded: Recorded, tmp_path: Path, mode: str
) -> None:
    """Ignored files, too. What the command has only had ignored stays, and what others write meanwhile to other files."""
    require_overlay(recorded.work, tmp_path)
    for name in ("old.log", "gone.log", "cache.log/x", "mine.log"):
        (recorded.work / name).parent.mkdir(exist_ok=True)
        (recorded.work / name).write_text(name)
    other = tmp_path / "other"
    shutil.copytree(recorded.work, other, symlinks=True)
    words = [sys.executable, "-c", f"import os, shutil\n{IGNORED_WRITES}"]
    subprocess.run(words, cwd=other, check=True)
    inode = (recorded.work / "keep.txt").stat().st_ino
    with closing(recorded.prepare(mode, stays=True)) as execution:
        run(execution, IGNORED_WRITES)
        for place in (recorded.work, other):
            (place / "mine.log").write_text("meanwhile")
            (place / "sub/mine").write_text("meanwhile")
        execution.keep()
    assert (recorded.work / "keep.txt").stat().st_ino == inode
    for place in (recorded.work, other):
        assert (place / "closed").stat().st_mode & 0o777 == 0
        (place / "closed").chmod(0o700)
    assert snapshot(recorded.work) == snapshot(other)


REPLACING = (
    "shutil.rmtree('build'); os.mkdir('build'); open('build/new', 'w').write('new'); shutil.rmtree('sub');"
    " open('edit.txt', 'w').write('else'); os.unlink('keep.txt'); open('made', 'w').write('agent');"
    " open('run.sh', 'r+').close(); open('old.log', 'w').write('agent')"
)
OF_OTHERS = {
    name: f"work of the user: {name}"
    for name in ("build/users", "sub/users", "edit.txt", "keep.txt", "made", "run.sh", "old.log")
}


@pytest.mark.parametrize("recorded", ["not saved"], indirect=True)
@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_what_others_wrote_meanwhile_is_kept(recorded: Recorded, tmp_path: Path, mode: str) -> None:
    """Files in folders that the command removed, and files that it changed, too: these files, and the folders, are named."""
    require_overlay(recorded.work, tmp_path)
    (recorded.work / "build").mkdir()
    (recorded.work / "build/old").write_text("old")
    (recorded.work / "old.log").write_text("ignored")
    with closing(recorded.prepare(mode, stays=True)) as execution:
        run(execution, REPLACING)
        for name, text in OF_OTHERS.items():
            (recorded.work / name).write_text(text)
        written = [one for one in told(execution) if not one.endswith(".log")]
        kept = execution.keep()
    assert kept.left == [b"edit.txt", b"keep.txt", b"made", b"old.log", b"sub"]
    for name, text in OF_OTHERS.items():
        assert (recorded.work / name).read_text() == text
    assert (recorded.work / "build/new").read_text() == "new"
    assert not (recorded.work / "build/old").exists()
    assert not (recorded.work / "sub/a.txt").exists()
    assert sorted(written) == [
        *("changed edit.txt", "created build/new", "created made", "deleted build/old"),
        *("deleted keep.txt", "deleted sub/", "deleted sub/a.txt", "deleted sub/b.txt"),
    ]


INTO_FOLDERS: tuple[tuple[str, str, list[bytes]], ...] = (
    # what the command does, what somebody puts into a folder of before meanwhile, what is named
    ("shutil.rmtree('sub')", "sub/x.log", [b"sub"]),  # ignored or not
    ("shutil.rmtree('sub')", "sub/d/x", [b"sub"]),
    ("os.rmdir('empty')", "empty/x", [b"empty"]),
    ("shutil.rmtree('a')", "a/b/x", [b"a/b"]),
    ("shutil.copytree('sub', 'moved'); shutil.rmtree('sub')", "sub/x", [b"sub"]),
    ("shutil.rmtree('sub'); open('sub', 'w').close()", "sub/x", [b"sub"]),
    ("shutil.rmtree('sub'); os.mkdir('sub')", "sub/x", []),
    ("shutil.rmtree('sub')", "x", []),
)


@pytest.mark.parametrize("recorded", ["not saved"], indirect=True)
@pytest.mark.parametrize("mode", ["overlay", "copy"])
@pytest.mark.parametrize(
    ("program", "theirs", "left"), INTO_FOLDERS, ids=[f"{row[0]} {row[1]}" for row in INTO_FOLDERS]
)
def test_a_folder_that_others_wrote_in_is_not_told_as_removed(
    recorded: Recorded, tmp_path: Path, mode: str, program: str, theirs: str, left: list[bytes]
) -> None:
    """It stays with what is theirs, and is named."""
    require_overlay(recorded.work, tmp_path)
    (recorded.work / "a/b").mkdir(parents=True)
    with closing(recorded.prepare(mode, stays=True)) as execution:
        run(execution, program)
        (recorded.work / theirs).parent.mkdir(exist_ok=True)
        (recorded.work / theirs).write_text("theirs")
        kept = execution.keep()
    assert kept.left == left
    assert (recorded.work / theirs).read_text() == "theirs"


async def test_a_new_folder_with_the_inode_of_one_that_was_removed_is_not_renamed(
    tmp_path: Path,
) -> None:
    """`rmdir` and `mkdir`, as opposed to a rename."""
    work = tmp_path / "work"
    make_case(work)
    with Store.open(tmp_path / "store") as store:
        for name, renamed in (("made", 0), ("moved", 1)):
            (work / "empty").mkdir(exist_ok=True)
            (work / "empty/file").write_text("")
            recording = make_recording(store, Config(), work)
            if renamed:
                (work / "empty").rename(work / name)
                (work / name / "new").write_text("")
            else:
                shutil.rmtree(work / "empty")
                (work / name).mkdir()
            run = await store.runs.create(name, mode="record", at_ns=1)
            assert recording.finish(run.number)["folder"]["renamed"] == renamed


BESIDE_DELETED = (
    "open('edit.txt', 'w').write('else'); os.chmod('run.sh', 0o700); os.unlink('link'); os.symlink('run.sh', 'link');"
    " os.unlink('keep.txt'); os.chmod('empty', 0o700); open('empty/new', 'w').close(); os.unlink('sub/a.txt');"
    " os.mkdir('sub/a.txt'); shutil.rmtree('build'); open('build', 'w').write('new'); open('new', 'w').write('new')"
)


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("recorded", ["not saved"], indirect=True)
@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_what_others_deleted_meanwhile_stays_deleted(
    recorded: Recorded,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    *,
    exchanges: bool,
) -> None:
    """And is named, but for what the command deleted as well; also where the file system exchanges nothing."""
    require_overlay(recorded.work, tmp_path)
    if not exchanges:
        unable = OSError(errno.EINVAL, "no exchange here")
        monkeypatch.setattr(putting, "exchange", mock.Mock(side_effect=unable))
    (recorded.work / "build").mkdir()
    (recorded.work / "build/old").write_text("old")
    with closing(recorded.prepare(mode, stays=True)) as execution:
        run(execution, BESIDE_DELETED)
        for name in ("edit.txt", "run.sh", "link", "keep.txt"):
            (recorded.work / name).unlink()
        (recorded.work / "empty").rmdir()
        kept = execution.keep()
    assert kept.left == [b"edit.txt", b"empty", b"empty/new", b"link", b"run.sh"]
    gone = ("edit.txt", "run.sh", "link", "keep.txt", "empty")
    assert not any(os.path.lexists(recorded.work / name) for name in gone)
    assert (recorded.work / "sub/a.txt").is_dir()
    assert (recorded.work / "build").read_text() == "new"
    assert (recorded.work / "new").read_text() == "new"


@pytest.mark.parametrize("recorded", ["not saved"], indirect=True)
def test_what_others_wrote_meanwhile_is_not_listed(recorded: Recorded, tmp_path: Path) -> None:
    """Under an overlay the folder can change, and the command did not do that."""
    require_overlay(recorded.work, tmp_path)
    with closing(recorded.prepare("overlay")) as execution:
        run(
            execution,
            "shutil.rmtree('sub'); open('run.sh', 'r+').close(); open('made', 'w').close();"
            " open('edit.txt', 'w').close(); os.unlink('link'); os.symlink('run.sh', 'link')",
        )
        for name in ("sub/users", "run.sh", "made"):
            (recorded.work / name).write_text("work of the user")
        (recorded.work / "edit.txt").unlink()
        (recorded.work / "link").unlink()
        (recorded.work / "link").symlink_to("sub")
        assert sorted(told(execution)) == [
            *("changed edit.txt", "changed link", "created made"),
            *("deleted sub/", "deleted sub/a.txt", "deleted sub/b.txt"),
        ]


@pytest.mark.parametrize("mode", ["overlay", "copy", "in-place"])
def test_what_is_written_to_playheads_own_folders_is_not_kept(
    recorded: Recorded, tmp_path: Path, mode: str
) -> None:
    """A store in the folder is in use meanwhile; nothing in it is an effect of the command."""
    require_overlay(recorded.work, tmp_path)
    own = recorded.work / "own"
    own.mkdir()
    (own / "data").write_text("in use")
    left_out = frozenset([str(own)])
    with closing(recorded.prepare(mode, stays=True, left_out=left_out)) as execution:
        run(execution, "open('own/data', 'w').write('else'); open('own/new', 'w').close()")
        assert told(execution) == []
        execution.keep()
    found = {one.name: one.read_text() for one in own.iterdir()}
    assert found == ({"data": "else", "new": ""} if mode == "in-place" else {"data": "in use"})


@pytest.mark.parametrize("mode", ["overlay", "copy", "in-place"])
def test_a_file_that_is_ignored_from_now_on_is_not_gone(
    recorded: Recorded, tmp_path: Path, mode: str
) -> None:
    """Nothing happened to it."""
    require_overlay(recorded.work, tmp_path)
    with closing(recorded.prepare(mode)) as execution:
        run(execution, "open('.gitignore', 'a').write('keep.txt\\n')")
        assert told(execution) == ["changed .gitignore"]


def make_names(folder: Path) -> None:
    """Give a file two more names."""
    (folder / "h1").write_text("h")
    for name in ("h2", "sub/h3"):
        os.link(folder / "h1", folder / name)


APPEND = "open('h1', 'a').write(' more'); print(open('h2').read(), open('sub/h3').read())"


@pytest.mark.parametrize("recorded", ["not saved"], indirect=True)
def test_by_itself_a_folder_with_several_names_of_a_file_is_copied(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overlay would part them; who asks for one is told, and so is who cannot have a copy."""
    require_overlay(recorded.work, tmp_path)
    monkeypatch.setattr(module, "SMALL_ENTRIES", 3)
    make_names(recorded.work)
    with closing(recorded.prepare(stays=True)) as execution:
        assert execution.mode == "copy"
        assert any("are one file, which an overlay" in one for one in execution.said)
        assert run(execution, f"{APPEND}; os.link('keep.txt', 'kept')") == "h more h more\n"
        execution.keep()
    for one, other in (("h1", "h2"), ("h1", "sub/h3"), ("keep.txt", "kept")):
        assert (recorded.work / one).samefile(recorded.work / other)
    assert (recorded.work / "sub/h3").read_text() == "h more"
    with closing(recorded.prepare("overlay", stays=True)) as execution:
        assert any("--files copy keeps them together" in one for one in execution.said)
        run(execution, "open('new', 'w').write('x'); os.link('new', 'newer')")
        execution.keep()
    assert (recorded.work / "new").samefile(recorded.work / "newer")
    monkeypatch.setattr(module, "_MOST_COPIED", 3)
    with closing(recorded.prepare()) as execution:
        assert execution.mode == "overlay"
        assert any("--files copy keeps them together" in one for one in execution.said)


@pytest.mark.parametrize("known", [True, False])
async def test_names_of_one_file_are_that_in_a_folder_as_it_was(
    tmp_path: Path, *, known: bool
) -> None:
    """Also if they are parted by now. Of files that were young then, numbers are not known: then if they are one file now."""
    work = tmp_path / "work"
    make_case(work)
    make_names(work)
    with Store.open(tmp_path / "store") as store:
        recording = make_recording(store, override(Config(), {"save_files": "true"}), work)
        info = await store.runs.create("r", mode="record", at_ns=1)
        recording.finish(info.number)
        await store.runs.seal(info, reason="it ended", at_ns=2)
        start = store.folders.find(info)
        assert start is not None
        inode = (work / "h1").stat().st_ino if known else 0
        names = {
            path: start.entries[path]._replace(inode=inode) for path in (b"h1", b"h2", b"sub/h3")
        }
        store.folders.save(info.number, replace(start, entries={**start.entries, **names}))
        if known:
            (work / "h1").unlink()
        (work / "h1").write_text("later")
        again = Recorded(store, store.runs.reload(info), work)
        with closing(again.prepare("copy")) as execution:
            assert execution.restored
            assert run(execution, APPEND) == "h more h more\n"
        assert (work / "h2").read_text() == ("h" if known else "later")


@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_what_no_manifest_has_is_named_where_a_folder_is_seen_as_it_was(
    recorded: Recorded, tmp_path: Path, mode: str
) -> None:
    """It is there, as it is now: a package that was installed, and what an ignore file names."""
    require_overlay(recorded.work, tmp_path)
    (recorded.work / "edit.txt").write_text("else")
    (recorded.work / "node_modules").mkdir()
    (recorded.work / "new.log").write_text("x")
    with closing(recorded.prepare(mode)) as execution:
        assert execution.restored
        assert execution.unlisted == "what its manifest leaves out: new.log, node_modules"
        assert execution.said[0].endswith(f"as it was then, but for {execution.unlisted}")
        assert "node_modules" in run(execution, "print(os.listdir())")


@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_a_folder_that_was_changed_is_seen_as_it_was(
    recorded: Recorded, tmp_path: Path, mode: str
) -> None:
    """From what was saved; what is in the folder now is untouched, and said to differ."""
    require_overlay(recorded.work, tmp_path)
    run(Execution(Area(str(recorded.work)), "in-place"), f"{WRITING}; os.rename('sub', 'moved')")
    now = snapshot(recorded.work)
    with closing(recorded.prepare(mode)) as execution:
        seen = run(
            execution,
            "print(open('edit.txt').read(), *sorted(os.listdir()), *sorted(os.listdir('sub')))",
        )
        assert seen == "edit .gitignore edit.txt empty keep.txt link run.sh sub a.txt b.txt\n"
        assert execution.restored
        assert "as it was then" in execution.said[0]
        run(execution, "open('sub/a.txt', 'w').write('A'); os.unlink('run.sh')")
        assert told(execution) == ["deleted run.sh", "changed sub/a.txt"]
    assert snapshot(recorded.work) == now
    with pytest.raises(EngineError, match="--keep-writes expects the folder as it was recorded"):
        recorded.prepare(mode, stays=True)


def _sh(script: str, folder: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("mode", ["overlay", "copy"])
async def test_commits_of_a_work_tree_are_kept_with_its_files(tmp_path: Path, mode: str) -> None:
    """Git has them elsewhere; what others wrote there meanwhile stays, and is named."""
    git = "git -c user.email=a@b.example -c user.name=a"
    made = (
        f"{git} init -q -b one main; cd main; echo 1 > f; git add f; {git} commit -qm first;"
        " git worktree add -q ../tree -b other; git branch theirs"
    )
    _sh(made, tmp_path)
    tree, theirs = tmp_path / "tree", tmp_path / "main/.git/refs/heads/theirs"
    require_overlay(tree, tmp_path)
    area = Area(str(tree), (str(tmp_path / "main/.git"),))
    with Store.open(tmp_path / "store") as store:
        tape = await store.runs.create("r", mode="record", at_ns=1)
        await store.runs.seal(tape, reason="it ended", at_ns=2)
        wanted = Wanted(mode, stays=True)
        with closing(prepare(store, store.runs.reload(tape), area, wanted)) as execution:
            commit = f"{git} checkout -qb fix; echo 2 > f; {git} commit -qam second; git branch -qf theirs"
            run(execution, f"assert os.system({commit!r}) == 0")
            theirs.write_text("0" * 40 + "\n")
            kept = execution.keep()
    assert kept.left == [os.fsencode(theirs)]
    assert theirs.read_text() == "0" * 40 + "\n"
    theirs.unlink()
    assert _sh("git log --format=%s fix", tree).split() == ["second", "first"]
    assert (tree / "f").read_text() == "2\n"


@pytest.mark.parametrize("recorded", ["not saved"], indirect=True)
def test_without_contents_the_folder_is_seen_as_it_is(recorded: Recorded) -> None:
    """With a warning that names what differs."""
    (recorded.work / "edit.txt").write_text("else")
    with closing(recorded.prepare("copy")) as execution:
        assert run(execution, "print(open('edit.txt').read())") == "else\n"
        assert not execution.restored
        assert execution.differs == ["changed edit.txt"]
        assert "record with --save-files" in execution.said[0]


def test_what_the_recording_ignored_is_no_difference(recorded: Recorded, tmp_path: Path) -> None:
    """Also if nothing ignores it by now, as after a restore; the command sees it, as then."""
    require_overlay(recorded.work, tmp_path)
    (recorded.work / "x.log").write_text("ignored then")
    (recorded.work / ".gitignore").unlink()
    for mode in ("overlay", "copy"):
        with closing(recorded.prepare(mode)) as execution:
            assert execution.differs == ["gone .gitignore"]
            assert run(execution, "print(open('x.log').read())") == "ignored then\n"


def test_a_restore_goes_on_past_what_changed_meanwhile(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It restores the rest, names what stays, and is an error."""
    for name in ("edit.txt", "keep.txt"):
        (recorded.work / name).unlink()
    start = recorded.store.folders.find(recorded.run)
    assert start is not None

    def late(plan: Plan, read: Callable[[bytes], bytes]) -> Restored:
        (recorded.work / "keep.txt").write_text("mine")
        return apply_plan(plan, read)

    monkeypatch.setattr(working_folder_files, "apply_plan", late)
    config = override(Config(), {"store": str(recorded.store.path)})
    with pytest.raises(StoreError, match=r"and stays so: keep.txt; .*1 written"):
        working_folder_files.restore_folder(
            config, recorded.store, recorded.run, start, recorded.work, force=False
        )
    assert (recorded.work / "keep.txt").read_text() == "mine"
    assert (recorded.work / "edit.txt").read_text() == "edit"


def test_in_place_is_the_folder_itself(recorded: Recorded) -> None:
    """What is written is there, and listed."""
    with closing(recorded.prepare("in-place")) as execution:
        run(execution, WRITING)
        assert told(execution) == ["changed edit.txt", "deleted keep.txt", "created new.txt"]
    assert (recorded.work / "new.txt").exists()


def test_by_itself_a_small_folder_is_copied(recorded: Recorded) -> None:
    """It costs no more, and folders can be renamed in it."""
    with closing(recorded.prepare()) as execution:
        assert (execution.mode, execution.said) == ("copy", [])
        run(execution, "os.rename('sub', 'moved')")
        assert "created moved/" in told(execution)


def test_by_itself_a_large_folder_has_an_overlay(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But a copy where the recording renamed a folder."""
    require_overlay(recorded.work, tmp_path)
    monkeypatch.setattr(module, "SMALL_ENTRIES", 3)
    with closing(recorded.prepare()) as execution:
        assert execution.mode == "overlay"
    info = recorded.run
    start = recorded.store.folders.find(info)
    assert start is not None
    recorded.store.folders.save(info.number, replace(start, renamed=1))
    with closing(recorded.prepare()) as execution:
        assert execution.mode == "copy"
        assert "renamed a folder" in execution.said[0]


def test_where_there_is_no_overlay_the_fallback_and_its_cost_are_said(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the kernel's error; who asked for an overlay gets no other thing."""
    monkeypatch.setattr(module, "SMALL_ENTRIES", 3)
    failed = Tried("/var/tmp", 22, "Invalid argument")
    monkeypatch.setattr(module, "find_overlay", lambda *_, **__: Trial(None, [failed]))
    with closing(recorded.prepare()) as execution:
        assert execution.mode == "copy"
        assert "EINVAL: Invalid argument (/var/tmp)" in execution.said[0]
        assert "6 files, 0 MB, about 1 s" in execution.said[0]
    with pytest.raises(EngineError, match=r"no overlay over .*EINVAL"):
        recorded.prepare("overlay")


def test_without_namespaces_it_is_said_that_the_command_works_in_place(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of a sandbox, which says so itself; who asked for a copy gets no other thing."""
    failed = Tried("namespaces", 1, "Operation not permitted")
    monkeypatch.setattr(module, "try_namespace", lambda **_: failed)
    with closing(recorded.prepare(sandboxed=False)) as execution:
        assert execution.mode == "in-place"
        assert "no namespaces here" in execution.said[0]
        assert "EPERM" in execution.said[0]
    with pytest.raises(EngineError, match="cannot be an overlay or a copy"):
        recorded.prepare("copy", sandboxed=False)


def test_a_folder_too_large_for_a_copy_is_refused(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the command starts, with its size."""
    monkeypatch.setattr(module, "_MOST_COPIED", 3)
    with pytest.raises(EngineError, match=r"too large to be copied .*files") as refused:
        recorded.prepare("copy")
    assert "--in-place" in refused.value.hint


CHANGES = {
    "nothing": "pass",
    "another content": "open('edit.txt', 'w').write('else')",
    "a file is gone": "os.unlink('edit.txt')",
    "a file is new": "open('new.txt', 'w').write('x')",
    "another mode": "os.chmod('run.sh', 0o700)",
    "a file was touched, with the same content": "os.utime('edit.txt', (1, 1))",
    "an ignored file is new": "open('x.log', 'w').write('x')",
}


@pytest.mark.parametrize(
    "case", [one for one in DIFFERENCES if one.name in CHANGES], ids=lambda case: case.name
)
@pytest.mark.parametrize("recorded", ["saved", "not saved"], indirect=True)
def test_what_differs_is_said_first(recorded: Recorded, case: Difference) -> None:
    """By content and mode, as far as ignore files leave it in."""
    in_place = Execution(Area(str(recorded.work)), "in-place")
    run(in_place, CHANGES[case.name])
    with closing(recorded.prepare("copy")) as execution:
        assert execution.differs == ([case.says] if case.says else [])
        assert len(execution.said) == bool(case.says)


def test_another_folder_is_said(recorded: Recorded, tmp_path: Path) -> None:
    """It may be the same all the same: then there is nothing to say."""
    other = tmp_path / "other"
    make_case(other)
    (other / ".gitignore").write_text("*.log\n")
    there = Recorded(recorded.store, recorded.run, other)
    with closing(there.prepare("copy")) as execution:
        assert execution.differs == []
    (other / "edit.txt").write_text("else")
    with closing(there.prepare("copy")) as execution:
        assert execution.differs[0].startswith("another folder than")


async def test_what_a_recording_wrote_is_noted(tmp_path: Path) -> None:
    """Created, changed and deleted, and that a folder was renamed."""
    work = tmp_path / "work"
    make_case(work)
    with Store.open(tmp_path / "store") as store:
        recording = make_recording(store, Config(), work)
        info = await store.runs.create("r", mode="record", at_ns=1)
        run(Execution(Area(str(work)), "in-place"), f"{WRITING}; os.rename('sub', 'moved')")
        noted = recording.finish(info.number)
    rows = {(row[1], row[0]) for row in noted["file_effects"]}
    assert {("changed", "edit.txt"), ("deleted", "keep.txt"), ("created", "new.txt")} < rows
    assert noted["folder"]["renamed"] == 1
    assert noted["folder"]["files"] == 5


def cut_after(folders: int) -> contextlib.AbstractContextManager[object]:
    """Have each look at a folder end when so many folders were listed, as if there were no time for more."""

    def look_short(*given: object, **named: object) -> Manifest:
        steps = itertools.count()
        named |= {"work_clock": lambda: max(0, next(steps) - folders) * 100.0}
        return look(*given, **named)  # type: ignore[arg-type]

    return mock.patch.multiple(recording_module, look=look_short)


@pytest.mark.parametrize("mode", ["copy", "in-place"])
async def test_a_recording_that_did_not_list_all_says_so(tmp_path: Path, mode: str) -> None:
    """What is sure is listed. A replay takes nothing for new that the recording did not list, and says what it cannot compare."""
    work = tmp_path / "work"
    make_case(work)
    with Store.open(tmp_path / "store") as store:
        with cut_after(1):
            recording = make_recording(store, Config(), work)
            info = await store.runs.create("r", mode="record", at_ns=1)
            program = f"{WRITING}; open('sub/new.txt', 'w')"
            run(Execution(Area(str(work)), "in-place"), program)
            noted = recording.finish(info.number)
        await store.runs.seal(info, reason="it ended", at_ns=2)
        shutil.rmtree(work)
        make_case(work)
        tape = store.runs.reload(info)
        with closing(Recorded(store, tape, work).prepare(mode)) as execution:
            assert execution.differs == []
            assert ["sub/" in text for text in execution.uncompared] == [True]
            assert "not compared as a whole" in str(execution.said)
            assert not execution.find_written().cut
    rows = {(row[1], row[0]) for row in noted["file_effects"]}
    assert rows == {("changed", "edit.txt"), ("deleted", "keep.txt"), ("created", "new.txt")}
    assert "empty/, sub/ are not listed, because" in noted["folder"]["cut"]
    assert recording.manifest.unlisted == {b"empty", b"sub"}


async def test_a_replay_that_does_not_list_all_takes_nothing_for_gone(recorded: Recorded) -> None:
    """What was saved is looked at one by one, so that it can be put back."""
    (recorded.work / "sub" / "a.txt").unlink()
    short = Limits(time_s=-1)

    def look_short(*given: object, **named: object) -> Manifest:
        return look(*given, **(named | {"limits": short}))  # type: ignore[arg-type]

    with mock.patch.object(module, "look", look_short):
        area = Area(str(recorded.work))
        seen = module.compare(recorded.store, recorded.run, area, None, frozenset())
    assert seen.differs == ["gone sub/a.txt"]
    assert [one.path for one in seen.changes] == [b"sub/a.txt"]
    assert ["not listed" in text for text in seen.uncompared] == [True]


def test_no_room_is_said(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command was told ENOSPC, and the folder is untouched."""
    with closing(recorded.prepare("copy")) as execution:
        assert execution.find_full() == ""
        real = os.statvfs(execution.room)
        values = [*real]
        values[4] = 0
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(values))
        assert "ENOSPC" in execution.find_full()


def test_changes_are_of_three_kinds() -> None:
    """Receipts name them."""
    assert [one.value for one in Change] == ["created", "changed", "deleted"]
