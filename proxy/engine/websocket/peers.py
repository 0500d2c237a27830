"""The two peers of a WebSocket: their state, and how their connections end."""

from typing import Any

from mitmproxy.connection import Client, Connection

from ....tape.exchange import Ending
from ..hooks.own_hooks import PlayheadResetHook, PlayheadSettleHook
from .frames import FrameReader, FrameWriter

Commands = Any
"""A generator of mitmproxy commands."""

BROKEN = 1011
"""Code for a WebSocket that cannot go on because of us."""
QUIET_S = 0.1
"""Who broke the protocol is heard out until it has been quiet for so long: what it sends after its connection
is closed would have it reset, and the closing frame unread."""
_LINGER_S = 2.0
"""A peer that was sent a closing frame has so long to answer or to leave."""


class Linger:
    """How long a peer that was sent a closing frame is heard out."""

    def __init__(self) -> None:
        """Begin to wait."""
        self._waited_s = 0.0
        self._heard = False

    def hear(self) -> None:
        """Take note that it said something."""
        self._heard = True

    def is_over(self, *, answers: bool) -> bool:
        """Say, after each `QUIET_S`, whether to wait no longer.

        answers: whether its answer can be read, and is waited for.
        """
        self._waited_s += QUIET_S
        quiet, self._heard = not self._heard, False
        return self._waited_s >= _LINGER_S or (quiet and not answers)


class Side:
    """One of the two peers."""

    def __init__(self, connection: Connection, reader: FrameReader, writer: FrameWriter) -> None:
        """Speak to a peer after the handshake."""
        self.connection = connection
        self.reader = reader
        self.writer = writer
        self.sent_close = False
        """Whether it has been sent a closing frame."""
        self.gone = False
        """Whether its connection has ended, or was ended."""
        self.broken = False
        """Whether it broke the protocol: what it says cannot be read."""
        self.linger = Linger()

    @property
    def done(self) -> bool:
        """Whether both have said that they close."""
        return self.sent_close and self.reader.closed


def end_abruptly(client: Client, ending: Ending) -> Commands:
    """End a client's connection as the upstream's ended; closing it is left to the caller."""
    if ending is Ending.RST:
        yield PlayheadSettleHook(client)
        yield PlayheadResetHook(client)
    elif ending is Ending.FIN:
        client.abrupt = True  # type: ignore[attr-defined]  # read by our TLS layer
