"""Route HTTP commands with few type checks.

Why: mitmproxy compares each command with eight kinds in turn, at each of the three or four levels that it passes
on its way out; what passes most came last. 1.6 % (`mitmproxy_messages.py` says how that was taken); and here the layer that waited for an
upstream is left out once that is connected, a recording hears that its client has reset a stream, and a stream that is done with is
freed at once: each was garbage of sixty objects, and for what had come together the collector stopped all connections for 80 ms.

Replaces: `HttpLayer.event_to_child`, `HttpLayer._handle_event`. Checked against 12.2.3. Test: tests/journeys.
"""

from asyncio import get_running_loop
from typing import Any

from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import (
    DropStream,
    GetHttpConnection,
    HttpClient,
    HttpLayer,
    RegisterHttpConnection,
    RequestHeaders,
    RequestProtocolError,
    SendHttp,
)
from mitmproxy.proxy.layers.http._base import ReceiveHttp

from ..http.base_stream import BaseStream
from ..http.recording_stream import RecordingStream
from .mitmproxy_messages import wait_for, while_waiting

Commands = Any
"""A generator of mitmproxy commands."""

_handle_event = HttpLayer._handle_event


def handle_event(self: HttpLayer, event: events.Event) -> Commands:
    """Hand an event to whom it is for."""
    if isinstance(event, events.ConnectionEvent):
        side = self.connections.get(event.connection)
        if side is not None:
            return self.event_to_child(side, event)
    elif isinstance(event, events.CommandCompleted):
        return self.event_to_child(self.command_sources.pop(event.command), event)
    return _handle_event(self, event)


def event_to_child(self: HttpLayer, child: layer.Layer, event: events.Event) -> Commands:
    """Hand an event to a stream or to a side of HTTP; do what it asks for, or hand that on."""
    # As `Layer.handle_event` does, without a generator of its own: no child of HTTP has another.
    waiting = child._paused is not None
    generator: Commands = while_waiting(child, event) if waiting else child._handle_event(event)
    for command in generator:
        kind = type(command)
        # Most of all that passes; none of these waits for a reply.
        if kind is commands.SendData:
            yield command
        elif kind is SendHttp:
            side = self.connections[command.connection]
            yield from self.event_to_child(side, command.event)
        elif kind is ReceiveHttp:
            inner = command.event
            if isinstance(inner, RequestHeaders):
                yield from self.make_stream(inner.stream_id)
            stream = self.streams.get(inner.stream_id)
            if type(inner) is RequestProtocolError and isinstance(stream, RecordingStream):
                stream.hear_leaving()
            if stream is not None:  # else it is done with: what still comes is for nobody
                yield from self.event_to_child(stream, inner)
        elif kind is DropStream:
            dropped = self.streams.pop(command.stream_id, None)
            if isinstance(dropped, BaseStream):
                get_running_loop().call_soon(dropped.release)
        elif kind is RegisterHttpConnection:
            _step_over(self, command)
            yield from self.register_connection(command)
        else:
            blocking = command.blocking
            if blocking or isinstance(command, commands.RequestWakeup):
                self.command_sources[command] = child  # who gets the reply
                if blocking is True:
                    wait_for(child, command, generator)
            if kind is GetHttpConnection:
                yield from self.get_connection(command)
            else:
                if isinstance(command, commands.OpenConnection):
                    self.connections[command.connection] = child
                yield command
            if blocking is True:
                return


def _step_over(self: HttpLayer, command: RegisterHttpConnection) -> None:
    """Leave out the layer that waited for an upstream to be connected: from now on it only passes things on."""
    side = self.connections.get(command.connection)
    if isinstance(side, HttpClient) and not command.err and not side._paused_event_queue:
        self.connections[command.connection] = side.child_layer


def install() -> None:
    """Have mitmproxy's HTTP do so, for the whole process."""
    HttpLayer._handle_event = handle_event  # type: ignore[method-assign]
    HttpLayer.event_to_child = event_to_child  # type: ignore[method-assign]
