"""A text that is searched, and the places that are found in it."""

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from .command_lines import CommandLines

MAX_VALUE = 16 * 1024
"""Bytes of the longest secret."""
STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
"""The rest of a string of JSON behind its first quote."""
WORD_START = rb"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
"""Where a word begins: behind an escape of JSON as well, whose letter is none of it."""
_DOCUMENT = re.compile(
    rb"""\s*(?:\{\s*(?:\\*"|\})|\[\s*(?:\\*"|[\[{\]\d-]|true|false|null)|(?:data|event|id):\s?|")"""
)
_BEGINS = re.compile(rb'(?:\\+[nrt]|\s)*[\[{](?:\\+[nrt]|\s)*(?:\\+"|[\[{\]}])')


class Found(NamedTuple):
    """Where a secret is."""

    start: int
    end: int
    kind: str
    learn: bool
    """Whether it is to be looked for elsewhere."""
    declared: bool = False
    """Whether its place says that it is one."""
    new: bytes = b""
    """What replaces it, where that is no placeholder of it alone; of the same length."""


_NO_FIELDS: Mapping[str, str] = MappingProxyType({})


class Context(NamedTuple):
    """What is known of a text that is searched."""

    data: bytes
    final: bool = True
    """False where it goes on, or was cut: a secret may end with it."""
    answer: bool = False
    """Whether it was said to the agent."""
    fields: Mapping[str, str] = _NO_FIELDS
    """Fields of a configuration, in lower case, and their kinds."""
    kept: frozenset[str] = frozenset()
    """Fields, in lower case, that are not to be hidden."""
    kept_formats: frozenset[str] = frozenset()
    """Names of formats that are not to be hidden."""
    inner: bool = False
    """Whether it is what base64 in another text means: base64 in it is not looked into."""
    document: bool | None = None
    """Whether it is a part of a JSON document; None where its beginning says so."""


_QUERY = re.compile(rb'"query"\s{0,4}:\s{0,4}\Z')
_GRAPHQL = re.compile(
    rb"(?:\s|\\n)*(?:(?:query|mutation|subscription)(?:(?:\s|\\n)+[A-Za-z_]\w*)?(?:\s|\\n)*[({]|\{(?:\s|\\n)*[A-Za-z_]\w*(?:\s|\\n)*[({])"
)
"""How a document of GraphQL begins."""


class Strings:
    """The strings of a JSON document that positions are in; asked in rising order.

    **Prompts and source code** are defined here: text inside a string of a JSON document that is no JSON document itself. A name
    and a value in it are words of a longer text. In any other text (a file, a form, a header field, a log) they are fields.
    """

    def __init__(self, data: bytes, document: bool | None = None) -> None:
        """Take the text, and whether it is a part of a document, where that is known."""
        self._data = data
        self.is_document = _DOCUMENT.match(data) is not None if document is None else document
        """Whether the text is JSON, lines of JSON or a stream of events."""
        self.judged = True
        """Whether the place that was looked at last had a value to be judged."""
        self.value = b""
        """The value, where it may have been judged before."""
        self.lines = CommandLines(data)
        """The command lines of the text."""
        self.table = -1
        """Where the line begins that was looked at last as the first one of a table."""
        self._asked = 0
        self._answer = self._graphql = False
        self._run = 0, 0

    def run_end(self, start: int, run: re.Pattern[bytes]) -> int:
        """Find where a run of characters ends, however many places in it are asked for: it is read once."""
        if not self._run[0] <= start < self._run[1]:
            found = run.match(self._data, start)
            self._run = start, found.end() if found else start
        return self._run[1]

    def is_prompt(self, at: int, depth: int, *, member: bool) -> bool:
        """Say whether a name at a position is a word of a longer text.

        depth: number of backslashes before its quote; member: whether quotes, a colon and a quoted value follow as in JSON.
        """
        if not self.is_document:
            return False
        if member and depth == 0:
            return False
        inside = self._in_document(at)
        return not (self._graphql or (member and inside))

    def _in_document(self, at: int) -> bool:
        """Say whether the string around a position is a JSON document."""
        data = self._data
        quote = at
        while (quote := data.rfind(b'"', self._asked, quote)) > 0:
            if data[quote - 1] != 92:
                self._answer = _BEGINS.match(data, quote + 1, quote + 64) is not None
                self._graphql = (
                    _GRAPHQL.match(data, quote + 1, quote + 200) is not None
                    and _QUERY.search(data, max(0, quote - 20), quote) is not None
                )
                break
        else:
            if not self._asked:
                self._answer = _BEGINS.match(data, 0, 64) is not None
        self._asked = max(self._asked, at)
        return self._answer


