"""Play answers from the tape: timed steps, driven by timers inside the stream. No sockets, no threads.

Until the client leaves, HANG waits. What cannot be read any more is cut: the rest of a tape that does not fit
its hash is never served.
"""

import logging
import math
import time
from collections.abc import Callable

from mitmproxy import flow as mflow
from mitmproxy import http
from mitmproxy.net.http import status_codes
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http import (
    DropStream,
    HttpErrorHook,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
    ResponseTrailers,
    SendHttp,
)

from ....addons.answer.partial_delivery import note_late, note_left, refuse_late
from ....addons.run.pending_exchange import PendingExchange, note_verdict
from ....addons.run.playback_state import CompletionOrder
from ....addons.wire.convert_http_messages import make_interim
from ....config import Mode
from ....store import StoreError
from ....tape.exchange import Ending, Seq
from ....tape.playback.script import ORDER_MARGIN_US, Rest, Step, StepKind
from ....tape.policy.revise import Cause, Refused
from ..hooks.own_hooks import Drain, Hear, PlayheadBidirectionalHook
from .base_stream import Commands
from .http2 import has_reset
from .recording_stream import RecordingStream

logger = logging.getLogger(__name__)

_DRAIN_BYTES = 256 * 1024
"""Played between two waits for the client to take what it was sent."""
_CAUSE_S = 0.005
"""Time between two checks for the request that caused a piece."""
_HEARD_S = 0.01
"""Time for a client to take in one answer before it gets the next."""
_EARLY_S = 0.0005
"""A step due within this is played now: a timer would be late by more."""


_QUIET_S = 0.5
"""Time without a message after which a client is taken to wait for an answer."""
_UNKNOWN_S = 2.0
"""The same of a request that the tape cannot have: what it is refused for is known better, the more of it has come."""


class Quiet(commands.RequestWakeup):
    """Wake up after a while, to see whether more of a request has come."""

    def __init__(self, delay: float, sent_bytes: int) -> None:
        """Take the delay, and what has come by now."""
        super().__init__(delay)
        self.sent_bytes = sent_bytes


