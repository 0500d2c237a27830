"""Put files into a folder and take them away; what came to a place since the folder was looked at stays, and is named.

1. A place is looked at right before it is written to, and compared with what was there.
2. A file goes into its place by an exchange. What came out is looked at, too, and goes back if somebody wrote to it meanwhile.
3. Where a file system exchanges nothing, the look right before is all.
4. What somebody removed meanwhile stays removed, and is named, unless it was to go anyway.

Source: renameat2(2).
"""

import contextlib
import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Mapping
from functools import cache

from ...tape.folders.manifest import Entry, Kind
from .file_contents import hash_file
from .list_folder import entry_of

INDEX = b".git/index"
"""Written anew by any look at a repository; what is staged is among its objects."""
TEMPORARY = b".playhead-restoring-"
_AT_FDCWD, _NO_REPLACE, _EXCHANGE = -100, 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL)


class Places:
    """The places of a folder, with what was there when it was looked at."""

    def __init__(self, folder: bytes, room: bytes, entries: Mapping[bytes, Entry] | None) -> None:
        """Begin.

        room: a folder on its file system, for what is taken away.
        entries: what was there, by path, with hashes as far as they are known; None where nobody else writes to the folder.
        """
        self.left: dict[bytes, None] = {}
        """Paths that stay as they are, for something else is there by now."""
        self._folder = folder
        self._room = room
        self._entries = entries
        self._gone: set[bytes] = set()
        self._moved: set[int] = set()
        """Files that we renamed or touched: of their other names, too, the time of the last change is ours."""

    def leave(self, path: bytes) -> bool:
        """Note that a path stays as it is."""
        self.left[path] = None
        return False

    def put(self, path: bytes, made: bytes) -> bool:
        """Have what was made be at a path; say whether it is. Raises: OSError."""
        where = self._folder + b"/" + path
        try:
            return self._swap(path, made, where)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # Another file system is mounted in the folder: by way of a name beside the place.
            beside = os.path.dirname(where) + b"/" + TEMPORARY + b"%d" % os.getpid()
            try:
                shutil.copy2(made, beside, follow_symlinks=False)
                return self._swap(path, beside, where)
            finally:
                _unlink(beside)
        finally:
            _unlink(made)

    def _swap(self, path: bytes, made: bytes, where: bytes) -> bool:
        if self._entries is None:
            os.rename(made, where)
            return True
        if self._has_gone(path, where) or not self._is_as_it_was(path, where):
            return self.leave(path)
        try:
            exchange(made, where)
        except FileNotFoundError:
            return self._put_new(path, made, where)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            os.rename(made, where)
            return True
        self._moved.add(os.lstat(made).st_ino)
        if self._is_as_it_was(path, made):
            return True
        _give_back(made, where)
        return self.leave(path)

    def _put_new(self, path: bytes, made: bytes, where: bytes) -> bool:
        if self._has_gone(path, where):
            return self.leave(path)
        try:
            _rename_to_free_place(made, where)
        except (FileExistsError, FileNotFoundError, NotADirectoryError):
            return self.leave(path)
        return True

    def make_folder(self, path: bytes) -> bool:
        """Have a folder be at a path; say whether it is. Raises: OSError."""
        where = self._folder + b"/" + path
        if self._has_gone(path, where):
            return self.leave(path)
        try:
            os.mkdir(where, 0o700)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(where).st_mode):
                return self.leave(path)
        return True

    def take_away(self, path: bytes) -> bool:
        """Have nothing be at a path, but a folder that something is in stays; say whether something went. Raises: OSError."""
        where = self._folder + b"/" + path
        same = self._is_as_it_was(path, where)
        self._gone.add(path)
        if not same:
            return self.leave(path)
        try:
            if stat.S_ISDIR(os.lstat(where).st_mode):
                # Where something that is left out is in it, it stays.
                with contextlib.suppress(OSError):
                    os.rmdir(where)
                    return True
                return False
            return self._take_file(path, where)
        except FileNotFoundError:
            return False

    def _take_file(self, path: bytes, where: bytes) -> bool:
        if self._entries is None:
            os.unlink(where)
            return True
        out = self._room + b"/out-%d" % len(self._gone)
        try:
            _rename_to_free_place(where, out)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            os.unlink(where)
            return True
        self._moved.add(os.lstat(out).st_ino)
        self._gone.discard(path)
        same = self._is_as_it_was(path, out)
        self._gone.add(path)
        if same:
            os.unlink(out)
            return True
        _give_back_to_free_place(out, where)
        return self.leave(path)

    def touch(self, path: bytes, modified_ns: int, mode: int | None = None) -> bool:
        """Give a file its time, and its mode; say whether it has them. Raises: OSError."""
        where = self._folder + b"/" + path
        try:
            told = os.lstat(where)
            if not (stat.S_ISREG(told.st_mode) and self._is_as_it_was(path, where)):
                return self.leave(path)
            self._moved.add(told.st_ino)
            if mode is not None:
                os.chmod(where, mode)
            os.utime(where, ns=(modified_ns, modified_ns), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return self.leave(path)
        return True

    def _has_gone(self, path: bytes, where: bytes) -> bool:
        """Say whether somebody else removed what was at a path."""
        if self._entries is None or path in self._gone or _is_index(path):
            return False
        was = self._entries.get(path)
        return was is not None and bool(was.changed_ns) and not os.path.lexists(where)

    def _is_as_it_was(self, path: bytes, where: bytes) -> bool:
        """Say whether nothing is at a place that was not at a path."""
        if self._entries is None or _is_index(path):
            return True
        try:
            told = os.lstat(where)
            now = entry_of(told, os.readlink(where) if stat.S_ISLNK(told.st_mode) else b"")
        except (FileNotFoundError, NotADirectoryError):
            return True
        was = None if path in self._gone else self._entries.get(path)
        if was is None:
            return False
        if not was.changed_ns:  # nobody could look at it, and it is to be overwritten all the same
            return True
        if (now.kind, now.target, now.size) != (was.kind, was.target, was.size):
            return False
        if now.kind is not Kind.FILE or not now.size:
            return True
        same = (now.inode, now.modified_ns) == (was.inode, was.modified_ns)
        if same and (now.changed_ns == was.changed_ns or now.inode in self._moved):
            return True
        return bool(was.digest) and hash_file(where) == was.digest


def _is_index(path: bytes) -> bool:
    return (b"/" + path).endswith(b"/" + INDEX)


def exchange(one: bytes, other: bytes) -> None:
    """Exchange what is at two places. Raises: OSError, with ENOSYS or EINVAL where that is not possible."""
    _rename(one, other, _EXCHANGE)


def rename_new(place: bytes, free: bytes) -> None:
    """Rename to a place where nothing is. Raises: OSError, with ENOSYS or EINVAL where that is not possible."""
    _rename(place, free, _NO_REPLACE)


def _give_back(out: bytes, where: bytes) -> None:
    try:
        exchange(out, where)
    except FileNotFoundError:
        _give_back_to_free_place(out, where)


def _give_back_to_free_place(out: bytes, where: bytes) -> None:
    with contextlib.suppress(FileExistsError):  # something newer is there
        _rename_to_free_place(out, where)


def _rename_to_free_place(place: bytes, free: bytes) -> None:
    try:
        rename_new(place, free)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        if os.path.lexists(free):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), free) from None
        os.rename(place, free)


def _rename(one: bytes, other: bytes, flags: int) -> None:
    libc = _find_libc()
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), one, None, other)


@cache
def _find_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _unlink(path: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
