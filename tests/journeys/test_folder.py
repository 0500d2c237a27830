"""A coding agent is replayed again and again: its folder stays as it is, each replay sees it as it was, and a step can be had back."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest

from playhead.tests.support import coding_agent, prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.folders import require_overlay, snapshot
from playhead.tests.support.needs import need
from playhead.tests.support.process import COMMAND, playhead, read_json

REPLAYS = 20 if FULL else 2
SECRET = "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2"


class _Answers(BaseHTTPRequestHandler):
    """Answers everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Project(NamedTuple):
    """A project in which an agent was recorded."""

    folder: Path
    start: Path
    """A copy of what it was before."""
    store: Path
    url: str

    def words(self, *flags: str | Path, more: tuple[str, ...] = ()) -> list[str]:
        """Give the command line of a replay."""
        agent = (sys.executable, "-B", coding_agent.__file__, self.url, *more)
        told = ("--store", self.store, "-q", "--sandbox", "none", *flags)
        return ["replay", "r", *map(str, told), "--", *agent]

    def replay(self, *flags: str | Path, more: tuple[str, ...] = ()) -> dict[str, Any]:
        """Replay the agent; give the receipt."""
        receipt = self.store.parent / "receipt.json"
        done = playhead(*self.words("--receipt", receipt, *flags, more=more), cwd=self.folder)
        assert receipt.is_file(), done.stderr
        told: dict[str, Any] = json.loads(receipt.read_text())
        return {**told, "stderr": done.stderr, "code": done.returncode}


