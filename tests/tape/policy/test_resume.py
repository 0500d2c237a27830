"""How a resumed run is decided on: the table of its policy, and how far it has come."""

from dataclasses import replace
from typing import Any

import pytest

from playhead.config import Config, EffectRule, Gate, LiveRule, Mode, parse_match
from playhead.tape.exchange import RequestClass, Seq
from playhead.tape.matching.cursor import Exhausted, Hit, Unknown
from playhead.tape.policy.decide import Action, Constraints, Facts, Found, Policy, decide
from playhead.tape.policy.resume import Resume, Resumption, UnknownEffect
from playhead.tests.support.exchanges import make_request

EFFECT, READ, TELEMETRY = RequestClass.EFFECT, RequestClass.READ, RequestClass.TELEMETRY
BEFORE, BEHIND = Constraints(awaited=Seq(3)), Constraints()
UNKNOWN = Constraints(unknown="it may have happened")
DIVERGED = Constraints(diverged="the prefix diverged")
RULES = Config(
    mode=Mode.PLAYBACK,
    live=(LiveRule(parse_match("* https://a.test"), "a test"),),
    effects=(EffectRule(parse_match("POST https://a.test/wires*"), gate=Gate()),),
)
TABLE = (
    # class, what the tape has, how it stands, path, action
    (EFFECT, Hit(Seq(1)), BEFORE, "/x", Action.SERVE),
    (EFFECT, Hit(Seq(1)), BEHIND, "/x", Action.SERVE),
    (EFFECT, Unknown(), BEFORE, "/x", Action.REFUSE),
    (READ, Exhausted(Seq(1), 1), BEFORE, "/x", Action.REFUSE),
    # no live rule and no stub of the configuration
    (READ, Unknown(), BEFORE, "/x", Action.REFUSE),
    (EFFECT, Unknown(), BEHIND, "/x", Action.LIVE),
    (READ, Exhausted(Seq(1), 1), BEHIND, "/x", Action.LIVE),
    (EFFECT, Unknown(), BEHIND, "/wires", Action.HOLD),
    (EFFECT, Unknown(), UNKNOWN, "/x", Action.HOLD),
    (EFFECT, Unknown(), UNKNOWN, "/wires", Action.HOLD),
    (EFFECT, Unknown(), replace(BEHIND, retried="a retry"), "/x", Action.HOLD),
    (EFFECT, Unknown(), replace(UNKNOWN, spent="no calls left"), "/x", Action.REFUSE),
    # telemetry
    (TELEMETRY, Unknown(), BEFORE, "/x", Action.DISCARD),
    (TELEMETRY, Unknown(), BEHIND, "/x", Action.LIVE),
    (TELEMETRY, Hit(Seq(1), repeated=True), BEFORE, "/x", Action.SERVE),
    (TELEMETRY, Hit(Seq(1), repeated=True), BEHIND, "/x", Action.LIVE),
    # after a divergence
    (EFFECT, Hit(Seq(1)), DIVERGED, "/x", Action.REFUSE),
    (TELEMETRY, Unknown(), DIVERGED, "/x", Action.REFUSE),
    (EFFECT, Unknown(), DIVERGED, "/x", Action.REFUSE),
)


@pytest.mark.parametrize(("kind", "found", "now", "path", "action"), TABLE)
def test_each_request_of_a_resumed_run_is_decided_on(
    kind: RequestClass, found: Found, now: Constraints, path: str, action: Action
) -> None:
    """From the tape, live, held, or not at all."""
    facts = Facts("POST", "https", "a.test", 443, path, kind)
    policy = Policy.of(RULES, None, Resume())
    assert decide(facts, Mode.PLAYBACK, policy, found, now).action is action


E1 = UnknownEffect("r", Seq(2), "POST", "https://a.test/e1", b"one", None)
E2 = replace(E1, seq=Seq(4), url="https://a.test/e2", fingerprint=b"two")


