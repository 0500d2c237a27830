"""Connections that a command makes, made for it by another process: what a path leads to can only be seen from there.

A Unix socket with a path is no business of a network namespace, and which path is connected to is in the memory of the
command, where no filter of system calls sees it. So each `connect` of a command waits, and the watcher, a process that the
command cannot reach, makes it on the same socket:

* To an address of IPv4, IPv6 or netlink, or to an abstract name: those are the sandbox's own.
* To a path at which a program of the sandbox listens, or that a live rule names.
* To any other path it is refused, and noted.

The start of a program waits, too, and goes on as it is once it was noted: that is an account, and no decision.

Letting a `connect` go on itself would let another thread change the address, or the socket, after it was looked at.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import stat
import struct
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..processes.sockdiag import list_listening
from .kernel.seccomp import find_starts
from .kernel.seccomp_notifications import (
    Call,
    answer,
    connect,
    family_of,
    is_waiting,
    let_go_on,
    receive,
    take_descriptor,
)
from .kernel.syscalls import die_with_parent

_LONGEST = 128
"""Bytes of any address; sockaddr_storage."""
_REFUSED, _DENIED, _INVALID = 111, 13, 22
_MOST_NOTED = 300
_MOST_SAID = 1 << 18
_MOST_PROGRAMS = 300
_PAGE = 4096
_LONGEST_NAME = 80
_AT_FDCWD = -100
_MOST_THREADS = 200
_NOT_KNOWN = "unknown"


class Place(NamedTuple):
    """A socket's file, whatever it is named."""

    device: tuple[int, int]
    number: int
    """The lower 32 bits of its inode."""


class Watcher:
    """The process that makes the connections of a sandbox."""

    def __init__(self, there: socket.socket, asked: socket.socket) -> None:
        """Hold its sockets; see `fork`."""
        self.there = there
        """At which it is handed what `seccomp.install` gave."""
        self._asked = asked

    @classmethod
    def fork(cls, let_in: list[str]) -> "Watcher":
        """Make it a child, which ends with this process; while process ids are still those of outside.

        let_in: paths of sockets of programs outside that may be connected to.
        Raises: OSError.
        """
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked, answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Now: another /proc, in which this process is not, is about to be mounted over it.
        processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # Now, too: while mounts are rearranged it may be away.
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        parent = os.getpid()
        if os.fork() == 0:
            try:
                there.close()
                asked.close()
                die_with_parent(signal.SIGKILL)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                # Whoever reads the command's stdout waits for its end.
                os.dup2(nowhere, 1)
                if os.getppid() == parent:
                    _watch(here, answers, processes, let_in)
            finally:
                os._exit(0)
        os.close(processes)
        os.close(nowhere)
        here.close()
        answers.close()
        return cls(there, asked)

    def end(self) -> dict[str, Any]:
        """Give what was seen, as JSON types; nothing where it could not look."""
        with self._asked:
            try:
                self._asked.send(b"?")
                said = self._asked.recv(_MOST_SAID)
            except OSError:
                return {}
        seen: dict[str, Any] = json.loads(said or b"{}")
        return seen


def _watch(here: socket.socket, answers: socket.socket, processes: int, let_in: list[str]) -> None:
    """Be the watcher. Raises: OSError."""
    said, descriptors, _, _ = socket.recv_fds(here, 1, 1)
    here.close()
    connects = None
    if said and descriptors:
        connects = Connects(descriptors[0], processes, let_in)
        connects.start()
    while answers.recv(1):
        answers.send(json.dumps(connects.report() if connects is not None else {}).encode())


