"""Read a file that the agent could have changed: bounded, and only if it is a regular file."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextlib.contextmanager
def open_agent_file(path: Path | str | bytes) -> Iterator[int]:
    """Open a file that a command was to write; gives a descriptor.

    A link could lead to what the command itself may not see, and a pipe has no end.
    Raises: OSError, also where it is something else than a regular file.
    """
    held = os.open(path, _FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        yield held
    finally:
        os.close(held)


def read_agent_file(path: Path, most: int, begin: int = 0) -> bytes:
    """Read a part of a file that a command was to write; nothing where there is no such file."""
    try:
        with open_agent_file(path) as held, open(held, "rb", closefd=False) as file:
            file.seek(begin)
            return file.read(most)
    except OSError:
        return b""
