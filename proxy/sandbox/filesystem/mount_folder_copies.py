"""Mounts that put copies in the place of working folders; in the first process of new namespaces.

    overlay   a folder is seen through layers; what is written goes into the upper one
    bind      another folder is seen in its place

Layers are named by descriptors, so any character may be in their paths. Only modules that are quick to import are used here.
Source: Linux, filesystems/overlayfs.rst; mount(2).
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..kernel.syscalls import MS_BIND, MS_NODEV, MS_NOSUID, MS_REC, mount
from .mountinfo import is_in_reach, read_mounts
from .protective_mounts import hold

OVERLAY, BIND = "overlay", "bind"
PLAIN = MS_NOSUID | MS_NODEV


def mount_copies(rows: Iterable[Mapping[str, Any]], *, of_user: bool = True) -> None:
    """Mount copies in the place of folders, in this order.

    rows: `kind`; `target`, the folder; `layers` below the upper one, `upper` and `work` of an overlay; `source` of a bind;
        `again`, other paths at which the folder is mounted; `kept`, folders in it that stay the real ones.
    of_user: whether this is a user namespace: then marks are attributes of the user's, and renamed folders cannot be had.
    Raises: OSError.
    """
    rows = list(rows)
    kept = hold(path for row in rows for path in row["kept"])
    for row in rows:
        if row["kind"] == BIND:
            mount(row["source"], row["target"], flags=MS_BIND)
        else:
            _mount_overlay(row, of_user=of_user)
        for path in row["again"]:
            mount(row["target"], path, flags=MS_BIND | MS_REC)
    for path, held in kept.items():
        mount(f"/proc/self/fd/{held}", path, flags=MS_BIND | MS_REC)
        os.close(held)


def _mount_overlay(row: Mapping[str, Any], *, of_user: bool) -> None:
    held = [
        os.open(path, os.O_PATH | os.O_CLOEXEC)
        for path in (*row["layers"], row["upper"], row["work"])
    ]
    try:
        *lowers, upper, work = (f"/proc/self/fd/{one}" for one in held)
        options = f"lowerdir={':'.join(lowers)},upperdir={upper},workdir={work}"
        mark = "userxattr" if of_user else "redirect_dir=on"
        mount("overlay", row["target"], "overlay", PLAIN if of_user else 0, f"{options},{mark}")
    finally:
        for one in held:
            os.close(one)


def find_mounts_in(folder: str) -> list[str]:
    """Give the places in a folder at which another file system is mounted that can be reached."""
    above = f"{folder.rstrip('/')}/"
    found = (one for one in read_mounts() if one.point.startswith(above))
    return sorted({one.point for one in found if is_in_reach(one)})
