"""The store: runs, their events and their exchanges, in one LMDB environment and a folder of body files.

Rules: `events` is append-only and chained; an exchange is written once its outcome is known; only the writes that rule 3
of the design names are awaited; a read transaction is open for one call. Each part of the store is a class in a module of its
own, with the methods that others call; this module opens the parts and hands them out.
"""

from collections.abc import Sequence
from pathlib import Path

import lmdb

from .archive.batch_index import ArchivedRuns
from .encryption.key import StoreKey
from .lmdb.database import Database, unreadable
from .lmdb.liveness import remove_dead_files
from .lmdb.lock import StoreLock
from .lmdb.open import open_database
from .lmdb.writer import Writer
from .maintenance.ingest import Ingest, drop_unpublished
from .maintenance.recovery import recover
from .maintenance.removal import Removal
from .spill.body_files import BodyFiles
from .tables.alpn import Origins
from .tables.body_file_uses import FileUses
from .tables.events import EventLog
from .tables.exchanges import Exchanges
from .tables.fingerprints import Indexes
from .tables.originals import Originals
from .tables.requests_to_owner import OwnerRequests
from .tables.run_info import RunInfo
from .tables.runs import RunList
from .tables.websocket_messages import Messages


class Store:
    """One open store: its parts. Reads may come from any thread; writes go through `writer`."""

    def __init__(self, database: Database) -> None:
        """Use `Store.open` instead."""
        self.path = database.path
        """The folder of the store."""
        self._database = database
        self.bodies = BodyFiles(database.path, database.cipher, database.owner_file)
        """Bodies too large for memory."""
        self.file_uses = FileUses(database)
        """Which exchange needs which body files."""
        self.events = EventLog(database)
        """The log of each run."""
        self.runs = RunList(database, self.events)
        """The run list."""
        self.alpn = Origins(database)
        """What each origin negotiated."""
        self.originals = Originals(database)
        """What redaction replaced in answers, where that is kept."""
        self.messages = Messages(database, self.originals)
        """The messages of WebSockets."""
        self.exchanges = Exchanges(database, self.events, self.alpn, self.messages, self.originals)
        """The exchanges of each run."""
        self.index = Indexes(database, self.runs)
        """Finds exchanges by fingerprint or raw bytes."""
        self.owner_requests = OwnerRequests(database)
        """What another process asks of the process that owns a run."""
        self.archive = ArchivedRuns(database, self.runs)
        """Which runs are in which batch of an archive."""
        self.removal = Removal(database, self.runs, self.bodies, self.file_uses)
        """Deletes runs and the files that only they needed."""
        self.runs.ended += [self.alpn.forget, self.messages.forget, self.exchanges.forget]

        # The names of before, while call sites change over.
        self.create_run = self.runs.create
        self.find_run = self.runs.find
        self.get_run = self.runs.get
        self.find_tape = self.runs.find_tape
        self.exists = self.runs.exists
        self.find_latest = self.runs.find_latest
        self.find_recordings = self.runs.find_recordings
        self.reload = self.runs.reload
        self.seal = self.runs.seal
        self.seal_blocking = self.runs.seal_blocking
        self.mark = self.runs.mark
        self.owner_alive = self.runs.owner_alive
        self.ask_owner = self.owner_requests.ask
        self.owner_was_asked = self.owner_requests.was_asked
        self.append = self.events.append
        self.append_made = self.events.append_made
        self.append_durably = self.events.append_durably
        self.append_blocking = self.events.append_blocking
        self.log = self.events.all
        self.raw_log = self.events.raw
        self.checked_log = self.events.checked
        self.find_broken_link = self.events.find_broken_link
        self.save = self.exchanges.save
        self.save_unwaited = self.exchanges.save_unwaited
        self.find_exchange = self.exchanges.find
        self.holds = self.exchanges.holds
        self.seqs = self.exchanges.seqs
        self.append_message = self.messages.append
        self.record_message = self.messages.record
        self.find_originals = self.originals.find
        self.find_original_message = self.originals.find_message
        self.find_fingerprint = self.index.find_fingerprint
        self.next_use = self.index.next_use
        self.indexed = self.index.indexed
        self.fingerprints = self.index.fingerprints
        self.index_rows = self.index.rows
        self.replace_index = self.index.replace
        self.find_alpn = self.alpn.find
        self.knows_files_of = self.file_uses.knows
        self.spool = self.bodies.spool
        self.body_memory = self.bodies.memory
        self.read_file = self.bodies.read_file
        self.keep_file = self.bodies.keep_file
        self.keep_anew = self.bodies.keep_anew
        self.read_aside = self.bodies.read_aside
        self.read_body = self.bodies.read
        self._runs, self._log, self._exchanges = self.runs, self.events, self.exchanges

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
                store.bodies.clear_partial()
                remove_dead_files(path)
            except (lmdb.Error, OSError) as error:
                store.close()
                raise unreadable(path, error) from error
            except BaseException:
                store.close()
                raise
        return store

    def _clean_up(self, transaction: lmdb.Transaction) -> None:
        recover(transaction, self.runs, self.events)
        drop_unpublished(self._database, transaction)

    def ingest(self) -> Ingest:
        """Begin to ingest runs; see `Ingest`, which is used as a context manager."""
        return Ingest(self._database, self.runs, self.events, self.exchanges, self.messages)

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
    def writer(self) -> Writer:
        """The writer; a store opened for reading has none."""
        return self._database.writer

    @property
    def erasing(self) -> bool:
        """Call `removal.erasing` by its earlier name."""
        return self.removal.erasing

    @property
    def keeps_originals(self) -> bool:
        """`originals.kept` by its earlier name."""
        return self.originals.kept

    def delete_runs(self, runs: Sequence[RunInfo]) -> int:
        """Call `removal.delete` by its earlier name."""
        return self.removal.delete(runs)

    def erase_runs(self, runs: Sequence[RunInfo]) -> int:
        """Call `removal.erase` by its earlier name."""
        return self.removal.erase(runs)

    def remove_unneeded_files(self, before_s: float) -> int:
        """Call `removal.remove_unneeded_files` by its earlier name."""
        return self.removal.remove_unneeded_files(before_s)
