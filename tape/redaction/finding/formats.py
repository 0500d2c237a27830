"""Find secrets by their format: a prefix, a length and an alphabet, and a test; private keys between their lines."""

import re
from dataclasses import dataclass
from functools import cached_property

from ..credential_fields import SECRET
from ..looks_like_secret import TESTS, is_placeholder
from .format_table import FORMATS, Format, expand
from .pattern_prefilter import Head
from .searched_text import (
    MOST_SIGNS,
    WORD_START,
    Context,
    Found,
    Side,
    find_counts,
    side_before,
    side_behind,
)

_LEAST = re.compile(r"(\[[^\]]*\])\{(\d+)(?:,\d*)?\}")
_UNIT = re.compile(r"(\\.|\[[^\]]*\]|[^\\\[])(?:\{(\d+)\})?")
BYTES_A_LOOK = 256
"""A long value counts as several: it is judged and replaced byte by byte."""
_MOST_HEAD = 16
_LONGEST_KEY = 17 * 1024
_COST_OF_KEY = 32
"""What a private key costs, as so many values that are judged: to make another one like it takes up to a millisecond."""
_KEY_CHARS = re.compile(rb"[A-Za-z0-9+/=]{16,}")
_KEY_RUN = re.compile(rb"(?:\\+[nrt]|[\s\"'+>|]|[A-Za-z0-9+/=]|%0[AaDd]){64,16384}")
_BASE64 = re.compile(rb"[A-Za-z0-9+/]+|[A-Za-z0-9_-]+")
_RUN_BEFORE, _RUN_BEHIND = 64, 32
"""Bytes of base64 around what only looks like a secret."""
_BEGIN = re.compile(rb"BEGIN[A-Z0-9 ]{1,24}\Z")
_WORDS = frozenset(("key", "sdk", "api", "secret", "pat", "token"))
"""Prefixes that are words too: `cache-key-...`."""
_PUTTY = re.compile(rb"Private-Lines: \d+((?:\\+[nrt]|[\s>|\d]|[A-Za-z0-9+/=])*)")


_LEAST_ISSUER = 4
_HASH = re.compile(rb"[0-9A-Fa-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")
"""How a hash or an id begins: names of caches and files end in one, behind any word."""
_NEAR = 96


def _is_near(words: tuple[str, ...], data: bytes, start: int) -> bool:
    """Say whether one of some words is in what is before a value."""
    before = data[max(0, start - _NEAR) : start].lower()
    return any(word.encode() in before for word in words)


_OBJECT_BEFORE = re.compile(
    rb"(?:<Key>|\bKey\\*[\"']\s?:\s?\\*[\"']|"
    + WORD_START
    + rb"(?:s3a?|gs)://|\b(?:amazonaws\.com|storage\.googleapis\.com|cloudflarestorage\.com|core\.windows\.net)/)"
    rb"[^\s\"'<>]{0,200}\Z"
)
_FILE_BEHIND = re.compile(rb"\.[a-z][a-z0-9]{1,4}(?![A-Za-z0-9])")


def _is_named(data: bytes, start: int, end: int) -> bool:
    """Say whether a place is in the name of an object of storage or of a file."""
    if _FILE_BEHIND.match(data, end):
        return True
    return _OBJECT_BEFORE.search(data[max(0, start - 240) : start]) is not None


@dataclass
class _Way:
    """One head of a row: a prefix, or its mark in the middle."""

    row: Format
    text: str
    """Of the pattern, with the secret's tested part as its first group."""
    width: int
    """Bytes of the head before its end; the secret begins `back` bytes before that."""
    starts: tuple[int, ...]
    behind: bool
    """Whether the prefix is a place, as of a URL, and no part of the secret."""
    prefix: str
    """What the secret begins with; empty where it is known by a mark in its middle."""

    @cached_property
    def issuer(self) -> bool:
        """Whether the prefix is somebody's, and no word or letter that a name may have, too."""
        plain = self.prefix.strip("_-.=").lower()
        long = len(plain) >= _LEAST_ISSUER or (
            len(self.prefix) >= _LEAST_ISSUER and self.prefix[-1] in "_-"
        )
        return long and plain not in _WORDS

    def may_be_in_name(self, value: bytes) -> bool:
        """Say whether a value that a sign joins to a word is a secret all the same, and no part of a name."""
        if self.issuer:
            return True
        return (
            not _HASH.match(value) and self.row.test != "padded" and not self.prefix.endswith("=")
        )

    @cached_property
    def pattern(self) -> re.Pattern[bytes]:
        """The pattern. Hardly any of some four hundred is asked for, and all of them take 30 ms of each start."""
        return re.compile(self.text.encode())


