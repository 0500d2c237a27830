"""Which message of a recorded WebSocket comes next, and what counts as the same one."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import IgnoreRule, parse_match
from playhead.tape.canonical.canonical_request import compile_rules
from playhead.tape.diff.divergence_types import ABSENT, Difference, DivergenceKind
from playhead.tape.exchange import (
    Close,
    Exchange,
    Message,
    MessageKind,
    RedactedText,
    RequestClass,
    Seq,
    WebSocketSummary,
)
from playhead.tape.playback.script import CAUSE_MARGIN_US
from playhead.tape.playback.websocket import (
    MessageCursor,
    Send,
    Stray,
    Turn,
    Wait,
    explain_left,
    explain_stray,
    is_same,
)
from playhead.tests.support.exchanges import make_exchange, make_response

TEXT, BINARY, PING = MessageKind.TEXT, MessageKind.BINARY, MessageKind.PING
RULES = compile_rules((IgnoreRule(parse_match("*://*"), json=("$.event_id",)),))
HEAD_US = 1000
GAP_US = 100_000


def tape(
    written: str, *, close: Close | None = None, kind: RequestClass = RequestClass.INFERENCE
) -> tuple[list[Message], Exchange]:
    """Messages a tenth of a second apart: `c1` is the client's text "1", `s1` the server's, `x` the end.

    Without an `x` the WebSocket ends one gap after the last message, by the server.
    """
    messages, end = [], 0
    for place, word in enumerate(written.split(), 1):
        at_us = HEAD_US + place * GAP_US
        if word == "x":
            end = at_us
        else:
            messages.append(Message(at_us, word[0] == "c", TEXT, word[1:].encode()))
    ended = close or Close(end, False, 1000, RedactedText("bye"))
    ended = replace(ended, at_us=end or HEAD_US + (len(messages) + 1) * GAP_US)
    summary = WebSocketSummary(len(messages), 0, ended)
    response = make_response(b"", 101, head_us=HEAD_US)
    return messages, make_exchange(1, response=response, websocket=summary, kind=kind)


def from_client(kind: MessageKind, data: bytes) -> Message:
    """What a client says now."""
    return Message(0, True, kind, data)


def cursor_of(
    messages: list[Message],
    exchange: Exchange,
    pace: float = 0.0,
    arrived: Callable[[range], bool] = lambda seqs: True,
) -> MessageCursor:
    """A cursor over a list, begun at 0."""

    def read(after: int) -> Iterator[Message]:
        return iter(messages[after + 1 :])

    cursor = MessageCursor(read, exchange, pace, RULES.of(exchange.request).masks, arrived)
    cursor.begin(0)
    return cursor


def played(cursor: MessageCursor, now_us: int = 0) -> str:
    """What the server says before it has to wait, and for whom: `c` the client, `x` nobody, a time."""
    words = []
    while True:
        match cursor.step(now_us):
            case Send(message):
                words.append(f"s{message.data.decode()}")
            case Wait(us):
                return " ".join([*words, f"+{us // 1000}"])
            case turn:
                return " ".join([*words, "c" if turn is Turn.LISTEN else "x"])


BY_CLIENT = Close(0, True, 1000, RedactedText(""))

TRANSCRIPTS = [
    # The tape, what the client does, what the server says after each
    ("", "", "x"),
    ("s1 s2", "", "s1 s2 x"),
    ("c1 s1 s2 c2 s3", "1 2", "c, s1 s2 c, s3 x"),
    ("s1 c1 c2 s2", "1 2", "s1 c, c, s2 x"),
    # What the client said after the server had closed may come
    ("s1 x c1", "", "s1 x"),
    ("s1 x c1", "1", "s1 x, x"),
    # What crossed the client's closing frame waits for it
    ("s1 x s2", "", "s1 c"),
]


@pytest.mark.parametrize(("written", "said", "heard"), TRANSCRIPTS, ids=str)
def test_the_server_follows_the_client(written: str, said: str, heard: str) -> None:
    """A message of the server is played after those of the client that it followed."""
    close = BY_CLIENT if written.endswith("x s2") else None
    cursor = cursor_of(*tape(written, close=close))
    words = [played(cursor)]
    for word in said.split():
        assert cursor.hear(0, from_client(TEXT, word.encode())) is None
        words.append(played(cursor))
    assert ", ".join(words) == heard


def test_a_client_that_closes_is_waited_for() -> None:
    """Its closing frame is not made up, and what the server said across it comes then."""
    cursor = cursor_of(*tape("c1 s1 x s2", close=BY_CLIENT))
    assert played(cursor) == "c"
    assert cursor.hear(0, from_client(TEXT, b"1")) is None
    assert played(cursor) == "s1 c"
    assert [message.data for message in cursor.close()] == [b"2"]
    assert cursor.find_left() is None


def test_who_closes_early_is_not_sent_the_rest() -> None:
    """What the server would have said before is not said after."""
    cursor = cursor_of(*tape("c1 s1 x s2", close=BY_CLIENT))
    assert list(cursor.close()) == []
    assert cursor.find_left() == (0, tape("c1")[0][0])


STRAYS = [
    # The tape, what came as it should, what came then, its place, what was recorded there
    ("c1", "", "2", 0, "1"),
    ("s1 c1 c2", "1", "1", 2, "2"),
    ("s1", "", "1", 1, None),
    ("c1 s1", "1", "1", 2, None),
    # Ahead of the server
    ("s1 s2 c1", "", "2", 2, "1"),
]


@pytest.mark.parametrize(("written", "said", "stray", "number", "recorded"), STRAYS, ids=str)
@pytest.mark.parametrize("pace", [0.0, 1.0])
def test_a_message_that_is_not_the_next_one_is_given_back(
    written: str, said: str, stray: str, number: int, recorded: str | None, pace: float
) -> None:
    """With its place and the one that stands there, whether or not the server is still to speak."""
    messages, exchange = tape(written)
    cursor = cursor_of(messages, exchange, pace)
    for word in said.split():
        played(cursor)
        assert cursor.hear(0, from_client(TEXT, word.encode())) is None
    played(cursor)
    expected = None if recorded is None else messages[number]
    assert cursor.hear(0, from_client(TEXT, stray.encode())) == Stray(
        number, expected, TEXT, stray.encode()
    )


def test_kinds_count() -> None:
    """Bytes are not the text that reads the same."""
    messages, exchange = tape("c1")
    stray = cursor_of(messages, exchange).hear(0, from_client(BINARY, b"1"))
    assert stray == Stray(0, messages[0], BINARY, b"1")


def test_a_message_may_cross_those_of_the_server() -> None:
    """One that comes while the server is still to speak is the next of the client; the order stays."""
    cursor = cursor_of(*tape("s1 s2 c1 s3 c2 s4"), pace=1.0)
    assert played(cursor, 0) == "+100"
    assert cursor.hear(0, from_client(TEXT, b"1")) is None
    assert cursor.hear(0, from_client(TEXT, b"2")) is None
    assert played(cursor, 100_000) == "s1 +100"
    assert played(cursor, 300_000) == "s2 s3 +100"
    assert played(cursor, 500_000) == "s4 x"
    assert cursor.find_left() is None


@pytest.mark.parametrize(("pace", "waits"), [(0.0, "s1 x"), (1.0, "+100"), (0.5, "+50")])
def test_gaps_are_scaled_by_the_pace(pace: float, waits: str) -> None:
    """Counted from what went before, which is the client's message where there was one."""
    cursor = cursor_of(*tape("c1 s1"), pace=pace)
    assert cursor.hear(7_000_000, from_client(TEXT, b"1")) is None
    assert played(cursor, 7_000_000) == waits


