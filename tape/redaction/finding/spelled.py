"""Put together what a stream says piece by piece: the strings at one place of its events, lines or items, in order.

Whatever the dialect, a place is the path of a string in the document of an event; of an item of a list its number, or the one that it
has as `index`. The data of events that are no JSON are one place, too. So a secret that is spelt over the events of a stream is a text.

Most events of a stream are alike but for one string, or for a few strings and numbers. They are taken apart at once, by what is between
two of these. The others are taken apart at their quotes, and what is not in quotes says which of them have their strings at the same
places.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple

from .context import STRING

MOST_EVENTS = 32_000
"""Events that are taken apart at their quotes, however short a text is."""
BYTES_AN_EVENT = 64
"""A text may have one more for as many bytes."""

_AMID = 4096
"""Bytes amid a stream in which two events are compared."""
_QUOTE = 34
_LONGEST_MARK = 32
_MOST_SHAPES = 512
_REACH = 512
"""Bytes of what is the same again and again that are joined with something else before or behind it."""
_MOST_ITEMS = 64
"""Items of events of one shape that are told apart."""

Place = tuple[int, int]
_Path = tuple[object, ...]
_Names = bytes | tuple[bytes, ...]
"""Of one string it is that."""
_Get = Callable[[list[bytes]], _Names]
_Key = tuple[bytes, _Names, _Names | None]
"""What is outside of quotes, without numbers; the names; what has the numbers of items."""


class Spelled(NamedTuple):
    """What is said at one place."""

    data: bytes
    places: Callable[[], list[Place]]
    """Begin and end of each piece in the stream, in order."""


class _Said(NamedTuple):
    """Pieces at one path: where each begins, and what it is."""

    starts: Callable[[], list[int]]
    pieces: list[bytes]


_Found = dict[_Path, list[_Said]]
_DIGITS = b"0123456789+-.eE"
_NUMBERS = re.compile(rb"([0-9+.eE-]*[0-9][0-9+.eE-]*)")
_MOST_GAPS = 8
_TRIED = 2
_COMPARED = 4
"""Events in which what differs is found, and of how many kinds it is tried."""
_HIDDEN = ((b"\\\\", b"\x01\x01"), (b'\\"', b"\x02\x02"))
"""What reads as a quote and is none, and what stands for it while quotes are asked for: as long as it."""
_HEAD = re.compile(rb'\[?\s{0,64}(\{\s{0,64}"[^"\\]{1,64}"\s?:)')
_LINE = re.compile(rb'(?:\w{1,2}:)?[{\["]')
_SYNTAX = re.compile(rb"[\[\]{},]")
_NUMBER = re.compile(rb"\s*:\s*(-?\d+)")
_DATA = re.compile(rb"(?:^|[\r\n])data:(?: |(?![ ]))([^\r\n]*)")


def find_spelled(data: bytes, *, events: bool) -> Iterator[Spelled]:
    """Give the text of each place at which a stream says something more than once.

    events: whether it is a stream of events; else lines, or the items of a list.
    """
    found: _Found = {}
    split = _events(data) if events else _items(data) or _lines(data)
    if split is None:
        return
    begin, between = split
    shapes = _Shapes(found, events=events, most=MOST_EVENTS + len(data) // BYTES_AN_EVENT)
    _take_apart(data, begin, between, shapes)
    for said in found.values():
        yield from _join(said, hidden=shapes.hidden)


def _join(said: list[_Said], *, hidden: bool) -> Iterator[Spelled]:
    if len(said) > 1:
        said = [one for one in said if any(one.pieces)]
    if not said:
        return
    if len(said) == 1:
        pieces, starts = said[0].pieces, said[0].starts
    else:
        both = sorted(
            pair for one in said for pair in zip(one.starts(), one.pieces, strict=True) if pair[1]
        )
        pieces = [piece for _, piece in both]
        starts = partial(_firsts, both)
    # What is the same again spells nothing.
    one = next(filter(None, pieces), b"")
    if not any(piece != one for piece in filter(None, pieces)):
        return
    text = b"".join(pieces)
    if hidden:
        for escape, mark in _HIDDEN:
            text = text.replace(mark, escape)
    yield Spelled(text, partial(_places, starts, pieces))


def _firsts(pairs: list[tuple[int, bytes]]) -> list[int]:
    return [start for start, _ in pairs]


def _places(starts: Callable[[], list[int]], pieces: list[bytes]) -> list[Place]:
    return [
        (start, start + len(piece)) for start, piece in zip(starts(), pieces, strict=True) if piece
    ]


# ---- what is between two -------------------------------------------------------------------------


def _events(data: bytes) -> tuple[int, bytes] | None:
    """Give what is between two events of a stream, and where the first begins."""
    line = data.find(b"\n")
    return 0, b"\r\n\r\n" if data[line - 1 : line] == b"\r" else b"\n\n"


def _items(data: bytes) -> tuple[int, bytes] | None:
    """Give what is between two items of a list that begin alike, with that; and where the first goes on."""
    head = _HEAD.match(data)
    if head is None:
        return None
    at = data.find(head[1], head.end())
    before = data[max(0, at - 16) : max(0, at)]
    comma = before.rstrip()
    if not comma.endswith(b",") or not comma[:-1].rstrip().endswith(b"}"):
        return None
    blank = len(before) - len(comma[:-1].rstrip())
    return head.end(), data[at - blank : at] + head[1]


def _lines(data: bytes) -> tuple[int, bytes] | None:
    """Give what is between two lines of a text that has JSON in each."""
    line = data.find(b"\n")
    if line < 0 or not _LINE.match(data) or not _LINE.match(data, line + 1):
        return None
    return 0, b"\n"


# ---- events that are alike -----------------------------------------------------------------------


class _Form(NamedTuple):
    """What events have in common that differ in some strings and numbers."""

    constants: tuple[bytes, ...]
    """What is before, between and behind them."""
    texts: tuple[bool, ...]
    """For each of them whether it is a string."""


def _take_apart(data: bytes, begin: int, between: bytes, shapes: "_Shapes") -> None:
    """Take all events apart."""
    form = _find_form(data, begin, between)
    if form is None:
        shapes.take_all(begin, data[begin:].split(between), len(between))
        shapes.finish()
    elif len(form.texts) > 1:
        _take_alike(data, begin, between, form, shapes)
    else:
        _take_glued(data, begin, between, form, shapes)


def _take_glued(data: bytes, begin: int, between: bytes, form: _Form, shapes: "_Shapes") -> None:
    """Take events apart most of which differ in one string."""
    behind, before = form.constants
    whole = before + between + behind
    first, *pieces = _split(data[begin:] if begin else data, whole, behind[-_LONGEST_MARK:])
    if not pieces:
        shapes.take_all(begin, first.split(between), len(between))
        shapes.finish()
        return
    last = pieces.pop()
    at = begin + len(first) + len(whole)
    starts: Callable[[], list[int]]
    text = b'"'.join(pieces)
    odd = []
    if text.count(b'"') > len(pieces) - 1 and not _has_escaped_alone(text, len(pieces) - 1):
        odd = [
            number
            for number, part in enumerate(pieces)
            if _QUOTE in part and not STRING.fullmatch(part)
        ]
    if odd:
        offsets = list(accumulate((len(part) + len(whole) for part in pieces), initial=at))
        for number in odd:
            part = behind + pieces[number] + before
            shapes.take_all(offsets[number] - len(behind), part.split(between), len(between))
        even = sorted(set(range(len(pieces))).difference(odd))
        pieces = [pieces[number] for number in even]
        starts = partial(_pick, offsets, even)
    else:
        starts = partial(_count_starts, at, pieces, len(whole))
    end = len(data) - len(last)
    said: list[_Said] = []
    others, alike = _part_from(first, between, behind)
    if alike is not None:
        at -= len(whole) + len(alike)
        said.append(_Said(partial(list, [at]), [alike]))
    else:
        others[-1] += before
    shapes.take_all(begin, others, len(between))
    said.append(_Said(starts, pieces))
    others, alike = _part_at(last, between, before)
    if alike is not None:
        said.append(_Said(partial(list, [end]), [alike]))
        end += len(alike) + len(before) + len(between)
    else:
        others[0] = behind + others[0]
        end -= len(behind)
    shapes.take_all(end, others, len(between))
    if not odd:
        pieces = [piece for one in said for piece in one.pieces]
        said = [_Said(partial(_count_starts, at, pieces, len(whole)), pieces)]
    shapes.finish()
    starts_of = partial(_find_constants, said, behind)
    shapes.note_constants(form.constants, {behind.count(b'"')}, starts_of)
    shapes.note(behind + before, behind.count(b'"'), said)


def _take_alike(data: bytes, begin: int, between: bytes, form: _Form, shapes: "_Shapes") -> None:
    """Take events apart most of which are of one form."""
    parts = _splitter(form, between).split(data[begin:])
    step = len(form.texts) + 1
    others, columns = parts[::step], [parts[at::step] for at in range(1, step)]
    starts = partial(_find_gaps, begin, others, columns, form, between)
    if any(others):
        for part, at in zip(others, [begin, *starts(step - 1)], strict=True):
            if part:
                shapes.take_all(at, part.split(between), len(between))
    shapes.finish()
    part = b"".join(form.constants)
    quotes = list(accumulate(one.count(b'"') for one in form.constants))
    gaps = [gap for gap, text in enumerate(form.texts) if text]
    starts_of = partial(_find_between, starts, columns, form)
    shapes.note_constants(form.constants, {quotes[gap] for gap in gaps}, starts_of)
    for gap in gaps:
        shapes.note(part, quotes[gap], [_Said(partial(starts, gap), columns[gap])])


def _find_constants(said: list[_Said], behind: bytes, which: int) -> list[int]:
    """Find where what is before a string that differs begins, or what is behind it."""
    starts = [start for one in said for start in one.starts()]
    if which == 0:
        return [start - len(behind) for start in starts]
    pieces = [piece for one in said for piece in one.pieces]
    return [start + len(piece) for start, piece in zip(starts, pieces, strict=True)]


def _find_between(
    starts: Callable[[int], list[int]], columns: list[list[bytes]], form: _Form, which: int
) -> list[int]:
    """Find where what is before one of several gaps begins, or what is behind the last."""
    if which < len(columns):
        size = len(form.constants[which])
        return [start - size for start in starts(which)]
    last = zip(starts(which - 1), columns[which - 1], strict=True)
    return [start + len(piece) for start, piece in last]


@lru_cache(maxsize=_MOST_SHAPES)
def _splitter(form: _Form, between: bytes) -> re.Pattern[bytes]:
    gaps = [rb'([^"\\]*+(?:\\.[^"\\]*+)*+)' if text else b"([0-9+.eE-]*+)" for text in form.texts]
    first, *others = map(re.escape, form.constants)
    inner = [gap + other for gap, other in zip(gaps, others, strict=True)]
    return re.compile(first + b"".join(inner) + re.escape(between), re.DOTALL)


def _find_gaps(
    begin: int,
    others: list[bytes],
    columns: list[list[bytes]],
    form: _Form,
    between: bytes,
    gap: int,
) -> list[int]:
    """Find where a gap of events of a form begins; of one gap more than they have, where the next event does.

    others: what is before each of these events, and behind the last.
    """
    rows = list(zip(*(map(len, column) for column in columns), strict=True))
    constants = list(accumulate(map(len, form.constants)))
    whole = constants[-1] + len(between)
    ahead = constants[gap] if gap < len(columns) else whole
    found: list[int] = []
    at = begin
    for other, row in zip(others, rows, strict=False):
        at += len(other)
        found.append(at + ahead + sum(row[:gap]))
        at += whole + sum(row)
    return found


def _has_escaped_alone(text: bytes, most: int) -> bool:
    """Say at once whether strings that are joined by quotes have no other quote that ends one."""
    return b"\\\\" not in text and text.count(b'"') - text.count(b'\\"') == most


def _split(data: bytes, whole: bytes, mark: bytes) -> list[bytes]:
    """Split a text at a long one, which ends in a mark; at that it is faster."""
    first, *parts = data.split(mark)
    if len(parts) < 3:
        return data.split(whole)
    last, size = parts.pop(), len(whole) - len(mark)
    pieces = [part[:-size] for part in parts]
    at = len(first) + len(mark)
    # The parts have all of it, and nothing else.
    joined = whole.join([*pieces, b""])
    if at + len(joined) + len(last) != len(data) or not data.startswith(joined, at):
        return data.split(whole)
    return [first + mark + pieces[0], *pieces[1:], last]


def _part_from(first: bytes, between: bytes, behind: bytes) -> tuple[list[bytes], bytes | None]:
    """Give the events before the first two that are alike, and the piece of the first of these."""
    others = first.split(between)
    if others[-1].startswith(behind) and STRING.fullmatch(others[-1], len(behind)):
        return others[:-1], others[-1][len(behind) :]
    return others, None


def _part_at(last: bytes, between: bytes, before: bytes) -> tuple[list[bytes], bytes | None]:
    """Give the events behind the last that is alike, and its piece."""
    others = last.split(between)
    size = len(others[0]) - len(before)
    if size >= 0 and others[0].endswith(before) and STRING.fullmatch(others[0], 0, size):
        return others[1:], others[0][:size]
    return others, None


def _pick(offsets: list[int], which: list[int]) -> list[int]:
    return [offsets[at] for at in which]


def _count_starts(first: int, pieces: list[bytes], between: int) -> list[int]:
    sizes = (len(piece) + between for piece in pieces[:-1])
    return list(accumulate(sizes, initial=first))


def _find_form(data: bytes, begin: int, between: bytes) -> _Form | None:
    """Find what most events amid a stream have in common."""
    for quarter in (2, 1, 3):
        at = data.find(between, max(begin, len(data) * quarter // 4)) + len(between)
        parts = data[at : at + _AMID].split(between)[:-1] if at >= len(between) else []
        form = _compare_parts([part for part in parts if b'\\"' not in part])
        if form is not None:
            return form
    return None


def _compare_parts(parts: list[bytes]) -> _Form | None:
    """Give what some events have in common: those that differ in one string, or else in several, or in numbers too."""
    tried = 0
    for one, other in pairwise(parts):
        if one == other:
            continue  # some may be the same, or of another kind
        form = _compare(one, other)
        if form is None and tried == _TRIED:
            form = _compare_alike(parts)
        if form is not None:
            return form
        tried += 1
    return _compare_alike(parts) if 0 < tried <= _TRIED else None


def _compare(one: bytes, other: bytes) -> _Form | None:
    behind = one[: _common(one, other)]
    behind = behind[: behind.rfind(b'"') + 1]
    most = min(len(one), len(other)) - len(behind)
    before = one[len(one) - min(most, _common(one[::-1], other[::-1])) :]
    quote = before.find(b'"')
    if quote < 0 or not behind.count(b'"') % 2:
        return None
    before = before[quote:]
    if one.count(b'"') != behind.count(b'"') + before.count(b'"'):
        return None
    return _Form((behind, before), (True,))


def _compare_alike(parts: list[bytes]) -> _Form | None:
    """Find events that differ in some strings and numbers."""
    counts = [part.count(b'"') for part in parts]
    for count in dict.fromkeys(counts[:_COMPARED]):
        # Events beside each other say the same more often than those that are apart.
        alike = [part for part, quotes in zip(parts, counts, strict=True) if quotes == count]
        form = _compare_all(alike[:: len(alike) // _COMPARED + 1])
        if form is not None:
            fits = _splitter(form, b"").fullmatch
            return form if all(map(fits, alike)) else _compare_all(alike) or form
    return None


def _compare_all(parts: list[bytes]) -> _Form | None:
    """Give what events have in common, or None where more than strings and numbers tell them apart."""
    events = [part.split(b'"') for part in parts]
    first = events[0]
    gaps = [at for at, varied in enumerate(zip(*events, strict=True)) if len(set(varied)) > 1]
    if not gaps or len(gaps) > _MOST_GAPS or len(first) % 2 == 0:
        return None
    constants: list[bytes] = []
    texts: list[bool] = []
    text, done = b"", 0
    for at in gaps:
        text += b'"'.join((*first[done:at], b""))
        done = at + 1
        if at % 2:
            if _is_name(first[::2], at // 2 + 1):
                return None
            constants.append(text)
            texts.append(True)
            text = b'"'
            continue
        if at and first[at - 1] == b"index":
            return None  # another item
        numbers = [_NUMBERS.split(event[at]) for event in events]
        if len({len(one) for one in numbers}) > 1:
            return None
        for which, each in enumerate(zip(*numbers, strict=True)):
            if len(set(each)) == 1:
                text += each[0]
            elif which % 2:
                constants.append(text)
                texts.append(False)
                text = b""
            else:
                return None
        text += b'"' if done < len(first) else b""
    constants.append(text + b'"'.join(first[done:]))
    if not any(texts) or len(texts) > _MOST_GAPS or not all(constants):
        return None
    return _Form(tuple(constants), tuple(texts))


def _common(one: bytes, other: bytes) -> int:
    """Count the bytes with which two texts begin alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# ---- events of any shape -------------------------------------------------------------------------


