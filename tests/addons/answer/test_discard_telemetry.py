"""What telemetry is answered that is not on the tape: an empty success, or the failure of a machine that is offline."""

import pytest

from playhead.addons.answer.discard_telemetry import discarded, offline_steps
from playhead.config import Mode
from playhead.tape.exchange import Ending, FaultKind, Phase, RequestClass
from playhead.tape.playback.script import StepKind
from playhead.tests.support.pending import NotedRun, make_pending


@pytest.mark.parametrize(
    ("what", "status", "failed"),
    [
        ("POST https://us.posthog.com/batch", 200, False),
        ("POST https://telemetry.test/v1/traces", 200, False),
        ("PUT https://telemetry.test/x", 200, False),
        ("GET https://us.posthog.com/decide", 502, True),
        ("HEAD https://us.posthog.com/", 502, True),
        ("OPTIONS https://us.posthog.com/", 502, True),
    ],
)
def test_what_is_sent_is_taken_and_what_is_asked_fails(
    what: str, status: int, failed: bool
) -> None:
    """As a name that nobody resolves; the head of that is never played."""
    pending = make_pending(NotedRun(mode=Mode.PLAYBACK), what, RequestClass.TELEMETRY)
    assert pending.request is not None
    answer, fault = discarded(pending, pending.request)
    assert answer.status_code == status
    assert (fault is not None) is failed
    if fault is not None:
        assert (fault.kind, fault.phase, fault.ending) == (
            FaultKind.DNS,
            Phase.CONNECT,
            Ending.RST,
        )
    else:
        assert answer.headers["x-playhead"].startswith("discarded")


def test_offline_is_an_end_without_an_answer() -> None:
    """One step: the connection is reset."""
    assert [(step.kind, step.ending) for step in offline_steps().rest()] == [
        (StepKind.FAIL, Ending.RST)
    ]
