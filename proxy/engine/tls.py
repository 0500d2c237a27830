"""Use our CA in place of one that mitmproxy generates.

Why: mitmproxy's `TlsConfig` makes or reads a CA in its own folder and layout when options change; ours
lives in the store's private folder. Replaces: `TlsConfig.configure` (the part that opens the
certificate store), `TlsConfig.running`, `TlsConfig.request`. Checked against 12.2.3. Test: tests/proxy/engine/test_engine.py.
"""

from mitmproxy import certs, http
from mitmproxy.addons import tlsconfig


class PlayheadTlsConfig(tlsconfig.TlsConfig):
    """mitmproxy's TLS set-up with a given certificate store."""

    name = "tlsconfig"

    def __init__(self, certificates: certs.CertStore) -> None:
        """Issue leaves from `certificates`."""
        super().__init__()
        self.certstore = certificates

    def configure(self, updated: set[str]) -> None:
        """Follow the options, but never open another certificate store."""
        ours = {"certs", "confdir", "key_size", "cert_passphrase"}
        super().configure(set(updated) - ours)  # type: ignore[no-untyped-call]  # mitmproxy's

    def running(self) -> None:
        """Do nothing: the certificate store is there already."""

    def request(self, flow: http.HTTPFlow) -> None:
        """Do nothing: mitmproxy would answer requests for its revocation list, in any mode."""
