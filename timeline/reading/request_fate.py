"""What became of a request, and whether more may have been billed for it than its answer states."""

from enum import StrEnum

from ...tape.dialects import InferenceResponse, Message, Text, Thinking
from ...tape.exchange import Exchange, VerdictKind

_SENT = (VerdictKind.RECORDED, VerdictKind.LIVE, VerdictKind.SANDBOXED, VerdictKind.HELD)


class Fate(StrEnum):
    """What became of a request."""

    SENT = "sent"
    SAVED = "saved"
    """Answered from a tape."""
    REFUSED = "refused"
    """Refused, stubbed or taken for delivered here."""
    UNREACHED = "unreached"
    """No connection was made for it."""


def find_fate(exchange: Exchange) -> Fate:
    """Say what became of a request, by its exchange alone; what a fault on purpose answered is in the log."""
    if exchange.verdict is VerdictKind.SERVED:
        return Fate.SAVED
    if exchange.verdict not in _SENT:
        # A contract may withhold an answer that came all the same.
        return Fate.SENT if exchange.withheld and exchange.response is not None else Fate.REFUSED
    fault = exchange.fault
    return Fate.UNREACHED if fault is not None and fault.is_unreached else Fate.SENT


def is_refusal(exchange: Exchange, answer: InferenceResponse | None) -> bool:
    """Say whether the service answered a model call with an error or sent it elsewhere, for which nothing is billed.

    A stream that ended with an error after a part of the answer is none: what had been said by then may be billed.
    """
    response = exchange.response
    if response is not None and response.status >= 300:
        return True
    if answer is None or answer.error is None or answer.usage is not None:
        return False
    return not any(_says_something(choice.message) for choice in answer.choices)


def _says_something(message: Message) -> bool:
    return any(not isinstance(part, Text | Thinking) or part.text for part in message.parts)


def states_less(exchange: Exchange, answer: InferenceResponse | None) -> bool:
    """Say whether a model call may have used more than its answer states: it states no tokens or a part, or was cut."""
    if is_refusal(exchange, answer):
        return False
    if find_fate(exchange) in (Fate.REFUSED, Fate.UNREACHED):
        return False
    usage = answer.usage if answer is not None else None
    if answer is None or usage is None or not usage.count().is_stated:
        return True
    is_all = usage.is_all(is_said=bool(answer.choices))
    return not is_all or not answer.complete or exchange.fault is not None
