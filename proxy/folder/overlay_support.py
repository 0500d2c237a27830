"""Where an overlay works: tried by mounting it in a process of its own, and said why not, with the kernel's error number.

An upper layer must be on a file system that can hold one (no overlayfs, as in containers, and no network file system), and
outside of the folder. Tried are, in this order: the store's disk, the user's cache, the temporary folder, and memory.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

from ... import __path__ as package_path
from ..sandbox.filesystem.mount_folder_copies import BIND, OVERLAY, find_mounts_in
from ..sandbox.filesystem.mountinfo import find_again, is_in, read_mounts
from ..sandbox.preflight import find_switch
from ..sandbox.run_on_folder_copies import START

_PATIENCE_S = 20.0
_YOUNG_NS = 60_000_000_000
_PREFIX = "playhead-folder-"
_OWN = "/playhead/folders"
"""A place of our own in the user's cache; not there before it is needed."""
_SHARED_MEMORY = "/dev/shm"
_MOST_MEMORY_KINDS = ("tmpfs", "ramfs")


class Tried(NamedTuple):
    """A place for layers that does not do."""

    place: str
    number: int
    text: str

    def __str__(self) -> str:
        """Say it, as `EINVAL: Invalid argument (/var/tmp)`."""
        name = errno.errorcode.get(self.number, str(self.number))
        return f"{name}: {self.text} ({self.place})"


def find_places(store: Path, folders: Iterable[str]) -> Iterator[str]:
    """Yield the folders in which layers may be put, the best first; none of them is in one of `folders`."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    given = [
        str(store.resolve().parent),
        cache + _OWN,
        tempfile.gettempdir(),
        "/var/tmp",
        os.environ.get("XDG_RUNTIME_DIR", ""),
        _SHARED_MEMORY,
    ]
    folders = tuple(folders)
    seen: set[str] = set()
    for place in filter(os.path.isabs, given):
        real = os.path.realpath(place)
        if real in seen or any(is_in(real, folder) for folder in folders):
            continue
        seen.add(real)
        yield real


def measure_free(place: str) -> int:
    """Give the bytes that are free for a folder of ours in a place; 0 where none can be made there."""
    if place.endswith(_OWN):  # it is made with its first folder
        while not os.path.lexists(place):
            place = os.path.dirname(place)
    try:
        free = os.statvfs(place)
    except OSError:
        return 0
    return free.f_bavail * free.f_frsize if os.access(place, os.W_OK | os.X_OK) else 0


@contextlib.contextmanager
def make_room(place: str) -> Iterator[str]:
    """Make a folder of this user's alone, and remove it with whatever is in it. Raises: OSError."""
    if place.endswith(_OWN):
        os.makedirs(place, 0o700, exist_ok=True)
    _remove_left(place)
    made = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
    # Held until this process ends, however it ends: then the next one removes what is left.
    held = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield made
    finally:
        remove_tree(made)
        os.close(held)


def _remove_left(place: str) -> None:
    """Remove what processes that were killed have left. A folder that was made just now may not be held yet: it stays."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for one in entries:
            if not one.name.startswith(_PREFIX) or not one.is_dir(follow_symlinks=False):
                continue
            told = one.stat(follow_symlinks=False)
            if told.st_uid != os.geteuid() or time.time_ns() - told.st_ctime_ns < _YOUNG_NS:
                continue
            with contextlib.suppress(OSError):
                held = os.open(
                    one.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                )
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(one.path)
                finally:
                    os.close(held)


def remove_tree(folder: str) -> None:
    """Remove a folder and what is in it, closed ones too: overlayfs leaves `work` with mode 000."""

    def open_up(_: object, path: str, __: object) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700) if stat.S_ISDIR(os.lstat(path).st_mode) else None
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    shutil.rmtree(folder, onexc=open_up)
    if os.path.lexists(folder):
        shutil.rmtree(folder, ignore_errors=True)


def is_in_memory(place: str) -> bool:
    """Say whether a folder is in memory."""
    holders = [one for one in read_mounts() if is_in(place, one.point)]
    return bool(holders) and max(holders, key=lambda one: len(one.point)).kind in _MOST_MEMORY_KINDS


def overlay_rows(
    folder: str,
    room: str,
    bases: Sequence[str] = (),
    *,
    number: int = 0,
    kept: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Make the mounts that put an overlay over a folder, and one over each file system that is mounted in it.

    room: where the upper layers go.
    bases: layers between the folder and the upper one, the uppermost first.
    number: tells the layers of several folders in one room apart.
    kept: folders in it that stay the real ones.
    """
    mounts = read_mounts()
    rows = []
    for at, target in enumerate((folder, *find_mounts_in(folder))):
        if not os.path.isdir(target):
            continue
        rows.append(
            {
                "kind": OVERLAY,
                "target": target,
                "layers": [*(bases if at == 0 else ()), target],
                "upper": _make(room, f"upper-{number}-{at}", target),
                "work": _make(room, f"work-{number}-{at}", target),
                "again": _find_again(target, folder, mounts) if at == 0 else [],
                "kept": _find_kept(folder, kept) if at == 0 else [],
            }
        )
    return rows


