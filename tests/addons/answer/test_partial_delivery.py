"""What is noted of a client that leaves an answer of the tape."""

import time

import pytest

from playhead.addons.answer.partial_delivery import note_left
from playhead.addons.run.exchange_parts.arrival import Arrival
from playhead.config import Mode
from playhead.tape.exchange import Gone, RequestClass
from playhead.tape.playback.script import Steps, script
from playhead.tape.records.events import EventKind
from playhead.tests.support.exchanges import make_exchange, make_response
from playhead.tests.support.pending import NotedRun, make_pending

EFFECT, READ = RequestClass.EFFECT, RequestClass.READ
WHAT = "POST https://api.test/payments"


@pytest.mark.parametrize(
    ("kind", "now_s", "warned"),
    [
        (EFFECT, 0.06, True),
        (EFFECT, 1.0, False),
        (EFFECT, 1.52, False),
        (EFFECT, 2.0, False),
        (EFFECT, 2.6, True),
        (READ, 0.06, False),
    ],
)
def test_a_far_other_wait_for_an_effect_that_is_given_up_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, kind: RequestClass, now_s: float, warned: bool
) -> None:
    """Its client gave up after 1.5 s, and its answer came after 4: that is no divergence, either way."""
    gone = Gone(1_500_000, 0, head=False)
    response = make_response(head_us=4_000_000)
    recorded = make_exchange(1, WHAT, kind=kind, response=response, gone=gone)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0 + now_s)
    run = NotedRun(mode=Mode.PLAYBACK)
    pending = make_pending(run, WHAT, kind)
    pending.arrival = Arrival()
    pending.arrival.t0 = 100.0
    pending.playing.play(Steps(script(recorded, 0, None, 60_000_000), gone=gone))
    note_left(pending)
    texts = [data["text"] for event, data in run.noted if event is EventKind.NOTED]
    assert not [event for event, _ in run.noted if event is EventKind.DIVERGED]
    assert len(texts) == warned
    if warned:
        assert texts[0].startswith(
            f"seq 1: its client gave up this effect after {now_s:.1f} s, and after 1.5 s"
        )
