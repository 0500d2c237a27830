"""The running proxy: a lean mitmproxy master, our addons, one listening socket, and a tested guard.

One engine per process: mitmproxy keeps its master in a global. It is started inside a running loop and
stopped cleanly: the port is closed first, then what is in flight is given time, then the rest is cut.
"""

import asyncio
import errno
import logging
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import psutil
from mitmproxy import certs, connection, http, master, options
from mitmproxy.addons import core, disable_h2c, next_layer, proxyserver
from mitmproxy.proxy.mode_servers import ServerInstance

from ...addons.attempts.log_failed_attempts import Attempts
from ...addons.attempts.pass_own_loopback_ports import is_own
from ...addons.chain import chain
from ...addons.client_sockets import Connections
from ...addons.run.pending_exchange import PendingExchange, find_pending
from ...addons.run.registry import RunRegistry
from ...addons.run.run_state import OpenRun
from ...addons.wire.stdio_servers import StdioServers
from ...config import ClientCertificate, Listen, Mode
from ...config.targets.host_interpretations import embedded, normal_host, read_addresses
from ...tape.policy.choose_upstream_proxy import Routes
from ...tape.policy.decide import Action
from ...tape.records.events import EventKind
from ..capture.connection_origins import Origin
from ..errors import EngineError
from ..open_file_limit import FileGauge, raise_limit
from . import connection_handler as handler
from . import egress_guard as guard
from . import guard_selftest as selftest
from . import tls_closing as closing
from . import unreachable_upstream as tunnels
from .admission import Admission
from .captured_connections import CapturedConnections, Greeting
from .event_loop import eager_task
from .fast import encrypting, http_command_dispatch
from .fast import mitmproxy_messages as http_events
from .hooks.dispatch import TableAddonManager
from .http import http1_messages as messages
from .http import http2
from .http import request_heads as heads
from .http import stream as streams
from .lingering_close import LingeringConnections
from .tls import PlayheadTlsConfig
from .transparent import TransparentMode
from .upstream import ClientCertificates, Dialler
from .websocket import choose_layer as websocket

logger = logging.getLogger(__name__)

_IDLE_S = 7 * 24 * 3600
"""mitmproxy's idle watchdog now and then kills flows that wait in a hook; it is set out of reach."""
_DRAIN_S = 5.0
_PATIENCE_S = 1.0
"""Longest wait for what is in flight when the proxy is stopped: whoever stops it waits too."""


class _Master(master.Master):
    """A master whose hooks are dispatched by table."""

    def __init__(self, opts: options.Options) -> None:
        super().__init__(opts)
        self._legacy_log_events.uninstall()
        self.addons = TableAddonManager(self)
        self.admission: Admission | None = None
        self.lingering = LingeringConnections()


