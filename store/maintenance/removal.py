"""Remove the rows of a run from all tables that contain them, or put them under another number."""

from collections.abc import Iterable

import lmdb

from ..deltas.shared_prefixes import move_uses, release
from ..keys import ORIGINALS, number_key
from ..lmdb.database import Database

BY_RUN = ("events", "exchanges", "blocks", "messages", "files", "origins", "mail", ORIGINALS)
BY_INDEX = ("fingerprints", "raws")


def remove_rows(
    database: Database, transaction: lmdb.Transaction, run: int, indexes: Iterable[int]
) -> int:
    """Take out all rows of a run but those of the run list; give how many there were. Writer's thread.

    indexes: the numbers that its index and its stale ones stand under.
    """
    places = [(table, run) for table in BY_RUN if table in database.tables]
    places += [(table, number) for table in BY_INDEX for number in indexes]
    count = 0
    for table, number in places:
        for place in list(database.places(transaction, table, number)):
            transaction.delete(place, db=database.tables[table])
            count += 1
    release(database, transaction, run)
    return count


def move_rows(database: Database, transaction: lmdb.Transaction, run: int, to: int) -> None:
    """Put all rows under a number, but those of the run list, under another that has none. Writer's thread.

    Raises: BadRecord, if one fails authentication.
    """
    for table in (*BY_RUN, *BY_INDEX):
        if table not in database.tables:
            continue
        for place in list(database.places(transaction, table, run)):
            data = database.get(transaction, table, place)
            assert data is not None
            # Where it lies counts in an encrypted store.
            key, value = database.cipher.decrypt_row(table, place, data)
            transaction.delete(place, db=database.tables[table])
            database.put(transaction, table, number_key(to) + key[8:], value)
    move_uses(database, transaction, run, to)
