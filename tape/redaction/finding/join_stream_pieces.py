"""Put together what a stream says piece by piece: the strings at one place of its events, lines or items, in order.

Whatever the dialect, a place is the path of a string in the document of an event; of an item of a list its number, or the one that it
has as `index`. The data of events that are no JSON are one place, too. So a secret that is spelt over the events of a stream is a text.

Two blocks of one stream may take turns: then the objects around a string have a number or an id that says of which one it is (`index` of
Anthropic, `output_index` and `item_id` of OpenAI's Responses, `id` of LangGraph). One that comes back after another tells blocks apart; one
that never does may as well count events, or belong to the next one of them.

Most events of a stream are alike but for one string, or for a few strings and numbers. They are taken apart at once, by what is between
two of these. The others are taken apart at their quotes, and what is not in quotes says which of them have their strings at the same
places.
"""

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial, wraps
from itertools import accumulate, compress, count, groupby, pairwise
from operator import itemgetter, ne
from typing import Concatenate, NamedTuple

MOST_EVENTS = 32_000
"""Events that are taken apart at their quotes, however short a text is."""
BYTES_AN_EVENT = 64
"""A text may have one more for as many bytes."""

_AMID = 4096
"""Bytes amid a stream in which two events are compared."""
_APART, _BESIDE = 3, 8
"""Events that are compared of each part of a stream, and of one alone."""
_MOST_SHAPES = 512
_REACH = 512
"""Bytes of what is the same again and again that are joined with something else before or behind it."""
_LONGEST_SHAPE = 4096
"""Bytes of one that is remembered: there may be as many as `_MOST_SHAPES`, and few of longer ones are alike."""
_DEEPEST = 64
"""Objects and lists in one another that are told apart; what is deeper is at the place of the last of them."""
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


_Blocks = dict[bytes, list[bytes]]
"""What the objects around strings have as numbers and ids: by the name its value for each string."""
_Marks = tuple[tuple[bytes, int], ...]
"""Their names, each with how deep it is, and what has the value."""
_MOST_BLOCKS = 256
_MOST_MARKS = 8
"""Numbers and ids around one string that are looked at."""
_FEW_BLOCKS = 4
"""Of numbers and ids, this part comes back where they tell blocks apart: that of an event may be said twice."""
_LEAST_TURNS = 3
"""Pieces in which something can come back."""
_IS_MARK = re.compile(rb"(?:\A|[_a-z])(?:[Ii]d|(?P<number>[Ii]ndex)|ID)\Z|(?:\A|_)node\Z")
"""An id that is a number may be that of the text: a token of a model has one."""
_BEFORE_MARK = re.compile(rb'"([^"\\]{1,64})"\s*:\s*"?\Z')


class _Said(NamedTuple):
    """Pieces at one path: where each begins, what it is, and of which block."""

    starts: Callable[[], list[int]]
    pieces: list[bytes]
    blocks: Callable[[], _Blocks] | None = None


_Found = dict[_Path, list[_Said]]
_DIGITS = b"0123456789+-.eE"
_NUMBERS = re.compile(rb"([0-9+.eE-]*[0-9][0-9+.eE-]*)")
_MOST_GAPS = 8
_TRIED = 2
_COMPARED = 4
"""Events in which what differs is found, and of how many kinds it is tried."""
_FEW_OTHERS = 8
"""Where events of other forms are more than this part of a stream, they may be of a wider one."""
_WIDENED = 2
_ANCHOR = 12
_FARTHEST = 256
"""Bytes with which an event begins that are looked for, at least; and behind them that are passed by their number, at most."""
_HIDDEN = ((b"\\\\", b"\x01\x01"), (b'\\"', b"\x02\x02"))
"""What reads as a quote and is none, and what stands for it while quotes are asked for: as long as it."""
_HEAD = re.compile(rb'\[?\s{0,64}(\{\s{0,64}"[^"\\]{1,64}"\s?:)')
_LINE = re.compile(rb'\s*+\x1e?(?:\w{1,2}:)?[{\["]')
"""How a line of JSON begins, behind the sign of RFC 7464 or the letter of a part."""
_DOCUMENT = re.compile(rb'\s*+\x1e?(?:[{\[]|\w{1,2}:[{\["])')
_FIRST_LINES = 4
"""Lines that say whether a text has JSON in each; a window of one begins amid a line."""
_SYNTAX = re.compile(rb"[\[\]{},]")
_NUMBER = re.compile(rb"\s*:\s*(-?\d+)")
_BETWEEN = b"\n\n", b"\r\n\r\n", b"\r\r"
_PROBE = 8192
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
    back: dict[int, bool] = {}
    for said in found.values():
        yield from _join(said, back, hidden=shapes.hidden)


