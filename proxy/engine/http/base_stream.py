"""Shared by all our streams: the pending exchange, inline hooks, and endings as recorded.

A failure below HTTP is never turned into an error page of ours: the client's connection is reset, closed, or
its stream is reset, as the upstream's was.
"""

import itertools
from functools import cached_property
from typing import Any

import h2.errors
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http import (
    ErrorCode,
    HttpLayer,
    HttpStream,
    ResponseProtocolError,
    SendHttp,
    validate_request,
)

from ....addons.run.pending_exchange import PendingExchange, detach, find_pending
from ....addons.wire.convert_http_messages import keep_scheme
from ....tape.exchange import Ending
from ..hooks.own_hooks import PlayheadResetHook, PlayheadSettleHook

Commands = Any
"""A generator of mitmproxy commands."""


def find_ending(connection: Connection) -> Ending:
    """Say how a peer ended its connection, as the transport saw it."""
    seen: Ending | None = getattr(connection, "ending", None)  # put there by our handler
    if seen is not None:
        return seen
    # The transport still stands, so it was TLS that was closed, or it is us who end it.
    return Ending.CLOSE if connection.tls else Ending.FIN


def _ignore(_: events.Event) -> Commands:
    """Do nothing with what comes after the end."""
    yield from ()


class BaseStream(HttpStream):
    """One exchange on a client connection."""

    @property
    def _pending(self) -> PendingExchange | None:
        return find_pending(self.flow)

    def check_invalid(self, request: bool) -> Commands:
        """Refuse a request that cannot be meant; what heads say was looked at by our readers.

        In a tunnel mitmproxy then puts the scheme of the tunnel in the place of the one that was sent.
        """
        if request and self.flow.request.data.scheme:
            keep_scheme(self.flow.request)
        if request and validate_request(self.mode, self.flow.request, False):
            return (yield from super().check_invalid(True))
        return False

    def _inline(self, generator: Commands) -> Commands:
        """Run hooks where they stand instead of sending them up through ten layers to wait for the echo.

        A hook that has to wait is sent up as before, with what is left of it.
        """
        addons = getattr(self.context.client, "hooks", None)  # put there by our handler
        if addons is None:
            return (yield from generator)
        asked = generator
        while True:
            # A loop over a generator is run without a call; what has to be sent into it is the exception.
            for command in asked:
                if isinstance(command, commands.StartHook):
                    waiting = addons.start(command)
                    if waiting is None:
                        continue
                    command.waiting = waiting  # type: ignore[attr-defined]  # read by the handler
                reply = yield command
                if reply is not None:
                    break
            else:
                return None
            try:
                first = generator.send(reply)
            except StopIteration:
                return None
            asked = itertools.chain((first,), generator)

    def handle_connect_finish(self) -> Commands:
        """Make the tunnel, and let the handler know what is inside it."""
        # TLS with the proxy itself is around it, and stays; what the tunnel brings sets the same field.
        plain = not self.context.client.tls
        yield from super().handle_connect_finish()  # type: ignore[no-untyped-call]  # mitmproxy's
        made = self.flow.response is not None and 200 <= self.flow.response.status_code < 300
        if made and plain:
            self.context.client.tunnel = self  # type: ignore[attr-defined]  # read by the handler

    def release(self) -> None:
        """Let go of itself once it is done with: what refers to it refers to an exchange and its bodies.

        Called when nothing of it runs. One that waits for a hook is left to the collector.
        """
        if self._paused is not None:
            return
        self.client_state = self.server_state = _ignore
        self.context.layers.clear()  # a copy of its own
        if hasattr(self, "flow"):
            detach(self.flow)
        self.__dict__.pop("_http", None)

    def _ending_for(self, ending: Ending) -> Ending:
        """Say how the client is to be given an ending of the upstream's connection.

        Over HTTP/2 the connection may carry other exchanges, which are not to end with this one.
        """
        return Ending.STREAM if self.flow.request.is_http2 and not self._is_alone else ending

    @property
    def _is_alone(self) -> bool:
        return not any(
            stream is not self and getattr(stream, "flow", None) is not None and stream.flow.live
            for stream in self._http.streams.values()
        )

    @cached_property
    def _http(self) -> HttpLayer:
        """The HTTP that it is a stream of."""
        around = self.context.layers[self.context.layers.index(self) - 1]
        assert isinstance(around, HttpLayer)
        return around

    def _end(self, ending: Ending, code: int, *, begun: bool) -> Commands:
        """End the client's connection, or over HTTP/2 perhaps only its stream, in this way.

        begun: whether the client has been sent some of the answer, which has to reach it first.
        """
        client = self.context.client
        ending = self._ending_for(ending)
        # Over HTTP/2 the client may still be busy with the beginning of the connection.
        # A connection that is closed over what it has not read yet is reset by the kernel.
        if self.flow.request.is_http2 or (begun and ending in (Ending.RST, Ending.STREAM)):
            yield PlayheadSettleHook(client)
        if ending is Ending.RST or (ending is Ending.STREAM and not self.flow.request.is_http2):
            yield PlayheadResetHook(client)
        elif ending is Ending.FIN:
            client.abrupt = True  # type: ignore[attr-defined]  # read by our TLS layer
        error = ResponseProtocolError(self.stream_id, "cut", ErrorCode.KILL)
        if not self.flow.request.is_http2:
            yield SendHttp(error, client)
        elif ending is Ending.STREAM:
            error.h2_code = code or h2.errors.ErrorCodes.INTERNAL_ERROR  # type: ignore[attr-defined]  # read by our Http2Server
            yield SendHttp(error, client)
        else:
            yield commands.CloseConnection(client)
