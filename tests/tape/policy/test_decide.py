"""What is done with a request: the policy as a table, first row that fits wins.

A row: mode, request, class, rules, what the cursor found, action, and a word of the reason.
"""

import dataclasses
import itertools
from dataclasses import replace

import pytest

from playhead.config import (
    Answer,
    ClassLive,
    Config,
    EffectRule,
    Gate,
    LiveRule,
    Mode,
    ModelDrift,
    Playback,
    ReadRule,
    loads,
    parse_match,
)
from playhead.tape.exchange import Repeat, RepeatKind, RequestClass, Seq
from playhead.tape.matching.cursor import Exhausted, Hit, Unknown
from playhead.tape.policy.decide import (
    UNCONSTRAINED,
    Action,
    Constraints,
    Decision,
    Drifted,
    Facts,
    Found,
    Policy,
    decide,
)
from playhead.tests.support.exchanges import make_request

RECORD, PLAYBACK, PASSTHROUGH = Mode.RECORD, Mode.PLAYBACK, Mode.PASSTHROUGH
INFERENCE, READ, EFFECT, TELEMETRY = (
    RequestClass.INFERENCE,
    RequestClass.READ,
    RequestClass.EFFECT,
    RequestClass.TELEMETRY,
)
CONTROL, FORWARD, LIVE, SERVE, STUB, DISCARD, REFUSE = (
    Action.CONTROL,
    Action.FORWARD,
    Action.LIVE,
    Action.SERVE,
    Action.STUB,
    Action.DISCARD,
    Action.REFUSE,
)
ON_TAPE, AGAIN = Hit(Seq(7)), Hit(Seq(7), repeated=True)
EXHAUSTED, NEVER, NO_TAPE = Exhausted(Seq(7), 2), Unknown(), None

OPT_IN = ModelDrift("m", "m")
DRIFTED = Drifted(Seq(7), "drifted: seed")
ALLOWED = Drifted(Seq(7), "on tape but for seed", allowed=(OPT_IN,))

ANSWER = Answer(200, (("content-type", "application/json"),), b"{}")
REFUNDS = EffectRule(parse_match("POST https://pay.test/refunds"), ANSWER)
MUTE = EffectRule(parse_match("POST https://pay.test/refunds"))

RULES = {
    "none": Config(),
    "live emit": Config(live=(LiveRule(parse_match("POST https://metrics.test/emit"), "metrics"),)),
    "stub refunds": Config(effects=(REFUNDS,)),
    "effect rule without answer": Config(effects=(MUTE,)),
    "effects: refuse": Config(effects=(REFUNDS,), playback=Playback(effects="refuse")),
    "inference live": Config(
        playback=Playback(inference=ClassLive(("api.openai.com",), "new prompt"))
    ),
    "reads live": Config(playback=Playback(reads=ClassLive(("*.docs.test",), "fresh docs"))),
}

EMIT = "POST https://metrics.test/emit"
CHAT = "POST https://api.openai.com/v1/chat/completions"
REFUND = "POST https://pay.test/refunds"
PAGE = "GET https://a.docs.test/page"


