"""Which earlier exchange a new one is stored on: the one before it in its conversation.

1. A base is picked by content, never because it came last: the agents of a run take turns. What is remembered of a
   conversation is its last value and its last keyframe (a lane); of each run the last LANES conversations.
2. A lane goes on with a body in which what its last step brought stands again. A body that only shares its beginning
   with a lane, as that of a second agent does, begins a lane of its own.
3. Each EVERY-th step of a lane, a keyframe, is stored on the keyframe before it, so that a reader has little to unpack
   first; where that one lies DEEP, on what a new conversation is stored on. So nothing lies deeper than MAX_HOPS.
4. The first step of a conversation is stored on an opening: the first exchange of any run with the same path and the
   same beginning and end. Openings are records of their own, so that runs can be deleted.
5. Small requests (reads, polls) have lanes of their own, found by host and path, and push no conversation out.

Bytes held are bounded, for a run and for the process; what falls out begins a new lane when it comes again. Nothing is
ever recovered: after a restart lanes begin anew. Belongs to the writer's thread.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from blake3 import blake3

from ..tape.model import Request
from .alike import Body, Ends, Span, common_ends, find_fresh
from .bodies import MAX_HOPS, MAX_SEQ, Base, digest

LANES = 8
EVERY = 32
DEEP = MAX_HOPS - EVERY + 1
"""Most hops of a keyframe."""
MOST_VALUE_BYTES = 16 << 20
"""Larger values stand alone."""
MOST_RUN_BYTES = 32 << 20
MOST_BYTES = 96 << 20
OPENING_KEY_BYTES = 8
_TALK_BYTES = 512
"""Bodies of requests from here on are conversations."""
_OPENING_BYTES = 2048
"""Shorter ones would save less than an opening takes."""
_MOST_OPENING_BYTES = 4 << 20
_LIGHT_BYTES = 64 * 1024
"""A base of this size is worth its time for the header fields alone."""
_MUCH = 0.5
"""Part of a body that it has to have in common with a lane to be no opening."""
_LITTLE = 0.1
"""Part of a body that a larger base has to have in common with it."""
_HEAD_BYTES = 48
_TAIL_BYTES = 64
_SHORT_BYTES = 16


@dataclass(slots=True, eq=False)
class Stored:
    """A value that others may be stored on."""

    base: Base
    """What they call it."""
    value: bytes
    body_at: int
    """Where the body of its request begins; it goes to the end."""
    hops: int = 0
    written: bool = False
    """Whether it is in the store, or in the transaction that is being made."""

    @property
    def body(self) -> Body:
        """The body of its request."""
        return Body(self.value, self.body_at)


class Place(NamedTuple):
    """Where a value is stored."""

    stored: Stored
    """Itself; set `written` when it is."""
    on: Stored | None
    """Its base; None where it stands alone."""
    opens: bool = False
    """Whether `on` is an opening that is yet to be written, of the same value."""


FindOpening = Callable[[bytes], Stored | None]
"""Finds an opening by its key."""


@dataclass(slots=True, eq=False)
class _Lane:
    """A conversation."""

    where: tuple[str, str]
    """Host and path."""
    last: Stored
    keyframe: Stored
    steps: int = 1
    """Since the keyframe, that included."""
    brought: Span = Span(0, 0)
    """Of the last body: what its step brought."""

    @property
    def size(self) -> int:
        apart = 0 if self.keyframe is self.last else len(self.keyframe.value)
        return len(self.last.value) + apart


@dataclass(slots=True, eq=False)
class _Run:
    talks: list[_Lane] = field(default_factory=list)
    """Of conversations, the one that spoke last at the end."""
    small: list[_Lane] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(lane.size for lane in (*self.talks, *self.small))


class Lanes:
    """The lanes of all runs that a process records."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_run_bytes: int = MOST_RUN_BYTES) -> None:
        self._most_bytes = most_bytes
        self._most_run_bytes = most_run_bytes
        self._runs: dict[int, _Run] = {}
        """The one that was written last at the end."""

    @property
    def size(self) -> int:
        """Bytes held."""
        return sum(run.size for run in self._runs.values())

    def clear(self) -> None:
        """Forget everything: a batch did not reach the disk."""
        self._runs.clear()

    def drop(self, run: int) -> None:
        """Forget a run that has ended."""
        self._runs.pop(run, None)

    def forget(self, run: int, seq: int) -> None:
        """Forget a value that is written anew."""
        if (known := self._runs.get(run)) is not None:
            for lanes in (known.talks, known.small):
                lanes[:] = [one for one in lanes if seq not in (one.last.base, one.keyframe.base)]

    def place(
        self,
        run: int,
        seq: int,
        request: Request,
        value: bytes,
        find_opening: FindOpening,
        *,
        final: bool,
    ) -> Place:
        """Find a base for a value.

        value: ends with the request's body.
        final: others may be stored on it; not where it is going to be written again.
        """
        stored = Stored(seq, value, len(value) - len(request.body))
        talks = len(request.body) >= _TALK_BYTES
        if len(value) > (MOST_VALUE_BYTES if talks else _LIGHT_BYTES) or seq > MAX_SEQ:
            return Place(stored, None)
        known = self._runs.pop(run, None) or _Run()
        self._runs[run] = known
        lanes = known.talks if talks else known.small
        decide = _talk if talks else _small
        place, lane, before = decide(lanes, stored, request, find_opening)
        if not final:
            return Place(stored, None) if place.opens else place
        if before is not None:
            lanes.remove(before)
        lanes.append(lane)
        del lanes[:-LANES]
        self._trim(known)
        return place

    def _trim(self, known: _Run) -> None:
        while known.size > self._most_run_bytes:
            _drop_oldest(known)
        while self.size > self._most_bytes:
            number, oldest = next(iter(self._runs.items()))
            _drop_oldest(oldest)
            if not oldest.size:
                del self._runs[number]


