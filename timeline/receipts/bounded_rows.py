"""The lists of a receipt are bounded; its counts stay exact."""

from collections.abc import Iterable
from typing import Any

LISTED = 1000
"""Most rows of one list."""
SEQS = 100
"""Most seqs that are listed for one sentence."""


class BoundedRows[Row](list[Row]):
    """The first rows of a list, and how many more there were."""

    def __init__(self, rows: Iterable[Row] = (), omitted: int = 0) -> None:
        """Begin with some rows.

        omitted: rows that were left out.
        """
        super().__init__(rows)
        self.omitted = omitted


def omitted_of(rows: list[Any]) -> int:
    """Give how many rows were left out of a list."""
    return rows.omitted if isinstance(rows, BoundedRows) else 0


def total_of(rows: list[Any]) -> int:
    """Give how many rows a list would have if it had no bound."""
    return len(rows) + omitted_of(rows)


def add_row[Row](rows: list[Row], row: Row, most: int = LISTED) -> None:
    """Add a row to a list that is not full yet; count it otherwise."""
    if len(rows) < most:
        rows.append(row)
    elif isinstance(rows, BoundedRows):
        rows.omitted += 1


def bound_rows[Row](rows: list[Row]) -> BoundedRows[Row]:
    """Give the first rows of a list that may be too long."""
    return BoundedRows(rows[:LISTED], max(0, len(rows) - LISTED))
