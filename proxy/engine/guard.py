"""The guard: nothing leaves unless the policy returns literally True.

1. Every socket to an upstream, TCP or UDP, is opened in `ConnectionHandler.open_connection`; it is asked
   before the name is looked up. Patched on the base class, so that every handler is covered.
2. A pooled connection is not opened again: every request asks once more in
   `HttpStream.make_server_connection`.
3. mitmproxy's Rust resolver would look names up beside both; it cannot be constructed here.

The question is asked of the handler's own guard; a handler without one is denied. Anything that goes
wrong while asking is a no. Checked against 12.2.3. Test: tests/proxy/engine/test_leaks.py, which fails if either layer is
taken out.
"""

import logging
from collections.abc import Callable
from typing import Any

import mitmproxy_rs
from mitmproxy import connection, http
from mitmproxy.proxy import commands, events, server
from mitmproxy.proxy.layers import http as http_layer

logger = logging.getLogger(__name__)

DENIED = "egress denied"

Policy = Callable[[connection.Client, connection.Server, http.HTTPFlow | None], bool]
"""(client, server, flow or None) -> whether this may leave."""

_open_connection = server.ConnectionHandler.open_connection
_make_server_connection = http_layer.HttpStream.make_server_connection


class Guard:
    """The policy that the patched places ask; one per process, default deny."""

    policy: Policy | None = None

    def allows(
        self, client: connection.Client, upstream: connection.Server, flow: http.HTTPFlow | None
    ) -> bool:
        """Ask the policy; anything but a literal True is a no."""
        try:
            return self.policy is not None and self.policy(client, upstream, flow) is True
        except BaseException as error:
            logger.error("egress denied, since asking failed: %s", error)
            return False


GUARD = Guard()


async def guarded_open_connection(
    self: server.ConnectionHandler, command: commands.OpenConnection
) -> None:
    """Open a connection to an upstream if the guard allows it."""
    if GUARD.allows(self.client, command.connection, None):
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
    """Guard every new socket."""
    server.ConnectionHandler.open_connection = guarded_open_connection  # type: ignore[method-assign]


def install_requests() -> None:
    """Guard every request, also on pooled connections."""
    http_layer.HttpStream.make_server_connection = guarded_make_server_connection  # type: ignore[method-assign]
