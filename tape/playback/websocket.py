"""Play a recorded WebSocket: which message comes next, from which side and when.

Rules:

1. A message of the server is played after the client messages that it followed have come, at its recorded
   gap after what went before it, scaled by the pace; 0 plays it at once.
2. A message of the client must be the next one of the client on the tape: of the same kind, and text that is
   JSON with the same canonical form, anything else with the same bytes, and each replaced value that counts is
   the recorded one. Frames do not count. It may come
   before messages of the server that are still to be played: the two cross on the wire.
3. What crossed the closing frame of the other side stands behind it: of the client it may come or not, of
   the server it is played once the client has closed.
4. As with streams, a message of the server may be what a request outside the WebSocket has caused: it
   waits for those that had arrived since the message before it, at most a second longer than it took. In a
   model's WebSocket it waits for nothing but its messages.
5. Messages are read one by one, since there may be many: never more than one is held.

Times are microseconds of any one clock. Pure: messages in, turns out.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import NamedTuple

from ..canonical.canonical_request import MAX_PARSED, NO_MASKS, Masks, Rules, message_form
from ..canonical.client_profiles import agent_fields
from ..diff.decisive_ignored_places import may_decide
from ..diff.divergence_types import ABSENT, Difference, Divergence, DivergenceKind, one_line
from ..diff.request_differences import differences
from ..exchange import (
    Close,
    Exchange,
    Headers,
    Message,
    MessageKind,
    Request,
    RequestClass,
    Seq,
    WebSocketMessage,
)
from ..matching.compare_redacted_values import Changed
from ..redaction.compare_placeholders import mark_message
from .script import CAUSE_MARGIN_US

Read = Callable[[int], Iterator[Message]]
"""Gives the messages after a number, in order; -1 gives all."""

FindChanged = Callable[[Message, Message], Sequence[Changed]]
"""Gives the places of a recorded message in which one of now has another replaced value."""


NoteMasked = Callable[[Message, Message], None]
"""Told of a recorded message and the one that came for it, where they are the same but for what does not count."""


def _find_none(recorded: Message, heard: Message) -> tuple[Changed, ...]:
    return ()


ABRUPT = 1006
"""Code of a WebSocket that ended without a closing frame (RFC 6455 section 7.1.5)."""

_LOOK_US = 5000
"""Time between two looks for the request that caused a message."""
_EARLY_US = 500
"""A message due within this is played now: a timer would be late by more."""


_LEFT_MARGIN_US = 100_000
"""A client that leaves so much before a message is due may have left because of it while it was recorded."""


class Turn(Enum):
    """Who is next, where no message of the server is."""

    LISTEN = auto()
    """The client."""
    OVER = auto()
    """Nobody: the recorded end is to be played."""


class Send(NamedTuple):
    """Send a message now."""

    message: WebSocketMessage


class Wait(NamedTuple):
    """Look again after so long."""

    us: int


class Stray(NamedTuple):
    """A message of the client that is not the one on the tape."""

    number: int
    """Place among its messages, from 0; where the tape has none left, one past its last."""
    recorded: Message | None
    kind: MessageKind
    data: bytes
    """As it is compared."""
    changed: tuple[Changed, ...] = ()
    """Replaced values that are not the recorded ones, where nothing else differs."""


class MessageCursor:
    """How far the playback of one WebSocket has come."""

    def __init__(
        self,
        read: Read,
        exchange: Exchange,
        pace: float,
        masks: Masks,
        arrived: Callable[[range], bool],
        find_changed: FindChanged = _find_none,
        note_masked: NoteMasked = lambda _recorded, _heard: None,
    ) -> None:
        """Begin with the handshake's answer.

        masks: what does not count in a message.
        arrived: says whether the tape's exchanges with these seqs have been asked for again.
        """
        assert exchange.response is not None
        assert exchange.websocket is not None
        self._read = read
        self._count = exchange.websocket.messages
        self._close: Close | None = exchange.websocket.close
        self._end_us = self._close.at_us if self._close is not None else exchange.end_us
        self._after: int = exchange.seq
        """Highest seq that had arrived when what went before the next message was."""
        self._pushed = exchange.request_class is not RequestClass.INFERENCE
        self._pace = pace
        self._masks = masks
        self._arrived = arrived
        self._find_changed = find_changed
        self._note_masked = note_masked
        self._messages = read(-1)
        self._number = 0
        self._next = next(self._messages, None)
        self._recorded_us = exchange.response.head_us
        """When, on the tape, what went before the next message was."""
        self._clock_us = 0
        """The same in this playback."""
        self._held = False
        # Messages of the client that came while those of the server before them are still to be played.
        self._ahead: Iterator[tuple[int, Message]] | None = None
        self._early: deque[int] = deque()
        """When they came."""

    @property
    def passed(self) -> int:
        """How many messages of the tape have been played or heard."""
        return self._number

    def begin(self, now_us: int) -> None:
        """Start the clock: the handshake is answered."""
        self._clock_us = now_us

    def step(self, now_us: int) -> Send | Wait | Turn:
        """Say what comes next; a message to be sent is taken off the tape."""
        while (message := self._next) is not None and not self._is_late(message):
            if message.from_client:
                if not self._early:
                    return Turn.LISTEN
                came_us = self._early.popleft()
                if not self._early:
                    self._ahead = None
                self._pass(message, max(self._clock_us, came_us))
                continue
            wait_us = self._wait(message, now_us)
            if wait_us > _EARLY_US:
                return Wait(wait_us)
            due_us = self._due(message.at_us)
            self._pass(message, now_us if self._held else due_us)
            return Send(message)
        if self._close is not None and self._close.by_client:
            return Turn.LISTEN
        # Without a close the recorder stopped over it, and the client saw its connection end.
        wait_us = self._due(self._end_us) - now_us
        return Wait(wait_us) if wait_us > _EARLY_US else Turn.OVER

    def hear(self, now_us: int, heard: Message) -> Stray | None:
        """Take a message of the client; give it back where it is not the one on the tape.

        heard: redacted.
        """
        message = self._next
        if message is not None and message.from_client and not self._early:
            stray = self._compare(self._number, message, heard)
            if stray is None:
                self._pass(message, max(self._clock_us, now_us))
            return stray
        if self._ahead is None:
            self._ahead = self._client_messages()
        number, ahead = next(self._ahead, (self._count, None))
        stray = self._compare(number, ahead, heard)
        if stray is None:
            self._early.append(now_us)
        return stray

    def close(self) -> Iterator[Message]:
        """Take the client's closing frame; give what the server still said, where all else was played."""
        while (message := self._next) is not None and self._is_late(message):
            if message.from_client:
                return
            self._pass(message, self._clock_us)
            yield message

    def leaves_early(self, now_us: int) -> bool:
        """Say whether a client that ends it now does so before the server has said what it heard while recording."""
        message = self._next
        if message is None or message.from_client or self._is_late(message):
            return False
        return self._due(message.at_us) > now_us + _LEFT_MARGIN_US

    def find_left(self) -> tuple[int, Message] | None:
        """Find the first message of the client that has not come. Reads as far as it has to."""
        for number, message in self._ahead or self._client_messages():
            if not self._is_late(message):
                return number, message
        return None

    # ---- inside --------------------------------------------------------------------------------

    def _pass(self, message: Message, now_us: int) -> None:
        self._recorded_us, self._clock_us = message.at_us, now_us
        self._after = max(self._after, message.after)
        self._held = False
        self._number += 1
        self._next = next(self._messages, None)

    def _due(self, recorded_us: int) -> int:
        return self._clock_us + int(max(0, recorded_us - self._recorded_us) * self._pace)

    def _wait(self, message: Message, now_us: int) -> int:
        wait_us = self._due(message.at_us) - now_us
        if not self._pushed or message.after <= self._after:
            return wait_us
        gap_us = int(max(0, message.at_us - self._recorded_us) * max(1, self._pace))
        if now_us >= self._clock_us + gap_us + CAUSE_MARGIN_US:
            return wait_us
        if self._arrived(range(self._after + 1, message.after + 1)):
            return wait_us
        self._held = True
        return max(wait_us, _LOOK_US)

    def _is_late(self, message: Message) -> bool:
        """Say whether a message crossed the closing frame of the other side."""
        return self._close is not None and message.at_us > self._close.at_us

    def _client_messages(self) -> Iterator[tuple[int, Message]]:
        """Give the client's messages that have not come, with their numbers."""
        if self._next is None:
            return
        if self._next.from_client:
            yield self._number, self._next
        for number, message in enumerate(self._read(self._number), self._number + 1):
            if message.from_client:
                yield number, message

    def _compare(self, number: int, recorded: Message | None, heard: Message) -> Stray | None:
        stray = Stray(number, recorded, heard.kind, mark_message(heard))
        if recorded is None or not is_alike(recorded, heard, self._masks):
            return stray
        changed = tuple(self._find_changed(recorded, heard))
        if changed:
            return stray._replace(changed=changed)
        if recorded.data != heard.data:
            self._note_masked(recorded, heard)
        return None


