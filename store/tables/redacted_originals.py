"""What redaction replaced in answers and messages, so that a replay on this machine can give them as they came.

Only an encrypted store has this table, and only if the configuration asks for it: each value is encrypted like any other of the
store. Nothing that copies a run reads it: exports, archives and other stores never have originals.
"""

import lmdb

from ...tape.exchange import Exchange, Message, RawAnswer, RawMessage
from ...tape.records.codec import BadRecord
from ...tape.records.redacted_originals import pack_originals, restore_answer, restore_message
from ..deltas import record_codec
from ..errors import LogCorrupt
from ..lmdb.database import Database, Row
from ..lmdb_keys import ORIGINALS, message_key, pair_key
from .run_info import RunInfo


class Originals:
    """What redaction replaced, `store.originals`: the table `originals`, which may not be there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def kept(self) -> bool:
        """Whether the store can keep originals: it is encrypted, and was opened for that."""
        return ORIGINALS in self._database.tables and bool(self._database.cipher.check)

    def row(self, run: int, came: RawAnswer, kept: Exchange) -> Row | None:
        """Make the row of an answer; None where nothing of it was replaced."""
        value = pack_originals(came, kept)
        if value is None:
            return None
        key = pair_key(run, kept.seq)
        return self._database.row(ORIGINALS, key, record_codec.pack(value))

    def message_row(self, run: int, seq: int, number: int, came: RawMessage) -> Row:
        """Make the row of a message."""
        key = message_key(run, seq, number)
        return self._database.row(ORIGINALS, key, record_codec.pack(came.data))

    def put(self, transaction: lmdb.Transaction, run: int, seq: int, row: Row | None) -> None:
        """Put the row of an answer in the place of an earlier one, or take that out."""
        if row is not None:
            self._database.put_row(transaction, row)
        else:
            self._database.delete(transaction, ORIGINALS, pair_key(run, seq))

    def find(self, info: RunInfo, kept: Exchange) -> RawAnswer | None:
        """Find an answer as it came; None where it has no originals.

        Raises: LogCorrupt.
        """
        try:
            value = self._read(pair_key(info.number, kept.seq))
            return None if value is None else restore_answer(kept, value)
        except BadRecord as error:
            raise LogCorrupt(f"run {info.id}, exchange {kept.seq}: {error}") from error

    def find_message(
        self, info: RunInfo, seq: int, number: int, kept: Message
    ) -> RawMessage | None:
        """Find a message of a WebSocket as it came; None where it has no original.

        Raises: LogCorrupt.
        """
        try:
            value = self._read(message_key(info.number, seq, number))
            return None if value is None else restore_message(kept, value)
        except BadRecord as error:
            where = f"run {info.id}, exchange {seq}, message {number}"
            raise LogCorrupt(f"{where}: {error}") from error

    def _read(self, key: bytes) -> bytes | None:
        if ORIGINALS not in self._database.tables:
            return None
        with self._database.reading() as transaction:
            value = self._database.read(transaction, ORIGINALS, key)
        return None if value is None else record_codec.unpack(value)
