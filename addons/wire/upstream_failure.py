"""Translate an upstream failure reported by the engine into a fault and into the client's response."""

import re

from ...tape.exchange import Ending, Fault, FaultKind, Phase, RedactedText

DENIED = "egress denied"
"""The guard's words."""
NOT_SENT = "not sent: the client had left"
"""For an effect that was logged, or let go by a gate, too late."""
NOT_ENDED = f"{NOT_SENT} before it had ended its request"
"""The same, where it would have been sent on as it came."""
INTERNAL = "internal error"
"""Begins the words for an error of our own."""
_BROKEN = "illegal chunk"
_MALFORMED = (
    "cannot parse",
    "unexpected server response",
    "received",
    "protocol error",
    "a response head",
)
_TEXT = 300
"""Most characters of the engine's words that are kept."""
_CODE = re.compile(r"stream reset by (?:client|server|peer) \((\w+)\)")


def find_fault(text: RedactedText, phase: Phase, ending: Ending, code: int, at_us: int) -> Fault:
    """Give the fault that the engine's words tell of.

    phase: how far the exchange had come.
    ending: how the upstream's connection or stream ended; the client is given the same where the upstream
        had been asked, and a reset elsewhere.
    """
    kind = _kind(text.lower(), phase)
    if kind is FaultKind.DENIED:
        phase = Phase.CONNECT
    given = ending if kind in (FaultKind.RESET, FaultKind.CUT) else Ending.RST
    first = RedactedText(text.splitlines()[0][:_TEXT] if text else "")
    return Fault(kind, phase, first, at_us, given, code)


def find_stream_code(text: str) -> str | None:
    """Find the name of the error code with which one stream of HTTP/2 was reset, and not its connection."""
    found = _CODE.search(text)
    return found[1] if found is not None else None


def _kind(text: str, phase: Phase) -> FaultKind:
    if DENIED in text or text in (NOT_SENT, NOT_ENDED):
        return FaultKind.DENIED
    if text.startswith(INTERNAL):
        return FaultKind.UNKNOWN
    match phase:
        case Phase.CONNECT:
            return _connect_kind(text)
        case Phase.TLS:
            return FaultKind.TLS
        case Phase.BODY:
            return FaultKind.MALFORMED if _BROKEN in text else FaultKind.CUT
    if any(mark in text for mark in _MALFORMED):
        return FaultKind.MALFORMED
    return FaultKind.RESET


def _connect_kind(lower: str) -> FaultKind:
    if "refused" in lower or "errno 111" in lower:
        return FaultKind.REFUSED
    if "name or service" in lower or "getaddrinfo" in lower or "name resolution" in lower:
        return FaultKind.DNS
    if "nodename" in lower or "no address associated" in lower:
        return FaultKind.DNS
    return FaultKind.TIMEOUT if "timed out" in lower else FaultKind.UNKNOWN
