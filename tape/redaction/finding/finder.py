"""The search of one text: heads at once, then each place in order, going on behind what was found.

Bounded: a text has so many places (`pattern_prefilter.most_places`), and so many looks may be spent on them, in all the ways that the text is read.
Whatever is behind the last of them is reported as not searched, so that nobody keeps it. Both bounds depend on the text alone: the same
text always has the same rest.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from typing import NamedTuple

from ..credential_fields import SECRET
from ..looks_like_secret import is_placeholder, turns
from . import secrets_by_name, secrets_in_base64
from .formats import Formats, Keys
from .pattern_prefilter import Head, HeadSet, Hits, KeptSets, compile_heads, most_places
from .searched_text import Context, Found, Strings, without_overlaps

LOOKS = 21_000
"""What may be spent on the places of a text, however short it is: a name that is harmless costs one, some 3 us."""
ANSWER_LOOKS = 190_000
"""The same for an answer that a replay has to give again, and that a thread of its own searches."""
MANY_PLACES = 7_000
"""An answer with more places, and one for each `BYTES_A_LOOK` bytes, has no more than any text: its rest will hardly be searched."""
BYTES_A_LOOK = 256
"""A text may have one more for as many bytes."""
_JUDGED = 11
"""What a value costs that is judged."""
_KNOWN = 4
"""What one costs that was judged before."""
_SHORT = 3
"""What one costs that is too short to be judged."""
_SHORTEST = 12
_FOUND = 10
"""What a value costs that is replaced."""
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
BYTES_A_LONG_LOOK = 64
_LONG = 6
"""What each `BYTES_A_LONG_LOOK` bytes of a long value cost that is no hexadecimal."""
_LEAST_TOKEN = 16
_TOKENS = re.compile(rb"[A-Za-z0-9]{16,}")
"""What has a placeholder of its own in that of a value with signs."""
_RUNS = re.compile(rb"[A-Za-z0-9]+")
_TOKEN_COST = 20
_MIXED = re.compile(rb"[0-9][^A-Za-z]*+[A-Za-z]|[A-Za-z][^0-9]*+[0-9]")
_FEW_TURNS = 3
_UNSHAPED = 120
"""What it costs to look for a placeholder without the shape of a secret, for a value that has none: most have it."""
_TAIL = 2048
_TOKEN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=:|-"
_CUT_MEMBER = re.compile(rb"([A-Za-z0-9_.-]{3,64})(\\*[\"'])\s*:\s*\2([^\"'\\]{1,512})\Z")


class Run(NamedTuple):
    """A run of base64 that means text with secrets."""

    coded: secrets_in_base64.Coded
    found: list[Found]
    """Places in what it means."""


class Finding(NamedTuple):
    """What a search found."""

    found: list[Found]
    runs: list[Run]
    searched: int
    """Bytes that were searched."""
    spent: int = 0
    """Looks that were spent."""


class Looked(NamedTuple):
    """Where a secret may be in a text."""

    places: list[tuple[int, int]]
    """End and number of a head, in rising order."""
    searched: int
    """Bytes of the text that were searched."""
    escaped: bool
    """Whether a secret may be written with escapes in what was searched."""
    coloured: bool = False
    """Whether a string of JSON in it has codes of colours."""
    lettered: bool = False
    """Whether it has a word with a digit and a letter outside of ASCII."""


_ESCAPES = (
    Head("%[2-7][0-9A-Fa-f]", once=True),
    Head(r"\\(?:u00[2-7]|/)", once=True),
)
_COLOUR = Head(r"\\u001[bB]\[", once=True)
"""What a secret may be written with, percent-encoded and in JSON; marks, as a text may have thousands."""
_LETTERS = (
    Head(
        r"[\xc3-\xdf][\x80-\xbf]|\xe2[\x81-\xbf][\x80-\xbf]|[\xe0\xe1\xe3-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}",
        once=True,
    ),
    Head(
        r"\\u(?:00[89a-fA-F]|0[1-9a-fA-F][0-9a-fA-F]|20[5-9a-fA-F]|2[1-9a-fA-F][0-9a-fA-F]|[13-9a-fA-F][0-9a-fA-F]{2})[0-9a-fA-F]",
        once=True,
    ),
)
"""A letter outside of ASCII, in UTF-8 and in JSON, but for blanks and the marks of prose."""


_BETWEEN = bytes(
    0x20 if code <= 0x20 or code in b"\"'<>\\" else 0x30 if code in b"0123456789" else 0xFF
    for code in range(0x100)
)
_OTHERS = bytes(code for code in range(0x21, 0x80) if code not in b"\"'<>\\0123456789")
_LETTER_ESCAPED = re.compile(_LETTERS[1].pattern.encode())
_NEAR, _FEW = 256, 32


def has_mixed(data: bytes) -> bool:
    """Say whether a text may have a word with a digit and a letter outside of ASCII. A binary format has any bytes: it is not asked.

    A secret that can be found again has both, and words of prose have not.
    """
    if b"\0" in data:
        return False
    for number, letter in enumerate(_LETTER_ESCAPED.finditer(data)):
        if number >= _FEW:
            return _is_mixed(data)
        if _is_mixed(data[max(0, letter.start() - _NEAR) : letter.end() + _NEAR]):
            return True
    return not data.isascii() and _is_mixed(data)


def _is_mixed(data: bytes) -> bool:
    if b"\\u" in data:
        first, *rest = data.split(b"\\u")
        data = b"\xff".join([first.rstrip(b"\\"), *(part[4:].rstrip(b"\\") for part in rest)])
    signs = data.translate(_BETWEEN, _OTHERS)
    return b"0\xff" in signs or b"\xff0" in signs


class Finder:
    """All heads that are known; one for a process."""

    def __init__(self, engine: Callable[..., HeadSet] = compile_heads) -> None:
        """Make the heads; they are compiled when the first text is searched.

        engine: makes a set of heads; the fastest one by default.
        """
        self._formats = Formats()
        self._named = len(self._formats.heads)
        self._coded = self._named + len(secrets_by_name.NAMED)
        self._words = secrets_in_base64.words()
        self._marks = self._coded + len(self._words)
        self._engine = engine
        self._set: HeadSet | None = None
        self._reversed = self._named + secrets_by_name.REVERSED
        self._second: HeadSet | None = None
        self._kept: KeptSets | None = None

    def _heads(self) -> HeadSet:
        # Who comes while another thread compiles waits for it: twice the same costs twice the CPU.
        with nullcontext() if self._kept is None else self._kept.alone():
            if self._set is None:
                words = [Head(re.escape(word.text).decode()) for word in self._words]
                named = [head for head, _ in secrets_by_name.NAMED]
                self._set = self._compile(
                    [*self._formats.heads, *named, *words, *_ESCAPES, _COLOUR, *_LETTERS]
                )
            return self._set

    def _compile(self, heads: Sequence[Head]) -> HeadSet:
        return self._engine(heads) if self._kept is None else self._engine(heads, self._kept)

    def use_kept(self, kept: KeptSets) -> None:
        """Take heads from what another process has compiled, whoever asks for them first."""
        self._kept = kept

    def prepare(self) -> None:
        """Compile the heads now, a quarter of a second of CPU, so that the first text need not wait. Any thread."""
        self._heads()
        self._reversed_set()

    def look(self, data: bytes) -> Looked | None:
        """Find where secrets may be, and whether a text has escapes; most have neither: then it is None."""
        hits = (self._set or self._heads()).find(data)
        if hits is None:
            return None
        marks, reversed_at = self._marks, self._reversed
        places = [hit for hit in hits.found if hit[1] < marks and hit[1] != reversed_at]
        places.sort()  # of those that end together each engine gives another one first
        if len(places) == len(hits.found):
            return Looked(places, hits.searched, escaped=False)
        colour = marks + len(_ESCAPES)
        escaped = any(marks <= which < colour for _, which in hits.found)
        coloured = any(hit[1] == colour for hit in hits.found)
        lettered = any(hit[1] > colour for hit in hits.found) and has_mixed(data)
        looked = Looked(places, hits.searched, escaped, coloured, lettered)
        if any(which == reversed_at for _, which in hits.found):
            more = self._reversed_set().find(data)
            if more is not None:
                return self._with_reversed(looked, more, len(data))
        if not (places or escaped or coloured or lettered or len(data) > hits.searched):
            return None
        return looked

    def _with_reversed(self, looked: Looked, more: Hits, size: int) -> Looked:
        """Add places as if they had been found in the same pass."""
        searched = min(looked.searched, more.searched)
        ends = [(end, self._reversed) for end, _ in more.found]
        places = sorted(hit for hit in (*looked.places, *ends) if hit[0] <= searched)
        most = most_places(size)
        if len(places) > most:
            places, searched = places[:most], places[most][0]
        return looked._replace(places=places, searched=searched)

    def _reversed_set(self) -> HeadSet:
        with nullcontext() if self._kept is None else self._kept.alone():
            if self._second is None:
                self._second = self._compile([secrets_by_name.REVERSED_HEAD])
            return self._second

    def find(self, context: Context) -> Finding:
        """Find the secrets of a text, in order; none of them overlap."""
        return self.confirm(context, self.look(context.data))

    def confirm(
        self,
        context: Context,
        looked: Looked | None,
        most: int | None = None,
        done: Sequence[tuple[int, int]] = (),
    ) -> Finding:
        """Find the secrets of a text, in order, where `look` found that they may be; none of them overlap.

        most: looks that may be spent; by default as many as a text of its size has.
        done: parts of the text, in order, in which nobody has to look again.
        """
        searched = len(context.data)
        places = len(looked.places) if looked is not None else 0
        allowed = most_looks(searched, places, answer=context.answer)
        most = allowed if most is None else min(most, allowed)
        found: list[Found] = []
        runs: list[Run] = []
        spent = 0
        if looked is not None:
            searched = looked.searched
            if looked.places:
                hits = _outside(looked.places, done) if done else looked.places
                until, spent = self._confirm(context, hits, found, runs, most)
                searched = min(searched, until)
        if not context.final:
            found += self.find_cut(context)
        return Finding(apart(found), runs, searched, spent)

    def _confirm(
        self,
        context: Context,
        hits: list[tuple[int, int]],
        found: list[Found],
        runs: list[Run],
        most: int,
    ) -> tuple[int, int]:
        """Look at each place; give how much of the text was looked at, and what was spent."""
        strings, keys = Strings(context.data, context.document), Keys()
        behind = run = looked = 0
        named, words = self._named, self._coded
        for end, which in hits:
            if end <= behind:
                continue
            if which < named:
                one: Found | list[Found] | None = self._formats.confirm(context, which, end, keys)
                looked, keys.looked = looked + 1 + _JUDGED * keys.looked, 0
                if looked > most:
                    return max(behind, end - 64), looked
            elif which < words:
                if looked > most:
                    return max(behind, end - 64), looked
                strings.judged, strings.value = which > named + 1, b""
                one = secrets_by_name.NAMED[which - named][1](context, end, strings)
                looked, keys.looked = looked + _JUDGED * keys.looked, 0
                looked += 1 if one is not None else _cost_of_none(strings, keys)
            elif context.inner or end <= run:
                continue
            else:
                looked += 1
                if looked > most:
                    return max(behind, end - 64), looked
                run, spent = self._decode(
                    context, end, self._words[which - words], runs, most - looked
                )
                looked += spent
                if looked > most:
                    return max(behind, run), looked
                continue
            if isinstance(one, list):
                found += [each._replace(kind=SECRET) for each in one]
                behind = max([behind, *(each.end for each in one)])
                looked += sum(
                    _JUDGED + _FOUND + _cost_of(context.data[each.start : each.end]) for each in one
                )
            elif one is not None and one.start < one.end:
                # What its look has to say counts as what is found anywhere.
                same = one.declared or one.kind == SECRET
                found.append(one if same else Found(one.start, one.end, SECRET, one.learn))
                value = context.data[one.start : one.end]
                judged = keys.looked
                keys.look(value)
                looked += _FOUND
                if keys.looked != judged or which < named:
                    looked += _cost_of(value)
                behind = max(behind, one.end) if which >= named else behind
        return len(context.data), looked

    def _decode(
        self, context: Context, end: int, word: secrets_in_base64.Word, runs: list[Run], most: int
    ) -> tuple[int, int]:
        """Look into a run of base64; give where it ends, and what was spent on it; where it begins if that is too much.

        most: looks that may be spent.
        """
        run = secrets_in_base64.decode(context.data, end, word)
        if run is None:
            return end - 1, 0  # another word may end there, too
        inner = context._replace(data=run.plain, final=True, inner=True, document=None)
        finding = self.confirm(inner, self.look(run.plain), most)
        spent = _JUDGED + finding.spent + len(run.plain) // BYTES_A_LOOK
        if finding.searched < len(run.plain) or spent > most:
            return run.start, most + 1
        if finding.found:
            runs.append(Run(run, finding.found))
        return run.end, spent

    def find_cut(self, context: Context) -> list[Found]:
        """Find what may be the beginning of a secret where a text was cut."""
        data = context.data
        tail = data[-_TAIL:]
        token = tail[len(tail.rstrip(_TOKEN)) :]
        if token:
            one = self._formats.find_tail(context, token, len(data) - len(token))
            if one is not None:
                return [one]
        quote = max(tail.rfind(b'"'), tail.rfind(b"'"))
        # A text has many quotes, and few behind a colon.
        if quote < 0 or not tail[:quote].rstrip(b"\\").rstrip().endswith(b":"):
            return []
        member = _CUT_MEMBER.search(data, len(data) - len(tail))
        place = secrets_by_name.read_name(member[1]) if member is not None else None
        if member and place and place.declared and not is_placeholder(member[3]):
            return [Found(member.start(3), len(data), place.kind, learn=False, declared=True)]
        return []


def most_looks(size: int, places: int, *, answer: bool) -> int:
    """Give what may be spent on a text of some size with so many places."""
    more = size // BYTES_A_LOOK
    return more + (ANSWER_LOOKS if answer and places <= MANY_PLACES + more else LOOKS)


def _outside(hits: list[tuple[int, int]], done: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give the places that do not end inside of some parts of a text; all are in order."""
    found: list[tuple[int, int]] = []
    parts = iter(done)
    start, stop = next(parts)
    for hit in hits:
        end = hit[0]
        while stop < end and (part := next(parts, None)) is not None:
            start, stop = part
        if not start < end <= stop:
            found.append(hit)
    return found