class _Shapes:
    """Takes events apart at their quotes; those with the same names in the same places are of one shape."""

    def __init__(self, found: _Found, *, events: bool, most: int) -> None:
        self._found = found
        self._events = events
        self._left = most
        self.hidden = False
        """Whether a string has marks in the place of its escapes."""
        self._items: dict[tuple[bytes, _Names], set[_Names]] = {}
        self._rows: dict[_Key, list[tuple[int, list[bytes]]]] = {}
        self._plain: list[tuple[int, bytes]] = []

    def take_all(self, at: int, parts: list[bytes], between: int) -> None:
        """Take events, the first of which begins at a position."""
        for part in parts[: self._left]:
            if part:
                self._take(at, part)
            at += len(part) + between
        self._left = max(0, self._left - len(parts))

    def _take(self, at: int, part: bytes) -> None:
        if b'\\"' in part or b"\\\\" in part:
            self.hidden = True
            for escape, mark in _HIDDEN:
                part = part.replace(escape, mark)
        pieces = part.split(b'"')
        if self._events:
            head = pieces[0]
            begin = head.rfind(b"data:")
            if begin < 0:
                return
            payload = head[begin + 5 :].strip()
            if len(pieces) < 3 or payload[:1] not in (b"{", b"[", b""):
                self._take_plain(at, part)
                return
        elif len(pieces) < 3:
            return
        self._rows.setdefault(self._key(pieces), []).append((at, pieces))

    def _take_plain(self, at: int, part: bytes) -> None:
        for line in _DATA.finditer(part):
            if line[1]:
                self._plain.append((at + line.start(1), line[1]))

    def _key(self, pieces: list[bytes]) -> "_Key":
        outside = pieces[::2]
        if self._events:
            outside[0] = outside[0][outside[0].rfind(b"data:") :]
        shape = outside[0] + b'"' + b'"'.join(outside[1:]).translate(None, _DIGITS)
        get_names = _find_names(shape)
        names = get_names(pieces) if get_names is not None else ()
        get_numbers = _find_numbers(shape, names)
        if get_numbers is None:
            return shape, names, None
        numbers = get_numbers(pieces)
        items = self._items.setdefault((shape, names), set())
        if numbers not in items and len(items) >= _MOST_ITEMS:
            return shape, names, None  # a count of events
        items.add(numbers)
        return shape, names, numbers

    def note(self, part: bytes, column: int, said: list[_Said]) -> None:
        """Note what was said at a place of an event, by its number of quotes."""
        path: _Path | None = ("alone",)
        if self._found:
            path = _read_paths(*self._key(part.split(b'"'))).get(column)
        if path is not None:
            self._found.setdefault(path, []).extend(said)

    def note_constants(
        self, constants: tuple[bytes, ...], gaps: set[int], starts_of: Callable[[int], list[int]]
    ) -> None:
        """Note what events of a form have in common, at places where other events say something else.

        gaps: the numbers of quotes of the strings in which they differ.
        starts_of: gives where one of `constants` begins in each event.
        """
        if not self._found:
            return
        pieces = b"".join(constants).split(b'"')
        ends = list(accumulate(map(len, constants)))
        at = 0
        paths = _read_paths(*self._key(list(pieces)))
        for column, piece in enumerate(pieces):
            others = self._found.get(paths.get(column, ()), []) if column not in gaps else []
            if piece and others:
                which = bisect_right(ends, at)
                ahead = at - (ends[which - 1] if which else 0)
                near = _find_near([start + ahead for start in starts_of(which)], others, len(piece))
                others.append(_Said(partial(list, near), [piece] * len(near)))
            at += len(piece) + 1

    def finish(self) -> None:
        """Note what was said at which path."""
        # Events that are not alike are taken as they are found, which is not always in their order.
        if self._plain:
            self._plain.sort(key=itemgetter(0))
            starts = partial(_firsts, self._plain)
            self._found[("data",)] = [_Said(starts, [text for _, text in self._plain])]
        for key, rows in self._rows.items():
            rows.sort(key=itemgetter(0))
            paths = _read_paths(*key)
            for column, path in paths.items():
                get = itemgetter(column)
                pieces = [get(row) for _, row in rows]
                self._found.setdefault(path, []).append(
                    _Said(partial(_find_starts, rows, column), pieces)
                )


