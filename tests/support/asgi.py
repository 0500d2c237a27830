"""An ASGI application on loopback over TLS, by hypercorn, which speaks HTTP/2 where it is offered."""

import asyncio
import socket
import threading
from typing import Any, Self

from .certificates import Certificates


class AsgiOrigin:
    """An ASGI application on a thread of its own. Use as a context manager.

    `sent` holds, by "METHOD path", the bodies that the application handed over, in order.
    """

    def __init__(self, app: Any, certificates: Certificates) -> None:
        self.sent: dict[str, list[bytes]] = {}
        self._app = app
        self._certificates = certificates
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        """Base URL on 127.0.0.1."""
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the origin did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port. Twice is once."""
        if self._thread.is_alive() and self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)
            assert not self._thread.is_alive(), "the origin did not stop"

    async def _serve(self) -> None:
        from hypercorn.asyncio import serve
        from hypercorn.config import Config

        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        config = Config()
        config.bind = [f"fd://{self._socket.detach()}"]  # hypercorn closes it
        config.certfile = config.keyfile = str(self._certificates.chain)
        config.graceful_timeout = config.shutdown_timeout = 0.2
        config.accesslog = config.errorlog = None
        self._ready.set()
        await serve(self._tee, config, shutdown_trigger=self._stop.wait)

    async def _tee(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        bodies = self.sent.setdefault(f"{scope['method']} {scope['path']}", [])
        index = len(bodies)
        bodies.append(b"")

        async def teed(message: Any) -> None:
            bodies[index] += message.get("body", b"")
            await send(message)

        await self._app(scope, receive, teed)
