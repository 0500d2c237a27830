"""At which requests an agent is held."""

from dataclasses import replace

import pytest

from playhead.config import Answer, Config
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.policy.branch import HYPOTHETICAL, parse_route
from playhead.tape.policy.breakpoints import parse_breakpoint
from playhead.tape.policy.decide import Action, Decision, Facts
from playhead.tests.support.exchanges import make_request

READ, EFFECT, TELEMETRY = RequestClass.READ, RequestClass.EFFECT, RequestClass.TELEMETRY
ORDER, REFUND = "GET https://shop.test/orders/7", "POST https://pay.test/v1/refunds"
SERVED = Decision(Action.SERVE, "on tape", "tape", Seq(4))
REFUSED = Decision(Action.REFUSE, "not on the tape", "not on tape")
STUBBED = Decision(Action.STUB, "made up", "playback.effects")
SUPPOSED = replace(STUBBED, answer=Answer(200, (), b"", HYPOTHETICAL))
LIVE = Decision(Action.LIVE, "live", "live")
BOXED = replace(LIVE, route=parse_route(f"{REFUND}=http://127.0.0.1:9", "r"))


@pytest.mark.parametrize(
    ("point", "what", "kind", "decision", "seq", "hits"),
    [
        # The exchange of the tape that answers, whichever request of the run it is.
        ("4", ORDER, READ, SERVED, 4, True),
        ("4", ORDER, READ, SERVED, 5, False),
        ("4", ORDER, READ, REFUSED, None, False),
        ("4", ORDER, READ, SUPPOSED, 4, True),
        # Effects, whatever answers them.
        ("effect", REFUND, EFFECT, SERVED, 4, True),
        ("effect", REFUND, EFFECT, BOXED, None, True),
        ("effect", ORDER, READ, SERVED, 4, False),
        # What the tape does not hold; what was declared for it is none.
        ("divergence", REFUND, EFFECT, STUBBED, None, True),
        ("divergence", ORDER, READ, REFUSED, None, True),
        ("divergence", ORDER, READ, SERVED, 4, False),
        ("divergence", ORDER, READ, LIVE, None, False),
        ("divergence", ORDER, READ, SUPPOSED, None, False),
        # What a pattern names, or may name.
        ("GET https://shop.test/orders/*", ORDER, READ, SERVED, 4, True),
        ("https://shop.test", ORDER, READ, REFUSED, None, True),
        ("POST https://shop.test", ORDER, READ, SERVED, 4, False),
        # Telemetry and what is for Playhead itself never.
        ("https://shop.test", ORDER, TELEMETRY, SERVED, 4, False),
        ("https://shop.test", ORDER, READ, replace(SERVED, action=Action.CONTROL), None, False),
    ],
)  # fmt: skip
def test_a_breakpoint_hits(
    point: str, what: str, kind: RequestClass, decision: Decision, seq: int | None, hits: bool
) -> None:
    """By what was decided, before anything is done."""
    facts, _ = Facts.of_request(make_request(what), Config().classes)
    facts = facts._replace(request_class=kind)
    tape_seq = None if seq is None else Seq(seq)
    assert parse_breakpoint(point).hits(facts, decision, tape_seq) is hits


@pytest.mark.parametrize("text", ["", "0", "-1", "effects", "shop.test/orders", "1.5"])
def test_what_is_no_breakpoint_is_told(text: str) -> None:
    """With what would be one."""
    with pytest.raises(ValueError, match="expected"):
        parse_breakpoint(text)
