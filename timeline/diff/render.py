"""Two runs side by side, for a person: the first divergence, the roots with what follows from them, and both runs in 80 columns."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import wrap

from ...tape.counted import counted
from ...tape.diff.request_differences import common_prefix
from ...tape.exchange import Seq
from ..show.fit import fit, pad
from .acts import Act, says
from .compare import Compared
from .compare_trees import Place
from .differing_json_paths import Places
from .row import Change, Row

WIDTH = 80
_PLACE = 6
_TEXT = 30
_ROOTS = 12
_LISTED = 200
"""Rows that are shown, what is the same folded; the rest is counted."""

Paint = Callable[[str, str], str]
"""Gives a text in the colour of `first`, `second` or `root`."""
FindPlaces = Callable[[Row], Places]


def plainly(text: str, _: str) -> str:
    """Give a text without colour."""
    return text


@dataclass(frozen=True, slots=True)
class Names:
    """The two runs."""

    first: str
    second: str


def render_diff(
    names: Names,
    compared: Compared,
    find: FindPlaces,
    paint: Paint = plainly,
    *,
    everything: bool = False,
) -> Iterator[str]:
    """Give the lines of a comparison.

    find: says where the acts of a row differ.
    everything: also what is the same, line by line, and every root.
    """
    yield fit(f"A {names.first}", WIDTH)
    yield fit(f"B {names.second}", WIDTH)
    same = compared.counts.get(Change.SAME.value, 0)
    told = [
        f"{count} {what}"
        for what, count in compared.counts.items()
        if what != Change.SAME.value and count
    ]
    yield from wrap(", ".join([f"{same} the same", *told]), WIDTH)
    repeats = sum(row.converges for row in compared.rows)
    if repeats:
        yield f"{repeats} of these differ only in earlier messages"
    if compared.reordered:
        yield f"{compared.reordered} came in another order, at one time with others"
    if compared.divergence is None:
        yield "no divergence"
        return
    yield ""
    yield from _first(compared, find, paint)
    yield from _roots(compared, find, paint, None if everything else _ROOTS)
    yield ""
    yield f"{'A':>{_PLACE}} {'':<{_TEXT}}   {'B':>{_PLACE}}"
    yield from _side_by_side(compared.rows, paint, everything=everything)


def _first(compared: Compared, find: FindPlaces, paint: Paint) -> Iterator[str]:
    divergence = compared.divergence
    assert divergence is not None
    row = divergence.row
    yield paint(fit(f"first divergence: {row.change.value}, {_place(row)}", WIDTH), "root")
    for side, act in (("first", divergence.first), ("second", divergence.second)):
        sign = "A" if side == "first" else "B"
        text = f"{act.place} {says(act)}" if act is not None else "(had ended)"
        yield paint(f"  {fit(f'{sign} {text}', WIDTH - 2)}", side)
    yield from _places(find(row), paint)


def _places(places: Places, paint: Paint, most: int = 8) -> Iterator[str]:
    for one in places.listed[:most]:
        yield f"    {fit(one.name_in('B'), WIDTH - 4)}"
        first, second = _near(one)
        if one.stands_for:
            first = f"{fit(first, WIDTH // 2)}, which stands for {one.stands_for} in B"
        yield paint(f"      A {fit(first, WIDTH - 8)}", "first")
        yield paint(f"      B {fit(second, WIDTH - 8)}", "second")
    more = places.more + max(0, len(places.listed) - most)
    if more:
        yield f"    … and {more} more places"


def _near(place: Place) -> tuple[str, str]:
    """Show two values from a little before the first character that differs, where a line does not reach it."""
    one, other = place.recorded, place.asked
    at = place.at
    if at is None:
        same = common_prefix(one, other)
        at = same, same
    if max(at) < WIDTH // 2 or one == other:
        return one, other
    begins = [max(0, begin - 24) for begin in at]
    shown = [
        f"…{text[begin:]}" if begin else text
        for text, begin in zip((one, other), begins, strict=True)
    ]
    return shown[0], shown[1]


def _roots(compared: Compared, find: FindPlaces, paint: Paint, most: int | None) -> Iterator[str]:
    divergence = compared.divergence
    roots = [row for row in compared.rows if row.is_root]
    followers: dict[tuple[str, str], int] = {}
    by_place = {_key(row): row for row in compared.rows if row.change is not Change.SAME}
    for row in compared.rows:
        if row.cause is not None:
            key = _origin(by_place, row)
            followers[key] = followers.get(key, 0) + 1
    yield ""
    follow = sum(row.cause is not None for row in compared.rows)
    yield f"{counted(len(roots), 'root')}, and {counted(follow, 'difference')} that follow"
    for row in roots[:most]:
        count = followers.get(_key(row), 0)
        line = f"{_place(row)}: {row.change.value}" + (f", {count} follow" if count else "")
        yield paint(f"  {fit(line, WIDTH - 2)}", "root")
        if divergence is not None and row is not divergence.row:
            yield from _places(find(row), paint, 3)
    if most is not None and len(roots) > most:
        yield f"  … and {len(roots) - most} more roots: --all"


def _origin(by_place: dict[tuple[str, str], Row], row: Row) -> tuple[str, str]:
    """Find the root that a difference goes back to."""
    seen = set[tuple[str, str]]()
    while row.cause is not None and _key(row) not in seen:
        seen.add(_key(row))
        before = by_place.get((row.cause.first, row.cause.second))
        if before is None:
            break
        row = before
    return _key(row)


def _key(row: Row) -> tuple[str, str]:
    return _of(row.first), _of(row.second)


def _of(act: Act | None) -> str:
    return act.place if act is not None else ""


def _place(row: Row) -> str:
    return f"A {_of(row.first) or '-'}, B {_of(row.second) or '-'}"


_SIGNS = {
    Change.SAME: "=",
    Change.ASKED: "≠",
    Change.ANSWERED: "≠",
    Change.MOVED: "~",
    Change.ONLY_FIRST: "<",
    Change.ONLY_SECOND: ">",
}


_SIDES: tuple[Callable[[Row], Act | None], ...] = (
    lambda row: row.first,
    lambda row: row.second,
)


def _side_by_side(rows: list[Row], paint: Paint, *, everything: bool) -> Iterator[str]:
    folded: list[Row] = []
    shown = 0
    differing = [
        sorted(
            act.seq
            for row in rows
            if row.change is not Change.SAME and (act := side(row)) is not None
        )
        for side in _SIDES
    ]
    for at, row in enumerate(rows):
        if row.change is Change.SAME and not everything:
            # What moved away from between two may not be counted among what is the same.
            if folded and any(
                _is_between(seqs, side(folded[-1]), side(row))
                for seqs, side in zip(differing, _SIDES, strict=True)
            ):
                yield from _fold(folded)
                folded = []
            folded.append(row)
            continue
        yield from _fold(folded)
        folded = []
        if shown == _LISTED and not everything:
            left = sum(one.change is not Change.SAME for one in rows[at:])
            yield f"… and {left} more that differ: --all"
            return
        shown += 1
        yield _line(row, paint)
    yield from _fold(folded)


def _is_between(seqs: list[Seq], before: Act | None, behind: Act | None) -> bool:
    if before is None or behind is None:
        return False
    return bisect_right(seqs, before.seq) < bisect_left(seqs, behind.seq)


def _fold(rows: list[Row]) -> Iterator[str]:
    if len(rows) == 1:
        yield _line(rows[0], plainly)
    elif rows:
        first, last = rows[0], rows[-1]
        left = fit(f"{_of(first.first)} to {_of(last.first)}: {len(rows)} the same", _TEXT)
        right = fit(f"{_of(first.second)} to {_of(last.second)}", _TEXT)
        yield f"{'':>{_PLACE}} {left:<{_TEXT}} = {'':>{_PLACE}} {right}"


def _line(row: Row, paint: Paint) -> str:
    sign = _SIGNS[row.change]
    texts = [says(act) if act is not None else "" for act in (row.first, row.second)]
    if row.first is not None and row.second is not None and row.change is not Change.SAME:
        texts = _apart(*texts)
    left, right = _half(row.first, texts[0]), _half(row.second, texts[1]).rstrip()
    if row.change is Change.SAME:
        return f"{left} {sign} {right}".rstrip()
    sign = paint(sign, "root") if row.is_root else sign
    return f"{paint(left, 'first')} {sign} {paint(right, 'second')}".rstrip()


def _apart(one: str, other: str) -> list[str]:
    """Leave out what two long texts begin with, so that what differs is to be seen."""
    same = common_prefix(one, other)
    if one == other or same + 12 <= _TEXT:
        return [one, other]
    return [f"{text[:10]}…{text[same - 4 :]}" for text in (one, other)]


def _half(act: Act | None, text: str) -> str:
    if act is None:
        return " " * (_PLACE + 1 + _TEXT)
    return f"{act.place:>{_PLACE}} {pad(fit(text, _TEXT), _TEXT)}"