def make_project(folder: Path) -> None:
    """Make a repository with a bug, a test and some data."""
    folder.mkdir()
    (folder / "sum.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_sum.py").write_text("from sum import add\nassert add(1, 2) == 3\n")
    (folder / "old.py").write_text("")
    (folder / ".gitignore").write_text(".env\n*.log\n")
    (folder / "data").mkdir()
    for at in range(20):
        (folder / "data" / f"{at}.txt").write_text(str(at))
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    for words in (
        ["init", "-q"],
        ["config", "gc.auto", "0"],
        ["add", "-A"],
        ["commit", "-qm", "begin"],
    ):
        subprocess.run([need("git"), *who, *words], cwd=folder, check=True)
    (folder / ".env").write_text(f"KEY={SECRET}\n")
    (folder / "settings.txt").write_text(f"key: {SECRET}\n")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A recording with savepoints."""
    place = tmp_path_factory.mktemp("coding")
    make_project(place / "work")
    shutil.copytree(place / "work", place / "start", symlinks=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        made = Project(
            place / "work",
            place / "start",
            place / "store",
            f"http://127.0.0.1:{server.server_address[1]}",
        )
        flags = ["--store", str(made.store), "--run", "r", "--transaction", "-q"]
        agent = [sys.executable, "-B", coding_agent.__file__, made.url]
        done = playhead("record", *flags, "--", *agent, cwd=made.folder)
        assert done.returncode == 0, done.stderr
        assert "not saved (secret): settings.txt" in done.stderr
        yield made
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_replays_leave_the_folder_as_it_is_and_see_it_as_it_was(
    project: Project, mode: str
) -> None:
    """In a row: tree and repository are the same, byte by byte, and every one is faithful."""
    require_overlay(project.folder, project.store.parent)
    before = snapshot(project.folder)
    for _ in range(REPLAYS if mode == "overlay" else 1):
        told = project.replay("--files", mode, "--compare", "stdout,files")
        assert (told["faithful"], told["code"]) == (True, 0), told["stderr"]
        assert told["folder"]["mode"] == mode
        assert told["folder"]["restored"]
        assert any(one.startswith("commit ") for one in told["folder"]["differs"])
        assert "it is played on the folder as it was then" in told["stderr"]
        rows = [(one["change"], one["path"]) for one in told["file_effects"]]
        assert [row for row in rows if not row[1].startswith(".git/")] == [
            ("created", "notes/"),
            ("created", "notes/done.txt"),
            ("deleted", "old.py"),
            ("changed", "sum.py"),
        ]
        assert snapshot(project.folder) == before
    assert SECRET.encode() not in b"".join(
        path.read_bytes() for path in project.store.rglob("*") if path.is_file()
    )


def test_two_replays_at_once_do_not_see_each_other(project: Project) -> None:
    """Each has a folder of its own."""
    require_overlay(project.folder, project.store.parent)
    before = snapshot(project.folder)
    words = [*COMMAND, *project.words("--files", "overlay")]
    both = [
        prepared.start(words, cwd=project.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for one in both:
        out, err = one.communicate(timeout=60)
        assert one.returncode == 0, err
        assert out == b"0 mend\nbegin\n\n"
    assert snapshot(project.folder) == before


def test_a_step_can_be_had_back(project: Project, tmp_path: Path) -> None:
    """In another folder, and compared; work that no savepoint has is not overwritten."""
    told = read_json("files", "r", "--store", project.store)
    assert [row["at"] for row in told["savepoints"]] == ["1", "2", "3", "end"]
    assert told["unsaved"] == {"secret": 1}
    diff = read_json("files", "r", "--store", project.store, "--diff", "1", "2")
    # Git may write its index at any step: it looks again at files as young as the index is.
    paths = [one["path"] for one in diff["changes"] if not one["path"].startswith(".git/")]
    assert paths == ["notes/", "notes/done.txt", "old.py", "sum.py"]
    other = tmp_path / "other"
    flags = ("--store", project.store, "--at", "2", "--restore", other)
    done = playhead("files", "r", *flags)
    assert done.returncode == 0, done.stderr
    found = snapshot(other)
    assert (other / "sum.py").read_text().endswith("a + b\n")
    assert not (other / "old.py").exists()
    at_start = snapshot(project.start)
    same = {path for path in at_start if found.get(path) == at_start[path]}
    # What was not saved is taken from the folder itself, where that still has it.
    assert at_start.keys() - same - {".git/index"} == {".env", "old.py", "sum.py"}
    (other / "sum.py").write_text("an hour's work")
    again = playhead("files", "r", *flags)
    assert again.returncode == 2
    assert "would be lost, for no savepoint has it: sum.py" in again.stderr
    assert "--force" in again.stderr
    # Rules of now do not make it less of a loss.
    (other / "sum.py").write_bytes((project.folder / "sum.py").read_bytes())
    (other / "notes/done.txt").write_text("another hour's work")
    (other / ".gitignore").write_text(".env\n*.log\nnotes/\n")
    once_more = playhead("files", "r", *flags)
    assert once_more.returncode == 2
    assert "notes/done.txt" in once_more.stderr
    assert (other / "notes/done.txt").read_text() == "another hour's work"


def test_a_restore_does_not_write_into_a_store(project: Project, tmp_path: Path) -> None:
    """Nor does `--force`."""
    store = tmp_path / "data"
    shutil.copytree(project.store, store)
    done = playhead("files", "r", "--store", store, "--restore", tmp_path, "--force")
    assert done.returncode == 2
    assert "Playhead's own files are there" in done.stderr
    assert not (store / "0.txt").exists()
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--at", "2", "--restore", "FILE"), "is no folder"),
        (("--at", "soon"), "'soon' is no step of a run"),
        (("--diff", "1", "2", "--at", "2"), "--diff compares two steps"),
        (("--force",), "--force goes with --restore"),
    ],
)
def test_what_cannot_be_done_is_said(
    project: Project, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    """And nothing is written."""
    (tmp_path / "file").write_text("x")
    words = tuple(word.replace("FILE", str(tmp_path / "file")) for word in words)
    done = playhead("files", "r", "--store", project.store, *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert (tmp_path / "file").read_text() == "x"


def test_an_agent_that_does_something_else_to_files_is_told(project: Project) -> None:
    """Where that is asked for; a folder can be renamed on a copy."""
    told = project.replay("--files", "copy", "--compare", "files", more=("rename",))
    assert told["code"] == 121
    assert ("created", "moved/") in [(one["change"], one["path"]) for one in told["file_effects"]]


FILLING = """
import json, sys, urllib.request
urllib.request.urlopen(sys.argv[1], b"{}").read()
try:
    with open("big.bin", "wb") as file:
        file.write(bytes(8 << 20))
    print(0)
except OSError as error:
    print(error.errno)
