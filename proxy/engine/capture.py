"""Clients that know nothing of a proxy: their connections arrive here, and go the way of all others.

In a sandbox every address is the machine's own, so a connection's own address is the one that its client asked for.
That stands in the place of CONNECT: what follows, TLS or HTTP, are the layers that a tunnel has. The host is, in this
order,

1. the name that the resolver gave this address to;
2. the name in the client's TLS greeting, or the `Host` of its plain request where that is a name;
3. the address.

Replaces nothing: it makes a handler as `ServerInstance.handle_stream` does. Checked against 12.2.3. Test:
tests/proxy/engine/test_capture.py.
"""

import asyncio
import ipaddress
from collections.abc import Callable

from mitmproxy import connection, ctx, http, tls
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.net.http import url
from mitmproxy.proxy import mode_servers, mode_specs
from mitmproxy.proxy.layers import modes

from ...addons.sessions import Rejected, Sessions

_MODE = mode_specs.ProxyMode.parse("transparent")


class Capture:
    """Accepts connections that were meant for others."""

    def __init__(self, sessions: Sessions, proxyserver: Proxyserver) -> None:
        """Bind clients to the runs in `sessions`."""
        self._sessions = sessions
        self._proxyserver = proxyserver
        self._unnamed: set[str] = set()
        """Clients of which only an address is known."""
        self.find_name: Callable[[str], str | None] = lambda _: None
        """Gives the name that an address was made up for."""

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
        context.server.address = (name or _plain(address), port)
        handler.layer = modes.TransparentProxy(context)
        if name is None:
            self._unnamed.add(client.id)
        # Before its first byte: what its TLS greeting decides needs the run.
        if isinstance(await self._sessions.assign(client, None), Rejected):
            writer.close()
            return
        with self._proxyserver.register_connection(client.id, handler):
            await handler.handle_client()

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Take the name that a client greets."""
        context = data.context
        if context.client.id in self._unnamed and data.client_hello.sni:
            assert context.server.address is not None
            context.server.address = (data.client_hello.sni, context.server.address[1])
            self._unnamed.discard(context.client.id)

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Take the name that a plain request is for."""
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
