"""Streams that record and streams that play.

Rules:

1. While recording, pieces of a body pass as they come. The last byte of an answer is released only after
   its outcome is durable: the piece that completes the announced length is held back, or else the end
   itself (the terminating chunk, END_STREAM). A piece on which SDKs act before the end is released after
   what has passed is durable.
2. When the client leaves, an effect's upstream is read on, and nobody is told; anything else is passed on.
3. A fault below HTTP is never turned into an error page of ours: the client's connection is reset, or
   ended where it had been sent something.
4. A tape is played from steps with times, by timers inside the stream: no sockets, no threads. Until the
   client leaves, HANG waits.

Replaces by name: `HttpStream` in `mitmproxy.proxy.layers.http`, where `HttpLayer.make_stream` looks it up.
Checked against 12.2.3. Test: tests/proxy/engine/test_streams.py, tests/journeys.
"""

import time
from dataclasses import dataclass
from typing import Any

from mitmproxy import flow as mflow
from mitmproxy.connection import Client
from mitmproxy.net.http import status_codes, validate
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers.http import (
    DropStream,
    ErrorCode,
    HttpErrorHook,
    HttpResponseHook,
    HttpStream,
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
    SendHttp,
)

from ...addons.flight import Flight, find_flight
from ...addons.record import is_terminal
from ...tape.events import EventKind
from ...tape.model import Seq
from ...tape.script import Step, StepKind

Commands = Any
"""A generator of mitmproxy commands."""

_DRAIN_BYTES = 256 * 1024
"""Played between two waits for the client to take what it was sent."""
_CAUSE_S = 0.005
"""Time between two looks for the request that caused a piece."""
_EARLY_S = 0.0005
"""A step due within this is played now: a timer would be late by more."""


@dataclass
class PlayheadReleaseHook(commands.StartHook):
    """What has passed of a stream is to be made durable before more is released."""

    data: Flight


@dataclass
class PlayheadResetHook(commands.StartHook):
    """The client's connection is to end with RST, not FIN."""

    data: Client


@dataclass
class PlayheadDrainHook(commands.StartHook):
    """Wait until the client has taken what it was sent."""

    data: Client


