"""Connect to what listens on a sandbox's own loopback, from outside of it.

A process that stays in the sandbox's network, and that the command cannot reach, looks and connects for us. Whatever listens there
and was not opened by us belongs to the command: nobody else is in this network.
"""

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import threading
from collections.abc import Collection

from ...processes.sockdiag import list_listeners
from ..kernel.syscalls import die_with_parent

_PATIENCE_S = 5.0
_MOST_BYTES = 1 << 10
_LOOPBACK = {"localhost": ("127.0.0.1", "::1")}
_ANY = ("0.0.0.0", "::")
_YES, _NO = b"1", b"0"


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
            asked.send(_YES if _is_listened_at(host, port) else _NO)
            continue
        made = _connect(host, port)
        if made is None:
            asked.send(_NO)
            continue
        with made:
            socket.send_fds(asked, [_YES], [made.fileno()])


def _is_listened_at(host: str, port: int) -> bool:
    ways = (*_LOOPBACK.get(host, (host,)), *_ANY)
    with contextlib.suppress(OSError):
        return any(one.local[0] in ways for one in list_listeners(port))
    return False


def _connect(host: str, port: int) -> socket.socket | None:
    for address in _LOOPBACK.get(host, (host,)):
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), _PATIENCE_S)
    return None


class SandboxPorts:
    """Ports of a sandbox, for the command that runs in it."""

    def __init__(self, asked: socket.socket, taken: Collection[int]) -> None:
        """Ask by the socket that `fork` gave.

        taken: ports at which the proxy listens in there, or a live rule's service.
        """
        asked.settimeout(_PATIENCE_S)
        self._asked = asked
        self._taken = frozenset(taken)
        self._lock = threading.Lock()

    def listens(self, host: str, port: int) -> bool:
        """Say whether somebody listens there, and it is not us."""
        if port in self._taken:
            return False
        return self._ask("listens", host, port)[0]

    async def connect(self, host: str, port: int) -> socket.socket:
        """Connect to it. Raises: OSError."""
        _, made = await asyncio.to_thread(self._ask, "connect", host, port)
        if made is None:
            raise ConnectionRefusedError(111, f"nothing listens at {host}:{port} in the sandbox")
        made.setblocking(False)
        return made

    def close(self) -> None:
        """Ask no more; the process ends."""
        self._asked.close()

    def _ask(self, what: str, host: str, port: int) -> tuple[bool, socket.socket | None]:
        with self._lock, contextlib.suppress(OSError):
            self._asked.send(json.dumps([what, host, port]).encode())
            answer, descriptors, _, _ = socket.recv_fds(self._asked, 1, 1)
            return answer == _YES, socket.socket(fileno=descriptors[0]) if descriptors else None
        return False, None