class Formats:
    """All rows of the table as heads, and the full pattern behind each."""

    def __init__(self) -> None:
        """Make the heads of the table."""
        self.heads: list[Head] = []
        self._ways: list[_Way] = []
        for row in FORMATS:
            then = expand(row.then)
            behind = bool(row.begins) and row.begins[0][-1] in "/="
            for head in expand(row.head).split():
                width = _width(head)
                self._add(
                    row, head, f"({then})", tuple(width + back for back in row.back), behind, ""
                )
            for begins in row.begins:
                prefix = re.escape(begins)
                least = _LEAST.match(then)
                if least:
                    count = min(int(least[2]), _MOST_HEAD)
                    head = f"{prefix}{least[1]}{{{count}}}"
                else:
                    count = 6
                    head = prefix + "[A-Za-z0-9%+/_.$-]{6}"
                self._add(row, head, f"{prefix}({then})", (len(begins) + count,), behind, begins)
        self.heads.append(Head("PRIVATE KEY"))
        self.heads.append(Head("Private-Lines: [0-9]"))

    @cached_property
    def _tails(self) -> re.Pattern[bytes]:
        """What a text may end with that is cut."""
        return re.compile(
            b"|".join(
                re.escape(begins.encode())
                for row in FORMATS
                for begins in row.begins
                if len(begins) > 2
            )
        )

    def _add(
        self,
        row: Format,
        head: str,
        pattern: str,
        starts: tuple[int, ...],
        behind: bool,
        prefix: str,
    ) -> None:
        self.heads.append(Head(head))
        self._ways.append(_Way(row, pattern, starts[0], starts, behind, prefix))

    def confirm(self, context: Context, which: int, end: int, keys: "Keys") -> Found | None:
        """Ask the full pattern where a head was found."""
        if which >= len(self._ways):
            if "pem" in context.kept_formats:
                return None
            return (
                keys.find(context, end)
                if which == len(self._ways)
                else keys.find_putty(context, end)
            )
        way = self._ways[which]
        row, data = way.row, context.data
        if row.name in context.kept_formats or row.family in context.kept_formats:
            return None
        for width in way.starts:
            start = end - width
            found = _match(way, data, start, keys) if start >= 0 else None
            if found is None:
                continue
            last = found.end()
            if row.near and not _is_near(row.near, data, start):
                continue
            if row.named and _is_named(data, start, last):
                continue
            keys.look(found[1])
            if TESTS[row.test](found[0] if row.test == "header" else found[1]):
                return Found(found.start(1) if way.behind else start, last, SECRET, learn=True)
        return None

    def find_tail(self, context: Context, tail: bytes, at: int) -> Found | None:
        """Find what may be the beginning of a secret at the end of a text that goes on."""
        for found in self._tails.finditer(tail):
            start = at + found.start()
            if (
                side_before(context.data, start) is Side.FREE
                and found.end() < len(tail)
                and not is_placeholder(tail)
            ):
                return Found(start, len(context.data), SECRET, learn=False)
        return None


def _match(way: _Way, data: bytes, start: int, keys: "Keys") -> re.Match[bytes] | None:
    """Match a secret that stands alone: as a word, or as a string of a binary format, whose length is before it."""
    pattern = way.pattern
    found = pattern.match(data, start)
    if found is None:
        return None  # a pattern has no assertions: it matches no shorter text either
    before, behind = side_before(data, start), side_behind(data, found.end())
    if behind is Side.JOINED is not before and way.may_be_in_name(found[1]):
        shorter = _before_word(pattern, data, found)
        found, behind = (shorter, Side.NAMED) if shorter else (found, behind)
    if before is Side.JOINED and (_is_joined(data, start) or _begins_record(data, start)):
        before = Side.FREE
    if before is Side.FREE is behind:
        return _without_signs(pattern, data, found) or found
    if (
        Side.JOINED not in (before, behind)
        and way.may_be_in_name(found[1])
        and (way.issuer or not _is_behind_base64(data, start))
    ):
        return found
    if _is_run_of_base64(data, start, found.end()):
        return None  # so is every shorter one
    keys.looked += 1
    longest = found.end() - start  # to a bound that is farther the pattern matches no more
    for size in find_counts(data, start):
        found = pattern.match(data, start, start + size) if size <= longest else None
        if (
            found is not None
            and found.end() == start + size
            and not _is_in_base64(data, start, found.end())
        ):
            return found
    return None


