"""How much of a request its client sends in a playback, by how the recorded one ended.

A client that gives up has sent its messages one after another until then. All of them count: a client that gives up after fewer has
done something else, and so has one that says more. Only of a message in which the recorded client gave up, any part will do.

Source: the descriptions of length-prefixed messages of gRPC and Connect (a flag, and four bytes of length), and of Amazon's event
streams (four bytes of length, which count themselves).
"""

from typing import NamedTuple

from ...tape.exchange import Exchange, Request, RequestClass
from ..run.pending_exchange import HELD_BYTES
from ..wire.upstream_failure import NOT_ENDED

_PREFIXES = {
    "application/grpc": (1, 5),
    "application/connect+": (1, 5),
    "application/vnd.amazon.eventstream": (0, 0),
}
"""Of a message, by the beginning of the content type: bytes before its length, and bytes that its length does not count."""
_LENGTH_BYTES = 4


class Extent(NamedTuple):
    """Bytes of a request."""

    least: int
    """A client that gives up has sent so many by then."""
    most: int | None
    """One that sends more says more than the recorded one did; None where nobody knows what that would have said."""


def find_extent(recorded: Exchange) -> Extent:
    """Give how much of a request its client sends."""
    asked, answer, gone = recorded.request, recorded.response, recorded.gone
    if gone is not None and not gone.aborted:
        # Of what lies in a file nobody has looked where its messages end.
        return _find_messages(asked) if asked.spilled is None else Extent(HELD_BYTES, None)
    if gone is not None or recorded.fault is not None or answer is None or not answer.complete:
        return Extent(0, None)
    if answer.end_need is None:
        return Extent(asked.body_bytes, asked.body_bytes)
    return Extent(answer.end_need, None)  # the server ended first


def has_ended(recorded: Exchange) -> bool:
    """Say whether a recorded request is known to have ended."""
    answer = recorded.response
    # Of an answer that is not complete, tapes of earlier versions do not tell.
    return answer is not None and answer.complete and answer.end_need is None


def was_open(recorded: Exchange) -> bool:
    """Say whether a client is known to have given up a recorded request that it had not ended."""
    answer, fault, gone = recorded.response, recorded.fault, recorded.gone
    if gone is None or gone.aborted:
        return False
    if fault is not None:
        return fault.text == NOT_ENDED
    if answer is None:
        # An effect that had ended is read on until it is answered, unless its run ends; that is a warning.
        return recorded.request_class is RequestClass.EFFECT and not recorded.warnings
    # How much had been sent by then is known of what had not ended; tapes of earlier versions do not tell.
    return not answer.complete and answer.end_need is not None


def _find_messages(asked: Request) -> Extent:
    """Give where the messages end of a request that was given up."""
    body, size = asked.body, len(asked.body)
    kind = (asked.header(b"content-type") or b"").decode("latin-1").lower()
    prefix = next((found for name, found in _PREFIXES.items() if kind.startswith(name)), None)
    if prefix is None:
        return Extent(size, None)
    before, uncounted = prefix
    at = 0
    while at < size:
        length = body[at + before : at + before + _LENGTH_BYTES]
        if len(length) < _LENGTH_BYTES:
            return Extent(at + 1, None)
        end = at + max(uncounted + int.from_bytes(length), before + _LENGTH_BYTES)
        if end > size:
            return Extent(at + 1, end)
        at = end
    return Extent(size, size)
