"""Which earlier exchange a new one is stored on: the one before it in its conversation.

1. A base is picked by content, never because it came last: the agents of a run take turns. What is remembered of a
   conversation is its last value and its last keyframe (a lane); of each run the last LANES conversations.
2. A lane goes on with a body in which what its last step brought stands again. A body that only shares its beginning
   with a lane, as that of a second agent does, begins a lane of its own.
3. Each EVERY-th step of a lane, a keyframe, is stored on the keyframe before it, so that a reader has little to unpack
   first; where that one lies DEEP, on what a new conversation is stored on. So nothing lies deeper than MAX_HOPS.
4. The first step of a conversation is stored on an opening: the first exchange of any run with the same path and the
   same beginning and end. Openings are records of their own, so that runs can be deleted.
5. Values of a few KB stand on the keyframe of their lane, never on each other: at most two bases lie below them.
6. Small requests (reads, polls) have lanes of their own, found by host and path, and push no conversation out.

Bytes held are bounded, for a run and for the process; what falls out begins a new lane when it comes again. Nothing is
ever recovered: after a restart lanes begin anew. Belongs to the writer's thread.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from blake3 import blake3

from ...tape.exchange import Request
from .record_codec import MAX_HOPS, MAX_SEQ, OPENING_BYTES, Base
from .similarity import SAMPLE_BYTES, Body, Ends, Span, common_ends, find_fresh

LANES = 16
EVERY = 32
DEEP = MAX_HOPS - EVERY + 1
"""Most hops of a keyframe."""
MOST_VALUE_BYTES = 16 << 20
"""Larger values stand alone."""
MOST_RUN_BYTES = 32 << 20
MOST_BYTES = 96 << 20
_TALK_BYTES = 512
"""Bodies of requests from here on are conversations."""
_OPENING_BYTES = 2048
"""Shorter ones would save less than an opening takes."""
_MOST_OPENING_BYTES = 4 << 20
_LIGHT_BYTES = 64 * 1024
"""A base of this size is worth its time for the header fields alone."""
_NEARLY_ALL = 0.9
"""Part of a lane's last body that stands in one so that no other lane is looked at, if it goes on."""
_MUCH = 0.5
"""Part of a body that it has to have in common with a lane to be no opening."""
_BRIEF_BYTES = 8 * 1024
"""Smaller values have few bases below them: unpacking these would cost more than all else that is done to serve one."""
_BRIEF_DEEP = 1
_LITTLE = 0.1
"""Part of a body that a larger base has to have in common with it."""
_HEAD_BYTES = 48
_TAIL_BYTES = 64
_SHORT_BYTES = 16


_NOTHING = Span(0, 0)


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
    """Of an exchange: whether it is in the store, or in the transaction that is being made."""

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
"""Finds an opening by its name."""


@dataclass(slots=True, eq=False)
class _Lane:
    """A conversation."""

    where: tuple[str, str]
    """Host and path."""
    last: Stored
    keyframe: Stored
    steps: int = 1
    """Since the keyframe, that included."""
    brought: Span = _NOTHING
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
    size: int = 0


