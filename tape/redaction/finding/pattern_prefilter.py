"""Find the places in a text where a secret may be: many short patterns, looked for at once.

Hyperscan searches a text for all patterns in one pass. Where its wheel is missing, a set of RE2 says which patterns are in a text
at all, and each of these is looked for by itself. Both give the same places.

A pattern matches a **head**: the prefix of a format and the first characters behind it, or a name and what separates it from its
value. The full pattern is asked only there.

Rules of the binding (hyperscan 0.9.1): a `Scratch` serves one scan at a time; a handler that returns something true ends the scan;
each call of the handler costs some 0.7 us, so a head demands as much as it can.
"""

import importlib
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import re2

hyperscan: Any
try:
    hyperscan = importlib.import_module("hyperscan")
except ImportError:  # no wheel for this machine
    hyperscan = None

MOST_PLACES = 4000
"""Places of a text that are looked at, however short it is."""
BYTES_A_PLACE = 128
"""A text may have one more place for as many bytes."""


class Head(NamedTuple):
    """One pattern, and what it stands for."""

    pattern: str
    """Of RE2's syntax, without anchors; as many bytes long in each match as in any other, or nearly so."""
    caseless: bool = False
    once: bool = False
    """Whether it is enough to know that a text has it: a mark, and no place."""


class Hits(NamedTuple):
    """Where heads end in a text."""

    found: list[tuple[int, int]]
    """End and number of the head, in the order of the ends; of a mark the first one, or several."""
    searched: int
    """Bytes of the text that were searched; fewer than it has where it has too many places."""


class HeadSet(Protocol):
    """Heads that are looked for at once. May be used from any thread."""

    def find(self, data: bytes, most: int = 0) -> Hits | None:
        """Find where heads end in a text; None where it has none.

        most: places after which the search ends; 0 for as many as a text of its size may have.
        """


BYTES_A_LITERAL = 128
"""The same for texts that are looked for as they are: each place is replaced."""


def most_places(size: int, bytes_a_place: int = BYTES_A_PLACE) -> int:
    """Give how many places of a text of some size are looked at."""
    return MOST_PLACES + size // bytes_a_place


class KeptSets(Protocol):
    """Compiled sets that outlive a process: to compile one takes a quarter of a second of CPU, to load one 0.1 ms."""

    def alone(self) -> AbstractContextManager[object]:
        """Give what keeps other threads of this process from looking for a set, and compiling it, at the same time."""

    def find(self, name: str) -> bytes | None:
        """Give what was kept under a name, as it was kept."""

    def keep(self, name: str, compiled: bytes) -> None:
        """Keep a set; a place that cannot be written keeps nothing."""


def compile_heads(heads: Sequence[Head], kept: KeptSets | None = None) -> HeadSet:
    """Make a set with the fastest engine that this machine has.

    kept: sets that were compiled before.
    """
    return HyperscanHeads(heads, kept=kept) if hyperscan is not None else Re2Heads(heads)


def compile_literals(texts: Sequence[bytes]) -> "HyperscanHeads | None":
    """Make a set that looks for texts as they are, or None without hyperscan."""
    return HyperscanHeads([], texts) if hyperscan is not None else None


