"""The connection handler: order, one write an event, tunnels that are stepped over, and no hang after a crash."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from mitmproxy import connection, options
from mitmproxy.addons import core, proxyserver
from mitmproxy.master import Master
from mitmproxy.proxy import commands, events, layer, mode_specs, server
from mitmproxy.proxy.layers.http import HttpLayer

from playhead.config import Config, Mode
from playhead.proxy.engine.connection_handler import PlayheadHandler
from playhead.proxy.engine.event_loop import eager_task
from playhead.proxy.engine.hooks.dispatch import TableAddonManager
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin

# ---- alone, with a layer that does as it is told ---------------------------------------------------


@dataclass
class AskedHook(commands.StartHook):
    """A hook of the layer's."""

    data: object


class Writer:
    """The writing end of a connection: notes what it is given."""

    def __init__(self, said: list[Any]) -> None:
        self.said = said
        self.transport = self

    def write(self, data: bytes) -> None:
        self.said.append(data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)}.get(name, default)


class Task:
    """Who reads from a connection: notes that it was ended."""

    def __init__(self, said: list[Any]) -> None:
        self.said = said

    def cancel(self, _: str) -> None:
        self.said.append("closed")


Commands = layer.CommandGenerator[None]


class Told(layer.Layer):
    """Reacts as a test says."""

    react: Callable[[events.Event], Commands]

    def _handle_event(self, event: events.Event) -> Commands:
        yield from self.react(event)


class Bench:
    """A handler without a proxy. `said`: what was written, closed and noted, in order."""

    def __init__(self, react: Callable[["Bench", events.Event], Commands]) -> None:
        self.said: list[Any] = []
        opts = options.Options(confdir="/nonexistent")
        master = Master(opts)
        master.addons = TableAddonManager(master)
        self.addons = master.addons
        self.addons.add(core.Core(), proxyserver.Proxyserver())
        regular = mode_specs.ProxyMode.parse("regular")
        writer: Any = Writer(self.said)
        self.handler = PlayheadHandler(master, None, writer, opts, regular)
        self.client = self.handler.client
        reader: Any = Task(self.said)
        self.handler.transports[self.client].handler = reader
        context: Any = self.handler.layer.context
        told = Told(context)
        told.react = lambda event: react(self, event)
        self.handler.layer = told

    async def receive(self, data: bytes) -> None:
        await self.handler.server_event(events.DataReceived(self.client, data))

    def send(self, data: bytes) -> commands.SendData:
        return commands.SendData(self.client, data)


@pytest.fixture(autouse=True)
async def _eager() -> AsyncIterator[None]:
    """Tasks start at once, as in the engine."""
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    loop.set_task_factory(eager_task)
    yield
    loop.set_task_factory(before)


def _data(event: events.Event) -> bytes:
    assert isinstance(event, events.DataReceived)
    return event.data


async def test_what_one_event_sends_to_a_connection_leaves_in_one_write() -> None:
    """Each connection its own; and the next event writes anew."""
    other_said: list[Any] = []
    other = connection.Server(address=("api.test", 1))

    def react(bench: Bench, event: events.Event) -> Commands:
        yield bench.send(b"1" + _data(event))
        yield commands.SendData(other, b"o1")
        yield bench.send(b"2")
        yield commands.SendData(other, b"o2")

    bench = Bench(react)
    writer: Any = Writer(other_said)
    bench.handler.transports[other] = server.ConnectionIO(writer=writer)
    await bench.receive(b"a")
    assert (bench.said, other_said) == ([b"1a2"], [b"o1o2"])
    await bench.receive(b"b")
    assert (bench.said, other_said) == ([b"1a2", b"1b2"], [b"o1o2", b"o1o2"])


async def test_what_was_sent_before_a_close_is_written_before_it() -> None:
    """And what comes for a connection that has gone is dropped."""

    def react(bench: Bench, _: events.Event) -> Commands:
        yield bench.send(b"last")
        yield commands.CloseConnection(bench.client)
        del bench.handler.transports[bench.client]
        yield bench.send(b"too late")
        yield commands.CloseConnection(bench.client)

    bench = Bench(react)
    await bench.receive(b"")
    assert bench.said == [b"last", "closed"]


