"""Pass answers from the upstream to the client, and record them.

1. Pieces of a body pass as they come. The last byte is released only after the outcome is durable: the piece
   that completes the announced length is held back, or else the end itself (the terminating chunk,
   END_STREAM). Of an answer that has come whole by then the head goes with it. A piece on which SDKs act before the end is released after what has passed is durable.
2. When the client leaves, an effect's upstream is read on, and nobody is told; anything else is passed on.
3. What the client sees of a failed upstream is how that ended: see `base.BaseStream._end`.
4. An answer that may be refused for what it says is held back until it has been checked, as far as it can be held.
5. A fault on purpose ends an answer early, or keeps it from the client until that has given up; the record is then
   what it would be had the upstream done so.
6. A request that was held by a gate is not sent once its client has left, however short the time between.
"""

import logging

import h2.errors
from mitmproxy import flow as mflow
from mitmproxy import http
from mitmproxy.connection import Server
from mitmproxy.proxy import events
from mitmproxy.proxy.layers.http import (
    DropStream,
    ErrorCode,
    HttpErrorHook,
    HttpResponseHook,
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

from ....addons.contract import make_refusal
from ....addons.run.pending_exchange import PendingExchange
from ....addons.wire.convert_http_messages import is_interim
from ....addons.wire.upstream_failure import NOT_SENT, find_stream_code
from ....config import Mode
from ....store import StoreError
from ....tape.exchange import (
    Ending,
    Fault,
    FaultKind,
    Gone,
    Phase,
    RedactedText,
    RequestClass,
    find_header,
)
from ....tape.faults.kinds import find_kind
from ....tape.playback.compare_delivery import is_terminal
from ....tape.policy.faults import Injection
from ..hooks.own_hooks import PlayheadGateHook, PlayheadLeftHook, PlayheadReleaseHook
from .base_stream import Commands, find_ending
from .http1_messages import INTERIM_LEFT_OUT, PlayheadClient
from .upload_stream import UploadingStream

logger = logging.getLogger(__name__)

_CONTINUE = 100
_EXPECTED = b"100-continue"


class RecordingStream(UploadingStream):
    """A stream that notes what passes."""

    _held: bytes = b""
    _held_pieces = 0
    _unsaid: ResponseEndOfMessage | ResponseProtocolError | None = None
    """How an answer ended that the client is told nothing of, while it waits for it."""

    def hear_leaving(self) -> None:
        """Take note, while a request is held or delayed, that its client leaves; what waits is told at once."""
        pending = self._pending if self._paused is not None and hasattr(self, "flow") else None
        waits = pending is not None and (
            pending.held.approval is not None or pending.held.delayed is not None
        )
        if pending is not None and waits and not pending.progress.forwarded:
            pending.client_left()

    def check_killed(self, emit_error_hook: bool) -> Commands:
        """End what is not to go on; a request that has come whole is decided on, though its client has left."""
        if self._goes_on_unawaited():
            return False
        self._take_queued()
        return (yield from super().check_killed(emit_error_hook))

    def _take_queued(self) -> None:
        """Take what came of a request before its client gave it up, while something was waited for: it counts, and goes no further."""
        pending = self._pending
        if pending is None or not pending.body.bidirectional or self.flow.error is not None:
            return
        if pending.finished or not self._client_has_left():
            return
        for event in self._paused_event_queue:
            if isinstance(event, RequestData):
                try:
                    pending.take_sent(event.data)
                except StoreError as error:
                    logger.error("%s", error)
                    pending.progress.give_up()
                    return
            elif isinstance(event, RequestEndOfMessage):
                pending.body.end()
            elif isinstance(event, RequestProtocolError):
                return

    def _goes_on_unawaited(self) -> bool:
        """Say whether a request that is not sent yet goes on without its client.

        Until it has been decided on. Then an effect that is recorded is sent: whoever leaves at once wants it done. What a
        gate holds or a fault delays is not.
        """
        pending = self._pending
        if pending is None or pending.progress.sent_on or pending.body.bidirectional:
            return False
        if self.flow.error is not None or not self._client_has_left():
            return False
        if self.client_state == self.state_done:
            recorded = pending.open_run.mode is Mode.RECORD
            held = pending.held.approval is not None or pending.held.delayed is not None
            goes_on = recorded and pending.request_class is RequestClass.EFFECT and not held
        else:
            queued = self._paused_event_queue
            goes_on = any(isinstance(event, RequestEndOfMessage) for event in queued)
        if goes_on:
            pending.client_left()
        return goes_on

    def make_server_connection(self) -> Commands:
        """Get a connection to the upstream; the head of the request is sent with the next command."""
        pending = self._pending
        if pending is None:
            return (yield from super().make_server_connection())
        held = pending.held.approval is not None
        connect = self._connect_held(pending) if held else super().make_server_connection()
        connected: bool = yield from connect
        pending.progress.send_on(connected=connected)
        return connected

    def _connect_held(self, pending: PendingExchange) -> Commands:
        if not (yield from super().make_server_connection()):
            return False
        yield PlayheadGateHook(pending)
        if (yield from self.check_killed(True)):
            return False
        if not (pending.held.left or self._client_has_left()):
            return True
        pending.client_left()
        error = ResponseProtocolError(self.stream_id, NOT_SENT, ErrorCode.KILL)
        yield from self.handle_protocol_error(error)
        return False

    def state_wait_for_response_headers(self, event: ResponseHeaders) -> Commands:
        """Wait for an answer; interim ones are passed on as they come."""
        if is_interim(event.response):
            return self._pass_interim(event.response)
        return super().state_wait_for_response_headers(event)

    def _pass_interim(self, response: http.Response) -> Commands:
        pending = self._pending
        if pending is None or pending.held.muted:
            return
        asked = find_header(pending.arrival.fields, b"expect") or b""
        if response.status_code == _CONTINUE and asked.lower() == _EXPECTED:
            return  # the client has had it from us
        pending.take_interim(response)
        if pending.progress.gone is None:
            yield from self._send_interim(pending, response)

    def _send_interim(self, pending: PendingExchange, response: http.Response) -> Commands:
        """Send an interim answer on, unless the client knows of none (RFC 9110 section 15.2)."""
        if self.flow.request.data.http_version == b"HTTP/1.0":
            text = INTERIM_LEFT_OUT.format(status=response.status_code)
            pending.progress.warn(text)
            return
        yield SendHttp(ResponseHeaders(self.stream_id, response), self.context.client)

    def start_response_stream(self) -> Commands:
        """Send the head on; what follows passes piece by piece."""
        assert self.flow.response
        pending = self._pending
        if pending is not None:
            pending.answer.need_for_head(pending.need)
        muted = pending is not None and pending.held.muted
        holds = pending is not None and pending.holds
        waits = pending is not None and (self._came_whole(pending) or self._is_bodiless(pending))
        if not muted and not holds and not waits:
            yield from self._send_head(pending)
        self.server_state = self.state_stream_response_body

    def _came_whole(self, pending: PendingExchange) -> bool:
        """Say whether all that an answer's head announces is there already, to be read with this event."""
        side = self._http.connections.get(self.context.server)
        return isinstance(side, PlayheadClient) and 0 < pending.answer.announced <= len(side.buf)

    def _is_bodiless(self, pending: PendingExchange) -> bool:
        """Say whether an answer is over with its head: to a client it is, although HTTP/2 may end its stream later."""
        assert self.flow.response
        bodiless = self.flow.response.status_code in (204, 304) or pending.answer.announced == 0
        return bodiless or self.flow.request.method.upper() == "HEAD"

    def _send_head(self, pending: PendingExchange | None, *, ends: bool = False) -> Commands:
        assert self.flow.response
        if pending is not None:
            pending.answer.send_head()
        yield SendHttp(
            ResponseHeaders(self.stream_id, self.flow.response, end_stream=ends),
            self.context.client,
        )

    def state_stream_response_body(self, event: events.Event) -> Commands:
        """Note each piece, and hold back the last."""
        pending = self._pending
        if pending is None or not isinstance(event, ResponseData):
            return super().state_stream_response_body(event)
        return self._pass_on(pending, event.data)

    def _pass_on(self, pending: PendingExchange, data: bytes) -> Commands:
        cut = find_cut(pending)
        left = cut.rule.after_bytes - pending.answer.size if cut is not None else len(data) + 1
        data = data[: max(left, 0)]
        kept = pending.answer.pieces
        try:
            pending.take(data)
        except StoreError as error:
            yield from self._cannot_keep(error)
            return
        if pending.held.muted:
            return
        if pending.holds:
            if pending.answer.download is None:
                return
            yield from self._release(pending, kept[:-1])  # this one passes below
        if cut is not None and len(data) >= left:
            yield from self._cut_off(pending, cut, self._held + data)
            return
        if pending.answer.whole:
            self._held += data  # HTTP/2 may send empty pieces after the last
            self._held_pieces += 1
            return
        if pending.answer.event_stream and pending.progress.recording and is_terminal(data):
            yield PlayheadReleaseHook(pending)
            if self.flow.error is not None:  # it could not be made durable
                yield from self.check_killed(True)
                return
        yield SendHttp(ResponseData(self.stream_id, data), self.context.client)

    # ---- answers that are held back until they have been checked ---------------------------------------

    def _release(self, pending: PendingExchange, kept: list[bytes]) -> Commands:
        """Send on what was held back of an answer that cannot be held any longer."""
        assert pending.contract_state is not None
        pending.contract_state.holds = False
        yield from self._send_head(pending)
        for piece in kept:
            yield SendHttp(ResponseData(self.stream_id, piece), self.context.client)

    def _settle_held(self, pending: PendingExchange) -> None:
        """Have the answer that was held back sent, or the refusal in its place."""
        assert pending.contract_state is not None
        withheld = pending.contract_state.withheld
        if withheld and pending.request is not None:
            self.flow.response = make_refusal(pending.request, withheld)
            self._held = self.flow.response.data.content or b""
        else:
            self._held = b"".join(pending.answer.pieces)

    def _cut_off(self, pending: PendingExchange, cut: Injection, data: bytes) -> Commands:
        """End an answer on purpose, behind `data`: write the outcome, then let the client see it."""
        said = RedactedText(cut.text)
        pending.progress.fail(Fault(FaultKind.CUT, Phase.BODY, said, pending.now_us(), cut.ending))
        self.flow.error = mflow.Error(cut.text)
        yield HttpErrorHook(self.flow)
        self.server_state = self.state_errored
        self.flow.live = False
        dropped = RequestProtocolError(self.stream_id, cut.text, ErrorCode.CANCEL)
        yield SendHttp(dropped, self.context.server)
        if self.client_state != self.state_errored and pending.progress.gone is None:
            if not pending.answer.head_sent:
                yield from self._send_head(pending)
            if data:
                yield SendHttp(ResponseData(self.stream_id, data), self.context.client)
            yield from self._end(cut.ending, 0, begun=True)
        yield DropStream(self.stream_id)

    # ---- answers that the client is not told of ------------------------------------------------------

    @property
    def _is_unheard(self) -> bool:
        pending = self._pending if hasattr(self, "flow") else None
        return (
            pending is not None
            and pending.held.muted
            and pending.progress.gone is None
            and not pending.progress.saved
        )

    def _keep_unsaid(self, event: ResponseEndOfMessage | ResponseProtocolError) -> Commands:
        """Keep how an answer ended until its client has given up."""
        self._unsaid = event
        yield from ()

    def _take_unsaid(self, pending: PendingExchange) -> Commands:
        event, self._unsaid = self._unsaid, None
        if isinstance(event, ResponseProtocolError):
            yield from self._upstream_failed(pending, event)
        elif event is not None:
            yield from self.server_state(event)

    def _finish_recorded(self, pending: PendingExchange) -> Commands:
        """End an answer that has passed: write the outcome, then release what was held."""
        assert self.flow.response
        last = pending.open_run.on_the_way.last_seq
        after = last if pending.answer.event_stream and last > pending.seq else 0
        ragged = _is_ragged(self.context.server)
        pending.answer.end(ragged=ragged, need=pending.need, after=after)
        yield HttpResponseHook(self.flow)
        self.server_state = self.state_done
        if pending.progress.recording and pending.progress.gone is None and self._client_has_left():
            sent = 0 if pending.holds else pending.answer.taken - self._held_pieces
            pending.progress.leave(Gone(pending.now_us(), sent, pending.answer.head_sent))
            yield PlayheadLeftHook(pending)
        if (yield from self.check_killed(False)):
            return
        if pending.holds:
            self._settle_held(pending)
        if not pending.answer.head_sent:
            ends = not self._held and not self.flow.response.trailers
            yield from self._send_head(pending, ends=ends)
        if self._held:
            yield SendHttp(ResponseData(self.stream_id, self._held), self.context.client)
            self._held = b""
        if self.flow.response.trailers:
            yield SendHttp(
                ResponseTrailers(self.stream_id, self.flow.response.trailers),
                self.context.client,
            )
        if pending.answer.ragged:
            self.context.client.abrupt = True  # type: ignore[attr-defined]  # read by our TLS layer
        pending.let_go()  # the flow may be there for long
        if self.client_state == self.state_done:
            yield from self.flow_done()

    def _client_has_left(self) -> bool:
        return any(
            isinstance(waiting, RequestProtocolError) for waiting in self._paused_event_queue
        )

    # ---- failures ------------------------------------------------------------------------------

    def handle_protocol_error(
        self, event: RequestProtocolError | ResponseProtocolError
    ) -> Commands:
        """Take note of who failed, and let the client see just that."""
        pending = self._pending if hasattr(self, "flow") else None
        if pending is None:
            return super().handle_protocol_error(event)
        if isinstance(event, RequestProtocolError):
            return self._client_left(pending, event)
        return self._upstream_failed(pending, event)

    def _client_left(self, pending: PendingExchange, event: RequestProtocolError) -> Commands:
        asked = self.client_state in (self.state_done, self.state_stream_request_body)
        waiting = self.server_state in (
            self.state_wait_for_response_headers,
            self.state_consume_response_body,
            self.state_stream_response_body,
        )
        if asked and waiting:
            pending.client_left()
            whole = self.client_state == self.state_done
            if whole and pending.keep_reading and pending.progress.recording:
                # Nobody is told; the response hook fires when the answer has come.
                return (yield from self._take_unsaid(pending))
        yield from super().handle_protocol_error(event)

    def _upstream_failed(self, pending: PendingExchange, event: ResponseProtocolError) -> Commands:
        if self._is_unheard and not self._client_has_left():
            return (yield from self._keep_unsaid(event))
        server = self.context.server
        if self._client_has_left():
            self._take_queued()
            pending.client_left()  # while the upstream was connected
        ending, code = _ending_of(server, event.message)
        fault = None
        if (
            pending.progress.gone is None or pending.keep_reading
        ):  # else it ended because of the client
            fault = pending.failed(event.message, phase=_phase_of(server), ending=ending, code=code)
        begun = pending.answer.head_sent or bool(pending.answer.interim)
        if self.server_state not in (self.state_done, self.state_errored):
            self.flow.error = mflow.Error(event.message)
            yield HttpErrorHook(self.flow)
        self.server_state = self.state_errored
        self.flow.live = False
        if (
            self.client_state != self.state_errored
            and fault is not None
            and pending.progress.gone is None
        ):
            if pending.holds:  # its head has come
                yield from self._release(pending, pending.answer.pieces)
                begun = True
            yield from self._end(fault.ending, fault.code, begun=begun)
        yield DropStream(self.stream_id)


def find_cut(pending: PendingExchange) -> Injection | None:
    """Find the cut that is to be made in what passes."""
    injection = pending.held.injection
    return injection if injection is not None and find_kind(injection).cuts else None


def _ending_of(server: Server, text: str) -> tuple[Ending, int]:
    """Read how an upstream's connection or stream ended from the transport; give it with its code."""
    name = find_stream_code(text)
    if name is None:
        return find_ending(server), 0
    known = name in h2.errors.ErrorCodes.__members__
    return Ending.STREAM, h2.errors.ErrorCodes[name] if known else int(name)


def _phase_of(server: Server) -> Phase:
    if not server.timestamp_tcp_setup:
        return Phase.CONNECT
    return Phase.TLS if server.tls and not server.tls_established else Phase.HEAD


def _is_ragged(server: Server) -> bool:
    """Say whether an upstream with TLS ended its connection without saying so."""
    return bool(server.tls) and getattr(server, "ending", None) is Ending.FIN
