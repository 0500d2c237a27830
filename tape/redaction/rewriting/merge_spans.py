"""Merge what a search finds in a stored text with the placeholders that stand there already.

A placeholder looks like the secret that it replaces, so a search finds it again. It stays. Only what reaches beyond it
is new, and is replaced as a whole.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..search import Span


class Merged(NamedTuple):
    """A stored text under the rules of now."""

    data: bytes
    spans: tuple[Span, ...]
    """Of all placeholders in it, in order."""
    fresh: tuple[Span, ...]
    """Of those that were not there before."""


def merge(before: bytes, old: Iterable[Span], after: bytes, found: Sequence[Span]) -> Merged:
    """Give a stored text with those placeholders that are new.

    before, old: the text as it is stored, and where placeholders stand in it, in order.
    after, found: the same with all that a search found replaced, and where that is, in order. Another length than that of `before`
        is that of a body whose coding was undone: then all is new.
    Both are gone through once, side by side: a text may have very many of them.
    """
    if len(before) != len(after):
        return Merged(after, tuple(found), tuple(found))
    old = sorted(old)
    stay, fresh, same, at = list[Span](), list[Span](), list[Span](), 0
    parts = bytearray(before)
    for one in found:
        start, end = one.at, one.at + one.size
        passed = at
        while passed < len(old) and old[passed].at + old[passed].size <= start:
            passed += 1
        stay += old[at:passed]
        at = upto = passed
        while upto < len(old) and old[upto].at < end:
            upto += 1
        touched = old[at:upto]
        covered = sum(min(end, s.at + s.size) - max(start, s.at) for s in touched)
        if covered >= one.size:
            continue
        if before[start:end] == after[start:end]:
            if not touched:
                same.append(one)
            continue
        parts[start:end] = after[start:end]
        at = upto
        if fresh and start < fresh[-1].at + fresh[-1].size:  # one placeholder touches both
            touched.append(fresh.pop())
        first = min([start, *(span.at for span in touched)])
        last = max([end, *(span.at + span.size for span in touched)])
        coded = "" if touched else one.coded
        fresh.append(Span(first, last - first, one.kind, coded))
    # One piece of a value may have nothing that is replaced, as its sign between two words.
    spans = sorted([*stay, *old[at:], *fresh, *(same if fresh else ())])
    return Merged(bytes(parts), tuple(spans), tuple(fresh))
