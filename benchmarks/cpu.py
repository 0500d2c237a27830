"""CPU time and anonymous memory of a process and its descendants, from the kernel.

CPU is user + system of all threads, also of those that ended, in nanoseconds: the kernel's clock of a
process, as `clock_getcpuclockid(3)` names it, because the fields of `/proc/PID/stat` come in ticks of 10 ms.
"""

import threading
import time
from pathlib import Path

_QUIET_S = 0.002
"""CPU seconds that a process at rest may use in a step of waiting."""
_STEP_S = 0.1
_STEPS = 50
_WATCH_S = 0.01
"""Seconds between two looks at the memory."""


def tree(pid: int) -> list[int]:
    """Give `pid` and its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            # The name in brackets may hold anything; the parent is the second field after it.
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def cpu_s(pid: int) -> float:
    """Give the CPU seconds that a process tree has used so far.

    Descendants that ended are not counted; no tool measured here has any while it serves.
    Raises: OSError when `pid` is no more.
    """
    total = time.clock_gettime(_clock(pid))
    for one in tree(pid)[1:]:
        try:
            total += time.clock_gettime(_clock(one))
        except OSError:
            continue
    return total


def settled_cpu_s(pid: int) -> float:
    """Give the CPU seconds of a tree once it is at rest, so that work put off counts too.

    Waits 0.1 s at least and 5 s at most.
    """
    used = cpu_s(pid)
    for _ in range(_STEPS):
        time.sleep(_STEP_S)
        now = cpu_s(pid)
        if now - used < _QUIET_S:
            return now
        used = now
    return used


def rss_anon_mb(pid: int) -> float:
    """Give the anonymous resident memory of a process tree, in MB of 10^6 bytes."""
    return _rss_anon_mb(tree(pid))


class MemoryWatch:
    """Looks at the anonymous memory of a process tree all the time, on a thread. Use as `with`.

    Descendants that begin meanwhile are not seen.
    """

    def __init__(self, pid: int) -> None:
        self._pids = tree(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.before_mb = self.most_mb = _rss_anon_mb(self._pids)
        """At the beginning, and the most since; MB of 10^6 bytes."""

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_WATCH_S):
            self.most_mb = max(self.most_mb, _rss_anon_mb(self._pids))


def _rss_anon_mb(pids: list[int]) -> float:
    total_kb = 0
    for one in pids:
        try:
            status = Path(f"/proc/{one}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for line in status.splitlines():
            if line.startswith("RssAnon:"):
                total_kb += int(line.split()[1])
    return total_kb * 1024 / 1e6


def _clock(pid: int) -> int:
    """Name the CPU clock of another process: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of Linux."""
    return (~pid << 3) | 2
