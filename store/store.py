"""The store: runs, their events and their exchanges, in one LMDB environment.

Rules: `events` is append-only and chained; an exchange is written once its outcome is known; nothing is
awaited but what rule 3 of the design asks for; a read transaction lives for one call. Readers in any
process see committed records only. Settings follow measurements: no writemap (a full disk would kill the
process), `metasync=False` (a power cut loses at most the last commit, never the file), a huge sparse map.
"""

import asyncio
import contextlib
import difflib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import lmdb
import psutil

from ..tape.codec import (
    BadRecord,
    decode_exchange,
    decode_message,
    encode_exchange,
    encode_message,
)
from ..tape.events import CHAIN_START, Event, EventKind, check_link, decode_event, encode_event
from ..tape.index import Index
from ..tape.model import Chunk, Exchange, Fingerprint, Message, RunId, Seq, Spilled
from ..tape.redact_stream import Stream
from . import bodies
from .errors import LogCorrupt, RunOpen, StoreError, StoreTooNew, StoreUnwritable, UnknownRun
from .layout import (
    FORMAT,
    MAX_NAME_BYTES,
    TABLES,
    fingerprint_key,
    message_key,
    number_key,
    origin_key,
    pair_key,
)
from .runs import Owner, RunInfo, RunStatus
from .spool import Spool, clear_partial, read_pieces
from .writer import Operation, Writer

logger = logging.getLogger(__name__)

_MAP_BYTES = 1 << 40
_SPARED_BYTES = 1 << 20
_KEY_BYTES = 511
_DIED = "its process died"
_PAGE = 1000
"""Events that `log` reads at a time."""
_FINGERPRINT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Record:
    """An exchange as it goes into the store."""

    exchange: Exchange
    raw: bytes
    """16-byte hash of the request's bytes, under which its fingerprint is found without parsing."""
    outcome: Event | None
    """None writes what has passed so far, to be written again when the outcome is known."""


class _Linked(NamedTuple):
    """An event, ready to be put."""

    event: Event
    key: bytes
    value: bytes
    next: int
    """Number of the event after it."""
    link: bytes


class _Reading:
    """A read transaction, as `with` wants it: several a request, so without a generator."""

    __slots__ = ("_environment", "_path", "_transaction")

    def __init__(self, path: Path, environment: lmdb.Environment) -> None:
        self._path = path
        self._environment = environment

    def __enter__(self) -> "lmdb.Transaction[bytes]":
        try:
            self._transaction = self._environment.begin()
        except lmdb.Error as error:
            raise _unreadable(self._path, error) from error
        return self._transaction

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._transaction.abort()
        if isinstance(error, lmdb.Error):
            raise _unreadable(self._path, error) from error