class Engine:
    """A proxy that listens. Use as `async with`."""

    def __init__(
        self,
        registry: RunRegistry,
        certificates: certs.CertStore,
        *,
        upstream_ca: str | None = None,
        routes: Routes | None = None,
        client_certificates: Sequence[ClientCertificate] = (),
    ) -> None:
        """Serve the open runs of `registry`.

        upstream_ca: PEM bundle of the roots to trust upstream; None trusts mitmproxy's own.
        routes: the proxies of the network by which upstreams are reached.
        client_certificates: those that upstreams are shown.
        Raises: EngineError, where a certificate cannot be used.
        """
        self.registry = registry
        self._certificates = certificates
        self._upstream_ca = upstream_ca
        self._dialler = Dialler(routes, upstream_ca)
        self._client_certificates = ClientCertificates(client_certificates, upstream_ca)
        self._servers: list[asyncio.Server] = []
        self._factory: Any = None
        self._handler: Any = None
        self._started = False
        self._own: list[tuple[str, int]] = []
        """Where something of ours listens, which is no upstream of anybody."""
        self._sandbox_servers: list[asyncio.Server] = []
        """What accepts in a sandbox: its addresses are none of this machine."""
        self._stdio_servers = StdioServers()
        self.denied: Counter[str] = Counter()
        """Destinations that something tried to reach and was denied, with their number."""

    async def __aenter__(self) -> "Engine":
        """Start; nothing is listened on yet.

        Raises: EngineError, when the guard does not hold.
        """
        loop = asyncio.get_running_loop()
        self._factory, self._handler = loop.get_task_factory(), loop.get_exception_handler()
        loop.set_task_factory(eager_task)
        guard.install()
        heads.install()
        messages.install()
        streams.install()
        http2.install()
        tunnels.install()
        closing.install()
        encrypting.install()
        http_command_dispatch.install()
        websocket.install()
        handler.install()
        http_events.install()
        guard.GUARD.policy = self.may_leave
        guard.GUARD.owned = self.is_own
        guard.GUARD.find_socket = self._stdio_servers.find
        guard.GUARD.connects = self.connect_within
        guard.GUARD.dialler = self._dialler
        self._master = _Master(options.Options(mode=[], confdir="/nonexistent"))
        self._proxyserver = proxyserver.Proxyserver()
        self._gauge = FileGauge(raise_limit())
        self.admission = Admission(self.registry, self._proxyserver.connections, self._gauge)
        self._master.admission = self.admission
        attempts = Attempts(self.registry)
        transparent = self.transparent = TransparentMode(self.registry, self._proxyserver, attempts)
        self.captured = CapturedConnections(self._accept_led)
        self._master.addons.add(
            core.Core(),
            self._proxyserver,
            next_layer.NextLayer(),
            PlayheadTlsConfig(self._certificates, self._client_certificates),
            disable_h2c.DisableH2C(),
            transparent,
            self.captured,
            *chain(self.registry, attempts, self._stdio_servers),
            Connections(self.registry, self._proxyserver.connections),
        )
        self._master.options.update(
            connection_strategy="lazy",
            rawtcp=False,
            ignore_hosts=[],
            allow_hosts=[],
            http3=False,
            tcp_timeout=_IDLE_S,
            upstream_cert=True,
            http2_ping_keepalive=0,
            ssl_verify_upstream_trusted_ca=self._upstream_ca,
        )
        loop.set_exception_handler(self._master._asyncio_exception_handler)
        await self._master.running()
        try:
            await selftest.check_guard(self._master)
        except BaseException:
            await self._release()
            raise
        self._instance: ServerInstance[Any] = ServerInstance.make("regular@0", self._proxyserver)
        self._started = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def listen(self, address: Listen) -> Listen:
        """Open the port; give the address that it really has.

        Raises: EngineError, when the port is in use or may not be opened.
        """
        try:
            server = await asyncio.start_server(
                self._accept, address.host, address.port, backlog=self.admission.backlog
            )
        except (OSError, OverflowError) as error:
            raise _listen_error(address, error) from error
        host, port = self._took(server)
        return Listen(host, port)

    def watch(self, onlooker: object) -> None:
        """Have an addon look on, after all others."""
        self._master.addons.add(onlooker)

    @property
    def listening(self) -> bool:
        """Whether requests are taken."""
        return self._started and bool(self._servers or self._sandbox_servers)

    def keep_from_clients(self, ready: socket.socket) -> None:
        """Let no client through to a port of ours that is not the proxy's."""
        host, port = ready.getsockname()[:2]
        self._own.append((host, port))

    async def serve_on(self, ready: socket.socket) -> None:
        """Accept on a socket that somebody else has opened."""
        self._took(
            await asyncio.start_server(self._accept, sock=ready, backlog=self.admission.backlog)
        )

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await self.admission.admit(writer):
            await self._instance.handle_stream(reader, writer)

    async def _accept_captured(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if await self.admission.admit(writer):
            await self.transparent.handle_stream(reader, writer)

    async def _accept_led(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        origin: Origin,
        greeting: Greeting | None,
    ) -> None:
        if await self.admission.admit(writer):
            await self.transparent.handle_stream(reader, writer, origin, greeting)

    def _took(self, server: asyncio.Server) -> tuple[str, int]:
        self._servers.append(server)
        names = [sock.getsockname() for sock in server.sockets]
        found = [(name[0], name[1]) for name in names if isinstance(name, tuple)]  # else a path
        self._own += found
        return found[0] if found else ("", 0)

    async def serve_sandbox(
        self, proxy: Sequence[socket.socket], captured: Sequence[socket.socket]
    ) -> None:
        """Accept on sockets of a sandbox.

        proxy: of clients that use a proxy. captured: of those that mean somebody else.
        """
        for ready in proxy:
            served = await asyncio.start_server(
                self._accept, sock=ready, backlog=self.admission.backlog
            )
            self._sandbox_servers.append(served)
        for ready in captured:
            served = await asyncio.start_server(
                self._accept_captured, sock=ready, backlog=self.admission.backlog
            )
            self._sandbox_servers.append(served)
            self.transparent.listening.append(ready)

    def serve_captured(
        self,
        listening: Sequence[socket.socket],
        find: Callable[[tuple[str, int]], Origin | None],
    ) -> None:
        """Accept what the capture leads to these sockets.

        find: gives where a connection was to lead that comes from an address.
        """
        for ready in listening:
            self.keep_from_clients(ready)
            self.transparent.listening.append(ready)
        self.captured.begin(listening, find)

    @property
    def own_addresses(self) -> list[tuple[str, int]]:
        """Where something of ours listens."""
        return list(self._own)

    @property
    def dials_directly(self) -> bool:
        """Whether no upstream is reached by way of a proxy of the network."""
        return self._dialler.is_direct

    async def stop(self) -> None:
        """Close the port, end the runs, cut what is left."""
        if not self._started:
            return
        self._started = False
        for server in (*self._servers, *self._sandbox_servers):
            server.close()
        self.captured.stop()
        await self.registry.close("the proxy was stopped", _PATIENCE_S)
        handlers = list(self._proxyserver.connections.values())
        tasks = []
        for client_handler in handlers:
            entry = client_handler.transports.get(client_handler.client)
            if entry is not None and entry.handler is not None:
                entry.handler.cancel("the proxy was stopped")
                tasks.append(entry.handler)
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_S)
        await self._release()

    async def _release(self) -> None:
        self._master.lingering.end()
        await self._master.done()
        self._gauge.close()
        guard.GUARD.policy = guard.GUARD.owned = None
        guard.GUARD.find_socket = guard.GUARD.connects = guard.GUARD.dialler = None
        self._stdio_servers.close()
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._factory)
        loop.set_exception_handler(self._handler)

    # ---- what may leave ------------------------------------------------------------------------

    def may_leave(
        self, client: connection.Client, server: connection.Server, flow: http.HTTPFlow | None
    ) -> bool:
        """Say whether a connection or request may go to an upstream; see `guard`."""
        open_run = self.registry.of(client)
        address = server.address
        if open_run is None or address is None:
            self._deny(open_run, address, "it belongs to no run")
            return False
        if self._is_us(address):
            self._deny(open_run, address, "it is the proxy itself")
            return False
        if open_run.lifetime.stopped is not None:
            # No event: who made it was under way when the run was stopped, and tried nothing.
            logger.info("denied: %s:%s (its run is stopped)", address[0], address[1])
            return False
        if open_run.mode in (Mode.RECORD, Mode.PASSTHROUGH) or is_own(client, *address[:2]):
            return True
        target = (address[0], address[1])
        if flow is None:
            # Asked for a new connection: one request of this very client has been let out to there.
            allowed = (client.id, *target) in open_run.connections.permits.values()
        else:
            allowed = _is_live(find_pending(flow), open_run, target)
        if not allowed:
            self._deny(open_run, address, "playback: no live rule names it")
        return allowed

    def _deny(self, open_run: OpenRun | None, address: Any, reason: str) -> None:
        target = f"{address[0]}:{address[1]}" if address else "nowhere"
        self.denied[target] += 1
        logger.warning("denied: %s (%s)", target, reason)
        if open_run is not None:
            open_run.note(EventKind.EGRESS, target=target, by="proxy", reason=reason)

    async def connect_within(
        self, client: connection.Client, host: str, port: int
    ) -> socket.socket | None:
        """Connect to a program of the command in another network, or to where a captured connection was to lead; else None.

        Raises: OSError.
        """
        if self.dials_directly:
            led = await self.transparent.reach(client, port)
            if led is not None:
                return led
        ports = self.registry.own_ports
        if ports is None or not is_own(client, host, port):
            return None
        return await ports.connect(host, port)

    def is_own(self, client: connection.Client, asked: tuple[str, int], address: str) -> bool:
        """Say whether an address is one where something of ours listens; asked once a host has been looked up."""
        if not self._is_us((address, asked[1])):
            return False
        text = f"it is the proxy itself, as {address}"
        self._deny(self.registry.of(client), asked, text)
        return True

    def _is_us(self, address: Any) -> bool:
        """Say whether an address, or a host however it is spelled, leads to a port where something of ours listens."""
        host, port = address[:2]
        if not any(own == port for _, own in self._own):
            return False
        name = normal_host(host)
        return name == "localhost" or any(map(_is_here, read_addresses(host)))


