"""Record a WebSocket: frames pass unchanged, and each message is recorded.

1. A message is noted before its last frame is passed on; pings of the server are messages, what else is
   between the two ends of a connection is not kept. Frames are passed whole, so that a closing frame of ours
   can follow anywhere.
2. A server's closing frame is passed on after what has passed is durable, the second of two after the
   outcome is.
3. Who breaks the protocol, or sends a message that is too long, ends it for both, with the code that says so.
4. A connection that ends without a closing frame ends the other in the same way.
"""

import logging

from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import commands, context, events, layer

from ....addons.run.pending_exchange import PendingExchange, spools_of
from ....addons.websockets.recorder import WebSocketRecorder
from ....addons.wire.websocket_handshake import find_deflate
from ....store import StoreError
from ....tape.exchange import Ending, Fault, FaultKind, MessageKind, Phase
from ....tape.playback.websocket import ABRUPT
from ..hooks.own_hooks import PlayheadReleaseHook, PlayheadWebsocketEndedHook
from ..http.base_stream import find_ending
from .frames import Closing, FrameError, FrameReader, FrameWriter, Part, Ping, Pong, Whole, shorten
from .peers import BROKEN, QUIET_S, Commands, Side, end_abruptly

logger = logging.getLogger(__name__)


class Relay(layer.Layer):
    """A WebSocket that is recorded."""

    def __init__(
        self, context: context.Context, flow: http.HTTPFlow, pending: PendingExchange
    ) -> None:
        """Pass and keep what the two sides say."""
        super().__init__(context)
        assert isinstance(pending.websocket, WebSocketRecorder)
        assert flow.response is not None
        deflate = find_deflate(flow.response.headers.fields)
        self._flow = flow
        self._pending = pending
        self._recorder = pending.websocket
        self._client = Side(
            context.client,
            FrameReader(from_client=True, deflate=deflate),
            FrameWriter(to_server=False),
        )
        self._server = Side(
            context.server,
            FrameReader(from_client=False, deflate=deflate),
            FrameWriter(to_server=True),
        )
        self._ending = False
        """Whether it was ended by us."""
        spools_of(context.client).add(self._recorder)

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.DataReceived):
            side = self._side(event.connection)
            if self._ending:
                yield from self._hear_out(side, event.data)
            elif not self._recorder.over:  # else its run has ended, and so do its connections
                yield from self._take(side, event.data)
        elif isinstance(event, events.ConnectionClosed):
            yield from self._left(self._side(event.connection))
        elif isinstance(event, events.Wakeup):
            yield from self._look()

    def _side(self, connection: Connection) -> Side:
        return self._client if connection is self._client.connection else self._server

    def _other(self, side: Side) -> Side:
        return self._server if side is self._client else self._client

    # ---- what passes ---------------------------------------------------------------------------

    def _take(self, side: Side, data: bytes) -> Commands:
        other = self._other(side)
        passing: list[bytes] = []
        try:
            for frame in side.reader.feed(data):
                self._note(side, frame)
                if isinstance(frame, Closing):
                    yield from self._send(other, passing)
                    yield from self._take_close(side, frame)
                    return
                passing.append(frame.raw)
        except FrameError as error:
            yield from self._send(other, passing)
            yield from self._break_off(side, error)
        except StoreError as error:
            logger.error("a WebSocket is ended: %s", error)
            self._pending.finish()
            yield from self._close_both(BROKEN, "playhead: this cannot be recorded")
        else:
            yield from self._send(other, passing)

    def _note(self, side: Side, frame: Part | Whole | Ping | Pong | Closing) -> None:
        from_client = side is self._client
        if isinstance(frame, Whole):
            self._recorder.note(frame.kind, frame.data, frame.frames, from_client=from_client)
        elif isinstance(frame, Ping) and not from_client:
            self._recorder.note(MessageKind.PING, frame.payload, (), from_client=False)

    def _send(self, side: Side, pieces: list[bytes]) -> Commands:
        if pieces and not side.gone:
            yield commands.SendData(side.connection, b"".join(pieces))

    # ---- how it ends ---------------------------------------------------------------------------

    def _take_close(self, side: Side, frame: Closing) -> Commands:
        other = self._other(side)
        first = self._recorder.close is None
        self._recorder.end(frame.code, frame.reason, by_client=side is self._client)
        if not first:
            yield PlayheadWebsocketEndedHook(self._pending)
        elif side is self._server:
            yield PlayheadReleaseHook(self._pending)
        if self._flow.error is not None:  # it could not be made durable
            yield from self._close_both(BROKEN, "playhead: this cannot be recorded")
            return
        other.sent_close = True
        yield from self._send(other, [frame.raw])

    def _left(self, side: Side) -> Commands:
        """End the other connection as a peer has ended its own."""
        other = self._other(side)
        side.gone = True
        abrupt = not side.reader.closed and not self._ending
        if not self._ending and not self._recorder.over:
            by_client = side is self._client
            ending = find_ending(side.connection)
            if self._recorder.close is None and not by_client:
                kind = FaultKind.RESET if ending is Ending.RST else FaultKind.CUT
                self._fault(kind, "the server's connection ended without a closing frame", ending)
            if not side.reader.closed:
                self._recorder.end(ABRUPT, "", by_client=by_client)
            yield PlayheadWebsocketEndedHook(self._pending)
        if abrupt and side is self._server and not other.gone:
            yield from end_abruptly(self.context.client, find_ending(side.connection))
        if not self._ending:
            yield from self._end(other)
        yield commands.CloseConnection(side.connection)

    def _break_off(self, side: Side, error: FrameError) -> Commands:
        """End it for both, because one of them broke the protocol."""
        who = "client" if side is self._client else "server"
        reason = shorten(f"the {who} broke the protocol: {error}").decode()
        self._fault(FaultKind.MALFORMED, reason, Ending.CLOSE)
        self._recorder.end(error.code, reason, by_client=side is self._client)
        yield PlayheadWebsocketEndedHook(self._pending)
        side.broken = True
        yield from self._close_both(error.code, reason)

    def _fault(self, kind: FaultKind, text: str, ending: Ending) -> None:
        said = self._pending.open_run.redactor.redact_text(text)
        self._pending.progress.fail(Fault(kind, Phase.BODY, said, self._pending.now_us(), ending))

    def _close_both(self, code: int, reason: str) -> Commands:
        self._ending = True
        for side in (self._client, self._server):
            if not side.sent_close and not side.gone:
                side.sent_close = True
                yield from self._send(side, [side.writer.close(code, reason)])
            if side.done:
                yield from self._end(side)
        yield commands.RequestWakeup(QUIET_S)

    def _hear_out(self, side: Side, data: bytes) -> Commands:
        """Wait for a peer's closing frame; what else it says is not passed on."""
        side.linger.hear()
        if not side.broken and _has_closed(side.reader, data):
            yield from self._end(side)

    def _look(self) -> Commands:
        """Wait no longer for who has had its time."""
        for side in (self._client, self._server):
            if side.linger.is_over(answers=not side.broken):
                yield from self._end(side)
        if not (self._client.gone and self._server.gone):
            yield commands.RequestWakeup(QUIET_S)

    def _end(self, side: Side) -> Commands:
        if not side.gone:
            side.gone = True
            yield commands.CloseConnection(side.connection)


def _has_closed(reader: FrameReader, data: bytes) -> bool:
    """Say whether a peer that was sent a closing frame has nothing more to say."""
    try:
        return any(isinstance(frame, Closing) for frame in reader.feed(data))
    except FrameError:
        return True
