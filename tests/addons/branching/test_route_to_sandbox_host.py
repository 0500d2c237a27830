"""Where a request goes that a branch routes to a sandbox, and that all others go where they went."""

from dataclasses import replace

import pytest

from playhead.addons.branching.route_to_sandbox_host import SendToSandbox
from playhead.addons.run.pending_exchange import PendingExchange
from playhead.config import Mode
from playhead.tape.exchange import RequestClass
from playhead.tape.policy.branch import SandboxRoute, parse_route
from playhead.tape.policy.decide import Action
from playhead.tests.support.pending import NotedRun, make_pending

REFUND = "POST https://pay.test/v1/refunds?a=b"
COPY = parse_route("POST https://pay.test/v1/refunds=http://127.0.0.1:9000/copy", "a copy")


def decided(
    route: SandboxRoute | None, action: Action = Action.LIVE, *, forwarded: bool = True
) -> PendingExchange:
    """A request on which this was decided."""
    run = NotedRun(mode=Mode.PLAYBACK)
    pending = make_pending(run, REFUND, RequestClass.EFFECT, action=action)
    assert pending.decision is not None
    pending.decide(replace(pending.decision, route=route))
    if forwarded:
        pending.progress.forward()
    return pending


def went(pending: PendingExchange) -> str:
    """Have it be sent; give where to."""
    SendToSandbox().request(pending.flow)
    return str(pending.flow.request.url)


def test_it_goes_to_the_sandbox_with_its_path_and_query() -> None:
    """The path of the sandbox stands before its own, and the field that names the host is right."""
    pending = decided(COPY)
    pending.flow.request.headers["host"] = "pay.test"
    assert went(pending) == "http://127.0.0.1:9000/copy/v1/refunds?a=b"
    assert pending.flow.request.headers["host"] == "127.0.0.1:9000"
    # What is kept is what the agent asked.
    assert pending.request is not None
    assert pending.request.url == "https://pay.test/v1/refunds?a=b"
    assert pending.facts.host == "pay.test"


@pytest.mark.parametrize(
    "pending",
    [
        decided(None),
        decided(COPY, Action.REFUSE),
        decided(COPY, Action.HOLD),
        decided(COPY, forwarded=False),
    ],
    ids=["no route", "refused", "held", "its intent is not logged"],
)
def test_nothing_else_is_led_elsewhere(pending: PendingExchange) -> None:
    """What does not leave stays as it is."""
    assert went(pending) == "https://pay.test/v1/refunds?a=b"
