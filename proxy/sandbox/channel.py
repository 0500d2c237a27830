"""Messages between the proxy's process and a sandbox: small JSON objects, with optional file descriptors.

The kernel says which process a message came from, in the numbers of whoever reads it: a process inside does not
know its own number outside.
"""

import array
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_MOST_BYTES = 1 << 18
_MOST_DESCRIPTORS = 64
_CREDENTIALS = struct.Struct("=iII")


class Message(NamedTuple):
    """What was said."""

    data: dict[str, Any]
    sockets: tuple[socket.socket, ...] = ()
    pid: int = 0
    """Of the process that said it."""


class Channel:
    """One end."""

    def __init__(self, sock: socket.socket) -> None:
        """Speak over a socket of `pair`."""
        self.socket = sock

    def send(self, sockets: tuple[socket.socket, ...] = (), **data: Any) -> None:
        """Say something, and hand sockets over.

        Raises: OSError, when the other end is gone.
        """
        self.send_descriptors([s.fileno() for s in sockets], **data)

    def send_descriptors(self, descriptors: Sequence[int], **data: Any) -> None:
        """Say something, and hand over what is open.

        Raises: OSError, when the other end is gone.
        """
        socket.send_fds(self.socket, [json.dumps(data).encode()], descriptors)

    def receive(self) -> Message | None:
        """Read one message; None when the other end is gone.

        Raises: OSError.
        """
        said = self.receive_descriptors()
        if said is None:
            return None
        message, descriptors = said
        made = tuple(socket.socket(fileno=descriptor) for descriptor in descriptors)
        return message._replace(sockets=made)

    def receive_descriptors(self) -> tuple[Message, list[int]] | None:
        """Do as `receive`, and give what was handed over as descriptors: no socket has to be among them. Raises: OSError."""
        space = socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS) + socket.CMSG_SPACE(_CREDENTIALS.size)
        data, rows, _, _ = self.socket.recvmsg(_MOST_BYTES, space, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return None
        descriptors = array.array("i")
        pid = 0
        for level, kind, value in rows:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(value[: len(value) - len(value) % descriptors.itemsize])
            elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack_from(value)[0]
        return Message(json.loads(data), (), pid), descriptors.tolist()

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


def hold_variables() -> int:
    """Give a descriptor by which a process that inherits it finds variables that are put there later, whatever their size."""
    return os.memfd_create("variables")


def fill_variables(held: int, environ: Mapping[str, str]) -> None:
    """Put the variables of a command there."""
    with open(held, "wb", closefd=False) as file:
        file.write(b"\0".join(os.fsencode(f"{name}={value}") for name, value in environ.items()))
    os.lseek(held, 0, os.SEEK_SET)


def write_variables(environ: Mapping[str, str]) -> int:
    """Do both."""
    held = hold_variables()
    fill_variables(held, environ)
    return held


def read_variables(held: int) -> dict[bytes, bytes]:
    """Read them, and close the descriptor."""
    with open(held, "rb") as file:
        rows = file.read().split(b"\0")
    return {name: value for name, _, value in (row.partition(b"=") for row in rows) if name}


def pair() -> tuple[Channel, Channel]:
    """Make two ends; the first one hears which process speaks."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return Channel(ours), Channel(theirs)
