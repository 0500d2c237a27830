"""Observe the hosts that clients ask for, and how far each connection gets.

Replaces nothing: an addon that looks on. Test: tests/proxy/doctor/test_diagnose.py.
"""

from mitmproxy import http, tls

_DISTRUST = "trust the proxy's certificate"
"""In what mitmproxy says of such a handshake (`ClientTLSLayer.on_handshake_error`)."""


class ConnectionObserver:
    """What arrived, as HOST:PORT."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.reached: set[str] = set()
        """Somebody asked the proxy for a tunnel there, or greeted it where it was taken for that host."""
        self.asked: set[str] = set()
        """A request was read: its client trusts the proxy's certificate."""

        self.refused: set[str] = set()
        """A client broke off over the proxy's certificate."""

    def http_connect(self, flow: http.HTTPFlow) -> None:
        """Note a tunnel."""
        self.reached.add(f"{flow.request.host}:{flow.request.port}")

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Note a greeting."""
        if data.context.server.address is not None:
            host, port = data.context.server.address[:2]
            self.reached.add(f"{host}:{port}")

    def tls_failed_client(self, data: tls.TlsData) -> None:
        """Note a client that does not trust us."""
        if data.context.server.address is not None and _DISTRUST in (data.conn.error or ""):
            host, port = data.context.server.address[:2]
            self.refused.add(f"{host}:{port}")

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Note a request."""
        self.reached.add(f"{flow.request.host}:{flow.request.port}")
        self.asked.add(f"{flow.request.host}:{flow.request.port}")