class _Placed(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


def without_overlaps[P: _Placed](places: list[P]) -> list[P]:
    """Give sorted places without those that begin before an earlier one ends."""
    kept: list[P] = []
    for one in places:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


_ENDS_ESCAPE = re.compile(
    rb"(?:\\u([0-9A-Fa-f]{4})|\\[nrtbf]|(?:%|\\+x)([0-9A-Fa-f]{2})|=([0-9A-F]{2})|(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)\[[0-9;?]*[A-Za-z])\Z"
)
_LONGEST_ESCAPE = 24
_LEAST_COUNT = 8
_CBOR_TEXT = 0x60


def find_counts(data: bytes, start: int) -> Iterator[int]:
    """Find the lengths of a string that a binary format may have written before it, that of the text left included.

    One byte (protobuf, MessagePack, CBOR, Thrift, Pascal), the same doubled (Avro) or with a byte that ends the string (BSON), with
    the type (short text in CBOR); two bytes of seven bits, or 16 bits with either end first.
    """
    if not start:
        return
    last, before = data[start - 1], data[start - 2] if start > 1 else 0
    found = [last, last - 1, last >> 1, last - _CBOR_TEXT, before << 8 | last, last << 8 | before]
    if before & 0x80:
        found += (before & 0x7F | last << 7, (before & 0x7F | last << 7) >> 1)
    left = len(data) - start
    yield from (size for size in found if _LEAST_COUNT <= size <= left)


class Side(Enum):
    """What is directly before or behind a value."""

    FREE = "free"
    """Nothing that belongs to it: the end of the text, a blank, a sign, an escape, or signs of a diff or of Markdown."""
    NAMED = "named"
    """A sign that joins it to a word, as in `MY_KEY_...` and `cache-key-...`: it may be a part of a name."""
    JOINED = "joined"
    """A letter or digit: it is a part of something longer."""


MOST_SIGNS = 8
"""Signs in a row that join two words; more of them are a line."""


def is_boundary(data: bytes, start: int) -> bool:
    """Say whether a secret can begin at a position: no letter, digit, `_` or `-` precedes, but as the end of an escape: of JSON, of a URL, of JavaScript, of quoted-printable, of a colour."""
    if not start:
        return True
    before = data[start - 1]
    if not (48 <= before <= 57 or 65 <= before <= 90 or 97 <= before <= 122 or before in b"_-"):
        return True
    return ends_escape(data, start)


def side_before(data: bytes, start: int) -> Side:
    """Say what is before a value: the one rule for every format, and for the name of a header line.

    `_` and `-` are signs as others are where no word is before them: a removed line of a diff, Markdown, an option.
    """
    if is_boundary(data, start):
        return Side.FREE
    if data[start - 1] not in b"_-":
        return Side.JOINED
    before = data[max(0, start - MOST_SIGNS) : start]
    signs = len(before) - len(before.rstrip(b"_-"))
    return Side.FREE if signs == MOST_SIGNS or is_boundary(data, start - signs) else Side.NAMED


def side_behind(data: bytes, end: int) -> Side:
    """Say what is behind a value; `-` ends one, as it always did, and so does `_` where no word is behind it."""
    behind = data[end : end + MOST_SIGNS + 1]
    word = behind.lstrip(b"_")
    if len(word) == len(behind):
        return Side.JOINED if word[:1].isalnum() else Side.FREE
    return Side.NAMED if word[:1].isalnum() else Side.FREE


def ends_escape(data: bytes, start: int) -> bool:
    """Say whether an escape is directly before a position, and means no letter or digit."""
    before = data[max(0, start - _LONGEST_ESCAPE) : start]
    if not any(sign in before for sign in (b"\\", b"%", b"=", b"\x1b")):
        return False
    escape = _ENDS_ESCAPE.search(before)
    if escape is None:
        return False
    code = next(filter(None, escape.groups()), None)
    # An escape may mean a letter or digit as well.
    return code is None or not chr(int(code, 16)).isascii() or not chr(int(code, 16)).isalnum()
