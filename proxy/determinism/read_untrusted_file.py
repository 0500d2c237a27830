"""Read a file that the agent could have changed: bounded, and only if it is a regular file."""

import os
import stat
from pathlib import Path


def read_agent_file(path: Path, most: int, begin: int = 0) -> bytes:
    """Read a file that a command was to write; nothing where it is something else.

    A link could lead to what the command itself may not see, and a pipe has no end.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return b""
            file.seek(begin)
            return file.read(most)
    except OSError:
        return b""
