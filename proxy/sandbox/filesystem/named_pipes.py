"""Find named pipes in folders: whoever has one open, or will, reads what a command writes to it.

Run as a program, by its path, so that it looks while the proxy starts: JSON on its standard input, as `search` takes it, JSON on its
standard output. Imports what every interpreter has, and nothing of Playhead.
"""

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
_ELSEWHERE = ("nfs", "cifs", "smb", "fuse", "9p", "ceph", "afs", "autofs", "lustre")
"""Beginnings of the names of file systems that are on other machines, or may not answer: they are not searched."""
_WITHOUT = (
    *(
        "proc",
        "sysfs",
        "cgroup",
        "debugfs",
        "tracefs",
        "securityfs",
        "configfs",
        "bpf",
        "binfmt_misc",
    ),
    *("fusectl", "pstore", "efivarfs", "selinuxfs", "devpts", "mqueue"),
)
"""The same of those in which there are no pipes."""
_FAR = ("/", "/usr", "/etc")
"""What is searched after the folders that a command works in, in this order: in the last ones are many files and few pipes."""
_PATIENCE_S = 10.0


def search(
    roots: Iterable[str],
    closed: Iterable[str],
    *,
    far: Iterable[str] = (),
    most_entries: int = MOST_ENTRIES,
    most_s: float = MOST_S,
) -> tuple[list[str], list[str]]:
    """Give the pipes in some folders that this user may use, and the folders that were not looked through.

    roots: folders, absolute; what is near them is looked at first.
    closed: folders that are left out.
    far: folders that are looked through one after another once there is nothing left in the others.
    """
    left, later = deque(dict.fromkeys(roots)), deque(far)
    seen = {*closed} - {*left}
    ends, ends_at_last = time.process_time() + most_s, time.monotonic() + _LONGEST * most_s
    pipes: list[str] = []
    kept_from_us: list[str] = []
    entries = 0
    while (left or later) and entries < most_entries and len(pipes) <= MOST_PIPES:
        if time.process_time() > ends or time.monotonic() > ends_at_last:
            break
        folder = left.popleft() if left else later.popleft()
        if folder in seen or folder in later:
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
        except PermissionError:
            if _is_passable(folder):
                kept_from_us.append(folder)
        except OSError:  # it is gone
            continue
    unsearched = [*kept_from_us, *(folder for folder in (*later, *left) if folder not in seen)]
    # What holds most is named first.
    return pipes, sorted(unsearched, key=lambda folder: folder.rstrip("/").count("/"))


def _is_passable(folder: str) -> bool:
    """Say whether what is in a folder that cannot be listed can be opened by whoever knows its name."""
    try:
        return os.stat(folder).st_uid == os.geteuid() or os.access(folder, os.X_OK)
    except OSError:
        return False


def _is_usable_pipe(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if not stat.S_ISFIFO(found.st_mode):
        return False
    return found.st_uid == os.geteuid() or os.access(path, os.W_OK) or os.access(path, os.R_OK)


def find_used(
    where: "Where", known: Iterable[str], since_ns: int, most_s: float = MOST_AGAIN_S
) -> tuple[list[str], list[str]]:
    """Give the named pipes that were made, or written to, since a time, what is near first; and the folders not looked through.

    known: pipes that were closed to the command.
    since_ns: nanoseconds since the epoch.
    most_s: of a processor's time.
    """
    pipes, left = search(
        where.roots, where.closed, far=where.far, most_entries=_most_entries(most_s), most_s=most_s
    )
    left_out = frozenset(known)
    used = [path for path in pipes if path not in left_out and is_used(path, since_ns)]
    return used, [*where.elsewhere, *left][:_MOST_TOLD]


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
    return [os.path.realpath(root) for root in (*_working(), *roots)]


def _working() -> list[str]:
    try:
        return [os.path.realpath(os.getcwd())]
    except FileNotFoundError:  # it was removed
        return []


class Where(NamedTuple):
    """Where named pipes of the machine are within a command's reach."""

    roots: list[str]
    """What is searched first."""
    far: tuple[str, ...]
    """What is searched afterwards."""
    closed: list[str]
    """What is left out."""
    elsewhere: list[str]
    """What of that nobody has looked through."""

    @classmethod
    def of(
        cls,
        environ: Mapping[str, str],
        closed: Iterable[str],
        *,
        working_only: bool = False,
        also: Iterable[str] = (),
    ) -> "Where":
        """Decide it for a command that is run with these variables.

        closed: folders that the command does not see as they are.
        working_only: whether it sees none as it is but its working folder.
        also: further folders that it sees then.
        """
        elsewhere, without = _mounts(_ELSEWHERE), _mounts(_WITHOUT)
        left_out = [*map(os.path.realpath, closed), *without]
        roots = [*_working(), *also] if working_only else _roots(environ)
        reached = [
            path
            for path in elsewhere
            if not is_in_any(path, left_out) and (not working_only or is_in_any(path, roots))
        ]
        return cls(roots, () if working_only else _FAR, [*left_out, *elsewhere], reached)


def is_in_any(path: str, folders: Iterable[str]) -> bool:
    """Say whether a path is one of some folders, or is in one; see `mountinfo.is_in`, which cannot be imported here."""
    return any(path == one or path.startswith(f"{one.rstrip('/')}/") for one in folders)


def _most_entries(most_s: float) -> int:
    return int(MOST_ENTRIES * max(1.0, most_s / MOST_S))


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

    def __init__(self, where: Where, most_s: float = MOST_S) -> None:
        """Begin to look through the folders within a command's reach.

        most_s: of a processor's time.
        """
        self.where = where
        self._most_s = most_s
        given = {
            **where._asdict(),
            "most_s": most_s,
            # Who gives it more time has more files.
            "most_entries": _most_entries(most_s),
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


def _mounts(kinds: tuple[str, ...]) -> list[str]:
    """List where file systems are mounted whose names begin like this."""
    try:
        with open("/proc/self/mountinfo", errors="surrogateescape") as file:
            fields = [line.split() for line in file]
    except OSError:
        return []
    return [one[4] for one in fields if one[one.index("-") + 1].startswith(kinds)]


if __name__ == "__main__":
    given = json.load(sys.stdin)
    pipes, left = search(
        given["roots"],
        given["closed"],
        far=given["far"],
        most_entries=given["most_entries"],
        most_s=given["most_s"],
    )
    print(json.dumps(cut(pipes, [*given["elsewhere"], *left])))
