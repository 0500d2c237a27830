"""Remove the rows of a run from all tables that contain them."""

from collections.abc import Iterable

import lmdb

from ..deltas.shared_prefixes import release
from ..lmdb.database import Database

BY_RUN = ("events", "exchanges", "blocks", "messages", "files", "origins", "mail")
BY_INDEX = ("fingerprints", "raws")


def remove_rows(
    database: Database, transaction: lmdb.Transaction, run: int, indexes: Iterable[int]
) -> int:
    """Take out all rows of a run but those of the run list; give how many there were. Writer's thread.

    indexes: the numbers that its index and its stale ones stand under.
    """
    places = [(table, run) for table in BY_RUN]
    places += [(table, number) for table in BY_INDEX for number in indexes]
    count = 0
    for table, number in places:
        for place in list(database.places(transaction, table, number)):
            transaction.delete(place, db=database.tables[table])
            count += 1
    release(database, transaction, run)
    return count
