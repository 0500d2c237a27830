"""Which process groups the clients of runs belong to: a look at the process table, made once for a connection."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from mitmproxy import connection

from ....tape.shell_words import shell_word
from ..run_state import ExitCode, OpenRun

logger = logging.getLogger(__name__)

_LOOK = "playhead_look"
"""Attribute of a client connection: the look for its process group."""
_MOST_LOOKS = 1000
"""Clients of named runs that wait to have their group learnt; further ones are left unknown."""
_SECOND_LOOK_S = 0.1
_MOST_FOLLOWED = 256
"""Processes of a run, without those that are known to have ended well; above that none is followed, and the run stays open."""


class Group(Protocol):
    """A process group that was seen as a client; see `proxy/processes/client_processes.py`."""

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
    follow: Callable[[int], ExitCode | None] = lambda _pid: None
    """Process id -> how it will end; None where that is never known."""


class ClientGroups:
    """The process groups of clients."""

    def __init__(self, processes: Processes, list_open: Callable[[], Iterable[OpenRun]]) -> None:
        """Begin with no client seen.

        list_open: gives the open runs.
        """
        self._processes = processes
        self._list_open = list_open
        self._to_look: deque[tuple[OpenRun, connection.Client]] = deque()
        self.looking: asyncio.Task[None] | None = None
        """Looks for those who are not waited for."""

    def look_once(self, client: connection.Client) -> "asyncio.Task[Group | None]":
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

    def who(self, group: Group | None, client: connection.Client) -> tuple[Any, ...]:
        """Say who a client is: its group, or its address where that cannot be seen."""
        if group is None:
            return (find_address(client),)
        return self._known(group)

    def _known(self, group: Group) -> tuple[int, float]:
        if group.started:
            return (group.pgid, group.started)
        # The leader has gone before the rest of its group: the group is known by the leader it had.
        known = (
            who
            for open_run in self._list_open()
            for who in open_run.members.groups
            if who[0] == group.pgid
        )
        return next(known, (group.pgid, 0.0))

    def add(self, open_run: OpenRun, group: Group | None) -> None:
        """Note that a group has clients in a run; None for one that cannot be seen."""
        if group is None:
            open_run.members.groups_known = False
            return
        known = self._known(group)
        if open_run.members.given is not None:
            if known not in open_run.members.groups and self.have_ended(open_run):
                _tell_continued(open_run, group)
            self._follow(open_run, group)
        open_run.members.groups.add(known)

    def _follow(self, open_run: OpenRun, group: Group) -> None:
        """Learn how a client's process will end, and the one that leads its group: a script may go on where its agent died."""
        codes = open_run.members.exit_codes
        if open_run.members.missed:
            return
        for pid in {group.pid, group.pgid}:
            before = codes.get(pid)
            if before is not None and not before.is_well():
                continue  # the same, or one that ended otherwise: that stays so
            code = self._processes.follow(pid)
            if code is None:
                open_run.members.missed = True
            else:
                codes[pid] = code
        if len(codes) > _MOST_FOLLOWED:
            for pid in [pid for pid, code in codes.items() if code.is_well()]:
                del codes[pid]
        if len(codes) > _MOST_FOLLOWED:
            open_run.members.missed = True
            self.forget(open_run)

    def forget(self, open_run: OpenRun) -> None:
        """Follow the processes of a run no more."""
        for code in open_run.members.exit_codes.values():
            code.close()
        open_run.members.exit_codes.clear()

    def have_ended_well(self, open_run: OpenRun) -> bool:
        """Say whether all processes of a run that may be started again are known to have ended with 0."""
        members = open_run.members
        if members.missed or not self.have_ended(open_run):
            return False
        return all(code.is_well() for code in members.exit_codes.values())

    def look_later(self, open_run: OpenRun, client: connection.Client) -> None:
        """Learn the group of a named run's client without making it wait."""
        if len(self._to_look) < _MOST_LOOKS:
            self._to_look.append((open_run, client))
        else:
            open_run.members.missed = True
        if self.looking is None or self.looking.done():
            self.looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        while self._to_look:
            open_run, client = self._to_look.popleft()
            group = None
            for pause_s in (0.0, _SECOND_LOOK_S):
                # Who has left cannot be found any more, which says nothing about who can be seen; but it may have been found before.
                if open_run.lifetime.ending or (pause_s and not client.connected):
                    break
                if pause_s:
                    await asyncio.sleep(pause_s)
                again = self._find_group(client) if pause_s else self.look_once(client)
                group = await again
                if group is not None:
                    break
            if group is not None or (client.connected and not open_run.lifetime.ending):
                self.add(open_run, group)
            else:
                open_run.members.missed = True

    def close(self) -> None:
        """Look for nobody any more."""
        if self.looking is not None:
            self.looking.cancel()

    def have_ended(self, open_run: OpenRun) -> bool:
        """Say whether all groups of a run have ended, as far as that can be seen."""
        if not open_run.members.groups or not open_run.members.groups_known:
            return False
        return not any(self._processes.alive(*group) for group in open_run.members.groups)


def _tell_continued(open_run: OpenRun, group: Group) -> None:
    name = open_run.info.id if open_run.info is not None else ""
    open_run.members.told_ended = False
    logger.warning(
        "run %s goes on with another process (%s, pid %d), since those before it have ended: model calls and effects that"
        " it asks for again are held; for a new run: playhead seal %s",
        name,
        open_run.redactor.redact_text(group.command),
        group.pid,
        shell_word(name),
    )


def find_address(client: connection.Client) -> str:
    """Give the address that a client came from; `unknown` where it has left already."""
    peer: tuple[Any, ...] | None = client.peername
    return str(peer[0]) if peer is not None else "unknown"