def _join(said: list[_Said], back: dict[int, bool], *, hidden: bool) -> Iterator[Spelled]:
    """Give what is said at one path.

    back: what was found out about numbers and ids, which many paths have in common; by the list.
    """
    if len(said) > 1:
        said = [one for one in said if any(one.pieces)]
    if not said:
        return
    found: list[list[bytes]] = []
    if len(said) == 1:
        starts, pieces, blocks = said[0]
        if blocks is not None and len(pieces) >= _LEAST_TURNS:
            for values in blocks().values():
                comes = back.get(id(values))
                if comes is None:
                    comes = back[id(values)] = _comes_back(values)
                if comes:
                    found.append(values)
    else:
        first, both = 0, list[tuple[int, bytes, int]]()
        for one in said:
            both += zip(
                one.starts(), one.pieces, range(first, first + len(one.pieces)), strict=True
            )
            first += len(one.pieces)
        both = sorted(row for row in both if row[1])
        pieces = [piece for _, piece, _ in both]
        starts = partial(list, [start for start, _, _ in both])
        if len(pieces) >= _LEAST_TURNS and any(one.blocks for one in said):
            found = _order_blocks(said, [row for _, _, row in both])
    labels = list(zip(*found, strict=True))
    if not labels or len(set(labels)) > _MOST_BLOCKS:
        yield from _spell(pieces, starts, hidden=hidden)
        return
    groups: dict[tuple[bytes, ...], list[tuple[int, bytes]]] = {}
    for label, start, piece in zip(labels, starts(), pieces, strict=True):
        groups.setdefault(label, []).append((start, piece))
    for group in groups.values():
        yield from _spell([piece for _, piece in group], partial(_firsts, group), hidden=hidden)


def _order_blocks(said: list[_Said], order: list[int]) -> list[list[bytes]]:
    """Give the numbers and ids that come back, in the order of the pieces; what has none goes on with the one before."""
    blocks = [one.blocks() if one.blocks is not None else {} for one in said]
    found: list[list[bytes]] = []
    for name in dict.fromkeys(name for each in blocks for name in each):
        if len(set().union(*(each.get(name, ()) for each in blocks))) < 2:
            continue
        every: list[bytes | None] = []
        for one, each in zip(said, blocks, strict=True):
            every += each.get(name) or [None] * len(one.pieces)
        values: list[bytes] = []
        last = b""
        for row in order:
            value = every[row]
            last = last if value is None else value
            values.append(last)
        if _comes_back(values):
            found.append(values)
    return found


def _comes_back(values: list[bytes]) -> bool:
    """Say whether numbers or ids come back after others, as those of blocks that take turns."""
    begun = Counter(value for value, _ in groupby(values))
    return sum(times > 1 for times in begun.values()) * _FEW_BLOCKS > len(begun)


def _spell(
    pieces: list[bytes], starts: Callable[[], list[int]], *, hidden: bool
) -> Iterator[Spelled]:
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


# ---- what a text is ------------------------------------------------------------------------------


def has_events(data: bytes) -> bool:
    """Say whether a text has a line of an event: who reads it as a stream of events passes over all others.

    No text of JSON has one, since no string of it has a line's end.
    """
    # One byte is looked for some ten times as fast as five, and a large request has mostly no line's end.
    return (
        data.startswith((b"data:", b"\xef\xbb\xbfdata:"))
        or (b"\n" in data and b"\ndata:" in data)
        or (b"\r" in data and b"\rdata:" in data)
    )