def _cost_of_none(strings: Strings, keys: Keys) -> int:
    """Give what a name costs that has no secret: little where no value was judged, or one that was judged before or is short."""
    if not strings.judged:
        return 1
    if not strings.value:
        return _JUDGED
    if len(strings.value) < _SHORTEST:
        return _SHORT
    if not keys.is_new(strings.value):
        return _KNOWN
    return _JUDGED + len(strings.value) // BYTES_A_LONG_LOOK


def _cost_of(value: bytes) -> int:
    """Give what it costs to judge and replace a value beyond what any costs: a long one, one with tokens in it, one of a rare form."""
    size = len(value)
    cost = size // BYTES_A_LONG_LOOK
    if cost and not _HEX.fullmatch(value):
        cost *= _LONG
    if size < _LEAST_TOKEN:
        return cost
    if not value.isalnum():
        cost += _TOKEN_COST * len(_TOKENS.findall(value)) + 2 * len(_RUNS.findall(value))
    if turns(value) < max(_FEW_TURNS, _FEW_TURNS * size // 24) and _MIXED.search(value):
        cost += _UNSHAPED
    return cost


def apart(found: list[Found]) -> list[Found]:
    """Give places in order, of those that overlap the first and longest."""
    found.sort(key=lambda one: (one.start, -one.end, not one.declared))
    return without_overlaps(found)


@cache
def finder() -> Finder:
    """Give the finder of this process; where it has threads, it is asked for before they begin."""
    return Finder()
