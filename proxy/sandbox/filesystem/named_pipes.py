"""Find named pipes in folders: whoever has one open, or will, reads what a command writes to it.

Run as a program, by its path, so that it looks while the proxy starts: JSON on its standard input, as `search` takes it, JSON on its
standard output. Imports what every interpreter has, and nothing of Playhead.
"""

import contextlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

MOST_ENTRIES = 150_000
MOST_S = 0.2
"""Of a processor's time."""
MOST_PIPES = 2000
MOST_AGAIN_S = 0.05
"""The same once the command has ended."""
MOST_BYTES = 60_000
"""Of the paths of all pipes: a sandbox is given them in one message."""
_MOST_TOLD = 20
_LONGEST = 4
"""Times as long as it may take while others use the processor."""
_ELSEWHERE = (
    "nfs",
    "cifs",
    "smb",
    "fuse",
    "9p",
    "ceph",
    "afs",
    "autofs",
    "lustre",
    "proc",
    "sysfs",
)
"""Beginnings of the names of file systems that are on other machines, may not answer, or have no pipes."""
_PATIENCE_S = 10.0


def search(
    roots: Iterable[str],
    closed: Iterable[str],
    *,
    most_entries: int = MOST_ENTRIES,
    most_s: float = MOST_S,
) -> tuple[list[str], list[str]]:
    """Give the pipes in some folders that this user may use, and the folders that were not looked through.

    roots: folders, absolute; what is near them is looked at first.
    closed: folders that are left out.
    """
    left = deque(dict.fromkeys(roots))
    seen = {*closed} - {*left}
    ends, ends_at_last = time.process_time() + most_s, time.monotonic() + _LONGEST * most_s
    pipes: list[str] = []
    entries = 0
    while left and entries < most_entries and len(pipes) <= MOST_PIPES:
        if time.process_time() > ends or time.monotonic() > ends_at_last:
            break
        folder = left.popleft()
        if folder in seen:
            continue
        seen.add(folder)
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    entries += 1
                    if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    elif _is_usable_pipe(entry.path):
                        pipes.append(entry.path)
        except OSError:  # closed to this user, or gone
            continue
    return pipes, [folder for folder in left if folder not in seen]


def _is_usable_pipe(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if not stat.S_ISFIFO(found.st_mode):
        return False
    return found.st_uid == os.geteuid() or os.access(path, os.W_OK) or os.access(path, os.R_OK)


def find_used(
    environ: Mapping[str, str], closed: Iterable[str], known: Iterable[str], since_ns: int
) -> list[str]:
    """Give the named pipes where a command works that were made, or written to, since a time: what is near first.

    closed: folders that the command does not see as they are.
    known: pipes that were closed to it.
    since_ns: nanoseconds since the epoch.
    """
    pipes, _ = search(_roots(environ), [*closed, *_mounted_elsewhere()], most_s=MOST_AGAIN_S)
    left_out = frozenset(known)
    return [path for path in pipes if path not in left_out and is_used(path, since_ns)]


def is_used(path: str, since_ns: int) -> bool:
    """Say whether a named pipe was made, or written to, since a time. A pipe that is gone was not."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISFIFO(found.st_mode) and max(found.st_mtime_ns, found.st_ctime_ns) >= since_ns


def _roots(environ: Mapping[str, str]) -> list[str]:
    home = environ.get("HOME") or "/root"
    roots = [home, environ.get("TMPDIR") or "/tmp", tempfile.gettempdir(), "/tmp", "/var/tmp"]
    with contextlib.suppress(FileNotFoundError):  # it was removed
        roots.insert(0, os.getcwd())
    return [os.path.realpath(root) for root in roots]


class Found(NamedTuple):
    """What a search found."""

    pipes: list[str]
    """Paths of those that are to be closed."""
    left: list[str]
    """Folders that were not looked through, or not all of whose pipes can be closed."""
    too_many: list[str]
    """Paths of pipes that cannot be closed, since there are too many."""


NOTHING = Found([], [], [])


class Search:
    """A search in a process of its own."""

    def __init__(
        self, environ: Mapping[str, str], closed: Iterable[str], most_s: float = MOST_S
    ) -> None:
        """Begin to look through the folders that the command works in.

        closed: folders that the command does not see as they are.
        most_s: of a processor's time.
        """
        self._most_s = most_s
        given = {
            "roots": _roots(environ),
            "closed": [*map(os.path.realpath, closed), *_mounted_elsewhere()],
            "most_s": most_s,
            # Who gives it more time has more files.
            "most_entries": int(MOST_ENTRIES * max(1.0, most_s / MOST_S)),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given).encode())
        self._process.stdin.close()
        self._process.stdin = None

    def close(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()
        self._process.communicate()

    def result(self) -> Found:
        """Wait for what the search finds. Raises: OSError, where it failed."""
        try:
            patience_s = _PATIENCE_S + _LONGEST * self._most_s
            said, _ = self._process.communicate(timeout=patience_s)
            return Found(*json.loads(said))
        except (subprocess.TimeoutExpired, ValueError, TypeError) as error:
            raise OSError("the search for named pipes failed") from error


def cut(pipes: list[str], left: list[str], most_bytes: int = MOST_BYTES) -> Found:
    """Keep as many pipes as a sandbox can be told of; the folders of others count as not looked through.

    Anybody may make pipes in `/tmp`: nobody is kept from a sandbox by that.
    """
    total, kept = 0, 0
    for path in pipes:
        total += len(json.dumps(path)) + 2
        if total > most_bytes:
            break
        kept += 1
    folders = dict.fromkeys(map(os.path.dirname, pipes[kept:]))
    return Found(pipes[:kept], [*folders, *left][:_MOST_TOLD], pipes[kept:][:_MOST_TOLD])


def _mounted_elsewhere() -> list[str]:
    try:
        with open("/proc/self/mountinfo", errors="surrogateescape") as file:
            fields = [line.split() for line in file]
    except OSError:
        return []
    return [one[4] for one in fields if one[one.index("-") + 1].startswith(_ELSEWHERE)]


if __name__ == "__main__":
    given = json.load(sys.stdin)
    pipes, left = search(
        given["roots"],
        given["closed"],
        most_entries=given["most_entries"],
        most_s=given["most_s"],
    )
    print(json.dumps(cut(pipes, left)))
