"""What was tried in a sandbox and refused, read from packets: by destination, and by process where that can be told.

A TCP socket that was refused is gone before anybody can ask whose it was: it is told only while the command has never
made another process.
"""

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_STATISTICS = struct.Struct("=II")
_TCP, _UDP = 6, 17
_NAMES = {_TCP: "tcp", _UDP: "udp"}
_MOST_BYTES = 256
_AT_ONCE = 256
MOST_LISTED = 1000
"""Different destinations that are counted one by one."""


class Attempt(NamedTuple):
    """One destination that was tried by one program."""

    protocol: str
    """`tcp`, `udp`, or `protocol N`."""
    address: str
    port: int
    """0 where the protocol has none."""
    process: str
    """Command name, as the process calls itself; empty where it cannot be told."""

    @property
    def leaves(self) -> bool:
        """Whether it would have left the machine."""
        parsed = ipaddress.ip_address(self.address)
        return not (parsed.is_loopback or parsed.is_unspecified)

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


class Tap:
    """Counts attempts, from the packets of one socket."""

    def __init__(self, sock: socket.socket, process: Callable[[], str]) -> None:
        """Read a socket that `listeners` made.

        process: names whose an attempt can only be; empty where it may be another's.
        """
        self._socket = sock
        self._process = process
        self.attempts: dict[Attempt, int] = {}
        self.omitted = 0
        """Attempts that found no place in those, or came faster than they were read."""

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
        self.omitted += _STATISTICS.unpack(lost)[1]
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
                self._note(*found)
        return _AT_ONCE

    def _note(self, protocol: str, address: str, port: int) -> None:
        attempt = Attempt(protocol, address, port, self._process())
        if attempt in self.attempts or len(self.attempts) < MOST_LISTED:
            self.attempts[attempt] = self.attempts.get(attempt, 0) + 1
        else:
            self.omitted += 1


def read_attempt(packet: bytes) -> tuple[str, str, int] | None:
    """Read what was tried from a packet that the tap's filter let through: protocol, address, port.

    Of TCP it is the refusal that is seen, which comes from where the attempt went to; None for what is too short.
    """
    try:
        version = packet[0] >> 4
        if version == 4:
            size, protocol = 4 * (packet[0] & 15), packet[9]
            source, target = packet[12:16], packet[16:20]
        else:
            size, protocol = 40, packet[6]
            source, target = packet[8:24], packet[24:40]
        reply = protocol == _TCP
        address = str(ipaddress.ip_address(source if reply else target))
        port = 0
        if protocol in _NAMES:
            ports = struct.unpack_from("!HH", packet, size)
            port = ports[0] if reply else ports[1]
    except (IndexError, ValueError, struct.error):
        return None
    return _NAMES.get(protocol, f"protocol {protocol}"), address, port
