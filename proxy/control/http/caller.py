"""Identify the caller of the control API from its connection, not from its request."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from ...processes.client_processes import Address, find_client
from ...processes.socket_user import find_user
from .error_body import ControlError

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


def require_own_user(peer: object, local: object) -> None:
    """Let no other user of this machine open a link: the command line of a browser that is given one can be read by all.

    peer, local: the two ends of the connection, as a transport names them; of another machine nothing can be seen.
    Raises: ControlError.
    """
    if not isinstance(peer, tuple) or not isinstance(local, tuple):
        return
    user = find_user((peer[0], peer[1]), (local[0], local[1]))
    if user is None or user in own_users(os.environ):
        return
    raise ControlError(
        403,
        "This link was opened by another user of this machine",
        expected=f"a process of user {os.geteuid()}",
        found=f"one of user {user}",
        hint="start playhead as the user whose browser opens the link",
    )


def own_users(environ: Mapping[str, str]) -> frozenset[int]:
    """Give the ids of users who may open a link: ours, root, and who became root by sudo."""
    users = {0, os.getuid(), os.geteuid()}
    before = environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and before.isascii() and before.isdigit():
        users.add(int(before))
    return frozenset(users)
