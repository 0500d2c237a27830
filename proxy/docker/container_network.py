"""The proxy's end of a container's network: its listeners, and the kernel's counters."""

import asyncio
import fcntl
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import EngineError
from ..sandbox.channel import Channel, Message
from ..sandbox.network.listeners import Service
from ..sandbox.sandbox import SandboxListeners, hear
from .network_holder import SOCKET, VERSION

_ANSWER_S = 20.0
_NO_ANSWER = "the container that holds the agent's network ended"


class Link:
    """One network. Open it, take its listeners, read its counters, close it: then the container ends."""

    def __init__(self, folder: Path, services: Sequence[Service]) -> None:
        """Prepare; nothing is opened yet.

        folder: that the container sees too; nobody else should.
        """
        self._path = folder / SOCKET
        self._services = tuple(services)
        self._held = -1
        """The folder, locked: two proxies in one would take each other's networks."""
        self._listening: socket.socket | None = None
        self._channel: Channel | None = None

    def listen(self) -> None:
        """Let the container find us. Raises: EngineError."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._held = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._path.unlink(missing_ok=True)
            made.bind(str(self._path))
            # Its user is another than ours, and may be a root without rights.
            os.chmod(self._path, 0o666)
            made.listen(1)
        except BlockingIOError as error:
            made.close()
            raise EngineError(
                f"another proxy waits for its agent's network in {str(self._path.parent)!r}",
                "one at a time: end the other one first, as with docker compose --profile '*' down",
            ) from error
        except OSError as error:
            made.close()
            raise EngineError(
                f"cannot listen at {str(self._path)!r}: {error.strerror}",
                "mount a folder there that can be written to, with a path of less than 100 characters",
            ) from error
        made.setblocking(False)
        self._listening = made

    async def open(self) -> SandboxListeners:
        """Wait for the container; take what listens in it.

        Raises: EngineError, where it cannot be made.
        """
        assert self._listening is not None
        accepted, _ = await asyncio.get_running_loop().sock_accept(self._listening)
        accepted.setblocking(False)
        self._channel = Channel(accepted)
        said = (await self._next()).data
        if said.get("version") != VERSION:
            raise EngineError(
                "the image of the network holder has another version of Playhead than this one",
                "build the image from this version",
            )
        self._channel.send(services=self._services)
        message = await self._next()
        open_listeners = SandboxListeners()
        for role, sock in zip(message.data["listeners"], message.sockets, strict=True):
            sock.setblocking(False)
            getattr(open_listeners, role).append(sock)
        return open_listeners

    async def count(self) -> dict[str, int]:
        """Read what the kernel has counted. Raises: EngineError, where nobody can say."""
        assert self._channel is not None
        try:
            self._channel.send(count=True)
        except OSError as error:
            raise EngineError(_NO_ANSWER, "it was killed; run it again") from error
        counters: dict[str, int] = (await self._next()).data["counters"]
        return counters

    def close(self) -> None:
        """Hang up."""
        if self._channel is not None:
            self._channel.close()
        if self._listening is not None:
            self._listening.close()
            self._path.unlink(missing_ok=True)
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    async def _next(self) -> Message:
        assert self._channel is not None
        try:
            message = await asyncio.wait_for(hear(self._channel), _ANSWER_S)
        except TimeoutError:
            message = None
        if message is None:
            raise EngineError(
                _NO_ANSWER, "it was killed, or the machine ran out of memory; run it again"
            )
        if "failed" in message.data:
            raise _refused(message.data)
        return message


def _refused(failure: dict[str, Any]) -> EngineError:
    return EngineError(
        f"the agent's network cannot be made: {failure['text']}",
        "the container has to have network `none`, NET_ADMIN and NET_RAW, and nothing else in it that listens",
    )
