"""Text that is safe to print in a terminal.

Recorded text comes from models and strangers: everything that could move a cursor or change a colour is
shown as an escape, and every line is bounded.
"""

from collections.abc import Iterable, Sequence

from ...tape.visible_text import show_visibly

WIDTH = 160
"""Characters of a line."""
TEXT = 400
"""Characters of a sentence."""
ROWS = 12
"""Rows of a list that are shown."""


def plain(text: str, limit: int = WIDTH) -> str:
    """Give text that is safe to print: one line, no control characters, bounded."""
    shown = show_visibly(text[: limit * 2].encode("utf-8", "backslashreplace").decode("utf-8"))
    return shown if len(shown) <= limit and len(text) <= limit * 2 else shown[: limit - 1] + "…"


def plain_lines(text: str) -> str:
    """Give a text of several lines that is safe to print."""
    return "\n".join(plain(line, 2000) for line in text.splitlines())


def table(rows: Iterable[Sequence[str]]) -> str:
    """Align columns."""
    kept = [list(row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*kept, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in kept
    )


def titled_rows(
    title: str, rows: Sequence[str], count: int | None = None, *, limit: int = WIDTH
) -> list[str]:
    """Give the first rows of a list below its title, in lines; none where there is no row.

    count: rows in all, where `rows` has not all of them.
    limit: characters of a row.
    """
    if not rows:
        return []
    lines = [f"{title}:"] + [f"  {plain(row, limit)}" for row in rows[:ROWS]]
    more = (count if count is not None else len(rows)) - ROWS
    return lines + ([f"  … and {more} more"] if more > 0 else [])
