"""The store: runs, their events and their exchanges, in one LMDB environment and a folder of body files.

Rules: `events` is append-only and chained; an exchange is written once its outcome is known; only the writes that rule 3
of the design names are awaited; a read transaction is open for one call. Each part of the store is a class in a module of its
own, with the methods that others call; this module opens the parts and hands them out.
"""

from collections.abc import Callable
from copy import copy
from pathlib import Path

import lmdb

from ..tape.exchange import Exchange
from ..tape.records.events import Event
from .archive.batch_index import ArchivedRuns
from .encryption.key import StoreKey
from .lmdb.database import Database, unreadable
from .lmdb.lock import StoreLock
from .lmdb.open import open_database
from .lmdb.process_liveness import remove_dead_files
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
from .tables.folders import Folders
from .tables.redacted_originals import Originals
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
        self.folders = Folders(database)
        """What working folders held, and the contents of their files."""
        self.index = Indexes(database, self.runs)
        """Finds exchanges by fingerprint or raw bytes."""
        self.owner_requests = OwnerRequests(database)
        """What another process asks of the process that owns a run."""
        self.archive = ArchivedRuns(database, self.runs)
        """Which runs are in which batch of an archive."""
        self.removal = Removal(database, self.runs, self.bodies, self.file_uses)
        """Deletes runs and the files that only they needed."""
        self.runs.ended += [self.alpn.forget, self.messages.forget, self.exchanges.forget]

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

    def read_through(
        self,
        exchange: Callable[[RunInfo, Exchange], Exchange],
        event: Callable[[RunInfo, Event], Event],
    ) -> "Store":
        """Give this store with what is read of exchanges and events put through a function each; only for reading."""
        changed = copy(self)
        changed.exchanges = self.exchanges.read_through(exchange)
        changed.events = self.events.read_through(event)
        return changed

    def ingest(self) -> Ingest:
        """Begin to ingest runs; see `Ingest`, which is used as a context manager."""
        return Ingest(
            self._database, self.runs, self.events, self.exchanges, self.messages, self.folders
        )

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
