"""Act on client connections: reset them, wait until sent data is taken, close those of a run."""

import asyncio
import contextlib
import fcntl
import logging
import socket
import struct
import sys
from typing import Any

from mitmproxy import connection

from .run.pending_exchange import PendingExchange
from .run.registry import RunRegistry
from .run.run_state import OpenRun
from .wire.client_socket_state import heard, is_shut

logger = logging.getLogger(__name__)

SETTLE_S = 1.0
"""Longest wait for data to reach a client that is to be reset."""
READ_S = 0.05
"""Time that a client is given to read what has reached it."""
_SIOCOUTQ = 0x5411
"""Asks a socket for what its peer has not acknowledged; Linux."""

HEAD_S = 30.0
"""Longest wait for a client's first request: who has not asked by then may come again."""


class Connections:
    """Reach the transports below the flows."""

    def __init__(self, registry: RunRegistry, handlers: dict[Any, Any]) -> None:
        """Act on the connection handlers that mitmproxy keeps, by client id."""
        self._registry = registry
        self._handlers = handlers
        registry.hooks.on_ended = self.close
        registry.hooks.on_reset = self.playhead_reset

    def client_connected(self, client: connection.Client) -> None:
        """Begin to wait for its first request."""
        asyncio.get_running_loop().call_later(HEAD_S, self._expect_head, client)

    def _expect_head(self, client: connection.Client) -> None:
        if client.timestamp_end is not None or self._registry.of(client) is not None:
            return
        writer = self._writer(client)
        if writer is not None:
            host, port = client.peername[:2]
            logger.warning("client %s:%d: no request within %g s; closed", host, port, HEAD_S)
            writer.close()

    def playhead_reset(self, client: connection.Client) -> None:
        """End a connection with RST: what is unsent is dropped, as the peer would see a crash."""
        writer = self._writer(client)
        if writer is not None:
            raw = writer.get_extra_info("socket")
            # None where it has been closed already.
            with contextlib.suppress(OSError, AttributeError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def playhead_settle(self, client: connection.Client) -> None:
        """Wait until what a client was sent has reached it, and give it time to read it.

        A reset overtakes data: what the client has not read by then is lost to it.
        """
        writer = self._writer(client)
        if writer is None:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLE_S
        while loop.time() < deadline and _unsent_bytes(writer):  # noqa: ASYNC110  # the kernel tells nobody
            await asyncio.sleep(0.002)
        handler = self._handlers.get(client.id)
        if handler is not None and handler.unread:
            await asyncio.sleep(READ_S)

    async def playhead_gate(self, pending: PendingExchange) -> None:
        """Hear what the client of a request that was held has done meanwhile."""
        writer = self._writer(pending.flow.client_conn)
        raw = writer.get_extra_info("socket") if writer is not None else None
        await heard(raw)
        if is_shut(raw):
            pending.client_left()

    async def playhead_drain(self, client: connection.Client) -> None:
        """Wait until a client has taken most of what it was sent."""
        handler = self._handlers.get(client.id)
        if handler is not None:
            await handler.drained(client)

    async def close(self, open_run: OpenRun) -> None:
        """Close what is left of a run's connections."""
        for client in list(open_run.clients.values()):
            writer = self._writer(client)
            if writer is not None:
                writer.close()

    def _writer(self, client: connection.Client) -> Any:
        handler = self._handlers.get(client.id)
        entry = handler.transports.get(client) if handler is not None else None
        return entry.writer if entry is not None else None


def _unsent_bytes(writer: Any) -> int:
    """Give what a peer has not acknowledged yet."""
    waiting = writer.transport.get_write_buffer_size()
    raw = writer.get_extra_info("socket")
    if waiting or raw is None or raw.fileno() < 0 or not sys.platform.startswith("linux"):
        return int(waiting)
    with contextlib.suppress(OSError):
        (waiting,) = struct.unpack("i", fcntl.ioctl(raw.fileno(), _SIOCOUTQ, b"\0\0\0\0"))
    return int(waiting)
