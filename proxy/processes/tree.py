"""Track the processes that belong to an agent.

A process belongs when its parent does, or when it shares a process group or session with one that does. That is
decided when it is first seen, and holds while it lives, whoever becomes its parent. The watching process's own
group and session count for nothing: an agent started in the foreground of a terminal shares them with the shell.
"""

import os
from collections.abc import Collection, Iterable

from .proc import Process, find_process, list_pids


class ProcessTree:
    """An agent's processes as of the last `update`."""

    def __init__(self, shared: Collection[int] = ()) -> None:
        """Begin with no process.

        shared: groups and sessions that count for nothing, beside our own.
        """
        self._shared = {0, os.getpgrp(), os.getsid(0), *shared}
        self._root: Process | None = None
        self._members: dict[int, Process] = {}
        self._others: set[int] = set()
        self._anchors: set[int] = set()

    def members(self) -> list[Process]:
        """List the processes, the root first while it lives."""
        return list(self._members.values())

    def update(self, root: int) -> None:
        """Look again. Costs a look at every member and at every process not seen before."""
        if self._root is None or self._root.pid != root:
            found = find_process(root)
            if found is None:
                return
            self._root = found
            self._members, self._others, self._anchors = {root: found}, {os.getpid()}, set()
        self._members = {
            old.pid: new
            for old in self._members.values()
            if (new := find_process(old.pid)) and new.started == old.started
        }
        pids = list_pids()
        self._others.intersection_update(pids)
        known = self._others | self._members.keys()
        strangers = [find_process(pid) for pid in pids if pid not in known]
        self._adopt([process for process in strangers if process])

    def find_left(self, root: int) -> list[Process]:
        """List what still runs of a root that has ended."""
        self.update(root)
        # Of a root that ended before it was seen, its group and session tell.
        found = {one.pid: one for one in self._members.values()}
        for pid in list_pids() if self._root is None else ():
            one = find_process(pid)
            if one is not None and root in (one.group, one.session):
                found[pid] = one
        return [one for one in found.values() if one.pid != root and not one.zombie]

    def _adopt(self, strangers: list[Process]) -> None:
        # Anchors of the update before still count: a group's last known member may have died since.
        anchors = self._anchors | self._marks(self._members.values())
        joined = True
        while joined:
            joined = False
            for process in tuple(strangers):
                marks = {process.group, process.session}
                if process.parent in self._members or marks & anchors:
                    strangers.remove(process)
                    self._members[process.pid] = process
                    anchors |= self._marks([process])
                    joined = True
        self._others.update(process.pid for process in strangers)
        self._anchors = self._marks(self._members.values())

    def _marks(self, processes: Iterable[Process]) -> set[int]:
        """Collect the groups and sessions of processes, but for those that count for nothing."""
        marks = {mark for process in processes for mark in (process.group, process.session)}
        return marks - self._shared
