"""The store: runs, their events and their exchanges, in one LMDB environment.

Rules: `events` is append-only and chained; an exchange is written once its outcome is known; only the writes that rule 3
of the design names are awaited; a read transaction is open for one call. Each table has a module of its own; this module
opens them and hands them out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import lmdb

from ..tape.exchange import Chunk, Exchange, Spilled
from ..tape.redaction.stream import Stream
from .archive.batch_index import ArchivedRuns
from .deltas.shared_prefixes import erase
from .encryption.key import StoreKey
from .errors import RunOpen
from .keys import ERASED_ROW
from .lmdb.database import Database, unreadable
from .lmdb.liveness import remove_dead_files
from .lmdb.lock import StoreLock
from .lmdb.open import open_database
from .lmdb.writer import Writer
from .maintenance.ingest import Ingest, drop_unpublished
from .maintenance.recovery import recover
from .maintenance.removal import remove_rows
from .spill.body_files import BodyFiles
from .spill.body_memory import BodyMemory
from .spill.references import FileUses
from .spill.spool import Spool
from .tables.alpn import Origins
from .tables.events import EventLog
from .tables.exchanges import Exchanges
from .tables.fingerprints import Indexes
from .tables.originals import Originals
from .tables.requests_to_owner import OwnerRequests
from .tables.run_info import RunInfo, RunStatus
from .tables.runs import RunList
from .tables.websocket_messages import Messages


class Store:
    """One open store. Reads may come from any thread; writes go through `writer`."""

    def __init__(self, database: Database) -> None:
        """Use `Store.open` instead."""
        self.path = database.path
        self._database = database
        self._bodies = BodyFiles(database.path, database.cipher, database.owner_file)
        self._log = log = EventLog(database)
        self._runs = runs = RunList(database, log)
        origins = Origins(database)
        runs.ended.append(origins.forget)
        self._originals = originals = Originals(database)
        self._messages = messages = Messages(database, originals)
        runs.ended.append(messages.forget)
        self._exchanges = exchanges = Exchanges(database, log, origins, messages, originals)
        runs.ended.append(exchanges.forget)
        self._files = FileUses(database)
        index = Indexes(database, runs)
        owner_requests = OwnerRequests(database)

        self.create_run = runs.create
        self.find_run = runs.find
        self.get_run = runs.get
        self.find_tape = runs.find_tape
        self.exists = runs.exists
        self.runs = runs.all
        self.find_latest = runs.find_latest
        self.find_recordings = runs.find_recordings
        self.reload = runs.reload
        self.seal = runs.seal
        self.seal_blocking = runs.seal_blocking
        self.mark = runs.mark
        self.owner_alive = runs.owner_alive

        self.archive = ArchivedRuns(database, runs)

        self.ask_owner = owner_requests.ask
        self.owner_was_asked = owner_requests.asked

        self.append = log.append
        self.append_made = log.append_made
        self.append_durably = log.append_durably
        self.append_blocking = log.append_blocking
        self.events = log.events
        self.log = log.log
        self.raw_log = log.raw
        self.checked_log = log.checked
        self.find_broken_link = log.find_broken_link

        self.save = exchanges.save
        self.save_unwaited = exchanges.save_unwaited
        self.find_exchange = exchanges.find
        self.holds = exchanges.holds
        self.exchanges = exchanges.all
        self.seqs = exchanges.seqs

        self.append_message = messages.append
        self.record_message = messages.record
        self.find_originals = originals.find
        self.find_original_message = originals.find_message
        self.messages = messages.all

        self.find_fingerprint = index.find_fingerprint
        self.next_use = index.next_use
        self.indexed = index.indexed
        self.fingerprints = index.fingerprints
        self.index_rows = index.rows
        self.replace_index = index.replace_index

        self.find_alpn = origins.find_alpn

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        readonly: bool = False,
        key: StoreKey | None = None,
        held: StoreLock | None = None,
        power: bool = False,
        originals: bool = False,
    ) -> "Store":
        """Open the store in a folder; a writer makes it when it is not there.

        A writer ends the runs whose process has died.
        key: what the store is encrypted under, or is to be if it is made.
        held: the store's lock, where whoever opens it holds it alone, and longer.
        power: a power cut loses nothing that was told to be durable.
        originals: have it able to keep what redaction replaces, if it is encrypted.
        Raises: StoreError (no store there, another key), StoreTooNew, StoreUnwritable.
        """
        store = cls(
            open_database(
                path, readonly=readonly, key=key, held=held, power=power, originals=originals
            )
        )
        if not readonly:
            try:
                store.check_readers()
                store.writer.call(store._clean_up)
                store._bodies.clear_partial()
                remove_dead_files(path)
            except (lmdb.Error, OSError) as error:
                store.close()
                raise unreadable(path, error) from error
            except BaseException:
                store.close()
                raise
        return store

    def _clean_up(self, transaction: lmdb.Transaction) -> None:
        recover(transaction, self._runs, self._log)
        drop_unpublished(self._database, transaction)

    def ingest(self) -> Ingest:
        """Begin to ingest runs; see `Ingest`."""
        return Ingest(self._database, self._runs, self._log, self._exchanges, self._messages)

    def delete_runs(self, runs: Sequence[RunInfo]) -> int:
        """Delete runs that have ended, all at once; give how many rows that were. Blocks.

        One that was marked or archived since it was looked at, or is being played, stays. Body files stay until
        `remove_unneeded_files`, and bytes in the file until `compact`.
        Raises: RunOpen; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> int:
            played = self._runs.played(transaction)
            there = [
                now
                for told, now in self._ended(transaction, runs)
                if (now.labels, now.pinned, now.archived)
                == (told.labels, told.pinned, told.archived)
                and now.number not in played
            ]
            return sum(self._remove(transaction, info) for info in there)

        count: int = self.writer.call(operation)
        return count

    def erase_runs(self, runs: Sequence[RunInfo]) -> int:
        """Delete runs that have ended, and what other runs share with them; give how many rows that were. Blocks.

        See `delete_runs`, which keeps a shared prefix for as long as a run uses it. Until the files
        nobody needs are removed and `compact` is through, `erasing` is True.
        Raises: RunOpen; StoreUnwritable.
        """

        def operation(transaction: lmdb.Transaction) -> int:
            there = [now for _, now in self._ended(transaction, runs)]
            transaction.put(ERASED_ROW, b"", db=self._database.tables["meta"])
            erase(self._database, transaction, [info.number for info in there])
            return sum(self._remove(transaction, info) for info in there)

        count: int = self.writer.call(operation)
        return count

    @property
    def erasing(self) -> bool:
        """Whether the bytes of a run that was erased or rewritten may still be in the files."""
        with self._database.reading() as transaction:
            return transaction.get(ERASED_ROW, db=self._database.tables["meta"]) is not None

    def _ended(
        self, transaction: lmdb.Transaction, runs: Sequence[RunInfo]
    ) -> list[tuple[RunInfo, RunInfo]]:
        """Give those of some runs that are there, as told and as they now stand.

        Raises: RunOpen.
        """
        found = [(run, self._runs.load(transaction, run.number)) for run in runs]
        there = [(told, now) for told, now in found if now is not None]
        for _, now in there:
            if now.status is RunStatus.OPEN:
                raise RunOpen(f"run {now.id!r} has not ended")
        return there

    def _remove(self, transaction: lmdb.Transaction, info: RunInfo) -> int:
        indexes = {info.number, info.index_number, *info.stale}
        count = remove_rows(self._database, transaction, info.number, indexes)
        self._runs.remove(transaction, info)
        return count

    def knows_files_of(self, info: RunInfo, exchange: Exchange) -> bool:
        """Say whether what tells the files that are needed from the others knows those of an exchange.

        Raises: LogCorrupt.
        """
        return self._files.has(info.number, exchange)

    def remove_unneeded_files(self, before_s: float) -> int:
        """Remove body files that no exchange needs any more; give how many bytes that were. Blocks.

        before_s: files put there since then, in seconds since the epoch, stay: the exchange that needs one is
            written after it, a late answer's up to ten minutes.
        Raises: LogCorrupt.
        """
        needed = self._files.needed()
        self._database.sync()  # else a run whose deletion a power cut undoes would lack them
        return self._bodies.remove_unneeded(needed, before_s)

    def close(self) -> None:
        """Write what is left and let go of the file. Blocks."""
        self._database.close()

    def check_readers(self) -> None:
        """Clear the slots of readers that died: each would keep pages from being used again."""
        self._database.check_readers()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def encrypted(self) -> bool:
        """Whether the store is encrypted on disk."""
        return bool(self._database.cipher.check)

    @property
    def keeps_originals(self) -> bool:
        """Whether it can keep what redaction replaces: it is encrypted, and was opened for that."""
        return self._originals.kept

    @property
    def writer(self) -> Writer:
        """The writer; a store opened for reading has none."""
        return self._database.writer

    def spool(
        self,
        boundary: bytes = b"",
        *,
        pieces: bool = True,
        redact: Callable[[], Stream | None] = lambda: None,
        aside: bool = False,
    ) -> Spool:
        """Begin a body that is too large to be held, or is set aside while others are.

        boundary: of a multipart body, so that it can be compared without.
        redact: makes what takes its secrets out; see `Spool`.
        aside: only set it aside; see `Spool`.
        Raises: StoreUnwritable.
        """
        return Spool(self._bodies, boundary, pieces=pieces, redact=redact, aside=aside)

    @property
    def body_memory(self) -> BodyMemory:
        """What bodies on their way take of this process's memory."""
        return self._bodies.memory

    def read_file(self, digest: bytes) -> Iterator[bytes]:
        """Read the file of a spilled body, or of the list of its pieces; its last piece only if all fits its hash.

        Raises: LogCorrupt.
        """
        return self._bodies.read_file(digest)

    def keep_file(self, digest: bytes, pieces: Iterable[bytes]) -> None:
        """Keep the file of a spilled body, or of the list of its pieces.

        Raises: BadRecord, where it does not fit its hash; StoreUnwritable.
        """
        self._bodies.keep_file(digest, pieces)

    def keep_anew(
        self,
        pieces: Iterable[tuple[bytes, bytes]],
        boundary: bytes,
        is_needed: Callable[[], bool],
    ) -> tuple[bytes, bytes] | None:
        """Keep the file of a body that was made of another; see `BodyFiles.keep_anew`."""
        return self._bodies.keep_anew(pieces, boundary, is_needed)

    def read_aside(self, body: bytes, chunks: Sequence[Chunk]) -> Iterator[tuple[Chunk, bytes]]:
        """Give a body that is in memory piece by piece, out of a file; see `BodyFiles.read_aside`."""
        return self._bodies.read_aside(body, chunks)

    def read_body(self, spilled: Spilled) -> Iterator[tuple[Chunk, bytes]]:
        """Read a spilled body piece by piece; the last comes only if all fits its hash.

        Raises: LogCorrupt.
        """
        return self._bodies.read(spilled)
