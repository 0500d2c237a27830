"""The supervisor: a process that answers the command's reports, and leads its connections to the proxy.

It outlives the launcher as long as anybody of the command does: who is killed must not take the command's network with it. Without a
launcher everything goes on as if nobody had looked. Reports are answered on threads, since an upstream may let wait.

Messages from the launcher: `command` with what is wanted and the listener; `report`. To it: `able`, an error number; `origin`, of a
connection that is about to come, with the one to its upstream if that was made; `report`.
"""

import contextlib
import errno
import mmap
import os
import platform
import select
import signal
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..processes.command_listening_ports import MachinePorts
from ..processes.proc import Process
from ..processes.tree import ProcessTree
from ..sandbox.channel import Channel, pair
from ..sandbox.kernel.seccomp_notifications import (
    Call,
    answer,
    is_waiting,
    let_go_on,
    receive,
    take_descriptor,
)
from . import command_socket
from .command_socket import Sides
from .connect_filter import find_reported
from .destination import QUIC_PORT, Destination, Wanted, is_taken, read_address

_ID = struct.Struct("=Q")
_MOST_BEFORE, _MOST_AFTER = 1000, 300
"""Reports before the last one, and after it, that a supervisor which was killed may have left without an answer."""
_LONGEST = 128
"""Bytes of any address; sockaddr_storage."""
_MOST_THREADS = 200
_MOST_NAMED = 100
_CLOSED = 7
"""First byte of `tcp_info` of a socket that is not connected, nor about to be."""
MOST_HELD_S = 10.0
"""Longest wait for an upstream before a `connect` that blocks is answered."""
_HELD_ONCE_S = 0.25
"""The same, for one that does not block, the first time that it leads to this place."""


class Supervisor:
    """The process, as the launcher sees it."""

    def __init__(self, channel: Channel, pid: int, last: mmap.mmap) -> None:
        """Hold its end of what is said; see `fork`."""
        self.channel = channel
        self.pid = pid
        self._last = last

    @classmethod
    def fork(cls) -> "Supervisor":
        """Make it. Call it before this process has a second thread. Raises: OSError."""
        ours, theirs = pair()
        shared = (os.getpgrp(), os.getsid(0))
        last = mmap.mmap(-1, _ID.size)
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                _leave()
                _be(theirs, shared, last)
            finally:
                os._exit(0)
        theirs.close()
        return cls(ours, pid, last)

    def stand_in(self, listener: int) -> None:
        """Let everything go on, in the place of a supervisor that was killed; returns once nobody of the command is there.

        What it had taken, and not answered, would wait for ever. The kernel numbers reports in order.
        """
        (last,) = _ID.unpack(self._last[: _ID.size])
        for number in range(last - _MOST_BEFORE, last + _MOST_AFTER):
            with contextlib.suppress(OSError):
                let_go_on(listener, Call(number % 2**64, 0, ()))
        while True:
            try:
                call = receive(listener)
            except FileNotFoundError:  # who made it was killed, or nobody is left
                if is_over(listener):
                    return
                continue
            except OSError:
                return
            let_go_on(listener, call)

    def close(self) -> None:
        """Let it go on by itself for as long as the command is there."""
        self.channel.close()


