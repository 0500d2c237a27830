"""Read the model calls of a run backwards from a seq.

Only as much of the run is read as the search needs: the answer is most often one exchange away, whatever the length of the run.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import merge
from itertools import accumulate, islice
from typing import NamedTuple

from ...store import LogCorrupt, RunInfo, Store
from ...tape.dialects import InferenceResponse, read_response
from ...tape.exchange import Exchange, Gone, Message, RequestClass
from ...tape.records.codec import BadRecord, decode_exchange
from ...tape.records.events import Event, EventKind
from ..lookup.missing_exchange_error import no_exchange, no_part
from ..reading.settle_repeated_effect import find_settled
from ..reading.substituted_answer import CHANGES, find_played, is_from_tape
from ..steps.model_call import ModelCall, read_call, same_agent
from ..steps.model_context import read_context
from ..steps.read_run import find_served
from ..steps.websocket_calls import renumber_arrivals, split_websocket

NO_OUTCOME = "no outcome"
"""What is said of a request that was under way when its run ended."""
HORIZON = 256
"""Exchanges before a call in which the one that it goes on from is looked for."""
_BLOCK = 32
"""Exchanges that are read at a time."""
_WEBSOCKET = b"\xacconversation"
"""In the fields of a packed exchange that has messages beside it."""


class Place(NamedTuple):
    """Where a request is in the order in which a run asked: a model call of a WebSocket comes when it was asked, not with its handshake."""

    after: int
    """The exchange that had arrived last; itself, but for a model call of a WebSocket."""
    started_ns: int
    """-1 of an exchange: what arrived last comes before what was asked then."""
    seq: int
    part: int


@dataclass
class Exchanges:
    """The exchanges of a run by seq; those of a playback that its tape answered are found there."""

    store: Store
    info: RunInfo
    _served: dict[int, Event] = field(default_factory=dict)
    _changes: dict[int, list[Event]] = field(default_factory=dict)
    _left: dict[int, Event] = field(default_factory=dict)
    _played: dict[int, int] = field(default_factory=dict)

    @cached_property
    def seqs(self) -> list[int]:
        """The seqs of the run, in order."""
        held: set[int] = set(self.store.exchanges.seqs(self.info))
        if self.info.parent is not None:
            for event in self.store.events.all(self.info):
                if event.kind is EventKind.VERDICT and "tape_seq" in event.data:
                    self._served[event.seq] = event
                elif event.kind in CHANGES:
                    self._changes.setdefault(event.seq, []).append(event)
                elif event.kind is EventKind.OUTCOME and "gone_us" in event.data:
                    self._left[event.seq] = event
                elif event.kind is EventKind.NOTED and "played" in event.data:
                    self._played[event.seq] = event.data["played"]
        return sorted(held | self._served.keys())

    def find(self, seq: int) -> Exchange | None:
        """Find an exchange by its seq."""
        own = find_settled(self.store, self.info, seq)
        if self.info.parent is None or (own is not None and not is_from_tape(self.info, own)):
            return own
        if seq not in self.seqs:
            return own
        if own is not None:
            return find_played(self.info, own, self._served.get(seq), self._changes.get(seq, ()))
        tape = self.store.runs.find_tape(self.info)
        served = self._served.get(seq)
        if tape is None or served is None:
            return None
        return find_served(self.store, tape, served, self._changes.get(seq, ()))

    def find_taken(self, seq: int) -> Exchange | None:
        """Find an exchange by its seq; what a tape answered with what the client of this run took of it, not the recorded one."""
        found = self.find(seq)
        if found is None or seq not in self._served:
            return found
        left = self._left.get(seq)
        if left is None:
            return replace(found, gone=None)
        head, size = left.data.get("taken", (1, 0))
        chunks = found.response.chunks if found.response is not None else ()
        ends = list(accumulate(chunk.size for chunk in chunks))
        gone = Gone(left.data["gone_us"], bisect_right(ends, size), head=bool(head))
        return replace(found, gone=gone)

    def find_some(self, seqs: list[int], marks: list[bytes] | None) -> Iterator[Exchange]:
        """Give those of some exchanges that have one of some bytes in the body of their request, and every WebSocket.

        seqs: in order.
        marks: None for all. Of a recording those without are not unpacked.
        Raises: LogCorrupt, naming the run and the seq.
        """
        if marks is None or self.info.parent is not None:
            found = (self.find(seq) for seq in seqs)
            yield from (one for one in found if one is not None)
            return
        for seq, packed in self.store.exchanges.raw(self.info, seqs):
            value, at = packed.value, packed.body_at
            has_mark = any(value.find(mark, at) >= 0 for mark in marks)
            if has_mark or value.find(_WEBSOCKET, 0, packed.answer_at) >= 0:
                try:
                    yield decode_exchange(value)
                except BadRecord as error:
                    raise LogCorrupt(f"run {self.info.id}, exchange {seq}: {error}") from error

    def get(self, seq: int) -> Exchange:
        """Give an exchange by its seq.

        Raises: StoreError, naming the range of the run and the nearest; LogCorrupt.
        """
        found = self.find(seq)
        if found is None:
            raise no_exchange(self.info.id, seq, self.seqs)
        return found

    def get_part(self, exchange: Exchange, part: int) -> Exchange:
        """Give a model call of a WebSocket, as the exchange that it would have been.

        part: from 1.
        Raises: StoreError, naming the parts that there are.
        """
        calls = self.asked(exchange) if exchange.websocket is not None else []
        for number, made in calls:
            if number == part:
                return made
        raise no_part(self.info.id, exchange.seq, part, len(calls))

    @cached_property
    def parts(self) -> list[Place]:
        """The places of the model calls of WebSockets, in the order in which they were asked.

        Raises: LogCorrupt.
        """
        found = []
        for exchange in self.websockets():
            for part, (_, made, after) in enumerate(
                split_websocket(exchange, self.messages(exchange)), 1
            ):
                arrived = after or max(exchange.seq, self.find_begun(made.started_ns))
                found.append(Place(arrived, made.started_ns, exchange.seq, part))
        return sorted(found)

    def place_of(self, seq: int, part: int = 0) -> Place:
        """Give the place of a request; that of the handshake for a WebSocket without a part."""
        plain = Place(seq, -1, seq, 0)
        return self._places.get((seq, part), plain) if part else plain

    @cached_property
    def _places(self) -> dict[tuple[int, int], Place]:
        return {(one.seq, one.part): one for one in self.parts}

    @property
    def last_place(self) -> Place:
        """The place of what was asked last of all."""
        return max([self.place_of(max(self.seqs, default=1)), *self.parts[-1:]])

    def find_begun(self, at_ns: int) -> int:
        """Find the last exchange that had begun at a time; 0 where none had.

        Raises: LogCorrupt.
        """
        seqs = self.seqs
        low, high = 0, len(seqs)
        while low < high:
            middle = (low + high) // 2
            exchange = self.find(seqs[middle])
            if exchange is None:
                raise LogCorrupt(f"run {self.info.id}, exchange {seqs[middle]}: it is not there")
            if exchange.started_ns <= at_ns:
                low = middle + 1
            else:
                high = middle
        return seqs[low - 1] if low else 0

    def messages(self, exchange: Exchange) -> Iterator[Message]:
        """Read the messages of a WebSocket."""
        served = self._served.get(exchange.seq)
        tape = self.store.runs.find_tape(self.info) if served is not None else None
        if served is not None and tape is not None:
            messages = self.store.messages.all(tape, served.data["tape_seq"])
            own = [(one.data["tape_seq"], seq) for seq, one in self._served.items()]
            return renumber_arrivals(messages, exchange.seq, own)
        return iter(self.store.messages.all(self.info, exchange.seq))

    def answered(self, exchange: Exchange) -> list[tuple[int, Exchange]]:
        """Give those of `asked` that a model or its tape answered: of a WebSocket from a tape what was played of it."""
        asked, played = self.asked(exchange), self._played.get(exchange.seq)
        if exchange.websocket is None or played is None:
            return asked
        calls = split_websocket(exchange, islice(self.messages(exchange), played))
        begun = {
            part
            for part, (_, made, _) in enumerate(calls, 1)
            if made.response is not None and made.response.body
        }
        return [(part, made) for part, made in asked if part in begun]

    def websockets(self) -> Iterator[Exchange]:
        """Give the WebSockets that have messages, in order; no other exchange is read.

        Raises: LogCorrupt.
        """
        seqs = set(self.seqs) & set(self.store.messages.seqs(self.info))
        tape = self.store.runs.find_tape(self.info) if self._served else None
        if tape is not None:
            known = set(self.store.messages.seqs(tape))
            seqs |= {seq for seq, one in self._served.items() if one.data["tape_seq"] in known}
        for exchange in map(self.find, sorted(seqs)):
            if exchange is not None and exchange.websocket is not None:
                yield exchange

    def events(self) -> Iterator[Event]:
        """Read the log of the run."""
        return iter(self.store.events.all(self.info))

    def under_way(self) -> list[Event]:
        """Give the intents of requests that the log has without an outcome: their proxy died, or still waits. In order."""
        held, intents = {*self.seqs}, dict[int, Event]()
        for event in self.events():
            if event.kind is EventKind.INTENT and event.seq not in held:
                intents[event.seq] = event
            elif event.kind is EventKind.VERDICT:
                intents.pop(event.seq, None)
        return list(intents.values())

    def asked(self, exchange: Exchange) -> list[tuple[int, Exchange]]:
        """Give the requests to models of an exchange, with their parts: one, several of a WebSocket, or none."""
        if exchange.websocket is not None:
            calls = split_websocket(exchange, self.messages(exchange))
            return [(part, one.made) for part, one in enumerate(calls, 1)]
        asks = exchange.request_class is RequestClass.INFERENCE
        return [(0, exchange)] if asks and exchange.request.spilled is None else []


def read_answer(exchange: Exchange) -> InferenceResponse | None:
    """Read what a model answered."""
    response = exchange.response
    if response is None or response.spilled is not None:
        return None
    return read_response(exchange.request, response)


def calls_before(
    exchanges: Exchanges,
    call: ModelCall,
    *,
    horizon: int = HORIZON,
    marks: list[bytes] | None = None,
) -> Iterator[ModelCall]:
    """Give the model calls before one, the last first; those beside the conversation are left out.

    Each is read against the call's context, and has its answer where the two share something.
    marks: bytes one of which a request has to have, else it is passed over unread.
    """
    place = exchanges.place_of(call.seq, call.part)
    for part, made in asked_before(exchanges, place, horizon, marks):
        context = read_context(made.request, made.seq, call.context)
        if context is None or context.asked.rpc:
            continue
        found = read_call(made, context, None, part)
        if found.aside:
            continue
        if context.told or call.context.is_kept or same_agent(found, call):
            found = read_call(made, context, read_answer(made), part)
        yield found


def asked_before(
    exchanges: Exchanges, place: Place, horizon: int = HORIZON, marks: list[bytes] | None = None
) -> Iterator[tuple[int, Exchange]]:
    """Give the requests to models before a place, the last first, each with its part.

    They are read in blocks, each in the order in which it was written: the store then unpacks every exchange once.
    """
    seqs = exchanges.seqs
    end = bisect_left(seqs, place.after if not place.part else place.after + 1)
    first = max(0, end - horizon)
    since = seqs[first] if first < len(seqs) else 0
    parts = [one for one in exchanges.parts if one < place and since <= one.after]
    for _, part, made in merge(
        _exchanges_before(exchanges, end, first, marks),
        _parts_before(exchanges, parts, marks),
        key=lambda one: one[0],
        reverse=True,
    ):
        yield part, made


_Placed = tuple[Place, int, Exchange]


def _exchanges_before(
    exchanges: Exchanges, end: int, first: int, marks: list[bytes] | None
) -> Iterator[_Placed]:
    sockets = {one.seq for one in exchanges.parts}
    size = 2
    while end > first:
        begin = max(first, end - size)
        block: list[_Placed] = []
        wanted = [seq for seq in exchanges.seqs[begin:end] if seq not in sockets]
        for exchange in exchanges.find_some(wanted, marks):
            for part, made in exchanges.asked(exchange):
                if _has_mark(made, marks):
                    block.append((exchanges.place_of(exchange.seq), part, made))
        yield from reversed(block)
        end, size = begin, min(size * 4, _BLOCK)


def _parts_before(
    exchanges: Exchanges, parts: list[Place], marks: list[bytes] | None
) -> Iterator[_Placed]:
    calls: dict[int, dict[int, Exchange]] = {}
    for place in reversed(parts):
        if place.seq not in calls:
            exchange = exchanges.find(place.seq)
            calls[place.seq] = dict(exchanges.asked(exchange)) if exchange is not None else {}
        made = calls[place.seq].pop(place.part, None)
        if made is not None and _has_mark(made, marks):
            yield place, place.part, made


def _has_mark(exchange: Exchange, marks: list[bytes] | None) -> bool:
    return marks is None or any(mark in exchange.request.body for mark in marks)