@pytest.mark.parametrize(
    ("mode", "what", "kind", "rules", "found", "action", "reason"),
    [
        # The control host is Playhead itself, in every mode, whatever else is said.
        (RECORD, "GET http://playhead.internal/run", READ, "none", None, CONTROL, "control host"),
        (PLAYBACK, "GET http://playhead.internal/run", READ, "none", NEVER, CONTROL, "control host"),
        (PASSTHROUGH, "GET http://playhead.internal/run", READ, "none", None, CONTROL, "control host"),
        (RECORD, "GET http://PLAYHEAD.Internal./run", READ, "none", None, CONTROL, "control host"),
        # Recording and passing through forward everything.
        (RECORD, REFUND, EFFECT, "none", None, FORWARD, "mode record"),
        (RECORD, REFUND, EFFECT, "stub refunds", None, FORWARD, "mode record"),
        (RECORD, CHAT, INFERENCE, "none", None, FORWARD, "mode record"),
        (PASSTHROUGH, REFUND, EFFECT, "none", None, FORWARD, "mode passthrough"),
        # A live rule goes before the tape, for exactly what it names.
        (PLAYBACK, EMIT, EFFECT, "live emit", ON_TAPE, LIVE, "metrics"),
        (PLAYBACK, EMIT, EFFECT, "live emit", NEVER, LIVE, "metrics"),
        (PLAYBACK, EMIT, EFFECT, "live emit", NO_TAPE, LIVE, "metrics"),
        (PLAYBACK, "GET https://metrics.test/emit", READ, "live emit", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, "POST http://metrics.test/emit", EFFECT, "live emit", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, "POST https://metrics.test:8443/emit", EFFECT, "live emit", NEVER, REFUSE, "not on"),
        (PLAYBACK, "POST https://metrics.test/emit/x", EFFECT, "live emit", NEVER, REFUSE, "not on"),
        (PLAYBACK, "POST https://xmetrics.test/emit", EFFECT, "live emit", NEVER, REFUSE, "not on"),
        # A live class: its hosts, and its class alone.
        (PLAYBACK, CHAT, INFERENCE, "inference live", ON_TAPE, LIVE, "new prompt"),
        (PLAYBACK, CHAT, EFFECT, "inference live", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, "POST https://api.anthropic.com/v1/messages", INFERENCE, "inference live", ON_TAPE, SERVE, "on tape"),
        (PLAYBACK, "POST https://api.anthropic.com/v1/messages", INFERENCE, "inference live", NEVER, REFUSE, "not on"),
        (PLAYBACK, PAGE, READ, "reads live", NEVER, LIVE, "fresh docs"),
        (PLAYBACK, "POST https://a.docs.test/page", EFFECT, "reads live", NEVER, REFUSE, "not on the tape"),
        # The tape answers, every class alike; telemetry also again.
        (PLAYBACK, CHAT, INFERENCE, "none", ON_TAPE, SERVE, "on tape"),
        (PLAYBACK, PAGE, READ, "none", ON_TAPE, SERVE, "on tape"),
        (PLAYBACK, REFUND, EFFECT, "none", ON_TAPE, SERVE, "on tape"),
        (PLAYBACK, REFUND, EFFECT, "stub refunds", ON_TAPE, SERVE, "on tape"),
        (PLAYBACK, REFUND, EFFECT, "effects: refuse", ON_TAPE, SERVE, "on tape"),
        (PLAYBACK, EMIT, TELEMETRY, "none", AGAIN, SERVE, "served again"),
        # Telemetry that it does not have is discarded; what deletes something is refused, whatever it is declared as.
        (PLAYBACK, EMIT, TELEMETRY, "none", NEVER, DISCARD, "telemetry"),
        (PLAYBACK, "GET https://metrics.test/flags", TELEMETRY, "none", EXHAUSTED, DISCARD, "telemetry"),
        (PLAYBACK, "PATCH https://metrics.test/runs/1", TELEMETRY, "none", NEVER, DISCARD, "telemetry"),
        (PLAYBACK, "DELETE https://metrics.test/runs/1", TELEMETRY, "none", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, EMIT, TELEMETRY, "none", NO_TAPE, REFUSE, "no tape"),
        (PLAYBACK, EMIT, TELEMETRY, "live emit", NEVER, LIVE, "metrics"),
        (PLAYBACK, EMIT, EFFECT, "none", NEVER, REFUSE, "not on the tape"),
        # An effect that is not on the tape is stubbed from a configured answer only.
        (PLAYBACK, REFUND, EFFECT, "stub refunds", NEVER, STUB, "effect rule"),
        (PLAYBACK, REFUND, EFFECT, "stub refunds", EXHAUSTED, STUB, "effect rule"),
        (PLAYBACK, "POST https://pay.test/charges", EFFECT, "stub refunds", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, REFUND, EFFECT, "effect rule without answer", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, REFUND, EFFECT, "effects: refuse", NEVER, REFUSE, "not on the tape"),
        # What drifted is served where that was allowed; a live rule goes before it, and nothing else does.
        (PLAYBACK, CHAT, INFERENCE, "none", DRIFTED, REFUSE, "drifted: seed"),
        (PLAYBACK, CHAT, INFERENCE, "none", ALLOWED, SERVE, "on tape but for seed"),
        (PLAYBACK, CHAT, INFERENCE, "inference live", DRIFTED, LIVE, "new prompt"),
        (PLAYBACK, CHAT, INFERENCE, "inference live", ALLOWED, LIVE, "new prompt"),
        (RECORD, CHAT, INFERENCE, "none", ALLOWED, FORWARD, "mode record"),
        # Never anything but an effect.
        (PLAYBACK, REFUND, INFERENCE, "stub refunds", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, REFUND, READ, "stub refunds", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, REFUND, TELEMETRY, "stub refunds", NEVER, DISCARD, "telemetry"),
        # Everything else is refused: empty never means off.
        (PLAYBACK, CHAT, INFERENCE, "none", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, CHAT, INFERENCE, "none", EXHAUSTED, REFUSE, "exhausted"),
        (PLAYBACK, PAGE, READ, "none", NO_TAPE, REFUSE, "no tape"),
        (PLAYBACK, REFUND, EFFECT, "none", NO_TAPE, REFUSE, "no tape"),
        # The control host's name inside another one is another host.
        (PLAYBACK, "GET http://x.playhead.internal/", READ, "none", NEVER, REFUSE, "not on the tape"),
        (PLAYBACK, "GET http://playhead.internal.test/", READ, "none", NEVER, REFUSE, "not on the tape"),
    ],
)  # fmt: skip
def test_the_policy(
    mode: Mode,
    what: str,
    kind: RequestClass,
    rules: str,
    found: Found | None,
    action: Action,
    reason: str,
) -> None:
    """Control host, mode, live rule, tape, configured answer, refusal: in this order."""
    decision = decide(facts(what, kind), mode, Policy.of(RULES[rules]), found)
    assert decision.action is action
    assert reason in decision.reason
    assert "\n" not in decision.reason


