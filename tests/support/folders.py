"""Folders for tests: made from words, compared byte by byte, and with commands that run on copies of them."""

import os
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from playhead.proxy.folder.overlay_support import (
    command_words,
    make_room,
    overlay_rows,
    try_overlay,
)
from playhead.tests.support.folder_cases import WRITES

PROGRAM = """
import os, shutil, socket, sys
top = os.getcwd()
for at, program in enumerate(sys.argv[1:]):
    os.chdir(f"{top}/c{at}")
    exec(program)
"""
"""Runs each program in a folder of its own."""


def require_overlay(folder: Path, place: Path, *, of_user: bool = True) -> None:
    """Skip where no overlay can be mounted."""
    if tried := try_overlay(str(folder), str(place), of_user=of_user):
        pytest.skip(f"no overlay here: {tried}")


def make_case(folder: Path) -> None:
    """Make the folder that the programs of `WRITES` run in."""
    folder.mkdir(parents=True)
    (folder / "keep.txt").write_text("keep")
    (folder / "edit.txt").write_text("edit")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "sub").mkdir()
    for name in "ab":
        (folder / "sub" / f"{name}.txt").write_text(name)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("keep.txt")


def snapshot(folder: Path | str) -> dict[str, str]:
    """Give what is in a folder, by path: kind, mode, and content or target."""
    found = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            told = os.lstat(path)
            said = f"{stat.filemode(told.st_mode)} "
            if stat.S_ISLNK(told.st_mode):
                said += os.readlink(path)
            elif stat.S_ISREG(told.st_mode):
                said += sha256(Path(path).read_bytes()).hexdigest()
            found[os.path.relpath(path, folder)] = said
    return found


def write_cases(
    folder: Path, room: str, *, of_user: bool, by_copy: bool
) -> list[dict[str, object]]:
    """Run the programs of `WRITES` on an overlay over a folder with a folder for each; give its mounts.

    by_copy: those too that an overlay of an ordinary user refuses.
    """
    rows = overlay_rows(str(folder), room)
    programs = [one.program if by_copy or not one.by_copy else "pass" for one in WRITES]
    words = [
        *command_words(rows, [room], of_user=of_user),
        sys.executable,
        "-c",
        PROGRAM,
        *programs,
    ]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return rows


__all__ = ["make_case", "make_room", "require_overlay", "snapshot", "write_cases"]
