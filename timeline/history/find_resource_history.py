"""Find how a resource changed, from all that runs asked of it.

1. A change is what a recorded write did; where a read has a new value that no recorded write explains, somebody else did it before.
   A write whose answer does not say so may have been made: it was, where the next read has what it sent. One that was made, and whose
   answer does not show the resource, may have changed more than it sent.
2. A read with an earlier state, asked after the write that ended it had been answered, read an old value: a cache, or a late replica.
3. A write is made on a stale read where what its run had last read or written was changed by another before. It lost what
   it set back to the old value.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .resource_state import (
    Field,
    No,
    State,
    Use,
    explains,
    find_at,
    find_fields,
    find_made,
    find_sent,
    find_state,
    is_only_accepted,
    same_state,
    shows_above,
    shows_state,
)

_KEPT = 256
"""States that are remembered, to tell an old read from a new change."""


@dataclass(frozen=True, slots=True)
class Place:
    """An exchange of a run."""

    run: str
    seq: int


@dataclass(slots=True)
class Change:
    """A change of the resource."""

    by: Place | None
    """Its writer; None for somebody whom no run recorded."""
    method: str | None
    seen: Place
    """The first answer that has the new state: the writer's own, most often."""
    at_ns: int
    """When it was asked for; of somebody else when it was first seen."""
    fields: list[Field]
    maybe: Place | None = None
    """Where nobody is known to have written it: a write of unknown outcome or a POST that says nothing of the state, which may have been it."""

    @property
    def is_recorded(self) -> bool:
        """Whether the answer to the write says that it was made."""
        return self.by is not None and self.by == self.seen


@dataclass(frozen=True, slots=True)
class OldRead:
    """A read that still had an old value."""

    place: Place
    field: Field
    """The path, the old value that was read, and what it was by then."""
    change: Change
    """The one that made it so: of several that the read did not have the last."""


@dataclass(frozen=True, slots=True)
class StaleWrite:
    """A write that was made on a stale read."""

    place: Place
    read: Place
    change: Change
    """The first that the writer did not know."""
    lost: tuple[str, ...]
    """Paths that it set back to the old value."""


@dataclass(frozen=True, slots=True)
class Post:
    """A POST that says nothing of the state: it made something else, or asked for something."""

    place: Place
    made: str | None
    """The `Location` or the `id` of its answer."""


@dataclass(slots=True)
class History:
    """The history of a resource."""

    url: str
    reads: int = 0
    writes: int = 0
    refused: int = 0
    """Writes that failed: the service said so, or was not reached."""
    unanswered: int = 0
    """Writes that were sent, and no answer says whether they were made."""
    runs: list[str] = field(default_factory=list)
    """Those that asked for it."""
    first: Place | None = None
    """The first exchange that says what it was."""
    changes: list[Change] = field(default_factory=list)
    old_reads: list[OldRead] = field(default_factory=list)
    stale: list[StaleWrite] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    state: State = No.UNKNOWN
    """What it was last."""


@dataclass(slots=True)
class _Known:
    """What a run knows of the resource."""

    place: Place
    state: State
    changes: int
    """How many changes had been made by then."""


def find_history(url: str, uses: Iterable[Use]) -> History:
    """Find how a resource changed.

    uses: in any order; they are put in that of their times.
    """
    reader = _Reader(History(url))
    for use in sorted(uses, key=lambda one: (one.started_ns, one.run, one.seq)):
        reader.take(use)
    return reader.history


