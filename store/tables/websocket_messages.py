"""WebSocket messages, written as they pass."""

from collections.abc import Callable, Iterator

import lmdb
from blake3 import blake3

from ...tape.exchange import Message, RawMessage, Seq
from ...tape.records.codec import BadRecord, decode_message, encode_message
from ...tape.records.events import HASH_BYTES
from ..deltas import record_codec
from ..errors import LogCorrupt
from ..lmdb.database import Database
from ..lmdb.writer import Operation
from ..lmdb_keys import message_key, number_key, pair_key
from .redacted_originals import Originals
from .run_info import RunInfo


class Messages:
    """The messages of WebSockets, `store.messages`: the table `messages`."""

    def __init__(self, database: Database, originals: Originals) -> None:
        self._database = database
        self._originals = originals
        self._hashes: dict[tuple[int, int], blake3] = {}
        """Over the messages of each WebSocket that is being written. Writer's thread."""

    def append(self, run: int, seq: int, number: int, message: Message) -> None:
        """Append a message of a WebSocket; nobody waits, but what is awaited later comes after it.

        run: number of a run that is open.
        number: its place among the messages, from 0.
        Raises: StoreUnwritable, while nothing can be written.
        """
        self._database.writer.append(lambda: self._put(run, seq, number, message), run)

    def record(
        self,
        run: int,
        seq: int,
        number: int,
        came: RawMessage,
        redact: Callable[[RawMessage], Message],
        *,
        originals: bool = False,
    ) -> None:
        """Append a message of a WebSocket as it passes; see `append`.

        redact: takes its secrets out; called on the writer's thread, in order.
        originals: keep what it replaces, too.
        """

        def make() -> Operation:
            kept = redact(came)
            put = self._put(run, seq, number, kept)
            if not originals or kept.data == came.data:
                return put
            row = self._originals.message_row(run, seq, number, came)

            def operation(transaction: lmdb.Transaction) -> None:
                put(transaction)
                self._database.put_row(transaction, row)

            return operation

        self._database.writer.append(make, run)

    def _put(self, run: int, seq: int, number: int, message: Message) -> Operation:
        encoded = encode_message(message)
        self._hashes.setdefault((run, seq), blake3()).update(encoded)
        key = message_key(run, seq, number)
        row = self._database.row("messages", key, record_codec.pack(encoded))
        return lambda txn: self._database.put_row(txn, row)

    def take_hash(self, run: int, seq: int) -> bytes:
        """Give the hash over the messages of a WebSocket that has ended, or b"" where none came. Writer's thread."""
        found = self._hashes.pop((run, seq), None)
        return found.digest(HASH_BYTES) if found is not None else b""

    def forget(self, run: int) -> None:
        """Drop what is remembered of a run that has ended. Writer's thread."""
        for key in [key for key in self._hashes if key[0] == run]:
            del self._hashes[key]

    def all(self, info: RunInfo, seq: int, after: int = -1) -> Iterator[Message]:
        """Read the messages of a WebSocket in order, one transaction each.

        seq: of the exchange that opened it.
        after: number of the last one already seen; -1 reads from the start.
        Raises: LogCorrupt, naming the run, the seq and the message.
        """
        while True:
            after += 1
            with self._database.reading() as transaction:
                key = message_key(info.number, seq, after)
                try:
                    value = self._database.read(transaction, "messages", key)
                    if value is None:
                        return
                    found = decode_message(record_codec.unpack(value))
                except BadRecord as error:
                    where = f"run {info.id}, exchange {seq}, message {after}"
                    raise LogCorrupt(f"{where}: {error}") from error
            yield found

    def seqs(self, info: RunInfo) -> list[Seq]:
        """List the exchanges of a run that have messages, in order, without reading one."""
        found = list[Seq]()
        prefix = number_key(info.number)
        with (
            self._database.reading() as transaction,
            self._database.cursor(transaction, "messages") as cursor,
        ):
            more = cursor.set_range(prefix)
            while more and bytes(cursor.key()[:8]) == prefix:
                found.append(Seq(int.from_bytes(cursor.key()[8:16], "big")))
                more = cursor.set_range(pair_key(info.number, found[-1] + 1))
        return found
