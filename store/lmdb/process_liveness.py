"""Liveness of processes: each process that writes a store locks a file of its own there (flock).

The kernel releases the lock when the process ends, for whatever reason, and every container that shares the folder sees the
lock. A process id does not work across containers: there it belongs to another process, or to none.
"""

import contextlib
import fcntl
import os
import secrets
from pathlib import Path

from ..paths import OWNERS


class LivenessFile:
    """The file of this process; close it once nothing more is written."""

    def __init__(self, name: str, descriptor: int | None, file: Path) -> None:
        self.name = name
        """What others find it by; empty where there is none."""
        self._descriptor = descriptor
        self._file = file

    def close(self) -> None:
        """Let go of it. Twice is once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._file.unlink(missing_ok=True)
            os.close(descriptor)


def create_liveness_file(path: Path) -> LivenessFile:
    """Make and lock a file in the store of a folder; one without a name where none can be made."""
    folder = path / OWNERS
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        while True:
            name = f"p{secrets.token_hex(8)}"
            file = folder / name
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), file.stat()):
                    return LivenessFile(name, descriptor, file)
            os.close(descriptor)  # swept away between the two
    except OSError:
        return LivenessFile("", None, folder)


def is_locked(path: Path, name: str) -> bool:
    """Say whether the process whose file has this name is there."""
    try:
        descriptor = os.open(path / OWNERS / name, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:  # somebody else's: nothing can be said against it
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove_dead_files(path: Path) -> None:
    """Remove the files of processes that have died."""
    for file in (path / OWNERS).glob("p*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.unlink()
            finally:
                os.close(descriptor)
