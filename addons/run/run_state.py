"""An open run: its tape, its rules, its pending exchanges and its requests so far.

Belongs to the event loop, except where a method says otherwise.
"""

import asyncio
import contextlib
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cached_property
from time import thread_time
from typing import TYPE_CHECKING, Any

from mitmproxy import connection

from ...config import Config, Limits, Mode, OnFull, Secrets
from ...store import LogCorrupt, RunInfo, Store, StoreUnwritable
from ...tape.canonical.canonical_request import (
    DEFAULT_IGNORE,
    Canonical,
    Rules,
    canonical,
    compile_rules,
    effect_key,
    fingerprint,
    raw_key,
    rules_of,
)
from ...tape.contracts.applicable_contracts import Contracts
from ...tape.diff.nearest import Endpoints
from ...tape.exchange import (
    Exchange,
    Fingerprint,
    RedactedText,
    Request,
    RequestClass,
    Response,
    Seq,
    Tunnel,
)
from ...tape.headers.recorded_values import RecordedValues
from ...tape.headers.shipped_lists import DECISIVE_NAMES
from ...tape.matching.agreement import Agreement, without_conditions
from ...tape.matching.cursor import Cursor, Exhausted, Hit, Rank, Unknown
from ...tape.matching.index import reclassify
from ...tape.matching.json_rpc_ids import IdRewriting
from ...tape.matching.profile_use import have_other_conditions
from ...tape.policy.decide import Policy
from ...tape.policy.faults import Faults
from ...tape.records.events import Event, EventKind
from ...tape.redaction.redactor import Redactor
from ...timeline.lookup.endpoints import Unfinished, read_order, read_places
from ..order.lanes import Lanes
from ..order.out_of_order import Order
from .effect_row import effect_line
from .effect_sinks import EffectReporter, SinkQueue
from .gaps import Gap
from .process_counters import Counters
from .repeats import AlikeEffects, Effects
from .usage_meter import UsageMeter

if TYPE_CHECKING:
    from ..order.tool_results import ToolResults
    from .drift_search import Drifts
    from .pending_exchange import PendingExchange

_OK = 200
_WHOLE = (_OK, 404)
"""Answers that a read has whatever its condition is: what was there, or that nothing is there. Source: RFC 9110 section 13.2.1."""
_CONDITION = 100
"""More than any other reason to prefer a recorded request."""
_NO_ANSWER = 2
"""An answer without a body to a read that has seen something else."""
_PAUSE_S = 0.0005
_PREPARED = 20_000
"""Exchanges of a tape up to which what explains a miss is read before there is one."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Who stopped a run, and why."""

    by: str
    """Name of the user, or the address that it was asked from."""
    pid: int
    """Of the process that asked; 0 where it could not be seen."""
    reason: RedactedText
    at_ns: int

    def __str__(self) -> str:
        who = f"{self.by} (pid {self.pid})" if self.pid else self.by
        return f"stopped by {who}: {self.reason}" if self.reason else f"stopped by {who}"


