"""Origins on loopback, each on a thread of its own, that count what reaches them."""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web

from .certificates import Certificates

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Origin:
    """An aiohttp origin, over TLS where certificates are given. Use as a context manager.

    routes: path -> handler; every method. `requests` lists "METHOD path" in order of arrival.
    """

    def __init__(
        self,
        routes: dict[str, Handler],
        certificates: Certificates | None = None,
        port: int = 0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Prepare.

        context: for the TLS of one that asks more of its clients.
        """
        self.routes = routes
        self.certificates = certificates
        self.requests: list[str] = []
        self.port = port
        self._context = context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def scheme(self) -> str:
        return "https" if self.certificates else "http"

    @property
    def url(self) -> str:
        """Base URL on 127.0.0.1."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the origin did not start"
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port. Twice is once."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(middlewares=[self._count()], client_max_size=1 << 30)
        for path, handler in self.routes.items():
            app.router.add_route("*", path, handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        context = self._context
        if self.certificates is not None and context is None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.certificates.chain)
        await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=context).start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def _count(self) -> Any:
        @web.middleware
        async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
            self.requests.append(f"{request.method} {request.path_qs}")
            return await handler(request)

        return count
