"""Redact a body that is too large for memory: in overlapping windows, with bounded memory.

A secret is hidden whichever window it stands in, also across two, as long as it and what announces it are no
longer than the overlap. The length stands, so what comes out can be written as it comes.
"""

from hashlib import blake2b
from typing import NamedTuple, Protocol

from ..exchange import BODY, UNSEARCHED, Secret
from .compare_placeholders import mark_text
from .replaced_places import is_own_behind
from .search import Kind, Searched, see_framing

WINDOW_BYTES = 256 * 1024
OVERLAP_BYTES = 32 * 1024
"""The longest secret that is found across two windows."""
_NAME_BYTES = 120
_CONTEXT_BYTES = 512
"""What stands before a window and may announce what it begins with."""
MAX_PLACES = 1000
"""Places that are remembered of one body."""
_MOST_ORIGINALS = 4 << 20
"""Bytes of what was replaced that are remembered of one."""


class Piece(NamedTuple):
    """A piece of a body without its secrets."""

    data: bytes
    compared: bytes
    """The same with kinds in the place of placeholders."""


class Searching(Protocol):
    """Searches a window of a body."""

    def search(self, data: bytes, kind: Kind) -> Searched | None:
        """Give a text without its secrets, or None where it holds none."""


_NOTHING = Piece(b"", b"")


class Stream:
    """One body while it passes. Belongs to one thread at a time."""

    def __init__(self, search: Searching, kind: Kind, *, originals: bool = False) -> None:
        """Begin; `kind` says what the body is.

        originals: remember what is replaced, too.
        """
        self._search = search
        self._kind = kind
        self._keeps = originals
        self._kept = 0
        self.originals: list[tuple[int, bytes]] = []
        """What stood in each of `secrets`, with the bytes before it; not all of it where that was too much."""
        self._held = b""
        self._more: list[bytes] = []
        """What came since, not put together yet: pieces may be small."""
        self._size = 0
        """Bytes of both."""
        self._before = 0
        """Bytes of what is held that were given out already."""
        self._given = 0
        self._rest = blake2b(digest_size=16)
        """Over the placeholders that are not remembered."""
        self._replaced: list[tuple[bytes, bool]] = []
        self.secrets: list[Secret] = []
        """Where placeholders stand in what was given out; no more than MAX_PLACES."""

    @property
    def held_at(self) -> int:
        """Bytes of the body before the window that is being searched."""
        return self._given - self._before

    @property
    def replaced(self) -> tuple[tuple[bytes, bool], ...]:
        """Give the placeholders in a request, as `Spilled` has them."""
        if len(self.secrets) < MAX_PLACES or self._kind.answer:
            return tuple(self._replaced)
        return (*self._replaced, (self._rest.hexdigest().encode(), False))

    def feed(self, data: bytes) -> Piece:
        """Take the next piece; give what is sure by now."""
        self._more.append(data)
        self._size += len(data)
        if self._size - self._before < WINDOW_BYTES:
            return _NOTHING
        return self._give(self._size - OVERLAP_BYTES, final=False)

    def finish(self) -> Piece:
        """Give the rest."""
        return self._give(self._size, final=True)

    def _give(self, end: int, *, final: bool) -> Piece:
        held, begin = b"".join([self._held, *self._more]), self._before
        # What one window says holds for those behind it.
        self._kind = see_framing(self._kind, held)
        searched = self._search.search(held, self._kind._replace(final=final))
        data, found = held, []
        if searched is not None:
            for span in searched.spans:
                # One that goes on beyond the end is looked at again.
                if span.at < end < span.at + span.size and span.at > begin:
                    end = span.at
            data = searched.data
            found = [
                Secret(
                    BODY,
                    max(span.at, begin),
                    span.at + span.size - max(span.at, begin),
                    span.kind,
                    span.coded,
                )
                for span in searched.spans
                if span.at + span.size > begin and span.at < end
            ]
        given = data[begin:end]
        moved = [one._replace(at=one.at - begin) for one in found]
        compared = mark_text(given, moved, json=False) if moved else given
        for one in moved:
            if not self._kind.answer:
                self._keep(data, one, begin)
        for one in moved[: MAX_PLACES - len(self.secrets)]:
            self.secrets.append(one._replace(at=one.at + self._given))
            if self._keeps and self._kept < _MOST_ORIGINALS:
                was = held[begin + one.at : begin + one.at + one.size]
                self.originals.append((one.at + self._given, was))
                self._kept += len(was)
        if self._keeps and len(self.secrets) >= MAX_PLACES:
            self.originals.clear()  # there may be more
        self._given += len(given)
        keep = max(0, end - _CONTEXT_BYTES)
        self._held, self._before = held[keep:], end - keep
        self._more, self._size = [], len(self._held)
        return Piece(given, compared)

    def _keep(self, data: bytes, one: Secret, begin: int) -> None:
        """Remember a placeholder, with whether what is before it says that it is a credential."""
        at = begin + one.at
        if one.kind.startswith(UNSEARCHED):
            value, own = one.kind.encode(), False
        else:
            value = data[at : at + one.size]
            own = is_own_behind(data[max(0, at - _NAME_BYTES) : at], form=self._kind.form)
        if len(self._replaced) < MAX_PLACES:
            self._replaced.append((value, own))
        else:
            self._rest.update(b"%d:%b" % (len(value), value))
