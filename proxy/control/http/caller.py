"""Identify the caller of the control API from its connection, not from its request."""

from dataclasses import dataclass

import psutil

from ...processes.connections import Address, find_client

NOBODY = "somebody"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who made a connection."""

    by: str
    """Name of the user; the address where the process cannot be seen."""
    pid: int
    """0 where it cannot be seen."""

    def __str__(self) -> str:
        return f"{self.by} (pid {self.pid})" if self.pid else self.by


def find_caller(peer: Address, local: Address) -> Caller:
    """Say whose process is at the other end of a connection. Blocks for a look at the process table."""
    found = find_client(peer, local)
    if found is None:
        return Caller(peer[0], 0)
    try:
        return Caller(psutil.Process(found.pid).username(), found.pid)
    except (psutil.Error, KeyError):
        return Caller(peer[0], found.pid)
