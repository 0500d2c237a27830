"""Detect requests that arrive before a request on which they depend.

Order between different requests is free, so almost every request is let through by one comparison: nothing
with a smaller seq is unserved. Only else is looked at what stands in the request and in those answers, on a
thread. What cannot be found out within `_LIMIT_S` is let through: the answer is the recorded one all the same.
"""

import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Set

from ...config import Classes
from ...store import RunInfo, Store
from ...tape.diff.divergence_types import Dependence
from ...tape.exchange import SENT_OUT, Exchange, Request, RequestClass, Response, Seq
from ...tape.matching.dependence import (
    core,
    find_shared,
    may_stand_in_answer,
    may_stand_in_request,
    seen_values,
)
from ...tape.matching.index import reclassify
from ...tape.matching.traceable_values import Values, request_values
from ...tape.policy.decide import Facts, Policy

_LIMIT_S = 2.0
"""Longest that one request is looked at."""
_WINDOW = 32
"""Most unserved exchanges before a request that are looked at. Where there are more, most of the tape was left out:
a divergence of its own, which cannot be made good here."""
_SPAN = 1024
"""How far behind the first unserved exchange a request may stand to be looked at."""
_HELD = 100_000
"""Most values that are held of the answers that were looked at."""
_KNOWN = 10_000
"""Most values of which is remembered whether they were seen before, and answers of which when."""