class PlayingStream(RecordingStream):
    """A stream that plays the steps of its pending exchange."""

    _playing = False
    _head_played = False
    _begun = False
    """Whether the client has been sent some of an answer, be it an interim one."""
    _undrained = 0
    _late = False
    """Whether something was played that the recorded client had left."""

    def _begin_playing(self) -> Commands:
        self._playing = True
        self.server_state = self.state_done
        if self._is_client_leaving():
            yield Hear()
        else:
            yield from self._play()

    def _is_client_leaving(self) -> bool:
        """Say whether a client has said more before its answer has begun: most likely that it leaves, or ends its half.

        Who closes after an answer has been played is never taken for one that left before.
        """
        client = self.context.client
        if self.flow.request.is_http2 and has_reset(client, self.stream_id):
            return True  # its reset waits behind the hooks of the request
        says_more: Callable[[], bool] | None = getattr(client, "says_more", None)
        goodbye = getattr(client, "heard_goodbye", False)  # put there by our TLS layer
        return goodbye or (says_more is not None and says_more())

    def _play(self) -> Commands:
        pending = self._pending
        assert pending is not None
        assert pending.playing.steps is not None
        while self._playing and (step := pending.playing.steps.next) is not None:
            if step.kind is StepKind.HANG:
                return
            if step.need > pending.body.sent_bytes and not pending.body.request_ended:
                return  # more of the request has to come first
            wait_s = _wait(step, pending)
            if wait_s > _EARLY_S:
                yield commands.RequestWakeup(wait_s)
                return
            try:
                step = pending.playing.steps.take()
            except StoreError as error:
                yield from self._break_off(pending, error)
                return
            if step.unseen and step.kind is not StepKind.END and not self._late:
                self._late = True
                note_late(pending)
            yield from self._play_step(pending, step)
            if self._undrained > _DRAIN_BYTES:
                self._undrained = 0
                yield Drain(self.context.client)
                return

    def _play_step(self, pending: PendingExchange, step: Step) -> Commands:
        match step.kind:
            case StepKind.INTERIM:
                yield from self._play_interim(pending, step)
            case StepKind.HEAD:
                yield from self._play_head(pending)
            case StepKind.DATA if not step.data:
                pass  # an id that was all of a piece now stands in the one before; an empty chunk is the end
            case StepKind.DATA:
                yield SendHttp(ResponseData(self.stream_id, step.data), self.context.client)
                self._undrained += len(step.data)
            case StepKind.END:
                yield from self._play_end(pending)
            case StepKind.LATE:
                yield from self._refuse_late(pending, step.rest)
            case StepKind.FAIL:
                self._over(pending, ended=False)
                yield from self._end(step.ending, step.code, begun=self._begun)
                yield DropStream(self.stream_id)

    def _play_interim(self, pending: PendingExchange, step: Step) -> Commands:
        assert step.interim is not None
        response, self._begun = make_interim(step.interim), True
        if self.flow.response is not None:
            self._put_reason(response, recorded=self.flow.response)
        yield from self._send_interim(pending, response)

    def _put_reason(self, response: http.Response, recorded: http.Response) -> None:
        """Put in the reason phrase that an answer of HTTP/2 does not have, for a client of HTTP/1."""
        if recorded.is_http2 and not self.flow.request.is_http2 and not response.reason:
            response.reason = status_codes.RESPONSES.get(response.status_code, "")

    def _play_head(self, pending: PendingExchange) -> Commands:
        response = self.flow.response
        assert response is not None
        assert pending.playing.steps is not None
        following = pending.playing.steps.next
        ends = following is not None and following.kind is StepKind.END
        last = ends and not response.trailers and pending.body.request_ended
        self._put_reason(response, recorded=response)
        self._head_played = self._begun = True
        yield SendHttp(
            ResponseHeaders(self.stream_id, response, end_stream=last), self.context.client
        )

    def _play_end(self, pending: PendingExchange) -> Commands:
        response = self.flow.response
        assert response is not None
        if pending.answer.ragged:
            self.context.client.abrupt = True  # type: ignore[attr-defined]  # read by our TLS layer
        if pending.account.effect is not None and not pending.playing.withheld:
            pending.account.effect.seen = True
        self._over(pending, ended=True)
        if response.trailers:
            yield SendHttp(ResponseTrailers(self.stream_id, response.trailers), self.context.client)
        self.flow.live = False
        yield DropStream(self.stream_id)
        yield SendHttp(ResponseEndOfMessage(self.stream_id), self.context.client)

    def _left_while_playing(
        self, pending: PendingExchange, event: RequestProtocolError | ResponseProtocolError
    ) -> Commands:
        if pending.progress.recording and not pending.progress.saved:
            pending.client_left()
            yield HttpErrorHook(self.flow)  # it is kept with what its client saw: nothing
            self._over(pending, ended=False)
        elif not pending.finished:
            note_left(pending)
            self._over(pending, ended=False)
        self.flow.error = mflow.Error(event.message)
        self.client_state = self.server_state = self.state_errored
        if pending.playing.steps is not None:
            pending.playing.steps.close()
        yield DropStream(self.stream_id)

    def _refuse_late(self, pending: PendingExchange, rest: Rest) -> Commands:
        """End an answer of which the recorded client had seen no more, and which this one waits for."""
        refused = refuse_late(pending, rest)
        if self._head_played:
            self._over(pending, ended=False)
            yield from self._end(Ending.RST, 0, begun=True)
            yield DropStream(self.stream_id)
            return
        self.flow.response = refused
        pending.answer.play(ragged=False)
        body = refused.data.content or b""
        refused.data.content = b""
        yield SendHttp(
            ResponseHeaders(self.stream_id, refused, end_stream=False), self.context.client
        )
        yield SendHttp(ResponseData(self.stream_id, body), self.context.client)
        yield from self._play_end(pending)

    def _break_off(self, pending: PendingExchange, error: StoreError) -> Commands:
        """Cut an answer that cannot be read on."""
        logger.error("%s", error)
        assert pending.request is not None
        finding = Refused(Cause.TAPE_BROKEN, f"the tape cannot be read on: {error}")
        note_verdict(pending, pending.request, pending.revise(finding))
        self._over(pending, ended=False)
        yield from self._end(Ending.RST, 0, begun=self._head_played)
        yield DropStream(self.stream_id)

    def _over(self, pending: PendingExchange, *, ended: bool) -> None:
        self._playing = False
        self.flow.live = False
        self.server_state = self.state_done if ended else self.state_errored
        if pending.playing.steps is not None:
            pending.playing.steps.close()  # a body's file is open until then
        pending.finish()

    # ---- requests that go on while they are answered ---------------------------------------------

    def state_wait_for_request_headers(self, event: events.Event) -> Commands:
        """Take a head; if nothing follows it, its client may be waiting for a server that speaks first."""
        yield from super().state_wait_for_request_headers(event)
        pending = self._pending if hasattr(self, "flow") else None
        if (
            isinstance(event, RequestHeaders)
            and not event.end_stream
            and pending is not None
            and pending.body.bidirectional
            and pending.open_run.mode is Mode.PLAYBACK
        ):
            yield Quiet(_QUIET_S, 0)

    def state_consume_request_body(self, event: events.Event) -> Commands:
        """Take a piece of a request; its answer may begin before it has ended."""
        pending = self._pending
        if (
            pending is None
            or not pending.body.bidirectional
            or pending.open_run.mode is not Mode.PLAYBACK
        ):
            return super().state_consume_request_body(event)
        return self._consume_early(pending, event)

    def _consume_early(self, pending: PendingExchange, event: events.Event) -> Commands:
        if isinstance(event, RequestData):
            pending.body.count(len(event.data))
            if not self._playing:
                yield from super().state_consume_request_body(event)
                held = [bytes(self.request_body_buf)] if pending.body.upload is None else []
                pending.body.have_sent(held)
            else:
                pending.body.have_sent([event.data])
            yield PlayheadBidirectionalHook(pending)
            yield from self._await_quiet(pending)
            yield from self._go_on(pending)
        elif isinstance(event, RequestEndOfMessage):
            pending.body.end()
            if pending.body.early is None:
                yield from super().state_consume_request_body(event)
                return
            self.client_state = self.state_done
            yield PlayheadBidirectionalHook(pending)
            yield from self._go_on(pending)
        else:
            yield from super().state_consume_request_body(event)

    def _await_quiet(self, pending: PendingExchange) -> Commands:
        body = pending.body
        if body.early is not None or pending.decision is not None:
            return
        if body.undecided:
            yield Quiet(_QUIET_S, body.sent_bytes)
        elif body.is_unknown:
            yield Quiet(_UNKNOWN_S, body.sent_bytes)

    def _note_quiet(self, command: "Quiet") -> Commands:
        """Begin the answer of a later recorded request, or decide one that is on no tape, if no more has come of this one."""
        pending = self._pending
        if pending is None or pending.body.request_ended or pending.body.early is not None:
            return
        body = pending.body
        if (
            pending.finished
            or pending.decision is not None
            or body.sent_bytes != command.sent_bytes
        ):
            return
        body.hear_quiet(command.sent_bytes)
        if not command.sent_bytes:
            body.have_sent([b""])
        yield PlayheadBidirectionalHook(pending)
        if body.early is None and body.is_unknown:
            if command.delay >= _UNKNOWN_S:
                yield from self._end_request(pending)
            else:
                yield Quiet(_UNKNOWN_S, body.sent_bytes)
            return
        yield from self._go_on(pending)

    def _end_request(self, pending: PendingExchange) -> Commands:
        """Decide a request by what has come of it, as if that were all; what still comes goes nowhere."""
        pending.body.end()
        yield from super().state_consume_request_body(RequestEndOfMessage(self.stream_id))

    def _go_on(self, pending: PendingExchange) -> Commands:
        if pending.body.early is None:
            return
        if pending.body.early.diverged:
            if not pending.finished:
                self._over(pending, ended=False)
                yield from self._end(Ending.STREAM, 0, begun=self._head_played)
                yield DropStream(self.stream_id)
        elif self._playing:
            yield from self._play()
        elif not pending.finished:
            self.request_body_buf.clear()
            yield from self._begin_playing()


