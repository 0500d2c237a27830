"""Test the guard before the first real request: one denied request per layer.

Rules:

1. The path is the real one: a handler as every client gets one, mitmproxy's own HTTP layers, the patched
   places. It tells no addon: no run, no counter and no log of what was denied sees it.
2. Each layer of the guard is tried alone: the other one lets the request pass.
3. What counts is what a listener of ours sees, which is nothing; and that the layer was asked.

Why: the guard leans on private names of mitmproxy. Should another version call them differently, this
says so at the start, and the engine does not begin. Checked against 12.2.3.
Test: tests/proxy/engine/test_guard_selftest.py.
"""

import asyncio
import contextlib
import socket
from types import SimpleNamespace
from typing import Any

import mitmproxy_rs
from mitmproxy import connection, http, master, version
from mitmproxy.proxy import events, mode_servers, server
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode
from mitmproxy.proxy.mode_specs import ProxyMode

from ..errors import EngineError
from .egress_guard import GUARD, Policy
from .hooks.dispatch import TableAddonManager

CHECKED = "12.2.3"
"""The version of mitmproxy that the guard was written against."""

_TIMEOUT_S = 2.0
_HEAD = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


async def check_guard(running: master.Master) -> None:
    """Try every layer of the guard, in a few milliseconds.

    running: the engine's, with its addons loaded.
    Raises: EngineError, when a layer lets something out, was not asked, or is not in the path.
    """
    around = _overriding(server.ConnectionHandler)
    if around:
        raise _does_not_hold(f"{around} opens connections of its own")
    # To let pass at the one place is to leave it to the other.
    await _try("new connections", lambda _client, _upstream, flow: flow is not None, running)
    await _try("requests", lambda _client, _upstream, flow: flow is None, running)
    await _try_addresses()
    with contextlib.suppress(RuntimeError):
        mitmproxy_rs.dns.DnsResolver(name_servers=["127.0.0.1"], use_hosts_file=False)
        raise _does_not_hold("names can be looked up beside it")


async def _try(layer: str, policy: Policy, running: master.Master) -> None:
    """Drive one request that the policy denies at one layer alone."""
    denied = 0

    def asked(
        client: connection.Client, upstream: connection.Server, flow: http.HTTPFlow | None
    ) -> bool:
        nonlocal denied
        allowed = policy(client, upstream, flow)
        denied += not allowed
        return allowed

    before, GUARD.policy = GUARD.policy, asked
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            answered = await _drive(listener, running)
            if _accepted(listener):
                raise _does_not_hold(f"a denied request came through, {layer} are not guarded")
            if not denied or not answered:
                raise _does_not_hold(f"the place where {layer} are guarded is not in the path")
    finally:
        GUARD.policy = before


async def _try_addresses() -> None:
    """Open a socket as mitmproxy does, for nobody: where a host leads to is looked at before it is connected."""
    seen: Any = server
    with socket.create_server(("127.0.0.1", 0)) as listener:
        try:
            _, writer = await seen.asyncio.open_connection(*listener.getsockname())
        except PermissionError:
            return
        writer.close()
    raise _does_not_hold("what a name leads to is not guarded")


async def _drive(listener: socket.socket, running: master.Master) -> bool:
    """Send one request for `listener` through the proxy's layers; say whether it was answered."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    over = asyncio.Event()
    answer: Any = _Answer(over)
    nobody: Any = SimpleNamespace(addons=TableAddonManager(running))
    mode = ProxyMode.parse("regular@0")
    handler = mode_servers.ProxyConnectionHandler(nobody, answer, answer, running.options, mode)
    handler.layer = HttpLayer(handler.layer.context, HTTPMode.regular)
    ours: Any = loop.create_future()
    handler.transports[handler.client].handler = ours
    loop.add_reader(listener, over.set)
    try:
        await handler.server_event(events.Start())
        head = _HEAD % listener.getsockname()[1]
        await handler.server_event(events.DataReceived(handler.client, head))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), _TIMEOUT_S)
    finally:
        loop.remove_reader(listener)
        tasks = [entry.handler for entry in handler.transports.values() if entry.handler]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    given: bool = answer.given
    return given


def _accepted(listener: socket.socket) -> bool:
    try:
        accepted, _ = listener.accept()
    except BlockingIOError:
        return False
    accepted.close()
    return True


def _overriding(base: type[Any]) -> str:
    """Name a kind of handler that does not open its connections where the guard stands, or nothing."""
    for kind in base.__subclasses__():
        if "open_connection" in vars(kind):
            return kind.__name__
        if found := _overriding(kind):
            return found
    return ""


def _does_not_hold(what: str) -> EngineError:
    return EngineError(
        f"the guard does not hold with mitmproxy {version.VERSION}: {what};"
        f" it was checked with mitmproxy {CHECKED}",
        f"install mitmproxy=={CHECKED}; nothing may be played while things could leave",
    )


class _Answer:
    """Stands where the client's socket would be: notes that there was an answer."""

    def __init__(self, over: asyncio.Event) -> None:
        self.given = False
        self._over = over

    def write(self, _: bytes) -> None:
        self.given = True
        self._over.set()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 0) if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Nothing is open."""

    async def drain(self) -> None:
        """Nothing waits."""
