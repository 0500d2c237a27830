"""Play a recorded outcome: steps with times, made as they are needed.

Offsets are microseconds since the request arrived. `pace` scales them; with `instant` (0) everything that
the client had received comes at once. What it had *not* received keeps its real time, whatever the pace:
a client that gave up while recording has to wait again, so that it gives up again.

A server may push an event on one stream because of a request on another; MCP servers do. So an event of
such a stream also waits until the requests that had arrived before it have been asked again, but not much
longer than it took then: an agent that leaves a request out is not to hang. Streams of models and answers
that are no event streams are caused by their own request alone.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from ..exchange import (
    Chunk,
    Ending,
    Exchange,
    Gone,
    HttpResponse,
    Interim,
    RawInterim,
    RequestClass,
    Seq,
)

LATE_MARGIN_US = 500_000
"""An answer that arrived after the client had left is offered this much later than it came, so that a
client that leaves at about the same moment as then leaves first again."""
_SLACK = 4
"""A client that leaves a quarter later than its recorded self left leaves when that did: machines are slow at times."""
_PATIENCE = 2
_PATIENCE_US = 2_000_000
"""A client that has begun to read an answer of which the tape has no more leaves later than its recorded self if it stays so
many times as long, and so much longer: when more would have come is not known, so this is generous."""
_WHOLE = 1 << 63
"""Bytes of a request that ends before its answer does."""
CAUSE_MARGIN_US = 1_000_000
"""A piece whose cause has not come is played this much after its recorded time all the same."""
END_MARGIN_US = 10_000_000
"""The same for the end of a stream of pushed events: nobody waits for it, and a client that sees it early asks once more."""


ORDER_MARGIN_US = 500_000
"""The end of an answer waits so much longer than its time for those that had been answered before it."""


class StepKind(StrEnum):
    """What to do next with the client's connection or stream."""

    INTERIM = "interim"
    """An answer of 1xx, before the head."""
    HEAD = "head"
    DATA = "data"
    END = "end"
    FAIL = "fail"
    """End it as `Step.ending` says."""
    HANG = "hang"
    LATE = "late"
    """What follows was never seen by the recorded client, and is not played, or not on the tape: see `late_wait_us`."""


class Rest(StrEnum):
    """How much the tape has of what the recorded client left."""

    WHOLE = "whole"
    PART = "part"
    NONE = "none"


class Step(NamedTuple):
    """One thing to do, at its time."""

    at_us: int
    kind: StepKind
    data: bytes = b""
    causes: range = range(0)
    """Not before the tape's exchanges with these seqs have been asked for ..."""
    latest_us: int = 0
    """... or so much time has passed."""
    need: int = 0
    """Not before so many bytes of the request have come."""
    ending: Ending = Ending.RST
    code: int = 0
    """Of an RST_STREAM."""
    unseen: bool = False
    """Whether the recorded client had left by then."""
    due_us: int = 0
    """Of LATE: a client that is still there by then waits for more than its recorded self; 0 where nobody can say that."""
    rest: Rest = Rest.NONE
    """Of LATE: what the tape has of what is not played."""
    interim: RawInterim | Interim | None = None
    """Of INTERIM."""
    ordered: Seq | None = None
    """Not before what the tape's exchange with this seq overlapped and followed has been answered, for as long as
    `ORDER_MARGIN_US`; the last piece of an answer has it."""


_TAIL_BYTES = 4096
"""Where the last event of a stream is looked for."""


