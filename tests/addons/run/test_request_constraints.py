"""What stands in a request's way beside the policy: limits, contracts, and effects that it may repeat."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.addons.run.exchange_events import idempotency_key
from playhead.addons.run.request_constraints import (
    add_violation,
    asks_for_repeats,
    decide_leaving,
    describe_unknown,
    find_forms,
    find_key_forms,
    note_served_effect,
    settle_gated,
)
from playhead.addons.run.request_contracts import ContractState
from playhead.config import ContractRule, loads, parse_match
from playhead.tape.contracts.applicable_contracts import ApplicableContracts
from playhead.tape.exchange import (
    Fault,
    FaultKind,
    Phase,
    RawRequest,
    RedactedText,
    RequestClass,
    Seq,
)
from playhead.tape.policy.decide import UNCONSTRAINED, Action
from playhead.tape.policy.resume import UnknownEffect
from playhead.tape.records.events import EventKind
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.exchanges import (
    fingerprint_of,
    make_exchange,
    make_request,
    make_response,
    raw_request,
)
from playhead.tests.support.pending import NotedRun, make_pending

EFFECT = "POST https://pay.test/refunds"
GATED = 'effects: [{match: "POST https://pay.test/*", gate: %s}]'
RULE = ContractRule(parse_match(EFFECT), request="{}")


def ask(open_run: NotedRun, what: str = EFFECT, *, seq: int = 1, body: bytes = b"5") -> Any:
    """An effect that has been identified."""
    pending = make_pending(open_run, what, RequestClass.EFFECT, body=body, seq=seq)
    request = pending.request
    assert request is not None
    identifier = open_run.identifier
    pending.identify(
        identifier.fingerprint(request, RequestClass.EFFECT), identifier.effect_key(request)
    )
    return pending


@pytest.mark.parametrize(
    ("gate", "what", "kind", "asks"),
    [
        ("duplicates", EFFECT, RequestClass.EFFECT, True),
        ("true", EFFECT, RequestClass.EFFECT, True),
        ("duplicates", "POST https://other.test/refunds", RequestClass.EFFECT, False),
        ("duplicates", EFFECT, RequestClass.READ, False),
        ("duplicates", EFFECT, RequestClass.INFERENCE, False),
        ("false", EFFECT, RequestClass.EFFECT, False),
    ],
)
def test_a_gate_has_to_know_what_an_effect_repeats(
    gate: str, what: str, kind: RequestClass, asks: bool
) -> None:
    """Of what it matches, and of effects alone."""
    open_run = NotedRun(loads(GATED % gate))
    assert asks_for_repeats(make_pending(open_run, what, kind)) is asks


@pytest.mark.parametrize(
    ("asked", "actions"),
    [
        ([(EFFECT, b"5"), (EFFECT, b"5")], [Action.FORWARD, Action.HOLD]),
        ([(EFFECT, b"5"), (EFFECT, b"6")], [Action.FORWARD, Action.FORWARD]),
        (
            [(EFFECT, b"5"), ("POST https://pay.test//refunds/", b"5")],
            [Action.FORWARD, Action.HOLD],
        ),
        (
            [(EFFECT, b"5"), ("POST https://pay.test/other", b"5")],
            [Action.FORWARD, Action.FORWARD],
        ),
        (
            [
                (EFFECT, b'{"a":1,"idempotency_key":"x"}'),
                (EFFECT, b'{"a":1,"idempotency_key":"y"}'),
            ],
            [Action.FORWARD, Action.HOLD],
        ),
        (
            [(f"{EFFECT}?idempotency_key=x", b"5"), (f"{EFFECT}/?Idempotency-Key=y", b"5")],
            [Action.FORWARD, Action.HOLD],
        ),
        (
            [
                (EFFECT, b'{"a":1,"idempotency_key":"x"}'),
                (EFFECT, b'{"a":1,"idempotency_key":"x"}'),
            ],
            [Action.FORWARD, Action.FORWARD],
        ),
    ],
)
def test_an_effect_that_may_repeat_another_is_held(
    asked: list[tuple[str, bytes]], actions: list[Action]
) -> None:
    """However its path is spelled, and whatever idempotency key it carries; one with the same key is a safe retry."""
    open_run = NotedRun(loads(GATED % "duplicates"))
    found = [
        decide_leaving(ask(open_run, what, seq=seq, body=body), open_run.policy, None).action
        for seq, (what, body) in enumerate(asked, 1)
    ]
    assert found == actions


@pytest.mark.parametrize(
    ("status", "phase", "action"),
    [
        (200, None, Action.HOLD),
        (500, None, Action.HOLD),
        (408, None, Action.HOLD),
        (0, None, Action.HOLD),
        (422, None, Action.FORWARD),
        (0, Phase.CONNECT, Action.FORWARD),
        (0, Phase.TLS, Action.FORWARD),
        (0, Phase.HEAD, Action.HOLD),
    ],
)
def test_what_did_not_happen_is_repeated_by_nobody(
    status: int, phase: Phase | None, action: Action
) -> None:
    """It was never sent, or its server refused it."""
    open_run = NotedRun(loads(GATED % "duplicates"))
    first = ask(open_run)
    decide_leaving(first, open_run.policy, None)
    if phase is not None:
        first.progress.fail(Fault(FaultKind.RESET, phase, RedactedText("x"), 1))
    settle_gated(first, status)
    assert decide_leaving(ask(open_run, seq=2), open_run.policy, None).action is action


def test_what_no_gate_looks_at_is_settled_by_nobody() -> None:
    """Nor is it noted."""
    open_run = NotedRun()
    pending = ask(open_run)
    assert decide_leaving(pending, open_run.policy, None).action is Action.FORWARD
    settle_gated(pending, 200)
    assert pending.account.gated is None


@pytest.mark.parametrize(
    ("limits", "actions", "noted", "calls"),
    [
        ("{calls: 2}", [Action.FORWARD, Action.FORWARD, Action.REFUSE, Action.REFUSE], 1, 2),
        ("{repeats: 1}", [Action.FORWARD, Action.REFUSE, Action.REFUSE], 1, 1),
        ("{tokens: 5}", [Action.FORWARD, Action.FORWARD], 0, 2),
    ],
)
def test_what_leaves_is_counted_and_what_passes_a_limit_does_not_leave(
    limits: str, actions: list[Action], noted: int, calls: int
) -> None:
    """The log is told once for each limit, the counters of each request."""
    open_run = NotedRun(loads(f"limits: {limits}"))
    meter = open_run.usage_meter
    assert meter is not None
    found = []
    for seq in range(1, len(actions) + 1):
        pending = ask(open_run, seq=seq)
        meter.note_forms(pending, frozenset({b"same"}))
        found.append(decide_leaving(pending, open_run.policy, None).action)
    assert found == actions
    assert [kind for kind, _ in open_run.noted] == [EventKind.LIMITED] * noted
    assert open_run.counters.limited.total() == actions.count(Action.REFUSE)
    assert meter.used.calls == calls


@pytest.mark.parametrize(
    ("applicable", "violation", "broken"),
    [
        (None, "", False),
        (ApplicableContracts(RULE, None, None), "", False),
        (ApplicableContracts(RULE, None, None), "too much", True),
        (ApplicableContracts(None, RULE, None), "too much", False),
    ],
)
def test_a_contract_that_a_request_breaks_stands_in_its_way(
    applicable: ApplicableContracts | None, violation: str, broken: bool
) -> None:
    """With how, and which; beside whatever else does."""
    open_run = NotedRun()
    pending = ask(open_run)
    if applicable is not None:
        pending.hold_to(ContractState(applicable)).violation = violation
    for now in (UNCONSTRAINED, replace(UNCONSTRAINED, spent="all of it")):
        found = add_violation(pending, now)
        assert found == (replace(now, violation=violation, contract=EFFECT) if broken else now)
    decided = decide_leaving(pending, open_run.policy, None)
    assert decided.action is (Action.REFUSE if broken else Action.FORWARD)
    assert ("too much" in decided.reason) == broken


def test_an_effect_that_breaks_a_contract_is_not_repeated() -> None:
    """It does not leave, so no gate looks at it."""
    open_run = NotedRun(loads(GATED % "duplicates"))
    first = ask(open_run)
    first.hold_to(ContractState(ApplicableContracts(RULE, None, None))).violation = "too much"
    assert decide_leaving(first, open_run.policy, None).action is Action.REFUSE
    second = ask(open_run, seq=2)
    assert decide_leaving(second, open_run.policy, None).action is Action.FORWARD


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("GET https://api.test/a", "GET https://api.test/a", True),
        ("GET https://api.test/a", "GET https://api.test//a/", True),
        ("GET https://api.test/a", "GET https://api.test/b", False),
        ("GET https://api.test/a?x=1", "GET https://api.test/a?x=2", False),
        ("GET https://api.test/a", "GET https://b.test/a", False),
        ("GET https://api.test/a/../b", "GET https://api.test/b", True),
    ],
)
def test_requests_are_the_same_if_they_share_a_form(one: str, other: str, same: bool) -> None:
    """All that each can be taken for."""
    open_run = NotedRun()
    forms = []
    for what in (one, other):
        pending = make_pending(open_run, what)
        request = pending.request
        assert request is not None
        forms.append(find_forms(pending, request, fingerprint_of(what)))
    assert (not forms[0].isdisjoint(forms[1])) is same


KEYED = replace(make_request(EFFECT), headers=((b"Idempotency-Key", b"one"),))
OTHER = replace(KEYED, headers=((b"Idempotency-Key", b"two"),))
BARE = make_request(EFFECT)


@pytest.mark.parametrize(
    ("sent", "asked", "says"),
    [
        (KEYED, KEYED, "with the idempotency key it was sent with: ?; idempotency-key: one"),
        (KEYED, OTHER, "NOT with the idempotency key it was sent with: ?; idempotency-key: two"),
        (
            BARE,
            KEYED,
            "with an idempotency key, but sent without one then: ?; idempotency-key: one",
        ),
        (KEYED, BARE, "with no idempotency key, but sent with one then: ?"),
        (BARE, BARE, "with no idempotency key: ?"),
        (BARE, None, "with no idempotency key: ?"),
    ],
    ids=["the same", "another", "a new one", "lost", "none", "not read"],
)
def test_an_effect_without_an_outcome_is_shown_with_its_key(
    sent: Any, asked: Any, says: str
) -> None:
    """And with how that compares with the one it was sent with: by its hash, since the log has no more."""
    unknown = UnknownEffect("r", Seq(5), "POST", EFFECT, b"", idempotency_key(sent))
    told = describe_unknown(unknown, asked)
    says = says.replace("?", "r sent it as seq 5, and it may have happened")
    assert told == f"an effect without an outcome, {says}"


OTHER = replace(KEYED, headers=((b"idempotency-key", b"two"),))


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ((KEYED, KEYED), ", with each idempotency key it was sent with: "),
        ((OTHER, KEYED), ", NOT with each idempotency key it was sent with: "),
        ((KEYED, OTHER), ", NOT with each idempotency key it was sent with: "),
        ((BARE, KEYED), ", with an idempotency key, but sent without one then: "),
    ],
    ids=["the same twice", "another first", "another last", "none first"],
)
def test_each_time_that_an_effect_was_sent_counts(keys: tuple[Any, Any], says: str) -> None:
    """It was let be sent once more, and its process died again: either may have happened."""
    first, last = (
        UnknownEffect(run, Seq(5), "POST", EFFECT, b"", idempotency_key(key))
        for run, key in zip(("r", "r@1"), keys, strict=True)
    )
    told = describe_unknown(replace(last, earlier=(first,)), KEYED)
    assert says in told
    assert "r sent it as seq 5, r@1 sent it as seq 5, and any of them may have happened" in told


def test_whether_the_key_is_the_same_is_not_cut() -> None:
    """However long the name of the run and the key are."""
    sent = replace(KEYED, headers=((b"idempotency-key", b"k" * 400),))
    unknown = UnknownEffect("r" * 200, Seq(5), "POST", EFFECT, b"", idempotency_key(KEYED))
    told = describe_unknown(unknown, sent)
    assert "NOT with the idempotency key it was sent with" in told[:80]


RULES = {"": (), "redacted": loads("redact: [{header: idempotency-key}]").redact}


@pytest.mark.parametrize("now", RULES)
@pytest.mark.parametrize("then", RULES)
@pytest.mark.parametrize("same", [True, False])
def test_a_key_is_compared_whether_a_rule_takes_it_out_or_not(
    then: str, now: str, same: bool
) -> None:
    """The rule may have come or gone since the crash."""

    def asked(which: str) -> RawRequest:
        field = (b"idempotency-key", f"a-long-random-key-{which}".encode())
        return raw_request(replace(make_request(EFFECT), headers=(field,)))

    sent, again = asked("one"), asked("one" if same else "two")
    recorded, _ = Redactor(b"key", RULES[then]).request(sent)
    redactor = Redactor(b"key", RULES[now])
    shown, _ = redactor.request(again)
    unknown = UnknownEffect("r", Seq(1), "POST", EFFECT, b"", idempotency_key(recorded))
    told = describe_unknown(unknown, shown, find_key_forms(again, redactor.stands_for))
    assert (", NOT with the idempotency key it was sent with:" in told) is not same
    assert (", with the idempotency key it was sent with:" in told) is same


@pytest.mark.parametrize(
    ("status", "repeats"), [(200, True), (500, True), (422, False)], ids=["done", "unsure", "not"]
)
def test_a_gate_on_duplicates_counts_what_a_crashed_run_has_sent(
    status: int, repeats: bool
) -> None:
    """Served from its tape it happened then, unless its server had refused it."""
    open_run = NotedRun(loads(GATED % "duplicates"))
    recorded = make_exchange(1, response=make_response(status=status))
    note_served_effect(ask(open_run), recorded)
    later = ask(open_run, seq=2)
    decision = decide_leaving(later, open_run.policy, None)
    assert (decision.action is Action.HOLD) is repeats
