"""Choose the delta base of a new exchange: mostly the exchange before it in the same conversation.

1. A base is chosen by content, not by time, because the agents of a run take turns. A delta chain is what is remembered
   of one conversation: its last value and its last keyframe. The last MAX_CHAINS conversations of a run are remembered.
2. A body continues a chain if it contains the text that the chain's last step added. A body that only shares its
   beginning with a chain, such as the first request of a second agent, starts a chain of its own.
3. Every KEYFRAME_INTERVAL-th step of a chain is a keyframe. Its base is the keyframe before it, so that a reader has few
   records to unpack. If that keyframe already has MAX_KEYFRAME_DEPTH, the base is a shared prefix. So no record has a
   depth above MAX_DEPTH.
4. The base of a conversation's first step is a shared prefix: the first exchange of any run with the same path and the
   same beginning and end. Shared prefixes are records of their own, so that runs can be deleted independently.
5. The base of a value of a few KB is the keyframe of its chain, so its depth is at most 2.
6. Small requests (reads, polls) have chains of their own, found by host and path. They never evict a conversation.

Memory is bounded, for a run and for the process. A chain that was evicted starts anew when its conversation continues,
and so do all chains after a restart: nothing needs recovery. Belongs to the writer's thread.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from blake3 import blake3

from ...tape.exchange import Request
from .is_continuation import SAMPLE_BYTES, Body, Ends, Span, Traces, common_ends, find_added
from .record_codec import MAX_DEPTH, MAX_SEQ, PREFIX_NAME_BYTES, BaseKey

MAX_CHAINS = 16
KEYFRAME_INTERVAL = 32
MAX_KEYFRAME_DEPTH = MAX_DEPTH - KEYFRAME_INTERVAL + 1
"""Largest depth of a keyframe."""
MOST_VALUE_BYTES = 16 << 20
"""Larger values have no delta base."""
MOST_RUN_BYTES = 32 << 20
MOST_BYTES = 96 << 20
_CONVERSATION_BYTES = 512
"""Requests with a body of this size are steps of a conversation."""
_MIN_PREFIX_BYTES = 2048
"""Shorter ones would save less than a shared prefix takes."""
_MAX_PREFIX_BYTES = 4 << 20
_LIGHT_BYTES = 64 * 1024
"""A base of this size is worth its time even if only header fields are shared."""
_NEARLY_ALL = 0.9
"""Share of a chain's last body in a new body from which on no other chain is tried, if the body continues the chain."""
_MUCH = 0.5
"""Share of a body in common with a chain from which on no shared prefix is made."""
_BRIEF_BYTES = 8 * 1024
"""Smaller values have a small depth: unpacking more bases would cost more than everything else in serving one."""
_MAX_BRIEF_DEPTH = 1
_LITTLE = 0.1
"""Part of a body that a larger base has to have in common with it."""
_HEAD_BYTES = 48
_TAIL_BYTES = 64
_SHORT_BYTES = 16


_NOTHING = Span(0, 0)
_NO_ENDS = Ends(0, 0)


@dataclass(slots=True, eq=False)
class Stored:
    """A value that may be a delta base."""

    key: BaseKey
    """Its seq, or the name of a shared prefix: what a delta against it names."""
    value: bytes
    body_at: int
    """Where the body of its request begins; it goes to the end."""
    depth: int = 0
    written: bool = False
    """Of an exchange: whether it is in the store, or in the transaction that is being made."""

    @property
    def body(self) -> Body:
        """The body of its request."""
        return Body(self.value, self.body_at)


class Placement(NamedTuple):
    """How a value is stored."""

    stored: Stored
    """Itself; set `written` when it is."""
    base: Stored | None
    """Its delta base; None if it is stored whole."""
    makes_prefix: bool = False
    """Whether `base` is a new shared prefix, of the same value, that is yet to be written."""


FindSharedPrefix = Callable[[bytes], Stored | None]
"""Finds a shared prefix by its name."""


@dataclass(slots=True, eq=False)
class _Chain:
    """One conversation, or one endpoint of small requests."""

    where: tuple[str, str]
    """Host and path."""
    last: Stored
    keyframe: Stored
    steps: int = 1
    """Steps since the keyframe, including it."""
    added: Span = _NOTHING
    """The part of the last body that its step added."""
    traces: "Traces" = field(init=False)
    """Of the last body, for a quick no."""

    def __post_init__(self) -> None:
        self.traces = Traces.of(self.last.body, self.added)

    @property
    def size(self) -> int:
        apart = 0 if self.keyframe is self.last else len(self.keyframe.value)
        return len(self.last.value) + apart


