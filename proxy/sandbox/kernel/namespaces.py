"""Enter new namespaces: users, network, mounts, processes, IPC and host name.

The user namespace is made for root too: without it root inside is root outside, and leaves through `/proc`.
"""

import os
from pathlib import Path

ALL = (
    os.CLONE_NEWUSER
    | os.CLONE_NEWNET
    | os.CLONE_NEWNS
    | os.CLONE_NEWPID
    | os.CLONE_NEWIPC
    | os.CLONE_NEWUTS
)


def enter() -> None:
    """Leave the namespaces of the machine, but for that of process ids: see `enter_processes`.

    Only this user and this group exist inside. Call it before the process has a second thread.
    Raises: OSError, where the kernel or the machine does not allow it.
    """
    uid, gid = os.geteuid(), os.getegid()
    os.unshare(ALL & ~os.CLONE_NEWPID)
    # Source: user_namespaces(7): without this a group map is not ours to write.
    _write("setgroups", "deny")
    _write("uid_map", f"{uid} {uid} 1")
    _write("gid_map", f"{gid} {gid} 1")


def enter_processes() -> None:
    """Have the next child be the first process of a namespace of process ids; this one makes no thread any more.

    Raises: OSError.
    """
    os.unshare(os.CLONE_NEWPID)


def _write(name: str, text: str) -> None:
    Path("/proc/self", name).write_text(text)
