"""Which requests are on their way while another comes."""

from collections.abc import Callable

import pytest

from playhead.addons.answer.request_order import _MOST_OVERLAPS, find_overlaps
from playhead.addons.run.pending_exchange import PendingExchange, WebSocket
from playhead.tape.exchange import Gone, RequestClass
from playhead.tests.support.pending import NotedRun, make_pending


def stream(pending: PendingExchange) -> None:
    """Have its answer be a stream of events."""
    pending.answer.describe(event_stream=True, announced=-1)


@pytest.mark.parametrize(
    ("kind", "change", "counts"),
    [
        (RequestClass.READ, None, True),
        (RequestClass.EFFECT, None, True),
        (RequestClass.INFERENCE, None, True),
        (RequestClass.TELEMETRY, None, False),
        (RequestClass.READ, stream, False),
        (RequestClass.INFERENCE, stream, True),
        (RequestClass.READ, lambda one: one.progress.leave(Gone(1, 0, head=False)), False),
        (RequestClass.READ, lambda one: one.become(WebSocket()), False),
        (RequestClass.READ, lambda one: one.finish(), False),
    ],
)
def test_a_request_overlaps_what_its_agent_waits_for(
    kind: RequestClass, change: Callable[[PendingExchange], None] | None, counts: bool
) -> None:
    """Not what is pushed to it, nor what it has left."""
    open_run = NotedRun()
    pending = make_pending(open_run, kind=kind, seq=7)
    if change is not None:
        change(pending)
    assert find_overlaps(open_run) == ((7,) if counts else ())


def test_overlaps_are_in_their_order_and_bounded() -> None:
    """However many there are."""
    open_run = NotedRun()
    kept = [make_pending(open_run, seq=seq) for seq in (3, 1, 2)]
    assert find_overlaps(open_run) == (1, 2, 3)
    kept += [make_pending(open_run, seq=seq) for seq in range(4, 200)]
    found = find_overlaps(open_run)
    assert len(found) == _MOST_OVERLAPS
    assert list(found) == sorted(found)
