"""The file that `--receipt` names: this user's alone, in the folder that was meant before the command ran.

A command may put a link, or another folder, where the file is to be. So the folder is opened before it runs, the file is
made beside its place, and takes it in one step: whatever has the name is replaced, and never written through.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from ..errors import EngineError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class ReceiptFile:
    """A place for one receipt. Open it before the command runs, write it afterwards, close it."""

    def __init__(self, path: Path, kept: Iterable[Path] = ()) -> None:
        """Hold the folder.

        kept: files and folders that a receipt never replaces, nor anything in them: the store, the configuration, keys.
        Raises: EngineError, where it is not there, takes no file, is one of `kept`, or something else than a file has the name.
        """
        self.path = path
        try:
            if path.name in ("", "..") or path.is_dir():
                raise _unusable(path, "it is a folder")
            place = path.parent.resolve() / path.name
            for one in kept:
                if place.is_relative_to(one.resolve()):
                    raise _unusable(path, f"{str(one)!r} is Playhead's own, and is not replaced")
        except OSError as error:
            raise _unusable(path, str(error.strerror)) from error
        try:
            self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _unusable(path, str(error.strerror)) from error
        try:
            self._require_place()
        except OSError as error:
            self.close()
            raise _unusable(path, str(error.strerror)) from error
        except EngineError:
            self.close()
            raise

    def _require_place(self) -> None:
        """Have the folder take a file, and the name be free or a file's. Raises: EngineError; OSError."""
        name, folder = self.path.name, self._folder
        with contextlib.suppress(FileNotFoundError):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                kind = "a link" if stat.S_ISLNK(found.st_mode) else "no file"
                raise _unusable(self.path, f"it is {kind}, and no link is followed")
        # Tried, before a command has run for nothing: rights alone do not say it (read-only disks, quotas).
        temporary = self._temporary()
        os.close(os.open(temporary, _NEW, 0o600, dir_fd=folder))
        os.unlink(temporary, dir_fd=folder)

    def _temporary(self) -> str:
        return f".{self.path.name[:200]}.{secrets.token_hex(8)}"

    def write(self, text: bytes) -> None:
        """Have the file hold this, with mode 0600. Raises: OSError."""
        name, folder = self.path.name, self._folder
        temporary = self._temporary()
        try:
            with open(os.open(temporary, _NEW, 0o600, dir_fd=folder), "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise

    def close(self) -> None:
        """Let the folder go. Twice is once."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


def _unusable(path: Path, why: str) -> EngineError:
    return EngineError(
        f"cannot write the receipt to {str(path)!r}: {why}",
        "name a file in a folder that is there and that you may write to; --json prints it",
    )
