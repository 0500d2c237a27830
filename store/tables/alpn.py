"""ALPN results: the protocol that each origin of a run negotiated."""

import lmdb

from ...tape.exchange import Exchange
from ..keys import origin_key
from ..lmdb.database import Database
from .run_info import RunInfo


class Origins:
    """The table `origins`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: set[bytes] = set()
        """Keys that are there already; an agent meets few."""
        database.forgetting.append(self._known.clear)

    def find_new(self, run: int, exchange: Exchange) -> bytes | None:
        """Give the key of what an exchange negotiated, unless it is there already. Writer's thread."""
        if not exchange.alpn.offers:
            return None
        request = exchange.request
        key = origin_key(run, request.host, request.port, exchange.alpn.offers)
        return None if key in self._known else key

    def put(self, transaction: lmdb.Transaction, key: bytes, exchange: Exchange) -> None:
        """Write what an exchange negotiated, inside a transaction."""
        self._database.put(
            transaction, "origins", key, exchange.alpn.chosen or b"", overwrite=False
        )
        self._known.add(key)

    def forget(self, run: int) -> None:
        """Drop what is remembered; what other runs met is looked up again. Writer's thread."""
        self._known.clear()

    def find_alpn(
        self, info: RunInfo, host: str, port: int, offers: tuple[bytes, ...]
    ) -> bytes | None:
        """Find what was negotiated with an origin by a client that offered the same.

        Gives b"" where the origin chose none, None where it was never asked so.
        """
        with self._database.reading() as transaction:
            key = origin_key(info.number, host, port, offers)
            return self._database.find(transaction, "origins", key)
