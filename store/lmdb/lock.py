"""The lock of a store: a file that every open store holds shared, and that exclusive work holds alone.

The lock is the kernel's (flock): it is released when its process ends, for whatever reason.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path

from ..errors import StoreError, StoreUnwritable
from ..paths import LOCK

_PATIENCE_S = 5.0
"""How long an opening waits for exclusive work to end."""
_EVERY_S = 0.02


class StoreLock:
    """A lock that is held; close it to let go."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Let go. Twice is once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def hold_shared(path: Path, *, readonly: bool, patience_s: float = _PATIENCE_S) -> StoreLock:
    """Hold the lock of the store in a folder together with others.

    readonly: go on without where it can neither be opened nor made, as on a disk that nobody can write.
    Raises: StoreError, naming the process that works on the store alone; StoreUnwritable.
    """
    try:
        descriptor = _open(path)
    except OSError as error:
        if readonly:
            return StoreLock(None)
        raise _unwritable(path, error) from error
    deadline = time.monotonic() + patience_s
    while not _take(descriptor, fcntl.LOCK_SH):
        if time.monotonic() > deadline:
            holder = _holders(descriptor)
            os.close(descriptor)
            raise StoreError(
                f"the store at {path} is being worked on by {holder}, which needs it alone",
                "wait until that has ended",
            )
        time.sleep(_EVERY_S)
    return StoreLock(descriptor)


def hold_alone(path: Path, what: str) -> StoreLock:
    """Hold the lock of the store in a folder alone.

    what: the work that needs it, for the error.
    Raises: StoreError, naming who has the store open; StoreUnwritable.
    """
    try:
        descriptor = _open(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    if not _take(descriptor, fcntl.LOCK_EX):
        holder = _holders(descriptor)
        os.close(descriptor)
        raise StoreError(
            f"{what} needs the store at {path} alone, and {holder} has it open",
            "end that first, then try again",
        )
    return StoreLock(descriptor)


def _open(path: Path) -> int:
    file = path / LOCK
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):
        return os.open(file, flags)
    return os.open(file, flags | os.O_CREAT, 0o600)


def _take(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holders(descriptor: int) -> str:
    """Name the processes that hold a lock, where the kernel tells (Linux)."""
    inode = os.fstat(descriptor).st_ino
    pids: dict[int, None] = {}
    with contextlib.suppress(OSError), open("/proc/locks", encoding="ascii") as locks:
        for line in locks:
            # As `1: FLOCK ADVISORY WRITE 1234 08:01:567 0 EOF`; `->` stands before those that wait.
            words = line.split()
            if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == str(inode):
                pids[int(words[4])] = None
    # A process of another container is 0.
    return " and ".join(_named(pid) for pid in pids if pid > 0) or "another process"


def _named(pid: int) -> str:
    if pid == os.getpid():
        return f"this process ({pid})"
    import psutil  # late: it is needed for a refusal alone

    with contextlib.suppress(psutil.Error, ValueError):
        return f"process {pid} ({psutil.Process(pid).name()})"
    return f"process {pid}"


def _unwritable(path: Path, error: OSError) -> StoreUnwritable:
    return StoreUnwritable(
        f"cannot lock the store at {path}: {error.strerror or error}",
        "is the folder there, and writable? --store names another",
    )