def find_first(messages: Iterator[Message]) -> Message | None:
    """Give the first message of a WebSocket where the client said it; None where the server did, or nobody."""
    first = next(messages, None)
    return first if first is not None and first.from_client else None


def is_alike(recorded: Message, heard: Message, masks: Masks = NO_MASKS) -> bool:
    """Say whether two messages count as the same, but for the values that redaction replaced."""
    return recorded.kind is heard.kind and is_same(
        heard.kind, mark_message(recorded), mark_message(heard), masks
    )


def is_same(kind: MessageKind, one: bytes, other: bytes, masks: Masks = NO_MASKS) -> bool:
    """Say whether two messages of a kind count as the same."""
    if one == other:
        return True
    if kind is not MessageKind.TEXT or max(len(one), len(other)) > MAX_PARSED:
        return False
    return message_form(one, masks) == message_form(other, masks)


# ---- what differs ------------------------------------------------------------------------------

_JSON = ((b"content-type", b"application/json"),)
_BYTES = ((b"content-type", b"application/octet-stream"),)


def as_request(request: Request, data: bytes, headers: Headers = _JSON) -> Request:
    """Give a message as the body of a request of the same client to the same place, which is how it is compared.

    request: the handshake's.
    """
    return replace(request, headers=(*headers, *agent_fields(request.headers)), body=data)


