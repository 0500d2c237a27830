"""WebSockets: passed on while each message is kept, and played from the tape.

Rules:

1. While recording, frames pass as they came: masks, compression, fragments, pings and pongs. A message is
   noted before its last frame is passed on; pings of the server are messages, what else is between the two
   ends of a connection is not kept. Frames are passed whole, so that a closing frame can always follow.
2. A server's closing frame is passed on after what has passed is durable, the second of two after the
   outcome is.
3. Who breaks the protocol, or sends a message that is too long, ends it for both, with the code that says so.
4. A connection that ends without a closing frame ends the other in the same way.
5. In playback a message of the client that is not the one on the tape ends the conversation with 1008.

aiohttp asks a proxy for `ws://` URLs as they are; to mitmproxy that is no scheme of HTTP.

Replaces by name: `WebsocketLayer` in `mitmproxy.proxy.layers.websocket`, where `HttpStream.flow_done` looks it
up; `validate_request` in `mitmproxy.proxy.layers.http`. Checked against 12.2.3. Test: tests/proxy/engine/test_websocket.py, tests/journeys/test_websocket.py.
"""

import logging
from dataclasses import dataclass
from typing import Any

from mitmproxy import http
from mitmproxy.connection import Client, Connection
from mitmproxy.proxy import commands, context, events, layer
from mitmproxy.proxy.layers import http as http_layer
from mitmproxy.proxy.layers import websocket as websocket_layer

from ...addons.flight import Flight, find_flight
from ...addons.handshake import find_deflate
from ...addons.websocket import DIVERGED, DIVERGED_REASON, Kept, Played
from ...store import StoreError
from ...tape.conversation import ABRUPT, Send, Turn, Wait
from ...tape.model import Ending, Fault, FaultKind, Message, MessageKind, Phase
from .frames import Closing, FrameError, FrameReader, FrameWriter, Part, Ping, Pong, Whole, shorten
from .streams import PlayheadDrainHook, PlayheadReleaseHook, PlayheadResetHook

logger = logging.getLogger(__name__)

Commands = Any
"""A generator of mitmproxy commands."""

_DRAIN_BYTES = 256 * 1024
"""Played between two waits for the client to take what it was sent."""
_LINGER_S = 2.0
"""A peer that was sent a closing frame has so long to answer or to leave."""
_QUIET_S = 0.1
"""Who broke the protocol is heard out until it has been quiet for so long: what it sends after its connection
is closed would have it reset, and the closing frame unread."""
_BROKEN = 1011
"""Code for a conversation that cannot go on because of us."""


@dataclass
class PlayheadTalkedHook(commands.StartHook):
    """A conversation is over: its outcome is to be made durable, or compared with the tape."""

    data: Flight


@dataclass
class PlayheadSettleHook(commands.StartHook):
    """What a client was sent is to reach it before its connection is reset: a reset overtakes data."""

    data: Client


def find_ending(connection: Connection) -> Ending:
    """Say how a peer ended its connection, as the transport saw it."""
    seen: Ending | None = getattr(connection, "ending", None)  # put there by our handler
    if seen is not None:
        return seen
    # The transport still stands, so it was TLS that was closed.
    return Ending.CLOSE if connection.tls else Ending.FIN


_validate = http_layer.validate_request


class Linger:
    """How long a peer that was sent a closing frame is heard out."""

    def __init__(self) -> None:
        """Begin to wait."""
        self._waited_s = 0.0
        self._heard = False

    def hear(self) -> None:
        """Take note that it said something."""
        self._heard = True

    def is_over(self, *, answers: bool) -> bool:
        """Say, after each `_QUIET_S`, whether to wait no longer.

        answers: whether its answer can be read, and is waited for.
        """
        self._waited_s += _QUIET_S
        quiet, self._heard = not self._heard, False
        return self._waited_s >= _LINGER_S or (quiet and not answers)


class Side:
    """One of the two peers."""

    def __init__(self, connection: Connection, reader: FrameReader, writer: FrameWriter) -> None:
        """Speak to a peer after the handshake."""
        self.connection = connection
        self.reader = reader
        self.writer = writer
        self.sent_close = False
        """Whether it has been sent a closing frame."""
        self.gone = False
        """Whether its connection has ended, or was ended."""
        self.broken = False
        """Whether it broke the protocol: what it says cannot be read."""
        self.linger = Linger()

    @property
    def done(self) -> bool:
        """Whether both have said that they close."""
        return self.sent_close and self.reader.closed


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


