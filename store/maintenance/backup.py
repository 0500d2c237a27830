"""A backup of a store before it is upgraded: a store of its own, which the version that wrote it opens.

The backup is the folder `backup-FORMAT` inside the store's folder: the parent folder may be on another disk or not writable,
as it is for a container's volume. It contains a copy of the database, and the body files. A body file never changes
once it has its name, so the backup has hard links to them if the file system supports that.

A backup gets its name after it was read again and compared. So a folder with that name is complete.
"""

import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from blake3 import blake3

from ..errors import StoreError, StoreUnwritable
from ..lmdb.free_space import RESERVE_BYTES
from ..lmdb.open import open_environment, read_format
from ..paths import BACKUP, BACKUP_PARTIAL, DATA, DATA_LOCK, LOG
from ..spill.partial_file import sync_folder

_NAME = re.compile(r"backup-[0-9]+(-[0-9]+)?|backup\.partial")
_READ_BYTES = 1 << 20

Progress = Callable[[int, int], None]


def make_backup(path: Path, bodies: str, version: int, progress: Progress) -> Path:
    """Make a backup of the store in a folder, whose lock the caller holds alone; return the backup's folder. Blocks.

    bodies: name of the folder of body files.
    version: the store's format.
    progress: receives the number of bytes that are copied, and of all.
    If there is a backup of the store in exactly this state, it is returned.
    Raises: StoreUnwritable (not enough space); StoreError (the copy differs); OSError.
    """
    source = Path(LOG, DATA)
    for number in itertools.count(1):
        target = path / (f"{BACKUP}{version}" if number == 1 else f"{BACKUP}{version}-{number}")
        if not target.exists():
            break
        if _digest(target / source) == _digest(path / source):
            return target
    partial = path / BACKUP_PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(mode=0o700)
        files = [file.relative_to(path) for file in _body_files(path / bodies)]
        copied = [source, *(file for file in files if not _link(path / file, partial / file))]
        _check_free_space(path, copied)
        _copy(path, partial, copied, progress)
        with open_environment(partial / LOG, readonly=True) as environment:
            if read_format(partial, environment) != version:
                raise _different(partial / source)
        (partial / LOG / DATA_LOCK).unlink(missing_ok=True)
        for folder in (*_folders(partial), partial):
            sync_folder(folder)
        os.replace(partial, target)
        sync_folder(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def remove_backups(path: Path) -> None:
    """Remove all backups of the store in a folder, because they contain data that is being removed from it.

    Raises: OSError.
    """
    for folder in path.iterdir():
        if _NAME.fullmatch(folder.name):
            shutil.rmtree(folder)


def _body_files(folder: Path) -> Iterator[Path]:
    """Yield the body files that have their names."""
    return (file for file in sorted(folder.glob("??/*")) if file.is_file())


def _folders(folder: Path) -> Iterator[Path]:
    return (one for one in sorted(folder.rglob("*"), reverse=True) if one.is_dir())


def _link(source: Path, target: Path) -> bool:
    """Give a file a second name; return whether the file system supports that."""
    target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _check_free_space(path: Path, files: list[Path]) -> None:
    needed = sum((path / file).stat().st_size for file in files) + RESERVE_BYTES
    disk = os.statvfs(path)
    there = disk.f_frsize * disk.f_bavail
    if there < needed:
        raise StoreUnwritable(
            f"a backup of the store at {path} needs {needed} bytes, and {there} are free",
            "free space and try again; nothing was changed",
        )


def _copy(path: Path, partial: Path, files: list[Path], progress: Progress) -> None:
    of = sum((path / file).stat().st_size for file in files)
    done = 0
    for file in files:
        target = partial / file
        target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        digest = blake3()
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(path / file, "rb") as reading, os.fdopen(descriptor, "wb") as writing:
            while data := reading.read(_READ_BYTES):
                writing.write(data)
                digest.update(data)
                done += len(data)
                progress(done, of)
            writing.flush()
            os.fsync(writing.fileno())
        if _digest(target) != digest.digest():
            raise _different(target)


def _digest(file: Path) -> bytes:
    digest = blake3()
    try:
        with file.open("rb") as reading:
            while data := reading.read(_READ_BYTES):
                digest.update(data)
    except FileNotFoundError:
        return b""
    return digest.digest()


def _different(file: Path) -> StoreError:
    return StoreError(
        f"the backup {str(file)!r} differs from the original", "check the disk; nothing was changed"
    )
