"""Decide whether one body continues another, by comparing small parts of both.

Two bodies of one conversation share their beginning and end, and differ in the middle, where the conversation grew.
Some differ elsewhere too: a clock in the system prompt, observations that were removed, screenshots dropped from the
front. The next body still contains the text that the last step added, so if the ends do not decide, samples of that text
are looked for. A body is the end of a longer value: nothing is copied to compare two of them.
"""

from collections.abc import Callable
from typing import NamedTuple

_STEP_BYTES = 64
"""First step from an end: bodies of other conversations mostly differ within it."""
_GROWTH = 8
_MOST_STEP_BYTES = 256 * 1024
_EXACT_BYTES = 32
"""Where a difference begins is known to this."""
SAMPLE_BYTES = 40
"""Long enough to occur in one conversation only."""
_SAMPLES = (1, 3, 5)
"""Offsets of the samples, in sixths of the added part."""
_MOST_MISSING = 1
_NEAR_BYTES = 64 * 1024


class Body(NamedTuple):
    """A body at the end of a value."""

    value: bytes
    at: int
    """Where it begins."""

    @property
    def size(self) -> int:
        """Its length."""
        return len(self.value) - self.at


class Span(NamedTuple):
    """A part of a body."""

    start: int
    end: int


class Ends(NamedTuple):
    """How much two bodies have in common at their start and at their end, in bytes."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Both."""
        return self.start + self.end


class Traces(NamedTuple):
    """Small parts of a body: a body that has none of them shares no end with it, and does not continue it.

    Most bodies are compared with conversations that they do not belong to, which these decide in two microseconds.
    """

    head: bytes
    tail: bytes
    """Both ends, as far as they are compared first."""
    samples: tuple[bytes, ...]
    """The first samples of what its step added: a body that continues it lacks fewer than these."""
    adds_nothing: bool
    """Whether its step added nothing that could be missing in another."""
    middle: bytes
    """A sample of the same from its middle."""
    middle_at: int
    middle_before_end: int
    """Where it is in the body, and in bytes from the end of the value."""

    @classmethod
    def of(cls, body: Body, added: Span) -> "Traces":
        """Take them from a body whose step added a part of it."""
        value, at = body
        middle = at + max(added.start, (added.start + added.end - SAMPLE_BYTES) // 2)
        starts = [_sample_start(added, sixths) for sixths in _SAMPLES[: _MOST_MISSING + 1]]
        return cls(
            *cls.ends_of(body),
            tuple(value[at + start : at + start + SAMPLE_BYTES] for start in starts),
            added.end <= 0 or added.start >= body.size,
            value[middle : middle + SAMPLE_BYTES],
            middle - at,
            len(value) - middle,
        )

    @staticmethod
    def ends_of(body: Body) -> tuple[bytes, bytes]:
        """Take the ends of a body."""
        value, at = body
        return value[at : at + _EXACT_BYTES], value[max(at, len(value) - _EXACT_BYTES) :]

    def may_be_in(self, body: Body, ends: tuple[bytes, bytes]) -> bool:
        """Say whether a body, of which the ends are given, may share an end with this one or continue it."""
        head, tail = ends
        if self.adds_nothing or head == self.head or tail == self.tail:
            return True
        if len(head) < _EXACT_BYTES or len(self.head) < _EXACT_BYTES:
            return True  # less than an end is compared then
        find, at = body.value.find, body.at
        return any(find(sample, at) >= 0 for sample in self.samples)


def common_ends(old: Body, new: Body) -> Ends:
    """Compare two bodies from both ends; the two parts never overlap in either."""
    most = min(len(old.value) - old.at, len(new.value) - new.at)
    start = common_start(old, new, most)
    return Ends(start, common_end(old.value, new.value, most - start))


def find_added(old: Body, added: Span, new: Body, ends: Ends) -> Span | None:
    """Find the part that a body adds to another; None if it does not continue that one.

    added: the part of the old body that its own step added; most of it must be in the new one.
    """
    missing, at, end = 0, ends.start, new.size - ends.end
    if added.end <= at or added.start >= old.size - ends.end:
        return Span(at, end)
    for sixths in _SAMPLES:
        place = _find(old, _sample_start(added, sixths), new, ends)
        if place is None:
            missing += 1
            if missing > _MOST_MISSING:
                return None
        elif place < end:
            at = max(at, min(place + SAMPLE_BYTES, end))
    return Span(at, end)


def _sample_start(added: Span, sixths: int) -> int:
    middle = added.start + (added.end - added.start) * sixths // 6
    return max(0, min(middle, added.end - SAMPLE_BYTES))


def _find(old: Body, start: int, new: Body, ends: Ends) -> int | None:
    """Find a sample of the old body in the new one."""
    end = start + SAMPLE_BYTES
    if end <= ends.start:
        return start
    if start >= old.size - ends.end:
        return start + new.size - old.size
    sample = old.value[old.at + start : old.at + end]
    # Mostly it has only been moved by a little.
    near, far = max(0, start - _NEAR_BYTES), end + _NEAR_BYTES
    place = new.value.find(sample, new.at + near, new.at + far)
    if place < 0 and (near or far < new.size):
        place = new.value.find(sample, new.at)
    return place - new.at if place >= 0 else None


def common_start(old: Body, new: Body, most: int) -> int:
    """Say how many bytes two bodies begin with alike, `most` at most."""
    view = memoryview(new.value)

    def same(at: int, size: int) -> bool:
        begin = new.at + at
        return old.value.startswith(view[begin : begin + size], old.at + at)

    return _follow(same, most)


def common_end(old: bytes, new: bytes, most: int) -> int:
    """Say how many bytes two values end with alike, `most` at most."""
    view = memoryview(new)

    def same(at: int, size: int) -> bool:
        end = len(new) - at
        return old.endswith(view[end - size : end], 0, len(old) - at)

    return _follow(same, most)


def _follow(same: Callable[[int, int], bool], most: int) -> int:
    """Say how far two bodies are the same: in growing steps up to a difference, then by halves."""
    at, step = 0, _STEP_BYTES
    if not same(0, min(_EXACT_BYTES, most)):  # as it is with most others
        return 0
    while at < most:
        size = min(step, most - at)
        if not same(at, size):
            break
        at += size
        step = min(_GROWTH * step, _MOST_STEP_BYTES)
    else:
        return at
    while size > _EXACT_BYTES:
        half = size // 2
        if same(at, half):
            at += half
            size -= half
        else:
            size = half
    return at
