"""Report unreachable upstreams of a tunnel before the client's TLS begins.

mitmproxy goes on with the client when the upstream refuses or its TLS fails, and shows a page to whatever
request comes then. Here the attempt is noted and the client's connection reset while it waits for its
handshake, so that what it sees is a connection that failed, as it would without a proxy.

Replaces: `ClientTLSLayer.start_server_tls`. Checked against 12.2.3. Test: tests/journeys/test_faults.py.
"""

from typing import Any

from mitmproxy.connection import ConnectionState
from mitmproxy.proxy.layers.tls import ClientTLSLayer

from ...addons.recording.save_tunnel import Attempt
from .hooks.own_hooks import PlayheadResetHook, PlayheadTunnelHook

_start_server_tls = ClientTLSLayer.start_server_tls


def start_server_tls(self: ClientTLSLayer) -> Any:
    """Connect the upstream; where that fails, note it and reset the client's connection."""
    error = yield from _start_server_tls(self)
    if error:
        yield PlayheadTunnelHook(Attempt(self.context.client, self.context.server, error))
        yield PlayheadResetHook(self.context.client)
        # Its handler hears of it later; nothing more is to be sent until then.
        self.context.client.state = ConnectionState.CLOSED
    return error


def install() -> None:
    """Have mitmproxy connect so, for the whole process."""
    ClientTLSLayer.start_server_tls = start_server_tls  # type: ignore[method-assign]
