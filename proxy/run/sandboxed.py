"""Run a command in a sandbox: connect its sockets to the proxy, and collect evidence about it."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from ...config import Config
from ..sandbox.filesystem.bubblewrap import Files, make_files
from ..sandbox.filesystem.masking import make_plan
from ..sandbox.filesystem.named_pipes import (
    MOST_AGAIN_S,
    NOTHING,
    Found,
    Where,
    find_used,
    is_in_any,
    is_used,
)
from ..sandbox.filesystem.protection import find_unsearched
from ..sandbox.filesystem.socket_reachability import find_reachable
from ..sandbox.network.dns_answers import Names
from ..sandbox.network.listeners import CAPTURED, DNS_PORT, PROXY_PORT, Service
from ..sandbox.network.local_services import Relay, Use
from ..sandbox.network.loopback_connector import SandboxPorts
from ..sandbox.network.packet_capture import Attempt, PacketCapture
from ..sandbox.network.resolver import Resolver
from ..sandbox.sandbox import Sandbox, SandboxListeners, SocketUse
from ..sandbox.sandbox_process import Helper
from ..trust.environment import proxy_url
from .archive_changes import find_archives
from .runtime import Runtime

_MOST_SOCKETS = 1000
_MOST_PIPES = 20
_COARSE_NS = 20_000_000
"""Times of files are up to a tick of the kernel behind the clock."""
PROXY_URL = proxy_url("127.0.0.1", PROXY_PORT)
"""The proxy URL that clients in a sandbox are given."""


class AnySandbox(Protocol):
    """A sandbox for one command: open it, take its listeners, start the command, wait for it."""

    stopped_by: int
    sole_process: str
    counters: dict[str, int]
    sockets: SocketUse
    read_only: list[str]
    landlocked: bool

    @property
    def left_behind(self) -> list[str]:
        """Names of the processes that outlived the command, and ended with the sandbox."""

    async def open(self) -> SandboxListeners:
        """Make it. Raises: EngineError."""

    async def start(self) -> int | None:
        """Run the command; give its process group, where it has one here. Raises: EngineError."""

    async def wait(self) -> int | None:
        """Give its exit code once it has ended, or None where it was stopped. Raises: EngineError."""

    def signal(self, number: int) -> None:
        """Pass a signal on to the command. Raises: ProcessLookupError."""

    def close(self) -> None:
        """End whatever is left of it."""


class Place(Protocol):
    """Where a sandbox is."""

    summary: dict[str, Any]
    """What is said of it beside what was seen."""

    def make_sandbox(self, services: Sequence[Service]) -> AnySandbox:
        """Prepare a sandbox that lets these in. Raises: EngineError."""

    def reachable_sockets(self) -> Iterable[str]:
        """List the path sockets of programs outside that can be connected to now."""

    def look_for_pipes(self, sandbox: "AnySandbox") -> tuple[list[str], list[str]]:
        """Give the named pipes that were made, or written to, while the command ran, and the folders that were not searched. Blocks."""


class OwnNamespaces:
    """A sandbox on this machine, with what is hidden of its file system."""

    def __init__(
        self,
        runtime: Runtime,
        config: Config,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        strict: bool,
        shared: Sequence[Path] = (),
        files: Sequence[Path] = (),
        fixed: Sequence[Path] = (),
        pipes: Found = NOTHING,
        copies: Sequence[Mapping[str, Any]] = (),
        closed: Sequence[str] = (),
        elsewhere: Sequence[str] = (),
        helper: Helper | None = None,
    ) -> None:
        """Prepare for one command with these variables.

        shared: folders that the command writes to for us.
        files: those of the configuration, to be protected from it.
        fixed: folders that have to stay where they are.
        pipes: what the search for named pipes found.
        copies: mounts that put copies in the place of working folders (`mount_folder_copies`).
        closed: folders with the layers of those, which the command must not reach.
        elsewhere: folders beside the working folder that the command sees if it sees no other files: the work tree around it, and
            what git writes to for that.
        helper: one that was started before, for this command.
        Raises: EngineError, where its file system cannot be made as asked for.
        """
        self._command = command
        self._environ = environ
        self._strict = strict
        self._ports = config.sandbox.ports
        self._helper = helper
        sockets = [rule.socket for rule in config.live if rule.socket is not None]
        self._files: Files | None = None
        if config.sandbox.files:
            public = config.public_ca_dir
            real = [*shared, *map(Path, elsewhere)]
            self._files = make_files(environ, command, public=public, shared=real, sockets=sockets)
        self._plan = make_plan(
            environ,
            command[0],
            bundle=runtime.ca.bundle_file,
            store=config.store,
            public=config.public_ca_dir,
            archives=find_archives(config),
            files=files,
            shared=shared,
            fixed=fixed,
            let_in=sockets,
            pipes=pipes.pipes,
            copied=self._files.read_only() if self._files is not None else (),
            copies=copies,
            closed=closed,
        )
        self.summary: dict[str, Any] = {
            "strict": strict,
            "files": asdict(self._files) if self._files is not None else None,
            "image": "",
            "copied": self._plan.protection.overlaid,
            "pipes_unsearched": [path for path in pipes.left if self._is_real(path)],
            "pipes_open": pipes.too_many,
        }
        self._since_ns = time.time_ns() - _COARSE_NS
        where = Where.of(
            environ,
            find_unsearched(config.store),
            working_only=config.sandbox.files,
            also=elsewhere,
        )
        roots = (*where.roots, *(str(one.resolve()) for one in shared))
        self._where = where._replace(roots=list(roots))
        # A search that was whole is repeated whole.
        again_s = MOST_AGAIN_S if self.summary["pipes_unsearched"] else config.sandbox.pipe_search_s
        self._again_s = again_s

    def make_sandbox(self, services: Sequence[Service]) -> Sandbox:
        """Prepare a sandbox that lets these in."""
        words = self._files.words() if self._files is not None else ()
        return Sandbox(
            self._command,
            self._environ,
            self._plan,
            strict=self._strict,
            services=services,
            ports=self._ports,
            files=words,
            helper=self._helper,
        )

    def reachable_sockets(self) -> Iterable[str]:
        """List the path sockets that can be connected to now."""
        if self._strict:
            return ()
        plan = self._plan
        reachable_sockets = find_reachable(plan.hidden, (*plan.masked, *plan.let_in))
        return [path for path in reachable_sockets if self._sees(path)]

    def _sees(self, path: str) -> bool:
        """Say whether the command sees a path at all."""
        return self._files is None or self._files.sees(path)

    def _is_real(self, path: str) -> bool:
        """Say whether a named pipe at a path of the machine would be the machine's own to the command."""
        if self._files is not None:
            return self._files.is_real(path)
        folders = (*self._plan.hidden, *self._plan.protection.overlaid)
        return not is_in_any(path, folders)

    def look_for_pipes(self, sandbox: AnySandbox) -> tuple[list[str], list[str]]:
        """Give the named pipes that the command made, or that were written to meanwhile, and that were not closed to it.

        And the folders in which nobody looked for some.
        """
        found, left = find_used(self._where, self._plan.masked, self._since_ns, self._again_s)
        found += [path for path in self.summary["pipes_open"] if is_used(path, self._since_ns)]
        left = [*self.summary["pipes_unsearched"], *filter(self._is_real, left)]
        # Of these no copy could be made: their pipes are those of the machine, and nobody looked for them.
        left += filter(
            self._is_within_reach if sandbox.landlocked else self._sees, sandbox.read_only
        )
        return list(dict.fromkeys(found)), list(dict.fromkeys(left))

    def _is_within_reach(self, path: str) -> bool:
        """Say whether a command that Landlock limits can write to a named pipe in a folder that is no copy."""
        return self._sees(path) and (self._files is None or self._files.is_in_memory(path))


