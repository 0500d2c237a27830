"""The model call of an exchange: the model asked for and the model that answered, read by its dialect.

Read when it is looked at, never stored: a dialect that learns to read more shows more of old tapes.
"""

from dataclasses import dataclass
from math import isfinite

from ...tape.dialects import read_request, read_response
from ...tape.exchange import Exchange, RequestClass


@dataclass(frozen=True, slots=True)
class Inference:
    """The fields of a model call that a person may let drift, and the model that answered; None: not stated."""

    dialect: str
    model: str | None
    """As asked for."""
    served: str | None
    """As answered."""
    temperature: int | float | None
    top_p: int | float | None
    seed: int | None
    tools: str | None
    """Hash of the tools as sent."""
    system: str | None
    """Hash of the system prompt's text."""


def find_inference(exchange: Exchange) -> Inference | None:
    """Read a model call; None where it is none, or no dialect can read it."""
    if exchange.request_class is not RequestClass.INFERENCE or exchange.request.spilled is not None:
        return None
    asked = read_request(exchange.request)
    if asked is None:
        return None
    answer = None
    if exchange.response is not None and exchange.response.spilled is None:
        answer = read_response(exchange.request, exchange.response)
    return Inference(
        dialect=asked.dialect,
        model=asked.model,
        served=None if answer is None else answer.model,
        temperature=_finite(asked.sampling.temperature),
        top_p=_finite(asked.sampling.top_p),
        seed=asked.sampling.seed,
        tools=asked.tools_hash,
        system=asked.system_hash,
    )


def _finite(value: int | float | None) -> int | float | None:
    """Leave out what JSON has no number for, and some clients send all the same."""
    return value if value is not None and isfinite(value) else None
