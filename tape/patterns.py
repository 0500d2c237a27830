"""Places that `ignore[].regex` masks: parts of texts, found by regular expressions.

A match, or where the pattern has a first group that took part in it, that group, is masked; what is empty is not.
What is left of a text is the list of its pieces, one more than were masked: so a masked place counts by being there,
and what a text says is never taken for one.

Patterns are searched as written, in texts as a person would read them, escapes and encodings undone; but in a path as
it is sent, where an encoded slash is none.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .json_form import MAX_DEPTH, Parts, Swap, text_of

Patterns = tuple[re.Pattern[str], ...]

MASK = "\x00*"
"""Stands for what was masked where a text is one; a NUL of the text itself stands twice then."""


def what_is_left(text: str, patterns: Patterns) -> tuple[str, ...]:
    """Give the pieces of a text between its masked parts: the text alone where there is none."""
    spans: list[tuple[int, int]] = []
    for pattern in patterns:
        group = min(1, pattern.groups)
        for found in pattern.finditer(text):
            start, end = found.span(group)
            if start < end:
                spans.append((start, end))
    if not spans:
        return (text,)
    spans.sort()
    pieces, at, until = [], 0, 0
    for start, end in spans:
        if start >= until:
            pieces.append(text[at:start])
        # Parts that overlap are one.
        at = until = max(until, end)
    pieces.append(text[at:])
    return tuple(pieces)


def mask_text(text: str, patterns: Patterns) -> str:
    """Give a text with its masked parts as marks."""
    return MASK.join(piece.replace("\x00", "\x00\x00") for piece in what_is_left(text, patterns))


def mask_bytes(body: bytes, patterns: Patterns) -> bytes:
    """Give a body with its masked parts as marks; what is no UTF-8 in it matches no character that is."""
    masked = mask_text(body.decode("utf-8", "surrogateescape"), patterns)
    return masked.encode("utf-8", "surrogateescape")


def find_swaps(
    tree: Any, exact: bool, patterns: Patterns, before: Sequence[Swap]
) -> tuple[Swap, ...]:
    """Give what is compared as something else in a JSON tree.

    before: what is swapped already; given again, with its parts masked too.
    Raises: RecursionError where the tree is nested too deep.
    """
    known = {(id(swap.holder), swap.key): swap.value for swap in before}
    found = dict(zip(known, before, strict=True))
    left_out = frozenset(place for place, value in known.items() if value is None)
    for holder, key, value in _strings(tree, exact, left_out):
        text = known.get((id(holder), key), value)
        if isinstance(text, str):
            left = what_is_left(text, patterns)
            if len(left) > 1:
                found[id(holder), key] = Swap(holder, key, Parts(left))
    return tuple(found.values())


def _strings(
    tree: Any, exact: bool, left_out: frozenset[tuple[int, Any]]
) -> Iterator[tuple[Any, Any, str]]:
    """Give every string value with what holds it; none inside what is left out."""
    waiting: list[tuple[Any, Any, Any, int]] = [(None, None, tree, 0)]
    while waiting:
        holder, key, value, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                raise RecursionError("nested too deep")
            members = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [
                (value, name, item, depth + 1)
                for name, item in members
                if (id(value), name) not in left_out
            ]
        else:
            text = text_of(value, exact)
            if text is not None:
                yield holder, key, text
