"""Free space of a store: on its disk, and inside its own file.

Recording stops before the disk is full, so that the log of the stop still fits. A ballast file can be removed to free space
for deleting, because LMDB needs pages for that too.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb

from ..paths import DATA, LOG

RESERVE_BYTES = 4 << 20
"""Recording stops when there is less; on a small disk an eighth of it."""
MARGIN_BYTES = 1 << 20
"""So much more has to be there before it begins again; in proportion on a small disk."""
BALLAST = "ballast"
_SPARE = 4
"""A ballast is written if there is free space for so many."""
_BLOCK_BYTES = 512


class FreeSpace:
    """Measures the free space of one store."""

    def __init__(self, path: Path, environment: lmdb.Environment, tables: dict[str, Any]) -> None:
        """Measure for an environment; `tables` are those that are open by the time it is asked."""
        self._path = path
        self._file = path / LOG / DATA
        self._environment = environment
        self._tables = tables

    def use(self, environment: lmdb.Environment) -> None:
        """Measure for the environment that took the place of the one before."""
        self._environment = environment

    def find_shortage(self, *, again: bool = False) -> int | None:
        """Give the free bytes if they are too few to go on; None if they are enough.

        again: recording has stopped: enough is a margin more.
        Raises: OSError, lmdb.Error.
        """
        disk = os.statvfs(self._path)
        size = disk.f_frsize * disk.f_blocks
        scale = min(1.0, size / 8 / RESERVE_BYTES)
        needed = int((RESERVE_BYTES + MARGIN_BYTES * again) * scale)
        there = disk.f_frsize * disk.f_bavail
        if there < needed:
            there += self._unused()
        return there if there < needed else None

    def _unused(self) -> int:
        return find_unused(self._file, self._environment, self._tables)


def find_unused(file: Path, environment: lmdb.Environment, tables: dict[str, Any]) -> int:
    """Give the bytes of a database's file that LMDB will use before it asks the disk for more."""
    info, main = environment.info(), environment.stat()
    page = main["psize"]
    with environment.begin() as transaction:
        stats = [main, *(transaction.stat(table) for table in tables.values())]
    used = sum(stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats)
    pages = info["last_pgno"] + 1
    behind = file.stat().st_blocks * _BLOCK_BYTES - pages * page
    return int(max(0, pages - used) * page + max(0, behind))


def put_ballast(path: Path, size: int) -> None:
    """Have a ballast of so many bytes stand in a store's folder, if there is free space for it; 0 removes it."""
    file = path / BALLAST
    with contextlib.suppress(OSError):
        there = file.stat().st_size if file.exists() else 0
        if there == size:
            return
        file.unlink(missing_ok=True)
        disk = os.statvfs(path)
        if size and disk.f_frsize * disk.f_bavail >= _SPARE * size:
            _fill(file, size)


@contextlib.contextmanager
def without_ballast(path: Path) -> Iterator[None]:
    """Take the ballast of a store away, and put it back in the end if there is free space."""
    file = path / BALLAST
    try:
        size = file.stat().st_size
        file.unlink()
    except OSError:
        size = 0
    try:
        yield
    finally:
        if size:
            put_ballast(path, size)


def _fill(file: Path, size: int) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError:
        file.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
