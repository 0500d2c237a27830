"""ALPN results: the protocol that each origin of a run negotiated."""

import lmdb

from ...tape.exchange import Exchange
from ..lmdb.database import Database
from ..lmdb_keys import origin_key
from .run_info import RunInfo

_HTTP1 = b"http/1.1"
_ANY: tuple[bytes, ...] = ()
"""Whatever the client offered."""


class Origins:
    """The ALPN results of runs, `store.alpn`: the table `origins`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: set[bytes] = set()
        """Keys that are there already; an agent meets few."""
        database.forgetting.append(self._known.clear)

    def find_new(self, run: int, exchange: Exchange) -> tuple[bytes, ...]:
        """Give the keys of what an exchange negotiated that are not there already. Writer's thread."""
        if not exchange.alpn.offers:
            return ()
        request = exchange.request
        keys = (
            origin_key(run, request.host, request.port, offers)
            for offers in (exchange.alpn.offers, _ANY)
        )
        return tuple(key for key in keys if key not in self._known)

    def put(self, transaction: lmdb.Transaction, key: bytes, exchange: Exchange) -> None:
        """Write what an exchange negotiated, inside a transaction."""
        self._database.put(
            transaction, "origins", key, exchange.alpn.chosen or b"", overwrite=False
        )
        self._known.add(key)

    def forget(self, run: int) -> None:
        """Drop what is remembered; what other runs met is looked up again. Writer's thread."""
        self._known.clear()

    def find(self, info: RunInfo, host: str, port: int, offers: tuple[bytes, ...]) -> bytes | None:
        """Find what was negotiated with an origin by a client that offered the same, or else by the first, if it is offered.

        Gives b"" where the origin chose none, None where nothing on the tape says more than these offers.
        offers: protocols as ALPN names them (`b"h2"`), in the client's order.
        Raises: LogCorrupt.
        """
        with self._database.reading() as transaction:
            key = origin_key(info.number, host, port, offers)
            found = self._database.find(transaction, "origins", key)
            if found is not None:
                return found
            first = origin_key(info.number, host, port, _ANY)
            chosen = self._database.find(transaction, "origins", first)
        # An origin that chose none speaks HTTP/1.1.
        return chosen if (chosen or _HTTP1) in offers else None
