"""Choose the layer after a WebSocket handshake: record, play or pass.

aiohttp asks a proxy for `ws://` URLs as they are; to mitmproxy that is no scheme of HTTP.

Replaces by name: `WebsocketLayer` in `mitmproxy.proxy.layers.websocket`, where `HttpStream.flow_done` looks it
up; `validate_request` in `mitmproxy.proxy.layers.http`. Checked against 12.2.3.
Test: tests/proxy/engine/websocket/test_choose_layer.py, tests/journeys/test_websocket.py.
"""

from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, context, events, layer
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers import websocket as websocket_layer

from ....addons.run.pending_exchange import find_pending
from ....addons.websockets.player import WebSocketPlayer
from ....addons.websockets.recorder import WebSocketRecorder
from .peers import Commands
from .playback import Player
from .recording import Relay

_validate = http_layer.validate_request


class Pass(layer.Layer):
    """A WebSocket that is not recorded: bytes pass."""

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.DataReceived):
            yield commands.SendData(self._other(event.connection), event.data)
        elif isinstance(event, events.ConnectionClosed):
            yield commands.CloseConnection(self._other(event.connection))
            yield commands.CloseConnection(event.connection)

    def _other(self, connection: Connection) -> Connection:
        client: Connection = self.context.client
        return self.context.server if connection is client else client


def make_layer(context: context.Context, flow: http.HTTPFlow) -> layer.Layer:
    """Give the layer for what follows a handshake."""
    pending = find_pending(flow)
    websocket = pending.websocket if pending is not None else None
    if pending is not None and isinstance(websocket, WebSocketRecorder):
        return Relay(context, flow, pending)
    if pending is not None and isinstance(websocket, WebSocketPlayer):
        return Player(context, pending)
    return Pass(context)


def take_ws(
    mode: http_layer.HTTPMode, request: http.Request, validate_inbound_headers: bool
) -> str | None:
    """Take a `ws` URL for the `http` URL it stands for, and say what is wrong with a request."""
    if request.scheme == "ws":
        request.scheme = "http"
    return _validate(mode, request, validate_inbound_headers)


def install() -> None:
    """Have mitmproxy make these layers, for the whole process."""
    http_layer.validate_request = take_ws
    websocket_layer.WebsocketLayer = make_layer  # type: ignore[misc,assignment]
