"""The store: runs, their events and their exchanges, in one LMDB environment.

Rules: `events` is append-only and chained; an exchange is written once its outcome is known; nothing is
awaited but what rule 3 of the design asks for; a read transaction lives for one call. Each table has a part of its
own; this is where they meet.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

from ..tape.model import Chunk, Spilled
from ..tape.redact_stream import Stream
from .database import Database, unreadable
from .exchanges import Exchanges
from .index import Indexes
from .log import EventLog
from .mail import Mail
from .messages import Messages
from .opening import open_database
from .origins import Origins
from .recovery import recover
from .run_list import RunList, owner_alive
from .spool import Spool, clear_partial, read_pieces
from .writer import Writer


class Store:
    """One open store. Reads may come from any thread; writes go through `writer`."""

    def __init__(self, database: Database) -> None:
        """Use `Store.open` instead."""
        self.path = database.path
        self._database = database
        self._log = log = EventLog(database)
        self._runs = runs = RunList(database, log)
        origins = Origins(database)
        runs.ended.append(origins.forget)
        self._exchanges = exchanges = Exchanges(database, log, origins)
        runs.ended.append(exchanges.forget)
        messages = Messages(database)
        index = Indexes(database, runs)
        mail = Mail(database)

        self.create_run = runs.create
        self.find_run = runs.find
        self.get_run = runs.get
        self.runs = runs.all
        self.find_latest = runs.find_latest
        self.reload = runs.reload
        self.seal = runs.seal
        self.seal_blocking = runs.seal_blocking
        self.owner_alive = owner_alive

        self.ask = mail.ask
        self.asked = mail.asked

        self.append = log.append
        self.append_made = log.append_made
        self.append_durably = log.append_durably
        self.events = log.events
        self.log = log.log
        self.find_broken_link = log.find_broken_link

        self.save = exchanges.save
        self.save_unwaited = exchanges.save_unwaited
        self.find_exchange = exchanges.find
        self.holds = exchanges.holds
        self.exchanges = exchanges.all
        self.seqs = exchanges.seqs

        self.append_message = messages.append
        self.messages = messages.all

        self.find_fingerprint = index.find_fingerprint
        self.next_use = index.next_use
        self.indexed = index.indexed
        self.fingerprints = index.fingerprints
        self.replace_index = index.replace_index

        self.find_alpn = origins.find_alpn

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> "Store":
        """Open the store in a folder; a writer makes it when it is not there.

        A writer ends the runs whose process has died.
        Raises: StoreError (no store there), StoreTooNew, StoreUnwritable.
        """
        store = cls(open_database(path, readonly=readonly))
        if not readonly:
            try:
                store.check_readers()
                store.writer.call(lambda txn: recover(txn, store._runs, store._log))
                clear_partial(store._bodies)
            except (lmdb.Error, OSError) as error:
                store.close()
                raise unreadable(path, error) from error
            except BaseException:
                store.close()
                raise
        return store

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
    def writer(self) -> Writer:
        """The writer; a store opened for reading has none."""
        return self._database.writer

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
