"""Shared openings: what conversations of any run begin with, kept once.

An opening is the first exchange of its kind that any run had, as a record of its own: no run stands on the exchanges of
another. It goes with the last run that uses it. It holds what the run said that it came from; where that one is erased
for good, the others are put on an opening out of one of them first.
"""

from collections import OrderedDict
from collections.abc import Iterator

import lmdb

from ..tape.codec import BadRecord, decode_exchange
from . import bodies
from .bodies import OPENING_BYTES, Base
from .database import Database
from .lanes import OPENING_KEY_BYTES, Stored
from .layout import number_key
from .values import Values

_KEPT_BYTES = 8 << 20
_AUTHOR = b"1"
"""Stands in the row of the run that an opening came from."""


class Openings:
    """The tables `openings`, `users` and `uses`. Belongs to the writer's thread."""

    def __init__(self, database: Database, values: Values) -> None:
        self._database = database
        self._values = values
        self._kept: OrderedDict[bytes, Stored] = OrderedDict()
        """By key; used last at the end."""
        database.forgetting.append(self._kept.clear)

    def find(self, key: bytes) -> Stored | None:
        """Find an opening by its key."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        with self._database.reading() as transaction:
            name = next(self._database.keys_under(transaction, "openings", key), None)
            if name is None:
                return None
            try:
                value = self._values.find(transaction, 0, name)
                assert value is not None
                body = decode_exchange(value).request.body
            except BadRecord:  # nothing new is put on a damaged one
                return None
        found = Stored(name, value, len(value) - len(body), written=True)
        self.keep(found)
        return found

    def keep(self, opening: Stored) -> None:
        """Remember an opening, be it yet to be written."""
        assert isinstance(opening.base, bytes)
        self._kept[opening.base[:OPENING_KEY_BYTES]] = opening
        while sum(len(one.value) for one in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)

    # ---- inside a write transaction --------------------------------------------------------------

    def add(self, transaction: lmdb.Transaction, run: int, opening: Stored, record: bytes) -> None:
        """Put an opening that came from a run."""
        assert isinstance(opening.base, bytes)
        self._values.put_opening(transaction, opening.base, record)
        self._put_use(transaction, run, opening.base, _AUTHOR)
        opening.written = True

    def use(self, transaction: lmdb.Transaction, run: int, opening: Stored) -> bool:
        """Note that a run uses an opening; say whether that is there to be used."""
        name = opening.base
        assert isinstance(name, bytes)
        there = transaction.get(name, db=self._database.tables["openings"]) is not None
        if not there:  # another process removed it, or it was never written
            self._kept.pop(name[:OPENING_KEY_BYTES], None)
            return False
        self._put_use(transaction, run, name, b"")
        return True

    def release(self, transaction: lmdb.Transaction, run: int) -> int:
        """Remove the openings of a run that is deleted which no other run uses; give how many."""
        removed = 0
        for name in self._uses(transaction, run):
            self._delete_use(transaction, run, name)
            if not any(self._users(transaction, name)):
                self._delete(transaction, name)
                removed += 1
        return removed

    def erase(self, transaction: lmdb.Transaction, run: int) -> int:
        """Remove the openings, too, that came from a run which is erased for good; give how many are no more.

        Reads the records of all runs that use them.
        Raises: BadRecord, where one of these cannot be read: the transaction has to be given up then.
        """
        users = self._database.tables["users"]
        own = [
            name
            for name in self._uses(transaction, run)
            if transaction.get(name + number_key(run), db=users) == _AUTHOR
        ]
        removed = self.release(transaction, run)
        for name in own:
            left = list(self._users(transaction, name))
            if left:
                self._move(transaction, name, left)
                removed += 1
        return removed

    def _move(self, transaction: lmdb.Transaction, name: bytes, runs: list[int]) -> None:
        """Put all that stands on an opening on a new one, which is made of the first of it."""
        left = [
            (run, seq, value)
            for run in runs
            for seq, value in self._values.standing_on(transaction, run, name)
        ]
        for run in runs:
            self._delete_use(transaction, run, name)
        self._delete(transaction, name)
        opening: Stored | None = None
        for run, seq, value in left:
            if opening is None:
                opening = Stored(name[:OPENING_KEY_BYTES] + bodies.digest(value), value, 0)
                self.add(transaction, run, opening, bodies.pack(value))
            self._put_use(transaction, run, opening.base, b"")
            record = bodies.pack_on(value, opening.base, opening.value, opening.hops + 1)
            self._values.put(transaction, run, seq, record)

    def _put_use(self, transaction: lmdb.Transaction, run: int, name: Base, author: bytes) -> None:
        assert isinstance(name, bytes)
        tables = self._database.tables
        number = number_key(run)
        transaction.put(name + number, author, db=tables["users"], overwrite=False)
        transaction.put(number + name, b"", db=tables["uses"], overwrite=False)

    def _delete_use(self, transaction: lmdb.Transaction, run: int, name: bytes) -> None:
        tables = self._database.tables
        transaction.delete(name + number_key(run), db=tables["users"])
        transaction.delete(number_key(run) + name, db=tables["uses"])

    def _delete(self, transaction: lmdb.Transaction, name: bytes) -> None:
        self._values.delete_opening(transaction, name)
        self._kept.pop(name[:OPENING_KEY_BYTES], None)

    def _uses(self, transaction: lmdb.Transaction, run: int) -> list[bytes]:
        return [key[8:] for key in self._database.keys(transaction, "uses", run)]

    def _users(self, transaction: lmdb.Transaction, name: bytes) -> Iterator[int]:
        for key in self._database.keys_under(transaction, "users", name):
            yield int.from_bytes(key[OPENING_BYTES:], "big")