def message_differences(
    request: Request,
    kind: MessageKind,
    old: bytes,
    new: bytes,
    rules: Rules,
    request_class: RequestClass = RequestClass.READ,
    limit: int = 8,
) -> tuple[Difference, ...]:
    """Find where two messages of a kind differ; places are those of a body.

    request, request_class: of the handshake.
    limit: most differences returned.
    """
    # As bytes where JSON says nothing: of a message more counts than of a body, as its JSON-RPC id.
    for headers in (_JSON, _BYTES) if kind is MessageKind.TEXT else (_BYTES,):
        recorded, asked = (as_request(request, data, headers) for data in (old, new))
        found = differences(recorded, asked, rules, request_class, limit=limit)
        if told := tuple(one for one in found if one.place.startswith("body")):
            return told
    return ()


def find_ignored(
    request: Request, recorded: Message, heard: Message, shipped: Rules | None, kind: RequestClass
) -> bool | None:
    """Say whether a message differs from the recorded one in what it is about, where it is the same but for what has no effect on matching.

    None where it does not differ at all, but for values that redaction replaced. Whatever is said in a conversation may have an effect; what a
    model is asked is known by its place.

    shipped: the rules without those of the configuration; None where it has none.
    kind: of the handshake.
    """
    old, new = mark_message(recorded), mark_message(heard)
    if old == new:
        return None
    if shipped is None or kind is RequestClass.TELEMETRY:
        return False
    of = kind if kind is RequestClass.INFERENCE else RequestClass.EFFECT
    found = message_differences(request, heard.kind, old, new, shipped, kind)
    return any(may_decide(one, of) for one in found)


# ---- what diverged -----------------------------------------------------------------------------