class Relay(layer.Layer):
    """A WebSocket that is recorded."""

    def __init__(self, context: context.Context, flow: http.HTTPFlow, flight: Flight) -> None:
        """Pass and keep what the two sides say."""
        super().__init__(context)
        assert isinstance(flight.conversation, Kept)
        assert flow.response is not None
        deflate = find_deflate(flow.response.headers.fields)
        self._flow = flow
        self._flight = flight
        self._kept = flight.conversation
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
        _feed(context.client, self._kept)

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.DataReceived):
            side = self._side(event.connection)
            if self._ending:
                yield from self._hear_out(side, event.data)
            elif not self._kept.over:  # else its run has ended, and so do its connections
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
            self._flight.finish()
            yield from self._close_both(_BROKEN, "playhead: this cannot be recorded")
        else:
            yield from self._send(other, passing)

    def _note(self, side: Side, frame: Part | Whole | Ping | Pong | Closing) -> None:
        from_client = side is self._client
        if isinstance(frame, Whole):
            self._kept.note(frame.kind, frame.data, frame.frames, from_client=from_client)
        elif isinstance(frame, Ping) and not from_client:
            self._kept.note(MessageKind.PING, frame.payload, (), from_client=False)

    def _send(self, side: Side, pieces: list[bytes]) -> Commands:
        if pieces and not side.gone:
            yield commands.SendData(side.connection, b"".join(pieces))

    # ---- how it ends ---------------------------------------------------------------------------

    def _take_close(self, side: Side, frame: Closing) -> Commands:
        other = self._other(side)
        first = self._kept.close is None
        self._kept.end(frame.code, frame.reason, by_client=side is self._client)
        if not first:
            yield PlayheadTalkedHook(self._flight)
        elif side is self._server:
            yield PlayheadReleaseHook(self._flight)
        if self._flow.error is not None:  # it could not be made durable
            yield from self._close_both(_BROKEN, "playhead: this cannot be recorded")
            return
        other.sent_close = True
        yield from self._send(other, [frame.raw])

    def _left(self, side: Side) -> Commands:
        """End the other connection as a peer has ended its own."""
        other = self._other(side)
        side.gone = True
        abrupt = not side.reader.closed and not self._ending
        if not self._ending and not self._kept.over:
            by_client = side is self._client
            ending = find_ending(side.connection)
            if self._kept.close is None and not by_client:
                kind = FaultKind.RESET if ending is Ending.RST else FaultKind.CUT
                self._fault(kind, "the server's connection ended without a closing frame", ending)
            if not side.reader.closed:
                self._kept.end(ABRUPT, "", by_client=by_client)
            yield PlayheadTalkedHook(self._flight)
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
        self._kept.end(error.code, reason, by_client=side is self._client)
        yield PlayheadTalkedHook(self._flight)
        side.broken = True
        yield from self._close_both(error.code, reason)

    def _fault(self, kind: FaultKind, text: str, ending: Ending) -> None:
        self._flight.fault = Fault(kind, Phase.BODY, text, self._flight.now_us(), ending)

    def _close_both(self, code: int, reason: str) -> Commands:
        self._ending = True
        for side in (self._client, self._server):
            if not side.sent_close and not side.gone:
                side.sent_close = True
                yield from self._send(side, [side.writer.close(code, reason)])
            if side.done:
                yield from self._end(side)
        yield commands.RequestWakeup(_QUIET_S)

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
            yield commands.RequestWakeup(_QUIET_S)

    def _end(self, side: Side) -> Commands:
        if not side.gone:
            side.gone = True
            yield commands.CloseConnection(side.connection)


