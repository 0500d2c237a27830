"""Which run a client connection belongs to, and when that run begins and ends.

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
import fnmatch
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mitmproxy import connection

from ..config import Config, Mode
from ..store import RunInfo, RunStatus, Store, UnknownRun
from ..tape.canonical import Rules, canonical, compile_rules, fingerprint
from ..tape.cursor import Cursor
from ..tape.events import Event, EventKind
from ..tape.model import Fingerprint, Request, RequestClass, Seq
from ..tape.policy import Policy
from ..tape.redact import Redactor

if TYPE_CHECKING:
    from .flight import Flight

logger = logging.getLogger(__name__)

SEAL = "seal"
"""What another process leaves in the store to have a run ended."""

_SEALING_S = 30.0
"""Longest wait of a new playback for recordings that are just being sealed."""


class Group(Protocol):
    """A process group that was seen as a client; see `proxy/sockets.py`."""

    @property
    def pgid(self) -> int:
        """Process group id."""

    @property
    def started(self) -> float:
        """Start time of its leader, seconds since the epoch."""

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


@dataclass(frozen=True, slots=True)
class Rejected:
    """The client may not use the proxy."""

    reason: str


class Session:
    """One run while it is open."""

    def __init__(
        self,
        mode: Mode,
        config: Config,
        redactor: Redactor,
        store: Store,
        run: RunInfo | None,
        tape: RunInfo | None = None,
        problem: str = "",
    ) -> None:
        """Begin a run with the rules that are in force now."""
        self.mode = mode
        self.config = config
        self.store = store
        self.run = run
        self.tape = tape
        self.problem = problem
        """Why there is no tape to play, or empty."""
        self.policy = Policy.of(config)
        self.rules: Rules = compile_rules(config.ignore)
        self.redactor = redactor
        self.cursor = Cursor(self._next_use) if tape is not None else None
        self.reindexed: dict[Fingerprint, list[Seq]] | None = None
        """Uses of each fingerprint under the rules of now, where the tape was indexed under others."""
        self.keys: set[tuple[Any, ...]] = set()
        self.groups: set[tuple[int, float]] = set()
        self.groups_known = True
        self.clients: dict[str, connection.Client] = {}
        self.flights: set[Flight] = set()
        self.endpoints: dict[tuple[str, str], list[Seq]] | None = None
        """Seqs of the tape by method and URL without query; read when first needed."""
        self.permits: dict[tuple[str, int], int] = {}
        """Addresses that live requests in flight may connect to, with their number."""
        self.last_request = time.monotonic()
        self.requests = 0
        self.ending = False
        self._seq = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def named(self) -> bool:
        """Whether it was asked for by a name that any group may use."""
        return any(len(key) == 1 for key in self.keys)

    def next_seq(self) -> Seq:
        """Give the place of a request that has just arrived."""
        self._seq += 1
        return Seq(self._seq)

    def begin(self, flight: "Flight") -> None:
        """Note a request on its way."""
        self.flights.add(flight)
        self._idle.clear()
        self.requests += 1
        self.last_request = time.monotonic()

    def finish(self, flight: "Flight") -> None:
        """Note that a request is done."""
        self.flights.discard(flight)
        if not self.flights:
            self._idle.set()

    async def settled(self, timeout_s: float) -> bool:
        """Wait until no request is on its way; False when that took too long."""
        try:
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    def note(self, kind: EventKind, **data: Any) -> None:
        """Append an event to the run's log; nobody waits."""
        if self.run is not None:
            self.store.append(self.run.number, Event(kind, time.time_ns(), data))

    def _next_use(self, fingerprint: Fingerprint, after: int) -> Seq | None:
        assert self.tape is not None
        if self.reindexed is None:
            return self.store.next_use(self.tape, fingerprint, after)
        return next((seq for seq in self.reindexed.get(fingerprint, ()) if seq > after), None)

    def fingerprint(self, request: Request, request_class: RequestClass) -> Fingerprint:
        """Bring a request into canonical form and hash it. May run on any thread."""
        secret = self.redactor.redacted_query(request)
        return fingerprint(canonical(request, request_class, self.rules, secret))

    def reindex(self) -> None:
        """Compute the tape's fingerprints under the rules of now. Blocks for as long as reading it takes."""
        assert self.tape is not None
        found: dict[Fingerprint, list[Seq]] = {}
        for exchange in self.store.exchanges(self.tape):
            key = self.fingerprint(exchange.request, exchange.request_class)
            found.setdefault(key, []).append(exchange.seq)
        self.reindexed = found


