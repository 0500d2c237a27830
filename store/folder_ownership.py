"""Whose a folder is: what is private stands in a real folder of this user's own, or nothing is written to it."""

import itertools
import os
import stat
from collections.abc import Callable
from pathlib import Path

from .errors import StoreError


def make_own_folder(folder: Path, mode: int = 0o700) -> list[Path]:
    """Make a folder, and those above it that are not there; nobody but this user writes to those, whatever its mask.

    mode: of the folder itself; those above may be entered and read by others.
    Gives those that were made.
    Raises: OSError.
    """
    made = list(itertools.takewhile(lambda one: not one.exists(), (folder, *folder.parents)))
    for one in reversed(made):
        one.mkdir(mode=mode if one == folder else 0o755, exist_ok=True)
    if not made:
        folder.mkdir(exist_ok=True)  # says what it is, where that is no folder
    return made


def require_own_folder(folder: Path) -> None:
    """Refuse a folder that is a link, or another user's; one that is not there yet is as good.

    Raises: StoreError.
    """
    _require(folder, stat.S_ISDIR, "a folder")


def require_own_contents(folder: Path) -> None:
    """Refuse a folder of secrets of which anything is a link, or another user's.

    One that is not there yet is as good.
    Raises: StoreError.
    """
    require_own_folder(folder)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # it is not there; or whoever opens it says why it cannot
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            require_own_contents(path)
            continue
        require_own_file(path)


def require_own_file(file: Path) -> None:
    """Refuse a file that is a link, or another user's; one that is not there yet is as good.

    Raises: StoreError.
    """
    _require(file, stat.S_ISREG, "a file")


def _require(path: Path, is_right: Callable[[int], bool], what: str) -> None:
    try:
        found = path.lstat()
    except OSError:  # it is not there; or whoever opens it says why it cannot
        return
    if stat.S_ISLNK(found.st_mode):
        raise StoreError(
            f"{str(path)!r} is a link to {os.readlink(path)!r}; expected {what} that is there itself",
            "replace the link by the folder it leads to, or name another store with --store",
        )
    if not is_right(found.st_mode):
        raise StoreError(
            f"{str(path)!r} is something else; expected {what}",
            "move it away, or name another store with --store",
        )
    if found.st_uid != os.geteuid():
        raise StoreError(
            f"{str(path)!r} belongs to user {found.st_uid}; this is user {os.geteuid()}",
            f"run it as user {found.st_uid}, give the whole store to this user with chown -R, or name another"
            " with --store",
        )