def has_lines(data: bytes) -> bool:
    """Say whether a text has a whole document of JSON in each line."""
    documents = [
        line for line in _first_lines(data) if line.endswith((b"}", b"]", b'"')) and len(line) > 2
    ]
    return len(documents) > 1 and all(map(_DOCUMENT.match, documents))


def _first_lines(data: bytes) -> list[bytes]:
    """Give the first lines of a text that are not empty."""
    found: list[bytes] = []
    at = 0
    while at < len(data) and len(found) < _FIRST_LINES:
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        if line := data[at:end].strip():
            found.append(line)
        at = end + 1
    return found


# ---- what is between two -------------------------------------------------------------------------


def _events(data: bytes) -> tuple[int, bytes] | None:
    """Give what is between two events of a stream, and where the first begins."""
    probe = _probe(data)
    between = max(_BETWEEN, key=probe.count) if b"\r" in probe else _BETWEEN[0]
    line = between[: len(between) // 2]
    # Some servers leave out the empty lines, and clients read line by line.
    bare = probe.count(line + b"data:") > 2 * probe.count(between) + 2
    return 0, line if bare else between


def _probe(data: bytes) -> bytes:
    """Give as much of a text as says what is between its events: to count in all of it takes longer than to search it."""
    if len(data) <= 3 * _PROBE:
        return data
    middle = (len(data) - _PROBE) // 2
    return b"".join((data[:_PROBE], data[middle : middle + _PROBE], data[-_PROBE:]))


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
    alike = sum(_LINE.match(line) is not None for line in _first_lines(data))
    return (0, b"\n") if alike > 1 else None


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
    else:
        _take_alike(data, begin, between, form, shapes)


def _take_alike(data: bytes, begin: int, between: bytes, form: _Form, shapes: "_Shapes") -> None:
    """Take events apart most of which are of one form."""
    text = data[begin:] if begin else data
    parts = _split(text, form, between)
    for _ in range(_WIDENED):
        wider = _widen(form, parts, between, len(text))
        if wider is None:
            break
        form, parts = wider, _split(text, wider, between)
    step = len(form.texts) + 1
    others, columns = parts[::step], [parts[at::step] for at in range(1, step)]
    starts = partial(_find_gaps, begin, others, columns, form, between)
    if any(others):
        for part, at in zip(others, [begin, *starts(step - 1)], strict=True):
            if part:
                shapes.take_all(at, part.split(between), len(between))
    shapes.finish()
    quotes = list(accumulate(one.count(b'"') for one in form.constants))
    gaps = [gap for gap, text in enumerate(form.texts) if text]
    said = {quotes[gap]: [_Said(partial(starts, gap), columns[gap])] for gap in gaps}
    marks = {
        quotes[gap]: column for gap, column in enumerate(columns) if _is_marked(form.constants[gap])
    }
    shapes.note_form(form.constants, said, marks, partial(_find_between, starts, columns, form))


def _is_marked(before: bytes) -> bool:
    """Say whether what precedes a gap ends with the name of a number or an id of a block."""
    name = _BEFORE_MARK.search(before)
    return name is not None and _IS_MARK.search(name[1]) is not None


def _find_between(
    starts: Callable[[int], list[int]], columns: list[list[bytes]], form: _Form, which: int
) -> list[int]:
    """Find where what is before one of several gaps begins, or what is behind the last."""
    if which < len(columns):
        size = len(form.constants[which])
        return [start - size for start in starts(which)]
    last = zip(starts(which - 1), columns[which - 1], strict=True)
    return [start + len(piece) for start, piece in last]


_GAPS = {True: rb'([^"\\]*+(?:\\.[^"\\]*+)*+)', False: b"([0-9+.eE-]*+)"}


@lru_cache(maxsize=_MOST_SHAPES)
def _splitter(form: _Form, between: bytes) -> re.Pattern[bytes]:
    first, *others = map(re.escape, form.constants)
    inner = [_GAPS[text] + other for text, other in zip(form.texts, others, strict=True)]
    return re.compile(first + b"".join(inner) + re.escape(between), re.DOTALL)


def _split(text: bytes, form: _Form, between: bytes) -> list[bytes]:
    """Give what is before an event of a form, what it says, what is before the next one and so on; at the end what is behind the last."""
    return _split_by_sizes(text, form, between) or _splitter(form, between).split(text)


def _split_by_sizes(text: bytes, form: _Form, between: bytes) -> list[bytes] | None:
    """Split a text as `_splitter` does; None where it has an event of another form that is as long.

    What is the same in all events is passed by its size, which is much faster. That it is the same is seen afterwards, at once.
    """
    first, *others = form.constants
    quote = first.find(b'"')
    far = min(len(first), max(_ANCHOR, quote + 1, len(first) - _FARTHEST))
    # Long ones are passed up to the quote.
    near = _ANCHOR if quote - 1 > _ANCHOR and far == quote + 1 else far
    begins = first[:near], quote - 1 - near, first[quote - 1 : far]
    sizes = (len(first) - far, *map(len, others))
    parts = _splitter_by_sizes(begins if near < far else begins[:1], sizes, form.texts, between)
    split = parts.split(text)
    return split if _join_alike(split, form, between) == text else None


def _join_alike(parts: list[bytes], form: _Form, between: bytes) -> bytes:
    """Put together what `_splitter` has split."""
    first, *ends = *form.constants[:-1], form.constants[-1] + between
    step = len(ends) + 1
    others, last = parts[:-1:step], parts[-1]
    if not others or others.count(b"") < len(others):
        joined = _alternate([others, *(parts[at:-1:step] for at in range(1, step))], [first, *ends])
        return b"".join([*joined, last])
    # With nothing before an event, the end of one and the beginning of the next one are one.
    end = ends[-1] + first
    if step == 2:
        return b"".join((first, end.join(parts[1:-1:2]), ends[-1], last))
    joined = _alternate([parts[at:-1:step] for at in range(1, step)], [*ends[:-1], end])
    joined[-1] = ends[-1]
    return b"".join((first, *joined, last))


def _alternate(columns: list[list[bytes]], ends: list[bytes]) -> list[bytes]:
    """Give the items of columns row by row, each with what is behind it."""
    step, count = 2 * len(ends), len(columns[0])
    joined = [b""] * (step * count)
    for at, (column, end) in enumerate(zip(columns, ends, strict=True)):
        joined[2 * at :: step] = column
        joined[2 * at + 1 :: step] = [end] * count
    return joined


@lru_cache(maxsize=_MOST_SHAPES)
def _splitter_by_sizes(
    begins: tuple[bytes] | tuple[bytes, int, bytes],
    sizes: tuple[int, ...],
    texts: tuple[bool, ...],
    between: bytes,
) -> re.Pattern[bytes]:
    """Give a pattern of events by what they begin with.

    That has a quote which ends a string, so wherever an event may begin, the string that one before it goes on with ends at the latest: to look
    for all of them takes a time that grows with the text.
    """
    anchor = b"(?<!\\\\)" * begins[0].startswith(b'"') + re.escape(begins[0])
    if len(begins) > 1:
        anchor += b".{%d}+" % begins[1] + re.escape(begins[2])
    first, *others = (b".{%d}+" % size for size in sizes)
    inner = [_GAPS[text] + other for text, other in zip(texts, others, strict=True)]
    return re.compile(anchor + first + b"".join(inner) + re.escape(between), re.DOTALL)


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


def _find_form(data: bytes, begin: int, between: bytes) -> _Form | None:
    """Find what most events amid a stream have in common."""
    # Those that are apart differ in all that ever differs, but may be of several kinds.
    apart = [_sample(data, begin, between, quarter, _APART) for quarter in (2, 1, 3)]
    form = _compare_alike([part for parts in apart for part in parts])
    for quarter in () if form is not None else (2, 1, 3):
        form = _compare_parts(_sample(data, begin, between, quarter, _BESIDE))
        if form is not None:
            break
    return form


def _sample(data: bytes, begin: int, between: bytes, quarter: int, most: int) -> list[bytes]:
    """Give some events beside each other amid a stream; without those that have quotes in their strings."""
    at = data.find(between, max(begin, len(data) * quarter // 4)) + len(between)
    if at < len(between):
        return []
    parts = data[at : at + _AMID].split(between, most)[:-1]
    return [part for part in parts if b'\\"' not in part]


def _widen(form: _Form, parts: list[bytes], between: bytes, size: int) -> _Form | None:
    """Find what the events of a form and others have in common; None where most are of that form, or the others of another kind.

    parts: the events as they were split. size: bytes of all of them.
    """
    step = len(form.texts) + 1
    others = list(filter(None, parts[::step]))
    if sum(map(len, others)) * _FEW_OTHERS < size or len(parts) < step:
        return None
    said = zip(form.constants, (*parts[1:step], b""), strict=True)
    one = b"".join([part for pair in said for part in pair])
    odd = [
        part
        for other in others[:: len(others) // _COMPARED + 1]
        for part in other.split(between, 2)[:2]
    ]
    alike = [part for part in odd if b'\\"' not in part and part.count(b'"') == one.count(b'"')]
    return _compare_all([one, *alike]) if alike else None


def _compare_parts(parts: list[bytes]) -> _Form | None:
    """Give what some events have in common: those that differ in strings and numbers, or else in one string."""
    form = _compare_alike(parts)
    if form is not None:
        return form
    pairs = [(one, other) for one, other in pairwise(parts) if one != other]
    # Some may be of another kind.
    forms = (_compare(one, other) for one, other in pairs[: _TRIED + 1])
    return next((form for form in forms if form is not None), None)


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
    for each in dict.fromkeys(counts[:_COMPARED]):
        alike = [part for part, quotes in zip(parts, counts, strict=True) if quotes == each]
        form = _compare_all(alike[:: len(alike) // _COMPARED + 1])
        if form is not None:
            split = _split_by_sizes(b"".join(alike), form, b"")
            fits = split is not None and not any(split[:: len(form.texts) + 1])
            return form if fits else _compare_all(alike) or form
    return None


def _compare_all(parts: list[bytes]) -> _Form | None:
    """Give what events have in common, or None where more than strings and numbers tell them apart."""
    events = [part.split(b'"') for part in parts]
    first, *others = events
    differ: set[int] = set()
    for other in others:
        if len(other) != len(first):
            return None
        differ.update(compress(count(), map(ne, first, other)))
    gaps = sorted(differ)
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


class _Rows(list[tuple[int, list[bytes]]]):
    """Events of one shape: where each begins, and its pieces."""

    _starts: list[array[int]] | None = None
    _values: dict[int, list[bytes]] | None = None

    def starts(self, column: int) -> list[int]:
        """Give where a piece of each begins; there are no more rows from then on."""
        if self._starts is None:
            sizes = ((at, (len(piece) + 1 for piece in row)) for at, row in self)
            self._starts = [array("L", accumulate(each, initial=at)) for at, each in sizes]
        return [starts[column] for starts in self._starts]

    def blocks(self, marks: _Marks) -> _Blocks:
        """Give what tells of which block each is; what several columns have in common is one list."""
        if self._values is None:
            self._values = {}
        for _, at in marks:
            if at not in self._values:
                self._values[at] = [_value_at(row, at) for _, row in self]
        return {name: self._values[at] for name, at in marks}


def _value_at(pieces: list[bytes], at: int) -> bytes:
    """Give the string or the number that is a value of an event which was taken apart."""
    if at % 2:
        return pieces[at]
    number = _NUMBER.match(pieces[at])
    return number[1] if number else b""


class _Shapes:
    """Takes events apart at their quotes; those with the same names in the same places are of one shape."""

    def __init__(self, found: _Found, *, events: bool, most: int) -> None:
        self._found = found
        self._events = events
        self._left = most
        self.hidden = False
        """Whether a string has marks in the place of its escapes."""
        self._items: dict[tuple[bytes, _Names], set[_Names]] = {}
        self._rows: dict[_Key, _Rows] = {}
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
        self._rows.setdefault(self._key(pieces), _Rows()).append((at, pieces))

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

    def note_form(
        self,
        constants: tuple[bytes, ...],
        said: dict[int, list[_Said]],
        marks: dict[int, list[bytes]],
        starts_of: Callable[[int], list[int]],
    ) -> None:
        """Note what events of a form say, and what they have in common at places where other events say something else.

        said: by the number of quotes before a string in which they differ.
        marks: in the same way the numbers and ids of blocks in which they differ.
        starts_of: gives where one of `constants` begins in each event.
        """
        if not self._found and not marks:
            self._found.update(((column,), one) for column, one in said.items())
            return
        pieces = b"".join(constants).split(b'"')
        ends = list(accumulate(map(len, constants)))
        at = 0
        shape, names, numbers = self._key(list(pieces))
        paths, marked = _read_paths(shape, names, numbers), _find_marks(shape, names)
        count = next(len(one.pieces) for each in said.values() for one in each)

        def blocks(column: int) -> _Blocks:
            return {
                name: marks.get(at) or [_value_at(pieces, at)] * count
                for name, at in marked.get(column, ())
            }

        for column, piece in enumerate(pieces):
            others = self._found.get(paths.get(column, ()), []) if column not in said else []
            if piece and others:
                which = bisect_right(ends, at)
                ahead = at - (ends[which - 1] if which else 0)
                starts = [start + ahead for start in starts_of(which)]
                near = _find_near(starts, others, len(piece))
                beside = set(near)
                each = {
                    name: [
                        value
                        for start, value in zip(starts, values, strict=True)
                        if start in beside
                    ]
                    for name, values in blocks(column).items()
                }
                others.append(_Said(partial(list, near), [piece] * len(near), partial(dict, each)))
            at += len(piece) + 1
        for column, said_there in said.items():
            if column in paths:
                told = [one._replace(blocks=partial(blocks, column)) for one in said_there]
                self._found.setdefault(paths[column], []).extend(told)

    def finish(self) -> None:
        """Note what was said at which path."""
        # Events that are not alike are taken as they are found, which is not always in their order.
        if self._plain:
            self._plain.sort(key=itemgetter(0))
            starts = partial(_firsts, self._plain)
            self._found[("data",)] = [_Said(starts, [text for _, text in self._plain])]
        for key, rows in self._rows.items():
            rows.sort(key=itemgetter(0))
            paths, marked = _read_paths(*key), _find_marks(*key[:2])
            for column, path in paths.items():
                pieces = [row[column] for _, row in rows]
                marks = marked.get(column) if len(rows) > 1 or len(self._rows) > 1 else None
                blocks = partial(rows.blocks, marks) if marks else None
                said = _Said(partial(rows.starts, column), pieces, blocks)
                self._found.setdefault(path, []).append(said)


def _find_near(starts: list[int], others: list[_Said], size: int) -> list[int]:
    """Find which of many equal pieces are near enough to others to spell something with them."""
    most = _REACH // size + 1
    found: set[int] = set()
    for other in {start for one in others for start in one.starts()}:
        at = bisect_right(starts, other)
        found.update(range(max(0, at - most), min(len(starts), at + most)))
    return [starts[at] for at in sorted(found)]


def _remembered[**P, R](
    read: Callable[Concatenate[bytes, P], R],
) -> Callable[Concatenate[bytes, P], R]:
    """Have what is read of a shape be remembered."""
    remembered = lru_cache(maxsize=_MOST_SHAPES)(read)

    @wraps(read)
    def ask(shape: bytes, /, *more: P.args, **named: P.kwargs) -> R:
        if len(shape) > _LONGEST_SHAPE:
            return read(shape, *more, **named)
        return remembered(shape, *more, **named)  # type: ignore[arg-type]  # all of them can be hashed

    return ask


@_remembered
def _find_names(shape: bytes) -> _Get | None:
    """Say which strings of an event are names, by what is outside of its strings."""
    outside = shape.split(b'"')
    return _getter([2 * at - 1 for at in range(1, len(outside)) if _is_name(outside, at)])


@_remembered
def _find_numbers(shape: bytes, names: _Names) -> _Get | None:
    """Say what has the numbers of items."""
    return _getter(_walk(_fill(shape, names))[1])


@_remembered
def _read_paths(shape: bytes, names: _Names, numbers: _Names | None) -> dict[int, _Path]:
    """Give the paths of the strings of an event that are no names."""
    pieces = _fill(shape, names)
    if numbers is not None:
        for at, number in zip(_walk(pieces)[1], _all(numbers), strict=True):
            pieces[at] = number
    return _walk(pieces)[0]


@_remembered
def _find_marks(shape: bytes, names: _Names) -> dict[int, _Marks]:
    """Say which numbers and ids the objects around each string of an event have."""
    return _walk(_fill(shape, names))[2]


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

    def __init__(self, *, listed: bool, outer: "_Level | None" = None) -> None:
        self.listed = listed
        self.step: object = 0 if listed else b""
        """The number of the item, or the name of the member."""
        self.number: bytes | None = None
        """What the object has as `index`."""
        self.marks: list[tuple[bytes, int]] = []
        """The numbers and ids that the object has."""
        self._around: _Marks | None = None
        self._depth: int = outer._depth + 1 if outer is not None else 0
        self._outer = outer
        self._entered = outer.step if outer is not None else None
        self._path: _Path | None = None

    def path(self) -> _Path:
        """Give the path around it and the step there; an item that says which one it is counts by that."""
        if self._path is None:
            step = self._entered if self.number is None else b"#" + self.number
            self._path = () if self._outer is None else (self._outer.path(), step)
        return self._path

    def note(self, name: bytes, at: int) -> None:
        """Note a name that may be that of a number or an id of a block; what has its value, in quotes or not, is at a position."""
        mark = _IS_MARK.search(name) if len(self.marks) < _MOST_MARKS else None
        if mark and (at % 2 or mark["number"]):
            self.marks.append((b"%d " % self._depth + name, at))

    def marks_around(self) -> _Marks:
        """Give the numbers and ids of the object and of those around it."""
        if self._around is None:
            around = self._outer.marks_around() if self._outer is not None else ()
            self._around = (*self.marks, *around)[:_MOST_MARKS] if self.marks else around
        return self._around


def _walk(pieces: list[bytes]) -> tuple[dict[int, _Path], list[int], dict[int, _Marks]]:
    """Read an event that was taken apart.

    Give paths by the numbers of strings that are no names; what has the number of an item; and what says of which block each string is.
    """
    levels = [_Level(listed=False)]
    deeper = 0
    found: dict[int, tuple[_Level, object]] = {}
    numbers: list[int] = []
    for at, piece in enumerate(pieces):
        level = levels[-1]
        if at % 2:
            if not (pieces[at + 1 : at + 2] and pieces[at + 1].lstrip()[:1] == b":"):
                found[at] = level, level.step
            elif not deeper:
                level.step = piece
                level.note(piece, at + 2 if pieces[at + 1].strip() == b":" else at + 1)
                if piece == b"index" and len(levels) > 1 and levels[-2].listed:
                    numbers.append(at + 1)
                    number = _NUMBER.match(pieces[at + 1])
                    level.number = number[1] if number else None
            continue
        for sign in _SYNTAX.findall(piece):
            level = levels[-1]
            if sign in (b"{", b"["):
                if len(levels) > _DEEPEST:
                    deeper += 1
                else:
                    levels.append(_Level(listed=sign == b"[", outer=level))
            elif sign in (b"}", b"]"):
                if deeper:
                    deeper -= 1
                elif len(levels) > 1:
                    levels.pop()
            elif not deeper and level.listed and isinstance(level.step, int):
                level.step += 1
    marks = {at: around for at, (level, _) in found.items() if (around := level.marks_around())}
    return {at: (level.path(), step) for at, (level, step) in found.items()}, numbers, marks