HOLD = Action.HOLD
GATED = EffectRule(parse_match("POST https://pay.test/refunds"), gate=Gate())
TWICE = EffectRule(parse_match("POST https://pay.test/refunds"), gate=Gate("duplicates"))
WIDE = EffectRule(parse_match("POST https://pay.test/*"), gate=Gate("duplicates"))
NO_STUB = EffectRule(parse_match("POST https://pay.test/refunds"), on_miss="refuse")
STUBS = EffectRule(parse_match("POST https://pay.test/refunds"), on_miss="stub")
LIVE_REFUNDS = LiveRule(parse_match("POST https://pay.test/refunds"), "trial")

GATES = {
    "none": Config(),
    "gate": Config(effects=(GATED,)),
    "gate on duplicates": Config(effects=(TWICE,)),
    "gate, then duplicates of all": Config(effects=(GATED, WIDE)),
    "all gated but refunds": loads(
        "effects: [{match: 'POST https://pay.test/refunds', gate: false},"
        " {match: 'POST https://pay.test', gate: true}]"
    ),
    "gate, and live": Config(effects=(GATED,), live=(LIVE_REFUNDS,)),
    "duplicates, and live": Config(effects=(TWICE,), live=(LIVE_REFUNDS,)),
    "gate and answer": Config(effects=(GATED, REFUNDS)),
    "on_miss: refuse": Config(effects=(NO_STUB, REFUNDS)),
    "on_miss: stub": Config(effects=(STUBS,), playback=Playback(effects="refuse")),
    "effects: refuse": Config(playback=Playback(effects="refuse")),
    "live": Config(live=(LIVE_REFUNDS,)),
}
CHARGE = "POST https://pay.test/charges"
MODEL = Constraints(model=True)
SPENT = Constraints(spent="limit of 3 calls is exhausted")
VIOLATION = Constraints(violation="violates its contract", contract="POST https://pay.test/*")
DUPLICATE = Constraints(repeat=Repeat(Seq(3), RepeatKind.POSSIBLE_DUPLICATE, True))
RETRY = Constraints(repeat=Repeat(Seq(3), RepeatKind.SAFE_RETRY, True))