class OpenRun:
    """One run while it is open."""

    def __init__(
        self,
        mode: Mode,
        config: Config,
        redactor: Redactor,
        store: Store,
        info: RunInfo | None,
        tape: RunInfo | None = None,
        problem: str = "",
    ) -> None:
        """Begin a run with the rules that are in force now."""
        self.mode = mode
        self.config = config
        self.store = store
        self.info = info
        self.tape = tape
        self.gap = Gap()
        """What could not be written of it."""
        self.begin_later: Callable[[], Awaitable[None]] | None = None
        """Begins a recording that could not be begun, and passes unrecorded until then."""
        self.unfinished: tuple[Seq, ...] = ()
        """What was still on its way when it was ended."""
        self.sink_queue: SinkQueue | None = None
        """Where each effect is told."""
        self.reporter = EffectReporter(
            lambda lost: self.note(EventKind.LOST, lost=lost),
            lambda sink: self.counters.lost.update([sink]),
        )
        self.problem = problem
        """Why there is no tape to play, or empty."""
        self.policy = Policy.of(config)
        recorded = info is not None or mode is Mode.RECORD  # whose run may only be begun later
        self.contracts = Contracts.of(config) if recorded else None
        """What its messages are held to; None where that is nothing."""
        self.faults = Faults(config.faults, config.fault_seed, mode)
        self.rules: Rules = rules_of(config, thread_time)
        self.redactor = redactor
        self.stubbed: dict[Seq, Response] = {}
        """What was answered instead of executing an effect, by seq; the first of a run."""
        self.order = (
            Order(store, tape, info, self.policy, config.classes, self.stubbed)
            if tape is not None
            else None
        )
        order = self.order
        self.cursor = (
            Cursor(self._next_use, order.take, order.give_back) if order is not None else None
        )
        self.reindexed: dict[Fingerprint, list[Seq]] | None = None
        """Uses of each fingerprint under the rules of now, where the tape was indexed under others."""
        self._raws: dict[bytes, Fingerprint] = {}
        """Fingerprints by hash of the raw request, there."""
        self.keys: set[tuple[Any, ...]] = set()
        self.groups: set[tuple[int, float]] = set()
        self.groups_known = True
        self.clients: dict[str, connection.Client] = {}
        self.pending_exchanges: set[PendingExchange] = set()
        self.endpoints: dict[tuple[str, str], list[Seq]] | None = None
        """Seqs of the tape by method and URL without query; read when first needed."""
        self.given: dict[Seq, Seq] = {}
        """By the tape's seq: the request that its answer was first given to."""
        self.near: Endpoints | None = None
        """The same for what may be near; read with them."""
        self.unfinished_recorded: list[Unfinished] = []
        """What was under way when the recording ended; read with them."""
        self.tool_results: ToolResults | None = None
        """Which model calls of the tape list the same results; made with `drifts`."""
        self.answered_before: dict[Seq, tuple[Seq, ...]] = {}
        """By exchange of the tape, those that overlapped it and were answered before it."""
        self.answered: dict[Seq, float] = {}
        """When exchanges of the tape were answered in this playback, by the monotonic clock."""
        self.drifts: Drifts | None = None
        """What of the tape may have drifted; made at the first model call that is not on it."""
        self.id_rewriting = IdRewriting()
        """How the client names now what it named otherwise on the tape."""
        self.preparing: asyncio.Future[Any] | None = None
        """Reads them, from the opening of a playback on."""
        self._reading = threading.Lock()
        self._values: asyncio.Future[RecordedValues] | None = None
        """Reads the credentials of the tape, once they are needed."""
        self.effects = Effects()
        """Effects asked for so far."""
        self.gated = AlikeEffects()
        """Those of them that left, or are about to, where a gate asks what they repeat; used on the loop alone."""
        self.lanes = Lanes()
        """Which process each request comes from, and which of a lane come late."""
        self.agreement = Agreement(
            self.rules,
            self.read_recorded,
            self.redactor.inner_secrets,
            self.redactor.stands_for,
            same_key=tape is not None and _find_key(store, tape) == self.redactor.key_id,
        )
        """How the header fields of what is asked agree with those of the tape."""
        self.tunnels: dict[str, Tunnel] = {}
        """What is known of the tunnels that are open, by client id."""
        self.failing: set[tuple[str, int]] = set()
        """Origins of the tape with a failed tunnel that has not failed again yet."""
        self.cuts: Counter[tuple[str, str]] | None = None
        """Requests of the tape that were cut and have not come again; read when first needed."""
        self.tunnel_counts: dict[tuple[str, int], int] = {}
        """How many tunnels were asked for, by host and port."""
        self.asked_at: dict[tuple[str, int], float] = {}
        """When something was last asked of a host and port, or was done with; by the monotonic clock."""
        self.permits: dict[PendingExchange, tuple[str, str, int]] = {}
        """Where live requests on their way may be connected to: client id, host, port."""
        self.last_request = time.monotonic()
        self.requests = 0
        self.ending = False
        self.counters = Counters()
        """Where requests are counted; the process's own for runs that it opened."""
        self.stopped: Stopped | None = None
        """Who stopped it; nothing more is asked of anybody then."""
        limited = recorded and config.limits != Limits()
        self.usage_meter = UsageMeter(config.limits) if limited else None
        """What it has exhausted, where it has limits."""
        self.last_seq = Seq(0)
        """Place of the request that arrived last; 0 before the first."""
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def keeps_originals(self) -> bool:
        """Whether what redaction replaces in answers is kept, and given back to who plays it."""
        return self.config.secrets is Secrets.ENCRYPTED and self.store.originals.kept

    @cached_property
    def shipped_rules(self) -> Rules:
        """The rules without those of the configuration's `ignore`."""
        return compile_rules((), thread_time, self.rules.fields, self.rules.profiles.all)

    @property
    def has_own_ignore(self) -> bool:
        """Whether its configuration has rules of `ignore`."""
        return len(self.rules.ignore) > len(DEFAULT_IGNORE)

    @property
    def named(self) -> bool:
        """Whether it was asked for by a name that any group may use."""
        return any(len(key) == 1 for key in self.keys)

    def next_seq(self) -> Seq:
        """Give the place of a request that has just arrived."""
        self.last_seq = Seq(self.last_seq + 1)
        return self.last_seq

    def begin(self, pending: "PendingExchange") -> None:
        """Note a request on its way."""
        self.pending_exchanges.add(pending)
        self._idle.clear()
        self.requests += 1
        self.last_request = time.monotonic()

    def finish(self, pending: "PendingExchange") -> None:
        """Note that a request is done."""
        self.pending_exchanges.discard(pending)
        if self.sink_queue is not None and (line := effect_line(pending)):
            self.sink_queue.put(self.reporter, line)
        self.permits.pop(pending, None)
        # An agent that waited long for an answer is not idle: its next request follows from it.
        self.last_request = time.monotonic()
        if self.answered_before and pending.decision is not None and pending.decision.seq:
            self.answered[pending.decision.seq] = self.last_request
        if not self.pending_exchanges:
            self._idle.set()

    def was_asked(self, origin: tuple[str, int], *, since: float) -> bool:
        """Say whether a request to a host and port was on its way at some time since then.

        since: by the monotonic clock.
        """
        if self.asked_at.get(origin, -1.0) >= since:
            return True
        return any(pending.origin == origin for pending in self.pending_exchanges)

    async def settled(self, timeout_s: float) -> bool:
        """Wait until no request is on its way; False when that took too long, or `hurry` was called."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        except TimeoutError:
            return False
        return not self.pending_exchanges

    def hurry(self) -> None:
        """Have `settled` wait no longer."""
        self._idle.set()

    def note(self, kind: EventKind, **data: Any) -> None:
        """Append an event to the run's log; nobody waits.

        Raises: StoreUnwritable, where nothing may pass unrecorded; a playback goes on, with a gap.
        """
        if self.info is None:
            return
        try:
            self.store.events.append(self.info.number, Event(kind, time.time_ns(), data))
        except StoreUnwritable as error:
            if self.mode is Mode.RECORD:
                self.miss(error)
            else:
                self.gap.note(str(error))

    @property
    def passes(self) -> bool:
        """Whether what cannot be recorded goes on all the same."""
        return self.config.on_full is OnFull.PASS

    def miss(self, error: StoreUnwritable, *, exchanges: int = 0, effects: int = 0) -> None:
        """Note what cannot be written as missing, and raise `error` where nothing may pass unrecorded."""
        if not self.passes:
            # What is refused for it was not sent on.
            self.gap.note(str(error), exchanges=exchanges)
            raise error
        self.gap.note(str(error), exchanges=exchanges, effects=effects)

    def _next_use(self, fingerprint: Fingerprint, after: int) -> Seq | None:
        assert self.tape is not None
        if self.reindexed is None:
            return self.store.index.next_use(self.tape, fingerprint, after)
        uses = self.reindexed.get(fingerprint, [])
        at = bisect_right(uses, after)
        return uses[at] if at < len(uses) else None

    def read_recorded(self, seq: Seq) -> Exchange | None:
        """Find an exchange of the tape; None where it cannot be read, which is said where it is served."""
        if self.tape is None:
            return None
        try:
            return self.store.exchanges.find(self.tape, seq)
        except LogCorrupt:
            return None

    def find_recorded(
        self, pending: "PendingExchange", fingerprint: Fingerprint, *, repeat: bool
    ) -> tuple[Fingerprint, Hit | Exhausted | Unknown]:
        """Find the recorded exchange that answers a request, and the fingerprint that it has.

        repeat: as for `Cursor.find`.
        """
        request, request_class = pending.request, pending.request_class
        if self.cursor is None or request is None:
            return fingerprint, Unknown()
        rank = self.agreement.ranking(request)
        if self.rules.of(request, request_class).masks.unconditional:
            return fingerprint, self._find_unconditional(
                self.cursor, request, request_class, fingerprint, rank, repeat=repeat
            )
        found = self.cursor.find(fingerprint, request_class, repeat=repeat, rank=rank)
        if not isinstance(found, Unknown) or (headers := without_conditions(request)) is None:
            return fingerprint, found
        # What was recorded without a condition answers a request with one: with the whole body.
        bare = replace(request, headers=headers)
        other = self.fingerprint(bare, request_class)
        hit = self.cursor.find(other, request_class, repeat=repeat, rank=rank)
        if isinstance(hit, Hit):
            recorded = self.read_recorded(hit.seq)
            answer = recorded.response if recorded is not None else None
            if answer is not None and answer.status == _OK:
                return other, hit
        return fingerprint, found

    def _find_unconditional(
        self,
        cursor: Cursor,
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

        found = cursor.find(fingerprint, request_class, repeat=repeat, rank=rank_condition)
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
        assert self.tape is not None
        if self.rules.fields.kept:  # whose values count, and are not in the hash
            return None
        if self.reindexed is None:
            return self.store.index.find_fingerprint(self.tape, raw)
        return self._raws.get(raw)

    def fingerprint(self, request: Request, request_class: RequestClass) -> Fingerprint:
        """Bring a request into canonical form and hash it. May run on any thread."""
        return fingerprint(self._form(request, request_class))

    def fingerprint_of(self, recorded: Exchange) -> Fingerprint:
        """Give the fingerprint under which the cursor has an exchange of the tape. May run on any thread."""
        assert self.tape is not None
        if self.reindexed is None and not self.tape.index:
            return recorded.fingerprint
        now = reclassify(recorded, self.config.classes)
        return self.fingerprint(self.redactor.recorded(now.request), now.request_class)

    def effect_key_of(self, recorded: Exchange) -> bytes | None:
        """Give the effect key of an exchange of the tape; None where it is no effect. May run on any thread."""
        if recorded.request_class is not RequestClass.EFFECT:
            return None
        return self.identify(recorded.request, recorded.request_class)[1]

    def identify(
        self, request: Request, request_class: RequestClass
    ) -> tuple[Fingerprint, bytes | None]:
        """Give a request's fingerprint and, of an effect, its effect key. May run on any thread."""
        form = self._form(request, request_class)
        effect = request_class is RequestClass.EFFECT
        return fingerprint(form), effect_key(form) if effect else None

    def effect_key(self, request: Request) -> bytes:
        """Give the effect key of an effect. May run on any thread."""
        return effect_key(self._form(request, RequestClass.EFFECT))

    def head_and_body_key(self, request: Request, request_class: RequestClass) -> bytes:
        """Give the fingerprint of a request but for its method, place, path and query. May run on any thread.

        Of its header fields those count that are known to mean something: a new id in each request is no new request.
        """
        form = self._form(request, request_class)
        headers = tuple(field for field in form.headers if field[0] in DECISIVE_NAMES)
        bare = form._replace(
            method="", scheme="", authority="", path="", query=(), headers=headers, names=()
        )
        return fingerprint(bare)

    def _form(self, request: Request, request_class: RequestClass) -> Canonical:
        secret = self.redactor.redacted_query(request)
        return canonical(request, request_class, self.rules, secret)

    def find_endpoints(self) -> dict[tuple[str, str], list[Seq]]:
        """Give the seqs of the tape by method and URL without query. Blocks when first asked."""
        if self.endpoints is None:
            self._read_tape()
        assert self.endpoints is not None
        return self.endpoints

    def find_near(self) -> Endpoints:
        """Give what finds the recorded requests that may be near one. Blocks when first asked."""
        if self.near is None:
            self._read_tape()
        assert self.near is not None
        return self.near

    def find_unfinished(self, fingerprint: Fingerprint, request: Request) -> Seq | None:
        """Find a request of the tape that is this one, and was under way when the recording ended. Blocks when first asked."""
        self.find_near()
        for one in self.unfinished_recorded:
            if one.fingerprint == fingerprint or (
                self.reindexed is not None
                and (one.method, one.url) == (request.method, request.url)
            ):
                return one.seq
        return None

    def find_answered_before(self, seq: Seq) -> tuple[Seq, ...]:
        """Give the exchanges of the tape that overlapped one and were answered before it. Loop."""
        return self.answered_before.get(seq, ())

    async def prepare(self) -> None:
        """Read in which order answers ended, and begin to read what explains a miss, which need not be waited for. Loop."""
        if self.tape is not None and self.tape.exchanges <= _PREPARED:
            # An agent may ask much as soon as it can.
            asked = (self.store, self.tape, self.config.classes)
            self.answered_before = await asyncio.to_thread(read_order, *asked)
            loop = asyncio.get_running_loop()
            self.preparing = loop.run_in_executor(None, self.find_near)

    async def read_values(self) -> None:
        """Have the agreement know the credentials of the whole tape. Loop."""
        if self.tape is None or not self.agreement.same_key:
            return
        if self._values is None:
            self._values = asyncio.ensure_future(asyncio.to_thread(self._read_values, self.tape))
        self.agreement.take_values(await asyncio.shield(self._values))

    def _read_values(self, tape: RunInfo) -> RecordedValues:
        values = RecordedValues(self.rules.fields.account)
        with contextlib.suppress(
            LogCorrupt
        ):  # whoever is answered with what cannot be read is told
            for recorded in self.store.exchanges.all(tape):
                self.agreement.add_recorded(reclassify(recorded, self.config.classes), values)
                if recorded.response is not None:
                    values.give(self.redactor.list_given(recorded.response))
                time.sleep(0)  # others want the interpreter too
        return values

    def _read_tape(self) -> None:
        with self._reading:
            if self.near is not None:
                return
            assert self.tape is not None
            classes = self.config.classes
            # Others want the interpreter too: nobody waits for this unless something diverged.
            found = read_places(self.store, self.tape, classes, lambda: time.sleep(_PAUSE_S))
            self.unfinished_recorded = found.unfinished
            self.near, self.endpoints = found.near, found.asked

    def next_tunnel(self, client: connection.Client, host: str, port: int) -> Tunnel:
        """Give the place of a tunnel that a client has just asked for."""
        number = self.tunnel_counts.get((host, port), 0) + 1
        self.tunnel_counts[host, port] = number
        made = self.tunnels[client.id] = Tunnel(number, self.last_seq)
        return made

    def reindex(self) -> None:
        """Compute the tape's fingerprints under the rules of now. Blocks for as long as reading it takes."""
        assert self.tape is not None
        found: dict[Fingerprint, list[Seq]] = {}
        for recorded in self.store.exchanges.all(self.tape):
            exchange = reclassify(recorded, self.config.classes)
            request = self.redactor.recorded(exchange.request)
            key = self.fingerprint(request, exchange.request_class)
            found.setdefault(key, []).append(exchange.seq)
            self._raws[raw_key(request, exchange.request_class)] = key
        self.reindexed = found


def _find_key(store: Store, tape: RunInfo) -> str:
    """Give what tells the key of a tape's placeholders; empty where nobody knows."""
    try:
        opened = next(iter(store.events.read(tape)), None)
    except LogCorrupt:
        return ""
    return str(opened.data.get("placeholders", "")) if opened is not None else ""