def test_a_late_timer_moves_nothing_that_follows() -> None:
    """Gaps are counted from when a message was due, not from when it was sent."""
    cursor = cursor_of(*tape("s1 s2 s3"), pace=1.0)
    assert played(cursor, 130_000) == "s1 +70"


def test_a_message_waits_for_the_request_that_caused_it() -> None:
    """On a WebSocket that is no model's, and not for ever."""
    messages, exchange = tape("s1 s2", kind=RequestClass.READ)
    messages[0] = replace(messages[0], after=2)
    arrived: set[int] = set()
    cursor = cursor_of(messages, exchange, arrived=lambda seqs: arrived.issuperset(seqs))
    assert played(cursor, 0) == "+5"
    assert played(cursor, GAP_US) == "+5"
    arrived.add(2)
    assert played(cursor, GAP_US) == "s1 s2 x"

    cursor = cursor_of(messages, exchange, arrived=lambda seqs: False)
    assert played(cursor, GAP_US + CAUSE_MARGIN_US - 1) == "+5"
    assert played(cursor, GAP_US + CAUSE_MARGIN_US) == "s1 s2 x"

    model = replace(exchange, request_class=RequestClass.INFERENCE)
    assert played(cursor_of(messages, model, arrived=lambda seqs: False)) == "s1 s2 x"


