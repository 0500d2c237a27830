"""What a command leaves behind: a hash of what it writes to stdout, and of the files that it changes in its working folder.

Both are written into the log of a run, so that a replay can be compared with its recording (`replay --compare stdout,files`).
The command sees the same kind of stdout as without Playhead: a terminal stays the terminal and is not hashed, a file
stays the file and is read afterwards, and a pipe is another pipe, whose content is passed on as it comes. A file that stderr
is written to as well becomes a pipe, too: what is read of it afterwards would also have that, and what Playhead says.
"""

import contextlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from ...tape.folders.changes import Change
from ...tape.folders.hide_secret_names import hide_names
from ...tape.folders.manifest import Kind
from ...timeline.receipts.command.compare_files import LEFT_OUT, UNWRITTEN
from ..folder.execution_folder import Execution
from ..standard_streams import write_all

MOST_FILES = 20_000
"""Files and folders of the working folder that are looked at."""
_MOST_HASHED = 1000
_MOST_BYTES = 256 * 1024 * 1024
"""Of files that are hashed in all."""
_DIGEST_BYTES = 16
_PIECE_BYTES = 65536
_STDOUT, _STDERR = 1, 2
_REST_S = 1.0
"""Longest wait for what the command wrote and nobody has read yet, once it has ended."""


