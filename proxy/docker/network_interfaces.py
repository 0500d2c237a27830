"""Find the network devices of a container that lead out of it.

Kernels with tunnels built in put one of each kind into every network (`tunl0`, `sit0`); they are down, and stay so for
want of rights.
"""

import contextlib
import fcntl
import socket
import struct

_SIOCGIFFLAGS, _IFF_UP = 0x8913, 0x1
_REQUEST = struct.Struct("16sh14x")


def leading_out() -> list[str]:
    """Name the devices that are up, but loopback."""
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        return [name for name in names if _is_up(asking, name)]


def _is_up(asking: socket.socket, name: str) -> bool:
    with contextlib.suppress(OSError):  # gone meanwhile
        flags = fcntl.ioctl(asking, _SIOCGIFFLAGS, _REQUEST.pack(name.encode(), 0))
        return bool(_REQUEST.unpack(flags)[1] & _IFF_UP)
    return False
