"""Which folders a command works in: its working folder, with the repository around it, which git writes to.

Source: gitrepository-layout(5): `.git` is a folder, or a file that names one; `commondir` in that names what work trees share.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

_MOST_BYTES = 4096
_SHARED = ("/", "/home", "/root", "/tmp", "/var/tmp")
"""Folders that hold files of more than one task."""


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


class Around(NamedTuple):
    """The work tree around a working folder, as a command sees it that sees nothing else of the machine."""

    folder: str = ""
    """Empty where the command does not see it, or there is none."""
    why_not: str = ""
    """Why it does not, as the rest of a sentence that begins with "because"; empty where it does, or there is none."""


def find_around(area: Area, working: str, home: str) -> Around:
    """Decide whether a command in a working folder sees the work tree around it.

    Anybody may put a `.git` into `/tmp`: that opens nothing. As git does, only that of the same user counts. Source: git-config(1),
    `safe.directory`.
    """
    working, git = os.path.realpath(working), os.path.join(area.folder, ".git")
    if area.folder == working:
        return Around()
    shared = (home or "/", *_SHARED, tempfile.gettempdir(), os.environ.get("TMPDIR", ""))
    if any(_is_in(os.path.realpath(one), area.folder) for one in shared if os.path.isabs(one)):
        return Around(why_not="it contains the home folder, or one for temporary files")
    users = {os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        users.add(int(os.environ["SUDO_UID"]))
    with contextlib.suppress(OSError):
        is_own = all(os.lstat(one).st_uid in users for one in (area.folder, git))
        if not is_own:
            return Around(why_not="it belongs to another user")
        if _is_repository(git) if os.path.isdir(git) else find_linked(area):
            return Around(area.folder)
    return Around(why_not="its .git is no repository of this folder")


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
