"""Read the steps of a run from the store: of a recording its exchanges, of a playback what its tape answered, too."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...store import RunInfo, Store
from ...tape.exchange import Exchange, Message, VerdictKind
from ...tape.records.events import Event, EventKind
from .step import Lane, Step, StepKind
from .tracer import Tracer

_KINDS = {
    EventKind.RULED: StepKind.DECISION,
    EventKind.CONTRACT: StepKind.POLICY,
    EventKind.INJECTED: StepKind.POLICY,
}


@dataclass(slots=True)
class RunReader:
    """Reads the steps of one run; what was read is not read again, so it can be asked once more while the run goes on."""

    store: Store
    info: RunInfo
    _tracer: Tracer = field(init=False)
    _happened: dict[int, list[tuple[StepKind, str]]] = field(default_factory=dict)
    _asked: dict[int, Event] = field(default_factory=dict)
    """Requests of which no step has been given yet."""
    _event: int = 0
    _after: int = 0

    def __post_init__(self) -> None:
        self._tracer = Tracer(self._happened)

    @property
    def lanes(self) -> list[Lane]:
        """The lanes so far."""
        return list(self._tracer.lanes)

    def read(self, *, end: bool = True) -> Iterator[Step]:
        """Give the steps that are there and were not given yet, in order.

        end: also those of requests that have no outcome yet; else it is waited for.
        Raises: LogCorrupt, naming the run and the seq.
        """
        self._read_events()
        for seq in self._seqs():
            exchange = self._find(seq)
            if exchange is None:
                asked = self._asked.pop(seq, None)
                if asked is None:
                    continue
                if not end and asked.kind is EventKind.INTENT:
                    self._asked[seq] = asked
                    return
                yield from _without_exchange(asked)
            else:
                yield from self._tracer.add(exchange, self._messages(exchange))
                self._asked.pop(seq, None)
            self._after = seq
        if end:
            yield from self._tracer.end()

    def _seqs(self) -> list[int]:
        held = self.store.exchanges.seqs(self.info, self._after)
        if self.info.parent is None and not self._asked.keys() - set(held):
            return list(held)
        return sorted({*held, *(seq for seq in self._asked if seq > self._after)})

    def _find(self, seq: int) -> Exchange | None:
        own = self.store.exchanges.find(self.info, seq)
        if own is not None or self.info.parent is None:
            return own
        asked = self._asked.get(seq)
        tape = self.store.runs.find_tape(self.info)
        if asked is None or tape is None or "tape_seq" not in asked.data:
            return None
        return find_served(self.store, tape, asked)

    def _messages(self, exchange: Exchange) -> Iterable[Message]:
        if exchange.websocket is None:
            return ()
        asked = self._asked.get(exchange.seq)
        tape = self.store.runs.find_tape(self.info)
        if asked is not None and tape is not None and "tape_seq" in asked.data:
            return self.store.messages.all(tape, asked.data["tape_seq"])
        return self.store.messages.all(self.info, exchange.seq)

    def _read_events(self) -> None:
        while page := self.store.events.read(self.info, self._event, 1000):
            for event in page:
                self._event = event.number
                if event.kind in (EventKind.INTENT, EventKind.VERDICT) and event.seq > self._after:
                    self._asked[event.seq] = event
                elif event.kind in _KINDS:
                    told = _KINDS[event.kind], _in_words(event.kind, event.data)
                    self._happened.setdefault(event.seq, []).append(told)


def find_served(store: Store, tape: RunInfo, verdict: Event) -> Exchange | None:
    """Find what a tape answered to a request of a playback, under the seq that the request has there."""
    found = store.exchanges.find(tape, verdict.data["tape_seq"])
    if found is None:
        return None
    return replace(
        found,
        seq=verdict.seq,
        verdict=VerdictKind(verdict.data["verdict"]),
        reason=verdict.data["reason"],
        started_ns=verdict.at_ns,
        repeat=None,
    )


def _in_words(kind: EventKind, data: Any) -> str:
    if kind is EventKind.RULED:
        why = f": {data['reason']}" if data.get("reason") else ""
        return f"{data['ruling']} by {data['by']}{why}"
    if kind is EventKind.INJECTED:
        return f"fault on purpose: {data['inject']}, rule {data['rule']}"
    first: Sequence[Any] = data["violations"][0] if data["violations"] else ()
    place = f" at {first[1]}: expected {first[2]}, found {first[3]}" if len(first) > 3 else ""
    return f"contract of its {data['of']}, rule {data['rule']}{place}"


def _without_exchange(event: Event) -> Iterator[Step]:
    """Give the steps of a request that has no exchange: it is under way, or was never answered from anywhere."""
    data = event.data
    name = f"{data['method']} {data['url']}"
    effect = data["request_class"] == "effect"
    if event.kind is EventKind.INTENT:
        yield Step(StepKind.HTTP, event.seq, name, "no outcome", effect=effect, failed=True)
        return
    yield Step(StepKind.HTTP, event.seq, name, "no answer kept", effect=effect)
    told = f"{data['verdict']}: {data['reason']}"
    yield Step(StepKind.POLICY, event.seq, "", told, failed=data["verdict"] == "refused")
