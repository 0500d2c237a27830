"""The registry of open runs: it assigns client connections to runs, and opens and ends runs.

Rules, in the order they are applied (design, section 4):

1. A client connection belongs to one run for life, and a run keeps its mode for life.
2. Credentials name the run: in record the recording, in playback the tape.
3. Without credentials a run is one process group of the client, or, where that cannot be seen, one client
   address.
4. A playback is a run of its own: every new client group starts with a fresh cursor.
5. A run ends when its group has ended, when somebody asks for it, at shutdown, or, once the mode in the
   file has changed, `runs.grace` after its last request. Idleness alone never ends a run.
6. A name used again after that becomes NAME~2.

Everything here runs on the event loop; looking for a client's process is done on a thread.
"""

import asyncio
import contextlib
import fnmatch
import hmac
import logging
import re
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Any, Protocol

from mitmproxy import connection

from ... import PlayheadError
from ...config import Config, Mode, Sink, parse_run_name
from ...store import LogCorrupt, RunInfo, RunStatus, Store, StoreError, StoreUnwritable, UnknownRun
from ...tape.canonical.canonical_request import CANONICAL_VERSION, rules_of
from ...tape.canonical.masks import slow
from ...tape.exchange import NO_TEXT, RedactedText, RequestClass
from ...tape.matching.index import index_digest
from ...tape.policy.approval_decision import ApprovalDecision, Ruling
from ...tape.policy.decide import Policy
from ...tape.records.events import EventKind
from ...tape.redaction.redactor import Redactor
from .effect_sinks import SinkQueue
from .gaps import Gap
from .pending_approvals import PendingApprovals
from .pending_exchange import PendingExchange, on_their_way
from .process_counters import Counters
from .run_state import OpenRun

logger = logging.getLogger(__name__)

SEAL = "seal"
"""What another process leaves in the store to have a run ended."""

_LATE = "playhead_run"
"""Attribute of a client connection that had left before it was bound: its run."""
_LOOK = "playhead_look"
"""Attribute of a client connection: the look for its process group."""
_TURNS = 50
"""Turns of the loop that reading what clients did last may take."""
_SEALING_S = 30.0
"""Longest wait of a new playback for recordings that are just being sealed."""

_MOST_LOOKS = 1000
"""Clients of named runs that wait to have their group learnt; further ones are left unknown."""

_REFUSED_S = 2.0
"""Longest wait for the refusal of what a gate held when its run ends."""
_SECOND_LOOK_S = 0.1
_LOOK_S = 0.25

_TOO_NEW = (
    "run {0} is indexed in canonical form {1}, and this version of Playhead compares in form {2}: its requests"
    " were compared from their raw bytes; `playhead reindex {0}` makes that last"
)


class Group(Protocol):
    """A process group that was seen as a client; see `proxy/processes/connections.py`."""

    @property
    def pid(self) -> int:
        """Of the process that was seen."""

    @property
    def pgid(self) -> int:
        """Process group id."""

    @property
    def started(self) -> float:
        """Start time of its leader, to be compared only; 0 where the leader has gone."""

    @property
    def command(self) -> str:
        """What it runs, for people."""


@dataclass(frozen=True, slots=True)
class Processes:
    """How client processes are seen: handed in, so that tests and sandboxes can stand in."""

    find: Callable[[tuple[str, int], tuple[str, int]], Group | None]
    """(client's address, our address) -> its process group; blocking."""
    alive: Callable[[int, float], bool]
    """(pgid, started) -> whether any of the group is still there."""


class OwnPorts(Protocol):
    """What knows at which ports the command's own programs listen."""

    def listens(self, host: str, port: int) -> bool:
        """Say whether it is proved that a program of the command, and nobody else, listens there."""

    async def connect(self, host: str, port: int) -> socket | None:
        """Connect to it where it listens in another network than ours; None where it does not.

        Raises: OSError.
        """


@dataclass(frozen=True, slots=True)
class Rejected:
    """The client may not use the proxy."""

    reason: str
    status: int = 407


