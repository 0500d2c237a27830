"""The lists of a receipt are bounded; its counts stay exact."""

LISTED = 1000
"""Most rows of one list."""
SEQS = 100
"""Most seqs that are listed for one sentence."""


def add_row[Row](rows: list[Row], row: Row, most: int = LISTED) -> None:
    """Add a row to a list that is not full yet."""
    if len(rows) < most:
        rows.append(row)
