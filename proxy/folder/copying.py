"""Copy a folder, sharing blocks where the file system can (reflinks): content, mode, times, links, second names.

Sockets are left out: nobody listens at a copy. Source: ioctl_ficlone(2).
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable
from typing import NamedTuple

from ..determinism.read_untrusted_file import open_agent_file

_FICLONE = 0x40049409
_PIECE_BYTES = 1 << 22


class Copied(NamedTuple):
    """What was copied."""

    files: int
    size: int
    """Bytes, as files state them."""
    shared: bool
    """Whether blocks are shared with the original, so that it took no room."""
    unread: list[bytes]
    """Files and folders that cannot be read: they are not in the copy."""


class _Count:
    """A copy that is being made."""

    def __init__(self) -> None:
        self.files = 0
        self.size = 0
        self.reflinks = True
        self.unread: list[bytes] = []
        self.names: dict[tuple[int, int], bytes] = {}


def copy_folder(
    source: str,
    target: str,
    *,
    left_out: frozenset[str] = frozenset(),
    progress: Callable[[int], None] = lambda _: None,
) -> Copied:
    """Copy what is in a folder into another one that is empty. Blocks.

    left_out: absolute paths that are not copied; a folder is there, and empty.
    progress: told now and then how many files there are.
    Raises: OSError, as where there is no room.
    """
    count = _Count()
    out = {os.fsencode(one) for one in left_out}
    _copy(os.fsencode(source), os.fsencode(target), count, out, progress)
    return Copied(count.files, count.size, count.reflinks and count.files > 0, count.unread)


def _copy(
    source: bytes, target: bytes, count: _Count, out: set[bytes], progress: Callable[[int], None]
) -> None:
    with os.scandir(source) as scanned:
        entries = list(scanned)
    for one in entries:
        to = target + b"/" + one.name
        try:
            told = one.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        mode = told.st_mode
        if stat.S_ISDIR(mode):
            os.mkdir(to, 0o700)
            if one.path not in out:
                try:
                    _copy(one.path, to, count, out, progress)
                except PermissionError:
                    count.unread.append(one.path)
        elif stat.S_ISLNK(mode):
            os.symlink(os.readlink(one.path), to)
        elif stat.S_ISFIFO(mode):
            os.mkfifo(to)
        elif not stat.S_ISREG(mode) or not _copy_file(one.path, to, told, count):
            continue
        _finish(to, told)
        if count.files % 500 == 0:
            progress(count.files)
    _finish(target, os.stat(source))


def _copy_file(source: bytes, target: bytes, told: os.stat_result, count: _Count) -> bool:
    count.files += 1
    count.size += told.st_size
    name = (told.st_dev, told.st_ino)
    if told.st_nlink > 1 and name in count.names:
        os.link(count.names[name], target)
        return False
    with contextlib.ExitStack() as opened:
        try:
            held = opened.enter_context(open_agent_file(source))
        except OSError:
            count.unread.append(source)
            return False
        made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        opened.callback(os.close, made)
        if not (count.reflinks and _clone(held, made)):
            count.reflinks = count.reflinks and not told.st_size
            while os.sendfile(made, held, None, _PIECE_BYTES):
                pass
    count.names[name] = target
    return True


def _clone(held: int, made: int) -> bool:
    try:
        fcntl.ioctl(made, _FICLONE, held)
    except OSError:
        return False
    return True


def _finish(path: bytes, told: os.stat_result) -> None:
    """Give a copy mode and times."""
    times = told.st_atime_ns, told.st_mtime_ns
    if not stat.S_ISLNK(told.st_mode):
        os.chmod(path, stat.S_IMODE(told.st_mode))
    os.utime(path, ns=times, follow_symlinks=False)
