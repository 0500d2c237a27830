"""Find out whether a port of this machine is one at which a command's own programs listen, and nobody else."""

import socket
from collections.abc import Callable, Iterable

from . import sockdiag
from .proc import Process, find_process, list_pids, owned_sockets

_MOST_ANCESTORS = 100
_MOST_KNOWN = 1000
_ANY = ("0.0.0.0", "::")


class MachinePorts:
    """Ports of this machine, for a command that runs on it."""

    def __init__(self, members: Callable[[], Iterable[Process]]) -> None:
        """Know the command by the processes that `members` gives, and by what these have started since."""
        self._members = members
        self._known: dict[frozenset[int], bool] = {}
        """Whose listeners are: looking through all processes takes 5 ms, and a listener keeps its inode."""

    def listens(self, host: str, port: int) -> bool:
        """Say whether each process that holds a listener at this port is the command's, on any address."""
        try:
            inodes = frozenset(one.inode for one in sockdiag.list_listeners(port))
        except OSError:  # no such kernel: then nothing is proved
            return False
        return self._belong(inodes)

    def listens_at(self, address: str, port: int) -> bool:
        """Do as `listens` for those alone that a connection to this very address, as text in its shortest form, may come to."""
        try:
            found = list(sockdiag.list_listeners(port))
        except OSError:
            return False
        there = (address, *_ANY)
        return self._belong(frozenset(one.inode for one in found if one.local[0] in there))

    def _belong(self, inodes: frozenset[int]) -> bool:
        if inodes not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[inodes] = self._look(inodes)
        return self._known[inodes]

    async def connect(self, host: str, port: int) -> socket.socket | None:
        """Leave it to the caller, whose network it is."""
        return None

    def _look(self, inodes: frozenset[int]) -> bool:
        if not inodes:
            return False
        found = {pid: owned for pid in list_pids() if (owned := owned_sockets(pid, inodes))}
        if frozenset().union(*found.values()) != inodes:
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
