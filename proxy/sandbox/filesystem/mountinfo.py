"""Read the kernel's mount table. Source: proc_pid_mountinfo(5), proc_pid_fdinfo(5)."""

import os
import re
from typing import NamedTuple

_TABLE = "/proc/self/mountinfo"


class Mount(NamedTuple):
    """One mount, as this process sees it."""

    device: str
    """Of the file system, `major:minor`."""
    root: str
    """The folder of that file system that is mounted."""
    point: str
    """Where."""
    kind: str
    options: str = ""
    """Of the mount, as in `rw,nodev`."""
    number: int = 0
    """The kernel's own for it."""

    @property
    def no_devices(self) -> bool:
        """Whether no device can be opened there."""
        return "nodev" in self.options.split(",")


def read_mounts(table: str = _TABLE) -> list[Mount]:
    """List the mounts of this process, each after those that it stands on."""
    with open(table, errors="surrogateescape") as file:
        return [_parse(line) for line in file]


def is_in_reach(mounted: Mount) -> bool:
    """Say whether the path of a mount leads to it: not where something is mounted over it, or a folder is closed to us.

    Nobody in this namespace can reach it otherwise.
    """
    try:
        held = os.open(mounted.point, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        with open(f"/proc/self/fdinfo/{held}") as file:
            numbers = [int(line.split()[1]) for line in file if line.startswith("mnt_id:")]
    finally:
        os.close(held)
    return numbers == [mounted.number]


def find_again(path: str, mounts: list[Mount]) -> list[str]:
    """List the other paths at which the same folder or file is mounted, or something that is in it."""
    holders = [m for m in mounts if is_in(path, m.point)]
    if not holders:  # the root of a chroot is no mount
        return []
    # Of those that are mounted at one point the last is the one that is seen.
    holder = max(reversed(holders), key=lambda m: len(m.point))
    place = _join(holder.root, path[len(holder.point.rstrip("/")) :])
    found = []
    for mounted in mounts:
        if mounted.device != holder.device:
            continue
        if is_in(place, mounted.root):
            found.append(_join(mounted.point, place[len(mounted.root.rstrip("/")) :]))
        elif is_in(mounted.root, place):
            found.append(mounted.point)
    return [again for again in dict.fromkeys(found) if not is_in(again, path)]


def _parse(line: str) -> Mount:
    # 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
    before, _, after = line.partition(" - ")
    fields = before.split()
    place = _plain(fields[3]), _plain(fields[4])
    return Mount(fields[2], *place, after.split()[0], fields[5], int(fields[0]))


def _plain(text: str) -> str:
    """Undo how blanks and such are written, as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def is_in(path: str, folder: str) -> bool:
    """Say whether a path is a folder, or is in it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _join(folder: str, rest: str) -> str:
    return f"{folder.rstrip('/')}/{rest.lstrip('/')}".rstrip("/") or "/"