class Answering:
    """An addon; its hook waits for `ready` where there is one."""

    def __init__(self, said: list[Any], ready: asyncio.Event | None = None) -> None:
        self.said = said
        self.ready = ready

    def asked(self, data: object) -> Any:
        self.said.append(f"hook {data}")
        return self._wait() if self.ready else None

    async def _wait(self) -> None:
        assert self.ready is not None
        self.said.append("waiting")
        await self.ready.wait()


def _ask(bench: Bench, event: events.Event) -> Commands:
    name = _data(event).decode()
    bench.said.append(f"begin {name}")
    yield AskedHook(name)
    bench.said.append(f"end {name}")


async def test_a_hook_that_does_not_wait_is_over_before_the_next_event() -> None:
    """It runs where it stands; what arrives while it runs is handled after what it belongs to."""
    bench = Bench(_ask)

    class Interrupting(Answering):
        def asked(self, data: object) -> Any:
            super().asked(data)
            if data == "a":
                pending.append(asyncio.get_running_loop().create_task(bench.receive(b"b")))

    pending: list[asyncio.Task[None]] = []
    bench.addons.add(Interrupting(bench.said))
    order: list[str] = []
    handle = bench.handler.layer.handle_event

    def watched(event: events.Event) -> Commands:
        order.append(type(event).__name__)
        return handle(event)

    bench.handler.layer.handle_event = watched  # type: ignore[method-assign]
    await bench.receive(b"a")
    assert order == ["DataReceived", "HookCompleted"] * 2
    assert bench.said == ["begin a", "hook a", "end a", "begin b", "hook b", "end b"]
    assert all(task.done() for task in pending)


async def test_a_hook_that_waits_holds_up_its_layer_alone() -> None:
    """Events that arrive meanwhile follow in their order."""
    bench, ready = Bench(_ask), asyncio.Event()
    bench.addons.add(Answering(bench.said, ready))
    for data in (b"a", b"b"):
        await bench.receive(data)
    assert bench.said == ["begin a", "hook a", "waiting"]
    ready.set()
    while "end b" not in bench.said:  # noqa: ASYNC110  # a turn of the loop each
        await asyncio.sleep(0)
    assert bench.said[3:] == ["end a", "begin b", "hook b", "waiting", "end b"]


async def test_what_was_sent_before_a_hook_that_waits_is_written_before_it_waits() -> None:
    """A hook may wait for the client to take it; then there must be something to take."""

    def react(bench: Bench, _: events.Event) -> Commands:
        yield bench.send(b"1")
        yield AskedHook("drain")
        yield bench.send(b"2")

    bench, ready = Bench(react), asyncio.Event()
    ready.set()  # it is over before anything else happens
    bench.addons.add(Answering(bench.said, ready))
    await bench.receive(b"")
    assert bench.said == ["hook drain", b"1", "waiting", b"2"]


async def test_a_wakeup_comes_after_its_time() -> None:
    """And belongs to the command that asked for it."""
    got: list[events.Event] = []

    def react(_: Bench, event: events.Event) -> Commands:
        got.append(event)
        if isinstance(event, events.DataReceived):
            yield commands.RequestWakeup(0)

    bench = Bench(react)
    await bench.receive(b"")
    (timer,) = bench.handler.wakeup_timer
    await timer
    assert isinstance(got[1], events.Wakeup)
    assert not bench.handler.wakeup_timer


async def test_a_crash_of_the_layers_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client is not left waiting for an answer that nobody makes any more."""

    def react(bench: Bench, event: events.Event) -> Commands:
        yield bench.send(b"before")
        raise ZeroDivisionError(_data(event))

    bench = Bench(react)
    await bench.receive(b"a")
    assert bench.said == [b"before", "closed"]
    assert "crashed" in caplog.text


def _crash() -> Commands:
    yield commands.Log("before")
    raise ZeroDivisionError


async def test_a_crash_before_anybody_reads_is_logged_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """There is no task to end yet: whoever begins the connection goes on."""

    def react(_: Bench, __: events.Event) -> Commands:
        yield from _crash()

    bench = Bench(react)
    bench.handler.transports[bench.client].handler = None
    await bench.handler.server_event(events.Start())
    assert bench.said == []
    assert "crashed" in caplog.text


async def test_an_unknown_command_is_an_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and not passed over."""

    def react(_: Bench, __: events.Event) -> Commands:
        yield commands.Command()

    bench = Bench(react)
    await bench.receive(b"")
    assert "unexpected command" in caplog.text


