"""Close a client's connection so that the client reads all it was sent, and then an end that is no reset.

A socket that is closed while something of its peer is unread ends with RST instead of FIN, and so does one whose peer
says more afterwards: a client of HTTP/2 that acknowledges a frame is enough. The RST overtakes what the client has not
read, or makes an ordinary end look like a crash. So our half is shut first, and what the client still says is read and
forgotten, until it has closed too, `LINGER_S` have passed or `MOST_BYTES` have come.

Source: RFC 9112 section 9.6, "Tear-down". Test: tests/proxy/engine/test_lingering_close.py.
"""

import asyncio
from typing import Any

LINGER_S = 1.0
"""Longest time that a client is given to close too."""
MOST_BYTES = 4 * 1024 * 1024
"""Most that is read meanwhile: many clients send a whole body before they read."""


class LingeringConnections:
    """The connections of clients that we have closed, and the clients have not."""

    def __init__(self) -> None:
        """Begin with none."""
        self._open: set[_Forgetting] = set()

    def close(self, writer: Any) -> None:
        """Shut our half of a connection; close it when the client has, or its time is over."""
        transport: asyncio.Transport = writer.transport
        if transport.is_closing():
            return
        transport.set_protocol(_Forgetting(writer, self._open))
        try:
            transport.write_eof()
            transport.resume_reading()
        except (OSError, RuntimeError):  # it has ended meanwhile
            transport.close()

    def end(self) -> None:
        """Close all that are left, now."""
        for one in list(self._open):
            one.transport.close()


class _Forgetting(asyncio.Protocol):
    """Reads on for a while; all but what it reads is told to the protocol that it takes the place of."""

    def __init__(self, writer: Any, among: "set[_Forgetting]") -> None:
        self.transport: asyncio.Transport = writer.transport
        self._writer = writer  # which closes its transport when nobody has it any more
        self._before: Any = self.transport.get_protocol()
        self._left = MOST_BYTES
        self._timer = asyncio.get_running_loop().call_later(LINGER_S, self.transport.close)
        self._among = among
        among.add(self)

    def data_received(self, data: bytes) -> None:
        """Forget it; once it is too much, close."""
        self._left -= len(data)
        if self._left < 0:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection too."""
        self._timer.cancel()
        self._among.discard(self)
        self._before.connection_lost(error)

    def pause_writing(self) -> None:
        """Have those wait that wait for the client to take what it was sent."""
        self._before.pause_writing()

    def resume_writing(self) -> None:
        """Have them go on."""
        self._before.resume_writing()
