"""Folders from which programs load code for a variable are copies in a sandbox; those of compilers are compared, too."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.proxy.sandbox.filesystem.code_path_variables import FILES, VARIABLES
from playhead.proxy.sandbox.filesystem.playhead_startup_paths import find_startup_places
from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

COMPARED = sorted(name for name, variable in VARIABLES.items() if variable.compared)
WRITE = """
import os, sys, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
for folder in sys.argv[1:]:
    os.makedirs(folder, exist_ok=True)
    open(folder + "/cc1", "w").close()
    print(os.listdir(folder))
"""


@pytest.mark.parametrize("name", COMPARED)
def test_what_is_in_a_folder_of_compilers_is_compared(name: str, tmp_path: Path) -> None:
    """And the folder itself where it is missing; a folder that is not absolute is the agent's."""
    variable = VARIABLES[name]
    folder = tmp_path / "there" / variable.inner
    folder.mkdir(parents=True)
    (folder / "cc1").touch()
    value = f"{tmp_path}/there"
    if variable.is_prefix:
        places = find_startup_places({name: f"{value}/"})
    else:
        places = find_startup_places({name: f"{value}:{tmp_path}/missing:relative"})
        assert os.path.normpath(tmp_path / "missing" / variable.inner) in places
    assert {os.path.normpath(folder), str(folder / "cc1")} <= places
    assert not any(path.endswith("/relative") for path in places)


@pytest.mark.parametrize("name", FILES)
def test_what_a_shell_runs_first_is_compared(name: str, tmp_path: Path) -> None:
    """A program that Playhead starts may be a script."""
    assert f"{tmp_path}/profile" in find_startup_places({name: f"{tmp_path}/profile"})


@pytest.fixture
def writing(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Replay a command that writes to folders of such variables."""
    for name in ("task", "tools", "perl"):
        (tmp_path / name).mkdir()
    with Store.open(tmp_path / "task/store") as opened:
        record_run(opened, "tape", [ask()])
    environ = {
        **os.environ,
        "COMPILER_PATH": f"{tmp_path}/tools",
        "PERL5LIB": f"{tmp_path}/perl:{tmp_path}/task/own",
    }

    def replay(*words: str, folders: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", "-c", WRITE, *(str(tmp_path / name) for name in folders)]
        given = [
            "replay",
            "tape",
            "--in-place",
            "--store",
            "store",
            "--receipt",
            "receipt.json",
            *words,
        ]
        return playhead(*given, "--", *command, cwd=tmp_path / "task", env=environ)

    return replay


def test_a_sandbox_has_copies_of_them(
    tmp_path: Path, writing: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """What is in the working folder is real: it is the agent's own."""
    need("a sandbox")
    done = writing(folders=("tools", "perl", "task/own"))
    assert (done.returncode, done.stdout) == (0, "['cc1']\n" * 3), done.stderr
    assert not list((tmp_path / "tools").iterdir())
    assert not list((tmp_path / "perl").iterdir())
    assert (tmp_path / "task/own/cc1").exists()


def test_a_program_of_a_compiler_that_appears_outside_of_a_sandbox_is_said(
    tmp_path: Path, writing: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The next start may compile with it."""
    done = writing("--no-sandbox", folders=("tools",))
    assert done.returncode == 125, done.stderr
    changed = json.loads((tmp_path / "task/receipt.json").read_text())["changed"]
    assert str(tmp_path / "tools/cc1") in {row["path"] for row in changed}
