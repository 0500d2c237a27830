"""Client connections with TLS are closed properly, unless the upstream's was not.

mitmproxy closes the socket and nothing else. A client that reads until the end cannot tell that from a cut,
and curl takes it for one. So close_notify is sent, but where the upstream left it out it is left out too.

What is sent after that goes nowhere: an answer that is read on for a client that has left.

Replaces: `ClientTLSLayer.send_close`, `ClientTLSLayer.send_data`. Checked against 12.2.3. Test: tests/journeys/test_faults.py.
"""

from typing import Any

from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.tls import ClientTLSLayer
from mitmproxy.proxy.tunnel import TunnelState
from OpenSSL import SSL

_send_close = ClientTLSLayer.send_close
_send_data = ClientTLSLayer.send_data


def send_close(self: ClientTLSLayer, command: commands.CloseConnection) -> Any:
    """Say goodbye, then close."""
    abrupt = getattr(self.conn, "abrupt", False)  # put there by the streams
    if self.tls is not None and self.tunnel_state is TunnelState.OPEN and not abrupt:
        self.conn.said_goodbye = True  # type: ignore[attr-defined]
        try:
            self.tls.shutdown()
        except SSL.Error:
            pass  # the peer has gone
        else:
            yield from self.tls_interact()
    yield from _send_close(self, command)


def send_data(self: ClientTLSLayer, data: bytes) -> Any:
    """Send, unless goodbye has been said."""
    if not getattr(self.conn, "said_goodbye", False):
        yield from _send_data(self, data)


def install() -> None:
    """Have mitmproxy close so, for the whole process."""
    ClientTLSLayer.send_close = send_close  # type: ignore[method-assign, assignment]
    ClientTLSLayer.send_data = send_data  # type: ignore[method-assign, assignment]
