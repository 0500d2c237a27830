"""What only a run that plays a tape has: the tape, what of it was served, and what is known of it so far.

Belongs to the event loop, except where a method says otherwise.
"""

import asyncio
import contextlib
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

from ...config import Config
from ...config.profiles.shipped_profiles import shipped_profiles
from ...store import LogCorrupt, RunInfo, Store, StoreError
from ...tape.canonical.canonical_request import DEFAULT_IGNORE, Rules, compile_rules, raw_key
from ...tape.canonical.identify import Identifier
from ...tape.classify.background_reads import find_background_read, is_poll
from ...tape.diff.nearest import Endpoints
from ...tape.exchange import (
    Exchange,
    Fingerprint,
    Message,
    Request,
    RequestClass,
    Response,
    Seq,
)
from ...tape.headers.swapped_values import RecordedValues
from ...tape.matching.cursor import Cursor, Exhausted, Hit, Rank, Unknown
from ...tape.matching.header_agreement import Agreement, without_conditions
from ...tape.matching.index import reclassify
from ...tape.matching.profile_use import have_other_conditions
from ...tape.matching.rewrite_json_rpc_ids import IdRewriting
from ...tape.policy.branch import BranchPoint
from ...tape.policy.decide import Policy
from ...tape.policy.resume import Resumption, UnknownEffect
from ...tape.records.events import EventKind
from ...timeline.lookup.endpoints import Logged, Places, find_order, find_places, read_requests
from ...timeline.lookup.requests_under_current_rules import RecordedRequests
from ...timeline.receipts.command.command_end import find_command
from ..order.out_of_order import Order

if TYPE_CHECKING:
    from ..order.reordered_tool_results import ToolResults
    from .model_drift_search import Drifts

_OK = 200
_WHOLE = (_OK, 404)
"""Answers that a read has whatever its condition is: what was there, or that nothing is there. Source: RFC 9110 section 13.2.1."""
_CONDITION = 100
"""More than any other reason to prefer a recorded request."""
_NO_ANSWER = 2
"""An answer without a body to a read that has seen something else."""
MOST_PREPARED = 20_000
"""Exchanges of a tape up to which its log is read before the first request: 6 us an event."""
_PAUSE_S = 0.0005
_NO_ORDER = (
    "the tape has {0.exchanges:,} exchanges, more than "
    f"{MOST_PREPARED:,}: requests that overlapped in it are not answered in their recorded order of completion"
)


class Reindexed(NamedTuple):
    """The index of a tape under the rules of now, where it was indexed under others."""

    uses: dict[Fingerprint, list[Seq]]
    known: dict[bytes, Fingerprint]
    """By hash of the raw request."""


class RecordedSecrets(NamedTuple):
    """How the secrets of a tape are found."""

    requests: RecordedRequests
    """Takes what is a secret by now out of recorded requests."""
    list_given: Callable[[Response], Iterable[bytes]]
    """Gives the secrets of a recorded answer."""


class MissSearch(NamedTuple):
    """What looks for the recorded model call that was meant, where a request is not on the tape."""

    drifts: "Drifts"
    tool_results: "ToolResults"
    """Which model calls of the tape list the same results."""


class CompletionOrder:
    """The order in which answers of the tape ended; to which requests they were given in this playback, and when they ended."""

    def __init__(self) -> None:
        """Begin with an order that is not known."""
        self._before: dict[Seq, tuple[Seq, ...]] = {}
        """By exchange of the tape, those that overlapped it and were answered before it."""
        self.answered: dict[Seq, float] = {}
        """When exchanges of the tape were answered, by the monotonic clock."""
        self.given: dict[Seq, Seq] = {}
        """By the tape's seq: the request that its answer was first given to."""

    def find(self, requests: Iterable[Logged], config: Config) -> None:
        """Find the order in the log of a tape."""
        self._before = find_order(requests, config.classes)

    def swap(self, pairs: Iterable[tuple[Seq, Seq]]) -> None:
        """Have the first of some pairs be answered after the second. Twice is once."""
        for first, second in pairs:
            if second in self._before.get(first, ()):
                continue
            left = tuple(one for one in self._before.get(second, ()) if one != first)
            self._before[second] = left
            self._before[first] = (*self._before.get(first, ()), second)

    def note(self, seq: Seq, at_s: float) -> None:
        """Note that an exchange of the tape has been answered."""
        if self._before:
            self.answered[seq] = at_s

    def find_before(self, seq: Seq) -> tuple[Seq, ...]:
        """Give the exchanges of the tape that overlapped one and were answered before it."""
        return self._before.get(seq, ())


