"""The timeline of a run in so many bins: for each lane what began and what was under way, and the gaps."""

from bisect import bisect_left
from operator import attrgetter
from typing import Any

from .run_index import KINDS, Mark, RunIndex
from .safe_text import safe_short, show_time

WIDTH = 2000
"""Most bins."""
LANES = 64
_GAPS = 200
_NUMBERS = 24_000
"""Numbers in an answer beyond which bins are put together."""
_FOLD_SHARE = 0.16
"""Of the whole, what all gaps together take."""
_FOLD_EACH = 0.02
_ORDER = (4, 0, 2, 3, 1, 5)
"""Kinds in the order in which they are drawn over each other."""


_where = attrgetter("active_us")


class Axis:
    """Places of a run between 0 and 1, in active time with a fixed room for each gap."""

    def __init__(self, index: RunIndex, *, steps: bool = False) -> None:
        self._index = index
        self.steps = steps
        gaps, active = len(index.gaps), max(index.active_us, 1)
        share = min(_FOLD_SHARE, gaps * _FOLD_EACH)
        self.fold_us = active * share / (1 - share) / gaps if gaps else 0.0
        self.whole_us = active + self.fold_us * gaps

    def begin(self, position: int) -> float:
        """Give where an exchange begins."""
        index = self._index
        if self.steps:
            return position / max(len(index), 1)
        return (index.active[position] + index.folds[position] * self.fold_us) / self.whole_us

    def end(self, position: int) -> float:
        """Give where an exchange ends."""
        if self.steps:
            return (position + 1) / max(len(self._index), 1)
        index = self._index
        active, gaps = index.active[position], index.gaps
        end = min(active + self._find_span(position), index.active_us)
        folds = index.folds[position]
        if folds < len(gaps):
            folds = bisect_left(gaps, end, folds, key=_where)
        return (end + folds * self.fold_us) / self.whole_us

    def _find_span(self, position: int) -> int:
        """Give how long an exchange was under way: until now, or the last sign of life, where it has no end.

        What a tape answered has the time of the tape, but no longer than until the next one came.
        """
        index = self._index
        span = index.spans[position]
        if span < 0:
            return index.active_us - index.active[position]
        if span == 0 and index.took[position] > 0:
            is_last = position + 1 == len(index)
            behind = index.active_us if is_last else index.active[position + 1]
            return min(index.took[position], behind - index.active[position])
        return span

    def find(self, place: float) -> int:
        """Give the position of the last exchange that begins at a place or before it."""
        count = len(self._index)
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self.begin(middle) <= place:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)


def draw_strip(
    index: RunIndex, width: int, begin: float = 0.0, end: float = 1.0, *, steps: bool = False
) -> dict[str, Any]:
    """Give the strip between two places.

    width: bins. Each lane has, by kind, flat triples: first bin, bin behind the last one, and how many exchanges began there.
    """
    axis = Axis(index, steps=steps)
    for factor in (1, 2, 4, 8, 16):
        lanes, size = _bins(index, axis, max(1, width // factor), begin, end)
        if size <= _NUMBERS:
            break
    return {
        "run": index.info.id,
        "width": max(1, width // factor),
        "axis": "steps" if steps else "time",
        "begin": begin,
        "end": end,
        "total": len(index),
        "read": index.stepped,
        "logged": index.logged,
        "complete": index.complete,
        "start_ns": index.began_ns,
        "end_ns": index.ended_ns,
        "active_us": index.active_us,
        "lanes": lanes,
        "gaps": [] if steps else _gaps(index, axis, begin, end),
    }


def _bins(
    index: RunIndex, axis: Axis, width: int, begin: float, end: float
) -> tuple[list[dict[str, Any]], int]:
    span = max(end - begin, 1e-12)
    first, last = axis.find(begin), axis.find(end)
    while first > 0 and axis.end(first - 1) > begin and first > last - 200_000:
        first -= 1
    covers: dict[tuple[int, int], bytearray] = {}
    counts: dict[tuple[int, int], dict[int, int]] = {}
    drawn: dict[tuple[int, int, int], list[tuple[bytearray, dict[int, int]]]] = {}
    others = 0
    scale = width / span
    begins, ends = axis.begin, axis.end
    for position in range(first, min(last + 1, len(index))):
        lane = index.lanes[position]
        if lane > LANES - 2:
            lane, others = LANES - 1, others + 1
        x = int((begins(position) - begin) * scale)
        until = int((ends(position) - begin) * scale) + 1
        if until <= 0:
            continue
        x = min(max(0, x), width - 1)  # what begins at the very end has the last bin
        until = min(width, max(until, x + 1))
        what = lane, index.kinds[position], index.marks[position] & _DRAWN
        rows = drawn.get(what)
        if rows is None:
            keys = _keys(*what)
            rows = drawn[what] = [
                (covers.setdefault(key, bytearray(width)), counts.setdefault(key, {}))
                for key in keys
            ]
        for cover, count in rows:
            if x not in count or until - x > 1:
                cover[x:until] = b"\1" * (until - x)
            count[x] = count.get(x, 0) + 1
    listed: dict[int, dict[str, Any]] = {}
    names = {one.number: safe_short(one.name, 80) for one in index.reader.lanes[:LANES]}
    size = 0
    for lane, kind in sorted(covers):
        row = listed.setdefault(lane, {"lane": lane, "name": names.get(lane, ""), "kinds": {}})
        triples = _runs(covers[lane, kind], counts[lane, kind])
        size += len(triples)
        row["kinds"][_NAMES[kind]] = triples
    if others:
        listed[LANES - 1]["name"] = "further lanes"
    return [listed[lane] for lane in sorted(listed, key=lambda one: (one == 0, one))], size


_EFFECT, _ERROR, _DUPLICATE = len(KINDS), len(KINDS) + 1, len(KINDS) + 2
_DRAWN = int(Mark.EFFECT | Mark.DUPLICATE | Mark.FAILED)
_NAMES = (*KINDS, "effect", "error", "duplicate")


def _keys(lane: int, kind: int, marks: int) -> list[tuple[int, int]]:
    keys = [(lane, _EFFECT if marks & Mark.EFFECT else kind)]
    if marks & Mark.DUPLICATE:
        keys.append((lane, _DUPLICATE))
    if marks & Mark.FAILED:
        keys.append((lane, _ERROR))
    return keys


def _runs(cover: bytearray, counts: dict[int, int]) -> list[int]:
    """Give the runs of bins that are covered, each with how many began in it."""
    triples: list[int] = []
    begins = sorted(counts)
    at, number = 0, 0
    while (start := cover.find(1, at)) >= 0:
        stop = cover.find(0, start)
        stop = stop if stop >= 0 else len(cover)
        count = 0
        while number < len(begins) and begins[number] < stop:
            count += counts[begins[number]]
            number += 1
        triples += [start, stop, count]
        at = stop
    return triples


def _gaps(index: RunIndex, axis: Axis, begin: float, end: float) -> list[dict[str, Any]]:
    found = []
    longest = sorted(index.gaps, key=lambda one: -one.length_us)[:_GAPS]
    for gap in longest:
        stop = axis.begin(gap.position)
        start = stop - axis.fold_us / axis.whole_us
        if stop >= begin and start <= end:
            length = show_time(gap.length_us)
            found.append(
                {
                    "begin": round(start, 6),
                    "end": round(stop, 6),
                    "before": index.seqs[gap.position],
                    "length_us": gap.length_us,
                    "text": f"idle {length}",
                }
            )
    return found
