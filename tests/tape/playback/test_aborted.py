"""What was aborted by us is played as an abort, whatever came of it afterwards."""

from dataclasses import replace

import pytest

from playhead.tape.exchange import Chunk, Ending, FaultKind, Gone, Phase, Response
from playhead.tape.playback.aborted import as_delivered
from playhead.tape.playback.script import StepKind, script
from playhead.tests.support.exchanges import make_exchange, make_response

CHUNKS = (Chunk(1_000, 2), Chunk(9_000, 3))
LATE = make_response(b"abcde", chunks=CHUNKS)


@pytest.mark.parametrize(
    ("gone", "response", "kinds", "kind"),
    [
        (Gone(500, 0, head=False, aborted=True), LATE, [StepKind.FAIL], FaultKind.RESET),
        (Gone(500, 0, head=False, aborted=True), None, [StepKind.FAIL], FaultKind.RESET),
        (
            Gone(2_000, 1, head=True, aborted=True),
            LATE,
            [StepKind.HEAD, StepKind.DATA, StepKind.FAIL],
            FaultKind.CUT,
        ),
    ],
)
def test_an_abort_is_played_where_it_was(
    gone: Gone, response: Response | None, kinds: list[StepKind], kind: FaultKind
) -> None:
    """Nothing waits for the client to leave by itself, and it sees no more than its recorded self did."""
    recorded = replace(make_exchange(1), response=response, gone=gone)
    seen = as_delivered(recorded)
    assert [step.kind for step in script(seen, 1, late_wait_us=1)] == kinds
    assert seen.fault is not None
    assert (seen.fault.kind, seen.fault.ending, seen.fault.at_us) == (kind, Ending.RST, gone.at_us)
    assert seen.fault.phase is (Phase.BODY if kind is FaultKind.CUT else Phase.HEAD)
    if seen.response is not None:
        assert seen.response.body == b"ab"


def test_who_left_by_itself_is_waited_for() -> None:
    """As before."""
    recorded = replace(make_exchange(1), gone=Gone(500, 0, head=False))
    assert as_delivered(recorded) is recorded