class Connects:
    """Makes the connections of a sandbox, in a process that is in its network and mounts."""

    def __init__(self, listener: int, processes: int, let_in: Iterable[str]) -> None:
        """Prepare.

        listener: descriptor that `seccomp.install` gave.
        processes: descriptor of a `/proc` that numbers processes as this one does.
        let_in: paths of sockets of programs outside that may be connected to.
        """
        self.used: dict[str, int] = {}
        """How often each of those was connected to."""
        self.refused: dict[tuple[str, str], int] = {}
        """How often each other one was tried, by path and the name of the process."""
        self.programs: dict[str, int] = {}
        """How often each program was started, by its name."""
        self._starts = find_starts()
        self._listener = listener
        self._processes = processes
        self._let_in: dict[Place, str] = {}
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0
        for path in let_in:
            with contextlib.suppress(OSError):
                held = os.open(path, os.O_PATH | os.O_CLOEXEC)
                self._let_in[self._find_place(held, "self")] = path
                os.close(held)

    def start(self) -> None:
        """Answer from now on, on threads of its own, which end with this process."""
        self._threads += 1
        threading.Thread(target=self._work, daemon=True).start()

    def report(self) -> dict[str, Any]:
        """Give what was seen, as JSON types."""
        with self._lock:
            refused = [
                {"path": path, "process": process, "count": count}
                for (path, process), count in self.refused.items()
            ]
            return {
                "sockets_used": dict(self.used),
                "sockets_refused": refused,
                "programs": dict(self.programs),
            }

    def _work(self) -> None:
        # Root and working folder of this thread alone.
        os.unshare(os.CLONE_FS)
        while True:
            with self._lock:
                self._idle += 1
            try:
                call = receive(self._listener)
            except OSError:
                call = None
            with self._lock:
                self._idle -= 1
                # A connection may wait: somebody has to be there for the next.
                if not self._idle and self._threads < _MOST_THREADS:
                    self.start()
            if call is None:
                if self._is_over():
                    return
                continue
            if call.name in self._starts:
                with contextlib.suppress(OSError, ValueError):
                    self._note_start(call)
                let_go_on(self._listener, call)
                continue
            try:
                error = self._make(call)
            except OSError as failure:
                error = failure.errno or _DENIED
            answer(self._listener, call, error)

    def _is_over(self) -> bool:
        """Say whether nobody is left whose calls could wait."""
        asked = select.poll()
        asked.register(self._listener, select.POLLIN)
        return any(event & select.POLLHUP for _, event in asked.poll(0))

    def _note_start(self, call: Call) -> None:
        """Note the program that a call starts, if there is one: a shell tries each folder. Raises: OSError.

        The command itself is started by a process whose memory nobody can read.
        """
        folder, at = _AT_FDCWD, call.arguments[0]
        if self._starts[call.name] == "execveat":
            # A descriptor is an int of 32 bits, with a sign.
            folder, at = ctypes.c_int(call.arguments[0] & 0xFFFFFFFF).value, call.arguments[1]
        memory = self._open(f"{call.thread}/mem")
        try:
            path = os.pread(memory, _PAGE, at).partition(b"\0")[0]
        finally:
            os.close(memory)
        if folder != _AT_FDCWD and not path.startswith(b"/"):
            of = f"{call.thread}/fd/{folder}"
            path = os.fsencode(os.readlink(of, dir_fd=self._processes)) + (
                b"/" + path if path else b""
            )
        held = self._look_up(call, path)
        try:
            mode = os.fstat(held).st_mode
        finally:
            os.close(held)
        if not stat.S_ISREG(mode) or not mode & 0o111:
            return
        name = path.rpartition(b"/")[2][:_LONGEST_NAME].decode(errors="replace")
        with self._lock:
            if name in self.programs or len(self.programs) < _MOST_PROGRAMS:
                self.programs[name] = self.programs.get(name, 0) + 1

    def _make(self, call: Call) -> int:
        """Make one connection; give 0 or an error number. Raises: OSError."""
        number, at, length = call.arguments[:3]
        length = length & 0xFFFFFFFF
        taken = take_descriptor(call.thread, number, self._processes)
        try:
            if length > _LONGEST:
                return _INVALID
            memory = self._open(f"{call.thread}/mem")
            try:
                address = os.pread(memory, length, at) if length else b""
            finally:
                os.close(memory)
            if not is_waiting(self._listener, call):
                return _INVALID  # nobody hears it
            if not _is_path(address) or family_of(taken) != socket.AF_UNIX:
                return connect(taken, address)
            return self._make_by_path(call, taken, address[2:].partition(b"\0")[0])
        finally:
            os.close(taken)

    def _make_by_path(self, call: Call, taken: int, path: bytes) -> int:
        held = self._look_up(call, path)
        try:
            if not stat.S_ISSOCK(os.fstat(held).st_mode):
                return _REFUSED
            place = self._find_place(held, str(call.thread))
            named = self._let_in.get(place)
            if named is None and not _is_ours(place):
                self._note(call, held)
                return _REFUSED
            if named is not None:
                with self._lock:
                    self.used[named] = self.used.get(named, 0) + 1
            # The very file that was looked at, whatever has its name by now.
            os.fchdir(self._processes)
            by_number = struct.pack("=H", socket.AF_UNIX) + f"self/fd/{held}\0".encode()
            return connect(taken, by_number)
        finally:
            os.close(held)

    def _look_up(self, call: Call, path: bytes) -> int:
        """Open what a path leads to, from where its process is. Raises: OSError."""
        places = [self._open(f"{call.thread}/{name}", os.O_PATH) for name in ("root", "cwd")]
        try:
            os.fchdir(places[0])
            os.chroot(".")
            os.fchdir(places[1])
            return os.open(path, os.O_PATH | os.O_CLOEXEC)
        finally:
            for place in places:
                os.close(place)

    def _find_place(self, held: int, process: str) -> Place:
        """Say which file a descriptor is: `stat` names another device for it on some file systems."""
        with open(self._open(f"self/fdinfo/{held}")) as file:
            mounted = next(line.split()[1] for line in file if line.startswith("mnt_id:"))
        with open(self._open(f"{process}/mountinfo"), errors="surrogateescape") as file:
            found = (line.split(maxsplit=3) for line in file)
            device = next((fields[2] for fields in found if fields[0] == mounted), "0:0")
        major, _, minor = device.partition(":")
        return Place((int(major), int(minor)), os.fstat(held).st_ino & 0xFFFFFFFF)

    def _note(self, call: Call, held: int) -> None:
        path, process = _NOT_KNOWN, ""
        with contextlib.suppress(OSError):
            path = os.readlink(f"self/fd/{held}", dir_fd=self._processes)
            with open(self._open(f"{call.thread}/comm"), errors="replace") as file:
                process = file.read().rstrip("\n")
        key = path.encode(errors="replace").decode(), process
        with self._lock:
            if key in self.refused or len(self.refused) < _MOST_NOTED:
                self.refused[key] = self.refused.get(key, 0) + 1

    def _open(self, name: str, flags: int = os.O_RDONLY) -> int:
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=self._processes)


def _is_path(address: bytes) -> bool:
    """Say whether an address is a path: abstract names begin with a zero."""
    return (
        len(address) > 2
        and struct.unpack_from("=H", address)[0] == socket.AF_UNIX
        and address[2:3] != b"\0"
    )


def _is_ours(place: Place) -> bool:
    """Say whether a program of this network namespace, which is the sandbox's, listens there."""
    try:
        return any(
            (one.device, one.file_number) == (place.device, place.number)
            for one in list_listening()
        )
    except OSError:
        return False