# ---- in a running engine -------------------------------------------------------------------------


async def _echo(request: web.Request) -> web.Response:
    return web.Response(body=request.path.encode() + b" " + await request.read())


@pytest.fixture(params=["plain", "tls"])
def origin(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Origin]:
    """An origin that echoes, plain or over TLS."""
    own = certificates if request.param == "tls" else None
    with Origin({"/{any:.*}": _echo}, own) as running:
        yield running


@pytest.fixture
async def running(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> AsyncIterator[Running]:
    """An engine that records, and ends before its origin."""
    assert origin.port
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    async with running_engine(config) as engine:
        yield engine


class Pipe:
    """TLS, or nothing, over something that sends and receives: also over another pipe."""

    def __init__(self, below: Any, ca: Path | None, first: bytes = b"", alpn: str = "") -> None:
        """Shake hands with 127.0.0.1; `first` is sent in one piece with the first bytes of it."""
        self.below = below
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._first, self._skip = first, first.startswith(b"CONNECT")
        if ca is None:
            return
        context = ssl.create_default_context(cafile=str(ca))
        if alpn:
            context.set_alpn_protocols([alpn])
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="127.0.0.1")
        self._do(self._tls.do_handshake)

    def sendall(self, data: bytes) -> None:
        if self._tls is None:
            self.below.sendall(self._first + data)
            self._first = b""
            return
        self._tls.write(data)
        self._push()

    def recv(self, size: int) -> bytes:
        if self._tls is None:
            return self._below_recv(size)
        return bytes(self._do(lambda: self._tls.read(size)))  # type: ignore[union-attr]  # it is there

    def _do(self, act: Callable[[], Any]) -> Any:
        while True:
            try:
                done = act()
            except ssl.SSLWantReadError:
                self._push()
                data = self._below_recv(65536)
                assert data, "the proxy hung up"
                self._in.write(data)
            except ssl.SSLZeroReturnError:
                return b""
            else:
                self._push()
                return done

    def _below_recv(self, size: int) -> bytes:
        if self._skip:
            self._skip = False
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                piece = self.below.recv(1)
                assert piece, head
                head += piece
            assert head.startswith(b"HTTP/1.1 200 "), head
        return bytes(self.below.recv(size))

    def _push(self) -> None:
        if data := self._first + self._out.read():
            self._first = b""
            self.below.sendall(data)