class SandboxedRun:
    """A sandbox whose only way out is a proxy of ours. Use as `async with`; nothing runs in it yet."""

    def __init__(self, runtime: Runtime, config: Config, place: Place) -> None:
        """Prepare one there. Raises: EngineError."""
        self._runtime = runtime
        self._place = place
        self._ports = config.sandbox.ports
        self._uses = [
            Use(Service(*rule.service), rule.reason) for rule in config.live if rule.service
        ]
        self._let_in = {rule.socket: rule.reason for rule in config.live if rule.socket}
        self.sandbox = place.make_sandbox([use.service for use in self._uses])
        self._relays = [Relay(use) for use in self._uses]
        self._names: Names | None = None
        self._resolver: Resolver | None = None
        self._own_ports: SandboxPorts | None = None
        self._leaving: PacketCapture | None = None
        self._refused: PacketCapture | None = None
        self._reachable: set[str] = set()

    async def __aenter__(self) -> "SandboxedRun":
        try:
            await self._open()
        except BaseException:
            self.sandbox.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.sandbox.close()
        for relay in self._relays:
            await relay.close()
        if self._own_ports is not None:
            self._runtime.registry.own_ports = None
            self._own_ports.close()
        if self._resolver is not None:
            self._resolver.close()
        for packet_capture in (self._leaving, self._refused):
            if packet_capture is not None:
                packet_capture.close()

    async def _open(self) -> None:
        open_listeners = await self.sandbox.open()
        self._names = names = Names(ipv6=len(open_listeners.dns) > 1)
        self._resolver = Resolver(names)
        engine = self._runtime.engine
        engine.transparent.find_name = names.find
        await engine.serve_sandbox(open_listeners.proxy, open_listeners.captured)
        for sock in open_listeners.dns:
            self._resolver.serve(sock)
        for relay, sock in zip(self._relays, open_listeners.service, strict=True):
            await relay.serve(sock)
        ports = (*CAPTURED, *self._ports, *(use.service.port for use in self._uses))
        taken = (PROXY_PORT, DNS_PORT, *ports)
        for sock in open_listeners.own_ports:
            self._own_ports = self._runtime.registry.own_ports = SandboxPorts(sock, taken)
        for sock in open_listeners.leaving:
            self._leaving = PacketCapture(sock)
            self._leaving.start()
        for sock in open_listeners.refused:
            self._refused = PacketCapture(sock)
            self._refused.start()
        self._look()

    def _look(self) -> None:
        """Note the path sockets that may be connected to now."""
        self._reachable.update(self._place.reachable_sockets())

    async def evidence(
        self, redact: Callable[[str], str]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Give the summary of the sandbox, and the attempts to leave it. Once the command has ended.

        redact: takes secrets out of a text; a name that is asked of DNS may be one.
        """
        self._look()
        transparent = self._runtime.engine.transparent
        await transparent.settle()
        names, resolver, leaving = self._names, self._resolver, self._leaving
        assert names is not None
        assert resolver is not None
        resolver.close()
        if leaving is not None:
            leaving.close()
        refused = _refused(self._refused)
        used, unsearched = await asyncio.to_thread(self._place.look_for_pipes, self.sandbox)
        summary = {
            **self._place.summary,
            "pipes_unsearched": unsearched[:_MOST_PIPES],
            "landlock": self.sandbox.landlocked,
            "read_only": self.sandbox.read_only,
            "counters": self.sandbox.counters,
            "tapped": leaving is not None,
            "attempts_omitted": leaving.omitted if leaving is not None else 0,
            "names": [
                {"name": redact(name), "type": kind, "count": count}
                for (name, kind), count in names.asked.items()
            ],
            "names_omitted": names.omitted,
            "refused": [
                {
                    "target": f"{one.protocol}://{one.target}",
                    "process": self.sandbox.sole_process,
                    "count": count,
                }
                for one, count in refused.items()
            ],
            "services": [
                {**asdict(use), "service": f"tcp://{use.service.host}:{use.service.port}"}
                for use in self._uses
            ]
            + [self._socket_row(*one) for one in self._let_in.items()],
            "pipes_used": [redact(path) for path in used[:_MOST_PIPES]],
            "sockets_watched": self.sandbox.sockets.watched,
            "sockets_used": [
                {**row, "path": redact(row["path"])} for row in self.sandbox.sockets.refused
            ],
            "programs": _programs(self.sandbox.sockets.programs, redact),
            "sockets": []
            if self.sandbox.sockets.watched
            else sorted(self._reachable)[:_MOST_SOCKETS],
        }
        left = [*self._denied(leaving, resolver), *self._sockets()]
        return summary, [{**row, "target": redact(row["target"])} for row in left]

    def _denied(
        self, leaving: PacketCapture | None, resolver: Resolver
    ) -> Iterator[dict[str, Any]]:
        """Yield what the kernel, or the resolver, let lead to nobody."""
        services = {use.service for use in self._uses}
        if leaving is not None:
            for one, count in leaving.attempts.items():
                if one.leaves and Service(one.address, one.port) not in services:
                    yield self._row("kernel", one, count, "refused in the sandbox")
            if leaving.lost:
                many = Attempt("tcp or udp", "0.0.0.0", 0)
                reason = "refused in the sandbox; they came too fast to be distinguished"
                yield {**self._row("kernel", many, leaving.lost, reason), "target": "unknown"}
        for one, count in resolver.strange.items():
            yield self._row("proxy", one, count, "no question to DNS")

    def _socket_row(self, path: str, reason: str) -> dict[str, Any]:
        """Say what was made of a socket that is let in. What passed it is between two programs, and nobody counted it."""
        return {
            "service": f"unix://{path}",
            "reason": reason,
            "connections": self.sandbox.sockets.used.get(os.path.realpath(path), 0),
            "failed": 0,
            "bytes_sent": None,
            "bytes_received": None,
        }

    def _sockets(self) -> Iterator[dict[str, Any]]:
        """Yield the path sockets of programs outside that were tried."""
        for row in self.sandbox.sockets.refused:
            yield {
                "target": f"unix://{row['path']}",
                "by": "sandbox",
                "reason": "a socket of a program outside, refused; a live rule lets one in by its path",
                "protocol": "unix",
                "process": row["process"],
                "count": row["count"],
            }

    def _row(self, by: str, one: Attempt, count: int, reason: str) -> dict[str, Any]:
        name = self._names.find(one.address) if self._names is not None else None
        return {
            "target": one._replace(address=name or one.address).target,
            "by": by,
            "reason": reason,
            "protocol": one.protocol,
            "process": self.sandbox.sole_process,
            "count": count,
        }


def _programs(
    started: dict[str, int] | None, redact: Callable[[str], str]
) -> list[dict[str, Any]] | None:
    """Give the programs that were started, the most frequent first; None where nobody looked."""
    if started is None:
        return None
    order = sorted(started.items(), key=lambda one: (-one[1], one[0]))
    return [{"program": redact(name), "count": count} for name, count in order]


def _refused(packet_capture: PacketCapture | None) -> dict[Attempt, int]:
    """Give what was refused on loopback."""
    if packet_capture is None:
        return {}
    packet_capture.close()
    return packet_capture.attempts
