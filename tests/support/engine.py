"""An engine inside the test's own loop, so that a test can reach its parts."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playhead.addons.run.lifecycle.client_process_groups import Processes
from playhead.addons.run.registry import RunRegistry
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Listen, Mode
from playhead.proxy.engine import Engine
from playhead.proxy.operations.open_store import open_store
from playhead.proxy.trust.ca import certificate_store, open_ca
from playhead.proxy.trust.upstream_proxies import read_routes
from playhead.store import Store
from playhead.tape.redaction.redactor import Redactor

NOBODY = Processes(lambda _peer, _local: None, lambda _pgid, _started: False)
"""No client process can be seen: runs are told apart by name and client address."""


@dataclass
class Running:
    """A listening engine and what it stands on."""

    engine: Engine
    registry: RunRegistry
    store: Store
    address: Listen
    ca: Path
    """PEM file of the CA that clients have to trust."""

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def url_for(self, run: str) -> str:
        return f"http://{run}:x@{self.address}"

    def open_run(self, run: str) -> OpenRun:
        """The open session of a run."""
        return next(found for found in self.registry.open if found.info and found.info.id == run)

    async def opened(self, run: str) -> OpenRun:
        """The same once it is open: a client may have left before that."""
        async with asyncio.timeout(20):
            while not any(one.info and one.info.id == run for one in self.registry.open):  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)
        return self.open_run(run)

    async def end(self, run: str) -> None:
        """Seal a run."""
        task = self.registry.end(self.open_run(run), "the test asked for it")
        if task is not None:
            await task

    def change(self, **changes: object) -> None:
        """Change settings, for the runs that open from now on."""
        self.registry.config = dataclasses.replace(self.registry.config, **changes)  # type: ignore[arg-type]

    def play(self) -> None:
        """Have new runs played."""
        self.change(mode=Mode.PLAYBACK)


@asynccontextmanager
async def running_engine(
    config: Config, key: bytes = b"a test's key", *, processes: Processes = NOBODY
) -> AsyncIterator[Running]:
    """Run an engine on a free port of 127.0.0.1 with the store, mode and rules in `config`.

    key: of the store's placeholders.
    processes: how those of clients are seen.
    """
    ca = open_ca(config.store, config.public_ca_dir, upstream_ca=config.upstream_ca)
    store = open_store(config)
    try:
        registry = RunRegistry(
            store, config, lambda now: Redactor(key, now.redact, now.redact_off), processes
        )
        engine = Engine(
            registry,
            certificate_store(ca),
            upstream_ca=str(ca.bundle_file),
            routes=read_routes(config.upstream_proxy, {}),
            client_certificates=config.client_certificates,
        )
        async with engine:
            address = await engine.listen(Listen("127.0.0.1", 0))
            yield Running(engine, registry, store, address, ca.certificate_file)
        await _closed(engine)
    finally:
        store.close()


async def _closed(engine: Engine) -> None:
    """Wait until the sockets of a stopped engine are closed, before the test's loop is."""
    deadline = time.monotonic() + 10
    while engine._proxyserver.connections and time.monotonic() < deadline:  # noqa: ASYNC110  # mitmproxy tells nobody
        await asyncio.sleep(0.005)
    # A transport is closed in the next turn of the loop, one with TLS in the one after.
    for _ in range(3):
        await asyncio.sleep(0)