@dataclass(slots=True, eq=False)
class _Run:
    conversations: list[_Chain] = field(default_factory=list)
    """Chains of conversations; the one that continued last is at the end."""
    small: list[_Chain] = field(default_factory=list)
    size: int = 0


class DeltaChains:
    """The delta chains of all runs that a process records."""

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
        find_shared_prefix: FindSharedPrefix,
        *,
        final: bool,
    ) -> Placement:
        """Find a base for the value of an exchange.

        final: others may be stored on it; not where it is going to be written again.
        """
        seq = stored.key
        assert isinstance(seq, int)
        self._forget(run, seq)
        is_conversation = len(request.body) >= _CONVERSATION_BYTES
        most = MOST_VALUE_BYTES if is_conversation else _LIGHT_BYTES
        if len(stored.value) > most or seq > MAX_SEQ:
            return Placement(stored, None)
        known = self._runs.pop(run, None) or _Run()
        self._runs[run] = known
        chains = known.conversations if is_conversation else known.small
        decide = _place_conversation if is_conversation else _place_small
        place, chain, before = decide(chains, stored, request, find_shared_prefix)
        if not final:
            return _placed_on(stored, None) if place.makes_prefix else place
        if before is not None or len(chains) == MAX_CHAINS:
            self._remove(known, chains, before or chains[0])
        chains.append(chain)
        known.size += chain.size
        self.size += chain.size
        self._trim(known)
        return place

    def _forget(self, run: int, seq: int) -> None:
        """Use a value that is written again as a delta base no more."""
        if (known := self._runs.get(run)) is not None:
            for chains in (known.conversations, known.small):
                for chain in [one for one in chains if seq in (one.last.key, one.keyframe.key)]:
                    self._remove(known, chains, chain)

    def _remove(self, known: _Run, chains: list[_Chain], chain: _Chain) -> None:
        chains.remove(chain)
        known.size -= chain.size
        self.size -= chain.size

    def _trim(self, known: _Run) -> None:
        while known.size > self._most_run_bytes:
            self._remove_oldest(known)
        while self.size > self._most_bytes:
            number, oldest = next(iter(self._runs.items()))
            self._remove_oldest(oldest)
            if not oldest.size:
                del self._runs[number]

    def _remove_oldest(self, known: _Run) -> None:
        chains = known.conversations or known.small
        self._remove(known, chains, chains[0])


def shared_prefix_name(request: Request) -> bytes:
    """Give the name of the shared prefix for requests with the same method, host, path, beginning and end."""
    path = f"{request.method} {request.host} {request.path}".encode("utf-8", "surrogatepass")
    parts = (path, request.body[:_HEAD_BYTES], request.body[-_TAIL_BYTES:])
    return blake3(b"\0".join(parts)).digest(PREFIX_NAME_BYTES)


_Decision = tuple[Placement, _Chain, _Chain | None]
"""The placement of a value, its chain, and the chain that this one replaces."""


def _place_conversation(
    chains: list[_Chain], stored: Stored, request: Request, find_shared_prefix: FindSharedPrefix
) -> _Decision:
    """Place a value whose request is a step of a conversation."""
    ranked: list[tuple[Ends, _Chain]] = []
    nearest: tuple[Ends, _Chain] | None = None
    body = stored.body
    seen = Traces.ends_of(body)
    for chain in _likely_first(chains, body):
        if not chain.traces.may_be_in(body, seen):
            nearest = nearest or (_NO_ENDS, chain)
            continue
        last = chain.last.body
        ends = common_ends(last, body)
        nearly_all = ends.size > _NEARLY_ALL * last.size
        if nearly_all and (added := _find_added(chain, body, ends)) is not None:
            return _extend(chain, stored, added, request, find_shared_prefix)
        ranked.append((ends, chain))
    ranked.sort(key=lambda one: -one[0].size)
    for ends, chain in ranked:
        if (added := _find_added(chain, body, ends)) is not None:
            return _extend(chain, stored, added, request, find_shared_prefix)
    place, ends = _start(ranked[0] if ranked else nearest, stored, request, find_shared_prefix)
    added = Span(ends.start, body.size - ends.end)
    return place, _Chain((request.host, request.path), stored, stored, added=added), None


