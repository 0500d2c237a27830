"""Ingest runs from a tape file, JSON lines or an archive, or a stored run that is rewritten.

Rules:

1. Nobody sees a run before all of it is stored: its rows are written under a number that is not on the run list, and one
   transaction puts all runs of an ingest onto the list.
2. A run that was not published is dropped: if the ingest fails, or, if its process died, when the store is next opened.
3. A run that is rewritten is written under another number, and one transaction puts its rows in the place of the old ones.
4. A run that could not be written, or that another process dropped, is never published as if it were whole.
"""

import contextlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import lmdb

from ...tape.exchange import Message, RunId
from ...tape.records.codec import BadRecord, pack_map, unpack
from ...tape.records.events import CHAIN_START, Event, check_link, decode_event
from ..deltas.shared_prefixes import rebase
from ..errors import StoreError, StoreUnwritable
from ..lmdb.database import Database
from ..lmdb_keys import ERASED_ROW, REWRITTEN_ROWS, number_key, pair_key
from ..tables.events import EventLog
from ..tables.exchanges import Exchanges, Record
from ..tables.folders import Content, Folders
from ..tables.run_info import Owner, RunInfo, RunStatus, Told
from ..tables.runs import RunList, check_name, is_alive
from ..tables.websocket_messages import Messages
from .removal import move_rows, remove_rows

_META_PREFIX = b"intake/"
_MOST_WAITING = 64
"""Operations that may wait for the writer; more are waited for, which bounds memory."""


