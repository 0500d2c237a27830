"""Everything one proxying process needs, opened in order and closed in reverse.

Store, CA, keys, open runs, engine, control API, and the ticking that notices ended runs and edited files. `serve` and the
launcher differ only in what they ask of it.
"""

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ...addons.run.lifecycle.client_process_groups import Processes
from ...addons.run.registry import RunRegistry, name_after
from ...config import Config, ConfigError, Listen, Watcher
from ...store import put_ballast
from ...tape.redaction.redactor import Redactor
from ..control.http.route import ProxyState
from ..control.server import ControlServer
from ..engine import Engine
from ..errors import EngineError
from ..operations.open_store import open_store
from ..operations.restore_archived import restore_run
from ..processes import client_processes as sockets
from ..processes.exit_codes import ExitCode
from ..processes.proc import group_alive
from ..trust.ca import CertificateAuthority, certificate_store, open_ca
from ..trust.compiled_search_cache import KeptSearches
from ..trust.redaction_and_receipt_keys import open_redaction_key
from ..trust.upstream_proxies import read_routes

logger = logging.getLogger(__name__)

_TICK_S = 0.25
_READERS_EVERY = 240
"""Ticks between two checks for readers that died: a minute."""


class _Group:
    """A client's process group as the registry sees it."""

    def __init__(self, client: sockets.ClientProcess) -> None:
        self.pid = client.pid
        self.pgid = client.pgid
        self.started = client.started
        self.command = client.name


class _Finder:
    """Finds client processes, looking at those it found before first."""

    def __init__(self) -> None:
        self._recent: dict[int, None] = {}

    def find(self, peer: tuple[str, int], local: tuple[str, int]) -> _Group | None:
        found = sockets.find_client(peer, local, tuple(self._recent))
        if found is None:
            return None
        self._recent.pop(found.pid, None)
        self._recent = {found.pid: None, **dict(list(self._recent.items())[:31])}
        return _Group(found)


class Runtime:
    """A proxy with its store. Use as `async with Runtime.open(...)`."""

    def __init__(self, config: Config, *, sole: str = "", watcher: Watcher | None = None) -> None:
        """Prepare; nothing is opened yet.

        sole: every client belongs to one run of this name (in playback: of this tape).
        watcher: follows the configuration file.
        """
        self.config = config
        self._sole = sole
        self._watcher = watcher
        self._stack = contextlib.AsyncExitStack()
        self.on_config: Callable[[Config | ConfigError], None] = lambda _: None

    async def __aenter__(self) -> "Runtime":
        async with contextlib.AsyncExitStack() as stack:
            _require_no_link(self.config.sink.file)
            self.ca: CertificateAuthority = open_ca(
                self.config.store, self.config.public_ca_dir, upstream_ca=self.config.upstream_ca
            )
            routes = read_routes(self.config.upstream_proxy, os.environ)
            key = open_redaction_key(self.config.store)
            self.store = open_store(self.config)
            stack.callback(self.store.close)
            put_ballast(self.config.store, self.config.ballast_mib << 20)
            finder = _Finder()
            compiling = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="secrets"))
            # At once, on this thread: others may search a text before that of `compiling` has begun.
            Redactor.use_kept(KeptSearches(self.config.store, key))
            compiling.submit(Redactor.prepare)
            self.registry = RunRegistry(
                self.store,
                self.config,
                lambda config: Redactor(
                    key,
                    config.redact,
                    config.redact_off,
                    partial(_submit, compiling),
                    routes.secrets,
                ),
                Processes(finder.find, group_alive, ExitCode),
                sole=self._sole,
                refresh=self._poll,
                restore=partial(restore_run, self.store),
            )
            engine = Engine(
                self.registry,
                certificate_store(self.ca),
                upstream_ca=str(self.ca.write_roots()),
                routes=routes,
                client_certificates=self.config.client_certificates,
            )
            self.engine = await stack.enter_async_context(engine)
            ticking = asyncio.get_running_loop().create_task(self._tick())
            stack.push_async_callback(_cancelled, ticking)
            proxy_state = ProxyState(self.store, self.registry, self.engine)
            self.control = ControlServer(self.config, proxy_state)
            stack.push_async_callback(self.control.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def listen(self, address: Listen) -> Listen:
        """Open the port, and that of the control API; give the address that the first really has.

        Raises: EngineError.
        """
        opened = await self.engine.listen(address)
        self.control.open()
        return opened

    def _poll(self) -> Config | None:
        """Give new settings if the file has changed."""
        if self._watcher is None:
            return None
        found = self._watcher.poll()
        if found is None:
            return None
        self.on_config(found)
        if isinstance(found, ConfigError):
            return None
        fixed = (
            *("store", "durability", "ballast_mib", "listen", "ca_dir", "control"),
            *("upstream_ca", "upstream_proxy", "client_certificates"),
        )
        changed = [name for name in fixed if getattr(found, name) != getattr(self.config, name)]
        if changed:
            logger.warning("%s changed in the file: that needs a restart", " and ".join(changed))
        self.config = found
        return found

    async def _tick(self) -> None:
        for number in itertools.count(1):
            await asyncio.sleep(_TICK_S)
            try:
                if not number % _READERS_EVERY:
                    self.store.check_readers()
                fresh = self._poll()
                if fresh is not None:
                    self.registry.adopt(fresh)
                self.store.writer.flush()
                await self.registry.tick()
            except Exception:
                logger.exception("a tick failed; the next one comes in %s s", _TICK_S)


def _submit(executor: ThreadPoolExecutor, work: Callable[[], None]) -> None:
    """Have work done by another thread; at the end of the process it is done at once."""
    try:
        executor.submit(work)
    except RuntimeError:  # it takes no more
        work()


def _require_no_link(file: Path | None) -> None:
    """Refuse a sink that would be written through a link. Raises: EngineError."""
    if file is not None and file.is_symlink():
        raise EngineError(
            f"sink.file {str(file)!r} is a link to {os.readlink(file)!r}, and no link is followed",
            "name the file that it leads to",
        )


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def default_run_name(command: str, now: float | None = None) -> str:
    """Make a name for a run out of the command that it runs."""
    return name_after(Path(command).name, now)