"""


def test_no_room_for_what_is_written_is_told_to_the_command(
    project: Project, tmp_path: Path
) -> None:
    """The command gets ENOSPC, the receipt says why, the folder is untouched."""
    need("root", "private mounts")
    work, small = tmp_path / "work", tmp_path / "small"
    work.mkdir()
    small.mkdir()
    (work / "agent.py").write_text(FILLING)
    agent = [sys.executable, "-B", "agent.py", project.url]
    store = ("--store", ".playhead", "-q")
    done = playhead("record", *store, "--run", "r", "--", *agent, cwd=work)
    assert done.stdout == "0\n", done.stderr
    before = snapshot(work / "..")
    script = f'mount -t tmpfs -o size=2m none {small} || exit 77; exec "$@"'
    flags = ("--sandbox", "none", "--files", "overlay", "--receipt", str(tmp_path / "receipt"))
    words = [*COMMAND, "replay", "r", *store, *flags, "--", *agent]
    played = prepared.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *words],
        cwd=work,
        env={**os.environ, "XDG_CACHE_HOME": str(small)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert played.stdout.decode() == "28\n", played.stderr
    receipt = json.loads((tmp_path / "receipt").read_text())
    (said,) = receipt["folder"]["said"][1:] or receipt["folder"]["said"]
    assert "there is no room for the command's writes" in said
    assert "ENOSPC" in said
    after = {path: one for path, one in snapshot(work / "..").items() if ".playhead" not in path}
    assert after.items() - before.items() == {("receipt", after["receipt"])}


KEEPING = """
import os, sys, urllib.request
urllib.request.urlopen(sys.argv[1], b"{}").read()
os.unlink("gone.txt")
if sys.argv[2:]:
    with open("big.bin", "wb") as file:
        file.write(bytes(8 << 20))
"""


def test_writes_that_there_is_no_room_to_keep_leave_the_folder_as_it_is(
    project: Project, tmp_path: Path
) -> None:
    """None of them is kept, and that is said."""
    need("root", "private mounts")
    work = tmp_path / "work"
    work.mkdir()
    agent = [sys.executable, "-B", "agent.py", project.url]
    store = ["--store", str(tmp_path / "store"), "-q"]
    flags = ["--sandbox", "none", "--files", "overlay", "--keep-writes"]
    receipt = ["--receipt", str(tmp_path / "receipt")]
    record = shlex.join([*COMMAND, "record", *store, "--run", "r", "--", *agent])
    replay = shlex.join([*COMMAND, "replay", "r", *store, *flags, *receipt, "--", *agent, "more"])
    script = f"""
mount -t tmpfs -o size=4m none {work} || exit 77
cd {work}
printf %s {shlex.quote(KEEPING)} > agent.py
touch gone.txt
{record} || exit 78
touch gone.txt
{replay}
echo $?
ls -A
"""
    played = prepared.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert played.stdout.decode().split() == ["125", "agent.py", "gone.txt"], played.stderr
    folder = json.loads((tmp_path / "receipt").read_text())["folder"]
    assert folder["kept"] == 0
    assert "were not kept (No space left on device)" in folder["said"][-1]
    assert "is as it was" in played.stderr.decode()


WRITING = """
import os, sys, urllib.request
urllib.request.urlopen(sys.argv[1], data=b"{}").close()
for name in ("a.txt", "new.txt"):
    with open(name, "w") as file:
        file.write("agent")
for place in sys.argv[2:]:
    open(place, "w").close()  # waits for a reader
