"""Find secrets by where they stand in a table: below a column of CSV or Markdown that is named like one, and in a JSON Web Key.

A column is told by the first line of a table: all of its cells are names, and the lines below have as many cells.

Source: RFC 4180 (CSV); GitHub Flavored Markdown, "Tables"; RFC 7517 and RFC 7518 section 6 (JWK).
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Protocol

from ..credential_fields import SECRET
from ..looks_like_secret import is_loose, is_random
from .pattern_prefilter import Head
from .searched_text import Context, Found, Strings

_COLUMN = (
    "(?:pass(?:word|wd|phrase|code)?|pwd|(?:secret )?access[ _-]key|secret(?:[ _-]?key)?|token|credential|"
    "(?:api|access|private|auth|signing|encryption|account|master)[ _-]?key)s?"
)
# In source code blanks are before names; in tables of Markdown, too, but behind a bar.
_BEFORE = '(?:(?:^|[\\n,;\\t])"?|[|] {0,32})[A-Za-z0-9_-]{0,24}'
COLUMN = Head(_BEFORE + _COLUMN + '"?[ ]{0,32}(?:[,;\\t|]|\\r?\\n)', caseless=True)
WEB_KEY = Head("kty\\\\{0,7}[\"']\\s{0,4}:\\s{0,4}\\\\{0,7}[\"'](?:RSA|EC|OKP|oct)")

_NAME = re.compile(rb"[A-Za-z_][\w-]*(?: [\w-]+){0,2}")
_RULE = re.compile(rb"[ |:+-]*-[ |:+-]*")
"""Below the first line of a table of Markdown or of psql."""
_LONGEST_LINE = 4096
_MOST_ROWS = 2000
_MOST_BYTES = 256 * 1024
_LEARNED_ROWS = 64
"""Rows whose values are looked for elsewhere, too: thousands would have other secrets forgotten."""
_MOST_CELLS = 64

Cell = tuple[int, int]
"""Where a cell begins and ends, without quotes and blanks around."""


class NamedPlace(Protocol):
    """A name of a secret, as `secrets_by_name.Place`."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def test(self) -> Callable[[bytes], bool]:
        """What a value has to pass."""


ReadName = Callable[[bytes], NamedPlace | None]


def find_in_column(
    read: ReadName, context: Context, end: int, strings: Strings
) -> list[Found] | None:
    """Look at the values below each column that is named like a secret.

    read: says what a name names.
    """
    data = context.data
    if context.document:
        return None  # a string of JSON has no line ends: what has is a prompt that was put together
    first = data.rfind(b"\n", max(0, end - _LONGEST_LINE), end - 1) + 1
    if first == strings.table:
        return None
    strings.table = first
    lines = _lines(data, first)
    line = next(lines, None)
    if line is None:
        return None
    sign = _sign_of(data[line[0] : line[1]])
    head = _cells(data, line, sign) if sign else []
    if len(head) < 2 or not all(_NAME.fullmatch(data[start:stop]) for start, stop in head):
        return None
    if first and _is_row(data, first, sign, len(head)):
        return None  # in the middle of one
    places = {
        at: place
        for at, (start, stop) in enumerate(head)
        if (place := read(data[start:stop].replace(b" ", b"_"))) is not None
    }
    strings.judged = True
    found = list[Found]()
    for row, line in enumerate(lines if places else ()):
        if sign == b"|" and _RULE.fullmatch(data[line[0] : line[1]].rstrip(b"\r")):
            continue
        cells = _cells(data, line, sign)
        if len(cells) != len(head) or row > _MOST_ROWS:
            break
        for at, place in places.items():
            start, stop = cells[at]
            value = data[start:stop]
            if b" " not in value and place.test(value):
                found.append(Found(start, stop, place.kind, learn=row < _LEARNED_ROWS))
    return found or None


def _lines(data: bytes, first: int) -> Iterator[Cell]:
    """Give the lines from a place on."""
    last = first + _MOST_BYTES
    while first < len(data) and first < last:
        end = data.find(b"\n", first, first + _LONGEST_LINE)
        if end < 0:
            if len(data) - first <= _LONGEST_LINE:
                yield first, len(data)
            return
        yield first, end
        first = end + 1


def _sign_of(line: bytes) -> bytes:
    """Give what separates the cells of a line."""
    if line.count(b"|") >= 2 or (b"|" in line and b"," not in line):
        return b"|"
    return max((b",", b";", b"\t"), key=line.count) if re.search(rb"[,;\t]", line) else b""


def _cells(data: bytes, line: Cell, sign: bytes) -> list[Cell]:
    """Take a line apart; none where it has too many cells, or a quote that does not end."""
    start, stop = line
    text = data[start:stop].rstrip(b"\r")
    if sign == b"|":
        inner = text.strip(b" ")
        start += len(text) - len(text.lstrip(b" "))
        text = inner
        if text[:1] == b"|":
            text, start = text[1:], start + 1
        text = text.removesuffix(b"|")
    if text.count(sign) >= _MOST_CELLS:
        return []
    bounds = [-1]
    quoted = False
    for at, code in enumerate(text) if b'"' in text else ():
        quoted ^= code == 0x22
        if not quoted and code == sign[0]:
            bounds.append(at)
    if quoted:
        return []
    if b'"' not in text:
        at = text.find(sign)
        while at >= 0:
            bounds.append(at)
            at = text.find(sign, at + 1)
    bounds.append(len(text))
    cells = list[Cell]()
    for before, behind in pairwise(bounds):
        cell = text[before + 1 : behind]
        left = len(cell) - len(cell.lstrip(b' "'))
        right = len(cell.rstrip(b' "'))
        first = start + before + 1
        cells.append((first + min(left, right), first + right))
    return cells


def _is_row(data: bytes, first: int, sign: bytes, count: int) -> bool:
    """Say whether the line before a place has as many cells."""
    before = data.rfind(b"\n", max(0, first - 1 - _LONGEST_LINE), first - 1) + 1
    return len(_cells(data, (before, first - 1), sign)) == count


_MEMBER = re.compile(
    rb"""(\\*["'])(?:d|k|p|q|dp|dq|qi)\1\s{0,8}:\s{0,8}\1([A-Za-z0-9_=-]{16,8192})\1"""
)
_OBJECT = 16 * 1024


def find_web_key(context: Context, end: int, _strings: Strings) -> list[Found] | None:
    """Look at the private members of a JSON Web Key."""
    data = context.data
    if "jwk" in context.kept_formats:
        return None
    start = data.rfind(b"{", max(0, end - _OBJECT), end)
    if start < 0 or data.find(b"}", start, end) >= 0:
        return None
    if data.find(b"kty", start, data.rfind(b"kty", start, end)) >= 0:
        return None  # one that was looked at
    ends = (data.find(sign, end, end + _OBJECT) for sign in (b"}", b"{"))
    stop = min((at for at in ends if at >= 0), default=min(len(data), end + _OBJECT))
    found = [
        Found(*member.span(2), SECRET, learn=True)
        for member in _MEMBER.finditer(data, start, stop)
        if is_random(member[2]) or is_loose(member[2])
    ]
    return found or None
