"""How a run stands for one request: what its limits leave, and what a gate on duplicates has to know.

An effect is noted as soon as it is decided on, before it is sent, so that two at the same time see each other. One
that is known not to have happened is repeated by nobody: it was never sent, or its server refused it.
"""

from dataclasses import replace

from ...tape.exchange import RequestClass
from ...tape.policy.decide import CALM, LIMITS, Action, Decision, Found, Policy, Standing, decide
from ...tape.policy.gates import is_undone
from .events import idempotency_key
from .pending import Flight
from .repeats import Effect


def asks_for_repeats(flight: Flight) -> bool:
    """Say whether a gate has to know what a request repeats."""
    effect = flight.request_class is RequestClass.EFFECT
    return effect and flight.session.policy.find_gate(flight.facts) is not None


_LEAVING = frozenset({Action.FORWARD, Action.LIVE, Action.HOLD})


def decide_leaving(flight: Flight, policy: Policy, found: Found | None) -> Decision:
    """Decide on a request that leaves unless a gate or a limit is in its way; count it where it may. Once a request."""
    session = flight.session
    meter = session.meter
    if meter is None:
        return decide(flight.facts, session.mode, policy, found, _standing(flight))
    spent = meter.find_spent(flight)
    now = _standing(flight) if spent is None else Standing(spent=spent.text)
    decision = decide(flight.facts, session.mode, policy, found, now)
    if decision.action in _LEAVING:
        meter.count(flight)
    elif decision.rule == LIMITS and spent is not None:
        session.tally.limited[spent.limit] += 1
        meter.tell(flight, spent)
    return decision


def breaching(flight: Flight, now: Standing) -> Standing:
    """Add how a request breaks a contract that says refuse, if it does."""
    terms = flight.terms
    if terms is None or terms.bound.request is None or not terms.breach:
        return now
    return replace(now, breach=terms.breach, contract=terms.bound.request.match.text)


def _standing(flight: Flight) -> Standing:
    """Give what a contract or a gate has to know; notes the effect where a gate asks for that, and it may leave."""
    now = breaching(flight, CALM)
    if now.breach:
        return now
    if flight.effect_key is None or not asks_for_repeats(flight):
        return CALM
    assert flight.request is not None
    flight.gated = Effect(flight.seq, idempotency_key(flight.request))
    return Standing(repeat=flight.session.gated.note(flight.effect_key, flight.gated))


def settle_gated(flight: Flight, status: int) -> None:
    """Note whether an effect can have happened, now that its outcome is known.

    status: of the answer, or 0.
    """
    if flight.gated is None:
        return
    phase = flight.fault.phase if flight.fault is not None else None
    flight.gated.undone = is_undone(status, phase)
