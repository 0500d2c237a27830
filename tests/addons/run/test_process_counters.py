"""What a process counts of its requests: by mode, class and what was done."""

import pytest

from playhead.addons.run.process_counters import UNDECIDED, Counters
from playhead.config import Mode
from playhead.tape.exchange import Fault, FaultKind, Phase, RedactedText, RequestClass
from playhead.tape.policy.decide import Action, Decision

FAULT = Fault(FaultKind.DNS, Phase.CONNECT, RedactedText("no such host"), 1)


@pytest.mark.parametrize(
    ("action", "counted"),
    [
        (Action.CONTROL, "control"),
        (Action.FORWARD, "forwarded"),
        (Action.LIVE, "live"),
        (Action.SERVE, "served"),
        (Action.STUB, "stubbed"),
        (Action.DISCARD, "discarded"),
        (Action.REFUSE, "refused"),
        (Action.HOLD, UNDECIDED),
        (None, UNDECIDED),
    ],
)
def test_a_request_is_counted_by_what_was_done(action: Action | None, counted: str) -> None:
    """What ended while it was held, or before anything was decided, is undecided."""
    counters = Counters()
    decision = None if action is None else Decision(action, "why", "mode")
    counters.add(Mode.PLAYBACK, RequestClass.READ, decision, None)
    assert counters.requests == {("playback", "read", counted): 1}
    assert not counters.faults


def test_every_action_has_a_name() -> None:
    """But holding, which is never how a request ends."""
    counters = Counters()
    for action in Action:
        counters.add(Mode.RECORD, RequestClass.EFFECT, Decision(action, "", "mode"), None)
    undecided = [key for key in counters.requests if key[2] == UNDECIDED]
    assert len(undecided) == 1
    assert counters.requests.total() == len(Action)


def test_faults_are_counted_by_their_kind() -> None:
    """Beside the request; each class and mode apart."""
    counters = Counters()
    forward = Decision(Action.FORWARD, "", "mode")
    for mode in Mode:
        for kind in RequestClass:
            counters.add(mode, kind, forward, FAULT)
    assert counters.faults == {"dns": len(Mode) * len(RequestClass)}
    assert len(counters.requests) == len(Mode) * len(RequestClass)
    assert set(counters.requests.values()) == {1}
