"""Faults on purpose: which requests are hit, as a table."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.config import FaultRule, Inject, Mode, parse_match
from playhead.tape.exchange import RequestClass
from playhead.tape.policy.decide import Facts
from playhead.tape.policy.faults import Faults, hits

RESET = Inject.RESET
PAY = parse_match("POST https://pay.test/refunds")
REFUND = Facts("POST", "https", "pay.test", 443, "/refunds", RequestClass.EFFECT)
READ = Facts("GET", "https", "pay.test", 443, "/refunds", RequestClass.READ)


def rule(**more: object) -> FaultRule:
    return FaultRule(PAY, **{"inject": RESET, **more})  # type: ignore[arg-type]  # rows of a table


def taken(faults: Faults, asked: Iterable[Facts]) -> list[str]:
    found = [faults.take(facts) for facts in asked]
    return [one.rule.label if one is not None else "" for one in found]


@pytest.mark.parametrize(
    ("told", "hit"),
    [
        # nothing said: all that match
        (rule(), [1, 2, 3, 4, 5, 6]),
        # one, and one of so many
        (rule(nth=1), [1]),
        (rule(nth=3), [3]),
        (rule(nth=7), []),
        (rule(every=1), [1, 2, 3, 4, 5, 6]),
        (rule(every=2), [2, 4, 6]),
        (rule(every=6), [6]),
        # all of them, drawn
        (rule(share=1.0), [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_rule_hits(told: FaultRule, hit: list[int]) -> None:
    """Of six requests that match it."""
    assert [nth for nth in range(1, 7) if hits(told, nth, seed=0)] == hit


def test_only_what_matches_is_counted() -> None:
    """A read between two refunds moves nothing."""
    faults = Faults([rule(nth=2, name="second")], 0, Mode.RECORD)
    assert taken(faults, [REFUND, READ, REFUND, REFUND]) == ["", "", "second", ""]


def test_the_first_rule_that_hits_decides_and_all_count() -> None:
    """One that another was faster than does not come back later."""
    rules = [rule(nth=2, name="a"), rule(nth=2, name="b"), rule(nth=3, name="c")]
    assert taken(Faults(rules, 0, Mode.RECORD), [REFUND] * 4) == ["", "a", "c", ""]


def test_a_rule_is_for_its_modes() -> None:
    """In others it is not there."""
    only = rule(modes=(Mode.PLAYBACK,))
    assert Faults([only], 0, Mode.RECORD).take(REFUND) is None
    assert Faults([only], 0, Mode.PLAYBACK).take(REFUND) is not None


@pytest.mark.parametrize("inject", list(Inject))
def test_a_websocket_is_hit_by_what_needs_no_answer(inject: Inject) -> None:
    """What is done to an answer's body has no place there."""
    found = Faults([rule(inject=inject)], 0, Mode.RECORD).take(REFUND, upgrade=True)
    assert (found is not None) == (inject in (Inject.STATUS, Inject.RESET, Inject.TIMEOUT))


def test_a_rule_without_a_name_is_called_by_what_it_does() -> None:
    """A receipt names it."""
    assert rule().label == "reset POST https://pay.test/refunds"
    assert rule(name="gone").label == "gone"


@given(st.integers(0, 10**9 - 1), st.floats(0.01, 0.99))
def test_what_is_drawn_depends_on_the_seed_alone(seed: int, share: float) -> None:
    """The same requests twice; about so many as was said."""
    told = rule(share=share)
    first = [hits(told, nth, seed) for nth in range(1, 1001)]
    assert first == [hits(told, nth, seed) for nth in range(1, 1001)]
    assert abs(sum(first) / 1000 - share) < 0.12


def test_another_seed_draws_others() -> None:
    """And another name."""
    told = rule(share=0.5)
    drawn = [[hits(told, nth, seed) for nth in range(1, 65)] for seed in range(20)]
    drawn.append([hits(rule(share=0.5, name="other"), nth, 0) for nth in range(1, 65)])
    assert len({tuple(one) for one in drawn}) == 21
