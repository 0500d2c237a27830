"""Take client connections as long as descriptors and memory are left, and give up idle ones for new ones.

A client costs a descriptor, its upstreams cost more, and bodies cost files. Half of the limit is for clients, the half of what
remains for upstreams, and the rest for bodies, the store and the control API. If a part is used up:

1. connections on which nothing is under way are closed, those that never asked anything first, then the longest idle. To a
   client that is what servers do with idle connections: it asks again on a new one.
2. If there are none, who is new waits, unread, until a connection ends; in the end it is closed.
3. Where as many wait as may, the one that has waited for longest without saying anything is closed for who is new.

Who has just come has a moment to ask in, unless others that have asked something wait for its place. Nothing that was asked is
given up.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Iterator, MutableMapping
from typing import Any

from ...addons.run.pending_exchange import on_their_way
from ...addons.run.registry import RunRegistry
from ...addons.wire.client_socket_state import count_unread
from ..open_file_limit import FileGauge
from .connection_handler import PlayheadHandler

logger = logging.getLogger(__name__)

MOST_CLIENTS = 4096
"""Client connections at a time, whatever the limit of open files."""
_MOST_BACKLOG = 1024
_PATIENCE_S = 30.0
"""Longest wait of a connection for which there is no room."""
_LOOK_S = 0.02
_SHARE = 16
"""One in so many of the idle connections is closed at a time, or as many as wait."""
_NEW_S = 1.0
"""Who has just come is about to ask: on a busy machine that takes a while."""
_SAID_EVERY_S = 10.0
_UNSENT_BYTES = 512 * 1024
"""What the kernel keeps of an answer that it has not sent yet: by itself it takes megabytes for each slow reader."""


class _Waiting:
    """A new connection for which there is no room yet."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport  # uvloop's is none of asyncio's
        self.turned_away = False

    @property
    def has_asked(self) -> bool:
        """Whether the client has said something; that it has left is nothing."""
        return count_unread(self.transport.get_extra_info("socket")) > 0


class Admission:
    """Decides which connections are taken. Belongs to the event loop."""

    def __init__(
        self, registry: RunRegistry, handlers: MutableMapping[Any, Any], gauge: FileGauge
    ) -> None:
        """Take connections of clients of open runs.

        handlers: the connection handlers that there are, by client id.
        """
        self._registry = registry
        self._handlers = handlers
        self._gauge = gauge
        self._most_of_clients = gauge.limit // 2
        self._most_of_waiting = gauge.limit * 5 // 8
        self._most_of_upstreams = gauge.limit * 3 // 4
        self.backlog = min(_MOST_BACKLOG, gauge.limit // 4)
        """Connections that the kernel keeps until they are accepted; all of them may be accepted at once."""
        self._waiting: list[_Waiting] = []
        """The oldest first."""
        self._shed_at = 0.0
        self._said_at = 0.0
        self.shed = 0
        """Idle connections that were closed for others."""
        self.turned_away = 0
        """Connections that were closed because there was no room."""

    async def admit(self, writer: asyncio.StreamWriter) -> bool:
        """Say whether a new client connection is taken, once there is room; else it is closed."""
        _bound_unsent(writer)
        if not self._is_full():
            return True
        new = _Waiting(writer.transport)
        new.transport.pause_reading()
        found = not self._is_crowded() or self._shed() or self._turn_silent_away()
        if found:
            self._waiting.append(new)
            try:
                found = await self._wait(new)
            finally:
                self._waiting.remove(new)
        if not found:
            self.turned_away += 1
            self._say()
            writer.close()
            return False
        new.transport.resume_reading()
        return True

    async def _wait(self, new: _Waiting) -> bool:
        deadline = time.monotonic() + _PATIENCE_S
        while self._is_full():
            if new.turned_away or new.transport.is_closing() or time.monotonic() > deadline:
                return False
            self._shed()
            await asyncio.sleep(_LOOK_S)
        return not new.turned_away

    def _is_crowded(self) -> bool:
        """Say whether as many wait as may: they take files, too."""
        return (
            len(self._waiting) + len(self._handlers) >= MOST_CLIENTS * 2
            or self._gauge.lowest_free >= self._most_of_waiting
        )

    def _turn_silent_away(self) -> bool:
        """Close the connection that has waited for longest without saying anything; False where there is none."""
        for one in self._waiting:
            if not one.turned_away and not one.has_asked:
                one.turned_away = True
                one.transport.close()
                return True
        return False

    async def room_for_upstream(self) -> None:
        """Wait until an upstream can be connected without using up what is for bodies and the store."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._gauge.lowest_free >= self._most_of_upstreams and time.monotonic() < deadline:
            self._shed()
            await asyncio.sleep(_LOOK_S)

    def _is_full(self) -> bool:
        return (
            len(self._handlers) >= MOST_CLIENTS or self._gauge.lowest_free >= self._most_of_clients
        )

    def _shed(self) -> bool:
        """Close some of the connections on which nothing is under way, unless that was just done; say whether some were."""
        now = time.monotonic()
        if now - self._shed_at < _LOOK_S:
            return False  # what was closed is not gone yet
        self._shed_at = now
        before = self.shed
        idle = sorted(self._idle(), key=self._worth)
        wanted = max(len(idle) // _SHARE, len(self._waiting), 1)
        patient = not any(one.has_asked for one in self._waiting)
        for handler in idle:
            if handler.has_unread:
                continue
            new = now - handler.heard_at < _NEW_S
            if patient and new and self._registry.of(handler.client) is None:
                break  # it goes before the others, but not yet
            handler.end_idle()
            self.shed += 1
            wanted -= 1
            if not wanted:
                break
        if idle:
            self._say()
        return self.shed > before

    def _idle(self) -> Iterator[PlayheadHandler]:
        busy = {
            pending.flow.client_conn.id
            for open_run in self._registry.open
            for pending in on_their_way(open_run)
        }
        for handler in self._handlers.values():
            if handler.client.id not in busy and handler.is_idle:
                yield handler

    def _worth(self, handler: PlayheadHandler) -> tuple[bool, float]:
        """Give what connections are closed by, the least first: those that asked something last."""
        return self._registry.of(handler.client) is not None, handler.heard_at

    def _say(self) -> None:
        now = time.monotonic()
        if now - self._said_at < _SAID_EVERY_S and self._said_at:
            return
        self._said_at = now
        logger.warning(
            "%d client connections with a limit of %d open files: %d idle ones closed so far, %d new ones"
            " turned away; raise the hard limit (ulimit -Hn) if that is too few",
            len(self._handlers),
            self._gauge.limit,
            self.shed,
            self.turned_away,
        )


def _bound_unsent(writer: asyncio.StreamWriter) -> None:
    """Have the kernel take no more for a client than it can send soon."""
    sock = writer.get_extra_info("socket")
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None and sock is not None:
        with contextlib.suppress(OSError):  # no TCP, or closed already
            sock.setsockopt(socket.IPPROTO_TCP, option, _UNSENT_BYTES)
