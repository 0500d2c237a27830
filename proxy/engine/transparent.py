"""Transparent mode: accept the connections of clients without proxy settings.

In a sandbox every address is the machine's own, so a connection's own address is the one that its client asked for.
That stands in the place of CONNECT: what follows, TLS or HTTP, are the layers that a tunnel has. The host is, in this
order,

1. the name that the resolver gave this address to;
2. the name in the client's TLS greeting, or the `Host` of its plain request where that is a name;
3. the address.

Replaces nothing: it makes a handler as `ServerInstance.handle_stream` does. Checked against 12.2.3. Test:
tests/proxy/engine/test_transparent.py.
"""

import asyncio
import contextlib
import ipaddress
import select
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from mitmproxy import connection, ctx, http, tls
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.net.http import url
from mitmproxy.proxy import layer, mode_servers, mode_specs
from mitmproxy.proxy.layers import modes

from ...addons.run.registry import Rejected, RunRegistry
from ...config import Mode
from ...tape.records.events import EventKind
from .hooks.own_hooks import Stray

_PREFACE = b"PRI * HTTP/2.0\r\n"
_SETTLE_S = 2.0
"""Longest wait for connections whose clients are gone."""
_MOST_TURNS = 10_000
_MODE = mode_specs.ProxyMode.parse("transparent")


@dataclass(slots=True)
class _Quiet:
    """A connection on which nothing was asked yet."""

    target: tuple[str, int]
    """Where its client went to."""
    task: asyncio.Task[None] | None
    """That handles it; None for a tunnel."""
    greeted: bool = False
    said: bool = False
    """Whether anything came, since its TLS greeting if there was one."""


