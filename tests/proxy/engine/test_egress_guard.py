"""Default deny: only a policy that says literally True lets anything out."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mitmproxy_rs
import pytest
from mitmproxy import connection, http
from mitmproxy.proxy import commands, events
from mitmproxy.test import tflow

from playhead.proxy.engine import egress_guard as guard
from playhead.proxy.engine.egress_guard import DENIED, Guard, NoResolver
from playhead.tape.canonical.json_rpc_client_ids import STDIO_HOST

CLIENT = connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))
UPSTREAM = connection.Server(address=("upstream.test", 443))


def _raising(error: BaseException) -> Any:
    def policy(*_: object) -> bool:
        raise error

    return policy


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        (None, False),
        # only literally True
        (lambda *_: True, True),
        (lambda *_: False, False),
        (lambda *_: None, False),
        (lambda *_: 1, False),
        (lambda *_: "yes", False),
        (lambda *_: [True], False),
        (lambda *_: SimpleNamespace(__bool__=lambda: True), False),
        # whatever goes wrong is a no
        (_raising(RuntimeError()), False),
        (_raising(KeyError("x")), False),
        (_raising(asyncio.CancelledError()), False),
        (_raising(KeyboardInterrupt()), False),
        (_raising(SystemExit()), False),
        (lambda: True, False),  # takes nothing: cannot be asked
    ],
)
def test_only_a_literal_true_is_a_yes(policy: Any, allowed: bool) -> None:
    """No policy, something like true, or an error of any kind: nothing leaves."""
    asked = Guard()
    asked.policy = policy
    assert asked.allows(CLIENT, UPSTREAM, None) is allowed


async def _answer() -> bool:
    return True


def test_a_policy_that_would_have_to_be_awaited_is_a_no() -> None:
    """A coroutine is not True."""
    pending = _answer()
    asked = Guard()
    asked.policy = lambda *_: pending  # type: ignore[assignment]
    assert asked.allows(CLIENT, UPSTREAM, None) is False
    pending.close()


class _Handler:
    """What `open_connection` uses of a connection handler."""

    def __init__(self) -> None:
        self.client = CLIENT
        self.transports: dict[Any, Any] = {}
        self.events: list[Any] = []

    async def server_event(self, event: events.Event) -> None:
        self.events.append(event)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the guard is asked; it allows what is on port 443."""
    seen: list[Any] = []

    def policy(client: Any, upstream: Any, flow: Any) -> bool:
        seen.append((client, upstream.address, flow))
        return bool(upstream.address[1] == 443)

    monkeypatch.setattr(guard.GUARD, "policy", policy)
    return seen


@pytest.fixture
def stock(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What reaches mitmproxy's own code."""
    reached: list[Any] = []

    async def open_connection(_: Any, command: Any) -> None:
        reached.append(command)

    def make_server_connection(stream: Any) -> Any:
        reached.append(stream)
        yield "mitmproxy's own"
        return True

    monkeypatch.setattr(guard, "_open_connection", open_connection)
    monkeypatch.setattr(guard, "_make_server_connection", make_server_connection)
    return reached


async def test_a_denied_connection_ends_as_one_that_failed(
    asked: list[Any], stock: list[Any]
) -> None:
    """The layers are told, the upstream is marked, and the handler forgets it."""
    handler: Any = _Handler()
    command = commands.OpenConnection(connection.Server(address=("upstream.test", 80)))
    handler.transports[command.connection] = object()
    await guard.guarded_open_connection(handler, command)
    assert asked == [(CLIENT, ("upstream.test", 80), None)]
    assert stock == []
    assert command.connection.error == DENIED
    (told,) = handler.events
    assert isinstance(told, events.OpenConnectionCompleted)
    assert (told.command, told.reply) == (command, DENIED)
    assert handler.transports == {}


async def test_an_allowed_connection_is_mitmproxys(asked: list[Any], stock: list[Any]) -> None:
    """What the policy lets out is opened as without a guard."""
    handler: Any = _Handler()
    command = commands.OpenConnection(connection.Server(address=("upstream.test", 443)))
    await guard.guarded_open_connection(handler, command)
    assert asked == [(CLIENT, ("upstream.test", 443), None)]
    assert stock == [command]
    assert handler.events == []
    assert command.connection.error is None


class _Stream:
    """What `make_server_connection` uses of a stream."""

    stream_id = 1

    def __init__(self, port: int) -> None:
        self.flow: http.HTTPFlow = tflow.tflow()
        self.flow.request.host, self.flow.request.port = "upstream.test", port
        self.context = SimpleNamespace(client=CLIENT)

    def handle_protocol_error(self, event: Any) -> Any:
        yield ("error", event.message)


def _run(generator: Any) -> tuple[list[Any], Any]:
    yielded = []
    while True:
        try:
            yielded.append(next(generator))
        except StopIteration as end:
            return yielded, end.value


@pytest.mark.parametrize(
    ("port", "yielded", "connected"),
    [(80, [("error", DENIED)], False), (443, ["mitmproxy's own"], True)],
)
def test_every_request_is_asked_about(
    port: int, yielded: list[Any], connected: bool, asked: list[Any], stock: list[Any]
) -> None:
    """With its flow and where it is to go, before a connection, new or pooled, is got."""
    stream: Any = _Stream(port)
    assert _run(guard.guarded_make_server_connection(stream)) == (yielded, connected)
    assert asked == [(CLIENT, ("upstream.test", port), stream.flow)]
    assert stock == ([stream] if connected else [])


def test_the_resolver_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would look names up beside the guard."""
    with pytest.raises(RuntimeError, match="guarded connection"):
        NoResolver(name_servers=["127.0.0.1"])
    monkeypatch.setattr(mitmproxy_rs.dns, "DnsResolver", mitmproxy_rs.dns.DnsResolver)
    monkeypatch.setattr(guard, "install_sockets", lambda: None)
    monkeypatch.setattr(guard, "install_requests", lambda: None)
    guard.install()
    assert mitmproxy_rs.dns.DnsResolver is NoResolver  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("kind", ["socket", "link", "file", "nothing", "unnamed"])
async def test_servers_on_pipes_are_reached_at_their_socket_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a link to another socket nor anything else is followed there, and nobody gets there without a name."""
    real, path = tmp_path / "real", tmp_path / "named"
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), real)
    match kind:
        case "socket":
            real.rename(path)
        case "link":
            path.symlink_to(real)
        case "file":
            path.touch()
    named = None if kind == "unnamed" else path
    monkeypatch.setattr(guard.GUARD, "find_socket", lambda _: named)
    token = guard._ASKING.set(CLIENT)
    try:
        if kind == "socket":
            reader, writer = await guard.connect(STDIO_HOST, 80)
            assert writer.get_extra_info("peername")[0] == "127.0.0.1"
            assert await reader.read() == b""
            writer.close()
        else:
            with pytest.raises(OSError):  # noqa: PT011  # of several kinds
                await guard.connect(STDIO_HOST, 80)
    finally:
        guard._ASKING.reset(token)
        server.close()
