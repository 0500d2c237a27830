"""Capture packets in a sandbox: attempts to leave, and attempts refused on loopback.

Each has a socket of its own, so that much of one hides nothing of the other. Whose it was packets do not say, and a
TCP socket that was refused is gone before anybody can ask.
"""

import asyncio
import ipaddress
import socket
import struct
from typing import NamedTuple

from .netlink import OWN

_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_STATISTICS = struct.Struct("=II")
_TCP, _UDP = 6, 17
_NAMES = {_TCP: "tcp", _UDP: "udp"}
_RESET = 0x04
_OWN = frozenset(address for address, _ in OWN.values())
_MOST_BYTES = 256
_AT_ONCE = 256
MOST_LISTED = 1000
"""Different destinations that are counted one by one."""


class Attempt(NamedTuple):
    """One destination that was tried."""

    protocol: str
    """`tcp`, `udp`, or `protocol N`."""
    address: str
    port: int
    """0 where the protocol has none."""

    @property
    def leaves(self) -> bool:
        """Whether it would have left the machine."""
        parsed = ipaddress.ip_address(self.address)
        return not (parsed.is_loopback or parsed.is_unspecified or self.address in _OWN)

    @property
    def target(self) -> str:
        """Address and port."""
        if not self.port:
            return self.address
        return (
            f"[{self.address}]:{self.port}"
            if ":" in self.address
            else f"{self.address}:{self.port}"
        )


class PacketCapture:
    """Counts attempts, from the packets of one socket."""

    def __init__(self, sock: socket.socket) -> None:
        """Read a socket that `listeners` made."""
        self._socket = sock
        self.attempts: dict[Attempt, int] = {}
        self.omitted = 0
        """Attempts that found no place in those."""
        self.lost = 0
        """Attempts that came faster than they were read: nobody knows where to."""

    def start(self) -> None:
        """Begin to count. On the loop."""
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def close(self) -> None:
        """Count what has come until now, and no more. Twice is once."""
        if self._socket.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        while self._read():
            pass
        lost = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size)
        self.lost = _STATISTICS.unpack(lost)[1]
        self._socket.close()

    def _read(self) -> int:
        """Count what has come, up to a number; give how many that were."""
        for count in range(_AT_ONCE):
            try:
                packet = self._socket.recv(_MOST_BYTES)
            except OSError:
                return count
            found = read_attempt(packet)
            if found is not None:
                self._note(found)
        return _AT_ONCE

    def _note(self, attempt: Attempt) -> None:
        if attempt in self.attempts or len(self.attempts) < MOST_LISTED:
            self.attempts[attempt] = self.attempts.get(attempt, 0) + 1
        else:
            self.omitted += 1


def read_attempt(packet: bytes) -> Attempt | None:
    """Read what was tried from a packet that a packet capture's filter let through; None for what is too short.

    Of TCP that is a first segment, or the reset that refuses it, which comes from where the attempt went to.
    """
    try:
        version = packet[0] >> 4
        if version == 4:
            size, protocol = 4 * (packet[0] & 15), packet[9]
            source, target = packet[12:16], packet[16:20]
        else:
            size, protocol = 40, packet[6]
            source, target = packet[8:24], packet[24:40]
        reply = protocol == _TCP and bool(packet[size + 13] & _RESET)
        address = str(ipaddress.ip_address(source if reply else target))
        port = 0
        if protocol in _NAMES:
            ports = struct.unpack_from("!HH", packet, size)
            port = ports[0] if reply else ports[1]
    except (IndexError, ValueError, struct.error):
        return None
    return Attempt(_NAMES.get(protocol, f"protocol {protocol}"), address, port)
