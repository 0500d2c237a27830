"""Which of two requests of a lane comes first, as a table of recordings."""

import pytest

from playhead.tape.canonical.json_rpc_client_ids import STDIO_HOST
from playhead.tape.exchange import Exchange, Lane, RequestClass, Seq
from playhead.tape.matching.lane_order import LaneOrder, Placed, ServedLanes, place
from playhead.tests.support.exchanges import make_exchange, make_response

CLASSES = {
    "e": RequestClass.EFFECT,
    "r": RequestClass.READ,
    "m": RequestClass.INFERENCE,
    "M": RequestClass.INFERENCE,
    "t": RequestClass.TELEMETRY,
}


def recorded(text: str) -> LaneOrder:
    """Make a tape of words.

    text: a letter for the class (`M` asks for two tools), perhaps a lane, and `+` with the seqs that it overlaps. A `~` in front: it
    began a second after the one before it, instead of at once; a `-` behind: it ended after what it overlapped.
    """
    words = text.split()
    placed, calls = [], set[Seq]()
    began = 0
    for at, word in enumerate(words, 1):
        own, *overlaps = word.strip("~-").split("+")
        seq, kind = Seq(at), CLASSES[own[0]]
        if own[0] == "M":
            calls.add(seq)
        lane = int(own[1:] or 1)
        over = frozenset(Seq(int(one)) for one in overlaps)
        began += 10**9 if word.startswith("~") or not overlaps else 10**8
        # It ends before the first one that comes and does not overlap it.
        ends = next((i for i in range(at, len(words)) if f"+{at}" not in words[i] + "+"), at)
        ended = ends * 100 + at + 50 * word.endswith("-")
        counts = kind is not RequestClass.TELEMETRY
        placed.append(Placed(seq, lane, over, kind, counts, began_ns=began, ended_ns=ended))
    return LaneOrder(placed, lambda seq: 2 if seq in calls else 0)


BEFORE = [
    ("two effects", "e e", 1, 2, True, True),
    ("an effect and a read", "e r", 1, 2, True, True),
    ("a model call and an effect", "m e", 1, 2, True, True),
    ("two reads", "r r", 1, 2, False, True),
    ("two model calls", "m m", 1, 2, False, True),
    ("not the other way round", "e e", 2, 1, False, False),
    ("two lanes", "e1 e2", 1, 2, False, False),
    ("they overlapped", "e e+1", 1, 2, False, False),
    ("the second one overlapped what came behind it", "e e r+2", 1, 2, True, True),
    ("the second one overlapped an effect that came behind it", "e e e+2", 1, 2, False, True),
    ("the first one overlapped what came before it", "r e+1 e", 2, 3, True, True),
    (
        "the first one overlapped what began before it and ended later",
        "r- ~e+1 e",
        2,
        3,
        False,
        True,
    ),
    ("a read beside the model", "r m+1 e", 1, 3, True, True),
    ("the model beside a read", "r m+1 e", 2, 3, True, True),
    ("the model during a long read", "r- ~m+1 e", 2, 3, True, True),
    ("that long read", "r- ~m+1 e", 1, 3, True, True),
    ("a model of one of two tools, and the effect of the other", "M r- ~m+2 e", 3, 4, False, True),
    ("a poll during the answer of a model", "m- ~r+1 e", 2, 3, False, True),
    ("a poll that was answered last", "m ~r+1 e", 2, 3, True, True),
    ("reads side by side, then an effect", "r r+1 e", 1, 3, True, True),
    ("the same, told from the last", "r r+1 e", 2, 3, True, True),
    ("an effect, then reads side by side", "e r r+2", 1, 3, True, True),
    ("reads before a model that was alone", "r r+1 m e", 1, 4, True, True),
    ("a poll before a model that was alone", "m- ~r+1 m e", 2, 4, False, True),
    ("reads that overlapped before and among themselves", "r r+1 r", 1, 3, False, True),
    ("an effect during a long read, after a model", "r- m+1 e+1", 2, 3, True, True),
    ("effects during one long read", "r- e+1 e+1", 2, 3, True, True),
    ("reads side by side before two others", "r r+1 r r+3 e", 1, 5, True, True),
    ("an overlap before them", "r r+1 e e", 3, 4, True, True),
    ("an overlap of another lane", "e1 r2 e1+2", 1, 3, True, True),
    ("an overlap with telemetry", "t e+1 e", 2, 3, True, True),
    ("telemetry has no order", "t e", 1, 2, False, False),
    ("tools that one answer asked for", "M e e m", 2, 3, False, True),
    ("one tool that an answer asked for", "m e e m", 2, 3, True, True),
    ("a tool and the next model call", "M e e m", 3, 4, True, True),
    ("tools of two answers", "M e M e", 2, 4, True, True),
    ("model calls that overlapped before", "m m+1 e e", 3, 4, False, True),
    ("model calls that overlap later", "e e m m+3", 1, 2, True, True),
    ("effects that overlapped before", "e e+1 r e", 3, 4, False, True),
    ("effects that overlap later", "r e e e+3", 1, 2, False, True),
    ("tools that overlapped before", "M e e+2 m e r", 5, 6, True, True),
    ("effects of another lane that overlapped", "e2 e2+1 r e", 3, 4, True, True),
    ("a read that overlapped an effect before", "e r+1 e e", 3, 4, True, True),
    ("model calls of another lane that overlapped", "m2 m2+1 e e", 3, 4, True, True),
]


