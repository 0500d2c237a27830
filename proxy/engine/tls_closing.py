"""Close TLS connections properly.

1. Those of clients are closed properly, unless the upstream's was not.
2. One that cannot be read any more, because what came is no TLS, ends at once.

mitmproxy closes the socket and nothing else. A client that reads until the end cannot tell that from a cut,
and curl takes it for one. So close_notify is sent, but where the upstream left it out it is left out too.

What is sent after that goes nowhere: an answer that is read on for a client that has left.

Nor does it end a connection whose TLS broke: it logs each piece that comes, and the other side waits.

Replaces: `ClientTLSLayer.send_close`, `ClientTLSLayer.send_data`, `TLSLayer.receive_data`. Checked against
12.2.3. Test: tests/journeys/test_faults.py, tests/journeys/test_bad_wire.py, tests/journeys/test_broken_tls.py.
"""

import re
from typing import Any

from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.tls import ClientTLSLayer, TLSLayer
from mitmproxy.proxy.tunnel import TunnelState
from OpenSSL import SSL

from ...tape.exchange import Ending
from .http.http1_messages import log_peer

_REASON = re.compile(r", '([^']+)'\)")
"""OpenSSL's first reason in an error of its."""
_RECORD_BYTES = 16 * 1024
"""Most that a record holds (RFC 8446 section 5.1), and so most that is read at once."""
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
    return () if getattr(self.conn, "said_goodbye", False) else _send_data(self, data)


def receive_data(self: TLSLayer, data: bytes) -> Any:
    """Take what came; where it is no TLS, end the connection."""
    if getattr(self.conn, "broken", False):
        return
    if data:
        self.tls.bio_write(data)
    plain, goodbye, broken = _decrypt(self.tls)
    yield from self.tls_interact()  # reading may have made something to be said
    if goodbye:
        # Known before what came with it is handled: a request is not answered first.
        self.conn.heard_goodbye = True  # type: ignore[attr-defined]  # read by the streams
    if plain:
        yield from self.event_to_child(events.DataReceived(self.conn, plain))
    if goodbye:
        self.conn.state &= ~ConnectionState.CAN_READ
        yield from self.event_to_child(events.ConnectionClosed(self.conn))
    if broken:
        log_peer(self.context, self.conn, f"its TLS broke ({broken})")
        self.conn.broken = True  # type: ignore[attr-defined]
        self.conn.ending = Ending.RST  # type: ignore[attr-defined]  # read by the streams
        yield commands.CloseConnection(self.conn)


def _decrypt(tls: SSL.Connection) -> tuple[bytes, bool, str]:
    """Give what can be read now, whether goodbye was said after it, and why no more can be read, if so."""
    pieces = []
    try:
        while True:
            pieces.append(tls.recv(_RECORD_BYTES))
    except SSL.WantReadError:
        return b"".join(pieces), False, ""
    except SSL.ZeroReturnError:
        return b"".join(pieces), True, ""
    except SSL.Error as error:
        found = _REASON.search(str(error))
        return b"".join(pieces), False, found[1] if found else "no reason known"


def install() -> None:
    """Have mitmproxy close so, for the whole process."""
    TLSLayer.receive_data = receive_data  # type: ignore[method-assign]
    ClientTLSLayer.send_close = send_close  # type: ignore[method-assign, assignment]
    ClientTLSLayer.send_data = send_data  # type: ignore[method-assign, assignment]