def _find_near(starts: list[int], others: list[_Said], size: int) -> list[int]:
    """Find which of many equal pieces are near enough to others to spell something with them."""
    most = _REACH // size + 1
    found: set[int] = set()
    for other in {start for one in others for start in one.starts()}:
        at = bisect_right(starts, other)
        found.update(range(max(0, at - most), min(len(starts), at + most)))
    return [starts[at] for at in sorted(found)]


def _find_starts(rows: list[tuple[int, list[bytes]]], column: int) -> list[int]:
    return [at + sum(map(len, row[:column])) + column for at, row in rows]


@lru_cache(maxsize=_MOST_SHAPES)
def _find_names(shape: bytes) -> _Get | None:
    """Say which strings of an event are names, by what is outside of its strings."""
    outside = shape.split(b'"')
    return _getter([2 * at - 1 for at in range(1, len(outside)) if _is_name(outside, at)])


@lru_cache(maxsize=_MOST_SHAPES)
def _find_numbers(shape: bytes, names: _Names) -> _Get | None:
    """Say what has the numbers of items."""
    return _getter(_walk(_fill(shape, names))[1])


@lru_cache(maxsize=_MOST_SHAPES)
def _read_paths(shape: bytes, names: _Names, numbers: _Names | None) -> dict[int, _Path]:
    """Give the paths of the strings of an event that are no names."""
    pieces = _fill(shape, names)
    if numbers is not None:
        for at, number in zip(_walk(pieces)[1], _all(numbers), strict=True):
            pieces[at] = number
    return _walk(pieces)[0]


