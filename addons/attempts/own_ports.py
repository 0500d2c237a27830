"""Let pass what a command says over loopback to programs of its own.

Such a program is part of what is run: a browser that an agent drives, a daemon of a CLI. It runs in a playback as it did while
recording, so what is said to it is neither recorded nor answered from a tape, and leads nowhere else.

1. It is so only if it is proved: who listens at the port belongs to the command, and nobody else does (`run/registry.py`, `OwnPorts`).
2. It is asked for each tunnel, and for each request without one. Bytes of a tunnel pass as they are.
3. Everything else that is asked of loopback is recorded and played as any other host.
"""

from collections.abc import Awaitable

from mitmproxy import connection, http
from mitmproxy.proxy import layer, layers

from ...config.values import is_loopback
from ..run.registry import RunRegistry

_OWN = "playhead_own"
"""Attribute of a client connection: the host and port that it may be led to."""
_MARK = "playhead-own"
"""In the metadata of a flow that passes."""


def is_own(client: connection.Client, host: str, port: int) -> bool:
    """Say whether a client was found to speak to a program of its own command there."""
    return (host, port) in getattr(client, _OWN, ())


def passes(flow: http.HTTPFlow) -> bool:
    """Say whether a request is none of ours."""
    return bool(flow.metadata.get(_MARK))


class PassOwnPorts:
    """Find what is for the command's own programs, before anybody else looks at it."""

    def __init__(self, registry: RunRegistry) -> None:
        """Ask the `own_ports` of `registry`."""
        self._registry = registry

    def http_connect(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Look where a tunnel leads."""
        return self._look(flow)

    def requestheaders(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Look where a request leads that has no tunnel."""
        return self._look(flow)

    def next_layer(self, data: layer.NextLayer) -> None:
        """Have the bytes of such a tunnel pass."""
        address = data.context.server.address
        if address is not None and is_own(data.context.client, address[0], address[1]):
            data.layer = layers.TCPLayer(data.context, ignore=True)

    def _look(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        if self._registry.own_ports is None or flow.response is not None:
            return None
        return self._find(flow) if is_loopback(flow.request.host) else None

    async def _find(self, flow: http.HTTPFlow) -> None:
        ports, request, client = self._registry.own_ports, flow.request, flow.client_conn
        if ports is None or not await ports.listens(request.host, request.port):
            setattr(client, _OWN, ())
            return
        setattr(client, _OWN, ((request.host, request.port),))
        flow.metadata[_MARK] = True