def opening_key(request: Request) -> bytes:
    """Give the key under which requests share an opening."""
    path = f"{request.method} {request.host} {request.path}".encode("utf-8", "surrogatepass")
    parts = (path, request.body[:_HEAD_BYTES], request.body[-_TAIL_BYTES:])
    return blake3(b"\0".join(parts)).digest(OPENING_KEY_BYTES)


def _drop_oldest(run: _Run) -> None:
    del (run.talks or run.small)[0]


_Decision = tuple[Place, _Lane, _Lane | None]
"""The place of a value, its lane, and the lane that this one is instead of."""


def _talk(
    lanes: list[_Lane], stored: Stored, request: Request, find_opening: FindOpening
) -> _Decision:
    """Decide for a value whose request is a step of a conversation."""
    ranked = sorted(
        ((common_ends(lane.last.body, stored.body), lane) for lane in reversed(lanes)),
        key=lambda one: -one[0].size,
    )
    for ends, lane in ranked:
        brought = find_fresh(lane.last.body, lane.brought, stored.body, ends)
        if brought is not None:
            if brought.end - brought.start < _SHORT_BYTES:  # the same again
                brought = Span(*(min(place, stored.body.size) for place in lane.brought))
            return _next(lane, stored, brought, find_opening(opening_key(request)))
    place, ends = _begin(ranked[0] if ranked else None, stored, request, find_opening)
    lane = _Lane((request.host, request.path), stored, stored)
    lane.brought = Span(ends.start, stored.body.size - ends.end)
    return place, lane, None


def _small(
    lanes: list[_Lane], stored: Stored, request: Request, _: FindOpening
) -> _Decision:
    """Decide for a value whose request has no body to speak of."""
    where = request.host, request.path
    for lane in reversed(lanes):
        if lane.where == where:
            return _next(lane, stored, Span(0, 0), None)
    near = next((lane for lane in reversed(lanes) if lane.where[0] == request.host), None)
    place = _on(stored, _shallow(near) if near is not None else None)
    return place, _Lane(where, stored, stored), None


def _next(lane: _Lane, stored: Stored, brought: Span, opening: Stored | None) -> _Decision:
    """Put a value behind the last one of its lane."""
    if lane.steps < EVERY:
        place = _on(stored, lane.last)
        return place, _Lane(lane.where, stored, lane.keyframe, lane.steps + 1, brought), lane
    place = _on(stored, lane.keyframe if lane.keyframe.hops < DEEP else opening)
    return place, _Lane(lane.where, stored, stored, 1, brought), lane


def _begin(
    nearest: tuple[Ends, _Lane] | None,
    stored: Stored,
    request: Request,
    find_opening: FindOpening,
) -> tuple[Place, Ends]:
    """Find a base for the first value of a conversation, and what it has in common with that."""
    body = stored.body
    choices: list[tuple[Ends, Stored]] = []
    if nearest is not None and (shallow := _shallow(nearest[1])) is not None:
        choices.append((common_ends(shallow.body, body), shallow))
    if _OPENING_BYTES <= body.size and len(stored.value) <= _MOST_OPENING_BYTES:
        key = opening_key(request)
        if (opening := find_opening(key)) is not None:
            choices.append((common_ends(opening.body, body), opening))
        elif not choices or choices[0][0].size < _MUCH * body.size:
            return _open(stored, key), Ends(0, 0)
    ends, on = max(choices, key=lambda one: one[0].size, default=(Ends(0, 0), None))
    if on is not None and ends.size < _LITTLE * body.size and len(on.value) > _LIGHT_BYTES:
        ends, on = Ends(0, 0), None
    return _on(stored, on), ends


def _open(stored: Stored, key: bytes) -> Place:
    """Make a value an opening, and store it on that."""
    opening = Stored(key + digest(stored.value), stored.value, stored.body_at)
    return _on(stored, opening)._replace(opens=True)


def _shallow(lane: _Lane) -> Stored | None:
    """Give what a keyframe may be stored on."""
    return next((one for one in (lane.last, lane.keyframe) if one.hops < DEEP), None)


def _on(stored: Stored, on: Stored | None) -> Place:
    stored.hops = on.hops + 1 if on is not None else 0
    return Place(stored, on)