def test_a_conversation_that_the_recorder_left_ends_where_it_did() -> None:
    """The client saw its connection end there."""
    messages, exchange = tape("s1")
    exchange = replace(
        exchange, websocket=WebSocketSummary(1, 0, None), end_us=HEAD_US + 3 * GAP_US
    )
    assert played(cursor_of(messages, exchange)) == "s1 x"
    assert played(cursor_of(messages, exchange, pace=1.0), GAP_US) == "s1 +200"


def test_a_message_waits_for_no_request_that_came_before_the_last_message() -> None:
    """Whoever made it has gone on since: the client has spoken, or was spoken to."""
    messages, exchange = tape("c1 s1 s2", kind=RequestClass.READ)
    messages = [
        replace(message, after=after) for message, after in zip(messages, (5, 5, 7), strict=True)
    ]
    asked: list[range] = []

    def arrived(seqs: range) -> bool:
        asked.append(seqs)
        return False

    cursor = cursor_of(messages, exchange, arrived=arrived)
    assert cursor.hear(0, from_client(TEXT, b"1")) is None
    assert played(cursor) == "s1 +5"
    assert asked == [range(6, 8)]


@st.composite
def _conversations(draw: st.DrawFn) -> tuple[list[Message], Close]:
    messages, at_us = [], HEAD_US
    for number in range(draw(st.integers(0, 12))):
        at_us += draw(st.sampled_from([0, 1, 900, 40_000]))
        from_client = draw(st.booleans())
        kind = draw(st.sampled_from([TEXT, BINARY] if from_client else list(MessageKind)))
        messages.append(Message(at_us, from_client, kind, b"%d" % number))
    return messages, Close(at_us + 10, draw(st.booleans()), 1000, RedactedText(""))


@given(_conversations(), st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.data())
def test_the_clients_part_brings_the_servers_part(
    recorded: tuple[list[Message], Close], pace: float, data: st.DataObject
) -> None:
    """Whatever the interleaving, and however early the client speaks: the same, in order, and no earlier."""
    messages, close = recorded
    response = make_response(b"", 101, head_us=HEAD_US)
    summary = WebSocketSummary(len(messages), 0, close)
    exchange = make_exchange(response=response, websocket=summary)
    cursor = cursor_of(messages, exchange, pace)
    mine = [message for message in messages if message.from_client]
    sent: list[Message] = []
    heard, now_us = 0, 0
    while True:
        turn = cursor.step(now_us)
        if isinstance(turn, Send):
            assert isinstance(turn.message, Message)
            sent.append(turn.message)
            place = messages.index(turn.message)
            assert sum(message.from_client for message in messages[:place]) <= heard
        elif heard < len(mine) and (turn is Turn.LISTEN or data.draw(st.booleans())):
            assert cursor.hear(now_us, from_client(mine[heard].kind, mine[heard].data)) is None
            heard += 1
        elif isinstance(turn, Wait):
            assert turn.us > 0
            now_us += turn.us
        else:
            break
    assert sent == [message for message in messages if not message.from_client]
    assert heard == len(mine)
    assert turn is (Turn.LISTEN if close.by_client else Turn.OVER)
    assert cursor.find_left() is None
    assert list(cursor.close()) == []


@given(_conversations(), st.data())
def test_what_the_client_left_out_is_found(
    recorded: tuple[list[Message], Close], data: st.DataObject
) -> None:
    """The first of its messages that did not come, wherever it stopped."""
    messages, close = recorded
    response = make_response(b"", 101, head_us=HEAD_US)
    summary = WebSocketSummary(len(messages), 0, close)
    exchange = make_exchange(response=response, websocket=summary)
    cursor = cursor_of(messages, exchange, 1.0)
    mine = [(number, message) for number, message in enumerate(messages) if message.from_client]
    spoken = data.draw(st.integers(0, len(mine)))
    for _, message in mine[:spoken]:
        cursor.step(0)
        assert cursor.hear(0, from_client(message.kind, message.data)) is None
    assert cursor.find_left() == (mine[spoken] if spoken < len(mine) else None)