@pytest.mark.parametrize(
    ("mode", "what", "kind", "rules", "found", "constraints", "action", "rule"),
    [
        # A gate holds what is about to leave, whatever its class, and nothing else.
        (RECORD, REFUND, EFFECT, "gate", None, UNCONSTRAINED, HOLD, "effects POST https://pay.test/refunds"),
        (RECORD, REFUND, READ, "gate", None, UNCONSTRAINED, HOLD, "effects"),
        (RECORD, CHARGE, EFFECT, "gate", None, UNCONSTRAINED, FORWARD, "mode"),
        (RECORD, "GET https://pay.test/refunds", READ, "gate", None, UNCONSTRAINED, FORWARD, "mode"),
        (PASSTHROUGH, REFUND, EFFECT, "gate", None, UNCONSTRAINED, FORWARD, "mode"),
        (PLAYBACK, REFUND, EFFECT, "gate", ON_TAPE, UNCONSTRAINED, SERVE, "tape"),
        (PLAYBACK, REFUND, EFFECT, "gate", NEVER, UNCONSTRAINED, REFUSE, "not on tape"),
        (PLAYBACK, REFUND, EFFECT, "gate and answer", NEVER, UNCONSTRAINED, STUB, "effects"),
        (PLAYBACK, REFUND, EFFECT, "gate, and live", ON_TAPE, UNCONSTRAINED, HOLD, "effects"),
        # One on duplicates holds an effect that may repeat another, and no safe retry.
        (RECORD, REFUND, EFFECT, "gate on duplicates", None, UNCONSTRAINED, FORWARD, "mode"),
        (RECORD, REFUND, EFFECT, "gate on duplicates", None, DUPLICATE, HOLD, "effects"),
        (RECORD, REFUND, EFFECT, "gate on duplicates", None, RETRY, FORWARD, "mode"),
        (RECORD, REFUND, READ, "gate on duplicates", None, DUPLICATE, FORWARD, "mode"),
        (PLAYBACK, REFUND, EFFECT, "gate on duplicates", ON_TAPE, DUPLICATE, SERVE, "tape"),
        (PLAYBACK, REFUND, EFFECT, "duplicates, and live", ON_TAPE, DUPLICATE, HOLD, "effects"),
        (PLAYBACK, REFUND, EFFECT, "duplicates, and live", ON_TAPE, RETRY, LIVE, "live"),
        # Of several gates the first that matches decides.
        (RECORD, REFUND, EFFECT, "gate, then duplicates of all", None, UNCONSTRAINED, HOLD, "effects POST https://pay.test/refunds"),
        (RECORD, CHARGE, EFFECT, "gate, then duplicates of all", None, UNCONSTRAINED, FORWARD, "mode"),
        (RECORD, CHARGE, EFFECT, "gate, then duplicates of all", None, DUPLICATE, HOLD, "effects POST https://pay.test/*"),
        (RECORD, REFUND, EFFECT, "all gated but refunds", None, UNCONSTRAINED, FORWARD, "mode"),
        (RECORD, CHARGE, EFFECT, "all gated but refunds", None, UNCONSTRAINED, HOLD, "effects POST https://pay.test"),
        # A limit refuses what is about to leave, before any gate; the tape costs nothing.
        (RECORD, CHAT, INFERENCE, "none", None, SPENT, REFUSE, "limits"),
        (RECORD, REFUND, EFFECT, "gate", None, SPENT, REFUSE, "limits"),
        (PASSTHROUGH, CHAT, INFERENCE, "none", None, SPENT, FORWARD, "mode"),
        (PLAYBACK, CHAT, INFERENCE, "none", ON_TAPE, SPENT, SERVE, "tape"),
        (PLAYBACK, REFUND, EFFECT, "live", ON_TAPE, SPENT, REFUSE, "limits"),
        (PLAYBACK, REFUND, EFFECT, "live", ON_TAPE, UNCONSTRAINED, LIVE, "live POST https://pay.test/refunds"),
        # A contract refuses what would leave or be stubbed, behind limits and before any gate; the tape is served.
        (RECORD, REFUND, EFFECT, "none", None, VIOLATION, REFUSE, "contracts POST https://pay.test/*"),
        (RECORD, REFUND, EFFECT, "gate", None, VIOLATION, REFUSE, "contracts"),
        (RECORD, REFUND, EFFECT, "none", None, replace(VIOLATION, spent="x"), REFUSE, "limits"),
        (PASSTHROUGH, REFUND, EFFECT, "none", None, VIOLATION, FORWARD, "mode"),
        (PLAYBACK, REFUND, EFFECT, "live", ON_TAPE, VIOLATION, REFUSE, "contracts"),
        (PLAYBACK, REFUND, EFFECT, "none", ON_TAPE, VIOLATION, SERVE, "tape"),
        (PLAYBACK, REFUND, EFFECT, "gate and answer", NEVER, VIOLATION, REFUSE, "contracts"),
        (PLAYBACK, REFUND, EFFECT, "effects: refuse", NEVER, VIOLATION, REFUSE, "not on tape"),
        # An effect that is not on the tape: its own rule goes before `playback.effects`.
        (PLAYBACK, REFUND, EFFECT, "on_miss: refuse", NEVER, MODEL, REFUSE, "not on tape"),
        (PLAYBACK, REFUND, EFFECT, "on_miss: stub", NEVER, MODEL, STUB, "playback.effects"),
        (PLAYBACK, CHARGE, EFFECT, "on_miss: stub", NEVER, MODEL, REFUSE, "not on tape"),
        # Without a configured answer the tape may show what one looks like.
        (PLAYBACK, REFUND, EFFECT, "none", NEVER, MODEL, STUB, "playback.effects"),
        (PLAYBACK, REFUND, EFFECT, "none", EXHAUSTED, MODEL, STUB, "playback.effects"),
        (PLAYBACK, REFUND, EFFECT, "effects: refuse", NEVER, MODEL, REFUSE, "not on tape"),
        (PLAYBACK, CHAT, INFERENCE, "none", NEVER, MODEL, REFUSE, "not on tape"),
        (PLAYBACK, PAGE, READ, "none", NEVER, MODEL, REFUSE, "not on tape"),
    ],
)  # fmt: skip
def test_what_is_about_to_leave(
    mode: Mode,
    what: str,
    kind: RequestClass,
    rules: str,
    found: Found | None,
    constraints: Constraints,
    action: Action,
    rule: str,
) -> None:
    """Limits, then gates; and what answers an effect that is not on the tape."""
    decision = decide(facts(what, kind), mode, Policy.of(GATES[rules]), found, constraints)
    assert decision.action is action
    assert decision.rule.startswith(rule)
    if action is HOLD:
        assert decision.gate is not None
        assert decision.then is (FORWARD if mode is RECORD else LIVE)


