"""Use our CA in place of one that mitmproxy generates, and show upstreams the certificates they ask for.

Why: mitmproxy's `TlsConfig` makes or reads a CA in its own folder and layout when options change; ours
lives in the store's private folder. Replaces: `TlsConfig.configure` (the part that opens the
certificate store), `TlsConfig.running`, `TlsConfig.request`; adds to `TlsConfig.tls_start_server`. Checked against 12.2.3. Test: tests/proxy/engine/test_engine.py.
"""

from mitmproxy import certs, connection, http, tls
from mitmproxy.addons import tlsconfig

from .upstream import ClientCertificates


class PlayheadTlsConfig(tlsconfig.TlsConfig):
    """mitmproxy's TLS set-up with a given certificate store."""

    name = "tlsconfig"

    def __init__(
        self, certificates: certs.CertStore, shown: ClientCertificates | None = None
    ) -> None:
        """Issue leaves from `certificates`.

        shown: to upstreams that ask for one.
        """
        super().__init__()
        self.certstore = certificates
        self._shown = shown or ClientCertificates()

    def tls_start_server(self, tls_start: tls.TlsData) -> None:
        """Begin TLS with an upstream, with a certificate of ours where it has one to be shown."""
        super().tls_start_server(tls_start)
        upstream = tls_start.conn
        if tls_start.ssl_conn is not None and isinstance(upstream, connection.Server):
            assert upstream.address is not None
            # By where it goes, never by a name that a client has chosen.
            context = self._shown.find(upstream.address[0])
            if context is not None:
                # Takes the certificate from there; what else was set for this connection stays (SSL_set_SSL_CTX(3)).
                tls_start.ssl_conn.set_context(context)

    def configure(self, updated: set[str]) -> None:
        """Follow the options, but never open another certificate store."""
        ours = {"certs", "confdir", "key_size", "cert_passphrase"}
        super().configure(set(updated) - ours)  # type: ignore[no-untyped-call]  # mitmproxy's

    def running(self) -> None:
        """Do nothing: the certificate store is there already."""

    def request(self, flow: http.HTTPFlow) -> None:
        """Do nothing: mitmproxy would answer requests for its revocation list, in any mode."""