def _get(pipe: Any, path: str, body: bytes = b"") -> bytes:
    """Ask for a path, and read the answer's body."""
    length = f"content-length: {len(body)}\r\n" if body else ""
    method = "POST" if body else "GET"
    pipe.sendall(f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{length}\r\n".encode() + body)
    return _read(pipe)


def _read(pipe: Any) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(pipe)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    (length,) = (
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    while len(body) < length:
        body += _more(pipe)
    return body


def _more(pipe: Any) -> bytes:
    data: bytes = pipe.recv(65536)
    assert data, "the connection ended"
    return data


def _dial(running: Running) -> socket.socket:
    opened = socket.create_connection((running.address.host, running.address.port), timeout=10)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def _connect(origin: Origin) -> bytes:
    return f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\nhost: 127.0.0.1:{origin.port}\r\n\r\n".encode()


def _trusted(running: Running, origin: Origin) -> Path | None:
    return running.ca if origin.certificates else None


def _handlers(running: Running) -> list[PlayheadHandler]:
    return list(running.engine._proxyserver.connections.values())  # type: ignore[arg-type]  # ours


def _tunnel_is_stepped_over(handler: PlayheadHandler) -> bool:
    """Whether the layers of CONNECT have gone from what handles events."""
    outer = handler.layer.context.layers
    place = outer.index(handler.layer) if handler.layer in outer else len(outer)
    return any(isinstance(found, HttpLayer) for found in outer[:place]) or isinstance(
        handler.layer, layer.NextLayer
    )


@pytest.mark.parametrize("together", [False, True])
async def test_a_tunnel_carries_what_is_sent_with_the_connect_too(
    running: Running, origin: Origin, together: bool
) -> None:
    """In one piece with it, or after its answer; request by request on one connection."""

    def talk() -> list[bytes]:
        with _dial(running) as opened:
            opened_pipe: Any = opened
            if together:
                pipe = Pipe(opened, _trusted(running, origin), first=_connect(origin))
            else:
                opened_pipe.sendall(_connect(origin))
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += _more(opened_pipe)
                pipe = Pipe(opened, _trusted(running, origin))
            return [_get(pipe, "/a"), _get(pipe, "/b", b"x" * 300_000), _get(pipe, "/c")]

    said = await asyncio.to_thread(talk)
    assert said == [b"/a ", b"/b " + b"x" * 300_000, b"/c "]


async def test_a_tunnel_is_stepped_over_once_it_stands(running: Running, origin: Origin) -> None:
    """The handler then speaks to what is inside, and keeps nothing of what made it."""
    found: list[Any] = []

    def talk() -> None:
        with _dial(running) as opened:
            pipe = Pipe(opened, _trusted(running, origin), first=_connect(origin))
            _get(pipe, "/a")
            (handler,) = _handlers(running)
            found.extend((_tunnel_is_stepped_over(handler), handler.client.tunnel))  # type: ignore[attr-defined]  # ours
            found.append(handler.layer is handler.layer.context.layers[0])

    await asyncio.to_thread(talk)
    assert found == [True, None, False]


@pytest.mark.parametrize("alpn", ["", "http/1.1"])
async def test_a_proxy_that_is_spoken_to_over_tls_keeps_that_layer(
    running: Running, origin: Origin, alpn: str
) -> None:
    """HTTPS_PROXY=https://...: a tunnel in TLS, and TLS in the tunnel; nothing of it is stepped over."""

    def talk() -> list[bytes]:
        with _dial(running) as opened:
            outer = Pipe(opened, running.ca, alpn=alpn)
            pipe = Pipe(outer, _trusted(running, origin), first=_connect(origin))
            return [_get(pipe, "/a"), _get(pipe, "/b", b"y" * 100_000)]

    assert await asyncio.to_thread(talk) == [b"/a ", b"/b " + b"y" * 100_000]


async def test_garbage_in_a_tunnel_ends_it(running: Running, origin: Origin) -> None:
    """With the CONNECT or after it, nothing of it reaches anybody."""

    def talk(together: bool) -> bytes:
        with _dial(running) as opened:
            noise = b"\x00\xff\x01 noise\r\n\r\n"
            opened.sendall(_connect(origin) + (noise if together else b""))
            received = opened.recv(65536)
            if not together:
                opened.sendall(noise)
            while data := opened.recv(65536):
                received += data
            return received

    for together in (True, False):
        answer = await asyncio.to_thread(talk, together)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 200" not in answer[1:]
    assert origin.requests == []


async def test_clients_that_leave_a_tunnel_leave_nothing_behind(
    running: Running, origin: Origin
) -> None:
    """Before its answer, after it, half closed, in the middle of a handshake."""

    def talk() -> None:
        for act in (
            lambda opened: None,
            lambda opened: opened.recv(65536),
            lambda opened: opened.shutdown(socket.SHUT_WR),
            lambda opened: opened.sendall(b"\x16\x03\x01\x02\x00\x01"),
            lambda opened: (opened.recv(65536), opened.sendall(b"\x16\x03\x01\x02\x00\x01")),
        ):
            with _dial(running) as opened:
                opened.sendall(_connect(origin))
                act(opened)

    await asyncio.to_thread(talk)
    while _handlers(running):  # noqa: ASYNC110  # the test's own limit of time ends it
        await asyncio.sleep(0.005)
    assert running.engine.registry._by_client == {}
    identify = next(a for a in running.engine._master.addons.chain if hasattr(a, "_seen"))
    assert identify._seen == {}