def _wait(step: Step, pending: PendingExchange) -> float:
    """Give the seconds until a step is due."""
    spent_s = time.monotonic() - pending.arrival.t0
    wait_s = step.at_us / 1e6 - spent_s
    if step.latest_us / 1e6 > spent_s and not _have_come(step, pending):
        return max(wait_s, _CAUSE_S)  # what caused this piece has not been asked yet
    if step.ordered is not None and spent_s < (step.at_us + ORDER_MARGIN_US) / 1e6:
        return max(wait_s, _wait_for_others(step.ordered, pending))
    return wait_s


def _wait_for_others(seq: Seq, pending: PendingExchange) -> float:
    """Give the seconds until the answers have been heard that came before this one on the tape."""
    playback = pending.open_run.playback
    completion = playback.completion if playback is not None else CompletionOrder()
    answered = completion.answered
    last = max(
        (answered.get(other, math.inf) for other in completion.find_before(seq)), default=0.0
    )
    return _CAUSE_S if last == math.inf else last + _HEARD_S - time.monotonic()


def _have_come(step: Step, pending: PendingExchange) -> bool:
    """Say whether what may have caused a piece has been asked for."""
    open_run = pending.open_run
    if open_run.playback is None:
        return True
    cursor, tape = open_run.playback.cursor, open_run.playback.tape
    # Requests that left no exchange, as those to Playhead itself, cannot be asked again.
    return all(
        cursor.served(Seq(seq)) or not open_run.store.exchanges.holds(tape, seq)
        for seq in step.causes
    )
