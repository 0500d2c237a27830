"""Why a command cannot be started, and what to type instead: by cause."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from playhead.proxy.processes.unstartable_command import explain_start

VENV = "its environment (venv) active?"
CAUSES: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("misspelled", ("pyhton", "a.py"), "no such program in PATH", "did you mean 'python'?"),
    ("unknown", ("zzzzqqqq",), "no such program in PATH", VENV),
    ("in this folder", ("run.py", "x"), "no such program in PATH", "-- python run.py x"),
    ("in this folder, executable", ("go.sh",), "no such program in PATH", "-- ./go.sh"),
    ("no file", ("./nothing",), "no such file", "the path is looked up from "),
    ("below a file", ("./run.py/x",), "no such file", "the path is looked up from "),
    ("no right", ("./run.py", "x"), "(Permission denied)", "-- python ./run.py x"),
    ("no right, no kind", ("./plain",), "(Permission denied)", "chmod +x ./plain"),
    ("a folder", ("./folder",), "it is a folder", "name a program"),
    ("one word", ("python agent.py",), "one word with blanks", "-- python agent.py"),
    ("one word, more", ("python -u", "a.py"), "one word with blanks", "-- python -u a.py"),
    ("variable", ("KEY=secret", "python", "a.py"), "it sets a variable", "-- env KEY=... python"),
    ("no first line", ("./go.sh",), "it has no first line", "-- sh ./go.sh"),
    ("no interpreter", ("./lost.py",), "not there: /no/such/py", "-- python ./lost.py"),
    ("no name", ("",), "is empty", "a variable of your shell"),
)
"""A command, what is wrong with it, and a part of the hint."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with files of each kind, to work in."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "folder").mkdir()
    for name, text, mode in (
        ("programs/python", "#!/bin/sh\n", 0o755),
        ("run.py", "print(1)\n", 0o644),
        ("plain", "x\n", 0o644),
        ("go.sh", "echo 1\n", 0o755),
        ("lost.py", "#!/no/such/py -u\n", 0o755),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    return tmp_path


def refused(command: tuple[str, ...]) -> int:
    """Give the error number with which the kernel refuses a command; 0 where it runs."""
    try:
        subprocess.run(command, check=False, env=os.environ)
    except OSError as error:
        return error.errno or 0
    return 0


@pytest.mark.parametrize(("command", "why", "hint"), [row[1:] for row in CAUSES])
def test_each_cause_has_its_remedy(
    command: tuple[str, ...], why: str, hint: str, folder: Path
) -> None:
    """As it is found after the kernel has refused it; what is assigned to a variable is not shown."""
    number = refused(command)
    error = explain_start(command, number, os.strerror(number))
    assert str(error).startswith("cannot start ")
    assert why in str(error)
    assert hint in error.hint
    assert "secret" not in f"{error} {error.hint}"
    assert "after --" not in error.hint
    assert error.command == command


def test_the_hint_for_a_script_works(folder: Path) -> None:
    """What is advised is run, as typed."""
    error = explain_start(["./go.sh"], errno.ENOEXEC, "Exec format error")
    words = error.hint.partition("-- ")[2]
    done = subprocess.run(f"/bin/{words}", shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_script_with_the_line_ends_of_windows(folder: Path) -> None:
    """Its interpreter is another name to the kernel."""
    (folder / "w.py").write_bytes(b"#!/usr/bin/python3\r\n")
    error = explain_start(["./w.py"], errno.ENOENT, "No such file or directory")
    assert "CR LF" in str(error)
    assert "sed -i" in error.hint


def test_what_a_sandbox_does_not_show_is_not_called_missing(folder: Path) -> None:
    """It is here; the sandbox has other files."""
    inside = explain_start(["python"], errno.ENOENT, "No such file", is_sandboxed=True)
    assert "the sandbox does not show it" in str(inside)
    assert "--sandbox-files" in inside.hint


def test_other_errors_are_told_as_the_kernel_names_them(folder: Path) -> None:
    """With a remedy where there is one."""
    error = explain_start(["python", "x"], errno.E2BIG, "Argument list too long")
    assert str(error) == "cannot start 'python': Argument list too long"
    assert "standard input" in error.hint
    error = explain_start(["python"], errno.ENOMEM, "Cannot allocate memory")
    assert (str(error), error.hint) == ("cannot start 'python': Cannot allocate memory", "")
