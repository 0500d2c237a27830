"""What a command wrote to stdout and which files it changed are kept with its run, and compared where that is asked for."""

import json
import os
import pty
import shutil
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support import prepared
from playhead.tests.support.needs import need
from playhead.tests.support.process import COMMAND, playhead

SAYS = "import os, stat, sys; mode = os.fstat(1).st_mode; print(os.isatty(1), stat.S_IFMT(mode), flush=True)"


WAYS = [pytest.param((), id="no sandbox"), pytest.param(("--capture",), id="sandbox")]
"""Flags of `record`: in the sandbox the command is no child of ours, and has its stdout from another process."""
EXPECTED = {"pipe": b"False 4096\n", "file": b"False 32768\n", "appended": b"False 32768\n"}
"""What the command says of a stdout that is hashed."""


def _command(store: Path, *words: str, flags: tuple[str, ...] = ()) -> list[str]:
    return [*COMMAND, "record", "-q", *flags, "--run", "r", "--store", str(store), "--", *words]


def _receipt(store: Path, run: str) -> dict[str, Any]:
    done = playhead("receipt", run, "--json", "--store", store)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("flags", WAYS)
@pytest.mark.parametrize("kind", [*EXPECTED, "nothing"])
def test_a_command_sees_the_stdout_that_it_has_without_playhead(
    tmp_path: Path, kind: str, flags: tuple[str, ...]
) -> None:
    """A pipe, a file or a device, with every byte in its place; all but the device is hashed."""
    if flags:
        need("a sandbox")
    said = []
    for name, words in (("alone", []), ("recorded", _command(tmp_path / "store", flags=flags))):
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
        text = EXPECTED[kind]
        assert told == {"hash": blake2b(text, digest_size=16).hexdigest(), "bytes": len(text)}


@pytest.mark.parametrize("flags", WAYS)
def test_a_file_with_both_outputs_is_hashed_without_stderr(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """`> log 2>&1` holds what we say, too, and that may be another thing in each replay."""
    if flags:
        need("a sandbox")
    words = [*COMMAND, "record", *flags, "--run", "r", "--store", str(tmp_path / "store"), "--"]
    program = "import os; os.write(2, b'err\\n'); os.write(1, b'out\\n')"
    log = tmp_path / "log"
    with log.open("wb") as file:
        with prepared.start(
            [*words, sys.executable, "-S", "-c", program], stdout=file, stderr=file
        ) as started:
            started.communicate()
        assert started.returncode == 0
    assert {b"err", b"out"} <= {*log.read_bytes().splitlines()}
    expected = blake2b(b"out\n", digest_size=16).hexdigest()
    assert _receipt(tmp_path / "store", "r")["stdout"] == {"hash": expected, "bytes": 4}


@pytest.mark.parametrize("flags", WAYS)
def test_a_terminal_stays_the_terminal(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """It is not hashed: nobody but the person has what was written to it."""
    if flags:
        need("a sandbox")
    ours, theirs = pty.openpty()
    try:
        words = [*_command(tmp_path / "store", flags=flags), sys.executable, "-S", "-c", SAYS]
        with prepared.start(words, stdout=theirs, stderr=subprocess.PIPE) as started:
            _, err = started.communicate()
        assert started.returncode == 0, err
        assert os.read(ours, 100).startswith(b"True ")
    finally:
        os.close(ours)
        os.close(theirs)
    assert _receipt(tmp_path / "store", "r")["stdout"] is None


@pytest.mark.parametrize("flags", WAYS)
def test_a_command_without_stdout_is_told_as_one_that_cannot_be_compared(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Something stands for the closed file, as no file of ours may get its number."""
    if flags:
        need("a sandbox")
    words = [*_command(tmp_path / "store", flags=flags), sys.executable, "-S", "-c", "print(1)"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *words], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
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


MODES = """
import os, sys
for name in ("made", "made.log"):
    open(name, "w").write("x")
    os.chmod(name, int(sys.argv[1], 8))
os.mkdir("folder", int(sys.argv[1], 8) | 0o100)
"""


@pytest.mark.parametrize("flags", [(), ("--no-sandbox",)], ids=["sandbox", "no sandbox"])
def test_modes_are_compared_where_the_umask_is_the_same(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Whole; with another umask only whether it is a program."""
    if not flags:
        need("a sandbox")
    work, receipt = tmp_path / "work", tmp_path / "receipt.json"
    work.mkdir()
    (work / ".gitignore").write_text("*.log\n")
    words: list[str | Path] = ["-q", "--store", tmp_path / "store", "--receipt", receipt]
    program = [sys.executable, "-S", "-c", MODES]
    done = playhead("record", *words, "--save-files", "--run", "r", "--", *program, "644", cwd=work)
    assert done.returncode == 0, done.stderr
    seen = {}
    for umask in (0o22, 0o77):
        for mode in ("644", "666", "600", "755"):
            receipt.unlink()
            asked = ["replay", *words, *flags, "--compare", "files", "r", "--", *program, mode]
            again = prepared.run([*COMMAND, *asked], cwd=work, umask=umask)
            assert receipt.is_file(), again.stderr
            told = json.loads(receipt.read_text())
            seen[umask, mode] = [
                one["asked"] for row in told["divergences"] for one in row["differences"]
            ]
    assert not seen[0o22, "644"]
    for mode in ("666", "600", "755"):
        assert len(seen[0o22, mode]) == 1
        assert f":{mode}" in seen[0o22, mode][0] or "mode" in seen[0o22, mode][0]
    for mode in ("644", "666", "600"):
        assert not seen[0o77, mode]
    assert len(seen[0o77, "755"]) == 1


@pytest.mark.parametrize(("now", "places"), [("refunded", []), ("denied", ["stdout"])])
def test_a_pipe_is_compared_in_the_sandbox(
    recording: Path, tmp_path: Path, now: str, places: list[str]
) -> None:
    """A replay as in CI, where nobody gives a flag: another text is a divergence, the same text none."""
    need("a sandbox")
    receipt = tmp_path / "receipt.json"
    flags: list[str | Path] = ["-q", "--store", recording / "store", "--receipt", receipt]
    words = ["replay", *flags, "--compare", "stdout", "r", "--", sys.executable, "-S", "-c"]
    done = playhead(*words, f"print('{now}')", cwd=recording / "work")
    assert done.stdout == f"{now}\n", done.stderr
    told = json.loads(receipt.read_text())
    assert told["stdout"]["bytes"] == len(now) + 1
    assert [one["place"] for row in told["divergences"] for one in row["differences"]] == places


def test_a_word_that_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    """The error says which words there are."""
    done = playhead("replay", "--compare", "stdin", "--store", tmp_path, "r", "--", "true")
    assert done.returncode == 125
    assert "stdout or files" in done.stderr
