"""The run list: create, find, label, seal and remove runs."""

import contextlib
import difflib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import lmdb

from ...config.value_types import LATEST
from ...tape.exchange import NO_TEXT, RedactedText, RunId, Seq
from ...tape.records.codec import BadRecord
from ...tape.records.events import Event, EventKind
from ..errors import LogCorrupt, StoreError, UnknownRun
from ..lmdb.database import Database
from ..lmdb.process_liveness import is_locked
from ..lmdb_keys import MAX_NAME_BYTES, number_key
from .events import EventLog
from .run_info import Made, Owner, RunInfo, RunStatus, began

if TYPE_CHECKING:
    import asyncio

_KEY_BYTES = 511
_RESUMED = b"resumed-"
"""In `meta`, before the number of a run that crashed: it was resumed by a run that is not in the store."""
_ALIKE = 0.55
"""Ratio of likeness from which on a name is told as one that may be meant: `tep` and `tape` have 0.57, words without a common part less."""
DIED = "its process died"


class RunList:
    """The run list, `store.runs`: the tables `runs`, `names` and `open`.

    Reads give a run as it is now, from any thread; they raise StoreError where LMDB cannot be read, and LogCorrupt where the run's
    row cannot. Methods that take a transaction belong to the store's other parts.
    """

    def __init__(self, database: Database, log: EventLog) -> None:
        self._database = database
        self._log = log
        self.ended: list[Callable[[int], None]] = [log.forget]
        """Called with its number on the writer's thread when a run ends, to drop what is remembered of it."""

    @cached_property
    def owner(self) -> Owner:
        """Who writes runs here: our own process."""
        import psutil  # late: who only reads owns nothing

        started = round(psutil.Process().create_time(), 2)
        return Owner(os.getpid(), started, self._database.owner_file)

    def create(
        self,
        wanted: str,
        *,
        mode: str,
        at_ns: int,
        parent: RunInfo | None = None,
        agent: RedactedText = NO_TEXT,
        rules: bytes = b"",
        canonical: int = 0,
        placeholders: str = "",
        resumes: bool = False,
        classes: bytes = b"",
    ) -> "asyncio.Future[RunInfo]":
        """Open a run, whose first event is written with it. The future is done once both are durable. On a running loop.

        wanted: its name, text of 1 to 400 bytes; a taken one becomes NAME~2 (a recording) or NAME@1, NAME@2 ... (a playback,
            where `parent` is given and `wanted` is the tape's name).
        mode: `record`, `playback` or `passthrough`.
        at_ns: when it began, in nanoseconds since the epoch.
        parent: the tape that it plays.
        agent: its command or address, as it is shown.
        rules: digest of the match rules that its fingerprints are made under.
        canonical: version of the canonical form of these.
        placeholders: tells the key that placeholders are made with.
        resumes: whether it goes on with its parent, which crashed.
        classes: digest of the patterns that classify its requests.
        Raises: StoreError, when `wanted` cannot be a name; StoreUnwritable, at once or in the future.
        """
        # A tape's name may be longer by the number that it got itself.
        check_name(wanted, MAX_NAME_BYTES if parent is None else _KEY_BYTES - 40)

        def operation(transaction: lmdb.Transaction) -> RunInfo:
            number = self.allocate_number(transaction)
            run_id = RunId(self.find_free_name(transaction, wanted, parent is not None))
            info = RunInfo(
                number=number,
                id=run_id,
                mode=mode,
                created_ns=at_ns,
                parent=parent.id if parent else None,
                parent_number=parent.number if parent else 0,
                agent=agent,
                owner=self.owner,
                rules=rules,
                canonical=canonical,
                made=Made(resumes, classes),
            )
            self.add(transaction, info)
            self._database.put(transaction, "open", number_key(number), b"")
            self._log.put(
                transaction,
                number,
                Event(
                    EventKind.OPENED,
                    at_ns,
                    {
                        "id": run_id,
                        "mode": mode,
                        "parent": info.parent,
                        "agent": agent,
                        **({"placeholders": placeholders} if placeholders else {}),
                    },
                ),
            )
            return info

        # What a playback writes is small: it may begin where a recording would find no free space.
        return self._database.writer.submit(lambda: operation, vital=parent is not None)

    def allocate_number(self, transaction: lmdb.Transaction) -> int:
        """Give a number that no run and no index has had, inside a transaction."""
        meta = self._database.tables["meta"]
        number = int(transaction.get(b"next-run", db=meta) or b"1")
        transaction.put(b"next-run", str(number + 1).encode(), db=meta)
        return number

    def add(self, transaction: lmdb.Transaction, info: RunInfo) -> None:
        """Put a run onto the list under its name, inside a transaction."""
        self.put(transaction, info)
        self._database.put(transaction, "names", info.id.encode(), number_key(info.number))

    def next_number(self) -> int:
        """Give the number that the next run gets; all that have been made until now have lower ones."""
        with self._database.reading() as transaction:
            return int(transaction.get(b"next-run", db=self._database.tables["meta"]) or b"1")

    def find_free_name(self, transaction: lmdb.Transaction, wanted: str, playback: bool) -> str:
        """Give a name that no run has, inside a transaction; `wanted` of a playback is its tape's."""
        database = self._database
        # A run named `latest`, as a tape may bring one, would hide what the word stands for.
        is_free = wanted != LATEST and not database.holds(transaction, "names", wanted.encode())
        if not playback and is_free:
            return wanted
        form, first = ("{}@{}", 1) if playback else ("{}~{}", 2)
        # The counter makes the thousandth playback of a tape as quick as the second.
        counter = f"\0{form}".format(wanted, "").encode()
        number = int(database.find(transaction, "names", counter) or str(first).encode())
        while database.holds(transaction, "names", form.format(wanted, number).encode()):
            number += 1
        database.put(transaction, "names", counter, str(number + 1).encode())
        return form.format(wanted, number)

    def owner_alive(self, info: RunInfo) -> bool:
        """Say whether the process that writes a run still runs; nobody writes one that was imported."""
        return is_alive(self._database.path, info.owner)

    def find(self, name: str) -> RunInfo | None:
        """Find a run by its name; None where no run has it, or where it cannot be a name."""
        key = _name_key(name, _KEY_BYTES)
        if key is None:
            return None
        with self._database.reading() as transaction:
            number = self._database.find(transaction, "names", key)
            if number is None:
                return None
            return self._shown(self.load(transaction, int.from_bytes(number, "big")))

    def find_tape(self, info: RunInfo) -> RunInfo | None:
        """Find the run that a run plays, by its number: another may have its name once it was deleted.

        None where it plays none, or its tape was deleted.
        """
        if not info.parent_number:
            return None
        with self._database.reading() as transaction:
            return self._shown(self.load(transaction, info.parent_number))

    def exists(self, info: RunInfo) -> bool:
        """Say whether a run has not been deleted meanwhile."""
        with self._database.reading() as transaction:
            return self._database.holds(transaction, "runs", number_key(info.number))

    def get(self, name: str) -> RunInfo:
        """Get a run by its name.

        Raises: UnknownRun, which carries the nearest names.
        """
        info = self.find(name)
        if info is None:
            known = [str(run.id) for run in self.all()]
            raise UnknownRun(name, _find_near(name, known), is_empty=not known)
        return info

    def all(self) -> list[RunInfo]:
        """List all runs, oldest first, without reading a tape: one transaction.

        A store opened for reading shows a run as recovered whose process has died, though nobody has
        closed it yet.
        Raises: LogCorrupt.
        """
        with self._database.reading() as transaction:
            found = []
            with self._database.cursor(transaction, "runs") as cursor:
                for key, data in cursor:
                    info = self._decode(key, data)
                    found.append(self._shown(self._current(transaction, info)))
            return found

    def find_latest(self) -> RunInfo | None:
        """Find the newest recording that has ended, by when it began, but for what exploring kept; None where there is none."""
        found: list[RunInfo] = []
        with (
            self._database.reading() as transaction,
            self._database.cursor(transaction, "runs") as cursor,
        ):
            for key, data in cursor.iterprev():
                info = self._decode(key, data)
                is_recording = info.mode == "record" and not info.is_explored
                if is_recording and info.status is not RunStatus.OPEN:
                    found.append(info)
                    if (
                        info.owner is not None
                    ):  # recorded here, so after all that has a lower number
                        break
        return max(found, key=began, default=None)

    def find_recordings(self, name: str, most: int = 100) -> list[RunInfo]:
        """Find the recordings that have ended, hold an exchange, and were made under a name (NAME, NAME~2 ...), the newest first.

        The newest is the one that began last: an imported one may be older than those that were there.

        most: names that are looked at, the last first.
        """
        key = _name_key(name, _KEY_BYTES)
        if key is None:
            return []
        with self._database.reading() as transaction:
            next_number = self._database.find(transaction, "names", b"\0" + key + b"~")
        last = int(next_number) - 1 if next_number else 1
        names = [f"{name}~{number}" for number in range(last, max(last - most, 1), -1)]
        found = [info for one in (*names, name) if (info := self.find(one)) is not None]
        ended = [one for one in found if one.mode == "record" and one.status is not RunStatus.OPEN]
        return sorted((one for one in ended if one.exchanges), key=began, reverse=True)

    def reload(self, info: RunInfo) -> RunInfo:
        """Read a run's row again; gives what was given where the run was deleted."""
        with self._database.reading() as transaction:
            return self._shown(self.load(transaction, info.number) or info)

    @overload
    def _shown(self, info: RunInfo) -> RunInfo: ...

    @overload
    def _shown(self, info: None) -> None: ...

    def _shown(self, info: RunInfo | None) -> RunInfo | None:
        if self._database.writable or info is None or info.status is not RunStatus.OPEN:
            return info
        if self.owner_alive(info):
            return info
        return info.ended(RunStatus.RECOVERED, 0, info.exchanges, DIED)

    def load(self, transaction: lmdb.Transaction, number: int) -> RunInfo | None:
        """Read a row of the list inside a transaction.

        Raises: LogCorrupt.
        """
        key = number_key(number)
        data = self._database.get(transaction, "runs", key)
        return self._current(transaction, self._decode(key, data)) if data else None

    def open_numbers(self, transaction: lmdb.Transaction) -> list[int]:
        """List the runs that are not sealed yet, inside a transaction."""
        with self._database.cursor(transaction, "open") as cursor:
            return [int.from_bytes(key, "big") for key, _ in cursor]

    def played(self, transaction: lmdb.Transaction) -> set[int]:
        """Give the numbers of the runs that an open one plays, inside a transaction."""
        found = (self.load(transaction, number) for number in self.open_numbers(transaction))
        return {run.parent_number for run in found if run is not None}

    def _current(self, transaction: lmdb.Transaction, info: RunInfo) -> RunInfo:
        if info.status is not RunStatus.OPEN:
            return info
        return replace(info, exchanges=self._database.last(transaction, "exchanges", info.number))

    def mark(self, info: RunInfo, make: Callable[[RunInfo], Event | None]) -> RunInfo:
        """Give a run the labels and the pin that an event tells of; give it as it now stands. Blocks.

        make: makes the event from the run as it stands, so that what another process marks meanwhile is not undone;
            None where nothing changes. Called on the writer's thread; `labels` and `pinned` of the event's data count.
        Raises: UnknownRun; StoreError, if it was moved to an archive meanwhile; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> RunInfo:
            now = self.load(transaction, info.number)
            if now is None:
                raise UnknownRun(info.id)
            if now.is_only_in_archive:
                raise StoreError(f"run {info.id!r} was moved to an archive meanwhile", "try again")
            event = make(now)
            if event is None:
                return now
            labels, pinned = tuple(event.data["labels"]), bool(event.data["pinned"])
            marked = replace(now, labels=labels, pinned=pinned)
            self.put(transaction, marked)
            self._log.put(transaction, info.number, event)
            return marked

        made: RunInfo = self._database.writer.call(operation)
        return made

    def remove(self, transaction: lmdb.Transaction, info: RunInfo) -> None:
        """Take a run off the list, with its name and the counters of names made from it, inside a transaction."""
        database, name = self._database, info.id.encode()
        for table in ("runs", "open"):
            database.delete(transaction, table, number_key(info.number))
        for key in (name, b"\0" + name + b"@", b"\0" + name + b"~"):
            database.delete(transaction, "names", key)
        meta = database.tables["meta"]
        transaction.delete(_RESUMED + number_key(info.number), db=meta)
        if info.has_resumed and self.load(transaction, info.parent_number) is not None:
            # Else nobody knew that the one that crashed was resumed, and what was sent would be sent again.
            self.mark_gone_on(transaction, info.parent_number)

    def mark_gone_on(self, transaction: lmdb.Transaction, number: int) -> None:
        """Note that a run that crashed was resumed by one that is not in the store, inside a transaction."""
        transaction.put(_RESUMED + number_key(number), b"", db=self._database.tables["meta"])

    def is_gone_on_elsewhere(self, info: RunInfo) -> bool:
        """Say whether a run that resumed another one was deleted since, or stayed in another store."""
        with self._database.reading() as transaction:
            key = _RESUMED + number_key(info.number)
            return transaction.get(key, db=self._database.tables["meta"]) is not None

    def seal(
        self, info: RunInfo, *, reason: str, at_ns: int, unfinished: tuple[Seq, ...] = ()
    ) -> "asyncio.Future[RunInfo]":
        """End a run: nothing follows. The future gives the run as it now stands once that is durable; twice is once. On a running loop.

        reason: why, as it is shown.
        at_ns: when, in nanoseconds since the epoch.
        unfinished: the seqs whose outcome is not known.
        Raises: StoreUnwritable, at once or in the future.
        """
        return self._database.writer.submit(
            lambda: lambda txn: self._seal(txn, info, reason, at_ns, unfinished), vital=True
        )

    def seal_blocking(self, info: RunInfo, *, reason: str, at_ns: int) -> RunInfo:
        """End a run from a process without a loop; see `seal`. Blocks until it is durable.

        Raises: StoreUnwritable.
        """
        sealed: RunInfo = self._database.writer.call(
            lambda txn: self._seal(txn, info, reason, at_ns, ())
        )
        return sealed

    def _seal(
        self,
        transaction: lmdb.Transaction,
        info: RunInfo,
        reason: str,
        at_ns: int,
        unfinished: tuple[Seq, ...],
    ) -> RunInfo:
        now = self.load(transaction, info.number) or info
        if now.status is not RunStatus.OPEN:
            return now
        data = {"unfinished": unfinished}
        return self.end(transaction, now, RunStatus.SEALED, reason, at_ns, data)

    def end(
        self,
        transaction: lmdb.Transaction,
        info: RunInfo,
        status: RunStatus,
        reason: str,
        at_ns: int,
        data: dict[str, Any],
    ) -> RunInfo:
        """End a run inside a transaction, with an event that says why and how."""
        last = self._database.last(transaction, "exchanges", info.number)
        ended = info.ended(status, at_ns, last, reason)
        kind = EventKind.SEALED if status is RunStatus.SEALED else EventKind.RECOVERED
        event = Event(kind, at_ns, {"reason": reason, "exchanges": last, **data})
        self._log.put(transaction, info.number, event)
        for forget in self.ended:
            forget(info.number)
        self.put(transaction, ended)
        self._database.delete(transaction, "open", number_key(info.number))
        return ended

    def put(self, transaction: lmdb.Transaction, info: RunInfo) -> None:
        """Write a row of the list inside a transaction."""
        self._database.put(transaction, "runs", number_key(info.number), info.encode())

    def _decode(self, key: bytes, data: bytes) -> RunInfo:
        number = int.from_bytes(key, "big")
        try:
            return RunInfo.decode(number, self._database.cipher.decrypt("runs", key, data))
        except BadRecord as error:
            raise LogCorrupt(f"run {number}: {error}") from error


def _find_near(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """Give the names that are like one, whatever their case; of playbacks only where one is asked for, since they cannot be played."""
    spelled = {one.lower(): one for one in known if "@" in name or "@" not in one}
    near = difflib.get_close_matches(name.lower(), spelled, n=3, cutoff=_ALIKE)
    tape = spelled.get(name.lower().partition("@")[0])
    return tuple(dict.fromkeys([*([tape] if tape else []), *(spelled[one] for one in near)]))


def check_name(name: str, limit: int = MAX_NAME_BYTES) -> None:
    """Raise StoreError where a text cannot be the name of a run: such a key would fail a whole batch."""
    if _name_key(name, limit) is None:
        raise StoreError(
            f"{name[:60]!r} cannot be the name of a run",
            f"a name is text of 1 to {MAX_NAME_BYTES} bytes",
        )


def _name_key(name: str, limit: int) -> bytes | None:
    """Give a run's name as a key, or None where it cannot be one."""
    try:
        key = name.encode()
    except UnicodeEncodeError:
        return None
    # Keys that begin with a zero byte are counters.
    return key if 0 < len(key) <= limit and not key.startswith(b"\0") else None


def is_alive(path: Path, owner: Owner | None) -> bool:
    """Say whether the process that writes a run of the store in a folder is still there."""
    if owner is None:
        return False
    if owner.file:
        return is_locked(path, owner.file)
    import psutil  # late: owners of now have a file

    with contextlib.suppress(psutil.Error):
        return abs(psutil.Process(owner.pid).create_time() - owner.started) < 1.0
    return False