def bind_row(folder: str, source: str, *, kept: Sequence[str] = ()) -> dict[str, Any]:
    """Make the mount that puts another folder in the place of one.

    kept: folders in it that stay the real ones.
    """
    again = _find_again(folder, folder, read_mounts())
    stay = _find_kept(folder, kept)
    return {"kind": BIND, "target": folder, "source": source, "again": again, "kept": stay}


def _find_kept(folder: str, kept: Sequence[str]) -> list[str]:
    return sorted({one for one in map(os.path.realpath, kept) if is_in(one, folder)})


def _find_again(path: str, folder: str, mounts: Any) -> list[str]:
    found = find_again(path, mounts)
    return [one for one in found if os.path.isdir(one) and not is_in(one, folder)]


def _make(room: str, name: str, like: str) -> str:
    made = os.path.join(room, name)
    os.mkdir(made, 0o700)
    # The upper layer's own mode and time are those of the folder that is seen.
    told = os.stat(like)
    if name.startswith("upper"):
        os.chmod(made, stat.S_IMODE(told.st_mode))
        os.utime(made, ns=(told.st_atime_ns, told.st_mtime_ns))
    return made


def command_words(
    rows: Sequence[dict[str, Any]], hidden: Sequence[str], *, of_user: bool, variables: int = -1
) -> list[str]:
    """Give the words before a command that have it run on copies, in namespaces of its own.

    variables: descriptor of its variables, which is passed on; -1 where it inherits them.
    """
    given = dumps({"mounts": list(rows), "hidden": list(hidden)})
    kind = "user" if of_user else "root"
    return [sys.executable, *START, package_path[0], kind, given, str(variables)]


def try_overlay(folder: str, place: str, *, of_user: bool) -> Tried | None:
    """Mount an overlay over a folder with its upper layer in a place, and write to it; None where that works. Blocks, some 30 ms.

    Nothing of it is left, and nothing is written to the folder.
    """
    try:
        with make_room(place) as room:
            rows = overlay_rows(folder, room)
            words = command_words(rows, [], of_user=of_user)
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd="/",
                timeout=_PATIENCE_S,
                check=False,
            )
    except OSError as error:
        return Tried(place, error.errno or 0, error.strerror or str(error))
    except subprocess.SubprocessError as error:
        return Tried(place, 0, str(error))
    if done.returncode == 0:
        return None
    number, _, text = done.stderr.decode(errors="replace").strip().partition(" ")
    return Tried(place, int(number) if number.isdigit() else 0, text or "it ended")


class Trial(NamedTuple):
    """Where layers can be."""

    place: str | None
    """None where no overlay can be had."""
    tried: list[Tried]
    """Places that do not do."""


def find_overlay(store: Path, folder: str, folders: Iterable[str], *, of_user: bool) -> Trial:
    """Find where the layers of an overlay over a folder can be. Blocks.

    folders: those that layers must not be in, among them this one.
    """
    tried: list[Tried] = []
    for place in find_places(store, folders):
        failure = try_overlay(folder, place, of_user=of_user)
        if failure is None:
            return Trial(place, tried)
        tried.append(failure)
    return Trial(None, tried)


def try_namespace(*, of_user: bool) -> Tried | None:
    """Make namespaces in which something can be mounted; None where that works. Blocks, some 20 ms."""
    words = command_words([], [], of_user=of_user)
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Tried("namespaces", 0, str(error))
    if done.returncode == 0:
        return None
    number, _, text = done.stderr.decode(errors="replace").strip().partition(" ")
    return Tried("namespaces", int(number) if number.isdigit() else 0, text)


def explain(tried: Sequence[Tried]) -> str:
    """Say in a few words why no overlay can be had."""
    if not tried:
        return "no place for its layers outside of the folder"
    first = tried[0]
    if first.number in (errno.EPERM, errno.EACCES, errno.ENOSPC) and (switch := find_switch()):
        return f"user namespaces are off, {switch[0]}; {first}"
    return "; ".join(str(one) for one in tried[:2])