def test_everything_of_the_prefix_is_waited_for() -> None:
    """What has an outcome first, then what has none; an effect without one waits for no other without one."""
    served: set[Seq] = set()
    resumption = Resumption(Resume((E1, E2)))
    assert resumption.find_awaited(served.__contains__) == 1  # nobody knows yet what the prefix is
    resumption.expect(frozenset({Seq(1), Seq(3)}))
    assert resumption.find_awaited(served.__contains__, is_unknown=True) == 1
    served |= {Seq(1), Seq(3)}
    assert resumption.find_awaited(served.__contains__) == 2
    assert resumption.find_awaited(served.__contains__, is_unknown=True) is None
    asked = make_request("POST https://a.test/e1")
    assert resumption.take_unknown(asked, b"one", same_rules=True) == E1
    assert resumption.find_awaited(served.__contains__) == 4
    assert resumption.take_unknown(asked, b"two", same_rules=True) == E2
    assert resumption.find_awaited(served.__contains__) is None


@pytest.mark.parametrize(
    ("change", "waits"),
    [({}, None), ({"fingerprint": b"other", "key": b"key"}, None), ({"fingerprint": b"other"}, 4)],
    ids=["the same request", "the same key", "another effect"],
)
def test_who_is_answered_need_not_ask_once_more(change: dict[str, Any], waits: int | None) -> None:
    """An attempt and its retry were under way at the crash: nothing waits for the second, which is held if it comes."""
    first = replace(E1, key=b"key" if "key" in change else None)
    second = replace(first, seq=Seq(4), **change)
    resumption = Resumption(Resume((first, second)))
    resumption.expect(frozenset())
    asked = make_request("POST https://a.test/e1")
    assert resumption.take_unknown(asked, b"one", same_rules=True) == first
    assert resumption.find_awaited(lambda _: False) == waits
    again = resumption.take_unknown(asked, second.fingerprint, same_rules=True)
    assert again == second


def test_an_effect_stays_unknown_until_somebody_lets_it_go() -> None:
    """Asked for again it is held again; once it was approved the next is another one."""
    resumption = Resumption(Resume((E1,)))
    asked = make_request("POST https://a.test/e1")
    for _ in range(2):
        assert resumption.take_unknown(asked, b"one", same_rules=True) == E1
    resumption.settle(E1)
    assert resumption.take_unknown(asked, b"one", same_rules=True) is None


def test_under_other_rules_an_unknown_effect_goes_by_its_place() -> None:
    """Its fingerprint was made under those of then."""
    resumption = Resumption(Resume((E1,)))
    asked = make_request("POST https://a.test/e1")
    assert resumption.take_unknown(asked, b"other", same_rules=True) is None
    assert resumption.take_unknown(asked, b"other", same_rules=False) == E1


def test_of_several_unknown_effects_the_one_with_the_same_key_is_meant() -> None:
    """Under other rules they are told apart by their place alone; who rules on one is told of its key."""
    first, second = replace(E1, key=b"one"), replace(E1, seq=Seq(3), fingerprint=b"x", key=b"two")
    resumption = Resumption(Resume((first, second)))
    asked = make_request("POST https://a.test/e1")

    def take(*keys: bytes) -> UnknownEffect | None:
        return resumption.take_unknown(asked, b"other", same_rules=False, keys=keys)

    assert take(b"two", b"three") == second
    assert take(b"four") == first
    assert take(b"two") == second


def test_an_effect_without_an_outcome_is_found_by_its_effect_key() -> None:
    """A process that was started again names the same effect by a new idempotency key in its body."""
    asked, resumption = make_request("POST https://a.test/e1"), Resumption(Resume((E1, E2)))
    resumption.note_effect_key(E1, b"same")
    resumption.note_effect_key(E2, b"same")
    found = resumption.take_unknown(asked, b"new", same_rules=True, effect_key=b"same")
    assert found == E1
    resumption.expect(frozenset())
    assert resumption.find_awaited(lambda _: True) is None
