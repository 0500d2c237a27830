"""The engine tries its guard before it begins, and does not begin where the guard does not hold."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mitmproxy_rs
import pytest
from mitmproxy.proxy import mode_servers, server
from mitmproxy.proxy.layers import http as http_layer

from playhead.config import Config
from playhead.proxy.engine import egress_guard as guard
from playhead.proxy.engine import guard_selftest as selftest
from playhead.proxy.engine.http import stream
from playhead.proxy.engine.http.recording_stream import RecordingStream
from playhead.proxy.errors import EngineError
from playhead.tests.support.engine import running_engine


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    """Leave mitmproxy as it was found."""
    stock = (
        server.ConnectionHandler.open_connection,
        http_layer.HttpStream,
        http_layer.HttpStream.make_server_connection,
        mitmproxy_rs.dns.DnsResolver,
        mode_servers.ProxyConnectionHandler,
    )
    yield
    server.ConnectionHandler.open_connection = stock[0]  # type: ignore[method-assign]
    http_layer.HttpStream = stock[1]  # type: ignore[misc]
    http_layer.HttpStream.make_server_connection = stock[2]  # type: ignore[method-assign]
    mitmproxy_rs.dns.DnsResolver = stock[3]  # type: ignore[misc]
    mode_servers.ProxyConnectionHandler = stock[4]  # type: ignore[misc]


def test_a_second_engine_of_a_process_leaves_our_stream_its_own_way() -> None:
    """It notes what is sent, and asks a gate once more; the guard is below it."""
    stream.install()
    guard.install_requests()
    own = RecordingStream.make_server_connection
    assert http_layer.HttpStream.make_server_connection is own
    below = guard._STOCK_STREAM.make_server_connection
    assert below is guard.guarded_make_server_connection


def _without_sockets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guard, "install_sockets", lambda: None)
    patch.setattr(server, "asyncio", asyncio)
    patch.setattr(server.ConnectionHandler, "open_connection", guard._open_connection)


def _without_addresses(patch: pytest.MonkeyPatch) -> None:
    """Sockets are guarded, where their names lead to is not."""
    patch.setattr(guard, "install_sockets", lambda: None)
    patch.setattr(server, "asyncio", asyncio)
    patch.setattr(server.ConnectionHandler, "open_connection", guard.guarded_open_connection)


def _without_requests(patch: pytest.MonkeyPatch) -> None:
    stock = guard._make_server_connection
    patch.setattr(guard, "install_requests", lambda: None)
    patch.setattr(http_layer.HttpStream, "make_server_connection", stock)


def _without_resolver(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guard, "NoResolver", lambda **_: object())


def _moved_sockets(patch: pytest.MonkeyPatch) -> None:
    """As if another mitmproxy had its connections opened elsewhere, and to no avail."""

    async def elsewhere(self: Any, command: Any) -> None:
        del self, command

    patch.setattr(guard, "install_sockets", lambda: None)
    patch.setattr(server.ConnectionHandler, "open_connection", elsewhere)
    patch.setattr(selftest, "_TIMEOUT_S", 0.05)


def _another_handler(patch: pytest.MonkeyPatch) -> None:
    class Kind:
        open_connection = guard._open_connection

    patch.setattr(server.ConnectionHandler, "__subclasses__", lambda: [Kind])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_sockets, "a denied request came through, new connections are not guarded"),
        (_without_addresses, "what a name leads to is not guarded"),
        (_without_requests, "a denied request came through, requests are not guarded"),
        (_without_resolver, "names can be looked up beside it"),
        (_moved_sockets, "the place where new connections are guarded is not in the path"),
        (_another_handler, "Kind opens connections of its own"),
    ],
)
async def test_an_engine_whose_guard_does_not_hold_refuses_to_start(
    change: Callable[[pytest.MonkeyPatch], None],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    store_dir: Path,
) -> None:
    """Each part of the guard taken out alone: one sentence with both versions, and no engine."""
    change(monkeypatch)
    monkeypatch.setattr("mitmproxy.version.VERSION", "99.1")
    with pytest.raises(EngineError, match=said) as caught:
        async with running_engine(Config(store=store_dir)):
            pass
    assert "mitmproxy 99.1" in str(caught.value)
    assert "checked with mitmproxy 12.2.3" in str(caught.value)
    assert "mitmproxy==12.2.3" in caught.value.hint
    assert guard.GUARD.policy is None


async def test_the_test_leaves_no_trace(store_dir: Path) -> None:
    """The engine begins with its own policy in force, nothing counted, no run opened."""
    async with running_engine(Config(store=store_dir)) as running:
        engine = running.engine
        assert guard.GUARD.policy == engine.may_leave
        assert not engine.denied
        assert not running.registry.open
        assert not engine._proxyserver.connections
        await selftest.check_guard(engine._master)
        assert running.store.runs.all() == []


async def test_a_mended_guard_lets_the_engine_start_again(store_dir: Path) -> None:
    """A start that was refused leaves the loop as it was; the next one succeeds."""
    config = Config(store=store_dir)
    with pytest.MonkeyPatch.context() as patch:
        _without_sockets(patch)
        with pytest.raises(EngineError):
            await running_engine(config).__aenter__()
    async with running_engine(config) as running:
        assert running.address.port
