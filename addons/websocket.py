"""Record and play WebSockets, message by message.

A pending exchange that has become a WebSocket has a WebSocket: `WebSocketRecorder` while it is recorded, `WebSocketPlayer` while it comes
from the tape. The layers in `proxy/engine/websocket/` read and write frames; what a message means is said here.

Messages are appended and not waited for: the log keeps their order, and whatever the agent sends out because
of one waits for a later commit. What is not written yet is bounded all the same (`backlog`), by whoever
reads from the two sides.
"""

from collections.abc import Awaitable

from mitmproxy import connection, http

from ..tape.policy.decide import Action
from .run.pending_exchange import (
    PendingExchange,
    find_pending,
    on_their_way,
)
from .run.registry import RunRegistry
from .websockets.player import WebSocketPlayer
from .websockets.recorder import WebSocketRecorder
from .wire.websocket_handshake import EXTENSIONS, is_upgrade, known_offers


class Websocket:
    """Begin and end WebSockets."""

    def __init__(self, registry: RunRegistry) -> None:
        """Serve the open runs of `registry`."""
        self._registry = registry

    def request(self, flow: http.HTTPFlow) -> None:
        """Offer the upstream no extension that cannot be read here."""
        pending = find_pending(flow)
        if pending is None or pending.decision is None or not pending.seq:
            return
        if pending.decision.action not in (Action.FORWARD, Action.LIVE):
            return
        headers = flow.request.headers
        if is_upgrade(headers.fields):
            offers = headers.get_all(EXTENSIONS)
            known = known_offers(offers)
            if known is not None:
                headers.set_all(EXTENSIONS, known)

    def response(self, flow: http.HTTPFlow) -> Awaitable[None] | None:
        """Begin to keep what follows; wait until a played handshake is due."""
        pending = find_pending(flow)
        if pending is None:
            return None
        if isinstance(pending.websocket, WebSocketPlayer):
            return pending.websocket.answer()
        if pending.progress.recording and flow.websocket is not None:
            pending.become(WebSocketRecorder(pending))
        return None

    async def playhead_websocket_ended(self, pending: PendingExchange) -> None:
        """End a WebSocket that was played."""
        if isinstance(pending.websocket, WebSocketPlayer):
            await pending.websocket.end()

    async def client_disconnected(self, client: connection.Client) -> None:
        """End what its stream did not: the client left before it was begun, or its layers crashed."""
        open_run = self._registry.of(client)
        if open_run is None:
            return
        for pending in list(on_their_way(open_run)):
            if pending.flow.client_conn is client and isinstance(
                pending.websocket, WebSocketPlayer
            ):
                await pending.websocket.end()
