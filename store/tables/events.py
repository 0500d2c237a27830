"""The event log of each run: append-only, and each event chained to the one before it."""

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from ...tape.records.codec import BadRecord, pack_map
from ...tape.records.events import (
    CHAIN_START,
    Event,
    EventKind,
    check_link,
    decode_event,
    encode_event,
)
from ..errors import LogCorrupt, StoreUnwritable
from ..lmdb.database import Database, Row
from ..lmdb.writer import Operation
from ..lmdb_keys import number_key, pair_key
from .run_info import RunInfo

if TYPE_CHECKING:
    import asyncio

_PAGE = 1000
"""Events that `log` reads at a time."""


class Linked(NamedTuple):
    """An event, ready to be put."""

    event: Event
    row: Row
    next: int
    """Number of the event after it."""
    link: bytes


class CheckedRow(NamedTuple):
    """A row of the log as it lies there."""

    number: int
    value: bytes
    """Chain hash, then the event."""
    problem: str
    """What is wrong with it, or empty."""


class EventLog:
    """The event log of each run, `store.events`: the table `events`.

    Appends may come from any thread and keep their order. Reads raise StoreError where LMDB cannot be read. Methods that take a
    transaction belong to the store's other parts.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._chains: dict[int, tuple[int, bytes]] = {}
        """Of each run that is written: the next number, and the hash to chain it to."""
        self._change: Callable[[RunInfo, Event], Event] | None = None
        database.forgetting.append(self._chains.clear)

    def read_through(self, change: Callable[[RunInfo, Event], Event]) -> "EventLog":
        """Give the same log, each event as a function gives it where it is read; nothing is written that way."""
        changed = copy(self)
        changed._change = change
        return changed

    def forget(self, run: int) -> None:
        """Drop what is remembered of a run that has ended. Writer's thread."""
        self._chains.pop(run, None)

    def append(self, run: int, event: Event) -> None:
        """Append an event nobody waits for; what is awaited later comes after it.

        run: number of a run that is open.
        Raises: StoreUnwritable, while nothing can be written.
        """
        self._database.writer.append(lambda: lambda txn: self.put(txn, run, event), run)

    def append_made(self, run: int, make: Callable[[], Event]) -> None:
        """Append an event that is made on the writer's thread; nobody waits. See `append`."""

        def maker() -> Operation:
            made = make()
            return lambda txn: self.put(txn, run, made)

        self._database.writer.append(maker, run)

    def append_durably(
        self, run: int, event: Event | Callable[[], Event], *, vital: bool = False
    ) -> "asyncio.Future[None]":
        """Append an event, made on the writer's thread if it is a callable; the future is done once it is durable. On a running loop.

        run: number of a run that is open.
        vital: try it also when little space is free: it is small, and says how a run stands.
        Raises: StoreUnwritable, at once or in the future.
        """

        def make() -> Operation:
            made = event if isinstance(event, Event) else event()
            return lambda txn: self.put(txn, run, made)

        return self._database.writer.submit(make, run, vital=vital)

    def append_blocking(self, info: RunInfo, event: Event) -> None:
        """Append an event from a process without a loop; durable when it returns. Blocks.

        Raises: StoreUnwritable.
        """
        self._database.writer.call(lambda txn: self.put(txn, info.number, event))

    def put(self, transaction: lmdb.Transaction, run: int, event: Event) -> None:
        """Append an event inside a transaction. Writer's thread."""
        self.put_linked(transaction, run, self.link(transaction, run, event))

    def link(self, transaction: lmdb.Transaction, run: int, event: Event) -> Linked:
        """Put an event behind the last one; raises what it raises before anything is written.

        Raises: StoreUnwritable, where the run has no log, since it was deleted or archived meanwhile: what comes late
            would lie there for nobody.
        """
        number, before = self._chain(transaction, run)
        if number == 1 and event.kind is not EventKind.OPENED:
            raise StoreUnwritable(
                f"run number {run} holds nothing any more: it was deleted or archived meanwhile",
                "nothing was written",
            )
        value, link = encode_event(event, before)
        row = self._database.row("events", pair_key(run, number), value)
        return Linked(event, row, number + 1, link)

    def put_linked(self, transaction: lmdb.Transaction, run: int, linked: Linked) -> None:
        """Append an event that was linked in the same transaction."""
        if not self._database.put_row(transaction, linked.row, overwrite=False):
            # Another process took us for dead and wrote on: nothing of either is lost.
            del self._chains[run]
            linked = self.link(transaction, run, linked.event)
            self._database.put_row(transaction, linked.row, overwrite=False)
        self._chains[run] = (linked.next, linked.link)

    def _chain(self, transaction: lmdb.Transaction, run: int) -> tuple[int, bytes]:
        try:
            return self._chains[run]
        except KeyError:
            last = self._database.last(transaction, "events", run)
            if not last:
                return 1, CHAIN_START
            value = self._database.find(transaction, "events", pair_key(run, last))
            assert value is not None
            return last + 1, bytes(value[:16])

    def read(self, info: RunInfo, after: int = 0, limit: int | None = None) -> list[Event]:
        """Read events of a run in the order they were appended, in one transaction: all of them are in memory.

        after: last number already seen; 0 reads from the start.
        limit: most events returned; a shorter list means the end of the log *now*.
        Raises: LogCorrupt, naming the first event that cannot be read.
        """
        with self._database.reading() as transaction:
            found = list(self.read_in(transaction, info.number, after, limit))
        change = self._change
        return found if change is None else [change(info, event) for event in found]

    def all(self, info: RunInfo, page_events: int = _PAGE) -> Iterator[Event]:
        """Read all events of a run page by page, so that memory does not grow with its log; each page one snapshot.

        Raises: LogCorrupt.
        """
        after = 0
        while page := self.read(info, after, page_events):
            yield from page
            after = page[-1].number

    def of_kind(
        self, info: RunInfo, *kinds: EventKind, page_events: int = _PAGE
    ) -> Iterator[Event]:
        """Read the events of some kinds, as `all` does; others are passed over without being unpacked.

        Raises: LogCorrupt.
        """
        signs, after = [pack_map({"k": kind.value})[1:] for kind in kinds], 0
        while page := self._checked_page(info, after, page_events):
            for number, value, problem in page:
                try:
                    if problem:
                        raise BadRecord(problem)
                    is_likely = any(sign in value for sign in signs)
                    event = decode_event(value, number) if is_likely else None
                except BadRecord as error:
                    raise LogCorrupt(f"run {info.id}, event {number}: {error}") from error
                if event is not None and event.kind in kinds:
                    yield event if self._change is None else self._change(info, event)
            after = page[-1].number

    def checked(self, info: RunInfo, page_events: int = _PAGE) -> Iterator[CheckedRow]:
        """Read all rows of a run's log as they are kept, each held against the one before, page by page as `all` does.

        Raises nothing for a row that cannot be read: `problem` says what is wrong with it.
        """
        before, after = CHAIN_START, 0
        while page := self._checked_page(info, after, page_events):
            for number, value, problem in page:
                if not problem and check_link(value, before) is None:
                    problem = "it does not follow the one before"
                before, after = value[: len(CHAIN_START)], number
                yield CheckedRow(number, value, problem)

    def raw(self, info: RunInfo) -> Iterator[bytes]:
        """Read all events of a run as they are kept: chain hash, then the event.

        Raises: LogCorrupt, where one does not follow the one before.
        """
        for row in self.checked(info):
            if row.problem:
                raise LogCorrupt(f"run {info.id}, event {row.number}: {row.problem}")
            yield row.value

    def _checked_page(self, info: RunInfo, after: int, limit: int) -> list[CheckedRow]:
        with (
            self._database.reading() as transaction,
            self._database.cursor(transaction, "events") as cursor,
        ):
            page: list[CheckedRow] = []
            more = cursor.set_range(pair_key(info.number, after + 1))
            while more and len(page) < limit and cursor.key()[:8] == number_key(info.number):
                number = int.from_bytes(cursor.key()[8:], "big")
                try:
                    page.append(CheckedRow(number, self._opened(cursor), ""))
                except BadRecord as error:
                    page.append(CheckedRow(number, b"", str(error)))
                more = cursor.next()
            return page

    def _opened(self, cursor: lmdb.Cursor) -> bytes:
        key, data = cursor.item()
        return self._database.cipher.decrypt("events", bytes(key), bytes(data))

    def read_in(
        self, transaction: lmdb.Transaction, run: int, after: int = 0, limit: int | None = None
    ) -> Iterator[Event]:
        """Read events inside a transaction; see `read`."""
        with self._database.cursor(transaction, "events") as cursor:
            more = cursor.set_range(pair_key(run, after + 1))
            prefix = number_key(run)
            while more and (limit is None or limit > 0):
                key = cursor.key()
                if key[:8] != prefix:
                    return
                number = int.from_bytes(key[8:], "big")
                try:
                    yield decode_event(self._opened(cursor), number)
                except BadRecord as error:
                    raise LogCorrupt(f"run {run}, event {number}: {error}") from error
                limit = None if limit is None else limit - 1
                more = cursor.next()

    def find_broken_link(self, info: RunInfo) -> int | None:
        """Find the number of the first event of a run that cannot be read or does not follow the one before it; None if all are sound."""
        return next((row.number for row in self.checked(info) if row.problem), None)
