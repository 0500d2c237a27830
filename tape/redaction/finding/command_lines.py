"""The words of command lines, each read once, whatever number of commands a line names.

A line is read from behind the name of a command, as far as somebody asks. Where the name of another command is one of its words, the
rest is the same line; so a text of nothing but names costs as much as one command as long as the text.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

LONGEST = 500
"""Bytes of a word that are read, and of a line behind the name of a command; a longer word is cut there, and ends its line."""
_BACKSLASH = 92
_OVERLAP = 16
_LONGEST_MARK = 64


class Word(NamedTuple):
    """A word of a command, without its quotes."""

    text: bytes
    runs: tuple[tuple[int, int], ...]
    """Where its parts are."""
    start: int
    end: int
    """Where it ends; the quote of a word of a list is no part of it."""

    def place(self, at: int) -> tuple[int, int]:
        """Give where a value is that begins at an offset of the text; a quote ends it."""
        for start, end in self.runs:
            if at < end - start:
                return start + at, end
            at -= end - start
        return 0, 0


class Line:
    """The words behind the name of a command, up to the end of its line or list."""

    def __init__(self, words: Iterator[list[Word]], ends: "dict[int, tuple[Line, int]]") -> None:
        """Read no word yet.

        ends: takes where each word ends.
        """
        self.words: list[Word] = []
        self.found: dict[object, tuple[int, int, tuple[int, int] | None]] = {}
        """What was found by the options of each command: from which word on, before which, and where; see `first`."""
        self._source = words
        self._ends = ends

    def get(self, at: int) -> Word | None:
        """Give the word of this number; None where there are fewer."""
        words = self.words
        while len(words) <= at:
            more = next(self._source, None)
            if more is None:
                return None
            for number, word in enumerate(more, len(words) + 1):
                if len(word.text) > 1:  # no name is shorter
                    self._ends[word.end] = (self, number)
            words += more
        return words[at]

    def take(self, at: int, stop: int, most: int) -> list[Word]:
        """Give so many words from this number on that begin before a position."""
        end = at
        while end < at + most and (word := self.get(end)) is not None and word.start < stop:
            end += 1
        return self.words[at:end]

    def first(
        self,
        key: object,
        at: int,
        stop: int,
        most: int,
        find: Callable[[Word, Word | None], tuple[int, int] | None],
    ) -> tuple[int, int] | None:
        """Find the first place of options from this number on; each word is asked about once.

        key: stands for `find`, which is given an option and the next word.
        """
        start, asked, place = self.found.get(key, (at, at, None))
        if not start <= at <= asked:
            start, asked, place = at, at, None
        end, words = at + most, self.words
        if place is None:
            while asked < end and (asked < len(words) or self.get(asked) is not None):
                word = words[asked]
                if word.start >= stop:
                    break
                if word.text[:1] == b"-" and len(word.text) > 1:
                    place = find(word, self.get(asked + 1))
                    if place is not None:
                        break
                asked += 1
            self.found[key] = start, asked, place
        return place if asked < end and asked < len(words) and words[asked].start < stop else None


class CommandLines:
    """The command lines of one text."""

    def __init__(self, data: bytes) -> None:
        """Read nothing yet."""
        self._data = data
        self._ends: dict[int, tuple[Line, int]] = {}
        self._listed: dict[int, tuple[Line, int]] = {}
        self._marks: dict[object, tuple[int, int, int]] = {}

    def behind(self, end: int) -> tuple[Line, int]:
        """Give the line in which a name ends here, and the number of its next word."""
        known = self._ends.get(end)
        return known or (Line(self._read_words(end), self._ends), 0)

    def listed(self, end: int) -> tuple[Line, int]:
        """Give the list in which a name ends here, before a comma, and the number of its next item."""
        known = self._listed.get(end)
        return known or (Line(_read_list(self._data, end), self._listed), 0)

    def find(self, mark: re.Pattern[bytes], start: int, stop: int) -> int:
        """Find a pattern in a part of the text, -1 where there is none; asked in rising order, each part is searched once."""
        since, until, at = self._marks.get(mark, (0, 0, -1))
        begin = start
        if since <= start < until:
            if at >= start:
                return at if at < stop else -1
            if at < 0:
                if stop <= until:
                    return -1
                begin = max(start, until - _LONGEST_MARK)
        found = mark.search(self._data, begin, stop)
        at = -1 if found is None else found.start()
        self._marks[mark] = (start, stop, at)
        return at

    def _read_words(self, at: int) -> Iterator[list[Word]]:
        """Yield the words of a line of a shell, up to its end."""
        data, runs = self._data, list[tuple[int, int]]()
        until = stop = at
        while True:
            if at + LONGEST > until and stop == until:
                until = at + 2 * LONGEST
                line_end = self.find(_LINE_END, at, until)
                stop = until if line_end < 0 else line_end
            most = min(stop, at + LONGEST)
            if not runs and (plain := _PLAIN.match(data, at, most)) is not None:
                at = plain.end()
                spans = map(re.Match.span, _PLAIN_WORD.finditer(data, plain.start(), at))
                yield [Word(data[start:end], ((start, end),), start, end) for start, end in spans]
                continue
            piece = _PIECE.match(data, at, most)
            if piece is None:
                break
            start, at = piece.span()
            if piece["blank"]:
                if runs:
                    yield [_word(data, runs, start)]
                runs = []
                continue
            if piece["open"]:
                close = data.find(piece["open"], at, most)
                if close < 0 or data[close - 1] == _BACKSLASH:
                    continue
                start, end, at = at, close, close + len(piece["open"])
            else:
                end = at
            if runs and runs[-1][1] == start:
                start = runs.pop()[0]
            runs.append((start, end))
            if at - runs[0][0] > LONGEST:
                break
        if runs:
            yield [_word(data, runs, at)]


_LINE_END = re.compile(rb"\n(?<!\\\n)(?<!\\\r\n)|\\(?<!\\\\)(?:\\|\\{3}|\\{7})?n")
"""In a string of JSON a line ends in `\\n`, and one that goes on in `\\\\\\n`; in a string in a string each backslash is two."""
_PLAIN = re.compile(rb"""(?:[ \t]++[^\s"'\\|;&]{1,128}(?=[ \t]))+""")
"""Words that are one piece each; none of them is the last one."""
_PLAIN_WORD = re.compile(rb"[^ \t]+")
_PIECE = re.compile(
    rb"""(?P<blank>(?:[ \t]|\\\r?\n|\\+n)+)|(?P<open>\\*["'])|(?P<plain>[^\s"'\\|;&]+|\\+)"""
)


def _word(data: bytes, runs: list[tuple[int, int]], end: int) -> Word:
    text = b"".join([data[start:end] for start, end in runs])
    return Word(text, tuple(runs), runs[0][0], end)


_ITEM = re.compile(
    rb"""(?:[\s,]|\\+[nrt])*+(?:(?P<open>\\*["'])(?P<text>[^\n]{0,256}?)(?<!\\)(?P=open)|(?P<name>[A-Za-z_][\w.]{0,64}))"""
)


def _read_list(data: bytes, at: int) -> Iterator[list[Word]]:
    """Yield the items of a list of words, as in JSON and source code; names of variables among them."""
    while (item := _ITEM.match(data, at, at + LONGEST)) is not None:
        start, at = item.span()
        if item["open"]:
            yield [_word(data, [item.span("text")], at)]
        else:
            yield [Word(b"", (), start, at)]
