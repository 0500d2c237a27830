"""A command in a sandbox, with the proxy around it: what its sockets lead to, and what is told of it afterwards."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..config import Config
from .runtime import Runtime
from .sandbox.box import Box
from .sandbox.files import make_files
from .sandbox.hiding import make_plan
from .sandbox.listeners import PROXY_PORT, Service
from .sandbox.names import Names
from .sandbox.reach import within_reach
from .sandbox.resolver import Resolver
from .sandbox.services import Relay, Use
from .sandbox.tap import Attempt, Tap
from .trust import proxy_url

_MOST_SOCKETS = 1000
PROXY_URL = proxy_url("127.0.0.1", PROXY_PORT)
"""What clients in a sandbox are told."""


class Contained:
    """A sandbox whose only way out is a proxy of ours. Use as `async with`; nothing runs in it yet."""

    def __init__(
        self,
        runtime: Runtime,
        config: Config,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        strict: bool,
        shared: Sequence[Path] = (),
    ) -> None:
        """Prepare for one command with these variables.

        shared: folders that the command writes to for us.
        Raises: EngineError, where its file system cannot be made as asked for.
        """
        self._runtime = runtime
        self._strict = strict
        self._uses = [
            Use(Service(*rule.service), rule.reason) for rule in config.live if rule.service
        ]
        self._plan = make_plan(
            environ,
            command[0],
            bundle=runtime.ca.bundle_file,
            store=config.store,
            public=config.public_ca_dir,
        )
        services = [use.service for use in self._uses]
        self._files = None
        if config.sandbox.files:
            public = config.public_ca_dir
            self._files = make_files(environ, command, public=public, shared=shared)
        words = self._files.words() if self._files is not None else ()
        self.box = Box(command, environ, self._plan, strict=strict, services=services, files=words)
        self._relays = [Relay(use) for use in self._uses]
        self._names: Names | None = None
        self._resolver: Resolver | None = None
        self._leaving: Tap | None = None
        self._refused: Tap | None = None
        self._reached: set[str] = set()

    async def __aenter__(self) -> "Contained":
        try:
            await self._open()
        except BaseException:
            self.box.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.box.close()
        for relay in self._relays:
            await relay.close()
        if self._resolver is not None:
            self._resolver.close()
        for tap in (self._leaving, self._refused):
            if tap is not None:
                tap.close()

    async def _open(self) -> None:
        inlets = await self.box.open()
        self._names = names = Names(ipv6=len(inlets.dns) > 1)
        self._resolver = Resolver(names)
        engine = self._runtime.engine
        engine.capture.find_name = names.find
        await engine.serve_inside(inlets.proxy, inlets.captured)
        for sock in inlets.dns:
            self._resolver.serve(sock)
        for relay, sock in zip(self._relays, inlets.service, strict=True):
            await relay.serve(sock)
        for sock in inlets.leaving:
            self._leaving = Tap(sock)
            self._leaving.start()
        for sock in inlets.refused:
            self._refused = Tap(sock)
            self._refused.start()
        self._look()

    def _look(self) -> None:
        """Note the path sockets that may be connected to now."""
        if not self._strict:
            reached = within_reach(self._plan.hidden, self._plan.masked)
            self._reached.update(
                path for path in reached if self._files is None or self._files.sees(path)
            )

    async def evidence(
        self, redact: Callable[[str], str]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Give what is told of the sandbox, and what tried to leave it. Once the command has ended.

        redact: takes secrets out of a text; a name that is asked of DNS may be one.
        """
        self._look()
        capture = self._runtime.engine.capture
        await capture.settle()
        names, resolver, leaving = self._names, self._resolver, self._leaving
        assert names is not None
        assert resolver is not None
        resolver.close()
        if leaving is not None:
            leaving.close()
        refused = _refused(self._refused)
        told = {
            "strict": self._strict,
            "files": asdict(self._files) if self._files is not None else None,
            "counters": self.box.counters,
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
                    "process": self.box.sole_process,
                    "count": count,
                }
                for one, count in refused.items()
            ],
            "services": [
                {**asdict(use), "service": f"tcp://{use.service.host}:{use.service.port}"}
                for use in self._uses
            ],
            "sockets": sorted(self._reached)[:_MOST_SOCKETS],
        }
        return told, [*self._denied(leaving, resolver), *self._unasked(redact)]

    def _denied(self, leaving: Tap | None, resolver: Resolver) -> Iterator[dict[str, Any]]:
        """Yield what the kernel, or the resolver, let lead to nobody."""
        services = {use.service for use in self._uses}
        if leaving is not None:
            for one, count in leaving.attempts.items():
                if one.leaves and Service(one.address, one.port) not in services:
                    yield self._row("kernel", one, count, "refused in the sandbox")
            if leaving.lost:
                many = Attempt("tcp or udp", "0.0.0.0", 0)
                reason = "refused in the sandbox; they came too fast to be told apart"
                yield {**self._row("kernel", many, leaving.lost, reason), "target": "unknown"}
        for one, count in resolver.strange.items():
            yield self._row("proxy", one, count, "no question to DNS")

    def _unasked(self, redact: Callable[[str], str]) -> Iterator[dict[str, Any]]:
        """Yield where somebody connected to, and asked for nothing."""
        for (host, port), count in self._runtime.engine.capture.unasked.items():
            one = Attempt("tcp", host, port)
            row = self._row("proxy", one, count, "connected to, and no request of HTTP came")
            yield {**row, "target": redact(one.target)}

    def _row(self, by: str, one: Attempt, count: int, reason: str) -> dict[str, Any]:
        return {
            "target": one.target,
            "by": by,
            "reason": reason,
            "protocol": one.protocol,
            "process": self.box.sole_process,
            "count": count,
        }


def _refused(tap: Tap | None) -> dict[Attempt, int]:
    """Give what was refused on loopback."""
    if tap is None:
        return {}
    tap.close()
    return tap.attempts
