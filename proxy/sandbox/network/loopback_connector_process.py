"""The process in a sandbox's network that looks and connects for the proxy; the command cannot reach it.

It is asked by `loopback_connector`. The sandbox's init imports this, so it needs only modules that are quick to import.
"""

import contextlib
import json
import os
import resource
import signal
import socket

from ...processes.sockdiag import list_listeners
from ..kernel.syscalls import die_with_parent

PATIENCE_S = 5.0
"""Of a connection, and of an answer of this process."""
_MOST_BYTES = 1 << 10
_LOOPBACK = {"localhost": ("127.0.0.1", "::1")}
_ANY = ("0.0.0.0", "::")
YES, NO = b"1", b"0"
"""What it answers."""


def fork() -> socket.socket:
    """Make the process, a child in the network of this one that ends with it; give the socket by which it is asked.

    Raises: OSError.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    if os.fork() == 0:
        try:
            die_with_parent(signal.SIGKILL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if os.getppid() == parent:
                _serve(_alone_with(theirs))
        finally:
            os._exit(0)
    theirs.close()
    return ours


def _alone_with(asked: socket.socket) -> socket.socket:
    """Close all but one descriptor, as what the command's output goes to and the listeners."""
    kept = os.dup2(asked.detach(), 3, inheritable=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return socket.socket(fileno=kept)


def _serve(asked: socket.socket) -> None:
    while question := asked.recv(_MOST_BYTES):
        what, host, port = json.loads(question)
        if what == "listens":
            asked.send(YES if _is_listened_at(host, port) else NO)
            continue
        made = _connect(host, port)
        if made is None:
            asked.send(NO)
            continue
        with made:
            socket.send_fds(asked, [YES], [made.fileno()])


def _is_listened_at(host: str, port: int) -> bool:
    ways = (*_LOOPBACK.get(host, (host,)), *_ANY)
    with contextlib.suppress(OSError):
        return any(one.local[0] in ways for one in list_listeners(port))
    return False


def _connect(host: str, port: int) -> socket.socket | None:
    for address in _LOOPBACK.get(host, (host,)):
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), PATIENCE_S)
    return None
