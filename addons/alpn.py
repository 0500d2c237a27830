"""Choose the protocol offered to a client: the upstream's while recording, the recorded one in playback.

While recording the upstream is connected first, so that what it negotiates and the names on its
certificate can be mirrored. In playback nothing is connected: what was negotiated with this origin by a
client with the same offers is on the tape.

Without TLS there is nothing to negotiate: a client that begins with the preface of HTTP/2, as gRPC does, knows
what the upstream speaks, and so it is taken at its word on both sides (RFC 9113, section 3.3). So is one that speaks nothing
else in a playback of what was recorded over HTTP/1.1, whatever TLS has agreed on.
"""

from mitmproxy import connection, tls
from mitmproxy.proxy import layer, server_hooks

from ..config import Mode
from .run.registry import RunRegistry

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Protocol:
    """Choose the protocol inside a tunnel."""

    def __init__(self, registry: RunRegistry) -> None:
        """Choose for the open runs of `registry`."""
        self._registry = registry

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Mirror the upstream, or force what is on the tape."""
        context = data.context
        open_run = self._registry.of(context.client)
        if open_run is None or open_run.lifetime.stopped is not None:  # then nothing is connected
            return
        if open_run.mode is not Mode.PLAYBACK:
            data.establish_server_tls_first = True
            return
        address = context.server.address
        if open_run.tape is None or address is None:
            return
        offers = tuple(context.client.alpn_offers)
        found = open_run.store.alpn.find(open_run.tape, address[0], address[1], offers)
        if found is not None:
            context.client.alpn = found

    def next_layer(self, data: layer.NextLayer) -> None:
        """See whether HTTP/2 is spoken in a tunnel without TLS, or in TLS of a playback that agreed on none."""
        client, begun = data.context.client, data.data_client()
        if client.alpn == b"h2" or data.context.server.address is None:
            return
        if client.tls and not (self._is_playing(client) and begun.startswith(_PREFACE)):
            return
        if client.alpn and not client.tls:
            return
        if begun.startswith(_PREFACE):
            client.alpn = b"h2"
        elif begun and _PREFACE.startswith(begun):
            data.layer = None  # asked again when more has come

    def _is_playing(self, client: connection.Client) -> bool:
        open_run = self._registry.of(client)
        return open_run is not None and open_run.mode is Mode.PLAYBACK

    def server_connected(self, data: server_hooks.ServerConnectionHookData) -> None:
        """Speak the client's protocol to an upstream without TLS."""
        if data.client.alpn == b"h2" and not data.client.tls and not data.server.tls:
            data.server.alpn = b"h2"
