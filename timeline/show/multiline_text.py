"""Recorded text of several lines, safe to print; what is left out is said in bytes."""

from collections.abc import Iterator

from ...tape.visible_text import show_visibly

_LINE = 4000
"""Characters of a line beyond which it is broken."""


def safe_line(text: str) -> str:
    """Give a line without control characters and marks of direction: they are shown as escapes."""
    return show_visibly(text, "\t")


def show_block(text: str, indent: str, most: int | None, how: str) -> Iterator[str]:
    """Give a text line by line.

    most: characters that are shown; None for all.
    how: what shows the rest.
    """
    shown = text if most is None or len(text) <= most else text[:most]
    for line in shown.splitlines() or [""]:
        for at in range(0, max(len(line), 1), _LINE):
            yield f"{indent}{safe_line(line[at : at + _LINE])}".rstrip()
    if len(shown) < len(text):
        left = len(text[len(shown) :].encode("utf-8", "surrogatepass"))
        yield f"{indent}… {left} more bytes: {how}"
