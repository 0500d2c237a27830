"""Which folders a command works in: its working folder, with the repository around it, which git writes to.

Source: gitrepository-layout(5): `.git` is a folder, or a file that names one; `commondir` in that names what work trees share.
"""

import contextlib
import os
from typing import NamedTuple

_MOST_BYTES = 4096


class Area(NamedTuple):
    """Folders; paths are absolute and hold no links."""

    folder: str
    """The work tree that the working folder is in, else the working folder."""
    also: tuple[str, ...] = ()
    """Folders elsewhere that git writes to for this work tree."""

    @property
    def folders(self) -> tuple[str, ...]:
        """All of them."""
        return (self.folder, *self.also)

    def find_within(self, working: str) -> bytes:
        """Give the path of the working folder in the first of them; empty where it is that one."""
        within = os.path.relpath(os.path.realpath(working), self.folder)
        return b"" if within == "." else os.fsencode(within)


def find_area(working: str, home: str) -> Area:
    """Find the folders for a working folder.

    home: the home folder; it is never taken for a work tree around another folder.
    """
    working, home = os.path.realpath(working), os.path.realpath(home or "/")
    top = _find_top(working)
    if top is None:
        return Area(working)
    outside = top in ("/", home) and top != working
    folder = working if outside else top
    places = {f"{top}/.git".replace("//", "/")} if outside else set()
    git = os.path.join(top, ".git")
    if os.path.isfile(git):
        places = set(_find_elsewhere(git))
    found = sorted(path for path in places if not _is_in(path, folder) and os.path.isdir(path))
    also = [one for one in found if not any(_is_in(one, other) for other in found if other != one)]
    return Area(folder, tuple(one for one in also if not _is_in(folder, one)))


def _find_top(working: str) -> str | None:
    while not os.path.lexists(os.path.join(working, ".git")):
        above = os.path.dirname(working)
        if above == working:
            return None
        working = above
    return working


def _find_elsewhere(file: str) -> list[str]:
    """Give the folders that a `.git` file leads to."""
    found = []
    with contextlib.suppress(OSError, ValueError):
        line = _first_line(file)
        if line.startswith("gitdir:"):
            folder = os.path.realpath(
                os.path.join(os.path.dirname(file), line.removeprefix("gitdir:").strip())
            )
            found.append(folder)
            common = _first_line(os.path.join(folder, "commondir"))
            found.append(os.path.realpath(os.path.join(folder, common)))
    return found


def _first_line(file: str) -> str:
    with open(file, errors="surrogateescape") as opened:
        return opened.readline(_MOST_BYTES).rstrip("\n")


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