@pytest.mark.parametrize(
    ("rules", "constraints", "note"),
    [
        ("gate", UNCONSTRAINED, ""),
        ("gate", DUPLICATE, ": it may repeat the effect of exchange 3"),
        ("gate", RETRY, ": it is a safe retry of exchange 3"),
        ("gate on duplicates", DUPLICATE, ": it may repeat the effect of exchange 3"),
    ],
)
def test_a_gate_says_what_may_be_done_twice(
    rules: str, constraints: Constraints, note: str
) -> None:
    """Whoever rules on it reads that first, whatever it was held for."""
    held = decide(facts(REFUND, EFFECT), RECORD, Policy.of(GATES[rules]), None, constraints)
    assert held.reason == f"held by the gate of effect rule {REFUND!r}{note}"
    assert held.repeat == constraints.repeat


@pytest.mark.parametrize("found", [ON_TAPE, AGAIN, EXHAUSTED, NEVER, NO_TAPE], ids=str)
@pytest.mark.parametrize("kind", list(RequestClass))
def test_without_rules_nothing_leaves_in_playback(
    kind: RequestClass, found: Hit | Exhausted | Unknown | None
) -> None:
    """Whatever is asked and whatever the cursor says."""
    for what, method in itertools.product(("/", "/v1/x?y"), ("GET", "POST", "CONNECT", "get", "")):
        asked = facts(f"{method} https://anything.test{what}", kind)
        done = decide(asked, PLAYBACK, Policy.of(Config()), found).action
        assert done in (SERVE, DISCARD, REFUSE)


