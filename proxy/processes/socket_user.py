"""Find the user whose process is at the other end of a connection, also where the process itself cannot be seen.

Source: Linux, Documentation/networking/proc_net_tcp.rst: addresses are words of 32 bits in the order of the machine.
"""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from .sockdiag import plain

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
Address = tuple[str, int]
_LOCAL, _REMOTE, _USER, _INODE = 1, 2, 7, 9


def find_user(peer: Address, local: Address) -> int | None:
    """Find the id of the user whose socket a connection of this machine was made with; None where that cannot be seen.

    peer, local: the two ends as the accepting socket names them.
    Reads a table of some kilobytes.
    """
    ends = [(plain(host), port) for host, port in (peer, local)]
    for fields in _rows():
        # A socket that no process has any more is said to be root's.
        if fields[_INODE] != "0" and [_read(fields[at]) for at in (_LOCAL, _REMOTE)] == ends:
            return int(fields[_USER])
    return None


def _rows() -> Iterator[list[str]]:
    for table in TABLES:
        with contextlib.suppress(OSError):
            for line in table.read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if len(fields) > _INODE:
                    yield fields


def _read(text: str) -> Address:
    words, _, port = text.partition(":")
    data = bytes.fromhex(words)
    if sys.byteorder == "little":
        data = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
    family = socket.AF_INET if len(data) == 4 else socket.AF_INET6
    return plain(socket.inet_ntop(family, data)), int(port, 16)
