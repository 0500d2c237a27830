"""Find which element of one list is which of another: what was put in or left out moves no other."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher

_MOST = 400
"""Elements up to which those that moved are looked for."""

Pair = tuple[int | None, int | None]
"""A place in each list; None where the other list alone has the element."""


def align_lists[One](
    old: Sequence[One],
    new: Sequence[One],
    same: Callable[[One, One], bool],
    form: Callable[[One], Hashable],
    kind: Callable[[One], Hashable],
) -> Iterator[Pair]:
    """Give the pairs of two lists in order.

    same: says whether two elements are the same.
    form: is the same of elements that are the same.
    kind: is the same of elements of which one may have come in the place of the other.
    """
    most = min(len(old), len(new))
    begin = next((at for at in range(most) if not same(old[at], new[at])), most)
    rest = most - begin
    end = next((at for at in range(rest) if not same(old[-1 - at], new[-1 - at])), rest)
    yield from ((at, at) for at in range(begin))
    sides = range(begin, len(old) - end), range(begin, len(new) - end)
    yield from _align_middle(old, new, sides, form, kind)
    yield from ((len(old) - at, len(new) - at) for at in range(end, 0, -1))


def _align_middle[One](
    old: Sequence[One],
    new: Sequence[One],
    sides: tuple[range, range],
    form: Callable[[One], Hashable],
    kind: Callable[[One], Hashable],
) -> Iterator[Pair]:
    first, second = sides
    is_alike = len(first) == len(second) and all(
        kind(old[at]) == kind(new[there]) for at, there in zip(first, second, strict=True)
    )
    if not first or not second or is_alike or max(map(len, sides)) > _MOST:
        yield from _by_place(first, second)
        return
    pairs = list(_align_blocks(old, new, sides, form, kind))
    gone = {form(old[at]) for at, there in pairs if at is not None and there is None}
    is_moved = any(
        there is not None and form(new[there]) in gone for at, there in pairs if at is None
    )
    # In a list of another order nothing is absent.
    yield from _by_place(first, second) if is_moved and len(first) == len(second) else pairs


def _align_blocks[One](
    old: Sequence[One],
    new: Sequence[One],
    sides: tuple[range, range],
    form: Callable[[One], Hashable],
    kind: Callable[[One], Hashable],
) -> Iterator[Pair]:
    for one, other, is_same in _blocks(old, new, sides, form):
        if is_same:
            yield from zip(one, other, strict=True)
            continue
        for part, there, _ in _blocks(old, new, (one, other), kind):
            yield from _by_place(part, there)


def _blocks[One](
    old: Sequence[One],
    new: Sequence[One],
    sides: tuple[range, range],
    key: Callable[[One], Hashable],
) -> Iterator[tuple[range, range, bool]]:
    first, second = sides
    matcher = SequenceMatcher(
        None, [key(old[at]) for at in first], [key(new[at]) for at in second], autojunk=False
    )
    for tag, begin, end, start, stop in matcher.get_opcodes():
        yield first[begin:end], second[start:stop], tag == "equal"


def _by_place(first: range, second: range) -> Iterator[Pair]:
    yield from zip(first, second, strict=False)
    yield from ((at, None) for at in first[len(second) :])
    yield from ((None, at) for at in second[len(first) :])