# ---- what counts as the same -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        (TEXT, b'{"a": 1, "b": 2}', b'{"b":2,"a":1}', True),
        (TEXT, b'{"a": 1}', b'{"a": 1.0}', False),
        (TEXT, b'{"event_id": "e1", "a": 1}', b'{"a": 1, "event_id": "e2"}', True),
        (TEXT, b'{"event_id": "e1", "a": 1}', b'{"a": 1}', False),
        (TEXT, b"hello", b"hello ", False),
        (TEXT, b'"a"', b' "a"', True),
        (BINARY, b'{"a":1}', b'{"a": 1}', False),
        (BINARY, b"\x00\xff", b"\x00\xff", True),
        (TEXT, b"[" * 100_000, b"[" * 100_001, False),
    ],
)
def test_messages_count_as_their_kind_says(
    kind: MessageKind, one: bytes, other: bytes, same: bool
) -> None:
    """JSON in text as a value, without what a rule leaves out; anything else as bytes."""
    masks = RULES.of(make_exchange().request).masks
    assert is_same(kind, one, other, masks) is same


# ---- what is told ------------------------------------------------------------------------------------


def _explain(recorded: Message | None, kind: MessageKind, data: bytes) -> tuple[str, str, str, str]:
    request = make_exchange().request
    stray = Stray(3, recorded, kind, data)
    told = explain_stray(Seq(7), Seq(2), request, stray, RULES)
    assert (told.seq, told.nearest_seq, told.url) == (7, 2, request.url)
    (found,) = told.differences
    return told.kind.value, found.place, found.recorded, found.asked


def text(value: object) -> Message:
    return Message(0, True, TEXT, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("recorded", "kind", "data", "told"),
    [
        (
            Message(0, True, TEXT, b'{"jsonrpc":"2.0","id":1,"method":"m"}'),
            TEXT,
            b'{"jsonrpc":"2.0","id":2,"method":"m"}',
            (
                "changed",
                "message[3] byte 22",
                '{"jsonrpc":"2.0","id":1,"method":"m"}',
                '{"jsonrpc":"2.0","id":2,"method":"m"}',
            ),
        ),
        (
            text({"type": "response.create", "event_id": "a"}),
            TEXT,
            b'{"type": "session.update", "event_id": "b"}',
            ("changed", "message[3].$.type", '"response.create"', '"session.update"'),
        ),
        (
            text({"a": [1, {"b": "x"}]}),
            TEXT,
            b'{"a":[1,{"b":"y"}]}',
            ("changed", "message[3].$.a[1].b", '"x"', '"y"'),
        ),
        (
            Message(0, True, TEXT, b"hello you"),
            TEXT,
            b"hello me",
            ("changed", "message[3] byte 6", "hello you", "hello me"),
        ),
        (
            Message(0, True, BINARY, b"\x01\x02"),
            BINARY,
            b"\x01\x03",
            ("changed", "message[3] byte 1", "\\x01\\x02", "\\x01\\x03"),
        ),
        (
            Message(0, True, BINARY, b'{"a": 1}'),
            TEXT,
            b'{"a": 1}',
            ("changed", "message[3] kind", "binary", "text"),
        ),
        (None, TEXT, b'{"a": 1}', ("unexpected", "message[3]", ABSENT, '{"a": 1}')),
        (None, BINARY, b"\x00\xff", ("unexpected", "message[3]", ABSENT, "2 bytes: 00ff")),
    ],
)
def test_a_stray_message_is_told_by_its_first_difference(
    recorded: Message | None, kind: MessageKind, data: bytes, told: tuple[str, str, str, str]
) -> None:
    """Where it stands, what the tape has there, and what came."""
    assert _explain(recorded, kind, data) == told


def test_what_the_client_did_not_say_is_unused() -> None:
    """The first of it is shown."""
    request = make_exchange().request
    told = explain_left(Seq(7), Seq(2), request, 4, Message(0, True, TEXT, b"\x1b[2J" * 100))
    assert told.kind is DivergenceKind.UNUSED
    (found,) = told.differences
    assert found == Difference("message[4]", found.recorded, ABSENT)
    assert len(found.recorded) <= 200
    assert found.recorded.isprintable()
