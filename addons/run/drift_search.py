"""Find recorded model calls that differ from a request only in fields that may drift; searched after a miss, off the loop.

Only recorded model calls of the same endpoint that have not been served are looked at, in tape order, and
at most some hundred of them, and so many bytes. What was taken apart once is kept, so that a run which drifts all along pays
once for each recorded call.
"""

import asyncio
from typing import NamedTuple

from ...store import LogCorrupt
from ...tape.dialects import find_in_path
from ...tape.exchange import Exchange, Fingerprint, Request, RequestClass, Seq
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
from ...tape.playback.tool_results import Arranged, arrange
from ...tape.policy.decide import Drifted
from .run_state import OpenRun

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


class Drifts:
    """The recorded model calls of one playback, by what of them may drift."""

    def __init__(self, open_run: OpenRun) -> None:
        """Begin for a playback with a tape; nothing is read before the first miss."""
        self._open_run = open_run
        self.lock = asyncio.Lock()
        """Held from the search until what was found is taken, so that no two requests are given the same."""
        self._calls: dict[tuple[str, str], list[Seq]] | None = None
        """By method, and URL without its query and the model in its path."""
        self._known: dict[Seq, _Known] = {}

    def is_served(self, near: Near) -> bool:
        """Say whether what was found has been served since."""
        assert self._open_run.cursor is not None
        return self._open_run.cursor.served(near.found.seq)

    async def find(self, request: Request) -> Near | None:
        """Find the recorded call from which a request differs in what may drift alone.

        The first that may be served; where none may, the one that differs in the fewest fields.
        The caller holds `lock`.
        """
        while True:
            near = await asyncio.to_thread(self._search, request)
            if near is None or not self.is_served(near):
                return near
            # Meanwhile somebody has asked for it just as it was recorded.

    def _search(self, request: Request) -> Near | None:
        open_run = self._open_run
        asked = _apart(open_run, request)
        if asked is None:
            return None
        allowed, best, size = open_run.policy.drift, None, 0
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
        differences = drift_differences(recorded.request, request) if recorded is not None else ()
        found = Drifted(seq, describe(drift, seq), advise(drift), differences)
        return Near(found, known.fingerprint)

    def find_candidates(self, request: Request) -> list[Seq]:
        """Give the recorded requests of the same endpoint that have not been served, in tape order; the first of many. Blocking."""
        open_run = self._open_run
        assert open_run.cursor is not None
        found = []
        for seq in self._find_calls().get(_endpoint(request.method, request.url), ()):
            if not open_run.cursor.served(seq):
                found.append(seq)
                if len(found) == _CANDIDATES:
                    break
        return found

    def _find_calls(self) -> dict[tuple[str, str], list[Seq]]:
        if self._calls is None:
            calls: dict[tuple[str, str], list[Seq]] = {}
            for place, seqs in self._open_run.find_endpoints().items():
                calls.setdefault(_endpoint(*place), []).extend(seqs)
            self._calls = {endpoint: sorted(seqs) for endpoint, seqs in calls.items()}
        return self._calls

    def _get(self, seq: Seq) -> _Known | None:
        known = self._known.get(seq)
        if known is None:
            recorded = self.load(seq)
            if recorded is None or recorded.request_class is not _CLASS:
                return None  # it was under way when its run ended, or is no model call
            open_run, request = self._open_run, recorded.request
            known = self._known[seq] = _Known(
                open_run.fingerprint_of(recorded), _apart(open_run, request), len(request.body)
            )
            if len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
        return known

    def arrange(self, request: Request) -> Arranged | None:
        """Sort the results of tools in a call. Blocking."""
        secret = self._open_run.redactor.redacted_query(request)
        return arrange(request, self._open_run.rules, secret)

    def load(self, seq: Seq) -> Exchange | None:
        """Read an exchange of the tape; None where that cannot be done. Blocking."""
        assert self._open_run.tape is not None
        try:
            return self._open_run.store.exchanges.find(self._open_run.tape, seq)
        except LogCorrupt:
            return None


def _apart(open_run: OpenRun, request: Request) -> Apart | None:
    secret = open_run.redactor.redacted_query(request)
    return take_apart(request, _CLASS, open_run.rules, secret)


def _endpoint(method: str, url: str) -> tuple[str, str]:
    place = url.partition("?")[0]
    model = find_in_path(place)
    return method, f"{place[: model.start()]}*{place[model.end() :]}" if model else place
