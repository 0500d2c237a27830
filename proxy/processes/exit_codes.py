"""How processes end that are nobody's children here: with 0, or otherwise, or so that nobody can say.

Linux tells it from 6.15 on, once the parent has waited for the process, to whoever had a pidfd of it.
Source: include/uapi/linux/pidfd.h, `PIDFD_GET_INFO` with `PIDFD_INFO_EXIT`.
"""

import contextlib
import fcntl
import os
import struct
import sys

_INFO_EXIT = 1 << 3
_BYTES = 64
"""Of `struct pidfd_info`, first version: `mask` comes first and `exit_code` last."""
_GET_INFO = 3 << 30 | _BYTES << 16 | 0xFF << 8 | 11
"""`_IOWR(0xFF, 11, struct pidfd_info)`."""


class ExitCode:
    """How one process ends. Belongs to one thread at a time."""

    def __init__(self, pid: int) -> None:
        """Follow a process that lives."""
        self._file: int | None = None
        self._code: int | None = None
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._file = os.pidfd_open(pid)

    def is_well(self) -> bool:
        """Say whether it is known to have ended with 0."""
        if self._code is None and self._file is not None:
            self._code = _read_code(self._file)
            if self._code is not None:
                self.close()
        return self._code == 0

    def close(self) -> None:
        """Follow it no more; what is known stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()


def can_tell() -> bool:
    """Say whether this kernel tells it."""
    parts = os.uname().release.split(".")[:2]
    return sys.platform == "linux" and tuple(
        int("0" + part) for part in parts if part.isdigit()
    ) >= (6, 15)


def _read_code(file: int) -> int | None:
    """Read the wait status of a process; None while it lives, and where that cannot be seen."""
    info = bytearray(_BYTES)
    struct.pack_into("=Q", info, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(file, _GET_INFO, info)
    except OSError:
        return None
    (mask,) = struct.unpack_from("=Q", info)
    (code,) = struct.unpack_from("=i", info, _BYTES - 4)
    return int(code) if mask & _INFO_EXIT else None
