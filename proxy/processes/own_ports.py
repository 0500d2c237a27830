"""Find out whether a port of this machine is one at which a command's own programs listen, and nobody else."""

import asyncio
import socket
from collections.abc import Callable, Iterable

from . import sockdiag
from .proc import Process, find_process, list_pids, owned_sockets

_MOST_ANCESTORS = 100


class MachinePorts:
    """Ports of this machine, for a command that runs on it."""

    def __init__(self, members: Callable[[], Iterable[Process]]) -> None:
        """Know the command by the processes that `members` gives, and by what these have started since."""
        self._members = members

    async def listens(self, host: str, port: int) -> bool:
        """Say whether each process that holds a listener at this port is the command's, on any address."""
        return await asyncio.to_thread(self._look, port)

    async def connect(self, host: str, port: int) -> socket.socket | None:
        """Leave it to the caller, whose network it is."""
        return None

    def _look(self, port: int) -> bool:
        try:
            inodes = {one.inode for one in sockdiag.list_listeners(port)}
        except OSError:  # no such kernel: then nothing is proved
            return False
        found = {pid: owned for pid in list_pids() if (owned := owned_sockets(pid, inodes))}
        if not inodes or set().union(*found.values()) != inodes:
            return False
        known = {one.pid: one.started for one in self._members()}
        return all(_belongs(pid, known) for pid in found)


def _belongs(pid: int, known: dict[int, float]) -> bool:
    """Say whether a process is one of these, or descends from one."""
    for _ in range(_MOST_ANCESTORS):
        process = find_process(pid)
        if process is None:
            return False
        if known.get(pid) == process.started:
            return True
        pid = process.parent
    return False
