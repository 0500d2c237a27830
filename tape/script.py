"""How a recorded outcome is played: a list of steps with times.

Offsets are microseconds since the request arrived. `pace` scales them; with `instant` (0) everything that
the client had received comes at once. What it had *not* received keeps its real time, whatever the pace:
a client that gave up while recording has to wait again, so that it gives up again.

A server may push an event on one stream because of a request on another; MCP servers do. So an event of
such a stream also waits until the requests that had arrived before it have been asked again, but not much
longer than it took then: an agent that leaves a request out is not to hang. Streams of models and answers
that are no event streams are caused by their own request alone.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from .model import Chunk, Exchange, FaultKind, Gone, RequestClass, Response

LATE_MARGIN_US = 500_000
"""An answer that arrived after the client had left is offered this much later than it came, so that a
client that leaves at about the same moment as then leaves first again."""


CAUSE_MARGIN_US = 1_000_000
"""A piece whose cause has not come is played this much after its recorded time all the same."""


class StepKind(StrEnum):
    """What to do next with the client's connection or stream."""

    HEAD = "head"
    DATA = "data"
    END = "end"
    FIN = "fin"
    RST = "rst"
    HANG = "hang"


class Step(NamedTuple):
    """One thing to do, at its time."""

    at_us: int
    kind: StepKind
    data: bytes = b""
    causes: range = range(0)
    """Not before the tape's exchanges with these seqs have been asked for ..."""
    latest_us: int = 0
    """... or so much time has passed."""


def script(exchange: Exchange, pace: float) -> list[Step]:
    """Give the steps that play an exchange; the last one is END, FIN, RST or HANG."""
    response = exchange.response
    gone = exchange.gone
    steps: list[Step] = []
    if response is not None:
        unseen = gone if gone is not None and not gone.head else None
        steps.append(_step(StepKind.HEAD, response.head_us, b"", pace, unseen))
        pushed = _is_pushed(exchange, response)
        for index, (chunk, data) in enumerate(_pieces(response)):
            unseen = gone if gone is not None and index >= gone.chunks else None
            step = _step(StepKind.DATA, chunk.at_us, data, pace, unseen)
            if pushed and chunk.after > exchange.seq:
                latest_us = max(step.at_us, chunk.at_us) + CAUSE_MARGIN_US
                causes = range(exchange.seq + 1, chunk.after + 1)
                step = step._replace(causes=causes, latest_us=latest_us)
            steps.append(step)
    if exchange.fault is not None:
        # Until a fault's transport form is recorded, one before the head is a reset and one in the
        # body is the end of the stream: that is what the client was given while recording.
        kind = StepKind.FIN if response is not None else StepKind.RST
        if response is not None and exchange.fault.kind is FaultKind.RESET:
            kind = StepKind.RST
        steps.append(_step(kind, exchange.fault.at_us, b"", pace, gone))
    elif response is not None and response.complete:
        steps.append(_step(StepKind.END, exchange.end_us, b"", pace, gone))
    elif response is not None and gone is None:
        # The recorder itself died over it: the client saw its connection end.
        steps.append(_step(StepKind.FIN, exchange.end_us, b"", pace, None))
    else:
        steps.append(Step(0, StepKind.HANG))
    return steps


def _step(kind: StepKind, at_us: int, data: bytes, pace: float, unseen_by: Gone | None) -> Step:
    if unseen_by is None:
        return Step(int(at_us * pace), kind, data)
    # Not before the client left, nor before what it had been sent is played at a slower pace.
    late_us = max(int(at_us * max(pace, 1)), unseen_by.at_us)
    return Step(late_us + LATE_MARGIN_US, kind, data)


def _is_pushed(exchange: Exchange, response: Response) -> bool:
    kind = response.header(b"content-type") or b""
    pushed = kind.lower().startswith(b"text/event-stream")
    return pushed and exchange.request_class is not RequestClass.INFERENCE


def _pieces(response: Response) -> Iterator[tuple[Chunk, bytes]]:
    if not response.chunks:
        if response.body:
            yield Chunk(response.head_us, len(response.body)), response.body
        return
    start = 0
    for chunk in response.chunks:
        yield chunk, response.body[start : start + chunk.size]
        start += chunk.size