class HyperscanHeads:
    """Heads as one database of hyperscan in block mode."""

    def __init__(
        self,
        heads: Sequence[Head],
        literals: Sequence[bytes] = (),
        *,
        kept: KeptSets | None = None,
    ) -> None:
        """Compile; it takes 0.1 to 0.5 s for some hundred heads, 60 ms for three thousand literals.

        kept: heads that were compiled before.
        """
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        if literals:
            database.compile(
                expressions=list(literals), ids=list(range(len(literals))), flags=0, literal=True
            )
        else:
            flags = [
                hyperscan.HS_FLAG_DOTALL
                | (hyperscan.HS_FLAG_CASELESS if head.caseless else 0)
                | (hyperscan.HS_FLAG_SINGLEMATCH if head.once else 0)
                for head in heads
            ]
            expressions = [head.pattern.encode() for head in heads]
            name = _name(expressions, flags) if kept is not None else ""
            loaded = _load(kept.find(name)) if kept is not None else None
            if loaded is not None:
                database = loaded
            else:
                database.compile(expressions=expressions, ids=list(range(len(heads))), flags=flags)
                if kept is not None:
                    kept.keep(name, hyperscan.dumpb(database))
        self._database = database
        self._scan = database.scan
        self._once = frozenset(which for which, head in enumerate(heads) if head.once)
        self._bytes_a_place = BYTES_A_LITERAL if literals else BYTES_A_PLACE
        # One for each scan at a time: taking one out of a list is one step, from any thread.
        self._idle: list[tuple[list[tuple[int, int]], Any, Any]] = []

    def find(self, data: bytes, most: int = 0) -> Hits | None:
        """Find where heads end in a text; None where it has none.

        most: places after which the search ends; 0 for as many as a text of its size may have.
        """
        most = most or MOST_PLACES + len(data) // self._bytes_a_place
        try:
            scan = self._idle.pop()
        except IndexError:
            scan = _prepare_scan(self._database)
        found, handler, scratch = scan
        hits: list[tuple[int, int]] | None
        try:
            # By position: names of parameters cost the binding 0.2 us.
            self._scan(data, handler, 0, most + len(self._once), scratch)
        except hyperscan.ScanTerminated:
            hits = found[:]
        else:
            hits = found[:] if found else None
        found.clear()
        self._idle.append(scan)
        return None if hits is None else _bounded(hits, self._once, most, len(data))


def _name(expressions: Sequence[bytes], flags: Sequence[int]) -> str:
    """Name a set by all that it is made of; on what machine is for whoever keeps it."""
    made_of = repr((hyperscan.__version__, list(expressions), list(flags)))
    return blake2b(made_of.encode(), digest_size=12).hexdigest()


def _load(compiled: bytes | None) -> Any:
    """Give a database that was kept, or None where there is none that can be used here."""
    if compiled is None:
        return None
    try:
        database = hyperscan.loadb(compiled, hyperscan.HS_MODE_BLOCK)
        hyperscan.Scratch(database)  # says whether this machine can run it
    except hyperscan.error:
        return None
    return database


def _prepare_scan(database: Any) -> tuple[list[tuple[int, int]], Any, Any]:
    """Give what one scan at a time needs: where it puts what it finds, its handler, and its scratch."""
    found: list[tuple[int, int]] = []
    append = found.append

    def handler(which: int, _start: int, end: int, _flags: int, most: int) -> bool | None:
        append((end, which))
        return True if len(found) > most else None

    return found, handler, hyperscan.Scratch(database)


def _bounded(found: list[tuple[int, int]], once: frozenset[int], most: int, size: int) -> Hits:
    """Give what was found in a text up to the last place that it may have; marks are none."""
    if len(found) > most:
        places = 0
        for at, (end, which) in enumerate(found):
            places += which not in once
            if places > most:
                return Hits(found[:at], end)
    return Hits(found, size)


class Re2Heads:
    """Heads as a set of RE2, and each by itself where the set has it."""

    def __init__(self, heads: Sequence[Head]) -> None:
        """Compile."""
        options = re2.Options()
        options.log_errors = False
        options.encoding = re2.Options.Encoding.LATIN1
        options.dot_nl = True
        options.max_mem = 256 << 20
        self._set = re2.Set.SearchSet(options)
        self._each: list[re.Pattern[bytes]] = []
        for head in heads:
            pattern = f"(?i:{head.pattern})" if head.caseless else head.pattern
            self._set.Add(pattern.encode())
            self._each.append(re.compile(pattern.encode(), re.DOTALL))
        self._set.Compile()
        self._once = frozenset(which for which, head in enumerate(heads) if head.once)

    def find(self, data: bytes, most: int = 0) -> Hits | None:
        """Find where heads end in a text; None where it has none.

        most: places after which the search ends; 0 for as many as a text of its size may have.
        """
        found: list[tuple[int, int]] = []
        most = most or most_places(len(data))
        for which in self._set.Match(data) or ():
            pattern = self._each[which]
            at = 0
            while (hit := pattern.search(data, at)) is not None:
                found.append((hit.end(), which))
                if len(found) > 2 * most or which in self._once:
                    break
                at = hit.start() + 1
        found.sort()
        return _bounded(found, self._once, most, len(data)) if found else None