def _leave() -> None:
    """Be in nobody's way: of no terminal, and hold nobody's pipe open."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    os.chdir("/")


def is_over(listener: int) -> bool:
    """Say whether nobody is left whose calls are reported."""
    asked = select.poll()
    asked.register(listener, 0)
    return any(event & select.POLLHUP for _, event in asked.poll(0))


def _be(channel: Channel, shared: tuple[int, int], last: mmap.mmap) -> NoReturn:
    """Be the supervisor.

    shared: group and session of the launcher, which the command may have in common with anybody.
    last: takes the number of the last report, for who has to stand in.
    """
    given = channel.receive_descriptors()
    if given is None or not given[1]:
        os._exit(0)
    data, listener = given[0].data, given[1][0]
    ipv6 = data["ipv6"]
    reports = Reports(
        listener,
        channel,
        Wanted(frozenset(data["ports"]), frozenset(data["own"]), data["dials"]),
        Sides(("127.0.0.1", data["port"]), ("::1", ipv6) if ipv6 else None),
        data["command"],
        shared,
        last,
    )
    channel.send(able=reports.find_obstacle())
    reports.start()
    poll = select.poll()
    poll.register(listener, 0)
    poll.register(channel.socket, select.POLLIN)
    alone = over = False
    while not (alone and over):
        for ready, _ in poll.poll():
            poll.unregister(ready) if ready == listener else None
            if ready == listener:
                over = True
                continue
            try:
                said = channel.receive()
            except OSError:
                said = None
            if said is None:
                alone = True
                reports.alone = True
                poll.unregister(ready)
            else:
                channel.send(report=reports.report())
    os._exit(0)


@dataclass(slots=True)
class Programs:
    """What programs of the command did that is not led to the proxy."""

    unseen: Counter[str] = field(default_factory=Counter)
    """Those that could not be looked into, by name."""
    rings: Counter[str] = field(default_factory=Counter)
    """Those with io_uring, by name."""
    left: dict[tuple[str, int], str] = field(default_factory=dict)
    """Addresses and ports to which connections were left alone, with the name of the first program."""


class Reports:
    """Answers reports, on threads of its own."""

    def __init__(
        self,
        listener: int,
        channel: Channel,
        wanted: Wanted,
        sides: Sides,
        command: int,
        shared: tuple[int, ...],
        last: mmap.mmap,
    ) -> None:
        """Prepare.

        listener: descriptor that `connect_filter.install` gave.
        command: process id of the command, which has the filter already.
        shared: groups and sessions that others have in common with it.
        last: takes the number of the last report.
        """
        self.alone = False
        """Whether nobody takes connections any more."""
        self._listener = listener
        self._channel = channel
        self._wanted = wanted
        self._sides = sides
        self._command = command
        self._names = find_reported(platform.machine())
        self._last = last
        self._cookie = command_socket.find_cookie()
        self._processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._idle = self._threads = 0
        self._answered: set[tuple[str, int]] = set()
        """Upstreams that have answered: who does not block is not held for them again."""
        self._tree = ProcessTree(shared)
        self._own_ports = MachinePorts(self._members)
        self._looking = threading.Lock()
        self.counts: Counter[str] = Counter()
        self._programs = Programs()

    def find_obstacle(self) -> int:
        """Try to look into the command; give the error number of what forbids it, or 0."""
        try:
            os.close(os.open(f"/proc/{self._command}/mem", os.O_RDONLY | os.O_CLOEXEC))
            os.close(take_descriptor(self._command, 2, self._processes))
        except OSError as error:
            # What the third number is does not matter, nor whether there is one.
            return 0 if error.errno == errno.EBADF else error.errno or errno.EPERM
        return 0

    def start(self) -> None:
        """Answer from now on."""
        self._threads += 1
        threading.Thread(target=self._work, daemon=True).start()

    def report(self) -> dict[str, Any]:
        """Give what was seen, as JSON types."""
        with self._lock:
            return {
                **self.counts,
                "unseen": dict(self._programs.unseen),
                "rings": dict(self._programs.rings),
                "left": [[*place, name] for place, name in self._programs.left.items() if name],
            }

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            try:
                call = receive(self._listener)
                self._last[: _ID.size] = _ID.pack(call.id)
            except OSError:
                call = None
            with self._lock:
                self._idle -= 1
                # An upstream may let wait: somebody has to be there for the next report.
                if not self._idle and self._threads < _MOST_THREADS:
                    self.start()
            if call is None:
                if is_over(self._listener):
                    return
                continue
            self._answer(call)

    def _answer(self, call: Call) -> None:
        """Answer one report, whatever goes wrong."""
        result = None
        try:
            if self._names.get(call.name) == "connect":
                result = None if self.alone else self._lead(call)
            else:
                self._count(self._programs.rings, call)
        except Exception:
            self._count(self._programs.unseen, call)
        with contextlib.suppress(OSError):
            if result is None:
                let_go_on(self._listener, call)
            else:
                answer(self._listener, call, result)

    def _lead(self, call: Call) -> int | None:
        """Lead a connection to the proxy if it is wanted; give 0 or an error number, or None to let it go on. Raises: OSError."""
        number, at, length = call.arguments[:3]
        length &= 0xFFFFFFFF
        if not 2 <= length <= _LONGEST:
            return None
        memory = os.open(f"{call.thread}/mem", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._processes)
        try:
            there = read_address(os.pread(memory, length, at))
        finally:
            os.close(memory)
        if there is None or not is_taken(there, self._wanted):
            if there is not None:
                self._note_left(call, number, there)
            return None
        taken = take_descriptor(call.thread, number, self._processes)
        if not is_waiting(self._listener, call):
            os.close(taken)
            return None  # nobody hears it, and the process may be another by now
        with socket.socket(fileno=taken) as sock:
            if not command_socket.is_in(sock, self._cookie, call.thread):
                return None
            if command_socket.is_datagram(sock):
                return self._refuse_quic(sock, there)
            if not command_socket.may_be_led(sock) or not _is_unconnected(sock):
                return None
            if there.is_loopback and self._is_own(there):
                return None
            return self._connect(call, sock, there)

    def _note_left(self, call: Call, number: int, there: Destination) -> None:
        """Note where a connection of TCP leads that is left alone, once for each place: its port may be one of HTTP."""
        place, left = there[:2], self._programs.left
        if place in left or len(left) >= _MOST_NAMED or not there.port:
            return
        if there.is_loopback and there.port in self._wanted.own:
            return
        try:
            taken = take_descriptor(call.thread, number, self._processes)
        except OSError:
            return
        with socket.socket(fileno=taken) as sock:
            wanted = (
                is_waiting(self._listener, call)
                and command_socket.is_in(sock, self._cookie, call.thread)
                and command_socket.may_be_led(sock)
            )
        if wanted and not (there.is_loopback and self._is_own(there)):
            left[place] = self._name(call) or "a process"

    def _refuse_quic(self, sock: socket.socket, there: Destination) -> int | None:
        # Who looks for a route (getaddrinfo) waits in its calls, and says nothing.
        if there.port != QUIC_PORT or command_socket.is_blocking(sock.fileno()):
            return None
        with self._lock:
            self.counts["quic"] += 1
        return errno.ECONNREFUSED

    def _connect(self, call: Call, sock: socket.socket, there: Destination) -> int | None:
        upstream = None
        blocking = command_socket.is_blocking(sock.fileno())
        place = there[:2]
        if self._wanted.dials and (blocking or place not in self._answered):
            most_s = MOST_HELD_S if blocking else _HELD_ONCE_S
            patience_s = command_socket.patience_of(sock, most_s)
            began = time.monotonic()
            upstream, error = command_socket.dial(there, sock, patience_s)
            if upstream is not None:
                self._answered.add(place)
            elif error != errno.ETIMEDOUT or time.monotonic() - began < patience_s / 2:
                return error
            elif patience_s < most_s:
                return errno.EINPROGRESS  # as where SO_SNDTIMEO has passed
        try:
            return self._hand_over(call, sock, there, upstream)
        finally:
            if upstream is not None:
                upstream.close()

    def _hand_over(
        self, call: Call, sock: socket.socket, there: Destination, upstream: socket.socket | None
    ) -> int | None:
        found = command_socket.find_side(sock, self._sides)
        if found is None or not is_waiting(self._listener, call):
            return None
        to, seen_at = found
        # Before it is connected: the proxy knows it when it comes.
        self._channel.send(
            (upstream,) if upstream is not None else (),
            origin=[*there[:2]],
            peer=seen_at,
            process=self._name(call),
            pid=self._find_process(call),
        )
        with self._lock:
            self.counts["taken"] += 1
        return sock.connect_ex(to)

    def _is_own(self, there: Destination) -> bool:
        """Say whether who listens there belongs to the command."""
        with self._looking:
            return self._own_ports.listens_at(there.host, there.port)

    def _members(self) -> list[Process]:
        self._tree.update(self._command)
        return self._tree.members()

    def _find_process(self, call: Call) -> int:
        """Give the process of a thread, whose name says more than the thread's."""
        with (
            contextlib.suppress(OSError, StopIteration),
            open(self._open(f"{call.thread}/status"), errors="replace") as file,
        ):
            return next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
        return call.thread

    def _name(self, call: Call) -> str:
        with (
            contextlib.suppress(OSError),
            open(self._open(f"{self._find_process(call)}/comm"), errors="replace") as file,
        ):
            return file.read().rstrip("\n")
        return ""

    def _open(self, name: str) -> int:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._processes)

    def _count(self, counter: Counter[str], call: Call) -> None:
        name = self._name(call)
        with self._lock:
            if name in counter or len(counter) < _MOST_NAMED:
                counter[name] += 1


def _is_unconnected(sock: socket.socket) -> bool:
    """Say whether it is neither connected nor about to be: of another one the kernel says how far it is."""
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSED
