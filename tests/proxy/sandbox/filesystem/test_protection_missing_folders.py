"""Folders that the next start loads from, and that were missing when the command started; libraries that were rewritten."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

PLANT = """
import os, sys, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()
for path in sys.argv[1:]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.unlink(path)
    with open(path, "w") as file:
        file.write("planted")
    print(os.path.getsize(path))
"""
Replay = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def planting(tmp_path: Path) -> Replay:
    """Replay a command that writes files, in a home without any folder of Playhead's."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    with Store.open(tmp_path / "work/store") as opened:
        record_run(opened, "tape", [ask()])
    environ = {
        **os.environ,
        "HOME": str(tmp_path / "home"),
        # So nothing but Playhead itself makes the folder.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environ.pop("XDG_CACHE_HOME", None)

    def replay(*flags: str, paths: list[Path], **more: str) -> subprocess.CompletedProcess[str]:
        words = [
            "replay",
            "tape",
            "--in-place",
            "--store",
            "store",
            "--receipt",
            "receipt.json",
            *flags,
            "--",
        ]
        words += [sys.executable, "-S", "-c", PLANT, *map(str, paths)]
        return playhead(*words, cwd=tmp_path / "work", env={**environ, **more})

    return replay


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("home/.cache/playhead/clock-planted.so", ""),
        ("bytecode/x/json.pyc", "PYTHONPYCACHEPREFIX"),
    ],
)
def test_what_appears_in_a_missing_folder_is_written_to_a_copy(
    tmp_path: Path, planting: Replay, name: str, variable: str
) -> None:
    """The next start would load it: Playhead makes the folder first, so that it can be copied."""
    need("a sandbox")
    more = {variable: str(tmp_path / "bytecode")} if variable else {}
    done = planting(paths=[tmp_path / name], **more)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    assert not (tmp_path / name).exists()


def test_a_preload_library_that_was_rewritten_outside_of_a_sandbox_is_said(
    tmp_path: Path, planting: Replay
) -> None:
    """It is loaded into every program of the next command."""
    library = tmp_path / "home/.cache/playhead/clock-kept.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"library")
    done = planting("--no-sandbox", paths=[library])
    assert done.returncode == 125, done.stderr
    changed = json.loads((tmp_path / "work/receipt.json").read_text())["changed"]
    assert str(library) in {row["path"] for row in changed}
