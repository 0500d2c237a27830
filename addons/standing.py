"""How a run stands for one request: what a gate on duplicates has to know.

An effect is noted as soon as it is decided on, before it is sent, so that two at the same time see each other. One
that is known not to have happened is repeated by nobody: it was never sent, or its server refused it.
"""

from ..tape.gate import is_undone
from ..tape.model import RequestClass
from ..tape.policy import CALM, Standing
from .effects import Effect
from .flight import Flight, idempotency_key


def asks_for_repeats(flight: Flight) -> bool:
    """Say whether a gate has to know what a request repeats."""
    if flight.request_class is not RequestClass.EFFECT:
        return False
    rule = flight.session.policy.find_gate(flight.facts)
    return rule is not None and rule.gate is not None


def standing(flight: Flight) -> Standing:
    """Give what the policy has to know of the run; notes the effect where a gate asks for that. Once a request."""
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
