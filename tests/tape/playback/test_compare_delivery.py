"""How much of an answer a client took, as a table of answers and of clients that leave."""

from dataclasses import replace

import pytest

from playhead.tape.exchange import (
    Chunk,
    Fault,
    FaultKind,
    Gone,
    Phase,
    RedactedText,
    RequestClass,
    Response,
)
from playhead.tape.playback.compare_delivery import is_out_of_time, left_early, left_late
from playhead.tape.playback.script import Rest, StepKind, Steps, script
from playhead.tests.support.exchanges import make_exchange, make_response

MIB = 1024 * 1024
WAIT_US = 60_000_000


def answer(*pieces: tuple[int, bytes], kind: bytes = b"text/plain") -> Response:
    """Make an answer in pieces that came at these milliseconds, its head at 10 ms."""
    body = b"".join(piece for _, piece in pieces)
    chunks = tuple(Chunk(at_ms * 1000, len(piece)) for at_ms, piece in pieces)
    return make_response(body, head_us=10_000, chunks=chunks, headers=((b"Content-Type", kind),))


def gone(at_ms: int, chunks: int, *, head: bool = True) -> Gone:
    """Make a recorded client that left."""
    return Gone(at_ms * 1000, chunks, head)


THREE = answer((300, b"one"), (600, b"two"), (900, b"three"))
LARGE = answer(*((20, b"x" * MIB) for _ in range(32)))
MIBS = answer((20, b"x" * MIB), (130, b"x" * MIB), (260, b"x" * MIB), (2900, b"x" * MIB))
MODEL = answer((100, b"data: 1\n\n"), (200, b"data: [DONE]\n\n"), (300, b"\n"))
WHOLE = None

LEAVES = [
    ("the whole then, nothing now", THREE, WHOLE, 0, 5, True),
    ("the whole then, the head now", THREE, WHOLE, 1, 20, True),
    ("the whole then, all but the last piece now", THREE, WHOLE, 3, 700, True),
    ("the whole then, all but its end now", THREE, WHOLE, 4, 901, False),
    ("a model's stream to its last event", MODEL, WHOLE, 3, 201, False),
    ("a model's stream to its first event", MODEL, WHOLE, 2, 101, True),
    ("a large one, and a part of it now", LARGE, WHOLE, 20, 900, True),
    ("two pieces then, one now", THREE, gone(650, 2), 2, 310, True),
    ("two pieces then, nothing now", THREE, gone(650, 2), 0, 5, True),
    ("two pieces then, and two now", THREE, gone(650, 2), 3, 655, False),
    ("the second piece was about to come", THREE, gone(650, 2), 2, 590, False),
    ("nothing then, nothing now", THREE, gone(200, 0, head=False), 0, 100, False),
    ("nothing then, nothing later now", THREE, gone(200, 0, head=False), 0, 5000, False),
    ("a large one, and the client reads faster now", MIBS, gone(266, 3), 3, 140, False),
    ("a large one, and far earlier now", MIBS, gone(3000, 4), 3, 266, True),
    ("28 MiB then, 24 MiB now", LARGE, gone(900, 28), 25, 900, False),
    ("28 MiB then, 8 MiB now", LARGE, gone(900, 28), 9, 900, True),
]


@pytest.mark.parametrize(
    ("response", "left", "taken", "spent_ms", "early"),
    [row[1:] for row in LEAVES],
    ids=[row[0] for row in LEAVES],
)
def test_leaving_before_it_left_then_is_early(
    response: Response, left: Gone | None, taken: int, spent_ms: int, early: bool
) -> None:
    """What the buffers may hold, and what was about to come, make no difference."""
    exchange = make_exchange(response=response, gone=left, end_us=1_000_000)
    steps = Steps(script(exchange, 1.0, None, WAIT_US), gone=left)
    for _ in range(taken):
        steps.take()
    assert left_early(steps, spent_ms * 1000, trailers=False) is early


def test_the_status_of_grpc_counts() -> None:
    """It is in the trailers, behind the last message."""
    steps = Steps(script(make_exchange(response=THREE, end_us=1_000_000), 1.0, None, WAIT_US))
    for _ in range(4):
        steps.take()
    assert left_early(steps, 901_000, trailers=True)


@pytest.mark.parametrize(
    ("status", "taken", "spent_ms", "early"),
    [
        (b"4", 0, 980, False),
        (b"4", 0, 1, True),
        (b"0", 0, 980, True),
        (b"4", 1, 995, False),
        (b"4", 1, 300, True),
        (b"5", 1, 995, True),
    ],
)
def test_a_client_may_run_out_of_time_before_its_server_says_so(
    status: bytes, taken: int, spent_ms: int, early: bool
) -> None:
    """The deadline of gRPC is the same moment on both sides; any other status it would have taken."""
    fields = ((b"Grpc-Status", status),)
    response = replace(make_response(b"", head_us=990_000), headers=fields if not taken else ())
    response = replace(response, trailers=fields if taken else ())
    steps = Steps(script(make_exchange(response=response, end_us=1_000_000), 1.0, None, WAIT_US))
    for _ in range(taken):
        steps.take()
    over = is_out_of_time((*response.headers, *response.trailers))
    assert left_early(steps, spent_ms * 1000, trailers=True, out_of_time=over) is early


@pytest.mark.parametrize(
    ("left", "nothing"),
    [(gone(200, 0, head=False), True), (gone(200, 0), False), (None, False)],
)
def test_a_client_that_left_before_the_head_saw_nothing(left: Gone | None, nothing: bool) -> None:
    """Also where the answer was read on after it had left."""
    assert make_exchange(response=THREE, gone=left).saw_nothing is nothing
    assert make_exchange(response=None, gone=left).saw_nothing is nothing