class Order:
    """Find what a request was asked before; one for a playback."""

    def __init__(
        self,
        store: Store,
        tape: RunInfo,
        run: RunInfo | None,
        policy: Policy,
        classes: Classes,
        stubbed: dict[Seq, Response],
    ) -> None:
        """Read the tape's list of exchanges when it is first needed."""
        self._store = store
        self._tape = tape
        self._run = run
        self._policy = policy
        self._classes = classes
        self._stubbed = stubbed
        self._seqs: list[Seq] | None = None
        self._left: list[Seq] | None = None
        """Exchanges that have not been served and on which something can depend, in order, as far as is known."""
        self._lock = threading.Lock()
        """Held while `_left` is looked at or changed: never for long."""
        self._first: dict[tuple[Seq, str], bool] = {}
        self._began: dict[Seq, int] = {}
        """By answer that was looked at: the last seq that had seen nothing of it."""
        self._answers: dict[Seq, tuple[int, Values]] = {}
        """Values of unserved answers that were looked at, with the last seq that had not seen them all."""
        self._held = 0

    def read(self, served: Callable[[], Iterable[Seq]]) -> None:
        """Read the list of exchanges. Blocks; any thread.

        served: gives all that have been served.
        """
        if self._seqs is None:
            seqs = self._store.exchanges.seqs(self._tape)
            with self._lock:
                self._left = list(seqs)
            # Asked for now: what is served from now on is told to `take`.
            for seq in served():
                self.take(seq)
            self._seqs = seqs

    def take(self, seq: Seq) -> None:
        """Note that an exchange is served, or that nothing can depend on it. Any thread; twice is once."""
        with self._lock:
            left = self._left or []
            at = bisect_left(left, seq)
            if at < len(left) and left[at] == seq:
                del left[at]

    def give_back(self, seq: Seq) -> None:
        """Note that an exchange is not served after all. Any thread."""
        with self._lock:
            if self._left is not None and seq not in self._left:
                insort(self._left, seq)

    def find_earlier(self, seq: Seq) -> tuple[Seq, ...] | None:
        """Find the exchanges before this one that were not served; None before the list has been read.

        Cheap, for the loop; any thread. Empty, too, where there are more than `_WINDOW`.
        """
        seqs = self._seqs
        if seqs is None:
            return None if seq > 1 else ()
        with self._lock:
            left = self._left or []
            count = bisect_left(left, seq)
            if not 0 < count <= _WINDOW:
                return ()
            found = left[:count]
        if bisect_left(seqs, seq) - bisect_left(seqs, found[0]) > _SPAN:
            return ()
        return tuple(one for one in found if self._began.get(one, 0) < seq)

    def find(
        self,
        seq: Seq,
        earlier: Iterable[Seq],
        request: Request,
        untraced: frozenset[str],
        served: Callable[[], Set[Seq]],
    ) -> Dependence | None:
        """Find an unserved answer on which the recorded exchange `seq` depends. Blocks; any thread.

        earlier: those that are looked at.
        request: as asked, redacted.
        served: gives all that have been served.
        """
        deadline = time.monotonic() + _LIMIT_S
        asked: Values | None = None
        found: list[Dependence] = []
        for one in earlier:
            answered = self._find_answer(one, seq)
            if not answered:
                continue
            if asked is None:
                asked = request_values(request, untraced)
            found += find_shared(asked, one, answered)
            if time.monotonic() > deadline:
                return None
        for shared in found:
            if self._is_first(shared, deadline) and not self._is_known(shared, served(), deadline):
                return shared
            if time.monotonic() > deadline:
                return None
        return None

    def _find_answer(self, one: Seq, before: Seq) -> Values:
        """Find the values of an answer that request `before` can have seen."""
        known = self._answers.get(one)
        if known is not None and known[0] < before:
            return known[1]
        recorded = self._store.exchanges.find(self._tape, one)
        # Its class of now: that may be another than when it was recorded.
        exchange = recorded and reclassify(recorded, self._classes)
        if exchange is None or exchange.response is None or self._is_idle(exchange):
            self.take(one)
            return {}
        values = seen_values(exchange, before)
        chunks = exchange.response.chunks
        if chunks and exchange.gone is None and len(self._began) < _KNOWN:
            self._began[one] = chunks[0].after
        latest = max((chunk.after for chunk in chunks), default=0)
        if latest < before and self._held + len(values) <= _HELD:
            # Whoever was asked for after its last piece has seen as much.
            self._held += len(values)
            self._answers[one] = (latest, values)
        return values

    def _is_idle(self, exchange: Exchange) -> bool:
        request = exchange.request
        if exchange.request_class is RequestClass.TELEMETRY:
            return True
        # What would leave is decided by method and URL.
        facts, _ = Facts.of_request(request, self._classes)
        return self._policy.find_forced(facts) is not None

    def _is_first(self, shared: Dependence, deadline: float) -> bool:
        """Say whether a value was in nothing that was asked or answered before on the tape."""
        key = (shared.tape_seq, shared.value)
        known = self._first.get(key)
        if known is not None:
            return known
        needles = core(shared.value)
        first = True
        assert self._seqs is not None
        for one in self._seqs:
            if one > shared.tape_seq:
                break
            exchange = self._store.exchanges.find(self._tape, one)
            if exchange is None:
                continue
            asked = may_stand_in_request(exchange.request, needles)
            if asked or (one < shared.tape_seq and may_stand_in_answer(exchange.response, needles)):
                first = False
                break
            if time.monotonic() > deadline:
                return False
        if len(self._first) < _KNOWN:
            self._first[key] = first
        return first

    def _is_known(self, shared: Dependence, served: Set[Seq], deadline: float) -> bool:
        """Say whether the agent has a value from elsewhere: it asked with it, or was answered with it, in this playback."""
        needles = core(shared.value)
        for request, response in self._had(shared.tape_seq, served):
            if request is not None and may_stand_in_request(request, needles):
                return True
            if may_stand_in_answer(response, needles):
                return True
            if time.monotonic() > deadline:
                return True
        return False

    def _had(
        self, after: Seq, served: Set[Seq]
    ) -> Iterator[tuple[Request | None, Response | None]]:
        """Give what was asked and served from behind a place of the tape, and answers that did not come from the tape."""
        for response in self._stubbed.copy().values():
            yield None, response
        for one in sorted(served):
            if one > after and (found := self._store.exchanges.find(self._tape, one)) is not None:
                yield found.request, found.response
        if self._run is not None and self._policy.sends:
            for exchange in self._store.exchanges.all(self._run):
                if exchange.verdict in SENT_OUT:
                    yield exchange.request, exchange.response
