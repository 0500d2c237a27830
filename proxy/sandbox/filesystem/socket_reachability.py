"""Find path sockets that a sandbox can still reach: a process outside listens on them, and they are not masked.

A path socket is no business of a network namespace. `strict` lets no socket reach one. The kernel tells a path as it
was bound: it may lead from the folder that a program was in, and the file may have another name by now, as those of
OpenSSH have. Sockets of programs in other network namespaces (containers) are not told.
"""

import contextlib
import os
import socket
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...processes.sockdiag import Listening, list_listening

_TABLE = "/proc/net/unix"
_LISTENS = 0x00010000
_MOST_LOOKS = 20_000
"""Descriptors of others that are looked at; some 15 us each."""


def find_reachable(hidden: tuple[str, ...], masked: tuple[str, ...]) -> list[str]:
    """List those that may be connected to from a sandbox with these folders and sockets hidden."""
    prefixes = tuple(f"{folder}/" for folder in hidden)
    return [
        path
        for path in map(os.path.realpath, find_paths())
        if path not in masked and not path.startswith(prefixes) and os.access(path, os.W_OK)
    ]


def find_paths() -> set[str]:
    """Give the paths at which programs of this machine listen, as far as this network namespace knows of them."""
    try:
        listening = list(list_listening())
    except OSError:  # a kernel that cannot be asked
        return set(_read_table())
    bound_here = {one.inode for one in listening if not os.path.isabs(one.path)}
    folders = dict(_working_folders(bound_here))
    found: set[str] = set()
    for one in listening:
        # Where its folder is unknown nobody can say where it is.
        with contextlib.suppress(KeyError):
            path = one.path if os.path.isabs(one.path) else f"{folders[one.inode]}/{one.path}"
            found.update(_find_now(path, one))
    return found


def find_pipes() -> set[str]:
    """Give the named pipes that programs of this machine have open, as far as may be seen."""
    found = set()
    looks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for name in os.listdir(process / "fd"):
                looks += 1
                with contextlib.suppress(OSError):
                    path = os.readlink(f"{process}/fd/{name}")
                    if path.startswith("/") and not path.startswith("/dev/"):
                        held = os.stat(f"{process}/fd/{name}")
                        if stat.S_ISFIFO(held.st_mode) and os.path.samestat(held, os.stat(path)):
                            found.add(path)
        if looks > _MOST_LOOKS:
            break
    return found


def _read_table() -> Iterator[str]:
    """Yield the paths that an older table of the kernel's has, where they still are."""
    with contextlib.suppress(OSError), open(_TABLE, errors="surrogateescape") as file:
        for line in file.read().splitlines()[1:]:
            # Num RefCount Protocol Flags Type St Inode Path. Source: unix(7).
            fields = line.split(maxsplit=7)
            accepts = int(fields[3], 16) & _LISTENS or int(fields[4], 16) == socket.SOCK_DGRAM
            if accepts and len(fields) == 8 and os.path.exists(fields[7]):
                yield fields[7]


def _find_now(path: str, one: Listening) -> Iterator[str]:
    """Yield where a socket is that was bound at a path, in the same folder."""
    with contextlib.suppress(OSError):
        if _is(os.lstat(path), one):
            yield path
            return
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(path)) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if _is(entry.stat(follow_symlinks=False), one):
                    yield entry.path


def _is(status: os.stat_result, one: Listening) -> bool:
    return stat.S_ISSOCK(status.st_mode) and status.st_ino & 0xFFFFFFFF == one.file_number


def _working_folders(inodes: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Yield the folder that the program of each socket is in, where it may be seen."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    if not wanted:
        return
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for name in os.listdir(process / "fd"):
                inode = wanted.get(os.readlink(process / "fd" / name))
                if inode is not None:
                    yield inode, os.readlink(process / "cwd")
