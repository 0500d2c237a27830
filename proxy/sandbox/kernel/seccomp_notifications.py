"""System calls that wait for another process to answer them. Source: seccomp_unotify(2), pidfd_getfd(2)."""

import ctypes
import errno
import fcntl
import os
import platform
import struct
from typing import NamedTuple

from .syscalls import has_failed

_RECEIVE, _ANSWER, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_CALL = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")
_GETFD = 438
_GOES_ON = 1
"""SECCOMP_USER_NOTIF_FLAG_CONTINUE."""
_THREAD = os.O_EXCL
"""PIDFD_THREAD."""
_SO_DOMAIN = 39
_SETTING = "/proc/sys/kernel/yama/ptrace_scope"
_NOBODY = "3"

_libc = ctypes.CDLL(None, use_errno=True)


class Call(NamedTuple):
    """A system call that waits."""

    id: int
    thread: int
    """That made it, as this process numbers it."""
    arguments: tuple[int, ...]
    name: int = -1
    """Its number in the table of system calls."""


def can_watch() -> bool:
    """Say whether this machine lets a process look into those that it made."""
    try:
        with open(_SETTING) as file:
            return file.read().strip() != _NOBODY
    except OSError:
        return platform.system() == "Linux"


def receive(listener: int) -> Call:
    """Wait for the next call. Raises: OSError; FileNotFoundError, where its process was killed meanwhile."""
    buffer = bytearray(_CALL.size)
    fcntl.ioctl(listener, _RECEIVE, buffer)
    number, thread, _, name, _, _, *arguments = _CALL.unpack(buffer)
    return Call(number, thread, tuple(arguments), name)


def is_waiting(listener: int, call: Call) -> bool:
    """Say whether a call still waits: its process is the one that was looked at."""
    try:
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", call.id))
    except OSError:
        return False
    return True


def answer(listener: int, call: Call, error: int) -> None:
    """Have a call end: with 0, or an error number. One whose process was killed does not matter."""
    try:
        fcntl.ioctl(listener, _ANSWER, _REPLY.pack(call.id, 0, -error, 0))
    except FileNotFoundError:
        return


def let_go_on(listener: int, call: Call) -> None:
    """Have the kernel make a call as if nobody had looked. What was seen of it may have changed since."""
    try:
        fcntl.ioctl(listener, _ANSWER, _REPLY.pack(call.id, 0, 0, _GOES_ON))
    except FileNotFoundError:
        return


def take_descriptor(thread: int, number: int, folder: int) -> int:
    """Give a descriptor of another process as one of this.

    folder: descriptor of a `/proc` that numbers processes as this one does.
    Raises: OSError.
    """
    try:
        process = os.pidfd_open(thread, _THREAD)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        process = os.pidfd_open(_find_leader(thread, folder))  # before Linux 6.9
    try:
        taken = _libc.syscall(_GETFD, process, ctypes.c_int(number & 0xFFFFFFFF), 0)
        if taken < 0:
            raise has_failed("pidfd_getfd")
        return int(taken)
    finally:
        os.close(process)


def _find_leader(thread: int, folder: int) -> int:
    with open(os.open(f"{thread}/status", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))


def family_of(descriptor: int) -> int:
    """Give the family of a socket; -1 where it is none."""
    value, size = ctypes.c_int(-1), ctypes.c_uint(4)
    _libc.getsockopt(descriptor, 1, _SO_DOMAIN, ctypes.byref(value), ctypes.byref(size))
    return value.value


def connect(descriptor: int, address: bytes) -> int:
    """Connect a socket; give 0 or an error number. May wait."""
    if _libc.connect(descriptor, address, len(address)) == 0:
        return 0
    return ctypes.get_errno()