class Player(layer.Layer):
    """A WebSocket that comes from the tape; there is no upstream."""

    def __init__(self, context: context.Context, flight: Flight) -> None:
        """Play the conversation of a flight to its client."""
        super().__init__(context)
        assert isinstance(flight.conversation, Played)
        self._flight = flight
        self._played = flight.conversation
        deflate = find_deflate(self._played.headers)
        self._client = Side(
            context.client,
            FrameReader(from_client=True, deflate=deflate),
            FrameWriter(to_server=False, deflate=deflate),
        )
        self._timer: commands.RequestWakeup | None = None
        self._undrained = 0
        self._ending = False

    def _handle_event(self, event: events.Event) -> Commands:
        if isinstance(event, events.Start):
            self._played.begin()
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
                yield from self._wake(_QUIET_S)

    # ---- what the server says ------------------------------------------------------------------

    def _play(self) -> Commands:
        while not self._ending:
            try:
                turn = self._played.step()
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
                case Turn.OVER:
                    yield from self._end()

    def _say(self, message: Message) -> Commands:
        data = self._client.writer.message(message.kind, message.data, message.frames)
        yield commands.SendData(self._client.connection, data)
        self._undrained += len(data)
        if self._undrained > _DRAIN_BYTES:
            self._undrained = 0
            yield PlayheadDrainHook(self.context.client)

    def _end(self) -> Commands:
        """End it as it ended."""
        close = self._played.close
        if close.code == ABRUPT:
            self._ending = True
            yield PlayheadTalkedHook(self._flight)
            yield from end_abruptly(self.context.client, self._played.ending)
            yield from self._hang_up()
        else:
            yield from self._close(close.code, close.reason)
            if close.answer is None:  # the server did not wait
                yield PlayheadSettleHook(self.context.client)
                yield from self._hang_up()

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
                    continue  # it crossed our closing frame
                elif isinstance(frame, Ping):
                    yield commands.SendData(client.connection, client.writer.pong(frame.payload))
                elif isinstance(frame, Whole):
                    yield from self._hear(frame)
        except FrameError as error:
            client.broken = True
            if not self._ending:
                reason = shorten(f"the client broke the protocol: {error}").decode()
                self._played.broke(reason)
                yield from self._close(error.code, reason)

    def _hear(self, message: Whole) -> Commands:
        try:
            heard = self._played.hear(message.kind, message.data)
        except StoreError as error:
            yield from self._cannot_go_on(error)
            return
        if heard:
            yield from self._play()
        else:
            yield from self._close(DIVERGED, DIVERGED_REASON)

    def _answer(self, frame: Closing) -> Commands:
        """Answer the client's closing frame, as the server did where it had been the client's turn to close."""
        if not self._client.sent_close:
            self._client.sent_close = True
            self._ending = True
            for message in self._played.crossed():
                yield from self._say(message)
            code, reason = self._played.answer_to(frame.code, frame.reason)
            if code != ABRUPT:
                data = self._client.writer.close(code, reason)
                yield commands.SendData(self._client.connection, data)
            yield PlayheadTalkedHook(self._flight)
        yield from self._hang_up()

    def _left(self) -> Commands:
        self._client.gone = True
        self._ending = True
        yield PlayheadTalkedHook(self._flight)
        yield commands.CloseConnection(self._client.connection)

    # ---- ending it -----------------------------------------------------------------------------

    def _close(self, code: int, reason: str) -> Commands:
        self._ending = True
        self._client.sent_close = True
        data = self._client.writer.close(code, reason)
        yield commands.SendData(self._client.connection, data)
        yield from self._wake(_QUIET_S)
        yield PlayheadTalkedHook(self._flight)

    def _cannot_go_on(self, error: StoreError) -> Commands:
        logger.error("a WebSocket is ended: %s", error)
        self._played.broke(f"the tape cannot be read on: {error}")
        yield from self._close(_BROKEN, "playhead: the tape cannot be read on")

    def _hang_up(self) -> Commands:
        if not self._client.gone:
            self._client.gone = True
            yield commands.CloseConnection(self._client.connection)

    def _wake(self, wait_s: float) -> Commands:
        self._timer = commands.RequestWakeup(wait_s)
        yield self._timer


def end_abruptly(client: Client, ending: Ending) -> Commands:
    """End a client's connection as the upstream's ended; closing it is left to the caller."""
    if ending is Ending.RST:
        yield PlayheadSettleHook(client)
        yield PlayheadResetHook(client)
    elif ending is Ending.FIN:
        client.abrupt = True  # type: ignore[attr-defined]  # read by our TLS layer


def _has_closed(reader: FrameReader, data: bytes) -> bool:
    """Say whether a peer that was sent a closing frame has nothing more to say."""
    try:
        return any(isinstance(frame, Closing) for frame in reader.feed(data))
    except FrameError:
        return True


def _feed(client: Client, kept: Kept) -> None:
    """Have the handler of a client's connection wait where too much is not written yet."""
    found: set[Any] | None = getattr(client, "spools", None)
    if found is None:
        found = client.spools = set()  # type: ignore[attr-defined]  # read by our handler
    found.add(kept)


def make_layer(context: context.Context, flow: http.HTTPFlow) -> layer.Layer:
    """Give the layer for what follows a handshake."""
    flight = find_flight(flow)
    talk = flight.conversation if flight is not None else None
    if flight is not None and isinstance(talk, Kept):
        return Relay(context, flow, flight)
    if flight is not None and isinstance(talk, Played):
        return Player(context, flight)
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