def explain_stray(
    seq: Seq, tape_seq: Seq, request: Request, stray: Stray, rules: Rules
) -> Divergence:
    """Say how a message of the client is not the one on the tape; `request` is the handshake's, redacted."""
    place = f"message[{stray.number}]"
    asked = _show(stray.kind, stray.data)
    recorded = stray.recorded
    if recorded is None:
        text = f"{place} is one more than the client sent while recording"
        added = (Difference(place, ABSENT, asked),)
        return _diverged(DivergenceKind.UNEXPECTED, seq, tape_seq, request, added, text)
    found: tuple[Difference, ...]
    if stray.changed:
        found = tuple(
            Difference(_place(one.place, place), "(replaced)", "(replaced)")
            for one in stray.changed
        )
        text = f"{place} of the client is not the one of exchange {tape_seq}: its {stray.changed[0].place} {stray.changed[0].what}"
        return _diverged(DivergenceKind.CHANGED, seq, tape_seq, request, found, text)
    if recorded.kind is not stray.kind:
        found = (Difference(f"{place} kind", recorded.kind.value, stray.kind.value),)
    else:
        found = _compare(request, stray.kind, mark_message(recorded), stray.data, rules, place)
    text = f"{place} of the client is not the one of exchange {tape_seq}"
    if found:
        text += f"; it differs at {found[0]}"
    return _diverged(DivergenceKind.CHANGED, seq, tape_seq, request, found, text)


def explain_left(
    seq: Seq, tape_seq: Seq, request: Request, number: int, message: Message
) -> Divergence:
    """Say that the client left before it had said what it said while recording."""
    place = f"message[{number}]"
    found = (Difference(place, _show(message.kind, message.data), ABSENT),)
    text = f"the client closed the WebSocket before {place}, which it sent while recording"
    return _diverged(DivergenceKind.UNUSED, seq, tape_seq, request, found, text)


def explain_unheard(seq: Seq, tape_seq: Seq, request: Request) -> Divergence:
    """Say that the client left before it had heard what it heard while recording."""
    text = "the client ended the WebSocket before messages of the server that it had heard while recording"
    return _diverged(DivergenceKind.LEFT, seq, tape_seq, request, (), text)


def explain_close(
    seq: Seq, tape_seq: Seq, request: Request, recorded: Close, closed: tuple[int, str]
) -> Divergence:
    """Say that the client ended a WebSocket in another way than while recording; `closed` is code and reason."""
    then, now = _show_close(recorded.code, recorded.reason), _show_close(*closed)
    text = f"the client ended the WebSocket with {now}, and with {then} while recording"
    found = (Difference("close", then, now),)
    return _diverged(DivergenceKind.CHANGED, seq, tape_seq, request, found, text)


def _show_close(code: int, reason: str) -> str:
    return "no closing frame" if code == ABRUPT else one_line(f"{code} {reason}".rstrip())


def explain_broken(seq: Seq, tape_seq: Seq, request: Request, error: str) -> Divergence:
    """Say that a WebSocket could not go on."""
    return _diverged(DivergenceKind.UNEXPECTED, seq, tape_seq, request, (), one_line(error))


def _diverged(
    kind: DivergenceKind,
    seq: Seq,
    tape_seq: Seq,
    request: Request,
    found: tuple[Difference, ...],
    text: str,
) -> Divergence:
    return Divergence(kind, seq, request.method, request.url, tape_seq, found, text)


def _compare(
    request: Request, kind: MessageKind, old: bytes, new: bytes, rules: Rules, place: str
) -> tuple[Difference, ...]:
    return tuple(
        Difference(_place(found.place, place), found.recorded, found.asked)
        for found in message_differences(request, kind, old, new, rules)
    )


def _place(place: str, message: str) -> str:
    """Name a place in a message: `message[3].$.type`, `message[3] byte 17`."""
    inner = place.removeprefix("body").lstrip()
    return f"{message}.{inner}" if inner.startswith("$") else f"{message} {inner}".rstrip()


def _show(kind: MessageKind, data: bytes) -> str:
    if kind is MessageKind.TEXT:
        return one_line(data[:1000].decode("utf-8", "replace"))
    return one_line(f"{len(data)} bytes: {data[:32].hex()}")
