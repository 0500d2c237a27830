"""Answers from the tape: steps with times, played by timers inside the stream. No sockets, no threads.

Until the client leaves, HANG waits. What cannot be read any more is cut: the rest of a tape that does not fit
its hash is never served.
"""

import logging
import time

from mitmproxy import flow as mflow
from mitmproxy.net.http import status_codes
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http import (
    DropStream,
    HttpErrorHook,
    RequestData,
    RequestEndOfMessage,
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
    SendHttp,
)

from ....addons.run.pending import Flight, note_verdict
from ....config import Mode
from ....store import StoreError
from ....tape.exchange import Ending, Seq, VerdictKind
from ....tape.playback.script import Step, StepKind
from ....tape.records.events import EventKind
from ..hooks.own_hooks import Drain, PlayheadDuplexHook
from .base_stream import Commands
from .recording_stream import RecordingStream

logger = logging.getLogger(__name__)

_DRAIN_BYTES = 256 * 1024
"""Played between two waits for the client to take what it was sent."""
_CAUSE_S = 0.005
"""Time between two looks for the request that caused a piece."""
_EARLY_S = 0.0005
"""A step due within this is played now: a timer would be late by more."""


class PlayingStream(RecordingStream):
    """A stream that plays the steps of its flight."""

    _playing = False
    _head_played = False
    _undrained = 0

    def _begin_playing(self) -> Commands:
        self._playing = True
        self.server_state = self.state_done
        yield from self._play()

    def _play(self) -> Commands:
        flight = self._flight
        assert flight is not None
        assert flight.steps is not None
        while self._playing and (step := flight.steps.next) is not None:
            if step.kind is StepKind.HANG:
                return
            if step.need > flight.sent_bytes and not flight.request_ended:
                return  # more of the request has to come first
            wait_s = _wait(step, flight)
            if wait_s > _EARLY_S:
                yield commands.RequestWakeup(wait_s)
                return
            try:
                step = flight.steps.take()
            except StoreError as error:
                yield from self._break_off(flight, error)
                return
            yield from self._play_step(flight, step)
            if self._undrained > _DRAIN_BYTES:
                self._undrained = 0
                yield Drain(self.context.client)
                return

    def _play_step(self, flight: Flight, step: Step) -> Commands:
        match step.kind:
            case StepKind.HEAD:
                yield from self._play_head(flight)
            case StepKind.DATA if not step.data:
                pass  # an id that was all of a piece now stands in the one before; an empty chunk is the end
            case StepKind.DATA:
                yield SendHttp(ResponseData(self.stream_id, step.data), self.context.client)
                self._undrained += len(step.data)
            case StepKind.END:
                yield from self._play_end(flight)
            case StepKind.FAIL:
                self._over(flight, ended=False)
                yield from self._end(step.ending, step.code, begun=self._head_played)
                yield DropStream(self.stream_id)

    def _play_head(self, flight: Flight) -> Commands:
        response = self.flow.response
        assert response is not None
        assert flight.steps is not None
        following = flight.steps.next
        ends = following is not None and following.kind is StepKind.END
        last = ends and not response.trailers and flight.request_ended
        if response.is_http2 and not self.flow.request.is_http2 and not response.reason:
            response.reason = status_codes.RESPONSES.get(response.status_code, "")
        self._head_played = True
        yield SendHttp(
            ResponseHeaders(self.stream_id, response, end_stream=last), self.context.client
        )

    def _play_end(self, flight: Flight) -> Commands:
        response = self.flow.response
        assert response is not None
        if flight.ragged:
            self.context.client.abrupt = True  # type: ignore[attr-defined]  # read by our TLS layer
        if flight.effect is not None and not flight.withheld:
            flight.effect.seen = True
        self._over(flight, ended=True)
        if response.trailers:
            yield SendHttp(ResponseTrailers(self.stream_id, response.trailers), self.context.client)
        self.flow.live = False
        yield DropStream(self.stream_id)
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)

    def _left_while_playing(
        self, flight: Flight, event: RequestProtocolError | ResponseProtocolError
    ) -> Commands:
        if flight.recording and not flight.saved:
            flight.client_left()
            yield HttpErrorHook(self.flow)  # it is kept with what its client saw: nothing
            self._over(flight, ended=False)
        elif not flight.finished:
            flight.session.note(EventKind.OUTCOME, seq=flight.seq, gone_us=flight.now_us())
            self._over(flight, ended=False)
        self.flow.error = mflow.Error(event.message)
        self.client_state = self.server_state = self.state_errored
        yield DropStream(self.stream_id)

    def _break_off(self, flight: Flight, error: StoreError) -> Commands:
        """Cut an answer that cannot be read on."""
        logger.error("%s", error)
        assert flight.request is not None
        reason = f"the tape cannot be read on: {error}"
        note_verdict(flight, flight.request, VerdictKind.REFUSED, reason)
        self._over(flight, ended=False)
        yield from self._end(Ending.RST, 0, begun=self._head_played)
        yield DropStream(self.stream_id)

    def _over(self, flight: Flight, *, ended: bool) -> None:
        self._playing = False
        self.flow.live = False
        self.server_state = self.state_done if ended else self.state_errored
        flight.finish()

    # ---- requests that go on while they are answered ---------------------------------------------

    def state_consume_request_body(self, event: events.Event) -> Commands:
        """Take a piece of a request; its answer may begin before it has ended."""
        flight = self._flight
        if flight is None or not flight.duplex or flight.session.mode is not Mode.PLAYBACK:
            return super().state_consume_request_body(event)
        return self._consume_early(flight, event)

    def _consume_early(self, flight: Flight, event: events.Event) -> Commands:
        if isinstance(event, RequestData):
            flight.sent_bytes += len(event.data)
            if not self._playing:
                yield from super().state_consume_request_body(event)
                flight.sent = [bytes(self.request_body_buf)] if flight.upload is None else []
            else:
                flight.sent = [event.data]
            yield PlayheadDuplexHook(flight)
            yield from self._go_on(flight)
        elif isinstance(event, RequestEndOfMessage):
            flight.request_ended = True
            if flight.early is None:
                yield from super().state_consume_request_body(event)
                return
            self.client_state = self.state_done
            yield PlayheadDuplexHook(flight)
            yield from self._go_on(flight)
        else:
            yield from super().state_consume_request_body(event)

    def _go_on(self, flight: Flight) -> Commands:
        if flight.early is None:
            return
        if flight.early.diverged:
            if not flight.finished:
                self._over(flight, ended=False)
                yield from self._end(Ending.STREAM, 0, begun=self._head_played)
                yield DropStream(self.stream_id)
        elif self._playing:
            yield from self._play()
        elif not flight.finished:
            self.request_body_buf.clear()
            yield from self._begin_playing()


def _wait(step: Step, flight: Flight) -> float:
    """Give the seconds until a step is due."""
    spent_s = time.monotonic() - flight.t0
    wait_s = step.at_us / 1e6 - spent_s
    if step.latest_us / 1e6 > spent_s and not _have_come(step, flight):
        return max(wait_s, _CAUSE_S)  # what caused this piece has not been asked yet
    return wait_s


def _have_come(step: Step, flight: Flight) -> bool:
    """Say whether what may have caused a piece has been asked for."""
    session = flight.session
    cursor, tape = session.cursor, session.tape
    if cursor is None or tape is None:
        return True
    # Requests that left no exchange, as those to Playhead itself, cannot be asked again.
    return all(cursor.served(Seq(seq)) or not session.store.holds(tape, seq) for seq in step.causes)
