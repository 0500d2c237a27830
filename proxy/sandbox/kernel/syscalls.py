"""System calls that Python lacks. Each raises OSError with the name of the request.

Source: mount(2), prctl(2), capset(2), seccomp(2).
"""

import ctypes
import errno
import os
import platform
import struct

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_RDONLY = 0x2, 0x4, 0x8, 0x1
MS_NOATIME, MS_NODIRATIME, MS_RELATIME = 0x400, 0x800, 0x200000
MS_BIND, MS_REMOUNT, MS_REC, MS_PRIVATE = 0x1000, 0x20, 0x4000, 0x40000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38
_SECCOMP_MODE_FILTER = 2
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_CAPABILITY_VERSION = 0x20080522
_MOST_CAPABILITIES = 64

_libc = ctypes.CDLL(None, use_errno=True)


def has_failed(what: str) -> OSError:
    """Make the error of a call that has just failed."""
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise has_failed(what)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system, or bind a file or folder elsewhere."""
    texts = (os.fsencode(text) if text else None for text in (source, target, kind))
    result = _libc.mount(*texts, ctypes.c_ulong(flags), data.encode() if data else None)
    _check(result, f"mount on {target}")


def unmount(target: str) -> None:
    """Take a mount away."""
    _check(_libc.umount2(os.fsencode(target), 0), f"unmount {target}")


def die_with_parent(signal: int) -> None:
    """Be sent a signal when the thread that made this process ends; who asks too late is told by nobody."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0), "PR_SET_PDEATHSIG")


def close_to_others() -> None:
    """Let no process of this user look into this one."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "PR_SET_DUMPABLE")


def forbid_new_privileges() -> None:
    """Have no program that is executed from now on gain rights: set-uid files give none."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")


def drop_capabilities() -> None:
    """Give up every capability, and the means to have one again by executing a program as root."""
    for number in range(_MOST_CAPABILITIES):
        has = _libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0)
        if has < 0:  # the kernel knows no further one
            break
        if has:  # bubblewrap has dropped them, and the right to drop any
            _check(_libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0), "PR_CAPBSET_DROP")
    drop_capabilities_in_force()


def drop_capabilities_in_force() -> None:
    """Give up every capability, without the right to lower what a program executed by root may have again."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, struct.pack("=6I", 0, 0, 0, 0, 0, 0)), "capset")


def install_filter(program: bytes) -> None:
    """Put a filter before every system call of this process and of all that it makes, for good."""
    buffer = ctypes.create_string_buffer(program, len(program))
    filtered = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filtered, 0, 0), "PR_SET_SECCOMP")


def install_listening_filter(program: bytes) -> int | None:
    """Do as `install_filter`; give a descriptor at which calls are answered that the filter hands over.

    None on a kernel that has no such thing: nothing was installed then.
    """
    try:
        return open_listening_filter(program)
    except OSError:
        return None


def open_listening_filter(program: bytes) -> int:
    """Do as `install_listening_filter`, and say why there is none. Raises: OSError; nothing was installed then."""
    buffer = ctypes.create_string_buffer(program, len(program))
    filtered = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    number = _SECCOMP[platform.machine()]
    # A signal would make the call be made a second time, on a socket that is connected by then.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        descriptor = _libc.syscall(number, _SET_MODE_FILTER, flags, filtered)
        if descriptor >= 0:
            return int(descriptor)
        if ctypes.get_errno() != errno.EINVAL:
            break
    raise has_failed("seccomp")
