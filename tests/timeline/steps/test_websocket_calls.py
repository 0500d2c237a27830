"""Model calls of WebSockets, and where they are in a playback."""

from dataclasses import replace

from playhead.tests.support.socket_tapes import refund
from playhead.timeline.steps.step import StepKind
from playhead.timeline.steps.tracer import Tracer
from playhead.timeline.steps.websocket_calls import renumber_arrivals, split_websocket


def test_messages_of_a_tape_come_behind_the_requests_of_a_playback_that_they_came_behind() -> None:
    """Its own requests, that no tape answered, have other seqs."""
    exchanges, messages = refund()
    own = [(1, 2), (2, 5), (3, 4)]
    calls = split_websocket(exchanges[0], renumber_arrivals(messages, 2, own))
    assert [one.after for one in calls] == [2, 5, 5]


def test_messages_without_an_order_of_arrival_stay_without() -> None:
    """Times say then what was before."""
    exchanges, messages = refund(known=False)
    calls = split_websocket(exchanges[0], renumber_arrivals(messages, 1, [(1, 1), (2, 2)]))
    assert [one.after for one in calls] == [0, 0, 0]


def test_a_playback_faster_than_its_tape_has_the_order_of_the_tape() -> None:
    """Its messages have the times that they had on the tape, its other requests those of the playback."""
    exchanges, messages = refund()
    began = exchanges[0].started_ns
    fast = [replace(one, started_ns=began + one.seq) for one in exchanges]
    tracer, steps = Tracer(), []
    for one in fast:
        steps += tracer.add(one, messages if one.websocket else ())
    steps += tracer.end()
    kinds = (StepKind.MODEL_CALL, StepKind.HTTP)
    asked = [(one.seq, one.part) for one in steps if one.kind in kinds]
    assert asked == [(1, 0), (1, 1), (2, 0), (1, 2), (3, 0), (1, 3)]
