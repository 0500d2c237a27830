"""A connection handler that creates a task only where it must wait.

Why: mitmproxy starts a task for every hook and makes a system call for every piece of output; at six hooks and
four pieces a request that is a third of the cost of proxying it. Here

1. hooks whose handlers do not wait run where they stand; one that waits goes on as a task, as before;
2. what one event sends to a connection leaves in one write;
3. events that arrive while one is being handled wait in a queue: layers are never entered twice;
4. once a tunnel stands, the layers that made it (CONNECT's own HTTP) are stepped over: all they would do from
   then on is to pass every byte through five generators.

The order of commands, events and completions is mitmproxy's. Three more things happen here, because only here
the sockets are seen:

5. whether a connection ended with RST or FIN is noted, and what had come before a RST is handed on first;
6. a connection is not read on while what came from it waits: in a socket, behind a window of HTTP/2, for the
   disk, or for an upstream that is still being connected;
7. the client's connection is closed so that no reset overtakes what the client was sent (`lingering_close.py`).

When the layers crash, which is an error of ours, the client's connection is reset; what was under way on it is
kept as failed by us (`addons.record`), and nothing reaches the layers any more.

Replaces: `ConnectionHandler.server_event`, `handle_hook`, `hook_task`, `handle_connection` and `wakeup`;
`mode_servers.ProxyConnectionHandler` by name. Checked against 12.2.3. Test: tests/proxy/engine/test_connection_handler.py.
"""

import asyncio
import collections
import contextlib
import logging
import socket
import time
from collections.abc import Awaitable
from typing import Any

from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.proxy import commands, events, layer, mode_servers, server
from mitmproxy.proxy.layers import http as http_layer

from ...addons.wire.client_socket_state import heard, is_readable
from ...store import StoreError
from ...store.spill.spool import Spool
from ...tape.exchange import Ending
from .hooks.dispatch import TableAddonManager
from .hooks.own_hooks import Errand, PlayheadResetHook
from .http.http2 import waiting_bytes

logger = logging.getLogger(__name__)

_READ_BYTES = 65535
MOST_WAITING_BYTES = 4 * 1024 * 1024
"""What may wait for a peer's window, for an upstream, and for the disk, before no more is read."""
_MOST_BEHIND_BYTES = 256 * 1024
"""What may wait for the disk while much waits there of other connections too."""
_LOOK_S = 0.002
"""Time between two checks whether a peer has taken the data sent to it; no event reports that."""
_BY_LAYERS = "closed by command"
"""Why mitmproxy cancels who reads a connection that its layers close."""
_OPENING_S = 30.0
"""How long a client is under way that waits for an upstream's connection or greeting and has asked nothing yet."""
_BOTH_FULL_S = 0.25
"""Longest wait where both sides wait for each other's windows: reading on is what opens them."""


