"""The registry of open runs: it assigns client connections to runs, and opens and ends runs.

Rules, in the order they are applied (design, section 4):

1. A client connection belongs to one run for life, and a run keeps its mode for life.
2. Credentials name the run: in record the recording, in playback the tape.
3. Without credentials a run is one process group of the client, or, where that cannot be seen, one client
   address.
4. A playback is a run of its own: every new client group starts with a fresh cursor.
5. A run ends when its group has ended, when somebody asks for it, at shutdown, or, once the mode in the
   file has changed, `runs.grace` after its last request. Idleness alone never ends a run. A named recording
   is asked for by several groups: it ends `runs.grace` after its last request, once all have ended. With
   `runs.resume: auto` they have to have ended with 0: else one may be started again, and do all of it again.
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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from socket import socket
from typing import Any, Protocol

from mitmproxy import connection

from ...config import Config, Mode, parse_new_run_name, parse_run_name
from ...store import RunInfo, RunOpen, RunStatus, Store, StoreError, StoreUnwritable
from ...tape.counted import counted
from ...tape.exchange import NO_TEXT
from ...tape.policy.branch import Branch
from ...tape.policy.decide import Policy
from ...tape.policy.resume import GivenRequests
from ...tape.records.events import EventKind
from ...tape.redaction.redactor import Redactor
from ...tape.shell_words import shell_word
from ...timeline.lookup.crashed_runs import RunStopped, find_crashed
from ...timeline.lookup.resumed_by import find_children, has_ended_well
from .lifecycle.client_process_groups import ClientGroups, Group, Processes, find_address
from .lifecycle.held_at_breakpoints import Breaks
from .lifecycle.run_hooks import RunHooks
from .lifecycle.run_opener import RunOpener, refuse_all
from .lifecycle.run_sealer import RunSealer
from .pending_approvals import PendingApprovals
from .process_counters import Counters
from .run_state import OpenRun

logger = logging.getLogger(__name__)

SEAL = "seal"
"""What another process leaves in the store to have a run ended."""

_SEALED = "asked for by playhead seal"
_DESERTED = "its processes have ended"
_GROUP_ENDED = "its process group has ended"
_FOR_GOOD = (_SEALED, _DESERTED)
"""Why a run ended that nothing goes on with, be it that it has sent nothing."""
_LATE = "playhead_run"
"""Attribute of a client connection that had left before it was bound: its run."""
_TURNS = 50
"""Turns of the loop that reading what clients did last may take."""
_SEALING_S = 30.0
"""Longest wait of a new playback for recordings that are just being sealed."""


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
        self.hooks = RunHooks()
        self.own_ports: OwnPorts | None = None
        """Knows where the command's own programs listen; None where there is no command of ours."""
        self.branch: Branch | None = None
        """What the next playbacks declare, where they are branches."""
        self.resumes = False
        """Whether the next playbacks resume runs that crashed."""
        self.breaks: Breaks | None = None
        """The breakpoints of playbacks; None without any."""
        self._store = store
        self._redactor = redactor
        self._groups = ClientGroups(processes, lambda: self.open)
        self._opener = RunOpener(store, restore)
        self._sealer = RunSealer(store, self.hooks)
        self._sole = sole
        self._refresh = refresh
        self._by_key: dict[tuple[Any, ...], OpenRun] = {}
        self._by_client: dict[str, OpenRun] = {}
        self._locks: weakref.WeakValueDictionary[tuple[Any, ...], asyncio.Lock]
        self._locks = weakref.WeakValueDictionary()
        """One a key, so that a run that takes long to open keeps nobody else waiting."""

    # ---- who is asking -------------------------------------------------------------------------

    def of(self, client: connection.Client) -> OpenRun | None:
        """Find the run of a client connection, also of one that had left before it was bound."""
        bound = self._by_client.get(client.id)
        return bound if bound is not None else getattr(client, _LATE, None)

    async def assign(
        self, client: connection.Client, credentials: tuple[str, str] | None
    ) -> OpenRun | Rejected:
        """Give a client connection its run, opening one where there is none."""
        if self._sealer.closed:
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
        if name is not None and not self._sole and (problem := self._find_name_problem(name)):
            return Rejected(problem)
        open_run = await self._find_or_open(client, name)
        if client.timestamp_end is None:  # else it has left meanwhile, and leaves only once
            self._by_client[client.id] = open_run
            open_run.clients[client.id] = client
            if open_run.mode is not Mode.PASSTHROUGH:
                open_run.lanes.look(client.id, self._groups.look_once(client))
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

    async def open_sole_run(self) -> OpenRun:
        """Open the one run before any request has come."""
        async with self._lock(("sole",)):
            if self.sole_run is None or self.sole_run.lifetime.ending:
                self.sole_run = await self._open(("sole",), self._sole, None)
            return self.sole_run

    async def find_sole_run(self) -> OpenRun | None:
        """Find the one run, once its command has ended: what its clients did last is read first, be it what opens the run."""
        await _read_last()
        async with self._lock(("sole",)):
            pass
        await _read_last()
        return self.sole_run

    async def find_process(self, client: connection.Client) -> str:
        """Find the command name of a client's process, while it is connected; empty where that cannot be seen."""
        group = await asyncio.shield(self._groups.look_once(client))
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

    def _read_again(self) -> None:
        fresh = self._refresh()
        if fresh is not None:
            self.adopt(fresh)

    def _find_name_problem(self, name: str) -> str:
        """Say why nothing can be recorded under a name; empty where it can, or where the name is that of a tape."""
        try:
            parse_new_run_name(name)
        except ValueError as error:
            self._read_again()  # the mode of now counts
            return str(error) if self.config.mode is Mode.RECORD else ""
        return ""

    async def _find_or_open(self, client: connection.Client, name: str | None) -> OpenRun:
        if self._sole:
            return await self.open_sole_run()
        self._read_again()
        default = self.config.runs.default
        shared = name or (default if default != "per-process" else None)
        existing = self._by_key.get((shared,)) if shared else None
        if existing is not None and existing.config.mode is self.config.mode:
            if existing.members.given is not None:
                # How its process ends counts, and it is there for as long as it waits for an answer.
                await asyncio.shield(self._groups.look_once(client))
            if not existing.lifetime.ending:
                # No need to know the process yet; it matters once the mode changes.
                self._groups.look_later(existing, client)
                return existing
        group = await asyncio.shield(self._groups.look_once(client))
        who = self._groups.who(group, client)
        async with self._lock((shared,) if shared else who):
            return await self._find_or_open_for(client, name, shared, group)

    async def _find_or_open_for(
        self, client: connection.Client, name: str | None, shared: str | None, group: Group | None
    ) -> OpenRun:
        """Find or open the run of a client whose group was looked for. One at a time for a key."""
        who = self._groups.who(group, client)
        # A name that comes with the request is never answered by the run that its group had without it.
        existing = self._by_key.get((shared,)) if shared else None
        existing = existing or self._by_key.get((name, *who))
        if existing is not None and self._belongs(existing, who if group else None):
            if existing.members.named:
                self._groups.add(existing, group)
            return existing
        if self.config.mode is Mode.PLAYBACK:
            open_run = await self._open((name, *who), name or self.config.playback.run, group)
        elif shared and self.config.mode is Mode.RECORD:
            open_run = await self._open((shared,), shared, group)
        else:
            open_run = await self._open((name, *who), _run_name(group, client), group)
        self._groups.add(open_run, group)
        return open_run

    def _lock(self, key: tuple[Any, ...]) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _belongs(self, open_run: OpenRun, who: tuple[Any, ...] | None) -> bool:
        """Say whether a client stays in a run that was found by its name or group.

        who: its group, or None where that cannot be seen.
        """
        if open_run.lifetime.ending:
            return False
        if open_run.config.mode is self.config.mode or not open_run.members.named:
            return True
        # The mode has changed: those whose run it was go on in it, and nobody joins them. Who cannot be
        # seen may be one of them.
        if who in open_run.members.groups or (who is None and not open_run.members.groups_known):
            return True
        if self._groups.have_ended(open_run):
            self.end(open_run, "its processes had ended when the mode was another")
        return False

    # ---- beginning -----------------------------------------------------------------------------

    async def _open(self, key: tuple[Any, ...], name: str, group: Group | None) -> OpenRun:
        config, redactor = self.config, self._redactor(self.config)
        agent = redactor.redact_text(group.command) if group else NO_TEXT
        if config.mode is Mode.PLAYBACK:
            await self._settle_recordings(name)
        make = partial(OpenRun, config.mode, config, redactor, self._store, branch=self.branch)
        playing = partial(OpenRun, Mode.PLAYBACK, config, redactor, self._store)
        crashed: RunInfo | None = None
        try:
            crashed = await asyncio.to_thread(self._find_crashed, config, name)
            if crashed is None:
                open_run = await self._opener.open(config, make, name, agent)
            else:
                open_run = await self._opener.resume(config, playing, crashed, agent)
                if not self.resumes:
                    _tell_resumed(open_run)
        except (RunOpen, RunStopped) as error:  # somebody else resumes it, or nobody may
            open_run = refuse_all(playing, f"{error}; {error.hint}")
        open_run.counters = self.counters
        self.counters.runs[open_run.mode.value] += 1
        open_run.members.keys.add(key)
        if self._may_be_started_again(config, open_run, has_crashed=crashed is not None):
            open_run.members.given = GivenRequests()
            open_run.note(EventKind.NOTED, joined=True)
        self._by_key[key] = open_run
        for told in self.hooks.on_opened:
            await told(open_run)
        return open_run

    def _may_be_started_again(
        self, config: Config, open_run: OpenRun, *, has_crashed: bool
    ) -> bool:
        """Say whether a process that joins a run may do once more what another did that has died.

        Of a command there is one process tree, which a person has started. Of a run without a name nobody joins it who is started again.
        """
        if self.resumes or config.mode is not Mode.RECORD or config.runs.resume != "auto":
            return False
        if open_run.lifetime.problem:  # nothing is sent in it
            return False
        return has_crashed or (open_run.members.named and not self._sole)

    def _find_crashed(self, config: Config, name: str) -> RunInfo | None:
        """Find the crashed run that the next run of a name resumes; None where it resumes none. Blocking.

        Of recordings of one name the newest counts.
        """
        if self.resumes:
            return find_crashed(self._store, name)
        if config.mode is not Mode.RECORD or config.runs.resume != "auto":
            return None
        newest = next(iter(self._store.runs.find_recordings(name)), None)
        if newest is None or newest.status is not RunStatus.RECOVERED:
            return None
        try:
            crashed = find_crashed(self._store, newest.id, or_failed=False)
        except (RunOpen, RunStopped):
            raise
        except StoreError as error:  # what resumed it has ended
            logger.info("run %s is not resumed: %s", newest.id, error)
            return None
        # One that was resumed and had nothing to send has ended all the same, if it came to its end.
        resumed = (one for one in find_children(self._store, crashed) if one.has_resumed)
        ended = any(one.end in _FOR_GOOD or has_ended_well(self._store, one) for one in resumed)
        return None if ended else crashed

    async def _settle_recordings(self, name: str) -> None:
        """Seal what has ended but was not noticed yet, and wait for the tape to be played."""
        for open_run in self.open:
            if open_run.mode is Mode.RECORD and self._has_run_out(open_run):
                self.end(open_run, _GROUP_ENDED)
        waiting = [
            task
            for task, open_run in self._sealer.sealing.items()
            if open_run.mode is Mode.RECORD
            and open_run.info is not None
            and name in ("latest", open_run.info.id)
        ]
        if waiting:
            await asyncio.wait(waiting, timeout=_SEALING_S)

    def _has_run_out(self, open_run: OpenRun) -> bool:
        """Say whether nobody can come who belongs to a run.

        A named run waits a while for others of its name, for as long as the mode is its own.
        """
        if open_run.members.named and self._sole:
            return False
        if open_run.members.named and open_run.config.mode is self.config.mode:
            return self._is_deserted(open_run) and self._has_come_to_its_end(open_run)
        return self._groups.have_ended(open_run)

    def _is_deserted(self, open_run: OpenRun) -> bool:
        """Say whether all processes of a named run have ended, and none has come since for a while.

        One that was stopped is ended by hand: who is started again is to get no further.
        """
        if open_run.clients or open_run.lifetime.stopped or not self._quiet(open_run):
            return False
        return self._groups.have_ended(open_run)

    def _has_come_to_its_end(self, open_run: OpenRun) -> bool:
        """Say whether no process of a run can have more to do that is started again, as far as that matters."""
        if open_run.members.given is None:
            return True
        playback = open_run.playback
        if playback is not None and (
            playback.resumption.diverged or playback.find_awaited() is not None
        ):
            return False
        return self._groups.have_ended_well(open_run)

    def _note_ended_well(self, open_run: OpenRun) -> None:
        """Note that all processes of a run that may be gone on with have ended with 0, once for each time that they did.

        The run waits a while for others of its name. If the proxy dies meanwhile, it has ended all the same.
        """
        members, last = open_run.members, open_run.on_the_way.last_seq
        if members.given is None or members.ended_well == last or open_run.info is None:
            return
        if open_run.clients or open_run.on_the_way.pending_exchanges or open_run.lifetime.stopped:
            return
        if self._has_come_to_its_end(open_run):
            members.ended_well = last
            with contextlib.suppress(StoreUnwritable):
                open_run.note(EventKind.NOTED, ended_well=last)

    def _tell_deserted(self, open_run: OpenRun) -> None:
        """Say once that a run goes on although its processes have ended."""
        members = open_run.members
        if members.given is None or members.told_ended or open_run.info is None:
            return
        if not self._is_deserted(open_run):
            return
        members.told_ended = True
        logger.warning(
            "run %s stays open: its processes have ended, but as far as can be seen not all with 0, or not at its end; a process of"
            " that name goes on with it; for a new run: playhead seal %s",
            open_run.info.id,
            shell_word(open_run.info.id),
        )

    # ---- ending --------------------------------------------------------------------------------

    async def tick(self) -> None:
        """End the runs that have ended, tell their gaps. Called a few times a second."""
        for open_run in self.open:
            with contextlib.suppress(StoreUnwritable):  # and again
                await self._sealer.report_gap(open_run)
                await self._sealer.give_up_overdue(open_run)
        for open_run in self.open:
            if open_run.info is not None and self._store.owner_requests.was_asked(
                open_run.info, SEAL
            ):
                self.end(open_run, _SEALED)
            elif self._has_run_out(open_run):
                self.end(open_run, _DESERTED if open_run.members.named else _GROUP_ENDED)
            elif open_run.config.mode is not self.config.mode and self._quiet(open_run):
                self.end(open_run, f"the mode became {self.config.mode.value}")
            else:
                self._note_ended_well(open_run)
                self._tell_deserted(open_run)

    def _quiet(self, open_run: OpenRun) -> bool:
        idle_s = time.monotonic() - open_run.on_the_way.last_request
        return not open_run.on_the_way.pending_exchanges and idle_s > self.config.runs.grace_s

    def end(self, open_run: OpenRun, reason: str) -> "asyncio.Task[None] | None":
        """Begin to end a run: no new request joins it; it is sealed once what is in flight is done."""
        if open_run.lifetime.ending:
            return None
        open_run.lifetime.ending = True
        for key in [key for key, value in self._by_key.items() if value is open_run]:
            del self._by_key[key]
        self._groups.forget(open_run)
        return self._sealer.begin(open_run, reason)

    @property
    def ended(self) -> list[RunInfo]:
        """Runs that were sealed by this process, for the receipt at the end."""
        return self._sealer.ended

    def hurry(self) -> None:
        """Seal what is ending without waiting for what is in flight."""
        self._sealer.hurry()

    async def close(self, reason: str, patience_s: float | None = None) -> None:
        """End every run and wait until all are sealed; no new one is opened from now on.

        patience_s: longest wait for what is in flight; None waits as long as each run's grace allows.
        """
        self._sealer.closed = True
        for open_run in self.open:
            self.end(open_run, reason)
        self._groups.close()
        await self._sealer.close(patience_s)
        await self._opener.close()


async def _read_last() -> None:
    """Let what has come from clients be read and handled."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def _tell_resumed(open_run: OpenRun) -> None:
    """Say that a run goes on which nobody has asked for by hand."""
    if open_run.info is None or open_run.tape is None:
        return
    logger.warning(
        "run %s continues %s, whose proxy died: what that has is answered from its tape and not sent again (%s), and the rest is sent;"
        " for a new run: playhead seal %s, then start the agent again",
        open_run.info.id,
        open_run.tape.id,
        counted(open_run.tape.exchanges, "exchange"),
        shell_word(open_run.info.id),
    )


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


def _run_name(group: Group | None, client: connection.Client) -> str:
    word = group.command.split(" ")[0].rpartition("/")[2] if group else find_address(client)
    return name_after(word)