class TransparentMode:
    """Accepts connections that were meant for others."""

    def __init__(self, registry: RunRegistry, proxyserver: Proxyserver) -> None:
        """Bind clients to the open runs of `registry`."""
        self._registry = registry
        self._proxyserver = proxyserver
        self._unnamed: set[str] = set()
        """Clients of which only an address is known."""
        self.find_name: Callable[[str], str | None] = lambda _: None
        """Gives the name that an address was made up for."""
        self.listening: list[socket.socket] = []
        """What connections are accepted on."""
        self._quiet: dict[str, _Quiet] = {}
        """By client."""
        self._asked: set[tuple[str, int]] = set()
        """Where somebody asked or greeted."""
        self._silent: Counter[tuple[str, int]] = Counter()
        """Where somebody connected to, and said nothing: clients do, to where they are about to ask."""
        self._said: Counter[tuple[str, int]] = Counter()
        """Where somebody said what is no request."""
        self._broken_off: Counter[tuple[str, int]] = Counter()
        """Where somebody greeted, and left before TLS was there."""
        self._requested: set[tuple[str, int]] = set()
        """Where somebody asked for something."""

    async def handle_stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Handle a connection until it ends."""
        handler = mode_servers.ProxyConnectionHandler(
            ctx.master, reader, writer, ctx.options, _MODE
        )
        context = handler.layer.context
        client: connection.Client = context.client
        address, port = client.sockname[:2]
        name = self.find_name(address)
        target = (name or _plain(address), port)
        context.server.address = target
        handler.layer = modes.TransparentProxy(context)
        if name is None:
            self._unnamed.add(client.id)
        task = asyncio.current_task()
        assert task is not None
        quiet = self._quiet[client.id] = _Quiet(target, task)
        try:
            # Before its first byte: what its TLS greeting decides needs the run.
            if isinstance(await self._registry.assign(client, None), Rejected):
                writer.close()
                return
            with self._proxyserver.register_connection(client.id, handler):
                await handler.handle_client()
        finally:
            if self._quiet.pop(client.id, None) is not None:
                self._note(quiet)

    @property
    def silent_targets(self) -> dict[tuple[str, int], int]:
        """Where clients connected to, how often, and nobody asked for anything: what was said there was no HTTP."""
        silent = {target: n for target, n in self._silent.items() if target not in self._asked}
        return dict(self._said + Counter(silent))

    @property
    def refused_tls(self) -> dict[tuple[str, int], int]:
        """Where clients broke TLS off without a word, how often, and nobody asked for anything.

        Clients that race, or connect ahead of what they ask, do the same where somebody asks.
        """
        return {
            target: n for target, n in self._broken_off.items() if target not in self._requested
        }

    def _note(self, quiet: _Quiet) -> None:
        if _is_loopback(quiet.target[0]):
            return
        if quiet.said:
            self._said[quiet.target] += 1
        elif not quiet.greeted and quiet.task is not None:
            self._silent[quiet.target] += 1

    async def settle(self) -> None:
        """Wait until what has been connected is handled, as far as nothing was asked on it.

        Once whoever may connect is gone.
        """
        for _ in range(_MOST_TURNS):
            if not _has_come(self.listening):
                break
            await asyncio.sleep(0)
        if waiting := [quiet.task for quiet in self._quiet.values() if quiet.task is not None]:
            await asyncio.wait(waiting, timeout=_SETTLE_S)

    def next_layer(self, data: layer.NextLayer) -> None:
        """Note that a client has said something, whatever it is."""
        if quiet := self._quiet.get(data.context.client.id):
            begun = data.data_client()
            # The preface of HTTP/2 is a greeting.
            quiet.said = quiet.said or (bool(begun) and not begun.startswith(_PREFACE))

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Take the name that a client greets."""
        context = data.context
        if quiet := self._quiet.get(context.client.id):
            quiet.greeted, quiet.said = True, False
            self._asked.add(quiet.target)
        if context.client.id in self._unnamed and data.client_hello.sni:
            assert context.server.address is not None
            context.server.address = (data.client_hello.sni, context.server.address[1])
            self._unnamed.discard(context.client.id)

    def http_connect(self, flow: http.HTTPFlow) -> None:
        """Wait for what a client says in a tunnel."""
        target = flow.request.host, flow.request.port
        self._quiet.setdefault(flow.client_conn.id, _Quiet(target, None))

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Note that a client wanted to speak to somebody outside, and did not trust us, as one that knows its server's key."""
        client, address = data.context.client, data.context.server.address
        quiet = self._quiet.pop(client.id, None)
        if getattr(client, "fails_as_recorded", False):
            return  # it was we who broke it off
        target = quiet.target if quiet is not None else address
        if target is None or _is_loopback(target[0]) or (not data.context.client.sni and not quiet):
            return
        if "alert" not in (data.conn.error or "") and "not trust" not in (data.conn.error or ""):
            self._broken_off[target] += 1
            return
        open_run = self._registry.of(client)
        if open_run is not None and open_run.mode is Mode.PLAYBACK:
            named = f" (it greeted {client.sni})" if client.sni not in (None, target[0]) else ""
            open_run.note(
                EventKind.EGRESS,
                target=f"{target[0]}:{target[1]}",
                by="proxy",
                reason=f"TLS refused by the client{named}",
            )

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Take the name that a plain request is for."""
        if quiet := self._quiet.pop(flow.client_conn.id, None):
            self._asked.add(quiet.target)
            self._requested.add(quiet.target)
        if flow.client_conn.id in self._unnamed and (name := _host_name(flow.request)):
            flow.request.data.host = name

    def playhead_stray(self, stray: Stray) -> None:
        """Note that a client would have said something else than HTTP to somebody outside."""
        self._quiet.pop(stray.client.id, None)
        open_run, address = self._registry.of(stray.client), stray.server.address
        if open_run is not None and open_run.mode is Mode.PLAYBACK and address is not None:
            open_run.note(
                EventKind.EGRESS,
                target=f"{address[0]}:{address[1]}",
                by="proxy",
                reason=f"no request of HTTP, but {stray.said}",
            )

    def client_disconnected(self, client: connection.Client) -> None:
        """Forget a client."""
        self._unnamed.discard(client.id)
        quiet = self._quiet.get(client.id)
        if quiet is not None and quiet.task is None:
            del self._quiet[client.id]
            self._note(quiet)


def _host_name(request: http.Request) -> str | None:
    try:
        host, _ = url.parse_authority(request.host_header or "", check=True)
    except ValueError:
        return None
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host
    return None


def _plain(address: str) -> str:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _has_come(listening: list[socket.socket]) -> bool:
    """Say whether a connection waits to be accepted."""
    poll = select.poll()
    for sock in listening:
        with contextlib.suppress(ValueError):  # it is closed
            poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