def _likely_first(chains: list[_Chain], body: Body) -> Iterator[_Chain]:
    """Yield chains, those that a body probably continues first, else the latest first.

    Comparing two bodies takes the longer the more they share, as all agents of a run may.
    """
    others = []
    for chain in reversed(chains):
        if _is_likely(chain, body):
            yield chain
        else:
            others.append(chain)
    yield from others


def _is_likely(chain: _Chain, body: Body) -> bool:
    """Say whether a body contains the text that a chain's last step added at its old offset, counted from either end."""
    traces = chain.traces
    sample, value = traces.middle, body.value
    return len(sample) == SAMPLE_BYTES and (
        value.startswith(sample, body.at + traces.middle_at)
        or value.startswith(sample, max(body.at, len(value) - traces.middle_before_end))
    )


def _find_added(chain: _Chain, body: Body, ends: Ends) -> Span | None:
    """Find the part that a body adds to a chain; None if it does not continue the chain."""
    added = find_added(chain.last.body, chain.added, body, ends)
    if added is not None and added.end - added.start < _SHORT_BYTES:  # the same again
        return Span(*(min(place, body.size) for place in chain.added))
    return added


def _place_small(
    chains: list[_Chain], stored: Stored, request: Request, find_shared_prefix: FindSharedPrefix
) -> _Decision:
    """Place a value whose request has a small body or none."""
    where = request.host, request.path
    for chain in reversed(chains):
        if chain.where == where:
            return _extend(chain, stored, _NOTHING, request, find_shared_prefix)
    near = next((chain for chain in reversed(chains) if chain.where[0] == request.host), None)
    place = _placed_on(
        stored, _shallow([near.last, near.keyframe], stored) if near is not None else None
    )
    return place, _Chain(where, stored, stored), None


def _extend(
    chain: _Chain,
    stored: Stored,
    added: Span,
    request: Request,
    find_shared_prefix: FindSharedPrefix,
) -> _Decision:
    """Continue a chain with a value."""
    if chain.steps < KEYFRAME_INTERVAL:
        place = _placed_on(stored, chain.keyframe if _is_brief(stored) else chain.last)
        return place, _Chain(chain.where, stored, chain.keyframe, chain.steps + 1, added), chain
    base = _shallow([chain.keyframe], stored)
    if base is None:
        base = find_shared_prefix(shared_prefix_name(request))
    return _placed_on(stored, base), _Chain(chain.where, stored, stored, 1, added), chain


def _start(
    nearest: tuple[Ends, _Chain] | None,
    stored: Stored,
    request: Request,
    find_shared_prefix: FindSharedPrefix,
) -> tuple[Placement, Ends]:
    """Find a delta base for the first value of a conversation, and the ends that the two share."""
    body = stored.body
    choices: list[tuple[Ends, Stored]] = []
    if nearest is not None:
        shallow = _shallow([nearest[1].last, nearest[1].keyframe], stored)
        if shallow is not None:
            choices.append((common_ends(shallow.body, body), shallow))
    if body.size >= _MIN_PREFIX_BYTES and len(stored.value) <= _MAX_PREFIX_BYTES:
        name = shared_prefix_name(request)
        if (prefix := find_shared_prefix(name)) is not None:
            choices.append((common_ends(prefix.body, body), prefix))
        elif not choices or choices[0][0].size < _MUCH * body.size:
            return _make_prefix(stored, name), Ends(0, 0)
    ends, base = max(choices, key=lambda one: one[0].size, default=(Ends(0, 0), None))
    if base is not None and ends.size < _LITTLE * body.size and len(base.value) > _LIGHT_BYTES:
        ends, base = Ends(0, 0), None
    return _placed_on(stored, base), ends


def _make_prefix(stored: Stored, name: bytes) -> Placement:
    """Make a value a shared prefix, and store the value as a delta against it."""
    prefix = Stored(name, stored.value, stored.body_at)
    return _placed_on(stored, prefix)._replace(makes_prefix=True)


def _shallow(choices: list[Stored], stored: Stored) -> Stored | None:
    """Find the first choice whose depth allows a keyframe as a delta against it."""
    max_depth = _MAX_BRIEF_DEPTH if _is_brief(stored) else MAX_KEYFRAME_DEPTH
    return next((one for one in choices if one.depth < max_depth), None)


def _is_brief(stored: Stored) -> bool:
    return len(stored.value) < _BRIEF_BYTES


def _placed_on(stored: Stored, base: Stored | None) -> Placement:
    stored.depth = base.depth + 1 if base is not None else 0
    return Placement(stored, base)