class PlayheadStream(HttpStream):
    """One exchange on a client connection."""

    _held: bytes = b""
    _playing = False
    _index = 0
    _undrained = 0

    @property
    def _flight(self) -> Flight | None:
        return find_flight(self.flow)

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.Wakeup) and self.child_layer is None:
            if self._playing:
                yield from self._inline(self._play())
            return
        yield from self._inline(super()._handle_event(event))

    def _inline(self, generator: Commands) -> Commands:
        """Run hooks where they stand instead of sending them up through ten layers to wait for the echo.

        A hook that has to wait is sent up as before, with what is left of it.
        """
        addons = getattr(self.context.client, "hooks", None)  # put there by our handler
        if addons is None:
            return (yield from generator)
        reply = None
        while True:
            try:
                command = generator.send(reply)
            except StopIteration as stop:
                return stop.value
            if isinstance(command, commands.StartHook):
                waiting = addons.start(command)
                if waiting is None:
                    reply = None
                    continue
                command.waiting = waiting  # type: ignore[attr-defined]  # read by the handler
            reply = yield command

    def handle_connect_finish(self) -> Commands:
        """Make the tunnel, and let the handler know what is inside it."""
        # TLS with the proxy itself is around it, and stays; what the tunnel brings sets the same field.
        plain = not self.context.client.tls
        yield from super().handle_connect_finish()  # type: ignore[no-untyped-call]  # mitmproxy's
        made = self.flow.response is not None and 200 <= self.flow.response.status_code < 300
        if made and plain:
            self.context.client.tunnel = self  # type: ignore[attr-defined]  # read by the handler

    # ---- recording -----------------------------------------------------------------------------

    def start_response_stream(self) -> Commands:
        """Send the head on; what follows passes piece by piece."""
        assert self.flow.response
        flight = self._flight
        if flight is not None:
            flight.head_sent = True
        yield SendHttp(
            ResponseHeaders(self.stream_id, self.flow.response, end_stream=False),
            self.context.client,
        )
        self.server_state = self.state_stream_response_body

    def check_invalid(self, request: bool) -> Commands:
        """Take an answer that can be read in two ways for a failure of the upstream."""
        flight = None if request else self._flight
        if flight is None or self.flow.response is None:
            return (yield from super().check_invalid(request))
        try:
            validate.validate_headers(self.flow.response)
        except ValueError as error:
            yield commands.CloseConnection(self.flow.server_conn)
            failure = ResponseProtocolError(
                self.stream_id, f"received {error}", ErrorCode.RESPONSE_VALIDATION_FAILED
            )
            yield from self._upstream_failed(flight, failure)
            return True
        return False

    def state_stream_response_body(self, event: events.Event) -> Commands:
        """Note each piece, and hold back the last."""
        flight = self._flight
        if flight is None or not isinstance(event, ResponseData):
            yield from super().state_stream_response_body(event)
            return
        flight.take(event.data)
        if flight.whole:
            self._held += event.data  # HTTP/2 may send empty pieces after the last
            return
        if flight.event_stream and flight.recording and is_terminal(event.data):
            yield PlayheadReleaseHook(flight)
            if self.flow.error is not None:  # it could not be made durable
                yield from self.check_killed(True)
                return
        yield SendHttp(ResponseData(self.stream_id, event.data), self.context.client)

    def send_response(self, already_streamed: bool = False) -> Commands:
        """End an answer: release what was held, or play the tape."""
        flight = self._flight
        if flight is not None and flight.steps is not None and not already_streamed:
            self._playing = True
            self.server_state = self.state_done
            yield from self._play()
            return
        if flight is None or not already_streamed:
            yield from super().send_response(already_streamed)
            return
        assert self.flow.response
        yield HttpResponseHook(self.flow)
        self.server_state = self.state_done
        if (yield from self.check_killed(False)):
            return
        if self._held:
            yield SendHttp(ResponseData(self.stream_id, self._held), self.context.client)
            self._held = b""
        if self.flow.response.trailers:
            yield SendHttp(
                ResponseTrailers(self.stream_id, self.flow.response.trailers),
                self.context.client,
            )
        if self.client_state == self.state_done:
            yield from self.flow_done()

    def handle_protocol_error(
        self, event: RequestProtocolError | ResponseProtocolError
    ) -> Commands:
        """Take note of who failed, and let the client see just that."""
        flight = self._flight if hasattr(self, "flow") else None
        if flight is None:
            yield from super().handle_protocol_error(event)
        elif self._playing:
            yield from self._left_while_playing(flight, event)
        elif isinstance(event, RequestProtocolError):
            yield from self._client_left(flight, event)
        else:
            yield from self._upstream_failed(flight, event)

    def _client_left(self, flight: Flight, event: RequestProtocolError) -> Commands:
        waiting = self.client_state == self.state_done and self.server_state in (
            self.state_wait_for_response_headers,
            self.state_consume_response_body,
            self.state_stream_response_body,
        )
        if waiting:
            flight.client_left()
            if flight.keep_reading and flight.recording:
                return  # nobody is told; the response hook fires when the answer has come
        yield from super().handle_protocol_error(event)

    def _upstream_failed(self, flight: Flight, event: ResponseProtocolError) -> Commands:
        connected = bool(self.context.server.timestamp_tcp_setup) and not self._tls_failed()
        if any(isinstance(waiting, RequestProtocolError) for waiting in self._paused_event_queue):
            flight.client_left()  # while the upstream was connected
        if flight.gone is None or flight.keep_reading:
            flight.failed(event.message, connected=connected)  # else it ended because of the client
        head_sent = flight.head_sent
        if self.server_state not in (self.state_done, self.state_errored):
            self.flow.error = mflow.Error(event.message)
            yield HttpErrorHook(self.flow)
        self.server_state = self.state_errored
        self.flow.live = False
        if self.client_state != self.state_errored and flight.gone is None:
            if not head_sent:
                yield from self._reset()
            else:
                yield from self._end_abruptly()
        yield DropStream(self.stream_id)

    def _tls_failed(self) -> bool:
        server = self.context.server
        return bool(server.tls and not server.tls_established)

    # ---- ending a client's connection ------------------------------------------------------------

    def _end_abruptly(self) -> Commands:
        """End the answer where it is: FIN over HTTP/1, RST_STREAM over HTTP/2; never a page."""
        yield SendHttp(
            ResponseProtocolError(self.stream_id, "cut", ErrorCode.KILL), self.context.client
        )

    def _reset(self) -> Commands:
        if not self.flow.request.is_http2:
            yield PlayheadResetHook(self.context.client)
        yield from self._end_abruptly()

    # ---- playing -------------------------------------------------------------------------------

    def _play(self) -> Commands:
        flight = self._flight
        assert flight is not None
        assert flight.steps is not None
        while self._index < len(flight.steps):
            step = flight.steps[self._index]
            if step.kind is StepKind.HANG:
                return
            spent_s = time.monotonic() - flight.t0
            wait_s = step.at_us / 1e6 - spent_s
            if step.latest_us / 1e6 > spent_s and not _have_come(step, flight):
                wait_s = max(wait_s, _CAUSE_S)  # what caused this piece has not been asked yet
            if wait_s > _EARLY_S:
                yield commands.RequestWakeup(wait_s)
                return
            self._index += 1
            match step.kind:
                case StepKind.HEAD:
                    yield from self._play_head(flight)
                case StepKind.DATA:
                    yield SendHttp(ResponseData(self.stream_id, step.data), self.context.client)
                    self._undrained += len(step.data)
                    if self._undrained > _DRAIN_BYTES:
                        self._undrained = 0
                        yield PlayheadDrainHook(self.context.client)
                case StepKind.END:
                    yield from self._play_end(flight)
                case StepKind.FIN | StepKind.RST:
                    self._over(flight, step.kind.value)
                    if step.kind is StepKind.RST:
                        yield from self._reset()
                    else:
                        yield from self._end_abruptly()
                    yield DropStream(self.stream_id)

    def _play_head(self, flight: Flight) -> Commands:
        response = self.flow.response
        assert response is not None
        assert flight.steps is not None
        last = flight.steps[self._index].kind is StepKind.END and not response.trailers
        if response.is_http2 and not self.flow.request.is_http2 and not response.reason:
            response.reason = status_codes.RESPONSES.get(response.status_code, "")
        yield SendHttp(
            ResponseHeaders(self.stream_id, response, end_stream=last), self.context.client
        )

    def _play_end(self, flight: Flight) -> Commands:
        response = self.flow.response
        assert response is not None
        self._over(flight, "end")
        if response.trailers:
            yield SendHttp(ResponseTrailers(self.stream_id, response.trailers), self.context.client)
        self.flow.live = False
        yield DropStream(self.stream_id)
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)

    def _left_while_playing(
        self, flight: Flight, event: RequestProtocolError | ResponseProtocolError
    ) -> Commands:
        if not flight.finished:
            flight.session.note(
                EventKind.OUTCOME,
                seq=flight.seq,
                gone_us=flight.now_us(),
                steps_left=len(flight.steps or ()) - self._index,
            )
            self._over(flight, "left")
        self.flow.error = mflow.Error(event.message)
        self.client_state = self.server_state = self.state_errored
        yield DropStream(self.stream_id)

    def _over(self, flight: Flight, how: str) -> None:
        self._playing = False
        self.flow.live = False
        self.server_state = self.state_errored if how != "end" else self.state_done
        flight.finish()


def _have_come(step: Step, flight: Flight) -> bool:
    """Say whether what may have caused a piece has been asked for."""
    session = flight.session
    cursor, tape = session.cursor, session.tape
    if cursor is None or tape is None:
        return True
    # Requests that left no exchange, as those to Playhead itself, cannot be asked again.
    return all(cursor.served(Seq(seq)) or not session.store.holds(tape, seq) for seq in step.causes)


def install() -> None:
    """Have mitmproxy make these streams, for the whole process."""
    http_layer.HttpStream = PlayheadStream  # type: ignore[misc]
