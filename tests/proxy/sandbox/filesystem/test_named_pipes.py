"""Named pipes where a command works are found, and lead to nobody outside."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from playhead.proxy.sandbox.filesystem import named_pipes
from playhead.proxy.sandbox.filesystem.named_pipes import (
    Search,
    Where,
    find_used,
    is_used,
    search,
)
from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

WRITE = """
import os, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
for name in ("pipe", "inner/again"):
    try:
        os.write(os.open(name, os.O_WRONLY | os.O_NONBLOCK), b"leaked")
    except OSError as error:
        print(name, error.errno)
os.mkfifo("own")
reading = os.open("own", os.O_RDONLY | os.O_NONBLOCK)
os.write(os.open("own", os.O_WRONLY), b"own")
print(os.read(reading, 9))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pipe, a second name of it in a folder below, and other files."""
    (tmp_path / "inner" / "deeper").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe")
    os.link(tmp_path / "pipe", tmp_path / "inner" / "again")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("pipe")
    return tmp_path


def test_pipes_are_found_by_each_of_their_names(folder: Path) -> None:
    """Not by links; nor in folders that are left out."""
    names = {str(folder / "pipe"), str(folder / "inner" / "again")}
    pipes, left = search([str(folder)], [])
    assert (set(pipes), left) == (names, [])
    pipes, left = search([str(folder)], [str(folder / "inner")])
    assert (pipes, left) == ([str(folder / "pipe")], [])
    assert search([str(folder / "missing")], []) == ([], [])


def test_a_search_ends_where_its_budget_does(folder: Path) -> None:
    """What was not looked through is named."""
    pipes, left = search([str(folder)], [], most_entries=1)
    assert pipes == [str(folder / "pipe")]
    assert left == [str(folder / "inner")]
    assert search([str(folder)], [], most_s=0)[1] == [str(folder)]


def test_a_search_runs_beside_the_proxy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, from the working folder on."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(folder))
    begun = Search(Where.of({"HOME": str(folder), "TMPDIR": str(folder)}, ["/tmp/x"]))
    found = begun.result()
    begun.close()
    assert str(folder / "pipe") in found.pipes


def test_pipes_that_were_made_or_written_to_are_found_afterwards(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those that were closed to the command, nor those that nobody touched."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(folder))
    environ = {"HOME": str(folder), "TMPDIR": str(folder)}
    pipe, again = str(folder / "pipe"), str(folder / "inner" / "again")
    for path in (pipe, again):
        os.utime(path, (0, 0))
    since_ns = os.stat(pipe).st_ctime_ns + 1

    def used(*known: str) -> set[str]:
        found, _ = find_used(Where.of(environ, ["/tmp", "/var/tmp"]), known, since_ns)
        return {path for path in found if path.startswith(str(folder))}

    assert used() == set()
    os.mkfifo(folder / "inner" / "new")
    os.utime(folder / "inner" / "new", ns=(since_ns, since_ns))
    assert used() == {str(folder / "inner" / "new")}
    os.utime(pipe, ns=(since_ns, since_ns))
    assert used(pipe) == {str(folder / "inner" / "new"), again}
    assert not is_used(str(folder / "missing"), 0)
    assert not is_used(str(folder / "file"), 0)


def test_a_pipe_that_a_program_waits_at_is_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has it open yet when the command starts; what the command makes itself works."""
    need("a sandbox")
    with Store.open(folder / "store") as opened:
        record_run(opened, "tape", [ask()])
    monkeypatch.chdir(folder)
    words = [sys.executable, "-S", "-c", "import sys; print(open('pipe', 'rb').read(), flush=True)"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as reader:
        done = playhead(
            "replay",
            "tape",
            "--in-place",
            "--store",
            "store",
            "--receipt",
            "receipt.json",
            "--",
            sys.executable,
            "-S",
            "-c",
            WRITE,
        )
        # A program outside finds it as it was.
        with open("pipe", "wb") as file:
            file.write(b"later")
        out, _ = reader.communicate(timeout=20)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["pipe", "6", "inner/again", "6", "b'own'"]
    assert out == b"b'later'\n"
    told = json.loads(Path("receipt.json").read_text())["sandbox"]
    assert "pipes_unsearched" in told
    assert told["pipes_used"] == [str(folder / "own")]


def test_a_replay_beside_pipes_that_cannot_be_closed_is_not_plainly_faithful(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are known, and within reach: the receipt says so and names them."""
    need("a sandbox")
    with Store.open(folder / "store") as opened:
        record_run(opened, "tape", [ask()])
    many = folder / "many" / ("x" * 200)
    many.mkdir(parents=True)
    for number in range(300):
        os.mkfifo(many / str(number))
    (folder / "playhead.yaml").write_text("sandbox: {pipe_search: 1s}\n")
    monkeypatch.chdir(folder)
    words = ["replay", "tape", "--store", "store", "--receipt", "receipt.json", "--"]
    asking = WRITE.split("for name")[0]
    done = playhead(*words, sys.executable, "-S", "-c", asking)
    assert done.returncode == 0, done.stderr
    told = json.loads(Path("receipt.json").read_text())
    assert told["sandbox"]["pipes_open"]
    assert not told["faithful"]
    assert told["faithful_but_for"] == ["named pipes that could not be closed"]
    assert "named pipes within reach" in done.stderr


def test_pipes_that_are_too_many_are_said_to_be_left(folder: Path) -> None:
    """Whoever made them keeps nobody from a sandbox."""
    pipes = [f"{folder}/inner/{number}" for number in range(100)]
    kept, left, too_many = named_pipes.cut(
        [str(folder / "pipe"), *pipes], ["/srv"], most_bytes=1000
    )
    assert kept == [str(folder / "pipe"), *pipes[: len(kept) - 1]]
    assert 0 < len(kept) < 100
    assert left == [str(folder / "inner"), "/srv"]
    assert too_many == pipes[len(kept) - 1 :][:20]
    assert named_pipes.cut(pipes, []) == (pipes, [], [])
