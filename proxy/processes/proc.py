"""Read process information from the system, cheaply.

On Linux `/proc` is read directly (15 us a process; psutil needs several times that), elsewhere psutil
answers. A process that vanishes or may not be looked at is None, never an exception.
"""

import os
import sys
from collections.abc import Set
from functools import cache
from typing import NamedTuple

import psutil

_LINUX = sys.platform == "linux"


class Process(NamedTuple):
    """One process at the moment of asking."""

    pid: int
    parent: int
    group: int
    session: int
    zombie: bool
    started: float
    """Seconds since boot on Linux (steady when the clock is set), since the epoch elsewhere: to be compared only."""
    name: str
    """Command name; on Linux at most 15 characters. A process may call itself anything: escape it."""


def list_pids() -> list[int]:
    """List the ids of all processes that can be seen."""
    if _LINUX:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return psutil.pids()


def find_process(pid: int) -> Process | None:
    """Look at one process."""
    return _from_proc(pid) if _LINUX else _from_psutil(pid)


def owns_socket(pid: int, inode: int) -> bool:
    """Say whether a process has a socket open, by its inode (Linux)."""
    return bool(owned_sockets(pid, {inode}))


def owned_sockets(pid: int, inodes: Set[int]) -> frozenset[int]:
    """Pick the sockets that a process has open, by their inodes (Linux)."""
    folder = f"/proc/{pid}/fd"
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found = set()
    try:
        for descriptor in os.listdir(folder):
            try:
                target = os.readlink(f"{folder}/{descriptor}")
            except FileNotFoundError:
                continue  # closed meanwhile
            if target in wanted:
                found.add(wanted[target])
                if len(found) == len(wanted):
                    break
    except OSError:
        pass
    return frozenset(found)


def group_alive(pgid: int, started: float) -> bool:
    """Say whether a process group still has a living member; zombies do not count.

    started: of the group's leader, as `Process.started`. A number is not given out again while a group bears
    it, so a process with this id and another start means that the group is gone.
    """
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it lives, under another user
    leader = find_process(pgid)
    if leader is not None:
        if leader.started != started:
            return False
        if not leader.zombie:
            return True
    return any(
        process.group == pgid and not process.zombie
        for process in map(find_process, list_pids())
        if process is not None
    )


@cache
def _ticks_per_second() -> int:
    return os.sysconf("SC_CLK_TCK")


def _from_proc(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            data = file.read()
    except OSError:
        return None
    # The name stands in parentheses and may itself hold any character. Source: proc_pid_stat(5).
    opening, closing = data.find(b"("), data.rfind(b")")
    fields = data[closing + 2 :].split(None, 20)
    if len(fields) < 20:
        return None  # read while it died
    return Process(
        pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        zombie=fields[0] in (b"Z", b"X", b"x"),
        started=int(fields[19]) / _ticks_per_second(),
        name=data[opening + 1 : closing].decode(errors="replace"),
    )


def _from_psutil(pid: int) -> Process | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            return Process(
                pid,
                parent=process.ppid(),
                group=os.getpgid(pid),
                session=os.getsid(pid),
                zombie=process.status() == psutil.STATUS_ZOMBIE,
                started=process.create_time(),
                name=process.name(),
            )
    except (psutil.Error, OSError):
        return None
