"""What a playback knows of its tape beside the cursor: the order of completion, cut requests, endpoints and the index."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from playhead.addons.run.playback_state import CompletionOrder, PlaybackState, read_recorded
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode
from playhead.store import Store
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import make_request, make_response
from playhead.tests.support.recordings import record_run

URL = make_request().url.partition("?")[0]


@pytest.fixture
def playback(store_dir: Path) -> Iterator[PlaybackState]:
    with Store.open(store_dir) as store:
        asked = [(replace(make_request(), body=body), make_response(b"x")) for body in (b"1", b"2")]
        tape = record_run(store, "tape", asked, kind=RequestClass.EFFECT)
        made = OpenRun(Mode.PLAYBACK, Config(), Redactor(b"key"), store, None, tape).playback
        assert made is not None
        yield made


@pytest.mark.parametrize(
    ("find", "expected"),
    [
        (lambda state: state.read_recorded(Seq(2)).request.body, b"2"),
        (lambda state: state.read_recorded(Seq(3)), None),
        (lambda state: read_recorded(state.store, state.tape, Seq(3)), None),
        (lambda state: state.find_endpoints() is state.find_endpoints(), True),
        (lambda state: state.cuts["GET", URL], 0),
        (lambda state: state.cuts is state.cuts, True),
        (lambda state: state.effect_key_of(state.read_recorded(Seq(1))) is None, False),
        (lambda state: state.completion.find_before(Seq(2)), ()),
    ],
)
def test_what_is_known_of_a_tape(
    playback: PlaybackState, find: Callable[[PlaybackState], object], expected: object
) -> None:
    """Read once, when it is first asked for."""
    assert find(playback) == expected


def test_an_index_of_now_finds_the_same(playback: PlaybackState) -> None:
    """Whether the tape's own index is used or one under the rules of now, a request is found under its fingerprint."""
    recorded = playback.read_recorded(Seq(2))
    assert recorded is not None
    own = playback.fingerprint_of(recorded)
    before = playback.find_recorded(recorded.request, RequestClass.EFFECT, own, repeat=False)
    playback.reindex()
    assert playback.fingerprint_of(recorded) == own
    after = playback.find_recorded(recorded.request, RequestClass.EFFECT, own, repeat=False)
    assert before == after


def test_an_order_that_is_not_known_notes_nothing() -> None:
    """Without overlaps on the tape nobody waits for an answer, so that none is remembered."""
    order = CompletionOrder()
    order.note(Seq(1), 2.0)
    assert order.answered == {}
    order._before = {Seq(2): (Seq(1),)}
    order.note(Seq(1), 2.0)
    assert (order.answered, order.find_before(Seq(2))) == ({Seq(1): 2.0}, (Seq(1),))
