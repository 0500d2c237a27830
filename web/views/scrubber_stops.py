"""Where a scrubber goes: along all steps, those of one kind, those of one lane, or the effects."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

from .run_index import KINDS, Mark, RunIndex

OF = ("time", "kind", "lane", "effects")
GO = ("first", "previous", "same", "next", "last")


_CALL, _WITH_TOOL = KINDS.index("model call"), KINDS.index("tool call")


def _sort(kind: int) -> int:
    """Give the kind that a scrubber goes by: a model call is one whether it wants a tool or not."""
    return _CALL if kind == _WITH_TOOL else kind


_IS_OF = {
    sort: bytes(kind < len(KINDS) and _sort(kind) == sort for kind in range(256))
    for sort in map(_sort, range(len(KINDS)))
}
"""For each kind that a scrubber goes by, 1 for those that it stops at."""


class Scrubbers:
    """The positions that each scrubber stops at, found once for each state of an index."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self._made: tuple[object, ...] = ()
        self._lists: dict[tuple[str, int], Sequence[int]] = {}

    def stops(self, of: str, position: int) -> Sequence[int]:
        """Give the positions that a scrubber stops at, seen from one."""
        index = self._index
        if of == "time":
            return range(len(index))
        state = len(index), index.stepped, index.pages
        if state != self._made:
            self._made, self._lists = state, {}
        key = of, 0
        if of == "kind":
            key = of, _sort(index.kinds[position])
        elif of == "lane":
            key = of, index.lanes[position]
        found = self._lists.get(key)
        if found is None:
            found = self._lists[key] = self._collect(*key)
        return found

    def _is_complete(self, of: str) -> bool:
        """Say whether all stops are known: an exchange that was not read has no lane so far."""
        return of != "lane" or self._index.stepped == len(self._index)

    def _collect(self, of: str, value: int) -> "array[int]":
        index = self._index
        found: Iterable[object]
        if of == "kind":
            found = index.kinds.translate(_IS_OF[value])
        elif of == "lane":
            found = map(value.__eq__, index.lanes[: index.stepped])
        else:
            found = map(int(Mark.EFFECT).__and__, index.marks)
        return array("I", compress(range(len(index)), found))

    def place(self, of: str, position: int) -> dict[str, Any]:
        """Say where a scrubber is at a position: how many stops there are, and what comes before and behind."""
        stops, seqs = self.stops(of, position), self._index.seqs
        at = bisect_left(stops, position)
        here = at < len(stops) and stops[at] == position
        behind = at + 1 if here else at
        return {
            "position": at + 1 if here else None,
            "of_total": len(stops),
            "complete": self._is_complete(of),
            "before": at,
            "previous": seqs[stops[at - 1]] if at > 0 else None,
            "previous_at": stops[at - 1] + 1 if at > 0 else None,
            "next": seqs[stops[behind]] if behind < len(stops) else None,
            "next_at": stops[behind] + 1 if behind < len(stops) else None,
        }

    def move(self, of: str, position: int, go: str | int) -> dict[str, Any] | None:
        """Give where a move leads; None where there is nothing to stop at.

        go: one of `GO`, or a position among the stops, from 1.
        """
        stops = self.stops(of, position)
        if not len(stops):
            return None
        at = bisect_left(stops, position)
        here = at < len(stops) and stops[at] == position
        if go == "first":
            to = 0
        elif go == "last":
            to = len(stops) - 1
        elif go == "previous":
            to = at - 1
        elif go == "same":
            to = at
        elif go == "next":
            to = at + 1 if here else at
        else:
            to = int(go) - 1
        if not here and ((go == "previous" and to < 0) or (go == "next" and to == len(stops))):
            # Nothing is that way, and the nearest stop is the other way.
            told = {"seq": self._index.seqs[position], "position": None, "at": position + 1}
        else:
            to = min(max(to, 0), len(stops) - 1)
            told = {"seq": self._index.seqs[stops[to]], "position": to + 1, "at": stops[to] + 1}
        return told | {"of_total": len(stops), "complete": self._is_complete(of)}