HEAD, DATA, END, LATE = StepKind.HEAD, StepKind.DATA, StepKind.END, StepKind.LATE
CUT = Fault(FaultKind.CUT, Phase.BODY, RedactedText("cut"), 950_000)


@pytest.mark.parametrize(
    ("left", "fault", "kinds", "last_ms"),
    [
        (gone(200, 0, head=False), None, [LATE], 60_200),
        (gone(350, 1), None, [HEAD, DATA, LATE], 60_350),
        (gone(950, 3), None, [HEAD, DATA, DATA, DATA, END], 1_500),
        (gone(920, 3), CUT, [HEAD, DATA, DATA, DATA, LATE], 60_920),
        (None, None, [HEAD, DATA, DATA, DATA, END], 1_000),
    ],
)
def test_what_the_recorded_client_had_left_is_held_back(
    left: Gone | None, fault: Fault | None, kinds: list[StepKind], last_ms: int
) -> None:
    """All but the mere end of what it had whole."""
    exchange = make_exchange(response=THREE, gone=left, fault=fault, end_us=1_000_000)
    steps = list(script(exchange, 1.0, None, WAIT_US))
    assert [step.kind for step in steps] == kinds
    assert steps[-1].at_us == last_ms * 1000


PART = replace(answer((300, b"one"), (600, b"two")), complete=False)


@pytest.mark.parametrize("served", [True, False], ids=["served", "held"])
@pytest.mark.parametrize(
    ("response", "left", "kinds", "served_kinds", "due_ms", "rest"),
    [
        # The tape has all that the client had taken, and no more.
        (PART, gone(650, 2), [HEAD, DATA, DATA, LATE], [HEAD, DATA, DATA, LATE], 3_300, Rest.NONE),
        # Some came after the client had left; the run ended before the rest.
        (PART, gone(350, 1), [HEAD, DATA, LATE], [HEAD, DATA, DATA, LATE], 1_100, Rest.PART),
        # Nobody read on, and nothing had come: the client may wait as long as it likes.
        (None, gone(350, 0, head=False), [LATE], [LATE], 0, Rest.NONE),
    ],
)  # fmt: skip
def test_nobody_waits_for_ever_for_what_the_tape_does_not_have(
    response: Response | None,
    left: Gone,
    kinds: list[StepKind],
    served_kinds: list[StepKind],
    due_ms: int,
    rest: Rest,
    *,
    served: bool,
) -> None:
    """Also where late answers are served: what there is of one comes, and then it ends."""
    exchange = make_exchange(response=response, gone=left, request_class=RequestClass.INFERENCE)
    last = list(script(exchange, 1.0, None, WAIT_US, served=served))
    assert [step.kind for step in last] == (served_kinds if served else kinds)
    late = last[-1]
    if served:
        came_us = max([left.at_us, *(step.at_us for step in last[:-1])])
        assert (late.at_us, late.rest) == (came_us + WAIT_US, Rest.NONE)
        assert late.due_us == (2 * came_us + 2_000_000 if left.head else 0)
    else:
        assert (late.at_us, late.due_us, late.rest) == (left.at_us + WAIT_US, due_ms * 1000, rest)


@pytest.mark.parametrize(
    ("spent_s", "late"), [(0.7, False), (3.0, False), (3.4, True), (12.0, True)]
)
def test_staying_for_the_rest_of_a_stream_that_is_not_on_the_tape_is_late(
    spent_s: float, late: bool
) -> None:
    """Its recorded self left after 0.65 s; a machine may be slow, and more than that is another client."""
    exchange = make_exchange(response=PART, gone=gone(650, 2))
    steps = Steps(script(exchange, 1.0, None, WAIT_US, served=True), gone=exchange.gone)
    for _ in range(3):
        steps.take()
    assert left_late(steps, int(spent_s * 1e6)) is late


def test_a_stream_of_pushed_events_that_was_left_stays_open() -> None:
    """It has no end of its own, and the playback may take longer than the recording."""
    pushed = answer((300, b"data: 1\n\n"), kind=b"text/event-stream")
    exchange = make_exchange(
        response=replace(pushed, complete=False), gone=gone(400, 1), end_us=400_000
    )
    read = replace(exchange, request_class=RequestClass.READ)
    assert [step.kind for step in script(read, 1.0, None, WAIT_US)][-1] is StepKind.HANG
    model = replace(exchange, request_class=RequestClass.INFERENCE)
    assert [step.kind for step in script(model, 1.0, None, WAIT_US)][-1] is LATE


@pytest.mark.parametrize(
    ("came_ms", "left_ms", "spent_ms", "late"),
    [
        (3000, 1000, 1000, False),
        (3000, 1000, 2900, False),
        (3000, 1000, 3600, True),
        (3000, 1000, 30_000, True),
        (1050, 1000, 1400, False),
        (10_050, 10_000, 12_900, False),
        (10_050, 10_000, 13_100, True),
    ],
)
def test_leaving_after_the_answer_would_have_come_is_late(
    came_ms: int, left_ms: int, spent_ms: int, late: bool
) -> None:
    """Its recorded self had left before; a client that left a little later than that would have left first again."""
    response = replace(THREE, head_us=came_ms * 1000)
    exchange = make_exchange(response=response, gone=gone(left_ms, 0, head=False))
    steps = Steps(script(exchange, 1.0, late_wait_us=WAIT_US), gone=exchange.gone)
    assert left_late(steps, spent_ms * 1000) is late


def test_without_an_answer_no_leaving_is_late() -> None:
    """What never came would not have come now."""
    exchange = make_exchange(response=None, gone=gone(1000, 0, head=False))
    steps = Steps(script(exchange, 1.0, late_wait_us=WAIT_US), gone=exchange.gone)
    assert not left_late(steps, 30_000_000)