class Store:
    """One open store. Reads may come from any thread; writes go through `writer`."""

    def __init__(self, path: Path, environment: lmdb.Environment, writable: bool) -> None:
        """Use `Store.open` instead."""
        self.path = path
        self._environment = environment
        self._tables: dict[str, Any] = {}
        self._chains: dict[int, tuple[int, bytes]] = {}
        self._origins: set[bytes] = set()
        """Keys of the `origins` table that are there already; an agent meets few."""
        self._lock = threading.Lock()
        self._owner = Owner(os.getpid(), round(psutil.Process().create_time(), 2))
        self._writer: Writer | None = None
        if writable:
            self._writer = Writer(environment, self._forget)

    def _forget(self) -> None:
        """Drop what is remembered of a batch that did not reach the disk. Writer's thread."""
        self._chains.clear()
        self._origins.clear()

    # ---- opening -------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> "Store":
        """Open the store in a folder; a writer makes it when it is not there.

        Raises: StoreError (no store there), StoreTooNew, StoreUnwritable.
        """
        folder = path / "log.lmdb"
        try:
            if readonly and not _holds_data(folder):
                raise StoreError(
                    f"no store at {path}", "name another with --store, or record a run first"
                )
            if not readonly:
                # What agents and customers said is nobody else's to read on this machine.
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            environment = lmdb.open(
                str(folder),
                mode=0o600,
                map_size=_MAP_BYTES,
                max_dbs=len(TABLES),
                metasync=False,
                readonly=readonly,
                max_readers=1024,
                lock=not readonly or _may_lock(folder),
            )
        except (lmdb.InvalidError, lmdb.VersionMismatchError, lmdb.CorruptedError) as error:
            raise StoreError(
                f"{str(folder / 'data.mdb')!r} is not a store: {error}",
                "move it away, or name another store with --store",
            ) from error
        except (lmdb.Error, OSError) as error:
            raise StoreUnwritable(
                f"cannot open the store at {path}: {error}", _advice(error)
            ) from error
        store = cls(path, environment, writable=not readonly)
        try:
            store._check_size()
            store._check_format(readonly)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Write what is left and let go of the file. Blocks."""
        if self._writer is not None:
            self._writer.close()
        self._environment.close()

    def check_readers(self) -> None:
        """Clear the slots of readers that died: each would keep pages from being used again."""
        with contextlib.suppress(lmdb.Error):
            self._environment.reader_check()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def writer(self) -> Writer:
        """The writer; a store opened for reading has none."""
        assert self._writer is not None, "the store was opened for reading"
        return self._writer

    def _reading(self) -> "_Reading":
        """Give a read transaction; what LMDB says of it becomes an error that a person can act on."""
        return _Reading(self.path, self._environment)

    def _check_size(self) -> None:
        """Refuse a file that was cut short: touching what is missing would kill the process (SIGBUS).

        Pages that were allocated and freed in one transaction need never be written, so a few may be
        missing at the end of a sound file.
        """
        psize = self._environment.stat()["psize"]
        needed = (self._environment.info()["last_pgno"] + 1) * psize
        size = (self.path / "log.lmdb" / "data.mdb").stat().st_size
        if needed - size > min(_SPARED_BYTES, needed // 2):
            raise StoreError(
                f"the store at {self.path} was cut short: {size} of {needed} bytes are there",
                "copy it again while nothing writes to it, or name another with --store",
            )

    def _check_format(self, readonly: bool) -> None:
        try:
            found = self._read_format()
            if found is None and not readonly:
                self.writer.call(self._make)
            elif found is None:
                raise StoreError(f"no store at {self.path}", "record a run first")
            elif found > FORMAT:
                raise StoreTooNew(
                    f"the store at {self.path} has format {found}; this version reads up to {FORMAT}",
                    "use a newer Playhead, or name another store with --store",
                )
            for name in TABLES:
                # A store that an earlier version made lacks the tables that came later.
                with contextlib.suppress(lmdb.NotFoundError):
                    table = self._environment.open_db(name.encode(), create=not readonly)
                    self._tables[name] = table
            if not readonly:
                self._environment.reader_check()
                self.writer.call(self._recover)
                clear_partial(self._bodies)
        except (lmdb.Error, OSError) as error:
            raise _unreadable(self.path, error) from error

    def _read_format(self) -> int | None:
        try:
            meta = self._environment.open_db(b"meta", create=False)
        except (lmdb.NotFoundError, lmdb.ReadonlyError):
            found = None
        else:
            with self._environment.begin(db=meta) as transaction:
                found = transaction.get(b"format")
        if found is None:
            if self._environment.stat()["entries"]:
                raise StoreError(
                    f"the database at {self.path / 'log.lmdb'} is not a store of Playhead",
                    "name another folder with --store",
                )
            return None
        if not found.isdigit():
            raise StoreError(f"the store at {self.path} has no format version, but {found[:20]!r}")
        return int(found)

    def _make(self, transaction: lmdb.Transaction) -> None:
        for name in TABLES:
            self._tables[name] = self._environment.open_db(name.encode(), txn=transaction)
        transaction.put(b"format", str(FORMAT).encode(), db=self._tables["meta"])

    def _recover(self, transaction: lmdb.Transaction) -> None:
        """Close the runs whose process has died: what was in flight is unknown, never `not sent`."""
        with transaction.cursor(self._tables["open"]) as cursor:
            numbers = [int.from_bytes(key, "big") for key, _ in cursor]
        for number in numbers:
            try:
                info = self._load_run(transaction, number)
            except LogCorrupt as error:  # the other runs are sound
                logger.error("%s", error)
                continue
            if info is None or _alive(info.owner):
                continue
            unknown: set[Seq] = set()
            reason = _DIED
            try:
                for event in self._events(transaction, number, 0, None):
                    if event.kind is EventKind.INTENT:
                        unknown.add(event.seq)
                    elif event.kind is EventKind.OUTCOME:
                        unknown.discard(event.seq)
            except LogCorrupt as error:
                reason += f"; {error}"
            data = {"unknown": sorted(unknown)}
            self._end(transaction, info, RunStatus.RECOVERED, reason, time.time_ns(), data)

    # ---- runs ----------------------------------------------------------------------------------

    def create_run(
        self,
        wanted: str,
        *,
        mode: str,
        at_ns: int,
        parent: RunInfo | None = None,
        agent: str = "",
        rules: bytes = b"",
        canonical: int = 0,
    ) -> "asyncio.Future[RunInfo]":
        """Open a run; await it on a loop.

        wanted: its name; a taken one becomes NAME~2 (a recording) or NAME@1, NAME@2 ... (a playback,
            where `parent` is given and `wanted` is the tape's name).
        Raises: StoreError, when it cannot be a name: a key that LMDB refuses would fail the whole batch.
        """
        # A tape's name may be longer by the number that it got itself.
        if _name_key(wanted, MAX_NAME_BYTES if parent is None else _KEY_BYTES - 40) is None:
            raise StoreError(
                f"{wanted[:60]!r} cannot be the name of a run",
                f"a name is text of 1 to {MAX_NAME_BYTES} bytes",
            )

        def operation(transaction: lmdb.Transaction) -> RunInfo:
            meta = self._tables["meta"]
            number = int(transaction.get(b"next-run", db=meta) or b"1")
            run_id = RunId(self._free_name(transaction, wanted, parent is not None))
            transaction.put(b"next-run", str(number + 1).encode(), db=meta)
            info = RunInfo(
                number=number,
                id=run_id,
                mode=mode,
                created_ns=at_ns,
                parent=parent.id if parent else None,
                parent_number=parent.number if parent else 0,
                agent=agent,
                owner=self._owner,
                rules=rules,
                canonical=canonical,
            )
            transaction.put(number_key(number), info.encode(), db=self._tables["runs"])
            transaction.put(run_id.encode(), number_key(number), db=self._tables["names"])
            transaction.put(number_key(number), b"", db=self._tables["open"])
            self._append(
                transaction,
                number,
                Event(
                    EventKind.OPENED,
                    at_ns,
                    {"id": run_id, "mode": mode, "parent": info.parent, "agent": agent},
                ),
            )
            return info

        return self.writer.submit(lambda: operation)

    def _free_name(self, transaction: lmdb.Transaction, wanted: str, playback: bool) -> str:
        names = self._tables["names"]
        if not playback and transaction.get(wanted.encode(), db=names) is None:
            return wanted
        form, first = ("{}@{}", 1) if playback else ("{}~{}", 2)
        # The counter makes the thousandth playback of a tape as quick as the second.
        counter = f"\0{form}".format(wanted, "").encode()
        number = int(transaction.get(counter, db=names) or str(first).encode())
        while transaction.get(form.format(wanted, number).encode(), db=names) is not None:
            number += 1
        transaction.put(counter, str(number + 1).encode(), db=names)
        return form.format(wanted, number)

    def find_run(self, name: str) -> RunInfo | None:
        """Find a run by its name."""
        key = _name_key(name, _KEY_BYTES)
        if key is None:
            return None
        with self._reading() as transaction:
            number = transaction.get(key, db=self._tables["names"])
            if number is None:
                return None
            return self._shown(self._load_run(transaction, int.from_bytes(number, "big")))

    def get_run(self, name: str) -> RunInfo:
        """Get a run by its name.

        Raises: UnknownRun, which carries the nearest names.
        """
        info = self.find_run(name)
        if info is None:
            known = [run.id for run in self.runs()]
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.3)
            raise UnknownRun(name, tuple(near or reversed(known[-3:])))
        return info

    def runs(self) -> list[RunInfo]:
        """List all runs, oldest first, without reading a tape.

        A store opened for reading shows a run as recovered whose process has died, though nobody has
        closed it yet.
        Raises: LogCorrupt.
        """
        with self._reading() as transaction:
            found = []
            with transaction.cursor(self._tables["runs"]) as cursor:
                for key, value in cursor:
                    info = _run(int.from_bytes(key, "big"), bytes(value))
                    found.append(self._shown(self._current(transaction, info)))
            return found

    def find_latest(self) -> RunInfo | None:
        """Find the newest recording that has ended."""
        with (
            self._reading() as transaction,
            transaction.cursor(self._tables["runs"]) as cursor,
        ):
            for key, value in cursor.iterprev():
                info = _run(int.from_bytes(key, "big"), bytes(value))
                if info.mode == "record" and info.status is not RunStatus.OPEN:
                    return info
        return None

    def reload(self, info: RunInfo) -> RunInfo:
        """Read a run's row again."""
        with self._reading() as transaction:
            return self._shown(self._load_run(transaction, info.number) or info)

    @overload
    def _shown(self, info: RunInfo) -> RunInfo: ...

    @overload
    def _shown(self, info: None) -> None: ...

    def _shown(self, info: RunInfo | None) -> RunInfo | None:
        if self._writer is not None or info is None or info.status is not RunStatus.OPEN:
            return info
        if _alive(info.owner):
            return info
        return info.ended(RunStatus.RECOVERED, 0, info.exchanges, _DIED)

    def _load_run(self, transaction: lmdb.Transaction, number: int) -> RunInfo | None:
        value = transaction.get(number_key(number), db=self._tables["runs"])
        return self._current(transaction, _run(number, bytes(value))) if value else None

    def _current(self, transaction: lmdb.Transaction, info: RunInfo) -> RunInfo:
        if info.status is not RunStatus.OPEN:
            return info
        return replace(info, exchanges=self._last(transaction, "exchanges", info.number))

    def _last(self, transaction: lmdb.Transaction, table: str, number: int) -> int:
        with transaction.cursor(self._tables[table]) as cursor:
            found = cursor.set_range(number_key(number + 1))
            if not (cursor.prev() if found else cursor.last()):
                return 0
            key = cursor.key()
            return int.from_bytes(key[8:16], "big") if key[:8] == number_key(number) else 0

    def seal(
        self, info: RunInfo, *, reason: str, at_ns: int, unfinished: tuple[Seq, ...] = ()
    ) -> "asyncio.Future[RunInfo]":
        """End a run: nothing follows. Awaiting it gives the run as it now stands; twice is once."""
        return self.writer.submit(
            lambda: lambda txn: self._seal(txn, info, reason, at_ns, unfinished)
        )

    def seal_blocking(self, info: RunInfo, *, reason: str, at_ns: int) -> RunInfo:
        """End a run from a process without a loop."""
        sealed: RunInfo = self.writer.call(lambda txn: self._seal(txn, info, reason, at_ns, ()))
        return sealed

    def _seal(
        self,
        transaction: lmdb.Transaction,
        info: RunInfo,
        reason: str,
        at_ns: int,
        unfinished: tuple[Seq, ...],
    ) -> RunInfo:
        now = self._load_run(transaction, info.number) or info
        if now.status is not RunStatus.OPEN:
            return now
        data = {"unfinished": unfinished}
        return self._end(transaction, now, RunStatus.SEALED, reason, at_ns, data)

    def _end(
        self,
        transaction: lmdb.Transaction,
        info: RunInfo,
        status: RunStatus,
        reason: str,
        at_ns: int,
        data: dict[str, Any],
    ) -> RunInfo:
        last = self._last(transaction, "exchanges", info.number)
        ended = info.ended(status, at_ns, last, reason)
        kind = EventKind.SEALED if status is RunStatus.SEALED else EventKind.RECOVERED
        event = Event(kind, at_ns, {"reason": reason, "exchanges": last, **data})
        self._append(transaction, info.number, event)
        self._chains.pop(info.number, None)
        self._origins.clear()
        transaction.put(number_key(info.number), ended.encode(), db=self._tables["runs"])
        transaction.delete(number_key(info.number), db=self._tables["open"])
        return ended

    # ---- asking the owner of a run ---------------------------------------------------------------

    def ask(self, info: RunInfo, what: str) -> None:
        """Leave a message for the process that owns a run. Blocks."""
        key = number_key(info.number) + what.encode()
        self.writer.call(
            lambda txn: txn.put(key, str(time.time_ns()).encode(), db=self._tables["mail"])
        )

    def asked(self, info: RunInfo, what: str) -> bool:
        """Say whether somebody left a message for the owner of a run."""
        with self._reading() as transaction:
            key = number_key(info.number) + what.encode()
            return transaction.get(key, db=self._tables["mail"]) is not None

    def owner_alive(self, info: RunInfo) -> bool:
        """Say whether the process that writes a run is still there."""
        return _alive(info.owner)

    # ---- events --------------------------------------------------------------------------------

    def append(self, run: int, event: Event) -> None:
        """Append an event nobody waits for."""
        self.writer.append(lambda: lambda txn: self._append(txn, run, event))

    def append_made(self, run: int, make: Callable[[], Event]) -> None:
        """Append an event that is made on the writer's thread; nobody waits."""

        def maker() -> Operation:
            made = make()
            return lambda txn: self._append(txn, run, made)

        self.writer.append(maker)

    def append_durably(
        self, run: int, event: Event | Callable[[], Event]
    ) -> "asyncio.Future[None]":
        """Append an event, made on the writer's thread if it is a callable; done once durable."""

        def make() -> Operation:
            made = event if isinstance(event, Event) else event()
            return lambda txn: self._append(txn, run, made)

        return self.writer.submit(make)

    def _append(self, transaction: lmdb.Transaction, run: int, event: Event) -> None:
        self._put_event(transaction, run, self._link(transaction, run, event))

    def _link(self, transaction: lmdb.Transaction, run: int, event: Event) -> "_Linked":
        """Put an event behind the last one; raises what it raises before anything is written."""
        number, before = self._chain(transaction, run)
        value, link = encode_event(event, before)
        return _Linked(event, pair_key(run, number), value, number + 1, link)

    def _put_event(self, transaction: lmdb.Transaction, run: int, linked: "_Linked") -> None:
        table = self._tables["events"]
        if not transaction.put(linked.key, linked.value, db=table, overwrite=False):
            # Another process took us for dead and wrote on: nothing of either is lost.
            del self._chains[run]
            linked = self._link(transaction, run, linked.event)
            transaction.put(linked.key, linked.value, db=table, overwrite=False)
        self._chains[run] = (linked.next, linked.link)

    def _chain(self, transaction: lmdb.Transaction, run: int) -> tuple[int, bytes]:
        try:
            return self._chains[run]
        except KeyError:
            last = self._last(transaction, "events", run)
            if not last:
                return 1, CHAIN_START
            value = transaction.get(pair_key(run, last), db=self._tables["events"])
            assert value is not None
            return last + 1, bytes(value[:16])

    def events(self, info: RunInfo, after: int = 0, limit: int | None = None) -> list[Event]:
        """Read events of a run in the order they were appended.

        after: last number already seen; 0 reads from the start.
        limit: most events returned; a shorter list means the end of the log *now*.
        Raises: LogCorrupt.
        """
        with self._reading() as transaction:
            return list(self._events(transaction, info.number, after, limit))

    def log(self, info: RunInfo, page_events: int = _PAGE) -> Iterator[Event]:
        """Read all events of a run page by page, so that memory does not grow with its log; each page one snapshot.

        Raises: LogCorrupt.
        """
        after = 0
        while page := self.events(info, after, page_events):
            yield from page
            after = page[-1].number

    def _events(
        self, transaction: lmdb.Transaction, run: int, after: int, limit: int | None
    ) -> Iterator[Event]:
        with transaction.cursor(self._tables["events"]) as cursor:
            more = cursor.set_range(pair_key(run, after + 1))
            prefix = number_key(run)
            while more and (limit is None or limit > 0):
                key, value = cursor.item()
                if key[:8] != prefix:
                    return
                number = int.from_bytes(key[8:], "big")
                try:
                    yield decode_event(value, number)
                except BadRecord as error:
                    raise LogCorrupt(f"run {run}, event {number}: {error}") from error
                limit = None if limit is None else limit - 1
                more = cursor.next()

    def find_broken_link(self, info: RunInfo) -> int | None:
        """Find the first event of a run that does not follow the one before it."""
        before = CHAIN_START
        with (
            self._reading() as transaction,
            transaction.cursor(self._tables["events"]) as cursor,
        ):
            more = cursor.set_range(pair_key(info.number, 1))
            while more and cursor.key()[:8] == number_key(info.number):
                link = check_link(cursor.value(), before)
                if link is None:
                    return int.from_bytes(cursor.key()[8:], "big")
                before = link
                more = cursor.next()
        return None

    # ---- exchanges -----------------------------------------------------------------------------

    def save(self, run: int, make: "Callable[[], Record]") -> "asyncio.Future[None]":
        """Write an exchange with its outcome event; the future is done once both are durable.

        make: builds the record; called once, on the writer's thread.
        """
        return self.writer.submit(lambda: self._prepare(run, make()))

    def save_unwaited(self, run: int, make: "Callable[[], Record]") -> None:
        """Write an exchange with its outcome event; nobody waits."""
        self.writer.append(lambda: self._prepare(run, make()))

    def _prepare(self, run: int, record: "Record") -> Operation:
        value = bodies.pack(encode_exchange(record.exchange))
        return lambda txn: self._save(txn, run, record, value)

    def _save(
        self, transaction: lmdb.Transaction, run: int, record: "Record", value: bytes
    ) -> None:
        tables = self._tables
        exchange = record.exchange
        # Everything that may raise comes first: an exchange is written with all its rows or not at all.
        key = pair_key(run, exchange.seq)
        used = fingerprint_key(run, exchange.fingerprint, exchange.seq)
        origin = None
        if exchange.alpn_offers:
            request = exchange.request
            origin = origin_key(run, request.host, request.port, exchange.alpn_offers)
            if origin in self._origins:
                origin = None
        linked = self._link(transaction, run, record.outcome) if record.outcome else None
        transaction.put(key, value, db=tables["exchanges"])
        transaction.put(used, b"", db=tables["fingerprints"])
        transaction.put(
            number_key(run) + record.raw, exchange.fingerprint, db=tables["raws"], overwrite=False
        )
        if origin is not None:
            transaction.put(origin, exchange.alpn or b"", db=tables["origins"], overwrite=False)
            self._origins.add(origin)
        if linked is not None:
            self._put_event(transaction, run, linked)

    def find_exchange(self, info: RunInfo, seq: int) -> Exchange | None:
        """Find an exchange by its seq.

        Raises: LogCorrupt.
        """
        with self._reading() as transaction:
            value = transaction.get(pair_key(info.number, seq), db=self._tables["exchanges"])
            if value is None:
                return None
            try:
                return decode_exchange(bodies.unpack(value))
            except BadRecord as error:
                raise LogCorrupt(f"run {info.id}, exchange {seq}: {error}") from error

    def holds(self, info: RunInfo, seq: int) -> bool:
        """Say whether a run holds an exchange, without reading it."""
        with self._reading() as transaction:
            key = pair_key(info.number, seq)
            return transaction.get(key, db=self._tables["exchanges"]) is not None

    def exchanges(self, info: RunInfo, after: int = 0) -> Iterator[Exchange]:
        """Read the exchanges of a run by seq, one transaction each.

        Raises: LogCorrupt.
        """
        for seq in self.seqs(info, after):
            exchange = self.find_exchange(info, seq)
            if exchange is not None:
                yield exchange

    def seqs(self, info: RunInfo, after: int = 0) -> list[Seq]:
        """List the seqs that a run holds."""
        found = []
        with (
            self._reading() as transaction,
            transaction.cursor(self._tables["exchanges"]) as cursor,
        ):
            more = cursor.set_range(pair_key(info.number, after + 1))
            while more and cursor.key()[:8] == number_key(info.number):
                found.append(Seq(int.from_bytes(cursor.key()[8:], "big")))
                more = cursor.next()
        return found

    # ---- what does not fit into an exchange ----------------------------------------------------

    @property
    def _bodies(self) -> Path:
        return self.path / "bodies"

    def spool(
        self,
        boundary: bytes = b"",
        *,
        pieces: bool = True,
        redact: Callable[[], Stream | None] = lambda: None,
    ) -> Spool:
        """Begin a body that is too large to be held.

        boundary: of a multipart body, so that it can be compared without.
        redact: makes what takes its secrets out; see `Spool`.
        Raises: StoreUnwritable.
        """
        return Spool(self._bodies, boundary, pieces=pieces, redact=redact)

    def read_body(self, spilled: Spilled) -> Iterator[tuple[Chunk, bytes]]:
        """Read a spilled body piece by piece; the last comes only if all fits its hash.

        Raises: LogCorrupt.
        """
        return read_pieces(self._bodies, spilled)

    def append_message(
        self,
        run: int,
        seq: int,
        number: int,
        message: Message,
        redact: Callable[[Message], Message] = lambda message: message,
    ) -> None:
        """Append a message of a WebSocket; nobody waits, but what is awaited later comes after it.

        number: its place in the conversation, from 0.
        redact: takes its secrets out; called on the writer's thread, in order.
        """

        def make() -> Operation:
            value = bodies.pack(encode_message(redact(message)))
            key = message_key(run, seq, number)

            def put(transaction: lmdb.Transaction) -> None:
                transaction.put(key, value, db=self._tables["messages"])

            return put

        self.writer.append(make)

    def messages(self, info: RunInfo, seq: int, after: int = -1) -> Iterator[Message]:
        """Read the messages of a WebSocket in order, one transaction each.

        after: number of the last one already seen; -1 reads from the start.
        Raises: LogCorrupt.
        """
        while "messages" in self._tables:
            after += 1
            with self._reading() as transaction:
                key = message_key(info.number, seq, after)
                value = transaction.get(key, db=self._tables["messages"])
                if value is None:
                    return
                try:
                    found = decode_message(bodies.unpack(value))
                except BadRecord as error:
                    where = f"run {info.id}, exchange {seq}, message {after}"
                    raise LogCorrupt(f"{where}: {error}") from error
            yield found

    # ---- finding an answer ---------------------------------------------------------------------

    def find_fingerprint(self, info: RunInfo, raw: bytes) -> Fingerprint | None:
        """Find the fingerprint that bytes seen before were given."""
        with self._reading() as transaction:
            key = number_key(info.index_number) + raw
            found = transaction.get(key, db=self._tables["raws"])
            return Fingerprint(found) if found is not None else None

    def next_use(self, info: RunInfo, fingerprint: Fingerprint, after: int) -> Seq | None:
        """Find the first exchange with a fingerprint whose seq is above `after`."""
        with (
            self._reading() as transaction,
            transaction.cursor(self._tables["fingerprints"]) as cursor,
        ):
            if not cursor.set_range(fingerprint_key(info.index_number, fingerprint, after + 1)):
                return None
            key = cursor.key()
            prefix = number_key(info.index_number) + fingerprint
            same = key[: 8 + _FINGERPRINT_BYTES] == prefix
            return Seq(int.from_bytes(key[8 + _FINGERPRINT_BYTES :], "big")) if same else None

    def indexed(self, info: RunInfo, exchange: Exchange) -> Exchange:
        """Give an exchange of a run under the fingerprint that finds it; it was recorded under another before `reindex`.

        Looks through the whole index: for people.
        """
        if not info.index:
            return exchange
        with self._reading() as transaction:
            for key in self._index_keys(transaction, "fingerprints", info.index_number):
                if int.from_bytes(key[8 + _FINGERPRINT_BYTES :], "big") == exchange.seq:
                    found = Fingerprint(key[8 : 8 + _FINGERPRINT_BYTES])
                    return replace(exchange, fingerprint=found)
        return exchange

    def fingerprints(self, info: RunInfo) -> dict[Seq, Fingerprint]:
        """Read a run's index: the fingerprint of each exchange."""
        found = {}
        with self._reading() as transaction:
            for key in self._index_keys(transaction, "fingerprints", info.index_number):
                seq = int.from_bytes(key[8 + _FINGERPRINT_BYTES :], "big")
                found[Seq(seq)] = Fingerprint(key[8 : 8 + _FINGERPRINT_BYTES])
        return found

    def replace_index(self, info: RunInfo, index: Index) -> RunInfo:
        """Put another index in the place of a sealed run's; give the run as it now stands. Blocks.

        One transaction, so whoever reads sees the old one or the new one. A playback that is open goes on with
        the one it began with, whose rows stay until the next time.
        Raises: UnknownRun, RunOpen.
        """

        def operation(transaction: lmdb.Transaction) -> RunInfo:
            now = self._load_run(transaction, info.number)
            if now is None:
                raise UnknownRun(info.id, ())
            if now.status is RunStatus.OPEN:
                raise RunOpen(f"run {info.id!r} is still being recorded")
            meta, tables = self._tables["meta"], self._tables
            # A number of its own, from those of runs: no row can be taken for one of another index.
            number = int(transaction.get(b"next-run", db=meta) or b"1")
            transaction.put(b"next-run", str(number + 1).encode(), db=meta)
            for entry in index.entries:
                used = fingerprint_key(number, entry.fingerprint, entry.seq)
                transaction.put(used, b"", db=tables["fingerprints"])
                raw = number_key(number) + entry.raw
                transaction.put(raw, entry.fingerprint, db=tables["raws"], overwrite=False)
            stale = (*now.stale, now.index_number)
            if not self._is_played(transaction, now):
                for old in stale:
                    self._drop_index(transaction, old)
                stale = ()
            made = replace(
                now, rules=index.digest, canonical=index.canonical, index=number, stale=stale
            )
            transaction.put(number_key(now.number), made.encode(), db=tables["runs"])
            return made

        done: RunInfo = self.writer.call(operation)
        return done

    def _is_played(self, transaction: lmdb.Transaction, tape: RunInfo) -> bool:
        with transaction.cursor(self._tables["open"]) as cursor:
            numbers = [int.from_bytes(key, "big") for key, _ in cursor]
        found = (self._load_run(transaction, number) for number in numbers)
        return any(run is not None and run.parent_number == tape.number for run in found)

    def _drop_index(self, transaction: lmdb.Transaction, number: int) -> None:
        for table in ("fingerprints", "raws"):
            for key in list(self._index_keys(transaction, table, number)):
                transaction.delete(key, db=self._tables[table])

    def _index_keys(
        self, transaction: lmdb.Transaction, table: str, number: int
    ) -> Iterator[bytes]:
        prefix = number_key(number)
        with transaction.cursor(self._tables[table]) as cursor:
            more = cursor.set_range(prefix)
            while more and bytes(cursor.key())[:8] == prefix:
                yield bytes(cursor.key())
                more = cursor.next()

    def find_alpn(
        self, info: RunInfo, host: str, port: int, offers: tuple[bytes, ...]
    ) -> bytes | None:
        """Find what was negotiated with an origin by a client that offered the same.

        Gives b"" where the origin chose none, None where it was never asked so.
        """
        with self._reading() as transaction:
            key = origin_key(info.number, host, port, offers)
            return transaction.get(key, db=self._tables["origins"])


def _run(number: int, value: bytes) -> RunInfo:
    try:
        return RunInfo.decode(number, value)
    except BadRecord as error:
        raise LogCorrupt(f"run {number}: {error}") from error


def _name_key(name: str, limit: int) -> bytes | None:
    """Give a run's name as a key, or None where it cannot be one."""
    try:
        key = name.encode()
    except UnicodeEncodeError:
        return None
    # Keys that begin with a zero byte are counters.
    return key if 0 < len(key) <= limit and not key.startswith(b"\0") else None


def _holds_data(folder: Path) -> bool:
    try:
        return (folder / "data.mdb").stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def _may_lock(folder: Path) -> bool:
    """Say whether a reader can hold its place in the lock file.

    On a read-only disk it cannot, and needs not: no writer is beside it.
    """
    file = folder / "lock.mdb"
    return os.access(
        file if file.exists() else folder,
        os.W_OK,
        effective_ids=os.access in os.supports_effective_ids,
    )


def _advice(error: Exception) -> str:
    if "already open" in str(error):
        return "this process has it open: use that one"
    return "is the folder writable and not full? --store names another"


def _unreadable(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"the store at {path} cannot be read: {error}",
        "if the disk is sound the file is damaged: put back a copy of it",
    )


def _alive(owner: Owner | None) -> bool:
    if owner is None:
        return False
    with contextlib.suppress(psutil.Error):
        return abs(psutil.Process(owner.pid).create_time() - owner.started) < 1.0
    return False
