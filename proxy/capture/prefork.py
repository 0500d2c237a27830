"""The processes of the capture that have to be made before the launcher has threads, and better before it is imported: forks of a small process are cheap."""

import errno
import os
import sys

from ..errors import EngineError
from . import KINDS
from .command_starter import Starter
from .supervisor import Supervisor

_OFF = {
    errno.EBUSY: "another program above this one has such a filter, as another `playhead record` has",
    errno.EACCES: "an ordinary user's filter would have sudo do nothing",
    errno.EPERM: "the kernel, or the container, forbids it, as kernel.yama.ptrace_scope does to ordinary users",
    errno.EINVAL: "the kernel is too old",
    errno.ENOSYS: "the kernel, or the container, has no such filter",
}
"""Why there is no capture, by the error number."""


class Prefork:
    """The processes that have to be made before this one has threads. Close it, whatever became of it."""

    def __init__(self) -> None:
        """Make them. Raises: OSError."""
        self.supervisor = Supervisor.fork()
        self.starter = Starter.fork()

    def close(self) -> None:
        """Have the starter end if it has not become the command; the supervisor stays while anybody of the command does."""
        self.starter.close()
        self.supervisor.close()


def prefork(kind: str) -> Prefork | None:
    """Make them for a recording of this kind, as `sandbox.record` names it; None where none are needed, or can be had.

    Raises: EngineError, where capture was asked for by name.
    """
    if kind not in KINDS:
        return None
    try:
        if sys.platform != "linux":
            raise OSError(errno.ENOSYS, "no Linux")
        return Prefork()
    except OSError as error:
        if kind == "notify":
            raise unable(error.errno or 0) from error
        return None


def explain(number: int) -> str:
    """Say why there is no capture, by the number of the error."""
    name = errno.errorcode.get(number, str(number))
    return f"{_OFF.get(number, os.strerror(number) if number > 0 else 'nobody knows why')} ({name})"


def unable(number: int) -> EngineError:
    """Make the error of a recording that was to have it."""
    return EngineError(
        f"the command's connections cannot be captured: {explain(number)}",
        "leave out sandbox.record: notify (proxy variables lead most clients here), or record with --capture, in a sandbox",
    )
