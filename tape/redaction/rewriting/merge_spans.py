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
    after, found: the same with all that a search found replaced, and where that is. Another length than that of `before`
        is that of a body whose coding was undone: then all is new.
    """
    if len(before) != len(after):
        return Merged(after, tuple(found), tuple(found))
    stay, fresh = list(old), list[Span]()
    parts = bytearray(before)
    for one in found:
        start, end = one.at, one.at + one.size
        touched = [span for span in stay if span.at < end and start < span.at + span.size]
        covered = sum(min(end, s.at + s.size) - max(start, s.at) for s in touched)
        if covered >= one.size or before[start:end] == after[start:end]:
            continue
        parts[start:end] = after[start:end]
        stay = [span for span in stay if span not in touched]
        if fresh and start < fresh[-1].at + fresh[-1].size:  # one placeholder touches both
            touched.append(fresh.pop())
        first = min([start, *(span.at for span in touched)])
        last = max([end, *(span.at + span.size for span in touched)])
        fresh.append(Span(first, last - first, one.kind))
    spans = sorted([*stay, *fresh])
    return Merged(bytes(parts), tuple(spans), tuple(fresh))
