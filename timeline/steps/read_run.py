"""Read the steps of a run from the store: of a recording its exchanges, of a playback what its tape answered, too."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from ...store import RunInfo, Store
from ...tape.exchange import Exchange, Message, Seq, VerdictKind
from ...tape.records.events import Event, EventKind
from ..reading.settle_repeated_effect import find_settled
from ..reading.substituted_answer import CHANGES, find_given, find_played, tell_unsent
from .program_versions import Versions
from .step import Lane, Step, StepKind
from .steps_from_log import tell_between, tell_of_exchange
from .tracer import Price, Tracer
from .websocket_calls import renumber_arrivals


@dataclass(slots=True)
class RunReader:
    """Reads the steps of one run; what was read is not read again, so it can be asked once more while the run goes on."""

    store: Store
    info: RunInfo
    price: Price | None = None
    """Says what model calls cost."""
    texts: bool = False
    """Whether a step has what was sent and answered beside its text."""
    noted: list[Event] = field(default_factory=list)
    """What the log notes of the run as a whole, so far."""
    _tracer: Tracer = field(init=False)
    _changes: dict[int, list[Event]] = field(default_factory=dict)
    """What became of an answer of the tape before it was given."""
    _happened: dict[int, list[tuple[StepKind, str]]] = field(default_factory=dict)
    _asked: dict[int, Event] = field(default_factory=dict)
    """Requests of which no step has been given yet."""
    _between: deque[Step] = field(default_factory=deque)
    """What came between exchanges, and was not given yet."""
    _arrived: int = 0
    """The exchange that had arrived last, as far as the log was read."""
    _event: int = 0
    _after: int = 0

    def __post_init__(self) -> None:
        price = _find_nothing if self.price is not None and self.info.is_explored else self.price
        self._tracer = Tracer(self._happened, price=price, texts=self.texts)

    @property
    def lanes(self) -> list[Lane]:
        """The lanes so far."""
        return list(self._tracer.lanes)

    @property
    def versions(self) -> Versions:
        """The programs so far."""
        return self._tracer.versions

    def read(self, *, end: bool = True) -> Iterator[Step]:
        """Give the steps that are there and were not given yet, in order.

        end: also those of requests that have no outcome yet; else it is waited for. Steps whose lane a later call may change are then
            given once that is known; of a run that goes on they are given at once.
        Raises: LogCorrupt, naming the run and the seq.
        """
        held = deque[Step]()
        for step in self._read(end=end):
            held.append(step)
            since = self._tracer.open_since if end else None
            while held and (since is None or held[0].seq < since):
                yield held.popleft()
        yield from held

    def _read(self, *, end: bool) -> Iterator[Step]:
        self._read_events()
        for seq in self._seqs():
            yield from self._pop_between(seq - 1)
            exchange = self._find(seq)
            if exchange is None:
                asked = self._asked.pop(seq, None)
                if asked is None:
                    continue
                if not end and asked.kind is not EventKind.VERDICT:
                    self._asked[seq] = asked
                    return
                yield from _without_exchange(asked)
                for kind, text in self._happened.get(seq, ()):
                    yield Step(kind, asked.seq, "", text)
            else:
                steps = self._tracer.add(exchange, self._messages(exchange))
                unsent = tell_unsent(self.info, exchange)
                for step in steps if unsent else ():
                    if step.seq == seq and step.timing is not None:
                        step.marks = (*step.marks, unsent)
                        break
                yield from steps
                self._asked.pop(seq, None)
            self._after = seq
        if end:
            yield from self._tracer.end()
        yield from self._pop_between(self._arrived if end else self._after)

    def _pop_between(self, after: int) -> Iterator[Step]:
        """Give what came between exchanges, up to one of them."""
        while self._between and self._between[0].seq <= after:
            yield self._between.popleft()

    def _seqs(self) -> list[int]:
        held = self.store.exchanges.seqs(self.info, self._after)
        if self.info.parent is None and not self._asked.keys() - set(held):
            return list(held)
        return sorted({*held, *(seq for seq in self._asked if seq > self._after)})

    def _find(self, seq: int) -> Exchange | None:
        own = find_settled(self.store, self.info, seq)
        asked = self._asked.get(seq)
        if own is not None:
            return find_played(self.info, own, asked, self._changes.get(seq, ()))
        if self.info.parent is None:
            return None
        tape = self.store.runs.find_tape(self.info)
        if asked is None or tape is None or "tape_seq" not in asked.data:
            return None
        return find_served(self.store, tape, asked, self._changes.get(seq, ()))

    def _messages(self, exchange: Exchange) -> Iterable[Message]:
        if exchange.websocket is None:
            return ()
        asked = self._asked.get(exchange.seq)
        tape = self.store.runs.find_tape(self.info)
        if asked is not None and tape is not None and "tape_seq" in asked.data:
            messages = self.store.messages.all(tape, asked.data["tape_seq"])
            known = (one for one in self._asked.values() if "tape_seq" in one.data)
            own = [(one.data["tape_seq"], int(one.seq)) for one in known]
            return renumber_arrivals(messages, exchange.seq, own)
        return self.store.messages.all(self.info, exchange.seq)

    def _read_events(self) -> None:
        while page := self.store.events.read(self.info, self._event, 1000):
            for event in page:
                self._event = event.number
                if event.kind in (EventKind.INTENT, EventKind.VERDICT):
                    self._arrived = max(self._arrived, event.seq)
                    if event.seq > self._after:
                        self._asked[event.seq] = event
                elif event.kind is not EventKind.OUTCOME:
                    if event.kind is EventKind.HELD and event.seq > self._after:
                        self._arrived = max(self._arrived, event.seq)
                        self._asked.setdefault(event.seq, event)
                    self._take(event)

    def _take(self, event: Event) -> None:
        """Note what an event tells beside the exchanges."""
        if event.kind is EventKind.NOTED:
            self.noted.append(event)
        if event.kind in CHANGES and self.info.parent is not None:
            self._changes.setdefault(event.seq, []).append(event)
        told = tell_of_exchange(event)
        if told is not None:
            self._happened.setdefault(event.seq, []).append(told)
            return
        step = tell_between(event, Seq(self._arrived))
        if step is not None:
            self._between.append(step)


def _find_nothing(*_: object) -> Decimal:
    """Price a call for which nothing was sent."""
    return Decimal(0)


def find_served(
    store: Store, tape: RunInfo, verdict: Event, changes: Sequence[Event] = ()
) -> Exchange | None:
    """Find what answered a request of a playback, under the seq that the request has there: what a tape has, or was given in its place.

    changes: events of the exchange whose kind is in `CHANGES`.
    """
    seq = verdict.data["tape_seq"]
    found = store.exchanges.find(tape, seq)
    if found is None:
        return None
    served = replace(
        found,
        seq=verdict.seq,
        verdict=VerdictKind(verdict.data["verdict"]),
        reason=verdict.data["reason"],
        started_ns=verdict.at_ns,
        repeat=None,
    )
    return find_given(served, f"{tape.id} seq {seq}", changes)


def _without_exchange(event: Event) -> Iterator[Step]:
    """Give the steps of a request that has no exchange: it is under way, or was never answered from anywhere."""
    data = event.data
    name = f"{data['method']} {data['url']}"
    if event.kind is EventKind.HELD:
        yield Step(StepKind.HTTP, event.seq, name, "not sent", failed=True)
        return
    effect = data["request_class"] == "effect"
    if event.kind is EventKind.INTENT:
        yield Step(StepKind.HTTP, event.seq, name, "no outcome", effect=effect, failed=True)
        return
    yield Step(StepKind.HTTP, event.seq, name, "no answer kept", effect=effect)
    told = f"{data['verdict']}: {data['reason']}"
    yield Step(StepKind.POLICY, event.seq, "", told, failed=data["verdict"] == "refused")
