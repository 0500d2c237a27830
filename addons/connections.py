"""Acting on client connections: resets, waiting for them to take what was sent, closing a run's."""

import asyncio
import contextlib
import fcntl
import logging
import socket
import struct
import termios
import time
from typing import Any

from mitmproxy import connection

from .sessions import Session, Sessions

logger = logging.getLogger(__name__)

HEAD_S = 30.0
"""Longest wait for a client's first request: who has not asked by then may come again."""


_SETTLE_S = 2.0
_LOOK_S = 0.001


class Connections:
    """Reach the transports below the flows."""

    def __init__(self, sessions: Sessions, handlers: dict[Any, Any]) -> None:
        """Act on the connection handlers that mitmproxy keeps, by client id."""
        self._sessions = sessions
        self._handlers = handlers
        sessions.on_ended = self.close

    def client_connected(self, client: connection.Client) -> None:
        """Begin to wait for its first request."""
        asyncio.get_running_loop().call_later(HEAD_S, self._expect_head, client)

    def _expect_head(self, client: connection.Client) -> None:
        if client.timestamp_end is not None or self._sessions.of(client) is not None:
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
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def playhead_settle(self, client: connection.Client) -> None:
        """Wait until what a client was sent has reached it: a reset overtakes data."""
        writer = self._writer(client)
        deadline = time.monotonic() + _SETTLE_S
        while writer is not None and _is_unsent(writer) and time.monotonic() < deadline:  # noqa: ASYNC110  # the system tells nobody
            await asyncio.sleep(_LOOK_S)

    async def playhead_drain(self, client: connection.Client) -> None:
        """Wait until a client has taken what it was sent."""
        handler = self._handlers.get(client.id)
        if handler is not None:
            await handler.drain_writers()

    async def close(self, session: Session) -> None:
        """Close what is left of a run's connections."""
        for client in list(session.clients.values()):
            writer = self._writer(client)
            if writer is not None:
                writer.close()

    def _writer(self, client: connection.Client) -> Any:
        handler = self._handlers.get(client.id)
        entry = handler.transports.get(client) if handler is not None else None
        return entry.writer if entry is not None else None


def _is_unsent(writer: Any) -> bool:
    """Say whether some of what was written has not been taken by the other side's system."""
    if writer.transport.get_write_buffer_size():
        return True
    raw = writer.get_extra_info("socket")
    try:
        queued = fcntl.ioctl(raw.fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):  # it has ended
        return False
    return bool(struct.unpack("i", queued)[0])
