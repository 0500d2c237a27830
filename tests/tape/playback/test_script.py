"""How a recorded outcome is played, as a table: what happened, and the steps that play it.

Times are milliseconds here. A late answer is offered half a second later than it came.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.tape.exchange import (
    Chunk,
    Ending,
    Exchange,
    Fault,
    FaultKind,
    Gone,
    Phase,
    RedactedText,
    RequestClass,
    Response,
    Seq,
)
from playhead.tape.playback.script import (
    CAUSE_MARGIN_US,
    LATE_MARGIN_US,
    Step,
    StepKind,
    Steps,
    script,
)
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.tests.support.strategies import exchanges

INSTANT, RECORDED, HALF, DOUBLE = 0.0, 1.0, 0.5, 2.0


def answer(*pieces: tuple[int, bytes], head: int = 100, **changes: Any) -> Response:
    body = b"".join(piece for _, piece in pieces)
    chunks = tuple(Chunk(at_ms * 1000, len(piece)) for at_ms, piece in pieces)
    return make_response(body, head_us=head * 1000, chunks=chunks, **changes)


def fault(
    kind: FaultKind, at: int, phase: Phase = Phase.BODY, ending: Ending = Ending.RST
) -> Fault:
    return Fault(kind, phase, RedactedText("in the engine's words"), at * 1000, ending)


def gone(at: int, chunks: int = 0, head: bool = False) -> Gone:
    return Gone(at * 1000, chunks, head)


def steps(exchange: Exchange, pace: float) -> list[str]:
    return [
        f"{step.at_us / 1000:g} {_named(step)}{' ' + step.data.decode() if step.data else ''}"
        for step in script(exchange, pace)
    ]


def _named(step: Step) -> str:
    return step.ending.value if step.kind is StepKind.FAIL else step.kind.value


WHOLE = answer((200, b"a"), (300, b"bc"))
CUT = answer((200, b"a"), (300, b"bc"), complete=False)


@pytest.mark.parametrize(
    ("response", "failed", "left", "pace", "expected"),
    [
        # Complete: at once, in recorded time, or at a factor.
        (WHOLE, None, None, INSTANT, ["0 head", "0 data a", "0 data bc", "0 end"]),
        (WHOLE, None, None, RECORDED, ["100 head", "200 data a", "300 data bc", "400 end"]),
        (WHOLE, None, None, HALF, ["50 head", "100 data a", "150 data bc", "200 end"]),
        (WHOLE, None, None, DOUBLE, ["200 head", "400 data a", "600 data bc", "800 end"]),
        # Not streamed: the body comes with its head. No body: no piece.
        (make_response(b"whole", head_us=100_000), None, None, RECORDED, ["100 head", "100 data whole", "400 end"]),
        (make_response(b"", head_us=100_000), None, None, RECORDED, ["100 head", "400 end"]),
        # The client left before the head; the answer came later and is kept waiting, whatever the pace.
        (WHOLE, None, gone(50), INSTANT, ["600 head", "700 data a", "800 data bc", "900 end"]),
        (WHOLE, None, gone(50), RECORDED, ["600 head", "700 data a", "800 data bc", "900 end"]),
        # Head or piece were there, but held back, when the client left: not before it leaves again.
        (WHOLE, None, gone(2000), INSTANT, ["2500 head", "2500 data a", "2500 data bc", "2500 end"]),
        # It left in the middle of the stream: what it had been sent comes at pace, the rest is late.
        (WHOLE, None, gone(250, 1, True), INSTANT, ["0 head", "0 data a", "800 data bc", "900 end"]),
        (WHOLE, None, gone(250, 1, True), RECORDED, ["100 head", "200 data a", "800 data bc", "900 end"]),
        (WHOLE, None, gone(250, 1, True), DOUBLE, ["200 head", "400 data a", "1100 data bc", "1300 end"]),
        # It left after the last piece, before the end.
        (WHOLE, None, gone(350, 2, True), INSTANT, ["0 head", "0 data a", "0 data bc", "900 end"]),
        # It left, and reading stopped there: nothing more ever comes.
        (CUT, None, gone(350, 2, True), INSTANT, ["0 head", "0 data a", "0 data bc", "0 hang"]),
        (None, None, gone(350), INSTANT, ["0 hang"]),
        # It left, and then the upstream failed.
        (None, fault(FaultKind.RESET, 300, Phase.HEAD), gone(100), INSTANT, ["800 rst"]),
        (CUT, fault(FaultKind.CUT, 400, ending=Ending.FIN), gone(250, 1, True), INSTANT, ["0 head", "0 data a", "800 data bc", "900 fin"]),
        # Cut in the body: it ends there as it ended then, without its framing's end.
        (CUT, fault(FaultKind.CUT, 350, ending=Ending.FIN), None, INSTANT, ["0 head", "0 data a", "0 data bc", "0 fin"]),
        (CUT, fault(FaultKind.CUT, 350, ending=Ending.CLOSE), None, RECORDED, ["100 head", "200 data a", "300 data bc", "350 close"]),
        (CUT, fault(FaultKind.CUT, 350, ending=Ending.STREAM), None, RECORDED, ["100 head", "200 data a", "300 data bc", "350 stream"]),
        # Reset in the body, and before the head.
        (CUT, fault(FaultKind.CUT, 350), None, RECORDED, ["100 head", "200 data a", "300 data bc", "350 rst"]),
        (None, fault(FaultKind.RESET, 350, Phase.HEAD), None, RECORDED, ["350 rst"]),
        (None, fault(FaultKind.REFUSED, 2, Phase.CONNECT), None, INSTANT, ["0 rst"]),
        (None, fault(FaultKind.DNS, 2, Phase.CONNECT), None, INSTANT, ["0 rst"]),
        # Written before its outcome was known, and then the process died.
        (CUT, None, None, INSTANT, ["0 head", "0 data a", "0 data bc", "0 fin"]),
        # Nothing is known of it.
        (None, None, None, INSTANT, ["0 hang"]),
    ],
)  # fmt: skip
def test_an_outcome_is_played_as_it_was(
    response: Response | None,
    failed: Fault | None,
    left: Gone | None,
    pace: float,
    expected: list[str],
) -> None:
    """Kind of an end, order and pieces as recorded; a client that gave up has to give up again."""
    exchange = make_exchange(response=response, fault=failed, gone=left, end_us=400_000)
    assert steps(exchange, pace) == expected


ENDS = {StepKind.END, StepKind.FAIL, StepKind.HANG}


@given(exchanges(), st.sampled_from([INSTANT, HALF, RECORDED, 3.7]))
def test_a_script_plays_every_byte_once_and_has_one_end(exchange: Exchange, pace: float) -> None:
    """Interim answers, the head, then the body in its pieces, then exactly one end."""
    played = list(script(exchange, pace))
    interim = [step.interim for step in played if step.kind is StepKind.INTERIM]
    assert [step.interim for step in played[: len(interim)]] == interim == list(exchange.interim)
    played = played[len(interim) :]
    assert [step.kind in ENDS for step in played] == [False] * (len(played) - 1) + [True]
    assert b"".join(step.data for step in played) == (
        exchange.response.body if exchange.response else b""
    )
    assert (played[0].kind is StepKind.HEAD) == (exchange.response is not None)


@given(exchanges(), st.sampled_from([INSTANT, HALF, RECORDED, 3.7]))
def test_what_a_client_did_not_wait_for_is_offered_after_it_left(
    exchange: Exchange, pace: float
) -> None:
    """At any pace: served early it would change the story."""
    if exchange.gone is None:
        return
    unsent = replace(exchange.gone, chunks=0, head=False)
    for step in script(replace(exchange, gone=unsent), pace):
        if step.interim is not None and step.interim.at_us <= unsent.at_us:
            continue  # the client had it
        assert step.kind is StepKind.HANG or step.at_us >= unsent.at_us + LATE_MARGIN_US


def pushed(kind: bytes, *after: int) -> Response:
    """An answer whose pieces came at 100, 200 ... ms, each when this seq had been the last to arrive."""
    chunks = tuple(Chunk(index * 100_000, 1, Seq(seq)) for index, seq in enumerate(after, 1))
    return make_response(
        b"x" * len(after), head_us=50_000, chunks=chunks, headers=((b"Content-Type", kind),)
    )


EVENTS, NONE = b"text/event-stream", None


@pytest.mark.parametrize(
    ("request_class", "kind", "after", "pace", "expected"),
    [
        # Requests that arrived after this one, and before the piece, may have caused it: all of them.
        (RequestClass.READ, EVENTS, (4,), INSTANT, [((4,), 1100)]),
        (RequestClass.READ, EVENTS, (6,), INSTANT, [((4, 5, 6), 1100)]),
        (RequestClass.READ, EVENTS, (4, 4, 6), INSTANT, [((4,), 1100), ((4,), 1200), ((4, 5, 6), 1300)]),
        (RequestClass.EFFECT, EVENTS, (4,), INSTANT, [((4,), 1100)]),
        (RequestClass.READ, b"Text/Event-Stream; charset=utf-8", (4,), INSTANT, [((4,), 1100)]),
        # It is not waited for much longer than it took then, or takes now at a slower pace.
        (RequestClass.READ, EVENTS, (4,), RECORDED, [((4,), 1100)]),
        (RequestClass.READ, EVENTS, (4,), HALF, [((4,), 1100)]),
        (RequestClass.READ, EVENTS, (4,), DOUBLE, [((4,), 1200)]),
        # None had arrived since, or the tape is older than this was noted.
        (RequestClass.READ, EVENTS, (3, 3), INSTANT, [NONE, NONE]),
        (RequestClass.READ, EVENTS, (0, 2), INSTANT, [NONE, NONE]),
        (RequestClass.READ, EVENTS, (3, 4), INSTANT, [NONE, ((4,), 1200)]),
        # Caused by their own request alone: a model's stream, and what is no stream of events.
        (RequestClass.INFERENCE, EVENTS, (4, 9), INSTANT, [NONE, NONE]),
        (RequestClass.READ, b"text/plain", (4, 9), INSTANT, [NONE, NONE]),
        (RequestClass.READ, b"application/json", (4,), RECORDED, [NONE]),
    ],
)  # fmt: skip
def test_a_pushed_event_waits_for_what_may_have_caused_it(
    request_class: RequestClass,
    kind: bytes,
    after: tuple[int, ...],
    pace: float,
    expected: list[tuple[tuple[int, ...], int] | None],
) -> None:
    """Seqs that have to be asked first, and milliseconds after which it comes all the same."""
    exchange = make_exchange(3, kind=request_class, response=pushed(kind, *after))
    played = list(script(exchange, pace))
    data = [step for step in played if step.kind is StepKind.DATA]
    waits = [(tuple(step.causes), step.latest_us // 1000) for step in data]
    assert waits == [each or ((), 0) for each in expected]
    others = [step for step in played if step.kind is not StepKind.DATA]
    assert all(not step.causes and not step.latest_us for step in others)


def test_a_pushed_event_that_came_too_late_is_waited_for_as_long_as_it_is_late() -> None:
    """The client had left before it: not before that, and then some time for its cause."""
    exchange = make_exchange(3, response=pushed(EVENTS, 4), gone=gone(150, 0, True))
    (step,) = [step for step in script(exchange, INSTANT) if step.kind is StepKind.DATA]
    assert step.at_us == 150_000 + LATE_MARGIN_US
    assert step.latest_us == step.at_us + CAUSE_MARGIN_US


def test_a_piece_waits_for_what_it_answered() -> None:
    """Of a request that went on while it was answered: so many bytes of it have to come first."""
    response = replace(
        make_response(b"abc", chunks=(Chunk(0, 1, 0, 10), Chunk(0, 2, 0, 20))), head_need=5
    )
    needs = [step.need for step in script(make_exchange(1, response=response), INSTANT)]
    assert needs == [5, 10, 20, 1 << 63]


def test_steps_are_looked_at_before_they_are_taken() -> None:
    """The next one is known, and no more than that is made."""
    made = []

    def source() -> Iterator[Step]:
        for at in range(3):
            made.append(at)
            yield Step(at, StepKind.DATA)

    steps = Steps(source())
    assert (steps.next, made) == (Step(0, StepKind.DATA), [0])
    assert (steps.take().at_us, made) == (0, [0, 1])
    assert (steps.take().at_us, steps.take().at_us, steps.next) == (1, 2, None)


def test_steps_that_are_closed_let_go_of_what_they_are_read_from() -> None:
    """At once, and not when garbage is collected: a body's file is open until then."""
    closed: list[int] = []

    def pieces() -> Iterator[tuple[Chunk, bytes]]:
        try:
            while True:
                yield Chunk(0, 4), b"more"
        finally:
            closed.append(1)

    playing = Steps(script(make_exchange(1, response=WHOLE), INSTANT, pieces()))
    assert [playing.take().kind for _ in range(3)] == [StepKind.HEAD, StepKind.DATA, StepKind.DATA]
    playing.close()
    playing.close()
    assert (closed, playing.next) == ([1], None)


def test_the_last_piece_waits_for_answers_that_came_before_it() -> None:
    """The others do not: a client may act on what it has been sent."""
    exchange = make_exchange(response=answer((1, b"a"), (2, b"b"), (3, b"c")))
    played = list(script(exchange, 0, ordered=True))
    assert [(step.kind.value, step.data, step.ordered) for step in played] == [
        ("head", b"", None),
        ("data", b"a", None),
        ("data", b"b", None),
        ("data", b"c", exchange.seq),
        ("end", b"", exchange.seq),
    ]
