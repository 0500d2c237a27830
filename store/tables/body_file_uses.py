"""Which exchanges need which body files, so that a file is removed with the last of them."""

from collections.abc import Iterator

import lmdb

from ...tape.exchange import Exchange
from ...tape.records.codec import DIGEST_BYTES, BadRecord
from ..errors import LogCorrupt
from ..lmdb.database import Database, Row
from ..lmdb_keys import pair_key
from .run_info import RunInfo


def files_row(database: Database, run: int, exchange: Exchange) -> Row:
    """Make the row that tells which files an exchange needs."""
    return database.row("files", pair_key(run, exchange.seq), _digests(exchange))


def _digests(exchange: Exchange) -> bytes:
    return b"".join(digest for spilled in exchange.spilled for digest in spilled.files)


class FileUses:
    """Which exchange needs which body files, `store.file_uses`: the table `files`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def knows(self, info: RunInfo, exchange: Exchange) -> bool:
        """Say whether the table has exactly the files of an exchange, none where it has none.

        info: its run.
        Raises: LogCorrupt.
        """
        key = pair_key(info.number, exchange.seq)
        with self._database.reading() as transaction:
            return (self._database.find(transaction, "files", key) or b"") == _digests(exchange)

    def needed(self) -> set[bytes]:
        """Give the digests (32 bytes each) of all files that some exchange needs.

        Raises: LogCorrupt.
        """
        with self._database.reading() as transaction:
            return set(self._digests(transaction))

    def _digests(self, transaction: lmdb.Transaction) -> Iterator[bytes]:
        cipher = self._database.cipher
        with self._database.cursor(transaction, "files") as cursor:
            for key, data in cursor:
                try:
                    value = cipher.decrypt("files", bytes(key), bytes(data))
                except BadRecord as error:
                    raise LogCorrupt(f"a row of the table files: {error}") from error
                for at in range(0, len(value), DIGEST_BYTES):
                    yield value[at : at + DIGEST_BYTES]
