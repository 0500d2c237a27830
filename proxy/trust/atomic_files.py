"""Write files that other processes read at the same time, atomically."""

import contextlib
import os
import secrets
from pathlib import Path

from ...store import make_own_folder
from ..errors import EngineError


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Create a file that must not exist, with its mode from the first byte on.

    mode: permission bits, whatever the umask says; a file system that has none keeps its own.
    Raises: FileExistsError; OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        with contextlib.suppress(PermissionError):
            os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())


def temporary_sibling(path: Path) -> Path:
    """Name a file in the same folder that no other process uses."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")


def write_public(path: Path, content: bytes, mode: int = 0o644) -> bool:
    """Make `path` hold `content`, in one step; say whether anything had to be written.

    Creates the folder. A file that holds it already is left alone, so that readers and backups see no change.
    Raises: EngineError, when the place cannot be written.
    """
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return False
    temporary = temporary_sibling(path)
    try:
        make_own_folder(path.parent, 0o755)
        write_new(temporary, content, mode)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise EngineError(
            f"cannot write {str(path)!r}: {error.strerror or error}",
            "Choose a folder that can be written with --ca-dir or --store.",
        ) from error
    return True


def advise_on_target(target: Path) -> str:
    """Say what to do about a file that could not be written."""
    if not target.parent.exists():
        return f"there is no folder {str(target.parent)!r}: make it first, or name a file elsewhere"
    return "name a file in a folder that can be written"