class RunRegistry:
    """All open runs of this process, and the clients that belong to them."""

    def __init__(
        self,
        store: Store,
        config: Config,
        redactor: Callable[[Config], Redactor],
        processes: Processes,
        *,
        sole: str = "",
        refresh: Callable[[], Config | None] = lambda: None,
        restore: Callable[[RunInfo], None] | None = None,
    ) -> None:
        """Begin with no run open.

        sole: every client belongs to one run of this name (in playback: of this tape), whatever it is.
        refresh: asked before a run opens; gives new settings if the file has changed.
        restore: puts a tape that was archived into the store again; blocking.
        """
        self.config = config
        self.approvals = PendingApprovals()
        """What is held, over all runs."""
        self.sole_run: OpenRun | None = None
        self.counters = Counters()
        self.ended: list[RunInfo] = []
        """Runs that were sealed by this process, for the receipt at the end."""
        self.on_unfinished: Callable[[PendingExchange], Awaitable[None]] | None = None
        self.on_overdue: Callable[[PendingExchange], Awaitable[None]] | None = None
        """Called with an exchange whose answer goes on long after its client has left."""
        self.on_broken: (
            Callable[[PendingExchange, RedactedText, str], Awaitable[None] | None] | None
        ) = None
        """Asked to keep an exchange that is broken off by us, with why and what decided that."""
        self.on_ended: Callable[[OpenRun], Awaitable[None]] | None = None
        """Asked to close what is left of a run's connections."""
        self.on_ending: list[Callable[[OpenRun], Awaitable[None]]] = []
        """Asked to keep what is left of a run, before it is sealed."""
        self.own_ports: OwnPorts | None = None
        """Knows where the command's own programs listen; None where there is no command of ours."""
        self.on_reset: Callable[[connection.Client], None] | None = None
        """Asked to end a client's connection with RST."""
        self._store = store
        self._redactor = redactor
        self._processes = processes
        self._sole = sole
        self._refresh = refresh
        self._restore = restore
        self._by_key: dict[tuple[Any, ...], OpenRun] = {}
        self._by_client: dict[str, OpenRun] = {}
        self._locks: weakref.WeakValueDictionary[tuple[Any, ...], asyncio.Lock]
        self._locks = weakref.WeakValueDictionary()
        """One a key, so that a run that takes long to open keeps nobody else waiting."""
        self._sealing: dict[asyncio.Task[None], OpenRun] = {}
        self._to_look: deque[tuple[OpenRun, connection.Client]] = deque()
        self._looking: asyncio.Task[None] | None = None
        self._sink_queues: dict[Sink, SinkQueue] = {}
        self._closed = False

    # ---- who is asking -------------------------------------------------------------------------

    def of(self, client: connection.Client) -> OpenRun | None:
        """Find the run of a client connection, also of one that had left before it was bound."""
        bound = self._by_client.get(client.id)
        return bound if bound is not None else getattr(client, _LATE, None)

    async def assign(
        self, client: connection.Client, credentials: tuple[str, str] | None
    ) -> OpenRun | Rejected:
        """Give a client connection its run, opening one where there is none."""
        if self._closed:
            return Rejected("the proxy is stopping", 503)
        rejected = self._check(credentials)
        if rejected is not None:
            return rejected
        name = credentials[0] if credentials else None
        bound = self.of(client)
        if bound is not None:
            # A keep-alive connection may come with other credentials later: it stays where it is.
            if (
                name is not None
                and not self._sole
                and bound.members.keys
                and not _names(bound, name)
            ):
                return Rejected(f"this connection belongs to another run than {name!r}")
            return bound
        open_run = await self._find_or_open(client, name)
        if client.timestamp_end is None:  # else it has left meanwhile, and leaves only once
            self._by_client[client.id] = open_run
            open_run.clients[client.id] = client
            if open_run.mode is not Mode.PASSTHROUGH:
                open_run.lanes.look(client.id, self._look_once(client))
            client.redact_text = open_run.redactor.redact_text  # type: ignore[attr-defined]  # see `find_redact_text`
        else:
            # What it sent before is still to come. It is a client of the run no more, so nothing waits for it.
            setattr(client, _LATE, open_run)
        return open_run

    def leave(self, client: connection.Client) -> None:
        """Forget a client connection that has ended."""
        open_run = self._by_client.pop(client.id, None)
        if open_run is not None:
            open_run.clients.pop(client.id, None)
            open_run.connections.tunnels.pop(client.id, None)

    @property
    def is_sole(self) -> bool:
        """Whether every client belongs to one run."""
        return bool(self._sole)

    def name_sole_run(self, name: str) -> None:
        """Have the one run be named so, or play the tape of that name, from its first request on."""
        self._sole = name

    async def find_sole_run(self) -> OpenRun | None:
        """Find the one run, once its command has ended: what its clients did last is read first, be it what opens the run."""
        await _read_last()
        async with self._lock(("sole",)):
            pass
        await _read_last()
        return self.sole_run

    async def find_process(self, client: connection.Client) -> str:
        """Find the command name of a client's process, while it is connected; empty where that cannot be seen."""
        group = await asyncio.shield(self._look_once(client))
        return group.command if group is not None else ""

    def redactor(self) -> Redactor:
        """Make what takes secrets out of texts, under the settings of now."""
        return self._redactor(self.config)

    @property
    def open(self) -> list[OpenRun]:
        """All runs that are open, each once."""
        return list(dict.fromkeys(self._by_key.values()))

    def _check(self, credentials: tuple[str, str] | None) -> Rejected | None:
        if credentials is not None:
            try:
                parse_run_name(credentials[0])
            except ValueError as error:
                return Rejected(str(error))
        tokens = self.config.runs.tokens
        if not tokens or self._sole:
            return None
        if credentials is None:
            return Rejected("credentials are needed: HTTPS_PROXY=http://RUN:TOKEN@host:port")
        name, token = credentials
        for pattern, expected in tokens.items():
            if fnmatch.fnmatchcase(name, pattern) and hmac.compare_digest(
                token.encode(), expected.encode()
            ):
                return None
        return Rejected(f"wrong token for run {name!r}")

    def adopt(self, fresh: Config) -> None:
        """Take new settings for new runs. A live rule that is gone stops for running ones, too."""
        self.config = fresh
        now = Policy.of(fresh)
        for open_run in self.open:
            kept = open_run.policy.without_live(now)
            if kept is not open_run.policy:
                gone = len(open_run.policy.live) - len(kept.live)
                run = open_run.info.id if open_run.info is not None else "without a name"
                logger.warning("run %s: %s live rules were removed", run, gone)
                open_run.policy = kept

    async def _find_or_open(self, client: connection.Client, name: str | None) -> OpenRun:
        if self._sole:
            async with self._lock(("sole",)):
                if self.sole_run is None or self.sole_run.ending:
                    self.sole_run = await self._open(("sole",), self._sole, None)
                return self.sole_run
        fresh = self._refresh()
        if fresh is not None:
            self.adopt(fresh)
        default = self.config.runs.default
        shared = name or (default if default != "per-process" else None)
        existing = self._by_key.get((shared,)) if shared else None
        if existing is not None and existing.mode is self.config.mode:
            # No need to know the process yet; it matters once the mode changes.
            self._look_later(existing, client)
            return existing
        group = await asyncio.shield(self._look_once(client))
        who = self._who(group, client)
        async with self._lock((shared,) if shared else who):
            return await self._find_or_open_for(client, name, shared, group)

    async def _find_or_open_for(
        self, client: connection.Client, name: str | None, shared: str | None, group: Group | None
    ) -> OpenRun:
        """Find or open the run of a client whose group was looked for. One at a time for a key."""
        who = self._who(group, client)
        # A name that comes with the request is never answered by the run that its group had without it.
        existing = self._by_key.get((shared,)) if shared else None
        existing = existing or self._by_key.get((name, *who))
        if existing is not None and self._belongs(existing, who if group else None):
            if existing.members.named:
                self._add_group(existing, group)
            return existing
        if self.config.mode is Mode.PLAYBACK:
            open_run = await self._open((name, *who), name or self.config.playback.run, group)
        elif shared and self.config.mode is Mode.RECORD:
            open_run = await self._open((shared,), shared, group)
        else:
            open_run = await self._open((name, *who), _run_name(group, client), group)
        self._add_group(open_run, group)
        return open_run

    def _lock(self, key: tuple[Any, ...]) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _look_once(self, client: connection.Client) -> "asyncio.Task[Group | None]":
        """Give the look for a client's group, which is made once for a connection: it costs a look at the process table."""
        found: asyncio.Task[Group | None] | None = getattr(client, _LOOK, None)
        if found is None:
            found = asyncio.get_running_loop().create_task(self._find_group(client))
            setattr(client, _LOOK, found)
        return found

    async def _find_group(self, client: connection.Client) -> Group | None:
        there: tuple[Any, ...] | None = client.peername  # None where it has left already
        here: tuple[Any, ...] | None = client.sockname
        if there is None or here is None:
            return None
        peer, local = (there[0], there[1]), (here[0], here[1])
        return await asyncio.to_thread(self._processes.find, peer, local)

    def _who(self, group: Group | None, client: connection.Client) -> tuple[Any, ...]:
        """Say who a client is: its group, or its address where that cannot be seen."""
        if group is None:
            return (_address(client),)
        return self._known(group)

    def _known(self, group: Group) -> tuple[int, float]:
        if group.started:
            return (group.pgid, group.started)
        # The leader has gone before the rest of its group: the group is known by the leader it had.
        known = (
            who for open_run in self.open for who in open_run.members.groups if who[0] == group.pgid
        )
        return next(known, (group.pgid, 0.0))

    def _add_group(self, open_run: OpenRun, group: Group | None) -> None:
        if group is None:
            open_run.members.groups_known = False
        else:
            open_run.members.groups.add(self._known(group))

    def _look_later(self, open_run: OpenRun, client: connection.Client) -> None:
        """Learn the group of a named run's client without making it wait."""
        if len(self._to_look) < _MOST_LOOKS:
            self._to_look.append((open_run, client))
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        while self._to_look:
            open_run, client = self._to_look.popleft()
            group = None
            for pause_s in (0.0, _SECOND_LOOK_S):
                # Who has left cannot be found any more, which says nothing about who can be seen.
                if open_run.ending or not client.connected:
                    break
                if pause_s:
                    await asyncio.sleep(pause_s)
                again = self._find_group(client) if pause_s else self._look_once(client)
                group = await again
                if group is not None:
                    break
            if group is not None or (client.connected and not open_run.ending):
                self._add_group(open_run, group)

    def _belongs(self, open_run: OpenRun, who: tuple[Any, ...] | None) -> bool:
        """Say whether a client stays in a run that was found by its name or group.

        who: its group, or None where that cannot be seen.
        """
        if open_run.ending:
            return False
        if open_run.mode is self.config.mode or not open_run.members.named:
            return True
        # The mode has changed: those whose run it was go on in it, and nobody joins them. Who cannot be
        # seen may be one of them.
        if who in open_run.members.groups or (who is None and not open_run.members.groups_known):
            return True
        if self._groups_ended(open_run):
            self.end(open_run, "its processes had ended when the mode was another")
        return False

    def _groups_ended(self, open_run: OpenRun) -> bool:
        if not open_run.members.groups or not open_run.members.groups_known:
            return False
        return not any(self._processes.alive(*group) for group in open_run.members.groups)

    # ---- beginning -----------------------------------------------------------------------------

    async def _open(self, key: tuple[Any, ...], name: str, group: Group | None) -> OpenRun:
        config = self.config
        redactor = self._redactor(config)
        agent = redactor.redact_text(group.command) if group else NO_TEXT
        if config.mode is Mode.PASSTHROUGH:
            open_run = OpenRun(config.mode, config, redactor, self._store, None)
        elif config.mode is Mode.RECORD:
            open_run = OpenRun(config.mode, config, redactor, self._store, None)
            await self._begin(open_run, name, agent)
        else:
            open_run = await self._open_playback(config, redactor, name, agent)
            self._begun(open_run)
        open_run.counters = self.counters
        self.counters.runs[open_run.mode.value] += 1
        open_run.members.keys.add(key)
        self._by_key[key] = open_run
        return open_run

    async def _begin(self, open_run: OpenRun, name: str, agent: RedactedText) -> None:
        """Begin a recording; where it cannot be written and may pass, later."""
        config = open_run.config
        try:
            open_run.info = await self._store.runs.create(
                name,
                mode=config.mode.value,
                at_ns=time.time_ns(),
                agent=agent,
                rules=index_digest(rules_of(config), config),
                canonical=CANONICAL_VERSION,
                placeholders=open_run.redactor.key_id,
            )
        except StoreUnwritable as error:
            open_run.miss(error)
            if open_run.lifetime.begin_later is None:
                logger.warning("run %s passes unrecorded: %s", name, error)
            open_run.lifetime.begin_later = partial(self._begin, open_run, name, agent)
            return
        open_run.lifetime.begin_later = None
        _note_rules(open_run)
        logger.info("run %s: recording", open_run.info.id)
        self._begun(open_run)

    def _begun(self, open_run: OpenRun) -> None:
        if open_run.usage_meter is not None and open_run.info is not None:
            open_run.usage_meter.begin()
        if open_run.info is not None and open_run.config.sink.used:
            open_run.sink_queue = self._sink_queue(open_run.config.sink)

    async def _report_gap(self, open_run: OpenRun, *, ending: bool = False) -> None:
        """Say in a run's log what is missing: that there is a gap while it lasts, and once it is over what.

        ending: no more of the run follows.
        """
        writer = self._store.writer
        if open_run.lifetime.begin_later is not None and (writer.failed is None or ending):
            await open_run.lifetime.begin_later()
        if open_run.info is None:
            if open_run.lifetime.begin_later is not None and ending:
                raise StoreUnwritable("the run could not be begun", "nothing of it was recorded")
            return
        number, gap = open_run.info.number, open_run.gap
        if number in writer.lost:
            gap.note(str(writer.failed or "rows of it could not be written"))
        if not gap.open or (writer.failed is not None and gap.begun and not ending):
            return
        if writer.failed is not None and not ending:
            gap.begun = True
            await self._store.events.append_durably(number, gap.begin_event(), vital=True)
            return
        open_run.gap, lost = Gap(), writer.take_lost(number)
        try:
            await self._store.events.append_durably(number, gap.end_event(lost), vital=True)
        except StoreUnwritable:
            gap.add(open_run.gap)
            open_run.gap = gap
            writer.count_lost(number, lost)
            raise

    def _sink_queue(self, sink: Sink) -> SinkQueue:
        """Give where a configuration's effects are told; runs of the same share it."""
        found = self._sink_queues.get(sink)
        if found is None:
            found = self._sink_queues[sink] = SinkQueue(sink)
        return found

    async def _open_playback(
        self, config: Config, redactor: Redactor, name: str, agent: RedactedText
    ) -> OpenRun:
        await self._settle_recordings(name)
        try:
            tape = self._find_tape(name)
            if isinstance(tape, RunInfo) and tape.is_only_in_archive:
                tape = await self._restored(tape)
        except UnknownRun as error:
            problem = f"{error}; {error.hint}"
            logger.warning("playback refused: %s", problem)
            return OpenRun(config.mode, config, redactor, self._store, None, None, problem)
        if isinstance(tape, str):
            logger.warning("playback refused: %s", tape)
            return OpenRun(config.mode, config, redactor, self._store, None, None, tape)
        run = await self._store.runs.create(
            tape.id, mode=config.mode.value, at_ns=time.time_ns(), parent=tape, agent=agent
        )
        logger.info("run %s: playing %s", run.id, tape.id)
        # Its index may have been replaced meanwhile; from now on it stays for as long as this run is open.
        tape = self._store.runs.reload(tape)
        open_run = OpenRun(config.mode, config, redactor, self._store, run, tape)
        if open_run.policy.live:
            # The receipt spares what may go live from being unused, also when it is printed again.
            open_run.note(EventKind.NOTED, live=_live(open_run))
        if config.classes.telemetry:
            # So it does what is telemetry by now, whatever it was when it was recorded.
            texts = [match.text for match in config.classes.telemetry]
            open_run.note(EventKind.NOTED, telemetry=texts)
        for one in open_run.policy.drift:
            open_run.note(EventKind.NOTED, allow_model_drift=[one.recorded, one.asked])
        _note_rules(open_run)
        playback = open_run.playback
        if playback is None:
            return open_run
        if tape.rules != index_digest(open_run.rules, config):
            if tape.canonical > CANONICAL_VERSION:
                # Sound: the index is made from the raw bytes. But it is another Playhead's idea of the same.
                text = _TOO_NEW.format(tape.id, tape.canonical, CANONICAL_VERSION)
                logger.warning("%s", text)
                open_run.note(EventKind.NOTED, text=text)
            logger.info("run %s: the match rules changed since it was indexed, indexing", tape.id)
            try:
                await asyncio.to_thread(playback.reindex)
            except LogCorrupt as error:
                # Its own index still stands, but for other rules: everything is refused, and the run says why.
                problem = f"the tape cannot be indexed under the rules of now: {error}"
                logger.error("%s", problem)
                open_run.note(EventKind.NOTED, text=problem)
                return OpenRun(config.mode, config, redactor, self._store, run, None, problem)
        if warning := await playback.prepare():
            open_run.note(EventKind.NOTED, text=warning)
        return open_run

    def _find_tape(self, name: str) -> RunInfo | str:
        """Find the tape to play, or say why there is none."""
        if name == "latest":
            latest = self._store.runs.find_latest()
            return latest or "there is no sealed recording yet to play as 'latest'"
        tape = self._store.runs.get(name)
        if tape.mode != Mode.RECORD.value:
            return f"{name!r} is a playback of {tape.parent!r}; play {tape.parent!r} instead"
        if tape.status is RunStatus.OPEN and self._store.runs.owner_alive(tape):
            return f"run {name!r} is still being recorded; end it with: playhead seal {name}"
        return tape

    async def _restored(self, tape: RunInfo) -> RunInfo | str:
        """Have a tape that was archived in the store again, or say why it is not."""
        if self._restore is None:
            return f"run {tape.id!r} is archived; restore it with: playhead show {tape.id}"
        logger.info("run %s: archived, restoring it", tape.id)
        try:
            await asyncio.to_thread(self._restore, tape)
        except PlayheadError as error:
            return f"run {tape.id!r} is archived and cannot be restored: {error}; {error.hint}"
        return self._store.runs.reload(tape)

    async def _settle_recordings(self, name: str) -> None:
        """Seal what has ended but was not noticed yet, and wait for the tape to be played."""
        for open_run in self.open:
            if open_run.mode is Mode.RECORD and self._has_run_out(open_run):
                self.end(open_run, "its process group has ended")
        waiting = [
            task
            for task, open_run in self._sealing.items()
            if open_run.mode is Mode.RECORD
            and open_run.info is not None
            and name in ("latest", open_run.info.id)
        ]
        if waiting:
            await asyncio.wait(waiting, timeout=_SEALING_S)

    def _has_run_out(self, open_run: OpenRun) -> bool:
        """Say whether nobody can come who belongs to a run.

        A named run waits for others of its name for as long as the mode is its own.
        """
        if open_run.members.named and (self._sole or open_run.mode is self.config.mode):
            return False
        return self._groups_ended(open_run)

    # ---- ending --------------------------------------------------------------------------------

    async def tick(self) -> None:
        """End the runs that have ended, tell their gaps. Called a few times a second."""
        for open_run in self.open:
            with contextlib.suppress(StoreUnwritable):  # and again
                await self._report_gap(open_run)
                await self._give_up_overdue(open_run)
        for open_run in self.open:
            if open_run.info is not None and self._store.owner_requests.was_asked(
                open_run.info, SEAL
            ):
                self.end(open_run, "asked for by playhead seal")
            elif self._has_run_out(open_run):
                self.end(open_run, "its process group has ended")
            elif open_run.mode is not self.config.mode and self._quiet(open_run):
                self.end(open_run, f"the mode became {self.config.mode.value}")

    async def _give_up_overdue(self, open_run: OpenRun) -> None:
        for pending in list(on_their_way(open_run)):
            if pending.is_overdue and self.on_overdue is not None:
                await self.on_overdue(pending)

    def _quiet(self, open_run: OpenRun) -> bool:
        idle_s = time.monotonic() - open_run.on_the_way.last_request
        return not open_run.pending_exchanges and idle_s > self.config.runs.grace_s

    def end(self, open_run: OpenRun, reason: str) -> "asyncio.Task[None] | None":
        """Begin to end a run: no new request joins it; it is sealed once what is in flight is done."""
        if open_run.ending:
            return None
        open_run.lifetime.ending = True
        for key in [key for key, value in self._by_key.items() if value is open_run]:
            del self._by_key[key]
        task = asyncio.get_running_loop().create_task(self._seal(open_run, reason))
        self._sealing[task] = open_run
        task.add_done_callback(self._sealing.pop)
        return task

    async def _seal(self, open_run: OpenRun, reason: str) -> None:
        try:
            await self._settle(open_run)
            while True:
                try:
                    await self._seal_whole(open_run, reason)
                    break
                except StoreUnwritable:
                    if self._closed:
                        raise
                    await self._writable()
        except StoreError as error:
            # The next process that opens the store finds the run open and its owner gone: recovered.
            name = open_run.info.id if open_run.info is not None else ""
            logger.error("run %s could not be sealed: %s", name, error)

    async def _writable(self) -> None:
        """Wait until the store can be written, or the proxy stops."""
        writer = self._store.writer
        while writer.failed is not None and not self._closed:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(_LOOK_S)

    async def _settle(self, open_run: OpenRun) -> None:
        settled = await open_run.settled(open_run.config.runs.grace_s)
        if not settled:
            await _refuse_held(open_run)
        open_run.lifetime.unfinished = tuple(
            sorted(pending.seq for pending in on_their_way(open_run))
        )
        if not settled and self.on_unfinished is not None:
            for pending in list(on_their_way(open_run)):
                with contextlib.suppress(StoreUnwritable):  # a gap
                    await self.on_unfinished(pending)
        playback = open_run.playback
        if playback is not None and playback.preparing is not None:
            await asyncio.wait([playback.preparing])
        with contextlib.suppress(StoreUnwritable):
            for keep in self.on_ending:
                await keep(open_run)
            _note_slow(open_run)
        if self.on_ended is not None:
            await self.on_ended(open_run)
        if open_run.sink_queue is not None:
            await open_run.sink_queue.settle(open_run.reporter)

    async def _seal_whole(self, open_run: OpenRun, reason: str) -> None:
        await self._report_gap(open_run, ending=True)
        if open_run.info is not None:
            run = await self._store.runs.seal(
                open_run.info,
                reason=reason,
                at_ns=time.time_ns(),
                unfinished=open_run.lifetime.unfinished,
            )
            self.ended.append(run)
            del self.ended[:-100]
            logger.info("run %s: sealed, %d exchanges (%s)", run.id, run.exchanges, reason)

    def hurry(self) -> None:
        """Seal what is ending without waiting for what is in flight."""
        for open_run in self._sealing.values():
            open_run.hurry()

    async def close(self, reason: str, patience_s: float | None = None) -> None:
        """End every run and wait until all are sealed; no new one is opened from now on.

        patience_s: longest wait for what is in flight; None waits as long as each run's grace allows.
        """
        self._closed = True
        for open_run in self.open:
            self.end(open_run, reason)
        if self._looking is not None:
            self._looking.cancel()
        if self._sealing and patience_s is not None:
            await asyncio.wait(list(self._sealing), timeout=patience_s)
            self.hurry()
        if self._sealing:
            await asyncio.wait(list(self._sealing))
        for sink_queue in self._sink_queues.values():
            await sink_queue.close()
        self._sink_queues.clear()