def _getter(which: list[int]) -> _Get | None:
    return itemgetter(*which) if which else None


def _all(found: _Names) -> tuple[bytes, ...]:
    """Give what a getter gave as a tuple, also of one."""
    return (found,) if isinstance(found, bytes) else found


def _fill(shape: bytes, names: _Names) -> list[bytes]:
    """Give an event of a shape, with nothing in its other strings."""
    outside = shape.split(b'"')
    pieces = [b""] * (2 * len(outside) - 1)
    pieces[::2] = outside
    each = iter(_all(names))
    for at in range(1, len(outside)):
        if _is_name(outside, at):
            pieces[2 * at - 1] = next(each)
    return pieces


def _is_name(outside: list[bytes], at: int) -> bool:
    return outside[at].lstrip()[:1] == b":"


class _Level:
    """An object or a list that is open."""

    def __init__(self, *, listed: bool) -> None:
        self.listed = listed
        self.step: object = 0 if listed else b""
        """The number of the item, or the name of the member."""
        self.number: bytes | None = None
        """What the object has as `index`."""


def _walk(pieces: list[bytes]) -> tuple[dict[int, _Path], list[int]]:
    """Read an event that was taken apart: paths by the numbers of strings that are no names; and what has the number of an item."""
    levels = [_Level(listed=False)]
    found: dict[int, list[_Level]] = {}
    steps: dict[int, list[object]] = {}
    numbers: list[int] = []
    for at, piece in enumerate(pieces):
        if at % 2:
            level = levels[-1]
            if pieces[at + 1 : at + 2] and pieces[at + 1].lstrip()[:1] == b":":
                level.step = piece
                if piece == b"index" and len(levels) > 1 and levels[-2].listed:
                    numbers.append(at + 1)
                    number = _NUMBER.match(pieces[at + 1])
                    level.number = number[1] if number else None
            else:
                found[at] = levels[:]
                steps[at] = [one.step for one in levels]
            continue
        for sign in _SYNTAX.findall(piece):
            level = levels[-1]
            if sign in (b"{", b"["):
                levels.append(_Level(listed=sign == b"["))
            elif sign in (b"}", b"]"):
                if len(levels) > 1:
                    levels.pop()
            elif sign == b"," and level.listed and isinstance(level.step, int):
                level.step += 1
    paths = {at: _path(levels, steps[at]) for at, levels in found.items()}
    return paths, numbers


def _path(levels: list[_Level], steps: list[object]) -> _Path:
    """Name each step; an item that says which one it is counts by that."""
    path = list(steps)
    for at, level in enumerate(levels):
        if level.number is not None and at:
            path[at - 1] = b"#" + level.number
    return tuple(path)
