"""The guard: nothing leaves unless the policy returns literally True.

1. Every socket to an upstream, TCP or UDP, is opened in `ConnectionHandler.open_connection`; it is asked
   before the name is looked up. Patched on the base class, so that every handler is covered.
2. A pooled connection is not opened again: every request asks once more in
   `HttpStream.make_server_connection`.
3. mitmproxy's Rust resolver would look names up beside both; it cannot be constructed here.
4. What a name leads to is looked up once, here, and only those addresses are connected to: none of them may be one where
   something of ours listens, whatever name, spelling or resolver led there. No rule makes an exception.
5. By way of a proxy of the network that goes for the proxy's address: it is the one which is connected to here. One on this
   machine leads to no port of ours either.
6. `stdio.playhead.internal` leads to a path socket in a folder of ours, and nowhere else (`addons/wire/stdio_servers.py`).

The question is asked of the handler's own guard; a handler without one is denied. Anything that goes
wrong while asking is a no. Checked against 12.2.3. Test: tests/proxy/engine/test_egress_guard_leaks.py, which fails if either layer is
taken out.
"""

import asyncio
import logging
import os
import socket
import stat
import sys
import types
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import mitmproxy_rs
from mitmproxy import connection, http
from mitmproxy.proxy import commands, events, server
from mitmproxy.proxy.layers import http as http_layer

from ...tape.canonical.json_rpc_client_ids import STDIO_HOST
from .upstream import Dialler
from .upstream.dial_through_proxy import Open, Streams, note_upgrade

logger = logging.getLogger(__name__)

DENIED = "egress denied"

Policy = Callable[[connection.Client, connection.Server, http.HTTPFlow | None], bool]
"""(client, server, flow or None) -> whether this may leave."""

Owned = Callable[[connection.Client, tuple[str, int], str], bool]
"""(client, host and port as asked, IP address) -> whether something of ours listens there."""

Connects = Callable[[connection.Client, str, int], Awaitable[socket.socket | None]]
"""(client, host, port) -> a connection to a program of the client's own command in another network, or None."""

_open_connection = server.ConnectionHandler.open_connection
_STOCK_STREAM = http_layer.HttpStream
"""Mitmproxy's own, whatever stands under its name by the time of a second engine in this process: ours goes on past it."""
_make_server_connection = _STOCK_STREAM.make_server_connection


class Guard:
    """The policy that the patched places ask; one per process, default deny."""

    policy: Policy | None = None
    owned: Owned | None = None
    find_socket: Callable[[connection.Client], Path | None] | None = None
    """Gives the path socket at which a client's requests to `STDIO_HOST` are answered."""
    connects: Connects | None = None
    dialler: Dialler | None = None
    """Knows by which proxies of the network upstreams are reached."""

    def allows(
        self, client: connection.Client, upstream: connection.Server, flow: http.HTTPFlow | None
    ) -> bool:
        """Ask the policy; anything but a literal True is a no."""
        try:
            return self.policy is not None and self.policy(client, upstream, flow) is True
        except BaseException as error:
            logger.error("egress denied, since asking failed: %s", error)
            return False

    def leads_elsewhere(
        self, client: connection.Client, asked: tuple[str, int], address: str
    ) -> bool:
        """Ask whether an address is none of ours; anything but a literal False of `owned` is a no."""
        try:
            return self.owned is not None and self.owned(client, asked, address) is False
        except BaseException as error:
            logger.error("egress denied, since asking failed: %s", error)
            return False


GUARD = Guard()

_END_S = 0.2


_ASKING: ContextVar[connection.Client | None] = ContextVar("asking", default=None)
"""Whose connection is being opened; nothing is opened for nobody."""
_UPSTREAM: ContextVar[connection.Server | None] = ContextVar("upstream", default=None)
"""The connection that is being opened."""


async def connect(host: str, port: int, **more: Any) -> Any:
    """Connect to what a host leads to, unless that is one of our own listeners.

    Raises: OSError, as `asyncio.open_connection`.
    """
    client = _ASKING.get()
    if host == STDIO_HOST:
        return await _connect_to_stdio(client)
    if client is not None and GUARD.connects is not None:
        made = await GUARD.connects(client, host, port)
        if made is not None:
            return await asyncio.open_connection(sock=made, **more)
    upstream = _UPSTREAM.get()
    if client is not None and upstream is not None and GUARD.dialler is not None:
        proxy = GUARD.dialler.choose(upstream, host, port)
        if proxy is not None:
            place = host, port
            through = partial(_connect_to, client, place)
            return await GUARD.dialler.connect(proxy, client, upstream, place, through)
    return await _connect_to(
        client, None, host, port, lambda at, number: asyncio.open_connection(at, number, **more)
    )


