"""Find the fields that a configuration names: of JSON, also in a string that holds JSON, of parts, and in a text.

A configuration knows more than a look: whatever is in such a field is a secret.
"""

import re

import ahocorasick_rs

from .credential_fields import CONFIGURED, is_credential, is_one
from .finding.searched_text import MAX_VALUE, STRING, Context, Found

_NAME = re.compile(rb"[A-Za-z0-9_.\-\[\]$@]*$")
_JSON = re.compile(rb"""(\\*)(["'])\s*:\s*(?:[bru]?)(\\*)\2""")
_PART = re.compile(rb'"?(?:;[^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n')
_LOOSE = re.compile(rb"""\s*[=:]\s*(?:\\*["'])?([A-Za-z0-9_./+=~!@#$%^*:|-]{8,})""")
_LONGEST_NAME = 64
_FOLLOWS = frozenset(b"\"'\\=:")


class ConfiguredFields:
    """The fields of one configuration."""

    def __init__(self, names: list[str]) -> None:
        """Take their names."""
        self._names = frozenset(name.lower() for name in names)
        # A name is written in one of these ways.
        ways = {way for name in names for way in (name, name.lower(), name.upper())}
        kind = ahocorasick_rs.MatchKind.LeftmostLongest
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            [way.encode() for way in ways], matchkind=kind
        )

    def find(self, context: Context) -> list[Found]:
        """Find what is in such fields."""
        data, found = context.data, list[Found]()
        for _, start, end in self._automaton.find_matches_as_indexes(data):
            if end < len(data) and data[end] in _FOLLOWS:
                one = self._look(context, start, end)
                if one is not None:
                    found.append(one)
        return found

    def _look(self, context: Context, start: int, end: int) -> Found | None:
        data = context.data
        name = _NAME.search(data, max(0, start - _LONGEST_NAME), end)
        if name is None:
            return None
        first = name.start()
        if data[first - 1 : first] == b"\\" and data[first : first + 1] in (b"n", b"r", b"t"):
            first += 1
        lower = data[first:end].decode("ascii", "replace").lower()
        if lower not in self._names or lower in context.kept:
            return None
        json = _JSON.match(data, end)
        if json is not None and json[1] == json[3]:
            span = _string(context, json.end(), len(json[1]), json[2])
            return _judge(context, span) if span else None
        part = _PART.match(data, end) if data[first - 6 : first] == b'name="' else None
        if part is not None:
            last = data.find(b"\r\n--", part.end())
            return _judge(context, (part.end(), last if last >= 0 else len(data)))
        loose = _LOOSE.match(data, end)
        if loose is None:
            return None
        value = loose[1].rstrip(b".,:")
        if not is_credential(value, 12):
            return None
        return Found(loose.start(1), loose.start(1) + len(value), CONFIGURED, learn=True)


def _string(context: Context, start: int, depth: int, quote: bytes) -> tuple[int, int] | None:
    """Find the end of a string that begins at `start`, its quotes escaped by `depth` backslashes."""
    data = context.data
    if depth == 0 and quote == b'"':
        found = STRING.match(data, start)
        assert found is not None
        return found.span()
    ends = b"\\" * depth + quote
    at = start
    while (at := data.find(ends, at)) >= 0:
        if data[at - 1 : at] != b"\\":
            return start, at
        at += 1
    return None if context.final else (start, len(data))


def _judge(context: Context, span: tuple[int, int]) -> Found | None:
    start, end = span
    value = context.data[start:end]
    if end - start > MAX_VALUE or not is_one(value):
        return None
    scheme, space, rest = value.partition(b" ")
    if space and scheme.lower() in (b"bearer", b"basic", b"token") and rest:
        start += len(scheme) + 1
    cut = not context.final and end == len(context.data)
    return Found(start, end, CONFIGURED, learn=not cut, declared=True)
