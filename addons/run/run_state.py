"""An open run: its tape, its rules, its pending exchanges and its requests so far.

Belongs to the event loop, except where a method says otherwise.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import thread_time
from typing import Any, ClassVar, Protocol

from mitmproxy import connection

from ...config import Config, Limits, Mode, OnFull, Secrets
from ...store import RunInfo, Store, StoreUnwritable
from ...tape.canonical.canonical_request import (
    rules_of,
)
from ...tape.canonical.identify import Identifier
from ...tape.contracts.applicable_contracts import Contracts
from ...tape.exchange import (
    RedactedText,
    Seq,
    Tunnel,
)
from ...tape.matching.header_agreement import Agreement
from ...tape.policy.branch import Branch
from ...tape.policy.decide import Decision, Policy
from ...tape.policy.faults import Faults
from ...tape.policy.resume import GivenRequests, Resume
from ...tape.records.events import Event, EventKind
from ...tape.redaction.redactor import Redactor
from ...timeline.lookup.requests_under_current_rules import RecordedRequests, Redacts
from ...timeline.reading.placeholder_key import find_key
from ...timeline.reading.present_classes import with_present_classes
from ..order.client_process_lanes import Lanes
from .effect_sinks import EffectReporter, SinkQueue
from .exchange_parts.answer import Answer
from .exchange_parts.phases import Held, Playing, Recording
from .gaps import Gap
from .playback_state import PlaybackState, RecordedSecrets, read_as_now
from .process_counters import Counters
from .repeated_effects import Effects
from .usage_meter import UsageMeter


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


class ExitCode(Protocol):
    """How one process ends; see `proxy/processes/exit_codes.py`."""

    def is_well(self) -> bool:
        """Say whether it is known to have ended with 0."""

    def close(self) -> None:
        """Follow it no more."""


class Unfinished(Protocol):
    """A request on its way, as its run knows it: `PendingExchange`."""

    @property
    def seq(self) -> Seq:
        """Its place in the run."""

    @property
    def origin(self) -> tuple[str, int]:
        """Host in lower case, and port."""

    @property
    def decision(self) -> Decision | None:
        """What was decided for it."""

    @property
    def progress(self) -> Recording:
        """How far it has come."""

    @property
    def held(self) -> Held:
        """What keeps it from going on."""

    @property
    def answer(self) -> Answer:
        """What has come of its answer."""

    @property
    def playing(self) -> Playing:
        """What is played of the tape."""


@dataclass(slots=True)
class Lifetime:
    """How a run begins and ends."""

    problem: str = ""
    """Why there is no tape to play, or empty."""
    begin_later: Callable[[], Awaitable[None]] | None = None
    """Begins a recording that could not be begun, and passes unrecorded until then."""
    ending: bool = False
    unfinished: tuple[Seq, ...] = ()
    """What was still on its way when it was ended."""
    stopped: Stopped | None = None
    """Who stopped it; nothing more is asked of anybody then."""


@dataclass(slots=True)
class Members:
    """Whose run it is."""

    keys: set[tuple[Any, ...]] = field(default_factory=set)
    groups: set[tuple[int, float]] = field(default_factory=set)
    groups_known: bool = True
    given: GivenRequests | None = None
    """What was asked for so far, where who comes with its name may be a process that was started again; None elsewhere."""
    exit_codes: dict[int, ExitCode] = field(default_factory=dict)
    """By process id, of such a run."""
    missed: bool = False
    """Whether a client had left before its process was looked for."""
    ended_well: Seq | None = None
    """Place of its last request when all of its processes were last seen to have ended with 0; None before that."""
    told_ended: bool = False
    """Whether somebody was told that its processes have ended and it has not."""

    @property
    def named(self) -> bool:
        """Whether it was asked for by a name that any group may use."""
        return any(len(key) == 1 for key in self.keys)


class Connections:
    """What is known of the tunnels and upstreams of a run."""

    def __init__(self) -> None:
        """Begin with none."""
        self.tunnels: dict[str, Tunnel] = {}
        """Those that are open, by client id."""
        self.asked_at: dict[tuple[str, int], float] = {}
        """When something was last asked of a host and port, or was done with; by the monotonic clock."""
        self.permits: dict[Unfinished, tuple[str, str, int]] = {}
        """Where live requests on their way may be connected to: client id, host, port."""
        self.stdio_servers: Counter[str] = Counter()
        """How many servers on a pipe were started, by name."""
        self._counts: Counter[tuple[str, int]] = Counter()
        """How many tunnels were asked for, by host and port."""

    def next_tunnel(self, client: connection.Client, host: str, port: int, after: Seq) -> Tunnel:
        """Give the place of a tunnel that a client has just asked for, after a request."""
        self._counts[host, port] += 1
        made = self.tunnels[client.id] = Tunnel(self._counts[host, port], after)
        return made


class OnTheWay:
    """The requests of a run that are on their way."""

    in_process: ClassVar[int] = 0
    """How many there are of all runs."""

    def __init__(self) -> None:
        """Begin with none."""
        self.pending_exchanges: set[Unfinished] = set()
        self.requests = 0
        """How many there were."""
        self.last_request = time.monotonic()
        self.last_seq = Seq(0)
        """Place of the request that arrived last; 0 before the first."""
        self.idle = asyncio.Event()
        self.idle.set()

    def next_seq(self) -> Seq:
        """Give the place of a request that has just arrived."""
        self.last_seq = Seq(self.last_seq + 1)
        return self.last_seq

    def begin(self, pending: Unfinished) -> None:
        """Note a request on its way."""
        self.pending_exchanges.add(pending)
        OnTheWay.in_process += 1
        self.idle.clear()
        self.requests += 1
        self.last_request = time.monotonic()

    def finish(self, pending: Unfinished) -> None:
        """Note that a request is done."""
        if pending in self.pending_exchanges:
            self.pending_exchanges.remove(pending)
            OnTheWay.in_process -= 1
        # An agent that waited long for an answer is not idle: its next request follows from it.
        self.last_request = time.monotonic()
        if not self.pending_exchanges:
            self.idle.set()


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
        *,
        branch: Branch | None = None,
        resume: Resume | None = None,
    ) -> None:
        """Begin a run with the rules that are in force now.

        branch: what a playback that is a branch declares.
        resume: what is known of the crashed run, of a playback that resumes one.
        """
        self.mode = mode
        self.config = config
        self.store = store
        self.info = info
        self.gap = Gap()
        """What could not be written of it."""
        self.sink_queue: SinkQueue | None = None
        """Where each effect is told."""
        self.reporter = EffectReporter(
            lambda lost: self.note(EventKind.LOST, lost=lost),
            lambda sink: self.counters.lost.update([sink]),
        )
        self.lifetime = Lifetime(problem)
        self.redactor = redactor
        self.policy = Policy.of(config, branch, resume).with_reasons(redactor.redact_text)
        self.identifier = Identifier(rules_of(config, thread_time), redactor.redacted_query)
        self.playback: PlaybackState | None = None
        """The tape that is played; None where there is none."""
        if tape is not None:
            self.playback = self._play(tape)
        self.members = Members()
        self.clients: dict[str, connection.Client] = {}
        self.on_the_way = OnTheWay()
        self.connections = Connections()
        self.effects = Effects()
        """Effects asked for so far."""
        self.lanes = Lanes()
        """Which process each request comes from, and which of a lane come late."""
        self.counters = Counters()
        """Where requests are counted; the process's own for runs that it opened."""
        limited = self._is_recorded and config.limits != Limits()
        self.usage_meter = (
            UsageMeter(
                config.limits,
                config.classes,
                lambda: self.policy,
                self.note,
                branch.known_use if branch is not None else None,
            )
            if limited
            else None
        )
        """What it has exhausted, where it has limits."""

    @property
    def _is_recorded(self) -> bool:
        return self.info is not None or self.mode is Mode.RECORD  # which may only be begun later

    @cached_property
    def contracts(self) -> Contracts | None:
        """What its messages are held to; None where that is nothing."""
        return Contracts.of(self.config) if self._is_recorded else None

    @cached_property
    def faults(self) -> Faults:
        """The faults on purpose."""
        return Faults(self.config.faults, self.config.fault_seed, self.mode)

    @property
    def keeps_originals(self) -> bool:
        """Whether what redaction replaces in answers is kept, and given back to who plays it."""
        return self.config.secrets is Secrets.ENCRYPTED and self.store.originals.kept

    def make_rewriter(self) -> Redacts:
        """Make what redacts the requests of a recording as those of this run are redacted."""
        # With all that says which rule found what: not for a start.
        from ...tape.redaction.rewriting.rewriter import Rewriter

        return Rewriter.of(self.redactor)

    def _play(self, tape: RunInfo) -> PlaybackState:
        store, redactor = with_present_classes(self.store, self.config.classes), self.redactor
        same_key = redactor.make_as(find_key(store, tape))
        # Whoever indexed it anew has left its requests as they were recorded.
        requests = RecordedRequests(self.make_rewriter, needed=bool(tape.index))
        agreement = Agreement(
            self.identifier.rules,
            partial(read_as_now, store, tape, requests),
            redactor.inner_secrets,
            redactor.stands_for,
            same_key=same_key,
        )
        return PlaybackState(
            tape,
            store,
            self.config,
            self.identifier,
            agreement,
            secrets=RecordedSecrets(requests, redactor.list_given),
            run=self.info,
            policy=self.policy,
        )

    @property
    def number(self) -> int:
        """Its number in the store.

        Raises: StoreUnwritable, where it could not be begun.
        """
        if self.info is None:
            raise StoreUnwritable("the run could not be begun", "nothing of it is recorded")
        return self.info.number

    @property
    def tape(self) -> RunInfo | None:
        """The tape that is played; None where there is none."""
        return self.playback.tape if self.playback is not None else None

    def next_seq(self) -> Seq:
        """Give the place of a request that has just arrived."""
        return self.on_the_way.next_seq()

    def begin(self, pending: Unfinished) -> None:
        """Note a request on its way."""
        self.on_the_way.begin(pending)

    def finish(self, pending: Unfinished) -> None:
        """Note that a request is done."""
        self.connections.permits.pop(pending, None)
        self.on_the_way.finish(pending)
        if self.playback is not None and pending.decision is not None and pending.decision.seq:
            self.playback.completion.note(pending.decision.seq, self.on_the_way.last_request)

    def was_asked(self, origin: tuple[str, int], *, since: float) -> bool:
        """Say whether a request to a host and port was on its way at some time since then.

        since: by the monotonic clock.
        """
        if self.connections.asked_at.get(origin, -1.0) >= since:
            return True
        return any(pending.origin == origin for pending in self.on_the_way.pending_exchanges)

    async def settled(self, timeout_s: float) -> bool:
        """Wait until no request is on its way; False when that took too long, or `hurry` was called."""
        try:
            await asyncio.wait_for(self.on_the_way.idle.wait(), timeout_s)
        except TimeoutError:
            return False
        return not self.on_the_way.pending_exchanges

    def hurry(self) -> None:
        """Have `settled` wait no longer."""
        self.on_the_way.idle.set()

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
