"""The limit of open files of this process: raised for the proxy, and as it was for the commands it starts.

Many systems give a process 1,024 files and let it raise that by itself. A proxy needs two and more for a client. Programs that
wait with `select` cannot have more than 1,024, so that limit is what a command is started with.
"""

import contextlib
import fcntl
import os
import resource
from collections.abc import Iterator

MOST = 65_536
"""No process is given more: what is bounded by the limit has to be bounded where there is none, too."""

_usual: tuple[int, int] | None = None
"""Soft and hard limit as they were, once they were raised."""


def raise_limit() -> int:
    """Have as many open files as this process may; give how many that are."""
    global _usual
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            _usual = _usual or (soft, hard)
            soft = wanted
    return min(soft, MOST) if soft != resource.RLIM_INFINITY else MOST


@contextlib.contextmanager
def usual_limit() -> Iterator[None]:
    """Have the limit as it was, for a command that is started meanwhile."""
    if _usual is None:
        yield
        return
    raised = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, _usual)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, raised)


class FileGauge:
    """Measures how many files are open, by the lowest number that is free."""

    def __init__(self, limit: int) -> None:
        """Measure against a limit. Takes one file itself, until `close`."""
        self.limit = limit
        self._own = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def lowest_free(self) -> int:
        """The number that the next file would get: at least so many are open. The limit where there is none left."""
        try:
            number = fcntl.fcntl(self._own, fcntl.F_DUPFD_CLOEXEC, 0)
        except OSError:
            return self.limit
        os.close(number)
        return number

    def close(self) -> None:
        """Let go of its own file."""
        os.close(self._own)
