"""Compare how much of an answer a client took in a playback with how much it had taken while it was recorded.

What a client took is what it was sent and what the buffers between did not hold back. So an answer that fits the buffers of
a connection counts as taken once it has been sent.
"""

from ..exchange import Headers
from .script import StepKind, Steps

_MARGIN_US = 100_000
"""A client that left so much before something was due may have left because of it while it was recorded."""
_PIPE_BYTES = 256 * 1024
"""After so many bytes the sockets between are full, so pieces go on when the client reads, and it is as fast as its machine."""
_MOST_MARGIN_US = 1_000_000
_BUFFERS = 8 * 1024 * 1024
"""Bytes that the buffers of both sides may hold, of what a client is said to have been sent."""
_TERMINAL = (b"data: [DONE]", b"message_stop", b"response.completed", b"response.failed")
"""Pieces of a model's stream on which SDKs act before the stream has ended."""
_DEADLINE_EXCEEDED = (b"grpc-status", b"4")
"""What a server of gRPC answers once the time is over that its client gave it."""


def is_out_of_time(fields: Headers) -> bool:
    """Say whether an answer of gRPC says that the client's own deadline is over.

    fields: of its head and its trailers.
    """
    name, value = _DEADLINE_EXCEEDED
    return any(field.lower() == name and text == value for field, text in fields)


def is_terminal(data: bytes) -> bool:
    """Say whether a piece of a stream holds something that an SDK acts on before the end."""
    return any(mark in data for mark in _TERMINAL)


def left_late(steps: Steps, spent_us: int) -> bool:
    """Say whether a client leaves after it would have been sent what its recorded self had left before.

    steps, spent_us: as for `left_early`.
    """
    step = steps.next
    return (
        step is not None
        and step.kind is StepKind.LATE
        and bool(step.due_us)
        and spent_us > step.due_us
    )


def left_early(steps: Steps, spent_us: int, *, trailers: bool, out_of_time: bool = False) -> bool:
    """Say whether a client leaves before it has taken what it had taken while it was recorded.

    steps: those that are still to be played; read on where that is needed.
    spent_us: since the request arrived.
    trailers: whether the answer ends with trailers, as a status of gRPC.
    out_of_time: what `is_out_of_time` says of the answer. Client and server run out of time in the same moment,
        so which of them says it first is chance.
    """
    step = steps.next
    if step is None or step.unseen or step.kind in (StepKind.LATE, StepKind.HANG):
        return False
    if steps.gone is None:
        if out_of_time and step.kind in (StepKind.HEAD, StepKind.END):
            return step.at_us > spent_us + _MARGIN_US
        if step.kind is StepKind.END:
            return trailers
        return not (steps.head and is_terminal(steps.tail))
    # It had left as well: what it was sent until then, and this one is not.
    size, margin_us = 0, _MARGIN_US
    if steps.size > _PIPE_BYTES:
        margin_us = max(_MARGIN_US, min(steps.gone.at_us // 2, _MOST_MARGIN_US))
    for step in steps.rest():
        if step.unseen or step.kind not in (StepKind.HEAD, StepKind.DATA):
            return False
        size += len(step.data)
        if step.at_us > spent_us + margin_us or size > _BUFFERS:
            return True
    return False
