"""A connection handler that spends a task only where something is waited for.

Why: mitmproxy starts a task for every hook and makes a system call for every piece of output; at six hooks and
four pieces a request that is a third of the cost of proxying it. Here

1. hooks whose handlers do not wait run where they stand; one that waits goes on as a task, as before;
2. what one event sends to a connection leaves in one write;
3. events that arrive while one is being handled wait in a queue: layers are never entered twice;
4. once a tunnel stands, the layers that made it (CONNECT's own HTTP) are stepped over: all they would do from
   then on is to pass every byte through five generators.

The order of commands, events and completions is mitmproxy's. Replaces: `ConnectionHandler.server_event`,
`handle_hook` and `hook_task`; `mode_servers.ProxyConnectionHandler` by name. Checked against 12.2.3.
Test: tests/proxy/engine/test_handler.py.
"""

import asyncio
import collections
import logging
from collections.abc import Awaitable
from typing import Any

from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, events, mode_servers, server
from mitmproxy.proxy.layers import http as http_layer

from ...tape.model import Ending
from .dispatch import TableAddonManager

logger = logging.getLogger(__name__)

MAX_BACKLOG_BYTES = 4 * 1024 * 1024
"""Most that may wait to be written for one client before its connections are read on."""


class PlayheadHandler(mode_servers.ProxyConnectionHandler):
    """One client connection and the upstream connections made for it."""

    def __init__(self, *arguments: Any) -> None:
        """Handle a client; the arguments are mitmproxy's."""
        super().__init__(*arguments)  # type: ignore[no-untyped-call]  # mitmproxy's
        self._queue: collections.deque[events.Event] = collections.deque()
        self._busy = False
        self._out: dict[Connection, list[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        addons = self.master.addons
        assert isinstance(addons, TableAddonManager)
        self._addons = addons
        # Where the streams find whose hooks to run; see `streams.PlayheadStream`.
        self.client.hooks = addons  # type: ignore[attr-defined]
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

    # ---- inside --------------------------------------------------------------------------------

    def _handle(self, event: events.Event) -> None:
        if isinstance(event, events.ConnectionClosed):
            self._note_ending(event.connection)
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
        except Exception:
            self.log("the connection's layers crashed", logging.ERROR, exc_info=True)
            # Nobody would answer any more: better a cut than a client that waits for ever.
            entry = self.transports.get(self.client)
            if entry is not None and entry.handler is not None:
                self._obey(commands.CloseConnection(self.client))

    def _note_ending(self, connection: Connection) -> None:
        """Leave word of how a peer ended its connection, for whoever is to end another in the same way."""
        entry = self.transports.get(connection)
        reset = entry is not None and entry.reader is not None and entry.reader.exception()  # type: ignore[union-attr]  # of TCP
        connection.ending = Ending.RST if reset else Ending.FIN  # type: ignore[attr-defined]

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
        task = asyncio.get_running_loop().create_task(self._finish(hook, waiting))
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, hook: commands.StartHook, waiting: Awaitable[None]) -> None:
        with self.timeout_watchdog.disarm():
            await waiting
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
        await self.open_connection(command)

    def _flush(self) -> None:
        for connection, pieces in self._out.items():
            entry = self.transports.get(connection)
            writer = entry.writer if entry is not None else None
            if writer is not None and not writer.is_closing():
                writer.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        self._out.clear()

    async def drain_writers(self) -> None:
        """Wait for peers that are slow to take what they were sent, and for a store that is slow to write."""
        for spool in list(self.client.spools):  # type: ignore[attr-defined]  # see __init__
            if spool.backlog > MAX_BACKLOG_BYTES:
                await spool.settle(MAX_BACKLOG_BYTES)
        for entry in self.transports.values():
            if entry.writer is not None and _unsent(entry.writer):
                await super().drain_writers()  # type: ignore[no-untyped-call]  # mitmproxy's
                return

    def log(self, message: str, level: int = logging.INFO, exc_info: Any = None) -> None:
        """Log with the client's address, if anybody listens."""
        if logger.isEnabledFor(level):
            super().log(message, level, exc_info)


def _unsent(writer: Any) -> bool:
    transport = getattr(writer, "transport", None)
    return transport is None or transport.get_write_buffer_size() > 0


def install() -> None:
    """Have mitmproxy make these handlers, for the whole process."""
    mode_servers.ProxyConnectionHandler = PlayheadHandler  # type: ignore[misc]
