"""Fit recorded text into columns of a terminal: one line, printable characters, a width that is kept."""

import unicodedata

from ...tape.visible_text import escape_char, is_visible

_WIDE = ("W", "F")


def fit(text: str, width: int) -> str:
    """Give text as one line of at most `width` columns; a `…` says that there is more.

    Control characters, marks of direction and whatever else is not printed are shown as escapes; white space becomes a blank.
    """
    begin = text[: 8 * width + 64]
    line = " ".join(begin.split())
    if line.isascii() and line.isprintable():
        short = line[:width] if len(line) > width else line
        more = len(line) > width or len(begin) < len(text)
        return short[: width - 1].rstrip() + "…" if more and short else short
    shown: list[str] = []
    used, last = 0, 0
    for char in line:
        piece = char if is_visible(char) else escape_char(char)
        columns = sum(map(_columns, piece))
        if used + columns > width:
            return _cut(shown, used, width)
        shown.append(piece)
        used, last = used + columns, columns
    if len(begin) < len(text):
        return _cut(shown, used, width) if used + 1 > width or last else "…"
    return "".join(shown)


def columns(text: str) -> int:
    """Count the columns that printable text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def pad(text: str, width: int) -> str:
    """Fill text up with blanks to a width."""
    return text + " " * (width - columns(text))


def _cut(shown: list[str], used: int, width: int) -> str:
    while shown and used > width - 1:
        used -= sum(map(_columns, shown.pop()))
    return "".join(shown) + "…"


def _columns(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1
