"""Find the client process behind a connection, and the sockets that an agent opens past the proxy.

`find_client` names the process at the other end of a connection that the proxy accepted; a run without
credentials is one process group. `SocketWatch` samples the sockets of an agent's process tree and keeps those
that lead off the machine. Sampling is evidence, not containment: a socket that lives between two samples is
missed, a UDP socket shows only if it was connected, and a process that left group, session and parent before
it was first seen is not found. The sandbox is what contains.

Both use the kernel's own tables where it answers (`sockdiag`) and psutil elsewhere.
"""

import ipaddress
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import psutil

from . import sockdiag
from .proc import Process, find_process, group_alive, list_pids, owned_sockets, owns_socket
from .tree import ProcessTree

__all__ = [
    "Address",
    "ClientProcess",
    "ForeignSocket",
    "SocketWatch",
    "find_client",
    "group_alive",
    "is_foreign",
]

Address = tuple[str, int]
"""Host as text, port."""

INTERVAL_S = 0.1
PATIENCE_S = 0.3
"""How long processes may outlive the command before they count as left behind."""
_LOOK_S = 0.01
MOST_PEERS = 1000
"""Different foreign peers that are kept; sockets to further ones are only counted."""


class ClientProcess(NamedTuple):
    """The process that made a connection."""

    pid: int
    pgid: int
    started: float
    """Of the group's leader, or 0 when the leader is gone; for `group_alive`."""
    name: str
    """Command name, as the process calls itself."""


@dataclass(frozen=True, slots=True)
class ForeignSocket:
    """One peer off this machine that a process of the tree had sockets to."""

    protocol: str
    """`tcp` or `udp`."""
    address: str
    port: int
    process: str
    """Command name, as the process calls itself."""
    pid: int
    first_seen: int
    """Number of the sample, from 1."""
    count: int
    """How many different sockets."""


def find_client(peer: Address, local: Address, hint: Iterable[int] = ()) -> ClientProcess | None:
    """Find the process on this machine that owns the other end of an accepted TCP connection.

    peer, local: the two ends as the accepting socket names them; only host and port are read.
    hint: ids of processes to look at first, as those of earlier answers.
    None when it cannot be seen: on another machine, in another network namespace, another user's, or gone.
    Blocks for as long as a look at the process table takes; may be called from any thread.
    """
    pid = _find_owner((peer[0], peer[1]), (local[0], local[1]), tuple(hint))
    process = None if pid is None else find_process(pid)
    if process is None:
        return None
    leader = find_process(process.group)
    started = leader.started if leader is not None else 0.0
    return ClientProcess(process.pid, process.group, started, process.name)


@lru_cache(maxsize=4096)
def is_foreign(address: str) -> bool:
    """Say whether an IP address leads off this machine: neither loopback nor unspecified.

    Source: RFC 6890; who connects to the unspecified address reaches the machine itself.
    """
    parsed = ipaddress.ip_address(sockdiag.plain(address))
    return not (parsed.is_loopback or parsed.is_unspecified)


