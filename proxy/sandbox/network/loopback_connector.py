"""Connect to what listens on a sandbox's own loopback, from outside of it.

A process that stays in the sandbox's network looks and connects for us. Whatever listens there and was not opened by us belongs to
the command: nobody else is in this network.
"""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Collection

from .loopback_connector_process import PATIENCE_S, YES


class SandboxPorts:
    """Ports of a sandbox, for the command that runs in it."""

    def __init__(self, asked: socket.socket, taken: Collection[int]) -> None:
        """Ask by the socket that `fork` gave.

        taken: ports at which the proxy listens in there, or a live rule's service.
        """
        asked.settimeout(PATIENCE_S)
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
            return answer == YES, socket.socket(fileno=descriptors[0]) if descriptors else None
        return False, None
