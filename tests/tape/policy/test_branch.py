"""What is done with a request of a branch: the policy as a table, and how its words are read."""

from dataclasses import replace

import pytest

from playhead.config import Answer, Config, EffectRule, Gate, LiveRule, Mode, loads, parse_match
from playhead.config.parse_values import parse_host
from playhead.tape.exchange import RequestClass, Seq, VerdictKind
from playhead.tape.matching.cursor import Exhausted, Hit, Unknown
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tape.policy.branch import (
    HYPOTHETICAL,
    Branch,
    BranchPoint,
    HypotheticalAnswer,
    parse_live_class,
    parse_route,
)
from playhead.tape.policy.decide import Action, Constraints, Drifted, Facts, Found, Policy, decide
from playhead.tape.policy.revise import Ruled, Supposed, revise
from playhead.tests.support.exchanges import make_exchange, make_request

INFERENCE, READ, EFFECT, TELEMETRY = (
    RequestClass.INFERENCE,
    RequestClass.READ,
    RequestClass.EFFECT,
    RequestClass.TELEMETRY,
)
ANSWER = Answer(200, (), b"{}", HYPOTHETICAL)
ROUTE = parse_route("POST https://pay.test/refunds=http://127.0.0.1:9000/copy", "a copy")
BRANCH = Branch(
    Seq(5),
    (
        (LiveRule(parse_match("* *://api.openai.com"), "a fix"), INFERENCE),
        (LiveRule(parse_match("* *://docs.test"), "fresh docs"), READ),
    ),
    (ROUTE,),
    (HypotheticalAnswer(parse_match("GET https://shop.test/orders/*"), ANSWER),),
)
CHAT = "POST https://api.openai.com/v1/chat/completions"
REFUND = "POST https://pay.test/refunds"
CHARGE = "POST https://pay.test/charges"
ORDER = "GET https://shop.test/orders/8"
HIT, NEVER, EXHAUSTED = Hit(Seq(7)), Unknown(), Exhausted(Seq(7), 1)
DRIFTED = Drifted(Seq(7), "drifted: system")
BEFORE, BEHIND = Constraints(awaited=Seq(5)), Constraints()


def facts(what: str, kind: RequestClass) -> Facts:
    request = make_request(what)
    found, _ = Facts.of_request(request, Config().classes)
    return found._replace(request_class=kind, classes=frozenset({kind}))


@pytest.mark.parametrize(
    ("what", "kind", "found", "now", "verdict", "reason"),
    [
        # What the tape has comes from it, before and behind the point, whatever is declared.
        (CHAT, INFERENCE, HIT, BEFORE, "served", "on tape"),
        (CHAT, INFERENCE, HIT, BEHIND, "served", "on tape"),
        (REFUND, EFFECT, HIT, BEHIND, "served", "on tape"),
        (ORDER, READ, HIT, BEHIND, "served", "on tape"),
        # Nothing is sent, made up or taken from a file before the point.
        (CHAT, INFERENCE, NEVER, BEFORE, "refused", "sends nothing before exchange 5"),
        (CHAT, INFERENCE, DRIFTED, BEFORE, "refused", "sends nothing before exchange 5"),
        (CHAT, INFERENCE, EXHAUSTED, BEFORE, "refused", "sends nothing before exchange 5"),
        (REFUND, EFFECT, NEVER, BEFORE, "refused", "sends nothing before exchange 5"),
        (CHARGE, EFFECT, NEVER, BEFORE, "refused", "sends nothing before exchange 5"),
        (ORDER, READ, NEVER, BEFORE, "refused", "sends nothing before exchange 5"),
        ("POST https://metrics.test/emit", TELEMETRY, NEVER, BEFORE, "discarded", "telemetry"),
        # Behind it, what was declared.
        (CHAT, INFERENCE, NEVER, BEHIND, "live", "a fix"),
        (CHAT, INFERENCE, DRIFTED, BEHIND, "live", "a fix"),
        (CHAT, INFERENCE, EXHAUSTED, BEHIND, "live", "a fix"),
        ("GET https://docs.test/a", READ, NEVER, BEHIND, "live", "fresh docs"),
        (REFUND, EFFECT, NEVER, BEHIND, "sandboxed", "sent to the sandbox http://127.0.0.1:9000/copy: a copy"),
        (ORDER, READ, NEVER, BEHIND, "hypothetical", "not on tape; as given for"),
        # What was not is refused by name, and never goes live.
        ("POST https://api.anthropic.com/v1/messages", INFERENCE, NEVER, BEHIND, "refused", "declares nothing that answers it"),
        (CHAT, EFFECT, NEVER, BEHIND, "refused", "declares nothing"),
        ("GET https://other.test/a", READ, NEVER, BEHIND, "refused", "declares nothing"),
        (CHARGE, EFFECT, NEVER, BEHIND, "refused", "declares nothing"),
        ("DELETE https://docs.test/a", EFFECT, NEVER, BEHIND, "refused", "declares nothing"),
        (REFUND.replace("https", "http"), EFFECT, NEVER, BEHIND, "refused", "declares nothing"),
        # What nobody has looked for on the tape goes nowhere.
        (CHAT, INFERENCE, None, BEHIND, "refused", "cannot look for on its tape"),
        (REFUND, EFFECT, None, BEHIND, "refused", "cannot look for on its tape"),
        # A limit ends it, a contract refuses it.
        (CHAT, INFERENCE, NEVER, replace(BEHIND, spent="no more"), "refused", "no more"),
        (REFUND, EFFECT, NEVER, replace(BEHIND, spent="no more"), "refused", "no more"),
        (REFUND, EFFECT, NEVER, replace(BEHIND, violation="wrong", contract="x"), "refused", "wrong"),
        # An effect is stubbed, as in any playback.
        (CHARGE, EFFECT, NEVER, replace(BEHIND, model=True), "stubbed", "pattern of recorded answers"),
    ],
)  # fmt: skip
def test_a_branch_decides(
    what: str,
    kind: RequestClass,
    found: Found | None,
    now: Constraints,
    verdict: str,
    reason: str,
) -> None:
    """By what its tape holds, whether it is past its point, and what it declares."""
    decision = decide(facts(what, kind), Mode.PLAYBACK, Policy.of(Config(), BRANCH), found, now)
    assert (decision.verdict.value, reason in decision.reason) == (verdict, True), decision