class Ingest:
    """An ingest of runs into the store. Blocks; never use it on an event loop."""

    def __init__(
        self,
        database: Database,
        runs: RunList,
        log: EventLog,
        exchanges: Exchanges,
        messages: Messages,
        folders: Folders,
    ) -> None:
        """Begin with no run. Use it as a context manager: what was not published is dropped in the end."""
        self._database = database
        self._runs = runs
        self._log = log
        self._exchanges = exchanges
        self._messages = messages
        self._folders = folders
        self._failures = self._count_failures()
        self._begun: list[int] = []
        self._chains: dict[int, tuple[int, bytes]] = {}

    def __enter__(self) -> "Ingest":
        return self

    def __exit__(self, *_: object) -> None:
        dropped, self._begun = self._begun, []
        if dropped:
            # Else whoever opens the store next drops them.
            with contextlib.suppress(StoreUnwritable):
                self._database.writer.call(lambda txn: _drop(self._database, txn, dropped))

    def begin(self, name: str) -> int:
        """Give the number of a new run.

        name: that it should have.
        Raises: StoreError, when it cannot be a name; StoreUnwritable.
        """
        check_name(name)
        return self._reserve(None)

    def begin_restore(self, info: RunInfo) -> int:
        """Give the number of an archived run whose rows are about to be restored; `publish_restored` ends that.

        Nobody sees them before: its row says that it is away.
        Raises: StoreUnwritable.
        """
        self._reserve(info.number)
        return info.number

    def begin_rewrite(self) -> int:
        """Give the number under which a stored run is written anew; `publish_rewritten` ends that.

        Raises: StoreUnwritable.
        """
        return self._reserve(None)

    def put_event(self, run: int, value: bytes) -> Event:
        """Take an event as it stood in another store's log: its chain hash, then the event; give it.

        Raises: BadRecord, where it is none or does not follow the one before; StoreUnwritable.
        """
        number, before = self._chains.get(run, (1, CHAIN_START))
        event = decode_event(value, number)
        link = check_link(value, before)
        if link is None:
            raise BadRecord(f"event {number} does not follow the one before it")
        self._chains[run] = number + 1, link
        row = self._database.row("events", pair_key(run, number), value)
        self._database.writer.append(lambda: lambda txn: self._database.put_row(txn, row))
        self._wait()
        return event

    def save(self, run: int, record: Record) -> None:
        """Take an exchange, with its outcome event if it has one.

        Raises: StoreUnwritable.
        """
        self._exchanges.ingest(run, record)
        self._wait()

    def append_message(self, run: int, seq: int, number: int, message: Message) -> None:
        """Take a message of a WebSocket; see `store.messages.append`."""
        self._messages.append(run, seq, number, message)
        self._wait()

    def put_contents(self, run: int, contents: Iterable[Content]) -> None:
        """Take contents of files of a run's folder; see `store.folders.add_contents`. Raises: StoreUnwritable."""
        self._folders.add_contents(run, contents)

    def put_folder(self, run: int, number: int, packed: bytes) -> None:
        """Take a manifest or savepoint, after its contents; see `store.folders.rows`. Raises: StoreUnwritable."""
        self._folders.put(run, number, packed)

    def publish(self, runs: Sequence[RunInfo], gone_on: Collection[int] = ()) -> list[RunInfo]:
        """Put runs that were begun onto the list, all at once; give them as they now stand.

        runs: as they ended, each with the number it was begun under, the name it should have, and `parent_number` 0
            or that of another of them, or of a run in the store. A taken name becomes another, as for a new run.
        gone_on: numbers of those that crashed and were resumed in another store.
        Raises: StoreError, where something of it is not there; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> list[RunInfo]:
            self._check(transaction, runs)
            found: dict[int, RunInfo] = {}
            for told in runs:
                assert told.status is not RunStatus.OPEN
                wanted, playback, parent = told.id, False, told.parent
                if told.parent_number:
                    tape = found.get(told.parent_number) or self._runs.load(
                        transaction, told.parent_number
                    )
                    assert tape is not None
                    parent = tape.id
                    if told.mode == "playback":
                        wanted, playback = tape.id, True
                name = self._runs.find_free_name(transaction, wanted, playback)
                info = replace(told, id=RunId(name), parent=parent)
                self._runs.add(transaction, info)
                if info.number in gone_on:
                    self._runs.mark_gone_on(transaction, info.number)
                transaction.delete(
                    _META_PREFIX + number_key(info.number), db=self._database.tables["meta"]
                )
                found[info.number] = info
                for forget in self._runs.ended:
                    forget(info.number)
            return list(found.values())

        made: list[RunInfo] = self._database.writer.call(operation)
        published = {info.number for info in made}
        self._begun = [number for number in self._begun if number not in published]
        return made

    def publish_copies(self, runs: Sequence[RunInfo]) -> None:
        """Put runs that were begun onto the list of a store that has no others, as they stand: open ones, and under their names.

        Raises: StoreError, where a record could not be written; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> None:
            self._check(transaction, ())
            for info in runs:
                self._runs.add(transaction, info)
                key = _META_PREFIX + number_key(info.number)
                transaction.delete(key, db=self._database.tables["meta"])
                for forget in self._runs.ended:
                    forget(info.number)

        self._database.writer.call(operation)
        self._begun.clear()

    def publish_restored(self, info: RunInfo, at_ns: int) -> None:
        """Mark an archived run as restored, once all of its rows are stored.

        Raises: StoreError, where not all of it is; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> None:
            self._check(transaction, [info])
            now = self._runs.load(transaction, info.number)
            if now is None or now.archived is None:
                raise StoreError(f"run {info.id!r} was deleted meanwhile", "nothing was restored")
            here = replace(now, archived=replace(now.archived, restored_ns=at_ns))
            self._runs.put(transaction, here)
            transaction.delete(
                _META_PREFIX + number_key(info.number), db=self._database.tables["meta"]
            )
            for forget in self._runs.ended:
                forget(info.number)

        self._database.writer.call(operation)
        self._begun.remove(info.number)

    def publish_rewritten(self, info: RunInfo, number: int, told: Told) -> RunInfo:
        """Put what was written under a number in the place of a run that has ended; give the run as it now stands.

        Its index has no rules yet, so whoever plays it makes one. It is a run of the store alone: a batch of an archive
        that holds it is noted as one with bytes of before. Until these are gone everywhere, `store.removal.erasing` is True.
        told: what its row in the list is to say.
        Raises: StoreError, where something of it is not there, or it changed meanwhile; StoreUnwritable. The run is then
            as it was.
        """

        def operation(transaction: lmdb.Transaction) -> RunInfo:
            self._check(transaction, [replace(info, number=number)])
            now = self._runs.load(transaction, info.number)
            if now != info or now.status is RunStatus.OPEN or now.is_only_in_archive:
                raise StoreError(f"run {info.id!r} changed meanwhile", "nothing was rewritten")
            meta = self._database.tables["meta"]
            transaction.put(ERASED_ROW, b"", db=meta)
            if now.archived is not None:
                place, batch = now.archived.place, now.archived.batch
                value = pack_map({"place": place, "go": batch})
                transaction.put(REWRITTEN_ROWS + batch.encode(), value, db=meta)
            # Before its rows go: those that others share with it are made of theirs.
            rebase(self._database, transaction, now.number)
            indexes = {now.number, now.index_number, *now.stale}
            remove_rows(self._database, transaction, now.number, indexes)
            move_rows(self._database, transaction, number, now.number)
            made = replace(
                now,
                **told._asdict(),
                rules=b"",
                canonical=0,
                index=0,
                stale=(),
                archived=None,
            )
            self._runs.put(transaction, made)
            transaction.delete(_META_PREFIX + number_key(number), db=meta)
            for forget in self._runs.ended:
                forget(number)
                forget(now.number)
            return made

        made: RunInfo = self._database.writer.call(operation)
        self._begun.remove(number)
        # What it was goes from files next: should this be forgotten by then, the run would be, too.
        self._database.sync()
        return made

    def _reserve(self, known: int | None) -> int:
        us = self._runs.owner
        owner = pack_map({"owner": (us.pid, us.started, us.file)})

        def operation(transaction: lmdb.Transaction) -> int:
            number = self._runs.allocate_number(transaction) if known is None else known
            key = _META_PREFIX + number_key(number)
            transaction.put(key, owner, db=self._database.tables["meta"])
            # A failed attempt's rows were dropped: forget cached bases that refer to them.
            for forget in self._runs.ended:
                forget(number)
            return number

        number: int = self._database.writer.call(operation)
        self._begun.append(number)
        return number

    def _check(self, transaction: lmdb.Transaction, runs: Sequence[RunInfo]) -> None:
        """Raise StoreError unless all that was ingested is stored. Writer's thread."""
        if self._count_failures() != self._failures:
            raise StoreError(
                "a record could not be written; the log says why", "nothing was imported"
            )
        meta = self._database.tables["meta"]
        for run in runs:
            if transaction.get(_META_PREFIX + number_key(run.number), db=meta) is None:
                raise StoreError(
                    f"what was read of run {run.id!r} was dropped by a process that took this one for dead",
                    "nothing was imported; try again while nothing else writes to the store",
                )

    def _count_failures(self) -> tuple[int, int]:
        """Give how often something was not written; what an outage swallows is told to nobody else."""
        writer = self._database.writer
        return writer.failures, writer.outages

    def _wait(self) -> None:
        if self._database.writer.waiting >= _MOST_WAITING:
            self._database.writer.call(lambda _: None)


def drop_unpublished(database: Database, transaction: lmdb.Transaction) -> None:
    """Drop what processes that have died did not publish. Writer's thread."""
    table = database.tables["meta"]
    with transaction.cursor(table) as cursor:
        rows = [(bytes(key), bytes(value)) for key, value in cursor]
    dead = [
        key for key, value in rows if key.startswith(_META_PREFIX) and not _alive(database, value)
    ]
    _drop(database, transaction, [int.from_bytes(key[len(_META_PREFIX) :], "big") for key in dead])


def _alive(database: Database, value: bytes) -> bool:
    try:
        told: Any = unpack(value)
        return is_alive(database.path, Owner(*told["owner"]))
    except (BadRecord, TypeError, KeyError):
        return False


def _drop(database: Database, transaction: lmdb.Transaction, runs: Sequence[int]) -> None:
    for number in runs:
        remove_rows(database, transaction, number, (number,))
        transaction.delete(_META_PREFIX + number_key(number), db=database.tables["meta"])
