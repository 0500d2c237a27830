"""Masks of `ignore[].regex`: parts of texts, found by regular expressions, that do not count in matching.

A match, or where the pattern has a first group that took part in it, that group, is masked; what is empty is not.
What is left of a text is the list of its pieces, one more than were masked: so a masked place counts by being there,
and what a text says is never taken for one.

Patterns are searched as written, in texts as a person would read them, escapes and encodings undone; but in a path as
it is sent, where an encoded slash is none.

Bounded: one search takes time by the length of the text alone (RE2), but it may read on to the end of the text for
each thing it finds. A pattern that takes more than `LIMIT_S` of one request masks nothing in it, and nothing in the
rest of the run: requests then differ that would have been the same, and the run says why.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...config.values import compile_regex
from .json import MAX_DEPTH, Parts, Swap, text_of

LIMIT_S = 1.0
"""Longest that the patterns look at one request, in seconds of their thread: how busy the machine is does not count."""

Clock = Callable[[], float]
"""Seconds; `time.thread_time` where what is asked now is compared. Without one there is no limit."""


def _no_clock() -> float:
    return 0.0


class Pattern:
    """One pattern of a run."""

    __slots__ = ("clock", "find", "group", "ran_out", "text")

    def __init__(self, text: str, clock: Clock | None = None) -> None:
        """Compile it.

        Raises: ValueError for one that is none.
        """
        compiled = compile_regex(text)
        self.text = text
        self.clock = clock or _no_clock
        self.find = compiled.finditer
        self.group = min(1, compiled.groups)
        self.ran_out = False
        """It took too long once, and masks nothing any more."""


Patterns = tuple[Pattern, ...]


def slow(patterns: Patterns) -> list[str]:
    """Say for each pattern that ran out of time what that means; one line each."""
    return [
        f"the ignore pattern {one.text!r} took longer than {LIMIT_S:g} s of one request and masks nothing any more"
        for one in patterns
        if one.ran_out
    ]


MASK = "\x00*"
"""Stands for what was masked where a text is one; a NUL of the text itself stands twice then."""


def until(patterns: Patterns) -> float:
    """Give when the patterns have looked at one request for long enough, by their clock."""
    return patterns[0].clock() + LIMIT_S if patterns else 0.0


def what_is_left(text: str, patterns: Patterns, deadline: float | None = None) -> tuple[str, ...]:
    """Give the pieces of a text between its masked parts: the text alone where there is none.

    deadline: from `until`, where several texts are one request's.
    """
    if deadline is None:
        deadline = until(patterns)
    # Halves of surrogate pairs are no characters, so no pattern matches one, or a part of one.
    told = text.encode("utf-8", "surrogatepass")
    spans: list[tuple[int, int]] = []
    for pattern in patterns:
        if not pattern.ran_out:
            spans += _spans(told, pattern, deadline)
    if not spans:
        return (text,)
    spans.sort()
    pieces, at, masked = [], 0, 0
    for start, end in spans:
        if start >= masked:
            pieces.append(told[at:start])
        # Parts that overlap are one.
        at = masked = max(masked, end)
    pieces.append(told[at:])
    return tuple(piece.decode("utf-8", "surrogatepass") for piece in pieces)


def _spans(text: bytes, pattern: Pattern, deadline: float) -> list[tuple[int, int]]:
    spans = []
    for found in pattern.find(text):
        start, end = found.span(pattern.group)
        if start < end:
            spans.append((start, end))
        if pattern.clock() > deadline:
            pattern.ran_out = True
            return []
    return spans


def mask_text(text: str, patterns: Patterns, deadline: float | None = None) -> str:
    """Give a text with its masked parts as markers."""
    left = what_is_left(text, patterns, deadline)
    return MASK.join(piece.replace("\x00", "\x00\x00") for piece in left)


def mask_bytes(body: bytes, patterns: Patterns, deadline: float | None = None) -> bytes:
    """Give a body with its masked parts as markers; what is no UTF-8 in it matches no character that is."""
    masked = mask_text(body.decode("utf-8", "surrogateescape"), patterns, deadline)
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
    deadline = until(patterns)
    left_out = frozenset(place for place, value in known.items() if value is None)
    for holder, key, value in _strings(tree, exact, left_out):
        text = known.get((id(holder), key), value)
        if isinstance(text, str):
            left = what_is_left(text, patterns, deadline)
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
