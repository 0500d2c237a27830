"""What protects files of the machine from a command: copies to write to, and mounts that nobody can move.

Runs inside, before rights are given up; `protection` decides what is to be protected.
"""

import os
import stat
from collections.abc import Iterable, Mapping

from ..kernel.syscalls import (
    MS_BIND,
    MS_NOATIME,
    MS_NODEV,
    MS_NODIRATIME,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_RELATIME,
    MS_REMOUNT,
    mount,
    unmount,
)
from .mountinfo import is_in, is_in_reach, read_mounts

_STAGE = "/dev/.copies"
"""Where copies are laid out: in the sandbox's own folder of devices."""
_KEPT = (
    # of statvfs, of mount: what a mount from outside has, it cannot lose in here
    (os.ST_RDONLY, MS_RDONLY),
    (os.ST_NOSUID, MS_NOSUID),
    (os.ST_NODEV, MS_NODEV),
    (os.ST_NOEXEC, MS_NOEXEC),
    (os.ST_NOATIME, MS_NOATIME),
    (os.ST_NODIRATIME, MS_NODIRATIME),
    (os.ST_RELATIME, MS_RELATIME),
)


def pin(folders: Iterable[str]) -> None:
    """Have nobody rename or remove these. Raises: OSError."""
    for folder in folders:
        mount(folder, folder, flags=MS_BIND | MS_REC)


def hold(folders: Iterable[str]) -> dict[str, int]:
    """Open folders that something is about to be mounted over. Raises: OSError."""
    return {folder: os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in folders}


def cover(overlaid: Iterable[str], kept: Mapping[str, int]) -> list[str]:
    """Have folders be copies that are written to in memory; but for those in them that stay real.

    kept: descriptors by folder, as `hold` gave them; they are closed.
    Gives the folders of which no copy could be made: these can be read only.
    Raises: OSError.
    """
    if not overlaid and not kept:
        return []
    locked = []
    os.mkdir(_STAGE, 0o700)
    mount("tmpfs", _STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "size=50%,mode=755")
    for index, folder in enumerate(sorted((*overlaid, *kept))):
        if folder in kept:
            os.makedirs(folder, 0o755, exist_ok=True)
            mount(f"/proc/self/fd/{kept[folder]}", folder, flags=MS_BIND | MS_REC)
            os.close(kept[folder])
        elif not _copy(folder, f"{_STAGE}/{index}"):
            mount(folder, folder, flags=MS_BIND | MS_REC)
            lock_all(folder)
            locked.append(folder)
    unmount(_STAGE)
    os.rmdir(_STAGE)
    return locked


def _copy(folder: str, stage: str) -> bool:
    """Mount a copy of a folder over it; say whether that could be done. Source: Linux, filesystems/overlayfs.rst."""
    if any(character in folder for character in ",:\\"):  # what separates options
        return False
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    for name in ("", "/changed", "/work"):
        os.mkdir(f"{stage}{name}")
    # The folder itself is as it was; what is in it keeps what it has anyway.
    os.chmod(f"{stage}/changed", mode)
    options = f"lowerdir={folder},upperdir={stage}/changed,workdir={stage}/work,userxattr"
    try:
        mount("overlay", folder, "overlay", MS_NOSUID | MS_NODEV, options)
    except OSError:  # an old kernel, or one with something mounted in this folder
        return False
    return True


def lock(target: str) -> None:
    """Have nothing be written through a mount. Raises: OSError."""
    restrict(target, MS_RDONLY)


def lock_all(folder: str) -> None:
    """Have nothing be written through what is mounted at a folder and in it. Raises: OSError."""
    for mounted in read_mounts():
        # What cannot be reached cannot be reached by the command either.
        if is_in(mounted.point, folder) and is_in_reach(mounted):
            lock(mounted.point)


def restrict(target: str, flags: int) -> None:
    """Take rights from a mount, and leave it those that it has. Raises: OSError."""
    has = os.statvfs(target).f_flag
    kept = sum(flag for told, flag in _KEPT if has & told)
    mount("none", target, flags=MS_BIND | MS_REMOUNT | kept | flags)
