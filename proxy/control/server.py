"""Start, configure and stop the control API's server.

It is opened with the proxy's own port, and costs nothing until somebody connects: the port is a bare socket, and the
HTTP server behind it is read and started when the first connection waits there.
"""

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from ...config import Config, Control, Listen
from ...config.parse_values import is_loopback
from ..errors import EngineError
from ..standard_streams import print_status
from .address import Address, open_token, publish
from .http.access import Guard, make_own_name
from .http.listen_on_loopback import HOSTS, PAIR, listen_at
from .http.route import ProxyState

if TYPE_CHECKING:
    from aiohttp import web

    from .pages_process import PagesProcess

logger = logging.getLogger(__name__)

_WAITING = 1024
"""Connections that may wait for the server to begin."""


class ControlServer:
    """The control API of one process."""

    def __init__(self, config: Config, proxy_state: ProxyState) -> None:
        """Prepare; nothing is opened yet."""
        self._config = config
        self._house = proxy_state
        self._listening: list[socket.socket] = []
        self._file: Path | None = None
        self._waiting = False
        self._starting: asyncio.Task[None] | None = None
        self._runner: web.ServerRunner | None = None
        self._pages: PagesProcess | None = None
        self.url = ""
        """Where it can be asked from this machine; empty where it cannot."""

    def open(self) -> None:
        """Listen, and say where in the store. Loop.

        Raises: EngineError, where what the configuration asks for cannot be had; a default that cannot is
        said, and done without.
        """
        control = self._config.control
        if control.listen is None:
            return
        try:
            self._open(control, control.listen)
        except EngineError as error:
            self._abandon()
            if control != Control():
                raise
            print_status(f"playhead: no control API: {error}")

    async def close(self) -> None:
        """End what is being asked, and close the port. Twice is once."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._pages is not None:
            await self._pages.close()
            self._pages = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._abandon()

    # ---- inside --------------------------------------------------------------------------------

    def _open(self, control: Control, listen: Listen) -> None:
        scheme = "http" if control.tls is None else "https"
        context = _context(control)
        token = open_token(self._config)
        try:
            self._listening = listen_at(listen.host, listen.port, _WAITING)
            host, port = self._listening[0].getsockname()[:2]
            if not (control.tls or control.public or is_loopback(host)):
                # A name, as localhost, is looked up when it is bound.
                raise EngineError(
                    f"the control API would listen on {host} for {listen}, where other machines reach it",
                    "give control.tls, or the address of loopback as control.listen",
                )
            self.url = f"{scheme}://{Listen(_reachable(host), port)}"
            cert = str(control.tls.cert.absolute()) if control.tls is not None else ""
            started = round(psutil.Process().create_time(), 2)
            self._file = publish(self._config.store, Address(os.getpid(), started, self.url, cert))
        except (OSError, OverflowError) as error:
            raise EngineError(
                f"the control API cannot listen on {listen}: {getattr(error, 'strerror', None) or error}",
                "choose another control.listen (port 0: a free one), or off",
            ) from error
        # A certificate would not name it, and it leads to these addresses alone.
        own = make_own_name() if scheme == "http" and host in PAIR else ""
        guard = Guard(
            token,
            scheme,
            port,
            HOSTS | {listen.host.lower(), host, *([own] if own else ())} - {"0.0.0.0", "::"},
            frozenset(control.hosts),
            own,
            anywhere=_is_any(host),
        )
        self._guard, self._context = guard, context
        for ready in self._listening:
            self._house.engine.keep_from_clients(ready)
            asyncio.get_running_loop().add_reader(ready, self._begin)
        self._waiting = True

    def _begin(self) -> None:
        """Start the server for the first connection, which waits in a socket."""
        self._stop_waiting()
        self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        assert self._listening
        try:
            # Reading it takes long; requests of agents go on meanwhile.
            serving = await asyncio.to_thread(_load)
            from .handlers.route_table import make_table
            from .pages_process import PagesProcess

            self._pages = pages = PagesProcess(self._config, self._guard)
            table = make_table(pages.make_link)
            handler = serving.ControlHandler(self._house, self._guard, table, pages)
            self._runner = await serving.serve_on(self._listening, handler, self._context)
        except Exception:
            logger.exception("the control API did not start")
            self._abandon()

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            for ready in self._listening:
                asyncio.get_running_loop().remove_reader(ready)

    def _abandon(self) -> None:
        self._stop_waiting()
        while self._listening:
            self._listening.pop().close()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()
            self._file = None
        self.url = ""


def _load():  # type: ignore[no-untyped-def]  # a module
    from .http import serving

    return serving


def _reachable(host: str) -> str:
    """Give an address by which this machine reaches what listens on `host`."""
    if not _is_any(host):
        return host
    return "::1" if ":" in host else "127.0.0.1"


def _is_any(host: str) -> bool:
    return ipaddress.ip_address(host.partition("%")[0]).is_unspecified


def _context(control: Control) -> ssl.SSLContext | None:
    if control.tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(control.tls.cert, control.tls.key)
    except (OSError, ValueError) as error:  # ssl's errors are OSErrors
        raise EngineError(
            f"control.tls cannot be used: {getattr(error, 'strerror', None) or error}"
            f" ({control.tls.cert}, {control.tls.key})",
            "cert is a PEM file of the certificate and its chain, key one of its key without a password",
        ) from error
    return context
