"""Find recorded model calls that differ from a request only in fields that may drift; searched after a miss, off the loop.

Only recorded model calls of the same endpoint that have not been served are looked at, in tape order, and
at most some hundred of them, and so many bytes. What was taken apart once is kept, so that a run which drifts all along pays
once for each recorded call.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...config import ModelDrift
from ...tape.canonical.identify import Identifier
from ...tape.diff.divergence_types import Difference
from ...tape.exchange import Exchange, Fingerprint, Request, RequestClass, Seq
from ...tape.matching.cursor import Cursor
from ...tape.matching.model_drift import (
    Apart,
    Drift,
    advise,
    describe,
    describe_allowed,
    drift_differences,
    find_drift,
    take_apart,
)
from ...tape.playback.tool_result_order import Arranged, arrange
from ...tape.policy.decide import Drifted

_CANDIDATES = 300
"""Recorded calls looked at for one request."""
_BYTES = 64 * 1024 * 1024
"""Bytes of their bodies beyond which no further one is looked at."""
_KEPT = 4 * _CANDIDATES
"""Recorded calls that are kept taken apart."""

_CLASS = RequestClass.INFERENCE


class Near(NamedTuple):
    """A recorded call that would answer, and under which fingerprint the cursor has it."""

    found: Drifted
    fingerprint: Fingerprint


class _Known(NamedTuple):
    """A recorded call: its fingerprint under the rules of now, and its parts; None where nothing may drift."""

    fingerprint: Fingerprint
    apart: Apart | None
    size: int
    """Of the body."""


class Searched(Protocol):
    """The tape that is searched: `PlaybackState`."""

    @property
    def cursor(self) -> Cursor:
        """What of it was served."""

    @property
    def identifier(self) -> Identifier:
        """How requests are compared."""

    def read_recorded(self, seq: Seq) -> Exchange | None:
        """Find an exchange; None where it cannot be read."""

    def find_endpoints(self) -> dict[tuple[str, str], list[Seq]]:
        """Give the seqs by method and URL without query."""

    def fingerprint_of(self, recorded: Exchange) -> Fingerprint:
        """Give the fingerprint of an exchange under the rules of now."""


class Drifts:
    """The recorded model calls of one playback, by what of them may drift."""

    def __init__(self, tape: Searched) -> None:
        """Begin for the tape of a playback; nothing is read before the first miss."""
        self._tape = tape
        self.lock = asyncio.Lock()
        """Held from the search until what was found is taken, so that no two requests are given the same."""
        self._calls: dict[tuple[str, str], list[Seq]] | None = None
        """By method, and URL without its query and the model in its path."""
        self._known: dict[Seq, _Known] = {}

    def is_served(self, near: Near) -> bool:
        """Say whether what was found has been served since."""
        return self._tape.cursor.served(near.found.seq)

    async def find(self, request: Request, allowed: Sequence[ModelDrift]) -> Near | None:
        """Find the recorded call from which a request differs in what may drift alone.

        The first that may be served; where none may, the one that differs in the fewest fields.
        The caller holds `lock`.
        """
        while True:
            near = await asyncio.to_thread(self._search, request, allowed)
            if near is None or not self.is_served(near):
                return near
            # Meanwhile somebody has asked for it just as it was recorded.

    def _search(self, request: Request, allowed: Sequence[ModelDrift]) -> Near | None:
        asked = _apart(self._tape, request)
        if asked is None:
            return None
        best, size = None, 0
        for seq in self.find_candidates(request):
            known = self._get(seq)
            # Counted whether it was known or not: what is found does not hang on what was asked before.
            size += 0 if known is None else known.size
            if size > _BYTES:
                break
            if known is None or known.apart is None:
                continue
            drift = find_drift(known.apart, asked)
            if drift is None:
                continue
            if drift.allowed_by(allowed):
                text = describe_allowed(drift, seq)
                return Near(Drifted(seq, text, allowed=drift.models), known.fingerprint)
            if best is None or len(drift.fields) < len(best[1].fields):
                best = seq, drift, known
        return None if best is None else self._refused(request, *best)

    def _refused(self, request: Request, seq: Seq, drift: Drift, known: _Known) -> Near:
        recorded = self.load(seq)
        differences: tuple[Difference, ...] = ()
        if recorded is not None:
            rules = self._tape.identifier.rules
            differences = drift_differences(recorded.request, request, rules, _CLASS)
        found = Drifted(seq, describe(drift, seq), advise(drift), differences)
        return Near(found, known.fingerprint)

    def find_candidates(self, request: Request) -> list[Seq]:
        """Give the recorded requests of the same endpoint that have not been served, in tape order; the first of many. Blocking."""
        found = []
        for seq in self._find_calls().get(_endpoint(request.method, request.url), ()):
            if not self._tape.cursor.served(seq):
                found.append(seq)
                if len(found) == _CANDIDATES:
                    break
        return found

    def _find_calls(self) -> dict[tuple[str, str], list[Seq]]:
        if self._calls is None:
            calls: dict[tuple[str, str], list[Seq]] = {}
            for place, seqs in self._tape.find_endpoints().items():
                calls.setdefault(_endpoint(*place), []).extend(seqs)
            self._calls = {endpoint: sorted(seqs) for endpoint, seqs in calls.items()}
        return self._calls

    def _get(self, seq: Seq) -> _Known | None:
        known = self._known.get(seq)
        if known is None:
            recorded = self.load(seq)
            if recorded is None or recorded.request_class is not _CLASS:
                return None  # it was under way when its run ended, or is no model call
            tape, request = self._tape, recorded.request
            known = self._known[seq] = _Known(
                tape.fingerprint_of(recorded), _apart(tape, request), len(request.body)
            )
            if len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
        return known

    def arrange(self, request: Request) -> Arranged | None:
        """Sort the results of tools in a call. Blocking."""
        identifier = self._tape.identifier
        return arrange(request, identifier.rules, identifier.redacted_query(request))

    def load(self, seq: Seq) -> Exchange | None:
        """Read an exchange of the tape; None where that cannot be done. Blocking."""
        return self._tape.read_recorded(seq)


def _apart(tape: Searched, request: Request) -> Apart | None:
    rules, redacted_query = tape.identifier
    return take_apart(request, _CLASS, rules, redacted_query(request))


def _endpoint(method: str, url: str) -> tuple[str, str]:
    from ...tape.dialects import find_in_path  # once a model call is on no tape

    place = url.partition("?")[0]
    model = find_in_path(place)
    return method, f"{place[: model.start()]}*{place[model.end() :]}" if model else place