class Stdout:
    """Hashes what is written to this process's stdout, by whoever inherits it, while the context lasts."""

    def __init__(self) -> None:
        """Begin nothing yet."""
        self._hash = blake2b(digest_size=_DIGEST_BYTES)
        self._size = 0
        self._start: int | None = None
        """Where a file began to be written."""
        self._real = -1
        self._reader = -1
        self._thread: threading.Thread | None = None
        self._broken = False
        self._closed = False

    def __enter__(self) -> Self:
        """Begin."""
        try:
            told = os.fstat(_STDOUT)
        except OSError:  # closed
            return self
        is_file = stat.S_ISREG(told.st_mode)
        if is_file and not _is_stderr(told):
            self._start = _position()
        elif is_file or stat.S_ISFIFO(told.st_mode):
            self._reader, writer = os.pipe()
            self._real = os.dup(_STDOUT)
            os.dup2(writer, _STDOUT, inheritable=True)
            os.close(writer)
            self._thread = threading.Thread(target=self._pass_on, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """As `close`."""
        self.close()

    def close(self) -> None:
        """Put stdout back, and read what the command has written. Twice is once."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None:
            os.dup2(self._real, _STDOUT, inheritable=True)
            # It ends with the pipe: at once, unless a process that the command left behind holds it.
            self._thread.join(_REST_S)
            if self._thread.is_alive():
                self._broken = True  # it goes on for as long as this process does
            else:
                os.close(self._real)
        elif self._start is not None:
            self._read_file(self._start)

    @property
    def result(self) -> list[object] | None:
        """Hash as hexadecimal digits, and bytes; None where it is a terminal, or cannot be known."""
        if self._broken or (self._thread is None and self._start is None):
            return None
        return [self._hash.hexdigest(), self._size]

    def _pass_on(self) -> None:
        try:
            while data := os.read(self._reader, _PIECE_BYTES):
                self._hash.update(data)
                self._size += len(data)
                write_all(self._real, data)
        except (
            OSError
        ):  # nobody reads it any more: the command is told so, as it would be without us
            self._broken = True
        finally:
            os.close(self._reader)

    def _read_file(self, start: int) -> None:
        try:
            with open(f"/proc/self/fd/{_STDOUT}", "rb") as file:
                file.seek(start)
                while data := file.read(_PIECE_BYTES):
                    self._hash.update(data)
                    self._size += len(data)
        except OSError:  # write-only to us
            self._broken = True


def _is_stderr(told: os.stat_result) -> bool:
    """Say whether stderr is this file, too."""
    with contextlib.suppress(OSError):
        return os.path.samestat(told, os.fstat(_STDERR))
    return False


def _position() -> int:
    import fcntl

    if fcntl.fcntl(_STDOUT, fcntl.F_GETFL) & os.O_APPEND:
        return os.fstat(_STDOUT).st_size
    return os.lseek(_STDOUT, 0, os.SEEK_CUR)


def hide_files(files: Mapping[str, str], redact: Callable[[bytes], bytes]) -> dict[str, str]:
    """Give files as the log has them: without the secrets in their names.

    A name that was hidden in the recording stands for the file that has it now.
    """
    names = {os.fsencode(name): name for name in files}
    hidden = {names[path]: os.fsdecode(now) for path, now in hide_names(names, redact).items()}
    found = {name: told for name, told in files.items() if name not in hidden}
    found |= {hidden[name]: told for name, told in files.items() if name in hidden}
    return dict(sorted(found.items()))


class _Look(NamedTuple):
    """What tells one state of a file from another."""

    inode: int
    size: int
    changed_ns: int
    mode: int


class Folder:
    """The working folder before a command is started."""

    def __init__(self, folder: Path, *, left_out: tuple[Path, ...] = ()) -> None:
        """Look at it. Blocking.

        left_out: folders that are not the command's, as the store.
        """
        self._folder = folder
        self._left_out = frozenset(path.absolute() for path in left_out)
        self._before = self._look()

    def changed(self, also: tuple[str, ...] = ()) -> dict[str, str] | None:
        """Give the files that are others now, with the hash of each; empty where it is gone. Blocking.

        also: further ones, by their paths from the folder; `UNWRITTEN` where one is there and was not touched, so that what an
            earlier run has left there does not count as written.
        None where there are too many to say.
        """
        if self._before is None or (after := self._look()) is None:
            return None
        names = {name for name, look in after.items() if self._before.get(name) != look}
        names |= (self._before.keys() - after.keys()) | set(also)
        if len(names) > _MOST_HASHED:
            return None
        found, size = {}, 0
        for name in sorted(names):
            if name in after and self._before.get(name) == after[name]:
                found[name] = UNWRITTEN
                continue
            size += after[name].size if name in after else 0
            if size > _MOST_BYTES:
                return None
            found[name] = _hash(self._folder / name)
        return found

    def _look(self) -> dict[str, _Look] | None:
        found = {}
        for count, entry in enumerate(self._walk(self._folder)):
            if count > MOST_FILES:
                return None
            with contextlib.suppress(OSError):
                told = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(told.st_mode):
                    name = os.path.relpath(entry.path, self._folder)
                    found[name] = _Look(told.st_ino, told.st_size, told.st_mtime_ns, told.st_mode)
        return found

    def _walk(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        folders = [str(folder)]
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except OSError:  # closed to this user, or gone
                continue
            for entry in entries:
                yield entry
                inside = entry.name not in LEFT_OUT and entry.is_dir(follow_symlinks=False)
                if inside and Path(entry.path) not in self._left_out:
                    folders.append(entry.path)


class LayeredFolder:
    """The working folder of a command that runs on an overlay: what it changed is in the upper layer."""

    def __init__(self, execution: Execution, working: Path) -> None:
        """Prepare.

        working: the working folder, in that of the execution.
        """
        self._execution = execution
        within = os.path.relpath(os.path.realpath(working), execution.area.folder)
        self._above = "" if within == "." else f"{within}/"

    def changed(self, also: tuple[str, ...] = ()) -> dict[str, str] | None:
        """As `Folder.changed`. Blocking."""
        written = self._execution.find_written()
        names: dict[str, bytes | None] = {
            os.fsdecode(one.path): None
            for one in written.effects
            if one.change is Change.DELETED and one.entry.kind is Kind.FILE
        }
        names |= {os.fsdecode(path): place for path, place in written.touched.items()}
        found = {
            name.removeprefix(self._above): place
            for name, place in names.items()
            if name.startswith(self._above) and not LEFT_OUT.intersection(name.split("/")[:-1])
        }
        if len(found) > _MOST_HASHED:
            return None
        hashes = {
            name: "" if place is None else _hash(Path(os.fsdecode(place)))
            for name, place in found.items()
        }
        for name in also:
            if name not in hashes:
                there = self._execution.find_file(os.fsencode(self._above + name))
                hashes[name] = UNWRITTEN if there is not None else ""
        return dict(sorted(hashes.items()))


def _hash(path: Path) -> str:
    """Give a file's hash, with its mode behind it; empty of one that is gone, or closed to us."""
    try:
        with path.open("rb") as file:
            found = blake2b(digest_size=_DIGEST_BYTES)
            while data := file.read(_PIECE_BYTES):
                found.update(data)
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            return f"{found.hexdigest()}:{mode:o}" if mode else found.hexdigest()
    except OSError:
        return ""