class _Reader:
    def __init__(self, history: History) -> None:
        self.history = history
        self._states: list[tuple[State, int]] = []
        """Each with how many changes had been made by then."""
        self._known: dict[str, _Known] = {}
        self._answered_ns = 0
        """When the last write had been answered."""
        self._unshown: Use | None = None
        """The last write, if its answer does not show what else it changed, as a version; until a read does."""
        self._unanswered: list[tuple[Use, list[Field]]] = []
        """Writes of unknown outcome, each with what it would have changed, as far as that is known; until the state is known again."""
        self._below: Use | None = None
        """The last write to what is inside of it, which may have changed it, until the state is known again."""

    def take(self, use: Use) -> None:
        """Take the next exchange."""
        history = self.history
        if use.is_below:
            self._write_below(use)
            return
        if use.run not in history.runs:
            history.runs.append(use.run)
        if use.is_read:
            history.reads += 1
            self._read(use)
        elif use.is_write:
            history.writes += 1
            if use.may_have_been_made or is_only_accepted(use, history.state):
                history.unanswered += 1
                state = find_sent(use, history.state)
                fields = [] if state is No.UNKNOWN else find_fields(history.state, state)
                self._unanswered.append((use, fields))
            elif use.is_made:
                self._write(use)
            else:
                history.refused += 1

    def _read(self, use: Use) -> None:
        history, place = self.history, Place(use.run, use.seq)
        state = find_state(use, No.UNKNOWN)
        if state is No.UNKNOWN:
            return
        known = history.state
        if known is No.UNKNOWN:
            self._begin(place, state)
        elif not same_state(state, known):
            at = self._find_earlier(state) if self._find_sender(state) is None else None
            if at is not None:
                self._read_old(use, place, state, at)
                return
            self._change_unseen(use, known, state)
            self._note(state)
        self._unshown = self._below = None
        self._known[use.run] = _Known(place, state, len(history.changes))

    def _write_below(self, use: Use) -> None:
        """Take a write to what is inside of the resource: a change where its answer shows it, else perhaps one."""
        history, place = self.history, Place(use.run, use.seq)
        if not shows_above(use, history.state):
            self._below = use if use.is_made or use.may_have_been_made else self._below
            return
        known, state = history.state, use.answered
        if use.run not in history.runs:
            history.runs.append(use.run)
        fields = find_fields(known, state)
        if fields:
            history.changes.append(Change(place, use.method, place, use.started_ns, fields))
            self._note(state)
            self._answered_ns = max(self._answered_ns, use.ended_ns)
        self._known[use.run] = _Known(place, state, len(history.changes))

    def _change_unseen(self, read: Use, known: State, state: State) -> None:
        """Note a change that a read shows first: of the last write of unknown outcome that explains it, else of somebody."""
        fields, seen = find_fields(known, state), Place(read.run, read.seq)
        writes = [*([(self._unshown, [])] if self._unshown else []), *self._unanswered]
        sender = self._find_sender(state)
        for write, _ in reversed(writes):
            if write is sender or (write.is_made and explains(write, fields)):
                by = Place(write.run, write.seq)
                made = Change(by, write.method, seen, write.started_ns, fields)
                self.history.changes.append(made)
                return
        others = [*([self._below] if self._below else []), *(one for one, _ in writes)]
        maybe = next((Place(one.run, one.seq) for one in reversed(others)), None)
        self.history.changes.append(Change(None, None, seen, read.started_ns, fields, maybe))

    def _find_sender(self, state: State) -> Use | None:
        """Find the last write of unknown outcome that asked for what a read shows."""
        sent = (use for use, fields in reversed(self._unanswered) if _is_sent(fields, state))
        return next(sent, None)

    def _begin(self, place: Place, state: State) -> None:
        self.history.first = self.history.first or place
        self._note(state)

    def _note(self, state: State) -> None:
        self.history.state = state
        # What was accepted may be made after other changes, too.
        self._unanswered = [
            (use, fields)
            for use, fields in self._unanswered
            if use.is_made and fields and not _is_sent(fields, state)
        ]
        self._below = None
        self._states.append((state, len(self.history.changes)))
        del self._states[:-_KEPT]

    def _find_earlier(self, state: State) -> int | None:
        """Find an earlier state: how many changes had been made by then."""
        for one, changes in reversed(self._states[:-1]):
            if same_state(one, state):
                return changes
        return None

    def _read_old(self, use: Use, place: Place, state: State, changes: int) -> None:
        history = self.history
        self._known[use.run] = _Known(place, state, changes)
        if use.started_ns < self._answered_ns:
            return  # the write was under way
        since = history.changes[min(changes, len(history.changes) - 1) :]
        for one in find_fields(state, history.state):
            last = next((it for it in reversed(since) if _touches(it, one.path)), since[0])
            history.old_reads.append(OldRead(place, one, last))

    def _write(self, use: Use) -> None:
        history, place = self.history, Place(use.run, use.seq)
        known = No.MISSING if use.makes else history.state
        state = find_state(use, known)
        if state is No.UNKNOWN and use.method == "POST":
            history.posts.append(Post(place, find_made(use)))
            self._unanswered.append((use, []))
            return
        fields = find_fields(known, state)
        if use.makes:
            fields = [Field("$", No.MISSING, state)]
            self._unanswered.clear()
        elif state is No.UNKNOWN and not fields:
            fields = [Field("$", known, state)]  # it may be another, or not
        self._find_stale(use, place, known, state, fields)
        history.first = history.first or place
        history.changes.append(Change(place, use.method, place, use.started_ns, fields))
        self._note(state)
        self._unshown = use if state is not No.MISSING and not shows_state(use, known) else None
        self._answered_ns = max(self._answered_ns, use.ended_ns)
        self._known[use.run] = _Known(place, state, len(history.changes))

    def _find_stale(
        self, use: Use, place: Place, known: State, state: State, fields: list[Field]
    ) -> None:
        seen = self._known.get(use.run)
        if seen is None or seen.changes >= len(self.history.changes):
            return
        if use.makes or same_state(seen.state, known) or known is state is No.MISSING:
            return
        missed = self.history.changes[seen.changes :]
        change = next((one for one in missed if one.by is None or one.by.run != use.run), None)
        if change is None:
            return
        before = {one.path: one.new for one in find_fields(state, seen.state)}
        lost = tuple(
            one.path
            for one in fields
            if state is not No.MISSING and one.path not in before and one.path != "$"
        )
        # What another run had deleted is there again.
        lost = ("$",) if known is No.MISSING else lost
        self.history.stale.append(StaleWrite(place, seen.place, change, lost))


def _is_sent(fields: list[Field], state: State) -> bool:
    """Say whether a state has all that a write would have changed."""
    return bool(fields) and all(same_state(find_at(state, one.path), one.new) for one in fields)


def _touches(change: Change, path: str) -> bool:
    """Say whether a change is of a field, of a part of it, or of what it is in."""
    return any(_is_in(path, one.path) or _is_in(one.path, path) for one in change.fields)


def _is_in(inner: str, outer: str) -> bool:
    return inner.startswith(outer) and inner[len(outer) : len(outer) + 1] in ("", ".", "[")
