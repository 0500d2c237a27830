"""The filter of a recorded command: it reports `connect`, and allows every system call.

`io_uring_setup` is reported, too: a ring connects without that call, so that who has one may not be seen. Calls of another
architecture (32 bits) are not reported.
"""

import errno
import platform

from ..sandbox.kernel.bpf import EQUAL, LOAD, RETURN, Op, assemble
from ..sandbox.kernel.seccomp import ALLOW, ASK, CALLS, MACHINE_AT, MACHINES, NUMBER_AT
from ..sandbox.kernel.syscalls import forbid_new_privileges, open_listening_filter

REPORTED = ("connect", "io_uring_setup")


def program(machine: str) -> list[Op | str]:
    """Write the filter for a machine, as `platform.machine()` names it. Raises: KeyError, on another than x86-64 and arm64."""
    numbers = [number for number, name in find_reported(machine).items() if name in REPORTED]
    return [
        Op(LOAD, MACHINE_AT),
        Op(EQUAL, MACHINES[machine], None, "allowed"),
        Op(LOAD, NUMBER_AT),
        *[Op(EQUAL, number, "reported") for number in numbers],
        "allowed",
        Op(RETURN, ALLOW),
        "reported",
        Op(RETURN, ASK),
    ]


def find_reported(machine: str) -> dict[int, str]:
    """Give the calls that are reported by their numbers. Raises: KeyError."""
    column = tuple(MACHINES).index(machine) if machine in MACHINES else None
    if column is None:
        raise KeyError(machine)
    return {CALLS[name][column]: name for name in REPORTED}


def install(*, may_forbid: bool) -> tuple[int, bool]:
    """Filter the calls of this process and of all that it makes.

    may_forbid: give up that programs gain rights (set-uid, sudo) where the kernel asks for that: of all but root.
    Gives the descriptor at which reports come, and whether that was given up.
    Raises: OSError: EBUSY where another program above has such a filter, EACCES where it would have to be given up, ENOSYS on a
        kernel or a machine without.
    """
    machine = platform.machine()
    try:
        code = assemble(program(machine))
    except KeyError as error:
        raise OSError(errno.ENOSYS, f"the system calls of {machine} are not known") from error
    try:
        return open_listening_filter(code), False
    except PermissionError:
        if not may_forbid:
            raise
    forbid_new_privileges()
    return open_listening_filter(code), True
