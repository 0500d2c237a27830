"""The network holder: a container on network `none` that creates the network the agent joins.

It needs NET_ADMIN (routes) and NET_RAW (packets of what was refused), gives both up before anybody else is there, and
keeps the network until the proxy hangs up. Only modules that are quick to import are used here.
"""

import errno
import os
import socket
import time
from pathlib import Path

from ..errors import EngineError
from ..sandbox.channel import Channel
from ..sandbox.kernel import syscalls
from ..sandbox.network import listeners, netlink
from ..sandbox.network.packet_counters import PLACE, read_counters
from .network_interfaces import leading_out

SOCKET = "inlets"
"""Name of the proxy's socket in the folder that both see."""
VERSION = 1
"""Of what is said over it."""
_PATIENCE_S = 60.0
_LOOK_S = 0.05


def serve(folder: Path) -> int:
    """Make the network, hand its listeners over, wait until the proxy hangs up.

    folder: where the proxy's socket is, or will be.
    Raises: EngineError, where there is no proxy or the network cannot be made.
    """
    channel = Channel(_connect(folder / SOCKET))
    channel.send(version=VERSION)
    given = channel.receive()
    if given is None:
        raise EngineError(
            "the proxy takes no network holder of this version",
            "use one version of Playhead, outside and in the image",
        )
    try:
        _hand_over(channel, [listeners.Service(*one) for one in given.data["services"]])
    except OSError as error:
        text = error.strerror or str(error)
        channel.send(failed="the network", errno=error.errno or 0, text=text)
        raise EngineError(
            f"the network cannot be made: {text}",
            "give this container network `none`, the capabilities NET_ADMIN and NET_RAW, and nothing else in it",
        ) from error
    counted = os.open(PLACE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    while channel.receive() is not None:
        channel.send(counters=read_counters(counted))
    return 0


def _connect(path: Path) -> socket.socket:
    """Wait for the proxy. Raises: EngineError, where it does not come."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            made.connect(str(path))
            return made
        except OSError as error:
            # What was left behind by one that was killed refuses.
            if error.errno not in (errno.ENOENT, errno.ECONNREFUSED) or time.monotonic() > deadline:
                raise EngineError(
                    f"no proxy is at {str(path)!r}: {error.strerror}",
                    "mount the folder in which the proxy waits; both have to be on one machine",
                ) from error
        time.sleep(_LOOK_S)


def _hand_over(channel: Channel, services: list[listeners.Service]) -> None:
    if others := leading_out():
        # A socket that is bound to a device passes the routes by.
        raise OSError(errno.EINVAL, f"it has other devices than loopback: {', '.join(others)}")
    families = netlink.make_all_local()
    made = listeners.listen(families, services)
    syscalls.forbid_new_privileges()
    syscalls.drop_capabilities_in_force()  # it executes nothing, and has no right to lower its bounds
    syscalls.close_to_others()
    channel.send(tuple(sock for _, sock in made), listeners=[role for role, _ in made])
    for _, sock in made:
        sock.close()
