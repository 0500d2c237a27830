"""A sandbox, seen from outside: start it, take its listeners, run the command, wait for its end."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import EngineError
from ..processes.unstartable_command import explain_start
from .channel import Channel, Message
from .filesystem.masking import Plan
from .network.listeners import Service
from .preflight import explain, require_system
from .sandbox_process import Helper

_STDOUT = 1
_SETUP_S = 20.0
"""Longest wait for a sandbox to be there."""


@dataclass(slots=True)
class SandboxListeners:
    """What listens in a sandbox, for the proxy to accept on."""

    proxy: list[socket.socket] = field(default_factory=list)
    captured: list[socket.socket] = field(default_factory=list)
    dns: list[socket.socket] = field(default_factory=list)
    service: list[socket.socket] = field(default_factory=list)
    """In the order of the services."""
    leaving: list[socket.socket] = field(default_factory=list)
    """Gets the packets of what was to leave; empty where the kernel has no such thing."""
    refused: list[socket.socket] = field(default_factory=list)
    """Of what was refused on loopback."""
    own_ports: list[socket.socket] = field(default_factory=list)
    """By which is asked what listens in there, and connected to it; empty in containers."""

    def close(self) -> None:
        """Close what nobody took."""
        for one in fields(self):
            for sock in getattr(self, one.name):
                sock.close()


@dataclass(slots=True)
class SocketUse:
    """What became of path sockets of programs outside."""

    watched: bool = False
    """Whether none can have been used unseen."""
    used: dict[str, int] = field(default_factory=dict)
    """How often each was connected to that a live rule names, by its path."""
    refused: list[dict[str, Any]] = field(default_factory=list)
    """Others that were tried: `path`, `process` and `count`."""
    programs: dict[str, int] | None = None
    """How often each program was started in there, by name, but for the command itself; None where nobody looked."""


class Sandbox:
    """One sandbox, for one command. Open it, take its listeners, start the command, wait for it."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        plan: Plan,
        *,
        strict: bool = False,
        services: Sequence[Service] = (),
        ports: Sequence[int] = (),
        files: Sequence[str] = (),
        helper: Helper | None = None,
    ) -> None:
        """Prepare; nothing is started yet.

        ports: further ones on which the proxy answers.
        strict: no socket of the command can be a Unix socket.
        files: the command line of bubblewrap, where that is to make the file system.
        helper: one that was started before, for the same command, services and ports.
        """
        self.plan = plan
        self.pid: int | None = None
        """Of the command, once it runs; it leads a process group of its own."""
        self.stopped_by = 0
        """Signal that the command was stopped by, once it was."""
        self.sole_process = ""
        """Name of the command's process if it was the only one, once it has ended; else empty."""
        self.left_behind: list[str] = []
        """Names of the processes that still ran a moment after it, and ended with the sandbox."""
        self.read_only: list[str] = []
        """Folders of the proxy's environment of which there is no copy to write to."""
        self.landlocked = False
        """Whether Landlock has it open files for writing only where something can be written: no named pipe elsewhere."""
        self.counters: dict[str, int] = {}
        """What the kernel had counted when the command had ended."""
        self.sockets = SocketUse()
        """What became of path sockets, once it has ended."""
        self._command = list(command)
        self._environ = dict(environ)
        self._strict = strict
        self._services = tuple(services)
        self._ports = tuple(ports)
        self._files = tuple(files)
        self._running = False
        self._helper = helper

    async def open(self) -> SandboxListeners:
        """Make the sandbox; the command does not run yet.

        Raises: EngineError, where it cannot be made.
        """
        require_system()
        if self._helper is None:
            self._helper = Helper(self._command, self._services, self._ports)
        self._helper.channel.socket.setblocking(False)
        message = await self._next(_SETUP_S)
        open_listeners = SandboxListeners()
        for role, sock in zip(message.data["listeners"], message.sockets, strict=True):
            sock.setblocking(False)
            getattr(open_listeners, role).append(sock)
        return open_listeners

    async def start(self) -> int:
        """Run the command; give its process id.

        Raises: EngineError, where it cannot be started.
        """
        assert self._helper is not None
        self._helper.give_variables(self._environ)
        # The helper may have been started before our stdout was put aside to be hashed.
        self._helper.channel.send_descriptors(
            [_STDOUT], strict=self._strict, wrapper=self._files, **asdict(self.plan)
        )
        self.read_only = (await self._next(_SETUP_S)).data["read_only"]
        self.pid = (await self._next(_SETUP_S)).pid
        self.landlocked = (await self._next(_SETUP_S)).data["landlocked"]
        self._running = True
        return self.pid

    async def wait(self) -> int | None:
        """Wait until the command ends or is stopped; give its exit code as a shell would, or None where it stopped.

        `stopped_by` then says by which signal.
        Raises: EngineError, where the sandbox broke.
        """
        message = await self._next(None)
        if "sole" in message.data:
            self.sole_process = message.data["sole"]
            message = await self._next(None)
        if "left" in message.data:
            self.left_behind = message.data["left"]
            message = await self._next(None)
        if "stopped" in message.data:
            self.stopped_by = int(message.data["stopped"])
            return None
        self.counters = message.data["counters"]
        self.sockets = SocketUse(
            self._strict or "sockets_used" in message.data,
            message.data.get("sockets_used", {}),
            message.data.get("sockets_refused", []),
            message.data.get("programs"),
        )
        assert self._helper is not None
        await asyncio.to_thread(self._helper.process.wait)
        return int(message.data["ended"])

    def signal(self, number: int) -> None:
        """Send the command's process group a signal. Raises: ProcessLookupError."""
        if self.pid is not None:
            os.killpg(self.pid, number)

    def close(self) -> None:
        """End whatever is left of it."""
        if self._helper is not None:
            self._helper.close()

    async def _next(self, patience_s: float | None) -> Message:
        """Wait for the sandbox to say something.

        Raises: EngineError, where it says that it cannot, or nothing.
        """
        assert self._helper is not None
        try:
            message = await asyncio.wait_for(hear(self._helper.channel), patience_s)
        except TimeoutError:
            message = None
        if message is None:
            raise EngineError(
                "the sandbox ended before its command did",
                "it was killed, or the machine ran out of memory; run it again",
            )
        data = message.data
        if "ended" in data and not self._running:
            raise EngineError(
                "the sandbox's file system cannot be made: bubblewrap ended before the command began",
                "see its output above, or run without --sandbox-files",
            )
        if "failed" in data:
            raise explain(data["failed"], data["errno"], data["text"])
        if "unknown" in data:
            raise explain_start(
                self._command,
                data["errno"],
                data["text"],
                self._environ,
                is_sandboxed=bool(self._files),
            )
        return message


async def hear(channel: Channel) -> Message | None:
    """Wait for one message; None when the other end is gone. On a socket that does not block."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    descriptor = channel.socket.fileno()
    loop.add_reader(descriptor, ready.set)
    try:
        while True:
            try:
                return channel.receive()
            except BlockingIOError:
                await ready.wait()
                ready.clear()
            except ConnectionResetError:
                return None
    finally:
        loop.remove_reader(descriptor)
