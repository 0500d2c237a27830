"""Our own hooks and errands between the streams and the addons.

A hook is answered by the addons; while a stream waits for one, what happens to it meanwhile is queued. An
errand is run by the connection's handler and ends with a wake-up: the stream goes on hearing meanwhile.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mitmproxy.connection import Client, Connection
from mitmproxy.proxy import commands

from ....addons.run.pending_exchange import PendingExchange

if TYPE_CHECKING:
    from ....addons.attempts.log_failed_attempts import Stray
    from ....addons.recording.save_tunnel import Attempt


@dataclass
class PlayheadReleaseHook(commands.StartHook):
    """What has passed of a stream is to be made durable before more is released."""

    data: PendingExchange


@dataclass
class PlayheadUploadedHook(commands.StartHook):
    """A request's body that is too large to be held has come whole."""

    data: PendingExchange


@dataclass
class PlayheadBidirectionalHook(commands.StartHook):
    """More has come of a request whose answer may begin before it has ended."""

    data: PendingExchange


@dataclass
class PlayheadLeftHook(commands.StartHook):
    """The client left while the outcome was being written, before it was sent the end."""

    data: PendingExchange


@dataclass
class PlayheadGateHook(commands.StartHook):
    """A request that was held is about to be sent: what its client has done meanwhile is to be heard first."""

    data: PendingExchange


@dataclass
class PlayheadTunnelHook(commands.StartHook):
    """The upstream of a tunnel could not be reached."""

    data: "Attempt"


@dataclass
class PlayheadStrayHook(commands.StartHook):
    """A client has said what is no request, or no whole one."""

    data: "Stray"


@dataclass
class PlayheadDrainHook(commands.StartHook):
    """Wait until the client has taken most of what it was sent."""

    data: Client


@dataclass
class PlayheadWebsocketEndedHook(commands.StartHook):
    """A WebSocket is over: its outcome is to be made durable, or compared with the tape."""

    data: PendingExchange


@dataclass
class PlayheadSettleHook(commands.StartHook):
    """What a client was sent is to reach it before its connection is reset: a reset overtakes data."""

    data: Client


@dataclass
class PlayheadResetHook(commands.StartHook):
    """The client's connection is to end with RST, not FIN."""

    data: Client


class Waiter(Protocol):
    """Who runs errands: the handler of the client's connection."""

    async def drained(self, connection: Connection) -> None:
        """Wait until a peer has taken most of what it was sent."""

    async def heard_client(self) -> None:
        """Wait until what has come from the client was read and handled."""


class Errand(commands.RequestWakeup):
    """Something to be waited for; the wake-up comes when it is done."""

    def __init__(self) -> None:
        """Begin as soon as the command is obeyed."""
        super().__init__(0.0)

    async def run(self, handler: Waiter) -> None:
        """Wait. What this raises ends the client's connection."""
        raise NotImplementedError


class Drain(Errand):
    """Wait until a peer has taken most of what it was sent."""

    def __init__(self, connection: Connection) -> None:
        """Wait for the peer of `connection`."""
        super().__init__()
        self._connection = connection

    async def run(self, handler: Waiter) -> None:
        """Wait."""
        await handler.drained(self._connection)


class Hear(Errand):
    """Wait until what has come from the client was read and handled."""

    async def run(self, handler: Waiter) -> None:
        """Wait."""
        await handler.heard_client()


class Fetch(Errand):
    """Read more of an upload, once the upstream has taken what it was sent."""

    def __init__(
        self, pending: PendingExchange, connection: Connection, start: int, size: int
    ) -> None:
        """Read `size` bytes from `start` on."""
        super().__init__()
        self._pending = pending
        self._connection = connection
        self._start = start
        self._size = size
        self.data = b""
        """What was read; empty where the upload is gone."""

    async def run(self, handler: Waiter) -> None:
        """Wait and read."""
        await handler.drained(self._connection)
        if self._pending.body.upload is not None:
            self.data = await self._pending.body.upload.read(self._start, self._size)
