"""Owner requests: what another process asks of the process that owns a run."""

import time

from ..lmdb.database import Database
from ..lmdb_keys import number_key
from .run_info import RunInfo


class OwnerRequests:
    """Requests to the process that owns a run, `store.owner_requests`: the table `mail`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self, info: RunInfo, what: str) -> None:
        """Ask something of the process that owns a run. Blocks until it is durable.

        what: name of the request, such as `seal`.
        Raises: StoreUnwritable.
        """
        key = number_key(info.number) + what.encode()
        now = str(time.time_ns()).encode()
        self._database.writer.call(lambda txn: self._database.put(txn, "mail", key, now))

    def was_asked(self, info: RunInfo, what: str) -> bool:
        """Say whether another process asked this of the owner of a run. From any thread."""
        with self._database.reading() as transaction:
            key = number_key(info.number) + what.encode()
            return self._database.holds(transaction, "mail", key)
