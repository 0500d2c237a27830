"""What a command wrote to stdout and which files it changed are kept with its run, and compared where that is asked for."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support import prepared
from playhead.tests.support.process import COMMAND, playhead

SAYS = "import os, stat, sys; mode = os.fstat(1).st_mode; print(os.isatty(1), stat.S_IFMT(mode), flush=True)"


def _command(store: Path, *words: str) -> list[str]:
    return [*COMMAND, "record", "-q", "--run", "r", "--store", str(store), "--", *words]


def _receipt(store: Path, run: str) -> dict[str, Any]:
    done = playhead("receipt", run, "--json", "--store", store)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("kind", ["pipe", "file", "appended", "nothing"])
def test_a_command_sees_the_stdout_that_it_has_without_playhead(tmp_path: Path, kind: str) -> None:
    """A pipe, a file or a device, with every byte in its place; all but the device is hashed."""
    said = []
    for name, words in (("alone", []), ("recorded", _command(tmp_path / "store"))):
        out = tmp_path / f"{name}.out"
        out.write_bytes(b"before\n")
        where = {"pipe": subprocess.PIPE, "nothing": subprocess.DEVNULL}.get(kind)
        with out.open("ab" if kind == "appended" else "r+b") as file:
            file.seek(3)
            stdout = file if where is None else where
            program = [sys.executable, "-S", "-c", SAYS]
            with prepared.start(
                [*words, *program], stdout=stdout, stderr=subprocess.PIPE
            ) as started:
                written, err = started.communicate()
        assert started.returncode == 0, err
        said.append(written if kind == "pipe" else out.read_bytes())
    assert said[0] == said[1]
    told = _receipt(tmp_path / "store", "r")["stdout"]
    if kind == "nothing":
        assert told is None
    else:
        assert told["bytes"] == len(b"False 4096\n" if kind == "pipe" else b"False 32768\n")


def test_a_terminal_stays_the_terminal(tmp_path: Path) -> None:
    """It is not hashed: nobody but the person has what was written to it."""
    ours, theirs = pty.openpty()
    try:
        words = [*_command(tmp_path / "store"), sys.executable, "-S", "-c", SAYS]
        with prepared.start(words, stdout=theirs, stderr=subprocess.PIPE) as started:
            _, err = started.communicate()
        assert started.returncode == 0, err
        assert os.read(ours, 100).startswith(b"True ")
    finally:
        os.close(ours)
        os.close(theirs)
    assert _receipt(tmp_path / "store", "r")["stdout"] is None


def test_a_reader_that_leaves_ends_the_command_as_without_playhead(tmp_path: Path) -> None:
    """The pipe that the command has is closed with the one that it stands for."""
    program = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\nwhile True: print('x' * 1000)"
    words = [*_command(tmp_path / "store"), sys.executable, "-S", "-c", program]
    reader, writer = os.pipe()
    started = prepared.start(words, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert os.read(reader, 5) == b"xxxxx"
    os.close(reader)
    _, err = started.communicate(timeout=30)
    assert started.returncode == 128 + 13, err


PROGRAM = """
import pathlib, sys
pathlib.Path("made").mkdir(exist_ok=True)
if sys.argv[1] != "nothing":
    pathlib.Path("made/report.txt").write_text(sys.argv[1])
if len(sys.argv) > 3:
    pathlib.Path("made/more.txt").write_text(sys.argv[3])
if sys.argv[2] == "program":
    pathlib.Path("made/report.txt").chmod(0o755)
print(sys.argv[2])
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that has one run, `r`, the folder in which its program worked, and what it made there."""
    folder = tmp_path_factory.mktemp("outputs")
    work = folder / "work"
    work.mkdir()
    flags: list[str | Path] = ["-q", "--run", "r", "--store", folder / "store"]
    words = ["record", *flags, "--", sys.executable]
    done = playhead(*words, "-S", "-c", PROGRAM, "paid", "refunded", cwd=work)
    assert done.returncode == 0, done.stderr
    shutil.copytree(work / "made", folder / "made")
    return folder


@pytest.mark.parametrize(
    ("now", "compare", "places"),
    [
        (("paid", "refunded"), "stdout,files", []),
        (("paid", "denied"), "stdout", ["stdout"]),
        (("paid", "denied"), "files", []),
        (("open", "refunded"), "files", ["files"]),
        (("open", "refunded"), "stdout", []),
        (("open", "denied"), "stdout,files", ["stdout", "files"]),
        (("paid", "refunded", "more"), "files", ["files"]),
        (("nothing", "refunded"), "files", ["files"]),
        (("paid", "program"), "files", ["files"]),
    ],
)
def test_stdout_and_files_are_compared_where_that_is_asked_for(
    recording: Path, tmp_path: Path, now: tuple[str, ...], compare: str, places: list[str]
) -> None:
    """Each names what it was then and is now; a file that is as it was is no difference, where the command has written it."""
    receipt, work = tmp_path / "receipt.json", recording / "work"
    shutil.rmtree(work / "made")
    shutil.copytree(recording / "made", work / "made")
    flags: list[str | Path] = ["-q", "--store", recording / "store", "--receipt", receipt]
    flags += ["--no-sandbox", "--compare", compare]
    words = ["replay", *flags, "r", "--", sys.executable, "-S", "-c", PROGRAM]
    done = playhead(*words, *now, cwd=work)
    assert receipt.is_file(), done.stderr
    told = json.loads(receipt.read_text())
    found = [one for row in told["divergences"] for one in row["differences"]]
    assert [one["place"] for one in found] == places
    for one in found:
        assert one["recorded"] != one["asked"]


def test_a_word_that_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    """The error says which words there are."""
    done = playhead("replay", "--compare", "stdin", "--store", tmp_path, "r", "--", "true")
    assert done.returncode == 125
    assert "stdout or files" in done.stderr