class Lanes:
    """The lanes of all runs that a process records."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_run_bytes: int = MOST_RUN_BYTES) -> None:
        self._most_bytes = most_bytes
        self._most_run_bytes = most_run_bytes
        self._runs: dict[int, _Run] = {}
        """The one that was written last at the end."""
        self.size = 0
        """Bytes held."""

    def clear(self) -> None:
        """Forget everything: a batch did not reach the disk."""
        self._runs.clear()
        self.size = 0

    def drop(self, run: int) -> None:
        """Forget a run that has ended."""
        if (known := self._runs.pop(run, None)) is not None:
            self.size -= known.size

    def place(
        self,
        run: int,
        stored: Stored,
        request: Request,
        find_opening: FindOpening,
        *,
        final: bool,
    ) -> Place:
        """Find a base for the value of an exchange.

        final: others may be stored on it; not where it is going to be written again.
        """
        seq = stored.base
        assert isinstance(seq, int)
        self._forget(run, seq)
        talks = len(request.body) >= _TALK_BYTES
        most = MOST_VALUE_BYTES if talks else _LIGHT_BYTES
        if len(stored.value) > most or seq > MAX_SEQ:
            return Place(stored, None)
        known = self._runs.pop(run, None) or _Run()
        self._runs[run] = known
        lanes = known.talks if talks else known.small
        decide = _talk if talks else _small
        place, lane, before = decide(lanes, stored, request, find_opening)
        if not final:
            return _on(stored, None) if place.opens else place
        if before is not None or len(lanes) == LANES:
            self._remove(known, lanes, before or lanes[0])
        lanes.append(lane)
        known.size += lane.size
        self.size += lane.size
        self._trim(known)
        return place

    def _forget(self, run: int, seq: int) -> None:
        """Let nothing stand on a value that is written anew."""
        if (known := self._runs.get(run)) is not None:
            for lanes in (known.talks, known.small):
                for lane in [one for one in lanes if seq in (one.last.base, one.keyframe.base)]:
                    self._remove(known, lanes, lane)

    def _remove(self, known: _Run, lanes: list[_Lane], lane: _Lane) -> None:
        lanes.remove(lane)
        known.size -= lane.size
        self.size -= lane.size

    def _trim(self, known: _Run) -> None:
        while known.size > self._most_run_bytes:
            self._remove_oldest(known)
        while self.size > self._most_bytes:
            number, oldest = next(iter(self._runs.items()))
            self._remove_oldest(oldest)
            if not oldest.size:
                del self._runs[number]

    def _remove_oldest(self, known: _Run) -> None:
        lanes = known.talks or known.small
        self._remove(known, lanes, lanes[0])


def opening_name(request: Request) -> bytes:
    """Give the name of the opening that a request shares with those that open alike."""
    path = f"{request.method} {request.host} {request.path}".encode("utf-8", "surrogatepass")
    parts = (path, request.body[:_HEAD_BYTES], request.body[-_TAIL_BYTES:])
    return blake3(b"\0".join(parts)).digest(OPENING_BYTES)


_Decision = tuple[Place, _Lane, _Lane | None]
"""The place of a value, its lane, and the lane that this one is instead of."""


def _talk(
    lanes: list[_Lane], stored: Stored, request: Request, find_opening: FindOpening
) -> _Decision:
    """Decide for a value whose request is a step of a conversation."""
    ranked: list[tuple[Ends, _Lane]] = []
    body = stored.body
    for lane in _likely_first(lanes, body):
        last = lane.last.body
        ends = common_ends(last, body)
        nearly_all = ends.size > _NEARLY_ALL * last.size
        if nearly_all and (brought := _brought(lane, body, ends)) is not None:
            return _next(lane, stored, brought, request, find_opening)
        ranked.append((ends, lane))
    ranked.sort(key=lambda one: -one[0].size)
    for ends, lane in ranked:
        if (brought := _brought(lane, body, ends)) is not None:
            return _next(lane, stored, brought, request, find_opening)
    place, ends = _begin(ranked[0] if ranked else None, stored, request, find_opening)
    lane = _Lane((request.host, request.path), stored, stored)
    lane.brought = Span(ends.start, body.size - ends.end)
    return place, lane, None


def _likely_first(lanes: list[_Lane], body: Body) -> Iterator[_Lane]:
    """Yield lanes from the last one on, but first those that a body probably goes on from.

    Comparing two bodies takes the longer the more they share, as all agents of a run may.
    """
    others = []
    for lane in reversed(lanes):
        if _is_likely(lane, body):
            yield lane
        else:
            others.append(lane)
    yield from others


def _is_likely(lane: _Lane, body: Body) -> bool:
    """Say whether what a lane's last step brought stands in a body where it stood, seen from either end."""
    old, (start, end) = lane.last.body, lane.brought
    at = old.at + max(start, (start + end - SAMPLE_BYTES) // 2)
    sample = old.value[at : at + SAMPLE_BYTES]
    near = body.at + at - old.at
    far = max(body.at, len(body.value) - len(old.value) + at)
    return len(sample) == SAMPLE_BYTES and (
        body.value.startswith(sample, near) or body.value.startswith(sample, far)
    )


def _brought(lane: _Lane, body: Body, ends: Ends) -> Span | None:
    """Find what a body brings that goes on from a lane; None where it does not."""
    brought = find_fresh(lane.last.body, lane.brought, body, ends)
    if brought is not None and brought.end - brought.start < _SHORT_BYTES:  # the same again
        return Span(*(min(place, body.size) for place in lane.brought))
    return brought


def _small(
    lanes: list[_Lane], stored: Stored, request: Request, find_opening: FindOpening
) -> _Decision:
    """Decide for a value whose request has no body to speak of."""
    where = request.host, request.path
    for lane in reversed(lanes):
        if lane.where == where:
            return _next(lane, stored, _NOTHING, request, find_opening)
    near = next((lane for lane in reversed(lanes) if lane.where[0] == request.host), None)
    place = _on(stored, _shallow([near.last, near.keyframe], stored) if near is not None else None)
    return place, _Lane(where, stored, stored), None


def _next(
    lane: _Lane, stored: Stored, brought: Span, request: Request, find_opening: FindOpening
) -> _Decision:
    """Put a value behind the last one of its lane."""
    if lane.steps < EVERY:
        place = _on(stored, lane.keyframe if _is_brief(stored) else lane.last)
        return place, _Lane(lane.where, stored, lane.keyframe, lane.steps + 1, brought), lane
    on = _shallow([lane.keyframe], stored)
    if on is None:
        on = find_opening(opening_name(request))
    return _on(stored, on), _Lane(lane.where, stored, stored, 1, brought), lane


def _begin(
    nearest: tuple[Ends, _Lane] | None,
    stored: Stored,
    request: Request,
    find_opening: FindOpening,
) -> tuple[Place, Ends]:
    """Find a base for the first value of a conversation, and what it has in common with that."""
    body = stored.body
    choices: list[tuple[Ends, Stored]] = []
    if nearest is not None:
        shallow = _shallow([nearest[1].last, nearest[1].keyframe], stored)
        if shallow is not None:
            choices.append((common_ends(shallow.body, body), shallow))
    if body.size >= _OPENING_BYTES and len(stored.value) <= _MOST_OPENING_BYTES:
        name = opening_name(request)
        if (opening := find_opening(name)) is not None:
            choices.append((common_ends(opening.body, body), opening))
        elif not choices or choices[0][0].size < _MUCH * body.size:
            return _open(stored, name), Ends(0, 0)
    ends, on = max(choices, key=lambda one: one[0].size, default=(Ends(0, 0), None))
    if on is not None and ends.size < _LITTLE * body.size and len(on.value) > _LIGHT_BYTES:
        ends, on = Ends(0, 0), None
    return _on(stored, on), ends


def _open(stored: Stored, name: bytes) -> Place:
    """Make a value an opening, and store it on that."""
    opening = Stored(name, stored.value, stored.body_at)
    return _on(stored, opening)._replace(opens=True)


def _shallow(choices: list[Stored], stored: Stored) -> Stored | None:
    """Find the first that a value may be stored on as a keyframe."""
    deep = _BRIEF_DEEP if _is_brief(stored) else DEEP
    return next((one for one in choices if one.hops < deep), None)


def _is_brief(stored: Stored) -> bool:
    return len(stored.value) < _BRIEF_BYTES


def _on(stored: Stored, on: Stored | None) -> Place:
    stored.hops = on.hops + 1 if on is not None else 0
    return Place(stored, on)
