"""Which folders a command works in: its working folder, with the repository around it, which git writes to.

Source: gitrepository-layout(5): `.git` is a folder, or a file that names one; `commondir` in that names what work trees share.
"""

import contextlib
import os
from collections.abc import Iterator
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
            common = "."  # a submodule shares nothing
            with contextlib.suppress(FileNotFoundError):
                common = _first_line(os.path.join(folder, "commondir"))
            found.append(os.path.realpath(os.path.join(folder, common)))
    return found


def _first_line(file: str) -> str:
    with open(file, errors="surrogateescape") as opened:
        return opened.readline(_MOST_BYTES).rstrip("\n")


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def find_linked(area: Area) -> tuple[str, ...]:
    """Give the folders elsewhere whose own files say that this work tree is theirs, as `git worktree` and submodules write them.

    A command may have written any path into the `.git` file of its folder: that alone opens nothing to it.
    """
    git = os.path.join(area.folder, ".git")
    if not os.path.isfile(git):
        return ()
    with contextlib.suppress(OSError, ValueError):
        own, common, *_ = _find_elsewhere(git)
        if common != own:
            back = os.path.join(own, _first_line(os.path.join(own, "gitdir")))
            # By its path: `.git` may be a link to, or a second name of, that of another work tree.
            is_linked = (
                _is_in(own, os.path.join(common, "worktrees"))
                and os.path.realpath(os.path.dirname(back)) == area.folder
            )
        else:
            is_linked = any(os.path.samefile(place, area.folder) for place in _find_work_trees(own))
        if is_linked and _is_repository(common):
            return tuple(one for one in area.also if one in (own, common))
    return ()


def _find_work_trees(git: str) -> Iterator[str]:
    """Yield the folders that are named as the work tree in the settings of a repository. Source: git-config(1), `core.worktree`."""
    for name in ("config", "config.worktree"):
        with (
            contextlib.suppress(OSError),
            open(os.path.join(git, name), errors="surrogateescape") as file,
        ):
            for line in file.read(_MOST_BYTES).splitlines():
                key, _, value = line.partition("=")
                place = os.path.join(git, value.strip().strip('"'))
                if key.strip().lower() == "worktree" and os.path.isdir(place):
                    yield place


def _is_repository(folder: str) -> bool:
    return os.path.isfile(f"{folder}/HEAD") and all(
        os.path.isdir(f"{folder}/{name}") for name in ("objects", "refs")
    )