def test_a_decision_carries_what_is_needed_to_act() -> None:
    """The exchange that answers, or the configured answer."""
    policy = Policy.of(RULES["stub refunds"])
    served = decide(facts(CHAT, INFERENCE), PLAYBACK, policy, ON_TAPE)
    assert served == Decision(SERVE, "on tape", "tape", seq=Seq(7))
    assert decide(facts(EMIT, TELEMETRY), PLAYBACK, policy, AGAIN).repeated
    drifted = decide(facts(CHAT, INFERENCE), PLAYBACK, policy, ALLOWED)
    assert (drifted.seq, drifted.allowed) == (Seq(7), (OPT_IN,))
    assert decide(facts(REFUND, EFFECT), PLAYBACK, policy, NEVER).answer == ANSWER


@pytest.mark.parametrize(
    ("what", "kind", "named"),
    [
        ("GET https://api.test/jobs/1", RequestClass.READ, True),
        ("HEAD https://api.test/jobs/1", RequestClass.READ, False),
        ("GET https://api.test/other", RequestClass.READ, False),
        ("GET https://api.test/jobs/1", EFFECT, False),
        ("GET https://api.test/jobs/1", INFERENCE, False),
        ("GET https://api.test/jobs/1", TELEMETRY, False),
    ],
)
def test_a_read_rule_names_reads_alone(what: str, kind: RequestClass, named: bool) -> None:
    """What may be answered twice is declared, and is no effect and no model call."""
    rule = ReadRule(parse_match("GET https://api.test/jobs/*"), "last")
    policy = Policy.of(Config(reads=(rule,)))
    assert policy.find_repeat(facts(what, kind)) == (rule if named else None)


def test_a_repeated_answer_says_by_what_rule() -> None:
    """A person finds it in the verdict."""
    rule = ReadRule(parse_match("GET https://api.test/jobs/*"), "last")
    asked = facts("GET https://api.test/jobs/1", RequestClass.READ)
    told = decide(asked, PLAYBACK, Policy.of(Config(reads=(rule,))), AGAIN)
    assert told.repeated
    assert told.reason == "read rule 'GET https://api.test/jobs/*', served again"


def facts(what: str, kind: RequestClass) -> Facts:
    request = make_request(what)
    host = what.split("/")[2].partition(":")[0]  # as written: urlsplit would lower it
    return Facts(request.method, request.scheme, host, request.port, request.target, kind)


@pytest.mark.parametrize("mode", [RECORD, PLAYBACK])
@pytest.mark.parametrize("found", [ON_TAPE, NEVER, NO_TAPE])
@pytest.mark.parametrize(("what", "kind"), [(EMIT, EFFECT), (CHAT, INFERENCE), (REFUND, EFFECT)])
def test_a_stopped_run_is_refused_everything(
    mode: Mode, found: Found | None, what: str, kind: RequestClass
) -> None:
    """Live rules, stubs and the tape count for nothing; the control host answers."""
    for rules in RULES.values():
        policy = dataclasses.replace(Policy.of(rules), stopped="stopped by alice")
        asked = facts(what, kind)
        assert decide(asked, mode, policy, found) == Decision(REFUSE, "stopped by alice", "stopped")
        control = facts("GET http://playhead.internal/run", READ)
        assert decide(control, mode, policy, found).action is CONTROL