def _without_signs(
    pattern: re.Pattern[bytes], data: bytes, found: re.Match[bytes]
) -> re.Match[bytes] | None:
    """Match without the signs of Markdown that are around a value: `_` is a character of many."""
    start, end = found.span()
    if data[end - 1] != 95 or data[start - 1 : start] != b"_":
        return None
    before = data[max(0, start - MOST_SIGNS) : start]
    signs = len(before) - len(before.rstrip(b"_"))
    signs = min(signs, end - start - len(found[0].rstrip(b"_")))
    return pattern.fullmatch(data, start, end - signs)


def _before_word(
    pattern: re.Pattern[bytes], data: bytes, found: re.Match[bytes]
) -> re.Match[bytes] | None:
    """Match without the beginning of a word that a sign joins to a value, where signs are characters of it, too."""
    start, end = found.span()
    cut = max(data.rfind(sign, end - MOST_SIGNS, end) for sign in (b"_", b"-"))
    return pattern.fullmatch(data, start, cut) if cut > start else None


def _is_behind_base64(data: bytes, start: int) -> bool:
    """Say whether a long run of base64 is before a place: its signs join no words."""
    return start >= _RUN_BEFORE and _BASE64.fullmatch(data, start - _RUN_BEFORE, start) is not None


def _is_in_base64(data: bytes, start: int, end: int) -> bool:
    """Say whether a place is in the middle of a long run of base64, as of a picture: a letter before it is no length of a string."""
    before, behind = data[max(0, start - _RUN_BEFORE) : start], data[end : end + _RUN_BEHIND]
    return (
        len(before) == _RUN_BEFORE
        and len(behind) == _RUN_BEHIND
        and _BASE64.fullmatch(before) is not None
        and _BASE64.fullmatch(behind) is not None
    )


def _is_run_of_base64(data: bytes, start: int, end: int) -> bool:
    """Say at once whether each place that begins here and ends there, or before it, is in the middle of one run of base64."""
    first, last = start - _RUN_BEFORE, end + _RUN_BEHIND
    return first >= 0 and last <= len(data) and _BASE64.fullmatch(data, first, last) is not None


def _begins_record(data: bytes, start: int) -> bool:
    """Say whether one letter or digit is between a secret and what is no text: the length of the string, in some way or other."""
    return start < 2 or not 32 <= data[start - 2] < 127


def _is_joined(data: bytes, start: int) -> bool:
    """Say whether a secret can begin behind a letter: with a sign, as the path of a URL, or behind `bot` in one."""
    return data[start] in b"./" or data[max(0, start - 4) : start] == b"/bot"


def _width(head: str) -> int:
    """Give the bytes that a head of fixed width matches."""
    size = at = 0
    while at < len(head):
        found = _UNIT.match(head, at)
        assert found is not None
        size += int(found[2] or 1)
        at = found.end()
    return size


class Keys:
    """Private keys of one text, which are looked for in rising order."""

    def __init__(self) -> None:
        """Know of no end yet."""
        self._end = -2
        self.looked = 0
        """Different values that were judged, and places that were read several times, since somebody set it to 0."""
        self._seen: set[bytes] = set()

    def look(self, value: bytes) -> None:
        """Count a value that is judged; verdicts are remembered, so the same value costs next to nothing again."""
        if self.is_new(value):
            self.looked += 1 + len(value) // BYTES_A_LOOK

    def is_new(self, value: bytes) -> bool:
        """Say whether a value is judged for the first time."""
        seen = value in self._seen
        self._seen.add(value)
        return not seen

    def find(self, context: Context, at: int) -> Found | None:
        """Find the body of a key behind the words of its first line."""
        data = context.data
        self.looked += 1
        if not _BEGIN.search(data, max(0, at - 11 - 32), at - 11):
            return None
        line = data.find(b"-----", at, at + 12)
        if line < 0:
            return None
        start = line + 5
        if self._end != -1 and self._end < start:
            self._end = data.find(b"-----END", start)
        end = self._end
        if end < 0 or end - start > _LONGEST_KEY:
            run = _KEY_RUN.match(data, start)
            if run is not None:
                return Found(start, run.end(), SECRET, learn=False)
            if not context.final and end < 0 and 0 < len(data) - start < _LONGEST_KEY:
                return Found(start, len(data), SECRET, learn=False)
            return None
        self.looked += _COST_OF_KEY
        body = data[start:end]
        if sum(len(run) for run in _KEY_CHARS.findall(body)) * 10 < 6 * len(body) or len(body) < 24:
            return None
        return Found(start, end, SECRET, learn=False)

    def find_putty(self, context: Context, at: int) -> Found | None:
        """Find the private lines of a key file of PuTTY."""
        found = _PUTTY.match(context.data, at - len("Private-Lines: 0"), at + _LONGEST_KEY)
        if found is None or len(found[1]) < 32:
            return None
        return Found(found.start(1), found.end(1), SECRET, learn=False)