class SocketWatch:
    """Samples the non-loopback sockets of a process tree, in a thread of its own.

    The tree is that of `ProcessTree`. `with SocketWatch(...) as watch:` starts and stops.
    """

    def __init__(
        self,
        pid_provider: Callable[[], int | None],
        interval_s: float = INTERVAL_S,
        expected: Collection[Address] = (),
    ) -> None:
        """Watch the tree of whatever process `pid_provider` names at the time; None for none yet.

        expected: peers that are no finding, as the proxy itself where it does not listen on loopback.
        """
        self._pid_provider = pid_provider
        self._interval_s = interval_s
        self._expected = frozenset((sockdiag.plain(host), port) for host, port in expected)
        self._tree = ProcessTree()
        self._source: _Source = _KernelSource()
        self._open: frozenset[Hashable] = frozenset()
        self._found: dict[tuple[str, str, int, int], ForeignSocket] = {}
        self._samples = 0
        self._dropped = 0
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def seen(self) -> tuple[ForeignSocket, ...]:
        """What was found so far, in the order it was first seen."""
        return tuple(self._found.copy().values())

    def members(self) -> list[Process]:
        """List the processes of the tree as of the last sample."""
        return self._tree.members()

    @property
    def samples(self) -> int:
        """How many samples were taken of a process."""
        return self._samples

    @property
    def dropped(self) -> int:
        """How many sockets found no place in `seen`."""
        return self._dropped

    def start(self) -> None:
        """Begin sampling."""
        self._ended.clear()
        self._thread = threading.Thread(target=self._work, name="socket-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and take a last sample.

        Raises: whatever ended the thread early, so that a blind watch is not taken for a clean result.
        """
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            raise self._failure
        self.sample()

    def find_left(self, patience_s: float = PATIENCE_S) -> list[Process]:
        """List what the root has left behind: what still runs a moment after it has ended. Blocks; once the watch has stopped."""
        root, until = self._pid_provider(), time.monotonic() + patience_s
        while root is not None and (left := self._tree.find_left(root)):
            if time.monotonic() > until:
                return left
            time.sleep(_LOOK_S)
        return []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def sample(self) -> None:
        """Look once. Not from two threads at a time."""
        root = self._pid_provider()
        if root is None:
            return
        self._samples += 1
        self._tree.update(root)
        try:
            sockets_seen = self._source.list_sockets_of(self._tree)
        except OSError:  # no answer from the kernel: it will not answer next time either
            self._source = _PsutilSource()
            sockets_seen = self._source.list_sockets_of(self._tree)
        for observed in sockets_seen:
            if observed.key not in self._open and observed.remote not in self._expected:
                self._note(observed)
        self._open = frozenset(observed.key for observed in sockets_seen)

    def _note(self, observed: "_ObservedSocket") -> None:
        key = (observed.protocol, *observed.remote, observed.owner.pid)
        if known := self._found.get(key):
            self._found[key] = replace(known, count=known.count + 1)
        elif len(self._found) < MOST_PEERS:
            self._found[key] = ForeignSocket(
                observed.protocol,
                *observed.remote,
                observed.owner.name,
                observed.owner.pid,
                first_seen=self._samples,
                count=1,
            )
        else:
            self._dropped += 1

    def _work(self) -> None:
        try:
            while not self._ended.is_set():
                self.sample()
                self._ended.wait(self._interval_s)
        except BaseException as error:
            self._failure = error


class _ObservedSocket(NamedTuple):
    """One foreign socket of the tree in one sample."""

    key: Hashable
    """The same in every sample for the same socket."""
    protocol: str
    remote: Address
    owner: Process


class _Source(Protocol):
    """Where the sockets of a tree are read."""

    def list_sockets_of(self, tree: ProcessTree) -> list[_ObservedSocket]:
        """List the tree's foreign sockets."""


class _KernelSource:
    """One question for all sockets; into processes only for foreign sockets not seen before."""

    def __init__(self) -> None:
        self._owners: dict[int, Process] = {}
        self._misses: dict[int, int] = {}

    def list_sockets_of(self, tree: ProcessTree) -> list[_ObservedSocket]:
        """List the tree's foreign sockets. Raises OSError where the kernel does not answer."""
        sockets = {
            socket.inode: socket
            for socket in sockdiag.list_sockets()
            if socket.inode and is_foreign(socket.remote[0])
        }
        self._owners = {inode: who for inode, who in self._owners.items() if inode in sockets}
        self._misses = {inode: times for inode, times in self._misses.items() if inode in sockets}
        # A socket is looked for twice: its process may have been forked while the tree was read.
        unknown = {i for i in sockets.keys() - self._owners if self._misses.get(i, 0) < 2}
        for process in tree.members() if unknown else ():
            for inode in owned_sockets(process.pid, unknown):
                unknown.discard(inode)
                self._owners[inode] = process
        for inode in unknown:
            self._misses[inode] = self._misses.get(inode, 0) + 1
        return [
            _ObservedSocket(inode, sockets[inode].protocol, sockets[inode].remote, owner)
            for inode, owner in self._owners.items()
        ]


class _PsutilSource:
    """One question a process."""

    def list_sockets_of(self, tree: ProcessTree) -> list[_ObservedSocket]:
        """List the tree's foreign sockets."""
        return [observed for process in tree.members() for observed in self._of(process)]

    def _of(self, process: Process) -> Iterator[_ObservedSocket]:
        for protocol in ("tcp", "udp"):
            for local, remote in _connections(process.pid, protocol):
                if is_foreign(remote[0]):
                    key = (process.pid, protocol, local, remote)
                    yield _ObservedSocket(key, protocol, remote, process)


def _connections(pid: int, kind: str) -> list[tuple[Address, Address]]:
    """List both ends of a process's sockets that have a peer."""
    try:
        found = psutil.Process(pid).net_connections(kind)
    except (psutil.Error, OSError):
        return []
    return [
        ((sockdiag.plain(it.laddr.ip), it.laddr.port), (sockdiag.plain(it.raddr.ip), it.raddr.port))
        for it in found
        if it.laddr and it.raddr and it.status != psutil.CONN_LISTEN
    ]


def _find_owner(peer: Address, local: Address, hint: tuple[int, ...]) -> int | None:
    try:
        socket = sockdiag.find_socket(peer, local)
    except OSError:
        return _find_owner_psutil(peer, local, hint)
    if socket is None or not socket.inode:
        return None
    return next((pid for pid in _candidates(hint) if owns_socket(pid, socket.inode)), None)


def _find_owner_psutil(peer: Address, local: Address, hint: tuple[int, ...]) -> int | None:
    ends = (sockdiag.plain(peer[0]), peer[1]), (sockdiag.plain(local[0]), local[1])
    return next((pid for pid in _candidates(hint) if ends in _connections(pid, "tcp")), None)


def _candidates(hint: tuple[int, ...]) -> Iterator[int]:
    """Yield process ids in the order in which they are worth a look: the hint, then the newest first."""
    yield from hint
    hinted = set(hint)
    yield from (pid for pid in sorted(list_pids(), reverse=True) if pid not in hinted)
