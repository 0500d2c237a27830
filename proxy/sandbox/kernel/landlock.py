"""Landlock: files are opened for writing in named folders alone.

A mount that can be read only does not keep a named pipe in it from being opened for writing, and whoever has its other end is told
what is written. Landlock does, whenever the pipe was made. It needs no rights, and holds for all that a process makes.

Renames between folders have to be allowed by name, or none works. Linux before 5.19 cannot, and is left without.

Source: landlock(7); numbers from Linux, include/uapi/linux/landlock.h.
"""

import contextlib
import ctypes
import fcntl
import os
import stat
import struct
from collections.abc import Iterable

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The same on x86-64 and arm64."""
_VERSION = 1
_BELOW_PATH = 1
_WRITE_FILE, _REFER = 1 << 1, 1 << 13
_FIRST_WITH_REFER = 2

_libc = ctypes.CDLL(None, use_errno=True)


def restrict_writing(places: Iterable[str]) -> bool:
    """Let this process, and all that it makes, open files for writing in these places alone; say whether the kernel can.

    places: folders, and single files. Standard streams that are open for writing can be opened again, too.
    Needs `forbid_new_privileges`, which is called before.
    """
    if _libc.syscall(_CREATE, None, 0, _VERSION) < _FIRST_WITH_REFER:
        return False
    handled = struct.pack("=Q", _WRITE_FILE | _REFER)
    rules = _libc.syscall(_CREATE, handled, len(handled), 0)
    if rules < 0:
        return False
    try:
        for place in places:
            with contextlib.suppress(OSError):  # gone, or closed to us: nobody writes there
                held = os.open(place, os.O_PATH | os.O_CLOEXEC)
                _allow(rules, held)
                os.close(held)
        for stream in (0, 1, 2):
            with contextlib.suppress(OSError):  # closed
                if fcntl.fcntl(stream, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                    _allow(rules, stream)
        return bool(_libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(rules: int, held: int) -> None:
    """Allow writing to a file, or in a folder. What has no path (a pipe, a socket) is no business of Landlock."""
    is_folder = stat.S_ISDIR(os.fstat(held).st_mode)
    allowed = _WRITE_FILE | _REFER if is_folder else _WRITE_FILE
    # Packed: 64 bits of rights, 32 bits of a descriptor.
    _libc.syscall(_ADD_RULE, rules, _BELOW_PATH, struct.pack("=Qi", allowed, held), 0)
