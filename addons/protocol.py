"""Which protocol a client gets: while recording the upstream's own, in playback the recorded one.

While recording the upstream is connected first, so that what it negotiates and the names on its
certificate can be mirrored. In playback nothing is connected: what was negotiated with this origin by a
client with the same offers is on the tape.
"""

from mitmproxy import tls

from ..config import Mode
from .sessions import Sessions


class Protocol:
    """Choose ALPN for the client's side of a tunnel."""

    def __init__(self, sessions: Sessions) -> None:
        """Choose for the runs in `sessions`."""
        self._sessions = sessions

    def tls_clienthello(self, data: tls.ClientHelloData) -> None:
        """Mirror the upstream, or force what is on the tape."""
        context = data.context
        session = self._sessions.of(context.client)
        if session is None:
            return
        if session.mode is not Mode.PLAYBACK:
            data.establish_server_tls_first = True
            return
        address = context.server.address
        if session.tape is None or address is None:
            return
        offers = tuple(context.client.alpn_offers)
        found = session.store.find_alpn(session.tape, address[0], address[1], offers)
        if found is not None:
            context.client.alpn = found