class Sessions:
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
    ) -> None:
        """Begin with no run open.

        sole: every client belongs to one run of this name (in playback: of this tape), whatever it is.
        refresh: asked before a run opens; gives new settings if the file has changed.
        """
        self.config = config
        self.sole_session: Session | None = None
        self.ended: list[RunInfo] = []
        """Runs that were sealed by this process, for the receipt at the end."""
        self.on_unfinished: Callable[[Flight], Awaitable[None]] | None = None
        self.on_ended: Callable[[Session], Awaitable[None]] | None = None
        """Asked to close what is left of a run's connections."""
        self._store = store
        self._redactor = redactor
        self._processes = processes
        self._sole = sole
        self._refresh = refresh
        self._by_key: dict[tuple[Any, ...], Session] = {}
        self._by_client: dict[str, Session] = {}
        self._opening = asyncio.Lock()
        self._sealing: set[asyncio.Task[None]] = set()
        self._looking: set[asyncio.Task[None]] = set()

    # ---- who is asking -------------------------------------------------------------------------

    def of(self, client: connection.Client) -> Session | None:
        """Find the run of a client connection."""
        return self._by_client.get(client.id)

    async def assign(
        self, client: connection.Client, credentials: tuple[str, str] | None
    ) -> Session | Rejected:
        """Give a client connection its run, opening one where there is none."""
        rejected = self._check(credentials)
        if rejected is not None:
            return rejected
        name = credentials[0] if credentials else None
        bound = self.of(client)
        if bound is not None:
            # A keep-alive connection may come with other credentials later: it stays where it is.
            if name is not None and not self._sole and bound.keys and not _names(bound, name):
                return Rejected(f"this connection belongs to another run than {name!r}")
            return bound
        async with self._opening:
            session = await self._find_or_open(client, name)
            self._by_client[client.id] = session
            session.clients[client.id] = client
        return session

    def leave(self, client: connection.Client) -> None:
        """Forget a client connection that has ended."""
        session = self._by_client.pop(client.id, None)
        if session is not None:
            session.clients.pop(client.id, None)

    @property
    def open(self) -> list[Session]:
        """All runs that are open, each once."""
        return list(dict.fromkeys(self._by_key.values()))

    def _check(self, credentials: tuple[str, str] | None) -> Rejected | None:
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

    async def _find_or_open(self, client: connection.Client, name: str | None) -> Session:
        if self._sole:
            if self.sole_session is None or self.sole_session.ending:
                self.sole_session = await self._open(("sole",), self._sole, None)
            return self.sole_session
        fresh = self._refresh()
        if fresh is not None:
            self.config = fresh
        runs = self.config.runs
        default = runs.default if runs.default != "per-process" else None
        shared = name or default
        existing = self._by_key.get((shared,)) if shared else None
        if existing is not None and existing.mode is self.config.mode:
            # No need to know the process yet; it matters once the mode changes.
            self._look_later(existing, client)
            return existing
        group = await self._find_group(client)
        who: tuple[Any, ...] = (group.pgid, group.started) if group else (client.peername[0],)
        existing = existing or self._by_key.get((name, *who)) or self._by_key.get((None, *who))
        if existing is not None and not await self._has_ended(existing, who if group else None):
            if existing.named:
                _add_group(existing, group)
            return existing
        if self.config.mode is Mode.PLAYBACK:
            key: tuple[Any, ...] = (name, *who)
            session = await self._open(key, name or self.config.playback.run, group)
        elif shared and self.config.mode is Mode.RECORD:
            session = await self._open((shared,), shared, group)
        else:
            session = await self._open((None, *who), _run_name(group, client), group)
        _add_group(session, group)
        return session

    async def _find_group(self, client: connection.Client) -> Group | None:
        peer = (client.peername[0], client.peername[1])
        local = (client.sockname[0], client.sockname[1])
        return await asyncio.to_thread(self._processes.find, peer, local)

    def _look_later(self, session: Session, client: connection.Client) -> None:
        """Learn the group of a named run's client without making it wait."""
        if len(self._looking) > 4:
            session.groups_known = False
            return

        async def look() -> None:
            _add_group(session, await self._find_group(client))

        task = asyncio.get_running_loop().create_task(look())
        self._looking.add(task)
        task.add_done_callback(self._looking.discard)

    async def _has_ended(self, session: Session, who: tuple[Any, ...] | None) -> bool:
        """Say whether a run that was found has ended already, and end it if so."""
        if session.ending:
            return True
        if session.mode is self.config.mode:
            return False
        if who in session.groups or not self._groups_ended(session):
            return False
        self.end(session, "its processes had ended when the mode was another")
        return True

    def _groups_ended(self, session: Session) -> bool:
        if not session.groups or not session.groups_known:
            return False
        return not any(self._processes.alive(*group) for group in session.groups)

    # ---- beginning -----------------------------------------------------------------------------

    async def _open(self, key: tuple[Any, ...], name: str, group: Group | None) -> Session:
        config = self.config
        agent = group.command if group else ""
        redactor = self._redactor(config)
        if config.mode is Mode.PASSTHROUGH:
            session = Session(config.mode, config, redactor, self._store, None)
        elif config.mode is Mode.RECORD:
            run = await self._store.create_run(
                name,
                mode=config.mode.value,
                at_ns=time.time_ns(),
                agent=agent,
                rules=compile_rules(config.ignore).digest,
            )
            session = Session(config.mode, config, redactor, self._store, run)
            logger.info("run %s: recording", run.id)
        else:
            session = await self._open_playback(config, redactor, name, agent)
        session.keys.add(key)
        self._by_key[key] = session
        return session

    async def _open_playback(
        self, config: Config, redactor: Redactor, name: str, agent: str
    ) -> Session:
        await self._settle_recordings()
        try:
            tape = self._find_tape(name)
        except UnknownRun as error:
            problem = f"{error}; {error.hint}"
            logger.warning("playback refused: %s", problem)
            return Session(config.mode, config, redactor, self._store, None, None, problem)
        if isinstance(tape, str):
            logger.warning("playback refused: %s", tape)
            return Session(config.mode, config, redactor, self._store, None, None, tape)
        run = await self._store.create_run(
            tape.id, mode=config.mode.value, at_ns=time.time_ns(), parent=tape, agent=agent
        )
        logger.info("run %s: playing %s", run.id, tape.id)
        session = Session(config.mode, config, redactor, self._store, run, tape)
        if tape.rules != session.rules.digest:
            logger.info("run %s: the match rules changed since it was recorded, indexing", tape.id)
            await asyncio.to_thread(session.reindex)
        return session

    def _find_tape(self, name: str) -> RunInfo | str:
        """Find the tape to play, or say why there is none."""
        if name == "latest":
            latest = self._store.find_latest()
            return latest or "there is no sealed recording yet to play as 'latest'"
        tape = self._store.get_run(name)
        if tape.mode != Mode.RECORD.value:
            return f"{name!r} is a playback of {tape.parent!r}; play {tape.parent!r} instead"
        if tape.status is RunStatus.OPEN and self._store.owner_alive(tape):
            return f"run {name!r} is still being recorded; end it with: playhead seal {name}"
        return tape

    async def _settle_recordings(self) -> None:
        """Seal what has ended but was not noticed yet, so that it can be played."""
        for session in self.open:
            if session.mode is Mode.RECORD and not session.named and self._groups_ended(session):
                self.end(session, "its process group has ended")
        if self._sealing:
            await asyncio.wait(self._sealing, timeout=_SEALING_S)

    # ---- ending --------------------------------------------------------------------------------

    async def tick(self) -> None:
        """End the runs that have ended. Called a few times a second."""
        for session in self.open:
            if session.run is not None and self._store.asked(session.run, SEAL):
                self.end(session, "asked for by playhead seal")
            elif not session.named and not self._sole and self._groups_ended(session):
                self.end(session, "its process group has ended")
            elif session.mode is not self.config.mode and self._quiet(session):
                self.end(session, f"the mode became {self.config.mode.value}")

    def _quiet(self, session: Session) -> bool:
        idle_s = time.monotonic() - session.last_request
        return not session.flights and idle_s > self.config.runs.grace_s

    def end(self, session: Session, reason: str) -> "asyncio.Task[None] | None":
        """Begin to end a run: no new request joins it; it is sealed once what is in flight is done."""
        if session.ending:
            return None
        session.ending = True
        for key in [key for key, value in self._by_key.items() if value is session]:
            del self._by_key[key]
        task = asyncio.get_running_loop().create_task(self._seal(session, reason))
        self._sealing.add(task)
        task.add_done_callback(self._sealing.discard)
        return task

    async def _seal(self, session: Session, reason: str) -> None:
        settled = await session.settled(session.config.runs.grace_s)
        unfinished = tuple(sorted(flight.seq for flight in session.flights))
        if not settled and self.on_unfinished is not None:
            for flight in list(session.flights):
                await self.on_unfinished(flight)
        if self.on_ended is not None:
            await self.on_ended(session)
        if session.run is not None:
            run = await self._store.seal(
                session.run, reason=reason, at_ns=time.time_ns(), unfinished=unfinished
            )
            self.ended.append(run)
            del self.ended[:-100]
            logger.info("run %s: sealed, %d exchanges (%s)", run.id, run.exchanges, reason)

    async def close(self, reason: str) -> None:
        """End every run and wait until all are sealed."""
        for session in self.open:
            self.end(session, reason)
        for task in list(self._looking):
            task.cancel()
        if self._sealing:
            await asyncio.wait(self._sealing)


def _names(session: Session, name: str) -> bool:
    return any(name in key for key in session.keys)


def _add_group(session: Session, group: Group | None) -> None:
    if group is None:
        session.groups_known = False
    else:
        session.groups.add((group.pgid, group.started))


def _run_name(group: Group | None, client: connection.Client) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    who = group.command.split(" ")[0].rpartition("/")[2] if group else client.peername[0]
    return f"{who or 'run'}-{stamp}"
