"""Which lane each request comes from, and what was on its way when it came; in a playback, which come late.

A lane is one client process, which is looked for once a connection. A recording waits for that only
before it writes an outcome, and a playback only where a request comes later than on the tape.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...config import Classes
from ...store import RunInfo, Store
from ...tape.exchange import Exchange, Seq
from ...tape.matching.index import reclassify
from ...tape.matching.lane_order import LaneOrder, Placed, ServedLanes, place

_LOOK_S = 1.0
"""Longest wait for the process of a client; it is unknown then."""


class Process(Protocol):
    """A client process."""

    @property
    def pid(self) -> int:
        """Its id."""


class Served(NamedTuple):
    """One exchange of the tape that was served."""

    seq: Seq
    """In the playback."""
    client: str
    """Id of the connection that asked for it."""


class Lanes:
    """The lanes of one open run."""

    def __init__(self) -> None:
        """Begin with no client."""
        self._looks: dict[str, asyncio.Future[Any]] = {}
        """Those under way, by client id."""
        self._clients: dict[str, int] = {}
        """Number of the lane, by client id."""
        self._numbers: dict[int, int] = {}
        """By process id, in the order in which they were first seen."""
        self._of_tape: dict[str, int] = {}
        """Lane of the tape that a client was served from first, by its id."""
        self._recorded: dict[int, int] = {}
        """By number, that of the lane under which requests are recorded."""
        self._lanes = ServedLanes()
        self._served: dict[Seq, Served] = {}
        """By the tape's seq."""
        self._order: LaneOrder | None = None
        """That of the tape; read when first needed."""
        self._reading = asyncio.Lock()

    def look(self, client: str, looking: "asyncio.Future[Any]") -> None:
        """Take the look for the `Process` of a client that has connected, by its id; it may give None. Loop."""
        self._looks[client] = looking
        looking.add_done_callback(partial(self._seen, client))

    def _seen(self, client: str, looking: "asyncio.Future[Any]") -> None:
        self._looks.pop(client, None)
        if looking.cancelled() or looking.exception() is not None:
            return
        found: Process | None = looking.result()
        if found is not None:
            self._clients[client] = self._numbers.setdefault(found.pid, len(self._numbers) + 1)

    async def find_number(self, client: str) -> int:
        """Find the number of the lane that a client belongs to, by its id; 0 where its process cannot be seen."""
        looking = self._looks.get(client)
        if looking is not None:
            await asyncio.wait((looking,), timeout=_LOOK_S)
            await asyncio.sleep(0)  # what is told of it is called in the next turn of the loop
        return self._clients.get(client, 0)

    async def find_lane(self, client: str) -> int:
        """Find the number under which the lane of a client is recorded, by its id: that of the tape, where its process goes on with one."""
        number = await self.find_number(client)
        if not number:  # it may be any process: of several lanes none is its own
            served = {*self._of_tape.values()}
            return served.pop() if len(served) == 1 else 0
        if number not in self._recorded:
            lanes = (
                lane for other, lane in self._of_tape.items() if self._clients.get(other) == number
            )
            beside = number + max(self._of_tape.values(), default=0)
            self._recorded[number] = next(lanes, beside)
        return self._recorded[number]

    def take(self, exchange: Exchange, seq: Seq, client: str) -> tuple[Seq, ...]:
        """Note that an exchange of the tape is served; give those behind it in its lane that were served before.

        seq, client: of the request in the playback.
        """
        later = self._lanes.take(exchange.seq, exchange.lane)
        if exchange.lane is not None:
            self._of_tape.setdefault(client, exchange.lane.number)
            self._served[exchange.seq] = Served(seq, client)
        return later

    async def read_order(self, store: Store, tape: RunInfo, classes: Classes) -> LaneOrder:
        """Read the order of a tape.

        Raises: LogCorrupt.
        """
        async with self._reading:
            if self._order is None:
                self._order = await asyncio.to_thread(_read_order, store, tape, classes)
            return self._order

    async def find_first(
        self,
        seq: Seq,
        client: str,
        later: Iterable[Seq],
        is_before: Callable[[Seq], bool],
        waiting: Set[Seq],
    ) -> tuple[Seq, Served] | None:
        """Find the first of several that came and was served before a request of its own lane that is before it on the tape.

        seq, client: of the request in the playback.
        waiting: requests of the playback that have not been answered yet.
        """
        number = await self.find_number(client)
        for one in later:
            served = self._served.get(one)
            # Which is decided on first says nothing: a body may take its time to come.
            if served is None or served.seq > seq or served.seq in waiting or not is_before(one):
                continue
            other = await self.find_number(served.client)
            if not number or not other or number == other:
                return one, served
        return None


def _read_order(store: Store, tape: RunInfo, classes: Classes) -> LaneOrder:
    def placed() -> Iterator[Placed]:
        for recorded in store.exchanges.all(tape):
            exchange = reclassify(recorded, classes)
            found = place(exchange, exchange.request_class)
            if found is not None:
                yield found

    def calls(seq: Seq) -> int:
        recorded = store.exchanges.find(tape, seq)
        return _count_calls(recorded) if recorded is not None else 0

    return LaneOrder(placed(), calls)


def _count_calls(exchange: Exchange) -> int:
    """Count the tools that the answer of a model asked for."""
    # It reads every dialect: for a late request, not for a start.
    from ...tape.dialects.reader import read_response

    answer = read_response(exchange.request, exchange.response) if exchange.response else None
    return max((len(one.message.tool_calls) for one in answer.choices), default=0) if answer else 0