class PlayheadHandler(mode_servers.ProxyConnectionHandler):
    """One client connection and the upstream connections made for it."""

    def __init__(self, *arguments: Any) -> None:
        """Handle a client; the arguments are mitmproxy's."""
        super().__init__(*arguments)  # type: ignore[no-untyped-call]  # mitmproxy's
        self._queue: collections.deque[events.Event] = collections.deque()
        self._busy = False
        self._out: dict[Connection, list[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.unread = False
        """Whether the client has said nothing since it was last sent something."""
        self.heard_at = time.monotonic()
        """When something last came on one of its connections."""
        self._ended_idle = False
        self._early = 0
        """Bytes that the client has sent while an upstream was being connected."""
        addons = self.master.addons
        assert isinstance(addons, TableAddonManager)
        self._addons = addons
        # Where the streams find whose hooks to run; see `streams.PlayheadStream`.
        self.client.hooks = addons  # type: ignore[attr-defined]
        # Whom they ask whether the client has said more.
        self.client.says_more = lambda: is_readable(self._client_socket)  # type: ignore[attr-defined]  # read by the streams
        # Where they leave what is to be written before more is read.
        self.client.spools = set()  # type: ignore[attr-defined]
        # Where they leave the layer inside a tunnel that has been made.
        self.client.tunnel = None  # type: ignore[attr-defined]

    async def server_event(self, event: events.Event) -> None:
        """Handle an event; waits for nothing."""
        self._queue.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._queue:
                self._handle(self._queue.popleft())
        finally:
            self._busy = False
            if self._out:
                self._flush()

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Run a hook to its end; for those that mitmproxy itself awaits."""
        waiting = self._addons.start(hook)
        if waiting is not None:
            with self.timeout_watchdog.disarm():
                await waiting

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way on the client's connection that the handler knows of."""
        entry = self.transports.get(self.client)
        if entry is None or entry.writer is None or self._tasks or self.wakeup_timer:
            return False
        if self._is_opening() and time.monotonic() - self.heard_at < _OPENING_S:
            return False
        return not self._ended_idle and not _unsent(entry.writer)

    @property
    def has_unread(self) -> bool:
        """Whether something has come from the client that was not read yet."""
        entry = self.transports[self.client]
        return bool(_left_in(entry.reader)) or is_readable(self._client_socket)

    def end_idle(self) -> None:
        """Close the client's connection, which is idle, as if the client had left."""
        self._ended_idle = True
        writer: Any = self.transports[self.client].writer
        writer.close()

    # ---- inside --------------------------------------------------------------------------------

    def _handle(self, event: events.Event) -> None:
        if self.client.tunnel is not None:  # type: ignore[attr-defined]  # see __init__
            self._step_over()
        try:
            for command in self.layer.handle_event(event):
                if isinstance(command, commands.SendData):
                    if command.connection in self.transports:
                        self._out.setdefault(command.connection, []).append(command.data)
                elif isinstance(command, commands.StartHook):
                    self._start(command)
                else:
                    self._obey(command)
        except Exception as error:
            self._crashed(error)

    def _crashed(self, error: Exception) -> None:
        self.log("the connection's layers crashed", logging.ERROR, exc_info=True)
        # What they would make of it now cannot be trusted.
        self.layer = _Crashed(self.layer.context)
        self.client.tunnel = None  # type: ignore[attr-defined]  # see __init__
        # Read when the client is gone, by whoever keeps what was under way.
        self.client.crashed = f"{type(error).__name__}: {error}"  # type: ignore[attr-defined]  # read by our addons
        # Nobody would answer any more: better a cut than a client that waits for ever.
        entry = self.transports.get(self.client)
        if entry is not None and entry.handler is not None:
            self._start(PlayheadResetHook(self.client))
            self._obey(commands.CloseConnection(self.client))

    def _step_over(self) -> None:
        stream: http_layer.HttpStream = self.client.tunnel  # type: ignore[attr-defined]
        around = stream.context.layers[stream.context.layers.index(stream) - 1]
        assert isinstance(around, http_layer.HttpLayer)
        # Answers that the outer layers are waiting for still have to go through them.
        if stream.child_layer is not None and not around.command_sources:
            self.layer = stream.child_layer
            self.client.tunnel = None  # type: ignore[attr-defined]

    def _start(self, hook: commands.StartHook) -> None:
        waiting = getattr(hook, "waiting", None) or self._addons.start(hook)
        if waiting is None:
            if hook.blocking:
                # Completed before anything else that happened meanwhile is looked at.
                self._queue.appendleft(events.HookCompleted(hook))
            return
        self._flush()  # it may wait for a peer to take what it was sent
        self._keep(asyncio.get_running_loop().create_task(self._finish(hook, waiting)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run_errand(self, errand: Errand) -> None:
        self._flush()
        try:
            await errand.run(self)
        except StoreError as error:
            self.log(str(error), logging.ERROR)
            self._obey(commands.CloseConnection(self.client))
            return
        await self.server_event(events.Wakeup(errand))

    async def _finish(self, hook: commands.StartHook, waiting: Awaitable[None]) -> None:
        await waiting
        # Its time is out of reach (`engine.py`), but for a connection that nothing is ever noted of.
        self.timeout_watchdog.register_activity()
        if hook.blocking:
            await self.server_event(events.HookCompleted(hook))

    def _obey(self, command: commands.Command) -> None:
        if isinstance(command, commands.Log):
            if logger.isEnabledFor(command.level):
                self.log(command.message, command.level)
        elif isinstance(command, commands.OpenConnection):
            assert command.connection not in self.transports
            task = asyncio.get_running_loop().create_task(self._open(command))
            self.transports[command.connection] = server.ConnectionIO(handler=task)
        elif isinstance(command, Errand):
            # Not a timer: those end with the client, and an upload of an effect goes on without.
            self._keep(asyncio.get_running_loop().create_task(self._run_errand(command)))
        elif isinstance(command, commands.RequestWakeup):
            timer = asyncio.get_running_loop().create_task(self.wakeup(command))
            self.wakeup_timer.add(timer)
        elif isinstance(command, commands.ConnectionCommand):
            if command.connection in self.transports:
                self._flush()
                half = isinstance(command, commands.CloseTcpConnection) and command.half_close
                self.close_connection(command.connection, half)
        else:
            raise RuntimeError(f"unexpected command: {command}")

    async def _open(self, command: commands.OpenConnection) -> None:
        # Tasks are eager: without this the connection would be opened before it is in `transports`.
        await asyncio.sleep(0)
        admission = getattr(self.master, "admission", None)  # put there by our engine
        if admission is not None:
            try:
                await admission.room_for_upstream()
            except asyncio.CancelledError:
                await self.server_event(
                    events.OpenConnectionCompleted(command, "connection cancelled")
                )
                raise
        await self.open_connection(command)

    def _flush(self) -> None:
        for connection, pieces in self._out.items():
            entry = self.transports.get(connection)
            writer = entry.writer if entry is not None else None
            if writer is not None and not writer.is_closing():
                writer.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
                if connection is self.client:
                    self.unread = True
        self._out.clear()

    # ---- reading -------------------------------------------------------------------------------

    async def handle_connection(self, connection: Connection) -> None:
        """Read a connection to its end, and keep it until ours is closed too."""
        entry = self.transports[connection]
        reader: Any = entry.reader
        # Tasks are eager: what a client has said already would be handled, and its connection closed, before
        # `handle_client` has noted whom to end, and before its layers were started.
        too_early = entry.handler is None
        cancelled: asyncio.CancelledError | None = None
        is_reset = False
        while True:
            try:
                if too_early:
                    too_early = False
                    await asyncio.sleep(0)
                data = await reader.read(_READ_BYTES)
            except OSError:
                is_reset = True
                data = _left_in(reader)
            except asyncio.CancelledError as error:
                cancelled = error
                break
            if data:
                self.heard_at = time.monotonic()
                if connection is self.client:
                    self.unread = False
                    self._early = self._early + len(data) if self._is_opening() else 0
                await self.server_event(events.DataReceived(connection, data))
            if is_reset or not data:
                break
            try:
                await self._settle(connection)
            except asyncio.CancelledError as error:
                cancelled = error
                break
        # Nobody else reads what it says from now on.
        may_say_more = connection is self.client and _is_by_layers(cancelled)
        # Who leaves over a handshake hears nothing more, and no layer could be told of it.
        left = connection is self.client and getattr(connection, "handshaking", False)
        if cancelled is None and not is_reset and not left:
            connection.state &= ~ConnectionState.CAN_READ
        else:
            connection.state = ConnectionState.CLOSED
        if cancelled is None:
            connection.ending = Ending.RST if is_reset else Ending.FIN  # type: ignore[attr-defined]  # read by the streams
        await self.server_event(events.ConnectionClosed(connection))
        if connection.state is ConnectionState.CAN_WRITE:
            # The peer may still be sent something: kept until somebody closes it.
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                cancelled = error
        self._close(connection, may_say_more=may_say_more)
        if cancelled is not None:
            raise cancelled

    def _close(self, connection: Connection, *, may_say_more: bool) -> None:
        writer: Any = self.transports.pop(connection).writer
        lingering = getattr(self.master, "lingering", None)  # put there by our engine
        with contextlib.suppress(OSError):
            if may_say_more and lingering is not None:
                lingering.close(writer)
            else:
                writer.close()

    async def _settle(self, connection: Connection) -> None:
        """Wait while what came from a connection has not been taken."""
        for other, entry in list(self.transports.items()):
            if entry.writer is not None and _unsent(entry.writer):
                await _drain(entry.writer)
            if other is not connection and waiting_bytes(other) > MOST_WAITING_BYTES:
                await self._windows(other, connection)
        if connection is self.client:
            await self._opened()
        spools: set[Spool] = self.client.spools  # type: ignore[attr-defined]  # see __init__
        for spool in list(spools):
            most = _MOST_BEHIND_BYTES if spool.is_behind else MOST_WAITING_BYTES
            if spool.backlog > most:
                with contextlib.suppress(StoreError):  # whoever writes next is told
                    await spool.settle(most)

    async def _opened(self) -> None:
        """Wait while an upstream is being connected, once much has come that may be for it."""
        while self._early > MOST_WAITING_BYTES and self._is_opening():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(_LOOK_S)

    def _is_opening(self) -> bool:
        return any(
            entry.writer is None or (connection.tls and not connection.tls_established)
            for connection, entry in self.transports.items()
            if connection is not self.client
        )

    async def _windows(self, full: Connection, source: Connection | None) -> None:
        """Wait until a peer's windows have taken what waits for them."""
        deadline = asyncio.get_running_loop().time() + _BOTH_FULL_S
        while full in self.transports and waiting_bytes(full) > MOST_WAITING_BYTES:
            both = source is not None and waiting_bytes(source) > MOST_WAITING_BYTES
            if both and asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(_LOOK_S)

    async def heard_client(self) -> None:
        """Wait until what has come from the client was read and handled."""
        await heard(self._client_socket)

    @property
    def _client_socket(self) -> socket.socket | None:
        entry = self.transports.get(self.client)
        writer: Any = entry.writer if entry is not None else None
        found: socket.socket | None = (
            writer.get_extra_info("socket") if writer is not None else None
        )
        return found

    async def drained(self, connection: Connection) -> None:
        """Wait until a peer has taken most of what it was sent."""
        await asyncio.sleep(0)
        entry = self.transports.get(connection)
        if entry is not None and entry.writer is not None:
            await _drain(entry.writer)
        await self._windows(connection, None)

    def log(self, message: str, level: int = logging.INFO, exc_info: Any = None) -> None:
        """Log with the client's address, if anybody listens."""
        if logger.isEnabledFor(level):
            super().log(message, level, exc_info)


class _Crashed(layer.Layer):
    """What stands where layers have crashed: deaf and mute."""

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        yield from ()


def _is_by_layers(cancelled: asyncio.CancelledError | None) -> bool:
    return cancelled is not None and cancelled.args == (_BY_LAYERS,)


def _unsent(writer: Any) -> bool:
    transport = getattr(writer, "transport", None)
    return transport is None or transport.get_write_buffer_size() > 0


async def _drain(writer: Any) -> None:
    with contextlib.suppress(OSError):  # its own reader hears of it
        await writer.drain()


def _left_in(reader: Any) -> bytes:
    """Give what a stream reader holds behind an error; asyncio raises before it gives that."""
    return bytes(getattr(reader, "_buffer", b""))


def install() -> None:
    """Have mitmproxy make these handlers, for the whole process."""
    mode_servers.ProxyConnectionHandler = PlayheadHandler  # type: ignore[misc]
