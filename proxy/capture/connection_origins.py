"""What the supervisor says of the connections that it leads to the proxy."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from ..sandbox.channel import Channel, Message

_REPORT_S = 5.0


class Origin(NamedTuple):
    """Where a connection was to lead."""

    host: str
    """Its address."""
    port: int
    process: str = ""
    """Name of who made it, as that calls itself."""
    pid: int = 0
    """Of the thread that made it."""
    upstream: socket.socket | None = None
    """A connection to there, if one was made; whoever takes the origin closes it."""


class Origins:
    """Where connections were to lead, by the address that they come from. Belongs to the event loop."""

    def __init__(self, channel: Channel, on_lost: Callable[[], None]) -> None:
        """Listen to the supervisor.

        on_lost: called once if it is gone.
        """
        self.led = 0
        """How many connections the supervisor has led to the proxy, as far as it has said so: it counts them itself, and may be killed."""
        self._channel = channel
        self._on_lost = on_lost
        self._known: dict[tuple[str, int], Origin] = {}
        self._reported: asyncio.Future[dict[str, Any]] | None = None
        self._lost = False
        channel.socket.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(channel.socket.fileno(), self._drain)

    def take(self, peer: tuple[str, int]) -> Origin | None:
        """Give where a connection was to lead that comes from an address; None for one that nobody has led here."""
        self._drain()
        return self._known.pop(peer, None)

    async def report(self) -> dict[str, Any]:
        """Give what the supervisor has seen; nothing if it is gone."""
        self._reported = self._loop.create_future()
        with contextlib.suppress(OSError, TimeoutError):
            self._channel.send(report=True)
            return await asyncio.wait_for(self._reported, _REPORT_S)
        return {}

    def close(self) -> None:
        """Listen no longer."""
        self._lost = True
        self._loop.remove_reader(self._channel.socket.fileno())
        for origin in self._known.values():
            if origin.upstream is not None:
                origin.upstream.close()
        self._known.clear()

    def _drain(self) -> None:
        while not self._lost:
            try:
                said = self._channel.receive()
            except BlockingIOError:
                return
            except OSError:
                said = None
            if said is None:
                self._lost = True
                self._loop.remove_reader(self._channel.socket.fileno())
                self._on_lost()
                return
            self._take(said)

    def _take(self, said: Message) -> None:
        data = said.data
        if "report" in data:
            if self._reported is not None and not self._reported.done():
                self._reported.set_result(data["report"])
            return
        self.led += 1
        upstream = said.sockets[0] if said.sockets else None
        peer = data["peer"][0], data["peer"][1]
        old = self._known.get(peer)
        if old is not None and old.upstream is not None:  # nobody came for it
            old.upstream.close()
        host, port = data["origin"]
        self._known[peer] = Origin(host, port, data["process"], data["pid"], upstream)