async def _connect_to(
    client: connection.Client | None,
    beyond: tuple[str, int] | None,
    host: str,
    port: int,
    dial: Open,
) -> Streams:
    """Connect to what a host leads to.

    beyond: what its proxy is to connect to, where the host is one.
    Raises: OSError.
    """
    failures: list[OSError] = []
    for address in await _look_up(host, port):
        for asked in filter(None, ((host, port), beyond)):
            if client is None or not GUARD.leads_elsewhere(client, asked, address):
                raise PermissionError(DENIED)
        try:
            return await dial(address, port)
        except OSError as error:
            failures.append(error)
    if len({str(error) for error in failures}) == 1:
        raise failures[0]
    raise OSError(f"Multiple exceptions: {', '.join(map(str, failures))}")


async def _connect_to_stdio(client: connection.Client | None) -> Any:
    """Connect to the socket at which `playhead stdio` answers. Raises: OSError."""
    path = GUARD.find_socket(client) if client is not None and GUARD.find_socket else None
    if path is None:
        raise PermissionError(f"{STDIO_HOST} is asked by `playhead stdio` alone")
    opened = None
    try:
        if sys.platform == "linux":
            # What is looked at is what is connected to: a link that is put there meanwhile leads nowhere.
            opened = os.open(path, os.O_PATH | os.O_NOFOLLOW)
            is_socket, place = stat.S_ISSOCK(os.fstat(opened).st_mode), f"/proc/self/fd/{opened}"
        else:
            is_socket, place = stat.S_ISSOCK(path.lstat().st_mode), str(path)
        if not is_socket:
            raise PermissionError(DENIED)
        reader, writer = await asyncio.open_unix_connection(place)
    finally:
        if opened is not None:
            os.close(opened)
    return _Patient(reader), _Placed(writer)


class _Patient:
    """A reader that tells the end a little late: whoever is killed is the client, too, and is to be seen to leave as that."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    async def read(self, size: int = -1) -> bytes:
        data = await self._reader.read(size)
        if not data:
            await asyncio.sleep(_END_S)
        return data


class _Placed:
    """A writer to a path socket that has addresses, as those of TCP have."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name in ("peername", "sockname"):
            return ("127.0.0.1", 0)
        return self._writer.get_extra_info(name, default)


async def _look_up(host: str, port: int) -> list[str]:
    """Give the IP addresses of a host, in the resolver's order; none is connected to yet.

    Raises: OSError, where it has none.
    """
    try:
        ip_address(host)
    except ValueError:
        pass
    else:
        return [host]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"no name or service: {error}") from error
    return list(dict.fromkeys(str(row[4][0]) for row in found))


async def guarded_open_connection(
    self: server.ConnectionHandler, command: commands.OpenConnection
) -> None:
    """Open a connection to an upstream if the guard allows it."""
    if GUARD.allows(self.client, command.connection, None):
        _ASKING.set(self.client)
        _UPSTREAM.set(command.connection)
        await _open_connection(self, command)
        return
    command.connection.error = DENIED
    await self.server_event(events.OpenConnectionCompleted(command, DENIED))
    # The handler keeps every transport it knows; this one never came to be. It was entered there while
    # this coroutine, an eager task, waited for the event to be taken.
    self.transports.pop(command.connection, None)


def guarded_make_server_connection(self: http_layer.HttpStream) -> Any:
    """Get a connection for a request, new or pooled, if the guard allows it."""
    # No connection yet, only where one would go to: it needs no id from the system's randomness.
    target = connection.Server(id="", address=(self.flow.request.host, self.flow.request.port))
    if GUARD.allows(self.context.client, target, self.flow):
        note_upgrade(self.context.client, self.flow.request)
        made = yield from _make_server_connection(self)
        if made and self.flow.error is not None and (yield from self.check_killed(True)):
            return False  # its run was stopped while the connection was made
        return made
    yield from self.handle_protocol_error(
        http_layer.ResponseProtocolError(
            self.stream_id, DENIED, http_layer.ErrorCode.CONNECT_FAILED
        )
    )
    return False


class NoResolver:
    """Stands where mitmproxy's own resolver was."""

    def __init__(self, *_: object, **__: object) -> None:
        """Refuse."""
        raise RuntimeError("names are looked up by the guarded connection only")


def install() -> None:
    """Put the guard in place, for the whole process."""
    install_sockets()
    install_requests()
    mitmproxy_rs.dns.DnsResolver = NoResolver  # type: ignore[misc, assignment]


def install_sockets() -> None:
    """Guard every new socket, and where it leads."""
    server.ConnectionHandler.open_connection = guarded_open_connection  # type: ignore[method-assign]
    seen = types.ModuleType("asyncio")
    vars(seen).update(vars(asyncio))
    # Looked up when it is called, as everything here that is replaced by name.
    vars(seen)["open_connection"] = lambda *place, **more: connect(*place, **more)
    server.asyncio = seen  # the only sockets of that module


def install_requests() -> None:
    """Guard every request, also on pooled connections."""
    _STOCK_STREAM.make_server_connection = guarded_make_server_connection  # type: ignore[method-assign]