"""


def test_what_you_change_while_a_command_runs_is_not_overwritten(
    project: Project, tmp_path: Path
) -> None:
    """It is named, in the receipt too, and the command ends with 125."""
    work, written = tmp_path / "work", tmp_path / "written"
    work.mkdir()
    (work / "agent.py").write_text(WRITING)
    (work / "a.txt").write_text("orig")
    os.mkfifo(written)
    agent = ["--", sys.executable, "-B", "agent.py", project.url]
    store = ["--store", str(tmp_path / "store"), "-q"]
    assert playhead("record", *store, "--run", "r", *agent, cwd=work).returncode == 0
    (work / "new.txt").unlink()
    flags = ["--sandbox", "none", "--keep-writes", "--receipt", str(tmp_path / "receipt")]
    with ThreadPoolExecutor() as threads:
        played = threads.submit(playhead, "replay", "r", *store, *flags, *agent, written, cwd=work)
        written.read_text()
        (work / "a.txt").write_text("yours")
        done = played.result()
    assert done.returncode == 125, done.stderr
    assert "changed or was removed while the command ran, and stays so: a.txt;" in done.stderr
    folder = json.loads((tmp_path / "receipt").read_text())["folder"]
    assert "stays so: a.txt" in folder["said"][-1]
    assert folder["kept"] == 1
    assert (work / "a.txt").read_text() == "yours"
    assert (work / "new.txt").read_text() == "agent"


def test_a_repository_elsewhere_is_said_to_be_as_it_is_now(tmp_path: Path) -> None:
    """Of a work tree of `git worktree` the files come back, and its commits do not."""
    need("git")
    git = "git -c user.email=a@b.example -c user.name=a"
    script = (
        f"{git} init -q main; cd main; echo 1 > f; git add f; {git} commit -qm first;"
        " git worktree add -q ../tree -b other"
    )
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    agent = [
        "--",
        "sh",
        "-c",
        f"cat f; git log -1 --format=%s; echo 2 > f; {git} commit -qam second",
    ]
    told, tree = ["--store", str(tmp_path / "store"), "-q"], tmp_path / "tree"
    done = playhead("record", *told, "--run", "r", "--save-files", *agent, cwd=tree)
    assert done.returncode == 0, done.stderr
    receipt = tmp_path / "receipt.json"
    words = ["--receipt", str(receipt), "--sandbox", "none", *agent]
    done = playhead("replay", "r", *told[:2], *words, cwd=tree)
    assert done.stdout.split()[:2] == ["1", "second"], done.stderr
    assert "and the commits and the index as they are now" in done.stderr.replace(
        ", and on", ", and"
    )
    folder = json.loads(receipt.read_text())["folder"]
    assert (folder["restored"], folder["elsewhere"]) == (True, [str(tmp_path / "main/.git")])
    assert f"git's repository at {tmp_path / 'main/.git'} as it is now" in done.stderr


_GONE = "because the folder was gone"


@pytest.mark.parametrize("gone_first", [True, False])
def test_a_folder_that_vanishes_while_it_is_recorded_is_unknown(
    project: Project, tmp_path: Path, *, gone_first: bool
) -> None:
    """In the receipt, and later in `playhead files`: nobody takes it for unchanged, or the run for killed."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("a")
    post = (
        "import sys, urllib.request;"
        " urllib.request.urlopen(urllib.request.Request(sys.argv[1], b'{}', method='POST')).read()"
    )
    words = [sys.executable, "-c", post, project.url]
    steps = [f"rm -rf {shlex.quote(str(work))}", shlex.join(words)]
    script = "; ".join(["cd /", *(steps if gone_first else reversed(steps))])
    store, receipt = ["--store", str(tmp_path / "store")], tmp_path / "receipt.json"
    flags = ["--run", "r", "--transaction", "--receipt", str(receipt)]
    done = playhead("record", *store, *flags, "--", "sh", "-c", script, cwd=work)
    assert done.returncode == 0, done.stderr
    assert f"files: what the command wrote is not known, {_GONE}" in done.stderr
    assert "b'" not in done.stderr
    told = json.loads(receipt.read_text())
    assert (told["file_effects"], told["file_effects_omitted"]) == (None, None)
    assert told["folder"]["unknown"] == "the folder was gone"
    for at in ("end", "1"):
        shown = playhead("files", "r", *store, "--at", at)
        assert shown.returncode == 0, shown.stderr
        assert (_GONE in shown.stderr) == (at == "end" or gone_first)
    listed = playhead("files", "r", *store)
    assert _GONE in listed.stdout


@pytest.mark.parametrize("linked", [False, True])
def test_a_command_below_the_root_of_a_repository_sees_all_of_it(
    tmp_path: Path, *, linked: bool
) -> None:
    """Also where it sees nothing else of the machine; a folder whose `.git` is no repository of its own stays unseen, and is named."""
    need("git")
    need("bubblewrap")
    git = "git -c user.email=a@b.example -c user.name=a"
    script = (
        f"{git} init -q main; cd main; mkdir -p pkg/in; echo r > root; echo f > pkg/in/f; git add -A; {git} commit -qm first;"
        " git worktree add -q ../tree -b other"
    )
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    top = tmp_path / ("tree" if linked else "main")
    agent = "cat ../../root; git log -1 --format=%s; mv ../../root .; cd ../..; git status --short"
    told = ["--store", str(tmp_path / "store")]
    words = ["--", "sh", "-c", agent]
    recorded = playhead("record", *told, "--run", "r", "--save-files", *words, cwd=top / "pkg/in")
    assert recorded.stdout.split()[:2] == ["r", "first"], recorded.stderr
    (top / "pkg/in/root").rename(top / "root")
    flags = ["--sandbox-files", "--compare", "stdout,files"]
    done = playhead("replay", "r", *told, *flags, *words, cwd=top / "pkg/in")
    assert done.stdout == recorded.stdout, done.stderr
    assert "diverged" not in done.stderr
    assert (top / "root").read_text() == "r\n"
    if not linked:
        (top / ".git/HEAD").rename(top / "no-head")
        done = playhead("replay", "r", *told, *flags, *words, cwd=top / "pkg/in")
        assert done.stdout != recorded.stdout
        assert f"of the work tree {top} the command sees its working folder alone" in done.stderr