def _is_here(address: IPv4Address | IPv6Address) -> bool:
    """Say whether an address is one of this machine, or is translated to one."""
    for one in embedded(address):
        if one.is_loopback or one.is_unspecified or str(one) in _own_addresses():
            return True
    return False


def _own_addresses() -> set[str]:
    """List this machine's addresses, of which any may lead to what listens here."""
    found = psutil.net_if_addrs().values()
    return {address.address.partition("%")[0] for addresses in found for address in addresses}


def _is_live(pending: PendingExchange | None, open_run: OpenRun, target: tuple[str, int]) -> bool:
    """Say whether a request was decided to go live to `target`; if so it has the permit to connect.

    The permit ends with the pending exchange.
    """
    if pending is None or pending.decision is None or pending.finished:
        return False
    if pending.open_run is not open_run or pending.decision.action is not Action.LIVE:
        return False
    route = pending.decision.route
    place = (pending.facts.host, pending.facts.port) if route is None else (route.host, route.port)
    if target != place:
        return False
    open_run.connections.permits[pending] = (pending.flow.client_conn.id, *target)
    return True


def _listen_error(address: Listen, error: Exception) -> EngineError:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return EngineError(
            f"port {address.port} on {address.host} is in use",
            "stop the program that listens there, or choose another port with --listen HOST:PORT (port 0: a free one)",
        )
    if number in (errno.EACCES, errno.EPERM):
        return EngineError(
            f"not allowed to listen on {address}",
            "ports below 1024 need rights; choose a higher one",
        )
    return EngineError(f"cannot listen on {address}: {error}", "choose another with --listen")
