"""Relay connections to the local services that a live rule allows in a sandbox.

Bytes pass as they are and are not kept: what such a service says is not on any tape, so a run that used one is not
replayed from the tape alone.
"""

import asyncio
import contextlib
import logging
import socket
import struct
from dataclasses import dataclass

from .listeners import Service

logger = logging.getLogger(__name__)

_PIECE_BYTES = 64 * 1024
_CONNECT_S = 10.0


@dataclass(slots=True)
class Use:
    """A service, why it is let in, and what was made of it."""

    service: Service
    reason: str
    connections: int = 0
    failed: int = 0
    """Connections that nobody took outside."""
    bytes_sent: int = 0
    """By the command."""
    bytes_received: int = 0


class Relay:
    """Passes connections to one service on."""

    def __init__(self, use: Use) -> None:
        """Count in `use`."""
        self._use = use
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, sock: socket.socket) -> None:
        """Accept on a socket of a sandbox."""
        self._server = await asyncio.start_server(self._take, sock=sock)

    async def close(self) -> None:
        """Accept no more, and end what is open."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        broken = True
        try:
            await self._pass(reader, writer)
            broken = False
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            await _close(writer, broken=broken)
            self._open.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        use = self._use
        use.connections += 1
        try:
            connecting = asyncio.open_connection(*use.service)
            there, back = await asyncio.wait_for(connecting, _CONNECT_S)
        except OSError as error:
            use.failed += 1
            logger.warning("tcp://%s:%d: %s", *use.service, error)
            raise
        broken = True
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._copy(reader, back, sent=True))
                both.create_task(self._copy(there, writer, sent=False))
            broken = False
        finally:
            await _close(back, broken=broken)

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, sent: bool
    ) -> None:
        while piece := await reader.read(_PIECE_BYTES):
            if sent:
                self._use.bytes_sent += len(piece)
            else:
                self._use.bytes_received += len(piece)
            writer.write(piece)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()


async def _close(writer: asyncio.StreamWriter, *, broken: bool) -> None:
    """End a connection: as one that ended, or with RST."""
    if broken:
        raw = writer.get_extra_info("socket")  # None, or an error, where it is closed already
        with contextlib.suppress(OSError):
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
