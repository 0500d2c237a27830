"""Split a body into lines with bounded memory.

A line ends with LF, CR LF or CR; nothing else ends one, as the standard of event streams has it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE = re.compile(rb"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")


class Line(NamedTuple):
    """One line, without its end."""

    text: bytes
    end: int
    """Where its text ends in the body."""


def read_lines(body: bytes, start: int = 0) -> Iterator[Line]:
    """Give the lines from a place on; the last may have no end, and may be empty."""
    for found in _LINE.finditer(body, start):
        yield Line(found[1], found.end(1))
