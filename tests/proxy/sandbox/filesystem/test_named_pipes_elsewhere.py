"""Named pipes that are not where a command works: of what it sees with `--sandbox-files` none leads out, also to who comes later."""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.proxy.sandbox.filesystem.named_pipes import Where, search
from playhead.proxy.sandbox.kernel import landlock
from playhead.store import Store
from playhead.tests.support.machine import SOMEBODY
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

WRITE = """
import os, sys, time, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
print("begun", file=open("begun", "w"))
while not os.path.exists("opened"):
    time.sleep(0.02)
for path in sys.argv[1:]:
    try:
        os.write(os.open(path, os.O_RDWR | os.O_NONBLOCK), b"leaked")
    except OSError as error:
        print(error.errno)
os.makedirs("inner", exist_ok=True)
os.rename("begun", "inner/begun")
print("said", file=open("/dev/stderr", "w"))
"""
"""Waits until somebody outside has opened the pipes, then writes to them."""


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder of programs, with a pipe that anybody may write to."""
    need("root")
    made = Path(tempfile.mkdtemp(dir="/opt"))
    made.chmod(0o755)
    os.mkfifo(made / "pipe")
    (made / "pipe").chmod(0o666)
    yield made
    shutil.rmtree(made)


@contextlib.contextmanager
def opened_later(pipes: list[Path], work: Path) -> Iterator[list[bytes]]:
    """Open the other ends of pipes once a command has begun; give what came out of them in the end."""
    came: list[bytes] = []
    over = threading.Event()

    def read() -> None:
        while not (work / "begun").exists():
            if over.wait(0.02):
                return
        ends = [os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) for pipe in pipes]
        (work / "opened").write_text("")
        over.wait()
        for end in ends:
            came.append(os.read(end, 100))
            os.close(end)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield came
    finally:
        over.set()
        reader.join()


def test_what_is_seen_with_files_has_no_pipe_that_leads_out(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in a folder of the system, nor in one of programs in the empty home; and the command works as ever."""
    need("bubblewrap")
    work, programs = tmp_path / "work", tmp_path / "programs"
    work.mkdir()
    programs.mkdir()
    os.mkfifo(programs / "pipe")
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    pipes = [elsewhere / "pipe", programs / "pipe"]
    words = [
        "replay",
        "tape",
        "--in-place",
        "--store",
        str(tmp_path / "store"),
        "--receipt",
        "receipt.json",
    ]
    with opened_later(pipes, work) as came:
        done = playhead(
            *words, "--sandbox-files", "--", sys.executable, "-S", "-c", WRITE, *map(str, pipes)
        )
    assert done.returncode == 0, done.stderr
    assert came == [b"", b""]
    assert "said\n" in done.stderr
    told = json.loads(Path("receipt.json").read_text())
    assert {str(programs), "/opt"} <= {*told["sandbox"]["copied"]}
    assert told["sandbox"]["pipes_unsearched"] == told["sandbox"]["read_only"] == []
    assert told["contained_but_for"] == []
    if told["sandbox"]["landlock"]:
        assert done.stdout.split()[0] == "13"


def test_a_pipe_that_was_in_reach_is_in_the_verdict(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `--sandbox-files` it is found and closed, or the receipt does not say plainly that nothing left."""
    with Store.open(tmp_path / "store") as opened:
        record_run(opened, "tape", [ask()])
    monkeypatch.chdir(tmp_path)
    pipe = elsewhere / "pipe"
    words = ["replay", "tape", "--in-place", "--store", "store", "--receipt", "receipt.json", "--"]
    with opened_later([pipe], tmp_path) as came:
        done = playhead(*words, sys.executable, "-S", "-c", WRITE, str(pipe))
    assert done.returncode == 0, done.stderr
    told = json.loads(Path("receipt.json").read_text())
    assert came == [b""] or told["contained_but_for"], told["sandbox"]


def test_the_rest_of_the_machine_is_searched_after_what_is_near(tmp_path: Path) -> None:
    """Folder by folder; where there was no time for it, that is what is named first."""
    near, far, last = tmp_path / "near", tmp_path / "far", tmp_path / "far" / "last"
    for folder in (near / "inner", last):
        folder.mkdir(parents=True)
        os.mkfifo(folder / "pipe")
    given = [str(far), str(last)]
    found = [str(near / "inner" / "pipe"), str(last / "pipe")]
    assert search([str(near)], [], far=given) == (found, [])
    assert search([str(near)], [], far=given, most_entries=1)[1][0] == str(far)
    where = Where.of({}, ["/nowhere"])
    assert where.far[0] == "/"
    assert Where.of({}, [], working_only=True)[:2] == ([os.path.realpath(os.getcwd())], ())


def test_a_folder_that_can_be_entered_and_not_listed_is_named(tmp_path: Path) -> None:
    """Whoever knows the name of a pipe in it can open it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "pipe")
    folder.chmod(0o311)
    if os.geteuid() == 0:
        os.chown(tmp_path, SOMEBODY, SOMEBODY)
        os.chown(folder, SOMEBODY, SOMEBODY)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            os.chdir(tmp_path)
            if os.geteuid() == 0:
                os.setuid(SOMEBODY)
            os.write(write, repr(search(["folder"], [])).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000) == b"([], ['folder'])"
    os.close(read)
    os.close(write)


def test_landlock_is_done_without_where_the_kernel_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is restricted, and the caller is told."""

    class Old:
        def syscall(self, *_: object) -> int:
            return -1

    monkeypatch.setattr(landlock, "_libc", Old())
    assert not landlock.restrict_writing(["/"])