class Steps:
    """Steps that are looked at before they are taken; only one is held."""

    def __init__(
        self,
        steps: Iterable[Step],
        change: Callable[[bytes], bytes] | None = None,
        gone: Gone | None = None,
    ) -> None:
        """Begin with the first of `steps`.

        change: is given each piece of the body as it is taken, and gives what is played in its place.
        gone: how the recorded client left; None where it had the whole answer.
        """
        self.gone = gone
        self._steps = iter(steps)
        self._change = change
        self.next: Step | None = next(self._steps, None)
        self.head = False
        """Whether the answer's head was taken."""
        self.size = 0
        """Bytes of its body that were taken."""
        self.tail = b""
        """The last of them."""

    def take(self) -> Step:
        """Take the next step; call only where there is one. Its data may differ from that of `next`."""
        step = self.next
        assert step is not None
        self.next = next(self._steps, None)
        if self._change is not None and step.kind is StepKind.DATA:
            step = step._replace(data=self._change(step.data))
        if step.kind is StepKind.HEAD:
            self.head = True
        elif step.data:
            self.size += len(step.data)
            self.tail = (self.tail + step.data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        return step

    def close(self) -> None:
        """Take no more of them, and let go of the files that they are read from."""
        self.next = None
        close = getattr(self._steps, "close", None)
        if close is not None:
            close()

    def rest(self) -> Iterator[Step]:
        """Take what is left, step by step."""
        while self.next is not None:
            yield self.take()


def script(
    exchange: Exchange,
    pace: float,
    pieces: Iterable[tuple[Chunk, bytes]] | None = None,
    late_wait_us: int | None = None,
    played: tuple[HttpResponse | None, Iterable[RawInterim | Interim]] | None = None,
    *,
    ordered: bool = False,
    served: bool = False,
) -> Iterator[Step]:
    """Give the steps that play an exchange; the last one is END, FAIL, HANG or LATE.

    pieces: the body of a response that is spilled, piece by piece; what reading it raises is passed on.
    late_wait_us: longest wait, after the recorded client had left, for the present one to leave; then LATE comes in the
        place of what the recorded client never saw. None plays that, too, and waits for ever for what the tape does not have.
    played: its answer and interim answers as they are to be played; None plays those that were kept.
    ordered: its last piece waits for the exchanges that overlapped this one and were answered before it.
    served: with `late_wait_us`, what the recorded client never saw is played as far as the tape has it; LATE ends it where
        that is not the whole.
    """
    answer, interim = (exchange.response, exchange.interim) if played is None else played
    steps = _steps(exchange, answer, interim, pace, pieces)
    if ordered:
        steps = _in_order(steps, exchange.seq)
    gone = exchange.gone
    if gone is None or late_wait_us is None:
        return steps
    left_us = int(gone.at_us * max(pace, 1))
    if gone.head and _is_open_ended(exchange):
        ends_late = None
    else:
        ends_late = Step(late_wait_us, StepKind.LATE)
    if served:
        return _until_unknown(steps, ends_late, left_us, begun=gone.head)
    is_whole = exchange.fault is not None or (answer is not None and answer.complete)
    rest = Rest.WHOLE if is_whole else Rest.PART
    late = Step(left_us + late_wait_us, StepKind.LATE, rest=rest)
    least_due_us = left_us + left_us // _SLACK + LATE_MARGIN_US
    seen = _until_late(steps, late, least_due_us)
    return _until_unknown(seen, ends_late, left_us, begun=gone.head)


def _in_order(steps: Iterator[Step], seq: Seq) -> Iterator[Step]:
    """Have the last piece of an answer wait for other answers."""
    held: Step | None = None
    for step in steps:
        last = step.kind in (StepKind.END, StepKind.FAIL)
        if held is not None:
            yield held._replace(ordered=seq) if last else held
        held = step if not last else None
        if last:
            yield step._replace(ordered=seq)
    if held is not None:
        yield held


def _until_unknown(
    steps: Iterator[Step], late: Step | None, left_us: int, *, begun: bool
) -> Iterator[Step]:
    """Have LATE in the place of HANG, so that nobody waits for ever for what the tape does not have.

    late: its time is the wait; None lets an answer hang that has no end of its own.
    left_us: the recorded client left then.
    begun: whether it had been sent some of the answer. One that had not may wait as long as it likes: a deadline for several
        calls leaves another time to one of them.
    """
    last_us = left_us
    for step in steps:
        if step.kind is StepKind.HANG and late is not None:
            due_us = _PATIENCE * last_us + _PATIENCE_US if begun else 0
            yield late._replace(at_us=last_us + late.at_us, due_us=due_us)
            return
        last_us = max(last_us, step.at_us)
        begun = begun or step.kind is StepKind.HEAD
        yield step


def _until_late(steps: Iterator[Step], late: Step, least_due_us: int) -> Iterator[Step]:
    """End steps before the first that the recorded client did not see; the end of what it had whole is none.

    least_due_us: a client that leaves by then leaves when its recorded self did.
    """
    for step in steps:
        if step.unseen and step.kind is not StepKind.END:
            yield late._replace(due_us=max(step.at_us, least_due_us))
            close = getattr(steps, "close", None)
            if close is not None:
                close()
            return
        yield step


def _is_open_ended(exchange: Exchange) -> bool:
    """Say whether an answer has no end of its own: a stream of pushed events."""
    return exchange.response is not None and _is_pushed(exchange, exchange.response)


def _steps(
    exchange: Exchange,
    response: HttpResponse | None,
    interim: Iterable[RawInterim | Interim],
    pace: float,
    pieces: Iterable[tuple[Chunk, bytes]] | None,
) -> Iterator[Step]:
    gone = exchange.gone
    for one in interim:
        unseen = gone if gone is not None and one.at_us > gone.at_us else None
        yield _step(StepKind.INTERIM, one.at_us, b"", pace, unseen)._replace(interim=one)
    if response is not None:
        unseen = gone if gone is not None and not gone.head else None
        head = _step(StepKind.HEAD, response.head_us, b"", pace, unseen)
        yield head._replace(need=response.head_need) if response.head_need else head
        pushed = _is_pushed(exchange, response)
        for index, (chunk, data) in enumerate(pieces or _pieces(response)):
            unseen = gone if gone is not None and index >= gone.chunks else None
            step = _step(StepKind.DATA, chunk.at_us, data, pace, unseen)
            if chunk.need:
                step = step._replace(need=chunk.need)
            if pushed and chunk.after > exchange.seq:
                latest_us = max(step.at_us, chunk.at_us) + CAUSE_MARGIN_US
                causes = range(exchange.seq + 1, chunk.after + 1)
                step = step._replace(causes=causes, latest_us=latest_us)
            yield step
    fault = exchange.fault
    if fault is not None:
        step = _step(StepKind.FAIL, fault.at_us, b"", pace, gone)
        yield step._replace(ending=fault.ending, code=fault.code)
    elif response is not None and response.complete:
        end = _step(StepKind.END, exchange.end_us, b"", pace, gone)
        if _is_pushed(exchange, response) and response.end_after > exchange.seq:
            end = end._replace(
                causes=range(exchange.seq + 1, response.end_after + 1),
                latest_us=max(end.at_us, exchange.end_us) + END_MARGIN_US,
            )
        yield end._replace(need=_WHOLE if response.end_need is None else response.end_need)
    elif response is not None and gone is None:
        # The recorder itself died over it: the client saw its connection end.
        step = _step(StepKind.FAIL, exchange.end_us, b"", pace, None)
        yield step._replace(ending=Ending.FIN)
    else:
        yield Step(0, StepKind.HANG)


def _step(kind: StepKind, at_us: int, data: bytes, pace: float, unseen_by: Gone | None) -> Step:
    if unseen_by is None:
        return Step(int(at_us * pace), kind, data)
    # Not before the client left, nor before what it had been sent is played at a slower pace.
    late_us = max(int(at_us * max(pace, 1)), unseen_by.at_us)
    return Step(late_us + LATE_MARGIN_US, kind, data, unseen=True)


def _is_pushed(exchange: Exchange, response: HttpResponse) -> bool:
    return response.is_events and exchange.request_class is not RequestClass.INFERENCE


def _pieces(response: HttpResponse) -> Iterator[tuple[Chunk, bytes]]:
    if not response.chunks:
        if response.body:
            yield Chunk(response.head_us, len(response.body)), response.body
        return
    start = 0
    for chunk in response.chunks:
        yield chunk, response.body[start : start + chunk.size]
        start += chunk.size
