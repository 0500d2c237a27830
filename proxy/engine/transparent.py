"""Transparent mode: accept the connections of clients without proxy settings.

In a sandbox every address is the machine's own, so a connection's own address is the one that its client asked for; of a connection
that the capture led here (`captured_connections.py`) its origin says it, and the upstream is connected to at that very address.
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
from collections.abc import Callable

from mitmproxy import connection, ctx, http, tls
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.net.http import url
from mitmproxy.proxy import mode_servers, mode_specs
from mitmproxy.proxy.layers import modes

from ...addons.attempts.log_failed_attempts import Attempts
from ...addons.run.registry import Rejected, RunRegistry
from ..capture.connection_origins import Origin
from .captured_connections import Greeting, connect, note_greeting

_SETTLE_S = 2.0
"""Longest wait for connections whose clients are gone."""
_MOST_TURNS = 10_000
_MODE = mode_specs.ProxyMode.parse("transparent")


class TransparentMode:
    """Accepts connections that were meant for others."""

    def __init__(self, registry: RunRegistry, proxyserver: Proxyserver, attempts: Attempts) -> None:
        """Bind clients to the open runs of `registry`, and have `attempts` watch them."""
        self._registry = registry
        self._attempts = attempts
        self._proxyserver = proxyserver
        self._unnamed: set[str] = set()
        """Clients of which only an address is known."""
        self.find_name: Callable[[str], str | None] = lambda _: None
        """Gives the name that an address was made up for."""
        self.listening: list[socket.socket] = []
        """What connections are accepted on."""
        self._quiet: dict[str, asyncio.Task[None]] = {}
        """What handles connections on which nothing was asked yet, by client."""
        self._origins: dict[str, Origin] = {}
        """Where the connections of captured clients were to lead."""

    async def handle_stream(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        origin: Origin | None = None,
        greeting: Greeting | None = None,
    ) -> None:
        """Handle a connection until it ends.

        origin: where it was to lead, if its own address does not say that.
        greeting: what its client has sent already.
        """
        handler = mode_servers.ProxyConnectionHandler(
            ctx.master, reader, writer, ctx.options, _MODE
        )
        context = handler.layer.context
        client: connection.Client = context.client
        address, port = client.sockname[:2] if origin is None else origin[:2]
        name = self.find_name(address) if origin is None else None
        if origin is not None:
            self._origins[client.id] = origin
            note_greeting(client, greeting)
        target = (name or _plain(address), port)
        context.server.address = target
        handler.layer = modes.TransparentProxy(context)
        if name is None:
            self._unnamed.add(client.id)
        task = asyncio.current_task()
        assert task is not None
        self._quiet[client.id] = task
        try:
            # Before its first byte: what its TLS greeting decides needs the run.
            if isinstance(await self._registry.assign(client, None), Rejected):
                writer.close()
                return
            self._attempts.begin(client, *target, captured=True)
            with self._proxyserver.register_connection(client.id, handler):
                await handler.handle_client()
        finally:
            self._quiet.pop(client.id, None)
            left = self._origins.pop(client.id, None)
            if left is not None and left.upstream is not None:
                left.upstream.close()

    async def reach(self, client: connection.Client, port: int) -> socket.socket | None:
        """Connect to where a captured client's connection was to lead; None for another client, and another port.

        Raises: OSError.
        """
        origin = self._origins.get(client.id)
        if origin is None or port != origin.port:
            return None
        made = origin.upstream
        if made is None:
            return await connect(origin)
        self._origins[client.id] = origin._replace(upstream=None)
        return made

    async def settle(self) -> None:
        """Wait until what has been connected is handled, as far as nothing was asked on it.

        Once whoever may connect is gone.
        """
        for _ in range(_MOST_TURNS):
            if not _has_come(self.listening):
                break
            await asyncio.sleep(0)
        if self._quiet:
            await asyncio.wait(list(self._quiet.values()), timeout=_SETTLE_S)

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Take the name that a client greets."""
        context = data.context
        if context.client.id in self._unnamed and data.client_hello.sni:
            assert context.server.address is not None
            context.server.address = (data.client_hello.sni, context.server.address[1])
            self._unnamed.discard(context.client.id)

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Take the name that a plain request is for."""
        self._quiet.pop(flow.client_conn.id, None)
        if flow.client_conn.id in self._unnamed and (name := _host_name(flow.request)):
            flow.request.data.host = name

    def client_disconnected(self, client: connection.Client) -> None:
        """Forget a client."""
        self._unnamed.discard(client.id)


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


def _has_come(listening: list[socket.socket]) -> bool:
    """Say whether a connection waits to be accepted."""
    poll = select.poll()
    for sock in listening:
        with contextlib.suppress(ValueError):  # it is closed
            poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
