"""Play a WebSocket from the tape; no upstream is connected.

What comes next is said by `addons.websocket.WebSocketPlayer`; a message of the client that is not the one on the tape
ends the WebSocket with 1008.
"""

import logging
import time

from mitmproxy.proxy import commands, context, events, layer

from ....addons.run.pending_exchange import PendingExchange
from ....addons.websockets.player import DIVERGED, DIVERGED_REASON, UNREADABLE, WebSocketPlayer
from ....addons.wire.websocket_handshake import find_deflate
from ....store import StoreError
from ....tape.exchange import MessageKind, WebSocketMessage
from ....tape.playback.websocket import ABRUPT, Send, Turn, Wait
from ..hooks.own_hooks import PlayheadDrainHook, PlayheadSettleHook, PlayheadWebsocketEndedHook
from .frames import Closing, FrameError, FrameReader, FrameWriter, Ping, Whole, shorten
from .peers import BROKEN, QUIET_S, Commands, Side, end_abruptly

logger = logging.getLogger(__name__)

_LISTEN_S = 0.02
"""What a client has sent by the recorded end is read before that is played: nothing is read after it, or it crossed it."""
_DRAIN_BYTES = 256 * 1024
"""Played between two waits for the client to take what it was sent."""


class Player(layer.Layer):
    """A WebSocket that comes from the tape; there is no upstream."""

    def __init__(self, context: context.Context, pending: PendingExchange) -> None:
        """Play the WebSocket of a pending exchange to its client."""
        super().__init__(context)
        assert isinstance(pending.websocket, WebSocketPlayer)
        self._pending = pending
        self._player = pending.websocket
        deflate = find_deflate(self._player.headers)
        self._client = Side(
            context.client,
            FrameReader(from_client=True, deflate=deflate),
            FrameWriter(to_server=False, deflate=deflate),
        )
        self._timer: commands.RequestWakeup | None = None
        self._due_s = 0.0
        """When the timer ends."""
        self._undrained = 0
        self._ending = False
        self._over_s: float | None = None
        """When the recorded end is played, once it is due."""
        self._hears_out = False
        """Whether messages of the client still count: the server had closed, and heard the client out."""
        self._reported = False
        """Whether the addons know of its end."""

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.Start):
            self._player.begin()
            yield from self._play()
        elif isinstance(event, events.DataReceived):
            yield from self._take(event.data)
        elif isinstance(event, events.ConnectionClosed):
            yield from self._left()
        elif isinstance(event, events.Wakeup) and event.command is self._timer:
            self._timer = None
            if not self._ending:
                yield from self._play()
            elif self._client.linger.is_over(answers=not self._client.broken):
                yield from self._hang_up()
            else:
                yield from self._wake(QUIET_S)

    # ---- what the server says ------------------------------------------------------------------

    def _play(self) -> Commands:
        while not self._ending:
            try:
                turn = self._player.step()
            except StoreError as error:
                yield from self._cannot_go_on(error)
                return
            match turn:
                case Send(message):
                    yield from self._say(message)
                case Wait(us):
                    yield from self._wake(us / 1e6)
                    return
                case Turn.LISTEN:
                    return
                case Turn.OVER if self._listens():
                    yield from self._wake(_LISTEN_S)
                    return
                case Turn.OVER:
                    yield from self._end()

    def _listens(self) -> bool:
        """Say whether to hear once more what the client has sent, before an end that nobody hears it after."""
        if self._player.close.answer is not None:
            return False
        if self._over_s is None:
            self._over_s = time.monotonic() + _LISTEN_S
        return time.monotonic() < self._over_s

    def _say(self, message: WebSocketMessage) -> Commands:
        data = self._client.writer.message(message.kind, message.data, message.frames)
        yield commands.SendData(self._client.connection, data)
        self._undrained += len(data)
        if self._undrained > _DRAIN_BYTES:
            self._undrained = 0
            yield PlayheadDrainHook(self.context.client)

    def _end(self) -> Commands:
        """End it as it ended."""
        close = self._player.close
        if close.code == ABRUPT:
            self._ending = True
            yield from self._report_end()
            yield from end_abruptly(self.context.client, self._player.ending)
            yield from self._hang_up()
        else:
            yield from self._send_close(close.code, close.reason)
            if close.answer is None:  # the server did not wait
                yield from self._report_end()
                yield PlayheadSettleHook(self.context.client)
                yield from self._hang_up()
            else:
                self._hears_out = True

    # ---- what the client says ------------------------------------------------------------------

    def _take(self, data: bytes) -> Commands:
        client = self._client
        client.linger.hear()
        if client.broken:
            return
        try:
            for frame in client.reader.feed(data):
                if isinstance(frame, Closing):
                    yield from self._answer(frame)
                elif self._ending:
                    # It crossed our closing frame: on the tape such messages are behind the server's.
                    if self._hears_out and isinstance(frame, Whole):
                        self._hear_out(frame)
                elif isinstance(frame, Ping):
                    yield commands.SendData(client.connection, client.writer.pong(frame.payload))
                elif isinstance(frame, Whole):
                    yield from self._hear(frame)
        except FrameError as error:
            client.broken = True
            if not self._ending:
                reason = shorten(f"the client broke the protocol: {error}").decode()
                self._player.broke(reason)
                yield from self._close(error.code, reason)

    def _hear(self, message: Whole) -> Commands:
        try:
            heard = self._player.hear(message.kind, message.data)
        except StoreError as error:
            yield from self._cannot_go_on(error)
            return
        if heard:
            yield from self._play()
        else:
            told = self._player.refuse()
            if told is not None:
                frame = self._client.writer.message(MessageKind.TEXT, told, (len(told),))
                yield commands.SendData(self._client.connection, frame)
            yield from self._close(DIVERGED, DIVERGED_REASON)

    def _hear_out(self, message: Whole) -> None:
        try:
            self._hears_out = self._player.hear(message.kind, message.data)
        except StoreError as error:
            logger.error("a WebSocket is ended: %s", error)
            self._player.broke(f"{UNREADABLE}: {error}")
            self._hears_out = False

    def _answer(self, frame: Closing) -> Commands:
        """Answer the client's closing frame, as the server did where it had been the client's turn to close."""
        if not self._client.sent_close:
            self._client.sent_close = True
            self._ending = True
            try:
                for message in self._player.crossed():
                    yield from self._say(message)
            except StoreError as error:
                logger.error("a WebSocket is ended: %s", error)
                self._player.broke(f"{UNREADABLE}: {error}")
            self._player.closed(frame.code, frame.reason)
            code, reason = self._player.answer_to(frame.code, frame.reason)
            if code != ABRUPT:
                data = self._client.writer.close(code, reason)
                yield commands.SendData(self._client.connection, data)
        yield from self._hang_up()

    def _left(self) -> Commands:
        if not self._ending:
            self._player.leave()
            self._player.closed(ABRUPT, "")
        self._client.gone = True
        self._ending = True
        yield from self._report_end()
        yield commands.CloseConnection(self._client.connection)

    # ---- ending it -----------------------------------------------------------------------------

    def _close(self, code: int, reason: str) -> Commands:
        yield from self._send_close(code, reason)
        yield from self._report_end()

    def _send_close(self, code: int, reason: str) -> Commands:
        self._ending = True
        self._client.sent_close = True
        data = self._client.writer.close(code, reason)
        yield commands.SendData(self._client.connection, data)
        self._timer = None
        yield from self._wake(QUIET_S)

    def _cannot_go_on(self, error: StoreError) -> Commands:
        logger.error("a WebSocket is ended: %s", error)
        self._player.broke(f"{UNREADABLE}: {error}")
        yield from self._close(BROKEN, f"playhead: {UNREADABLE}")

    def _hang_up(self) -> Commands:
        yield from self._report_end()
        if not self._client.gone:
            self._client.gone = True
            yield commands.CloseConnection(self._client.connection)

    def _report_end(self) -> Commands:
        if not self._reported:
            self._reported = True
            yield PlayheadWebsocketEndedHook(self._pending)

    def _wake(self, wait_s: float) -> Commands:
        due_s = time.monotonic() + wait_s
        if self._timer is None or due_s < self._due_s:  # else there will be another look anyway
            self._due_s = due_s
            self._timer = commands.RequestWakeup(wait_s)
            yield self._timer
