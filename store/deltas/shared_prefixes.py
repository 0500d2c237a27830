"""Shared prefixes: the first exchange of each kind of conversation, stored once for all runs.

A shared prefix is a record of its own, so no run depends on the exchanges of another run. It is deleted with the last run
that uses it. The store records which run it was copied from. If that run is erased, a new shared prefix is made from one of
the remaining exchanges first, and the other exchanges are stored against the new one.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator

import lmdb

from ...tape.records.codec import BadRecord, decode_exchange
from ..lmdb.database import Database
from ..lmdb_keys import number_key
from . import record_codec
from .base64_blobs import body_place, has_blobs
from .choose_base import Stored
from .is_continuation import Body
from .record_codec import PREFIX_NAME_BYTES
from .records import Records

_KEPT_BYTES = 8 << 20
_AUTHOR = b"1"
"""Value of the `users` row of the run that a shared prefix was copied from."""


class SharedPrefixes:
    """The shared prefixes in use. Belongs to the writer's thread."""

    def __init__(self, database: Database, records: Records) -> None:
        self._database = database
        self._records = records
        self._kept: OrderedDict[bytes, Stored] = OrderedDict()
        """By name; used last at the end."""
        database.forgetting.append(self._kept.clear)

    def find(self, name: bytes) -> Stored | None:
        """Find a shared prefix, be it yet to be written."""
        kept = self._kept.get(name)
        if kept is not None:
            self._kept.move_to_end(name)
            return kept
        try:
            with self._database.reading() as transaction:
                value = self._records.find(transaction, 0, name)
            if value is None:
                return None
            body_at = _body_at(value)
        except BadRecord:  # nothing new is put on a damaged one
            return None
        found = Stored(name, value, body_at)
        self.keep(found)
        return found

    def keep(self, prefix: Stored) -> None:
        """Remember a shared prefix."""
        assert isinstance(prefix.key, bytes)
        self._kept[prefix.key] = prefix
        while sum(len(one.value) for one in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)

    def use(
        self, transaction: lmdb.Transaction, run: int, prefix: Stored, record: bytes | None
    ) -> bool:
        """Note that a run uses a shared prefix; say whether it can. Inside a write transaction.

        record: puts it, if it is not there.
        """
        name = prefix.key
        assert isinstance(name, bytes)
        author = b""
        check = self._records.find_check(transaction, name)
        if check is None and record is not None:
            self._records.put_prefix(transaction, name, record)
            author = _AUTHOR
        elif check != record_codec.digest(
            prefix.value
        ):  # another process put its own, or removed it
            self._kept.pop(name, None)
            return False
        _put_use(self._database, transaction, run, name, author)
        return True


def _body_at(value: bytes) -> int:
    if has_blobs(value):  # the blobs are those of the run that it came from
        return body_place(value)
    return len(value) - len(decode_exchange(value).request.body)


def release(database: Database, transaction: lmdb.Transaction, run: int) -> None:
    """Remove the shared prefixes of a run that is deleted which no other run uses. Inside a write transaction."""
    records = Records(database)
    for name in _used(database, transaction, run):
        _delete_use(database, transaction, run, name)
        if not any(_users(database, transaction, name)):
            records.delete_prefix(transaction, name)


def erase(database: Database, transaction: lmdb.Transaction, runs: Collection[int]) -> None:
    """Remove the shared prefixes that were copied from erased runs. Inside a write transaction.

    Reads the other runs that use them: their exchanges are stored against a new shared prefix, made from the first of them.
    """
    own = [
        name
        for run in runs
        for name in _used(database, transaction, run)
        if database.read(transaction, "users", name + number_key(run)) == _AUTHOR
    ]
    for run in runs:
        release(database, transaction, run)
    for name in own:
        _make_anew(database, transaction, name)


def rebase(database: Database, transaction: lmdb.Transaction, run: int) -> None:
    """Remove the shared prefixes that may hold what a rewritten run held, whose rows go next. Inside a write transaction.

    These are the ones that were copied from it, and those that were copied from a run that is no more. The exchanges of all
    others that use them are stored against a new one; see `erase`.
    """
    old = [
        name
        for name in _used(database, transaction, run)
        if not _author(database, transaction, name, run)
    ]
    release(database, transaction, run)
    for name in old:
        _make_anew(database, transaction, name)


def _author(database: Database, transaction: lmdb.Transaction, name: bytes, run: int) -> bool:
    """Say whether a shared prefix was copied from another run than `run`, which is still there."""
    users = _users(database, transaction, name)
    return any(
        database.read(transaction, "users", name + number_key(user)) == _AUTHOR
        for user in users
        if user != run
    )


def move_uses(database: Database, transaction: lmdb.Transaction, run: int, to: int) -> None:
    """Have a run use the shared prefixes that another number uses. Inside a write transaction."""
    for name in _used(database, transaction, run):
        author = database.read(transaction, "users", name + number_key(run)) or b""
        _delete_use(database, transaction, run, name)
        _put_use(database, transaction, to, name, author)


def _make_anew(database: Database, transaction: lmdb.Transaction, name: bytes) -> None:
    records = Records(database)
    runs = list(_users(database, transaction, name))
    try:
        before = records.find(transaction, 0, name)
    except BadRecord:  # its deltas are lost with it
        before = None
    records.delete_prefix(transaction, name)
    prefix: bytes | None = None
    for run in runs:
        _delete_use(database, transaction, run, name)
        for seq, value in records.deltas_on(transaction, run, name, before):
            author = b""
            if prefix is None:
                prefix, author = value, _AUTHOR
                records.put_prefix(transaction, name, record_codec.pack(value))
            _put_use(database, transaction, run, name, author)
            packed = record_codec.pack_delta(Body(value, 0), name, Body(prefix, 0), 1)
            records.put(transaction, run, seq, packed)


def _put_use(
    database: Database, transaction: lmdb.Transaction, run: int, name: bytes, author: bytes
) -> None:
    number = number_key(run)
    database.put(transaction, "users", name + number, author, overwrite=False)
    database.put(transaction, "uses", number + name, b"", overwrite=False)


def _delete_use(database: Database, transaction: lmdb.Transaction, run: int, name: bytes) -> None:
    number = number_key(run)
    database.delete(transaction, "users", name + number)
    database.delete(transaction, "uses", number + name)


def _used(database: Database, transaction: lmdb.Transaction, run: int) -> list[bytes]:
    """Give the names of the shared prefixes that a run uses."""
    return [
        database.cipher.plain_key("uses", place)[8:]
        for place in database.places(transaction, "uses", run)
    ]


def _users(database: Database, transaction: lmdb.Transaction, name: bytes) -> Iterator[int]:
    """Give the runs that use a shared prefix."""
    for place in database.places_under(transaction, "users", name):
        yield int.from_bytes(place[PREFIX_NAME_BYTES:], "big")