@pytest.mark.parametrize(
    ("text", "first", "second", "counts", "strictly"),
    [row[1:] for row in BEFORE],
    ids=[row[0] for row in BEFORE],
)
def test_order_counts_where_a_recording_was_in_turn(
    text: str, first: int, second: int, counts: bool, strictly: bool
) -> None:
    """By default with an effect among the two, and strictly with any."""
    tape = recorded(text)
    assert tape.is_before(Seq(first), Seq(second), 1, strict=False) is counts
    assert tape.is_before(Seq(first), Seq(second), 1, strict=True) is strictly


def test_what_was_served_too_early_is_given_to_the_late_one() -> None:
    """Only what its own lane has behind it; of a tape without lanes nothing."""
    served = ServedLanes()
    one, other = Lane(1), Lane(2)
    assert served.take(Seq(3), one) == ()
    assert served.take(Seq(4), other) == ()
    assert served.take(Seq(6), one) == ()
    assert served.take(Seq(1), one) == (3, 6)
    assert served.take(Seq(5), one) == (6,)
    assert served.take(Seq(2), other) == (4,)
    assert served.take(Seq(1), None) == ()


@pytest.mark.parametrize(
    ("sessions", "before"), [((b"1", b"1"), True), ((b"1", b"2"), False), ((b"1", b""), True)]
)
def test_two_sessions_have_no_order(sessions: tuple[bytes, bytes], before: bool) -> None:
    """Each is of an agent of its own; the strict order is of all."""
    kind = RequestClass.EFFECT
    placed = [
        Placed(Seq(at), 1, frozenset(), kind, True, session)
        for at, session in enumerate(sessions, 1)
    ]
    order = LaneOrder(placed, lambda seq: 0)
    assert order.is_before(Seq(1), Seq(2), 1, strict=False) is before
    assert order.is_before(Seq(1), Seq(2), 1, strict=True)


@pytest.mark.parametrize(
    ("overlaps", "before"), [(frozenset[Seq](), True), (frozenset([Seq(1)]), False)]
)
def test_a_stream_of_events_counts_unless_something_was_asked_meanwhile(
    overlaps: frozenset[Seq], before: bool
) -> None:
    """A short one is an answer like any other; a long one is there beside all that is asked."""
    read = Placed(Seq(1), 1, frozenset(), RequestClass.READ, True, if_alone=True)
    paid = Placed(Seq(2), 1, overlaps, RequestClass.EFFECT, True)
    again = Placed(Seq(3), 1, frozenset(), RequestClass.EFFECT, True)
    order = LaneOrder([read, paid, again], lambda _: 0)
    assert order.is_before(Seq(1), Seq(2), 1, strict=False) is before
    assert order.is_before(Seq(2), Seq(3), 1, strict=False)


def _said(seq: int, host: str, *overlaps: int) -> Exchange:
    """A notification that was answered by 202."""
    body = b'{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}'
    return make_exchange(
        seq,
        f"POST http://{host}/mcp",
        body=body,
        response=make_response(b"", 202),
        lane=Lane(1, tuple(Seq(one) for one in overlaps)),
    )


@pytest.mark.parametrize(
    ("host", "overlaps", "orders", "calls"),
    [
        (STDIO_HOST, (), True, True),
        (STDIO_HOST, (1,), False, True),
        ("api.test", (), False, True),
    ],
    ids=["in turn", "during a call", "over HTTP, where the answer comes elsewhere"],
)
def test_a_message_over_a_pipe_that_nobody_answers_has_its_place_between_effects(
    host: str, overlaps: tuple[int, ...], orders: bool, calls: bool
) -> None:
    """Unless something was under way; the order of the calls around it counts either way."""
    effect = RequestClass.EFFECT
    said = place(_said(2, host, *overlaps), RequestClass.READ)
    assert said is not None
    none = frozenset[Seq]()
    first, last = (Placed(Seq(seq), 1, none, effect, counts=True) for seq in (1, 3))
    tape = LaneOrder([first, *([said] if said.counts else []), last], lambda _: 0)
    found = [tape.is_before(Seq(1), Seq(2), 1, strict=False)]
    found += [tape.is_before(Seq(2), Seq(3), 1, strict=False)]
    assert found == [orders, orders]
    assert tape.is_before(Seq(1), Seq(3), 1, strict=False) is calls