async def _read_last() -> None:
    """Let what has come from clients be read and handled."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def _refuse_held(open_run: OpenRun) -> None:
    """Refuse what gates still hold, and wait until that is kept: nothing but words follows the end of a run."""
    ended = ApprovalDecision(Ruling.ENDED)
    held = [
        one
        for one in on_their_way(open_run)
        if one.held.approval is not None and one.held.approval.decide(ended)
    ]
    await asyncio.gather(*(pending.ended(_REFUSED_S) for pending in held))


def _note_rules(open_run: OpenRun) -> None:
    """Keep which rules of the configuration a run began with, so that its receipt can hint at idle ones."""
    config, playing = open_run.config, open_run.mode is Mode.PLAYBACK
    rules: dict[str, list[tuple[str, str | None]]] = {}
    rules["ignore"] = [(rule.match.text, None) for rule in config.ignore]
    # A gate holds what leaves, of whatever class; all else that a rule of effects says is for playback.
    rules["effects"] = [
        (rule.match.text, None if rule.gate else RequestClass.EFFECT.value)
        for rule in config.effects
        if playing or rule.gate
    ]
    if playing:
        rules["reads"] = [(rule.match.text, RequestClass.READ.value) for rule in config.reads]
        rules["live"] = _live(open_run)
    rules["contracts"] = [(rule.match.text, None) for rule in config.contracts]
    rules["faults"] = [
        (rule.match.text, None) for rule in config.faults if open_run.mode in rule.modes
    ]
    if any(rules.values()):
        open_run.note(EventKind.NOTED, rules=rules, ignored=_ignored(config))


def _live(open_run: OpenRun) -> list[tuple[str, str | None]]:
    """Give the pattern of each live rule, and the class it is limited to."""
    return [(rule.match.text, only and only.value) for rule, only in open_run.policy.live]


def _ignored(config: Config) -> list[tuple[str, dict[str, tuple[str, ...]]]]:
    """Give the pattern of each rule with its places by key."""
    keys = ("json", "header", "query", "form", "regex")
    return [
        (rule.match.text, {key: names for key in keys if (names := getattr(rule, key))})
        for rule in config.ignore
    ]


def _note_slow(open_run: OpenRun) -> None:
    """Say which patterns masked nothing any more because they took too long."""
    for text in slow(open_run.rules.searched):
        open_run.note(EventKind.NOTED, text=text)


def _names(open_run: OpenRun, name: str) -> bool:
    return any(key[0] == name for key in open_run.members.keys)


def name_after(word: str, now: float | None = None) -> str:
    """Make a name for a run that nobody has named, after a word and the time.

    now: seconds since the epoch; None asks the clock.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    # A name stands on command lines and in credentials; an address or a process's own name may not.
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", word).strip("-.")[:60]
    return f"{plain or 'run'}-{stamp}"


def _address(client: connection.Client) -> str:
    """Give the address that a client came from; `unknown` where it has left already."""
    peer: tuple[Any, ...] | None = client.peername
    return str(peer[0]) if peer is not None else "unknown"


def _run_name(group: Group | None, client: connection.Client) -> str:
    word = group.command.split(" ")[0].rpartition("/")[2] if group else _address(client)
    return name_after(word)
