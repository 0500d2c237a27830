"""The messages of WebSockets, written as they pass."""

from collections.abc import Callable, Iterator

import lmdb

from ..tape.codec import BadRecord, decode_message, encode_message
from ..tape.model import Message
from . import bodies
from .database import Database
from .errors import LogCorrupt
from .layout import message_key
from .runs import RunInfo
from .writer import Operation


class Messages:
    """The table `messages`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(
        self,
        run: int,
        seq: int,
        number: int,
        message: Message,
        redact: Callable[[Message], Message] = lambda message: message,
    ) -> None:
        """Append a message of a WebSocket; nobody waits, but what is awaited later comes after it.

        number: its place in the conversation, from 0.
        redact: takes its secrets out; called on the writer's thread, in order.
        """

        def make() -> Operation:
            value = bodies.pack(encode_message(redact(message)))
            key = message_key(run, seq, number)

            def put(transaction: lmdb.Transaction) -> None:
                transaction.put(key, value, db=self._database.tables["messages"])

            return put

        self._database.writer.append(make)

    def all(self, info: RunInfo, seq: int, after: int = -1) -> Iterator[Message]:
        """Read the messages of a WebSocket in order, one transaction each.

        after: number of the last one already seen; -1 reads from the start.
        Raises: LogCorrupt.
        """
        while "messages" in self._database.tables:
            after += 1
            with self._database.reading() as transaction:
                key = message_key(info.number, seq, after)
                value = transaction.get(key, db=self._database.tables["messages"])
                if value is None:
                    return
                try:
                    found = decode_message(bodies.unpack(value))
                except BadRecord as error:
                    where = f"run {info.id}, exchange {seq}, message {after}"
                    raise LogCorrupt(f"{where}: {error}") from error
            yield found