class PlaybackState:
    """The tape of one playback, and what of it was served."""

    def __init__(
        self,
        tape: RunInfo,
        store: Store,
        config: Config,
        identifier: Identifier,
        agreement: Agreement,
        *,
        secrets: RecordedSecrets,
        run: RunInfo | None,
        policy: Policy,
    ) -> None:
        """Begin with nothing served.

        store: reads the tape, each request with the class that it has now.
        agreement: how the header fields of what is asked agree with those of the tape.
        run: where the playback is written down; None where it is not.
        policy: as it is when the run opens.
        """
        self.tape = tape
        self.identifier = identifier
        self.agreement = agreement
        self.store = store
        self._config = config
        self._secrets = secrets
        self._values: asyncio.Future[RecordedValues] | None = None
        """Reads the credentials of the tape, once they are needed."""
        self.stubbed: dict[Seq, Response] = {}
        """What was answered instead of executing an effect, by seq; the first of a run."""
        self.order = Order(store, tape, run, policy, config.classes, self.stubbed)
        self.cursor = Cursor(self._next_use, self.order.take, self.order.give_back)
        self._reindexed: Reindexed | None = None
        self._places: Places | None = None
        """Read when first needed."""
        self._reading = threading.Lock()
        self.preparing: asyncio.Future[Any] | None = None
        """Reads them, from the opening of a playback on."""
        self.completion = CompletionOrder()
        self._miss_search: MissSearch | None = None
        """Made at the first model call that is not on the tape."""
        self.id_rewriting = IdRewriting()
        """How the client names now what it named otherwise on the tape."""
        self.failing: set[tuple[str, int]] = set()
        """Origins of the tape with a failed tunnel that has not failed again yet."""
        self.point = BranchPoint(policy.branch)
        """Whether it has come to where it leaves its tape; of a playback that is no branch never."""
        self.resumption = Resumption(policy.resume)
        """How far it has come, where it resumes a crashed run."""

    @cached_property
    def shipped_rules(self) -> Rules:
        """The rules without those of the configuration: no `ignore`, and of its profiles those that are shipped."""
        rules = self.identifier.rules
        names = {one.name for one in rules.profiles.all}
        shipped = [one for one in shipped_profiles() if one.name in names]
        return compile_rules((), thread_time, rules.fields, shipped)

    @property
    def has_own_rules(self) -> bool:
        """Whether the configuration has rules of `ignore`, or profiles."""
        rules, shipped = self.identifier.rules, shipped_profiles()
        if len(rules.ignore) > len(DEFAULT_IGNORE):
            return True
        return any(one not in shipped for one in rules.profiles.all)

    def _next_use(self, fingerprint: Fingerprint, after: int) -> Seq | None:
        found, resume = self._next_recorded(fingerprint, after), self.resumption.resume
        while found is not None and resume is not None and found in resume.unanswered:
            found = self._next_recorded(fingerprint, found)
        return found

    def _next_recorded(self, fingerprint: Fingerprint, after: int) -> Seq | None:
        if self._reindexed is None:
            return self.store.index.next_use(self.tape, fingerprint, after)
        uses = self._reindexed.uses.get(fingerprint, [])
        at = bisect_right(uses, after)
        return uses[at] if at < len(uses) else None

    def read_recorded(self, seq: Seq) -> Exchange | None:
        """Find an exchange of the tape; None where it cannot be read, which is said where it is served. Any thread."""
        return read_as_now(self.store, self.tape, self._secrets.requests, seq)

    def find_command(self) -> tuple[str, ...]:
        """Give the command that the tape was recorded with; empty where no launcher made it. Blocking."""
        return find_command(self.store.events.all(self.tape))

    def without_crash(self, recorded: Exchange) -> Exchange:
        """Give what is served of an exchange of the tape: one whose client died in a crash did not give up. Any thread."""
        resume = self.resumption.resume
        if resume is None or recorded.seq not in resume.died:
            return recorded
        return replace(recorded, gone=None)

    def as_now(self, recorded: Exchange) -> Exchange:
        """Give an exchange of the tape with its request as the rules of now have it. Any thread."""
        return self._secrets.requests.find(recorded)

    def read_messages(self, seq: Seq, after: int = -1) -> Iterator[Message]:
        """Read the messages of a WebSocket of the tape behind one, those of its client as the rules of now have them."""
        messages = self.store.messages.all(self.tape, seq, after)
        return self._secrets.requests.find_messages(messages)

    def find_recorded(
        self,
        request: Request,
        request_class: RequestClass,
        fingerprint: Fingerprint,
        *,
        repeat: bool,
    ) -> tuple[Fingerprint, Hit | Exhausted | Unknown]:
        """Find the recorded exchange that answers a request, and the fingerprint that it has.

        repeat: as for `Cursor.find`.
        """
        rank = self.agreement.ranking(request)
        if self.identifier.rules.of(request, request_class).masks.unconditional:
            return fingerprint, self._find_unconditional(
                request, request_class, fingerprint, rank, repeat=repeat
            )
        found = self.cursor.find(fingerprint, request_class, repeat=repeat, rank=rank)
        if not isinstance(found, Unknown) or (headers := without_conditions(request)) is None:
            return fingerprint, found
        # What was recorded without a condition answers a request with one: with the whole body.
        bare = replace(request, headers=headers)
        other = self.identifier.fingerprint(bare, request_class)
        hit = self.cursor.find(other, request_class, repeat=repeat, rank=rank)
        if isinstance(hit, Hit):
            recorded = self.read_recorded(hit.seq)
            answer = recorded.response if recorded is not None else None
            if answer is not None and answer.status == _OK:
                return other, hit
        return fingerprint, found

    def _find_unconditional(
        self,
        request: Request,
        request_class: RequestClass,
        fingerprint: Fingerprint,
        rank: Rank,
        *,
        repeat: bool,
    ) -> Hit | Exhausted | Unknown:
        """Find what answers a read whose conditions do not count: one with the same, or an answer in full."""

        def rank_condition(seq: Seq) -> int:
            return _CONDITION * self._condition_rank(request, seq) + rank(seq)

        found = self.cursor.find(fingerprint, request_class, repeat=repeat, rank=rank_condition)
        if isinstance(found, Hit) and self._condition_rank(request, found.seq) == _NO_ANSWER:
            return Unknown()
        return found

    def _condition_rank(self, request: Request, seq: Seq) -> int:
        recorded = self.read_recorded(seq)
        if recorded is None or not have_other_conditions(recorded.request, request):
            return 0
        answer = recorded.response
        return 1 if answer is not None and answer.status in _WHOLE else _NO_ANSWER

    def find_known(self, raw: bytes) -> Fingerprint | None:
        """Find the fingerprint of a request whose bytes are on the tape, by their hash."""
        if self.identifier.rules.fields.kept:  # whose values count, and are not in the hash
            return None
        if self._reindexed is None:
            return self.store.index.find_fingerprint(self.tape, raw)
        return self._reindexed.known.get(raw)

    def fingerprint_of(self, recorded: Exchange) -> Fingerprint:
        """Give the fingerprint under which the cursor has an exchange of the tape. May run on any thread.

        recorded: as `as_now` gives it.
        """
        if self._reindexed is None and not self.tape.index:
            return recorded.fingerprint
        now = reclassify(recorded, self._config.classes)
        return self.identifier.fingerprint(now.request, now.request_class)

    def effect_key_of(self, recorded: Exchange) -> bytes | None:
        """Give the effect key of an exchange of the tape; None where it is no effect. May run on any thread.

        recorded: as `as_now` gives it.
        """
        if recorded.request_class is not RequestClass.EFFECT:
            return None
        return self.identifier.identify(recorded.request, recorded.request_class)[1]

    def find_endpoints(self) -> dict[tuple[str, str], list[Seq]]:
        """Give the seqs of the tape by method and URL without query. Blocks when first asked."""
        return self._find_places().asked

    def find_near(self) -> Endpoints:
        """Give what finds the recorded requests that may be near one. Blocks when first asked."""
        return self._find_places().near

    def find_unfinished(self, fingerprint: Fingerprint, request: Request) -> Seq | None:
        """Find a request of the tape that is this one, and was under way when the recording ended. Blocks when first asked."""
        for one in self._find_places().unfinished:
            same = (one.method, one.url) == (request.method, request.url)
            if one.fingerprint == fingerprint or (self._reindexed is not None and same):
                return one.seq
        return None

    def find_awaited(self, *, is_unknown: bool = False) -> Seq | None:
        """Find what a branch or a resumed run has still to be asked for before anything may leave. Loop.

        is_unknown: the request that is to leave is itself an effect of a crashed run without an outcome.
        """
        if self.resumption.resume is not None:
            return self.resumption.find_awaited(self.cursor.served, is_unknown=is_unknown)
        return self.point.find_awaited(self.cursor.served)

    def take_unknown(
        self,
        request: Request,
        fingerprint: Fingerprint,
        keys: Collection[bytes],
        effect_key: bytes | None,
    ) -> UnknownEffect | None:
        """Find the effect of a crashed run without an outcome that a request asks for again. Loop.

        keys: forms of its idempotency key, as logs have them.
        """
        # Its log has the fingerprint of the rules that it was recorded under.
        same_rules = self._reindexed is None and not self.tape.index
        return self.resumption.take_unknown(
            request, fingerprint, same_rules=same_rules, keys=keys, effect_key=effect_key
        )

    def expect_prefix(self) -> None:
        """Find what a resumed run is to ask for again. Blocks."""
        resume = self.resumption.resume
        if resume is None:
            return
        for unknown in resume.unknown:
            recorded = None if unknown.place is None else self.read_recorded(unknown.place)
            key = None if recorded is None else self.effect_key_of(self.as_now(recorded))
            if key is not None:
                self.resumption.note_effect_key(unknown, key)
        self.resumption.expect(self.find_each_time(None) - resume.unanswered - resume.repeated)

    def find_each_time(self, before: Seq | None) -> frozenset[Seq]:
        """Find the exchanges before one that are asked for each time: no telemetry, tunnels, nor what threads read by chance. Blocks.

        before: None for all; then one that cannot be read is among them.
        """
        found = set()
        for seq in self.store.exchanges.seqs(self.tape):
            if before is not None and seq >= before:
                break
            recorded = self.read_recorded(seq)
            if recorded is None and before is None:
                found.add(seq)
            if recorded is None or recorded.request.method == "CONNECT" or is_poll(recorded):
                continue
            now = reclassify(recorded, self._config.classes)
            if now.request_class is not RequestClass.TELEMETRY and not find_background_read(
                now.request
            ):
                found.add(seq)
        return frozenset(found)

    async def read_values(self) -> None:
        """Have the agreement know the credentials of the whole tape. Loop."""
        if not self.agreement.same_key:
            return
        if self._values is None:
            self._values = asyncio.ensure_future(asyncio.to_thread(self._read_values))
        self.agreement.take_values(await asyncio.shield(self._values))

    def _read_values(self) -> RecordedValues:
        values = RecordedValues(self.identifier.rules.fields.account)
        with contextlib.suppress(
            LogCorrupt
        ):  # whoever is answered with what cannot be read is told
            for recorded in self.store.exchanges.all(self.tape):
                now = self.as_now(recorded)
                self.agreement.add_recorded(reclassify(now, self._config.classes), values)
                if recorded.response is not None:
                    values.give(self._secrets.list_given(recorded.response))
                time.sleep(0)  # others want the interpreter too
        return values

    def _find_places(self, requests: Iterable[Logged] | None = None) -> Places:
        if self._places is None:
            with self._reading:
                # Others want the interpreter too: nobody waits for this unless something diverged.
                self._places = self._places or find_places(
                    read_requests(self.store, self.tape) if requests is None else requests,
                    self._config.classes,
                    lambda: time.sleep(_PAUSE_S),
                )
        return self._places

    async def find_miss_search(self) -> MissSearch:
        """Give what looks for the recorded model call that was meant."""
        if self._miss_search is None:
            made = await asyncio.to_thread(_make_miss_search, self)
            self._miss_search = self._miss_search or made
        return self._miss_search

    async def prepare(self) -> str:
        """Find in which order answers ended, and begin to find what explains a miss, which need not be waited for. Loop.

        Gives what the receipt should warn of, or nothing.
        """
        if self.tape.exchanges > MOST_PREPARED:
            return "" if self._config.playback.order == "free" else _NO_ORDER.format(self.tape)
        with contextlib.suppress(StoreError):  # whoever plays it finds that, too, and says it
            # An agent may ask much as soon as it can.
            requests = await asyncio.to_thread(self._prepare_order)
            loop = asyncio.get_running_loop()
            self.preparing = loop.run_in_executor(None, self._find_places, requests)
        return ""

    def _prepare_order(self) -> list[Logged]:
        requests = list(read_requests(self.store, self.tape))
        self.completion.find(requests, self._config)
        return requests

    def reindex(self) -> None:
        """Compute the tape's fingerprints under the rules of now. Blocks for as long as reading it takes."""
        self._secrets.requests.needed = True
        found = Reindexed({}, {})
        for recorded in self.store.exchanges.all(self.tape):
            exchange = reclassify(self.as_now(recorded), self._config.classes)
            key = self.identifier.fingerprint(exchange.request, exchange.request_class)
            found.uses.setdefault(key, []).append(exchange.seq)
            found.known[raw_key(exchange.request, exchange.request_class)] = key
        self._reindexed = found

    @cached_property
    def cuts(self) -> "Counter[tuple[str, str]]":
        """How many cut requests of the tape have not come again, by method and URL."""
        cuts: Counter[tuple[str, str]] = Counter()
        with contextlib.suppress(LogCorrupt):
            for event in self.store.events.all(self.tape):
                if event.kind is EventKind.NOTED and "cut" in event.data:
                    method, url = event.data["cut"]
                    cuts[method, url] += 1
        return cuts


def read_recorded(store: Store, tape: RunInfo, seq: Seq) -> Exchange | None:
    """Find an exchange of a tape; None where it cannot be read. Any thread."""
    try:
        return store.exchanges.find(tape, seq)
    except LogCorrupt:
        return None


def read_as_now(
    store: Store, tape: RunInfo, requests: RecordedRequests, seq: Seq
) -> Exchange | None:
    """Find an exchange of a tape with its request as the rules of now have it; None where it cannot be read. Any thread."""
    recorded = read_recorded(store, tape, seq)
    return requests.find(recorded) if recorded is not None else None


def _make_miss_search(playback: PlaybackState) -> MissSearch:
    # They read every dialect: for a miss, not for a start.
    from ..order.reordered_tool_results import ToolResults
    from .model_drift_search import Drifts

    drifts = Drifts(playback)
    results = ToolResults(
        drifts.find_candidates, drifts.load, drifts.arrange, playback.fingerprint_of
    )
    return MissSearch(drifts, results)
