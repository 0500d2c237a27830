"""Mounts that put copies in the place of working folders; in the first process of new namespaces, or in a process of its own.

    overlay   a folder is seen through layers; what is written goes into the upper one
    bind      another folder is seen in its place

Layers are named by descriptors, so any character may be in their paths. Only modules that are quick to import are used here.
Source: Linux, filesystems/overlayfs.rst; mount(2).
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ..kernel.syscalls import MS_BIND, MS_NODEV, MS_NOSUID, MS_PRIVATE, MS_REC, mount
from .mountinfo import is_in_reach, read_mounts
from .protective_mounts import lock

OVERLAY, BIND = "overlay", "bind"
START = (
    "-IS",
    "-c",
    "import sys; package = sys.modules['playhead'] = type(sys)('playhead'); package.__path__ = sys.argv[1:2];"
    "from playhead.proxy.sandbox.filesystem.working_copies import main; sys.exit(main(sys.argv))",
)
"""What an interpreter is to run, with the folder of the package, then what `main` takes."""
_PLAIN = MS_NOSUID | MS_NODEV
_NOT_MADE = 125
_NOT_FOUND = 127


def mount_copies(rows: Iterable[Mapping[str, Any]], *, of_user: bool = True) -> None:
    """Mount copies in the place of folders, in this order.

    rows: `kind`; `target`, the folder; `layers` below the upper one, `upper` and `work` of an overlay; `source` of a bind;
        `again`, other paths at which the folder is mounted.
    of_user: whether this is a user namespace: then marks are attributes of the user's, and renamed folders cannot be had.
    Raises: OSError.
    """
    for row in rows:
        if row["kind"] == BIND:
            mount(row["source"], row["target"], flags=MS_BIND)
        else:
            _mount_overlay(row, of_user=of_user)
        for path in row["again"]:
            mount(row["target"], path, flags=MS_BIND | MS_REC)


def _mount_overlay(row: Mapping[str, Any], *, of_user: bool) -> None:
    held = [
        os.open(path, os.O_PATH | os.O_CLOEXEC)
        for path in (*row["layers"], row["upper"], row["work"])
    ]
    try:
        *lowers, upper, work = (f"/proc/self/fd/{one}" for one in held)
        options = f"lowerdir={':'.join(lowers)},upperdir={upper},workdir={work}"
        mark = "userxattr" if of_user else "redirect_dir=on"
        mount("overlay", row["target"], "overlay", _PLAIN if of_user else 0, f"{options},{mark}")
    finally:
        for one in held:
            os.close(one)


def main(arguments: list[str]) -> int:
    """Enter namespaces of our own and mount copies; then run a command, or end.

    arguments: `-c`, the folder of the package, `user` or `root`, JSON of `mounts` and `hidden`, then the command.
    Writes what failed to stderr, as an error number and a text.
    """
    of_user = arguments[2] == "user"
    given = json.loads(arguments[3])
    command = arguments[4:]
    try:
        _enter(of_user=of_user)
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        working = os.getcwd()
        mount_copies(given["mounts"], of_user=of_user)
        for folder in given["hidden"]:
            mount("tmpfs", folder, "tmpfs", _PLAIN, "size=4k,mode=700")
            lock(folder)
        os.chdir(working)
        if not command:
            _try_writing(given["mounts"])
            return 0
    except OSError as error:
        text = error.strerror or str(error)
        sys.stderr.write(f"{error.errno} {text}\n")
        return _NOT_MADE
    return _execute(command)


def _execute(command: list[str]) -> int:
    import signal

    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"playhead: cannot start {command[0]!r}: {error.strerror}\n")
        return _NOT_FOUND


def _enter(*, of_user: bool) -> None:
    if not of_user:
        os.unshare(os.CLONE_NEWNS)
        return
    uid, gid = os.geteuid(), os.getegid()
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
    # Source: user_namespaces(7).
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _try_writing(rows: Iterable[Mapping[str, Any]]) -> None:
    """Find what only shows at the first write: a layer that can be mounted, and not written to."""
    for row in rows:
        if not os.access(row["target"], os.W_OK):  # nor could it be written to without us
            continue
        place = os.path.join(row["target"], ".playhead-try")
        os.mkdir(place)
        os.rmdir(place)


def find_mounts_in(folder: str) -> list[str]:
    """Give the places in a folder at which another file system is mounted that can be reached."""
    above = f"{folder.rstrip('/')}/"
    found = (one for one in read_mounts() if one.point.startswith(above))
    return sorted({one.point for one in found if is_in_reach(one)})