def test_no_live_rule_of_the_configuration_holds_in_a_branch() -> None:
    """They would go before the tape."""
    config = loads(
        "live: [{match: 'https://pay.test', reason: r}]\n"
        "playback: {inference: {live: {hosts: [api.openai.com], reason: r}}}"
    )
    policy = Policy.of(config, Branch(Seq(5)))
    for what, kind in ((CHARGE, EFFECT), (CHAT, INFERENCE)):
        assert decide(facts(what, kind), Mode.PLAYBACK, policy, HIT, BEHIND).action is Action.SERVE
        found = decide(facts(what, kind), Mode.PLAYBACK, policy, NEVER, BEHIND)
        assert found.action is Action.REFUSE
    assert policy.without_live(Policy.of(Config())) is policy


def test_a_gate_lets_go_to_the_sandbox_and_nowhere_else() -> None:
    """What was held keeps where it goes."""
    rule = EffectRule(parse_match(REFUND), gate=Gate())
    policy = Policy.of(Config(effects=(rule,)), BRANCH)
    held = decide(facts(REFUND, EFFECT), Mode.PLAYBACK, policy, NEVER, BEHIND)
    assert (held.action, held.then, held.route) == (Action.HOLD, Action.LIVE, ROUTE)
    approved = revise(held, Ruled(ApprovalDecision(Ruling.APPROVED, "ann", "page")))
    assert (approved.verdict, approved.route) == (VerdictKind.SANDBOXED, ROUTE)
    denied = revise(held, Ruled(ApprovalDecision(Ruling.DENIED, "ann", "page")))
    assert denied.verdict is VerdictKind.REFUSED


def test_another_answer_at_the_point_is_called_hypothetical() -> None:
    """Once the tape was found to have one."""
    served = decide(facts(CHAT, INFERENCE), Mode.PLAYBACK, Policy.of(Config(), BRANCH), HIT, BEFORE)
    made = revise(served, Supposed(Seq(7), ANSWER))
    assert (made.verdict, made.answer) == (VerdictKind.HYPOTHETICAL, ANSWER)
    assert made.reason == "in the place of the answer of tape seq 7"


def test_a_branch_comes_to_its_point_once() -> None:
    """And a playback that is none never does."""
    point = BranchPoint(BRANCH)
    assert [point.reach(Seq(seq)) for seq in (4, 6, 5, 5)] == [False, False, True, False]
    served = {Seq(1)}
    # Nothing leaves before it is known what comes before it.
    assert (point.reached, point.find_awaited(served.__contains__)) == (False, 5)
    point.wait_for(frozenset({Seq(1), Seq(2), Seq(3)}))
    assert (point.reached, point.find_awaited(served.__contains__)) == (True, 2)
    served |= {Seq(3), Seq(2)}
    assert point.find_awaited(served.__contains__) is None
    assert BranchPoint(None).find_awaited(served.__contains__) is None
    assert not BranchPoint(None).reach(Seq(5))


@pytest.mark.parametrize(
    ("text", "place", "target"),
    [
        ("https://a.test=http://127.0.0.1:9", "http://127.0.0.1:9", "/x?y"),
        ("POST https://a.test/v1/*=https://b.test", "https://b.test:443", "/x?y"),
        ("POST https://a.test/v1?k=v=http://b.test/copy/", "http://b.test:80/copy", "/copy/x?y"),
        ("https://a.test=http://[::1]:9", "http://[::1]:9", "/x?y"),
    ],
)
def test_a_route_is_read(text: str, place: str, target: str) -> None:
    """A pattern, and where what it means is sent."""
    route = parse_route(text, "r")
    assert (route.place, route.target("/x?y")) == (place, target)


def test_a_class_is_read() -> None:
    """With its hosts, each once; or without."""
    assert parse_live_class("inference=a.test,b.test, a.test", parse_host) == (
        INFERENCE,
        ("a.test", "b.test"),
    )
    assert parse_live_class("read", parse_host) == (READ, ())


@pytest.mark.parametrize(
    ("what", "kind", "leaves"),
    [
        (CHAT, INFERENCE, True),
        (CHAT, READ, False),
        (REFUND, EFFECT, True),
        (REFUND, INFERENCE, True),
        (CHARGE, EFFECT, False),
        (ORDER, READ, False),
        ("GET https://docs.test/a", READ, True),
    ],
)
def test_what_a_branch_may_send_of_its_tape(what: str, kind: RequestClass, leaves: bool) -> None:
    """What is live, and what a route names whatever its class; this is what its price is made of."""
    recorded = make_exchange(what=what, kind=kind)
    assert BRANCH.declares_way_out(recorded) == leaves
    given = (HypotheticalAnswer(parse_match("* *://*/*"), ANSWER),)
    assert not replace(BRANCH, answers=given).declares_way_out(recorded)
