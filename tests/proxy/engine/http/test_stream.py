"""Streams: clients that leave at awkward moments, answers of every shape, and protocols that differ on replay.

What whole programs see is in `tests/journeys`; here the engine's parts are looked at from inside.
"""

import asyncio
import gc
import socket
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived

from playhead.addons.run.pending_exchange import PendingExchange
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Mode
from playhead.proxy.engine.http.stream import PlayheadStream
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.exchange import Chunk, Exchange, Gone, RequestClass, Response
from playhead.tape.policy.refusal import REFUSAL_STATUS
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.early import ask_by_halves
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.exchanges import make_exchange, make_record, make_request
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.raw import Conversation, RawOrigin

DONE = b"data: [DONE]\n\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"


@asynccontextmanager
async def _recording(store: Path, root: Path | None = None) -> AsyncIterator[Running]:
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=root)
    async with running_engine(config) as running:
        yield running


def _send(
    running: Running, method: str, url: str, body: bytes = b"", more: str = ""
) -> socket.socket:
    """Send a plain request of run `tape`."""
    opened = socket.create_connection((running.address.host, running.address.port), timeout=10)
    given = b64encode(b"tape:x").decode()
    head = f"{method} {url} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\nProxy-Authorization: Basic {given}\r\n"
    opened.sendall(f"{head}{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return opened


def _all(opened: socket.socket) -> bytes:
    """Read to the end."""
    received = b""
    while data := opened.recv(65536):
        received += data
    return received


async def _until(check: Callable[[], Any]) -> Any:
    """Wait for something to be so; the test's own limit of time ends it."""
    while not (found := check()):  # noqa: ASYNC110  # see above
        await asyncio.sleep(0.002)
    return found


def _open_run(running: Running) -> OpenRun | None:
    return next(iter(running.registry.open), None)


async def _sealed(running: Running) -> dict[int, Exchange]:
    """Seal the run, which is to have nothing on its way; give its exchanges by seq."""
    open_run = await _until(lambda: _open_run(running))
    assert await open_run.settled(5), "a pending exchange was never finished"
    assert open_run.info is not None
    await running.end(open_run.info.id)
    return {exchange.seq: exchange for exchange in running.store.exchanges.all(open_run.info)}


class Gate:
    """Lets a call through when it is told to; where `only` is given, of this function."""

    def __init__(self, call: Callable[..., Any], only: str = "") -> None:
        self._call = call
        self._only = only
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._only in ("", getattr(arguments[0], "__name__", "")):
            self.reached.set()
            await self.open.wait()
        return await self._call(*arguments, **named)


async def _say_ok(conversation: Conversation) -> None:
    await conversation.say(OK)


# ---- clients that leave ----------------------------------------------------------------------------


async def test_who_leaves_while_an_intent_is_written_has_sent_an_effect(store_dir: Path) -> None:
    """Its request had come whole: it is forwarded, and is on the tape with its answer and its client gone."""
    with RawOrigin(_say_ok) as origin:
        async with _recording(store_dir) as running:
            gate: Any = Gate(running.store.events.append_durably)
            running.store.events.append_durably = gate  # type: ignore[method-assign]  # in its place
            opened = await asyncio.to_thread(_send, running, "POST", f"{origin.url}/x", b"{}")
            await gate.reached.wait()
            (open_run,) = running.registry.open
            opened.close()
            await _until(
                lambda: all(one.held.left for one in open_run.on_the_way.pending_exchanges)
            )
            gate.open.set()
            (kept,) = (await _sealed(running)).values()
    assert kept.response is not None
    assert (kept.response.body, len(origin.heads)) == (b"done", 1)
    assert (kept.fault, kept.gone is None) == (None, False)


async def test_who_leaves_while_an_outcome_is_written_loses_nothing_of_the_tape(
    store_dir: Path,
) -> None:
    """The answer had come whole; it is kept whole."""
    with RawOrigin(_say_ok) as origin:
        async with _recording(store_dir) as running:
            gate: Any = Gate(running.store.exchanges.save)
            running.store.exchanges.save = gate  # type: ignore[method-assign]  # in its place
            opened = await asyncio.to_thread(_send, running, "GET", f"{origin.url}/x")
            await gate.reached.wait()
            opened.close()
            await _until(lambda: not running.engine._proxyserver.connections)
            gate.open.set()
            (kept,) = (await _sealed(running)).values()
    assert kept.response is not None
    assert (kept.response.body, kept.response.complete) == (b"done", True)


async def test_who_leaves_between_head_and_body_of_a_request_has_asked_nothing(
    store_dir: Path,
) -> None:
    """Nothing waits for it, nothing is forwarded, and the next request is kept."""
    with RawOrigin(_say_ok) as origin:
        async with _recording(store_dir) as running:

            def leave() -> None:
                with _send(running, "POST", f"{origin.url}/x", more="Content-Length: 9\r\n"):
                    pass
                with _send(
                    running, "GET", f"{origin.url}/y", more="Connection: close\r\n"
                ) as other:
                    assert _all(other).endswith(b"done")

            await asyncio.to_thread(leave)
            kept = await _sealed(running)
    assert [exchange.request.target for exchange in kept.values()] == ["/y"]
    assert [head.split(b" ")[1] for head in origin.heads] == [b"/y"]


@asynccontextmanager
async def _nobody_accepts() -> AsyncIterator[str]:
    """An address where connecting takes for ever: its queue is full. Gives its URL."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(0)
    waiting = []
    for _ in range(3):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(listening.getsockname())
        waiting.append(client)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    for client in (*waiting, listening):
        client.close()


async def test_who_leaves_while_the_upstream_is_connected_was_not_refused(store_dir: Path) -> None:
    """It gave up: on replay it has to wait again, and is not told of a failure that never was."""
    async with _nobody_accepts() as url, _recording(store_dir) as running:
        opened = await asyncio.to_thread(_send, running, "GET", f"{url}/x")
        open_run = await _until(lambda: _open_run(running))
        await _until(
            lambda: [f for f in open_run.on_the_way.pending_exchanges if f.progress.recording]
        )
        opened.close()
        (kept,) = (await _sealed(running)).values()
    assert (kept.response, kept.fault) == (None, None)
    assert kept.gone is not None


async def test_when_a_client_left_an_effect_is_known_at_once(store_dir: Path) -> None:
    """Not only when the upstream, which is still being connected, has failed."""
    async with _nobody_accepts() as url, _recording(store_dir) as running:
        opened = await asyncio.to_thread(_send, running, "POST", f"{url}/x", b"{}")
        open_run = await _until(lambda: _open_run(running))
        (pending,) = await _until(
            lambda: [f for f in open_run.on_the_way.pending_exchanges if f.progress.forwarded]
        )
        opened.close()
        left = await _until(lambda: pending.progress.gone)
        assert pending in open_run.on_the_way.pending_exchanges
        open_run.hurry()
        assert open_run.info is not None
        running.registry.hurry()
        pending.progress.fault = None
        await running.engine.registry.hooks.on_unfinished(pending)  # type: ignore[misc]  # it is there
        (kept,) = running.store.exchanges.all(open_run.info)
    assert kept.gone == left


async def test_a_client_that_leaves_during_the_lookup_ends_its_exchange(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is not kept from being sealed by a request that nobody waits for."""
    body = b"[" + b"1," * 40_000 + b"1]"
    with RawOrigin(_say_ok) as origin:
        url = f"{origin.url}/x"
        async with _recording(store_dir) as running:

            def record() -> None:
                with _send(running, "POST", url, body, "Connection: close\r\n") as opened:
                    _all(opened)

            await asyncio.to_thread(record)
            await _sealed(running)
            running.play()
            look = asyncio.to_thread
            gate = Gate(look, "identify")
            monkeypatch.setattr("playhead.addons.deciding.tape_lookup.asyncio.to_thread", gate)
            other = body[:-2] + b" 1]"  # the same, but not its bytes
            opened = await look(_send, running, "POST", url, other)
            await gate.reached.wait()
            opened.close()
            monkeypatch.setattr("playhead.addons.deciding.tape_lookup.asyncio.to_thread", look)
            await _until(lambda: not running.engine._proxyserver.connections)
            gate.open.set()
            open_run = await _until(lambda: _open_run(running))
            assert await open_run.settled(5), "a pending exchange was never finished"


# ---- shapes of answers, and protocols that differ on replay --------------------------------------

H1, H2 = "HTTP/1.1", "HTTP/2.0"


def _answer(
    version: str, status: int, body: bytes, *headers: tuple[bytes, bytes], trailers: Any = ()
) -> Response:
    chunks = tuple(Chunk(1000, len(piece)) for piece in (body[:2], body[2:]) if piece)
    reason = b"" if version == H2 else b"Fine"
    return Response(status, reason, version, headers, body, 1000, chunks, trailers)


_LENGTH = (b"content-length", b"4")
_CHUNKED = ((b"Transfer-Encoding", b"chunked"), (b"Connection", b"keep-alive"), (b"X-A", b"1"))
_TRAILER = ((b"x-sum", b"7"),)
_SHAPES: dict[str, tuple[str, Response]] = {
    "length": ("GET", _answer(H1, 200, b"done", (b"Content-Length", b"4"))),
    "chunked": ("GET", _answer(H1, 200, b"done", *_CHUNKED)),
    "trailers": ("GET", _answer(H1, 200, b"done", *_CHUNKED, trailers=_TRAILER)),
    "empty-chunked": ("GET", _answer(H1, 200, b"", *_CHUNKED)),
    "head": ("HEAD", _answer(H1, 200, b"", _LENGTH)),
    "204": ("GET", _answer(H1, 204, b"", (b"x-a", b"1"))),
    "304": ("GET", _answer(H1, 304, b"", _LENGTH)),
    "h2-length": ("GET", _answer(H2, 200, b"done", _LENGTH)),
    "h2-open": ("GET", _answer(H2, 200, b"done", (b"x-a", b"1"))),
    "h2-trailers": ("GET", _answer(H2, 200, b"done", (b"x-a", b"1"), trailers=_TRAILER)),
    "h2-head": ("HEAD", _answer(H2, 200, b"", (b"x-a", b"1"))),
    "h2-204": ("GET", _answer(H2, 204, b"", (b"x-a", b"1"))),
    "h2-304": ("GET", _answer(H2, 304, b"", _LENGTH)),
    "h2-empty": ("GET", _answer(H2, 200, b"", (b"x-a", b"1"))),
    "101": ("GET", _answer(H1, 101, b"", (b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))),
}
_ORIGIN = "https://127.0.0.1:9"


async def _put_tape(running: Running) -> None:
    """Put one exchange of each shape on a sealed tape, and two that their client left."""
    rules = compile_rules(running.registry.config.ignore)
    redactor = Redactor(b"a test's key", ())
    run = await running.store.runs.create("tape", mode="record", at_ns=1, rules=rules.digest)
    whole = _SHAPES["length"][1]
    shapes: dict[str, tuple[str, Response | None, Gone | None]]
    shapes = {name: (method, answer, None) for name, (method, answer) in _SHAPES.items()}
    shapes |= {
        "gone": ("GET", None, Gone(1000, 0, False)),
        "half": ("GET", replace(whole, complete=False, body=b"do", chunks=whole.chunks[:1]), Gone(2000, 1, True)),
    }  # fmt: skip
    for seq, (name, (method, answer, gone)) in enumerate(shapes.items(), 1):
        what = f"{method} {_ORIGIN}/{name}"
        request = make_request(what)
        form = canonical(request, RequestClass.READ, rules, redactor.redacted_query(request))
        made = make_exchange(seq, what, response=answer, gone=gone, fingerprint=fingerprint(form))
        await running.store.exchanges.save(run.number, partial(make_record, made))
    await running.store.runs.seal(run, reason="made up", at_ns=2)


@asynccontextmanager
async def _playing(store: Path) -> AsyncIterator[Running]:
    async with _recording(store) as running:
        await _put_tape(running)
        running.play()
        yield running


def _tunnel(running: Running, alpn: str) -> ssl.SSLSocket:
    opened = socket.create_connection((running.address.host, running.address.port), timeout=10)
    given = b64encode(b"tape:x").decode()
    opened.sendall(
        f"CONNECT 127.0.0.1:9 HTTP/1.1\r\nProxy-Authorization: Basic {given}\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += opened.recv(1)
    context = ssl.create_default_context(cafile=str(running.ca))
    context.set_alpn_protocols([alpn])
    sock = context.wrap_socket(opened, server_hostname="127.0.0.1")
    assert sock.selected_alpn_protocol() == alpn
    return sock


def _over_h1(running: Running) -> dict[str, tuple[int, bytes, bytes]]:
    """Ask for each shape, again and again over one connection: status, what follows the head."""
    got: dict[str, tuple[int, bytes, bytes]] = {}
    with _tunnel(running, "http/1.1") as sock:
        received = b""
        for name, (method, _) in _SHAPES.items():
            sock.sendall(
                f"{method} /{name} HTTP/1.1\r\nHost: 127.0.0.1:9\r\nAccept: */*\r\n\r\n".encode()
            )
            while b"\r\n\r\n" not in received:
                received += _some(sock)
            head, _, body = received.partition(b"\r\n\r\n")
            while not _is_whole(name, head, body):
                body += _some(sock)
            got[name] = (int(head.split(b" ")[1]), head, body)
            received = b""
    return got


def _some(sock: ssl.SSLSocket) -> bytes:
    data = sock.recv(65536)
    assert data, "the connection ended"
    return data


def _is_whole(name: str, head: bytes, body: bytes) -> bool:
    """Say whether a body has come; one that is longer is found out by the next answer, or the test."""
    if name.endswith(("head", "204", "304")):
        return True
    if b"transfer-encoding: chunked" in head.lower():
        return body.endswith(b"x-sum: 7\r\n\r\n" if name.endswith("trailers") else b"0\r\n\r\n")
    _, _, length = head.lower().partition(b"content-length: ")
    return len(body) >= int(length.split(b"\r\n")[0])


async def test_every_shape_of_answer_is_played_over_http1(store_dir: Path) -> None:
    """Framed so that the next answer on the same connection is found; nothing is added to it."""
    async with _playing(store_dir) as running:
        got = await asyncio.to_thread(_over_h1, running)
    assert {name: status for name, (status, _, _) in got.items()} == {
        name: answer.status if name != "101" else REFUSAL_STATUS
        for name, (_, answer) in _SHAPES.items()
    }
    framed = b"2\r\ndo\r\n2\r\nne\r\n0\r\n"
    bodies = {name: body for name, (_, _, body) in got.items() if name != "101"}
    assert bodies == {
        "length": b"done",
        "chunked": framed + b"\r\n",
        "trailers": framed + b"x-sum: 7\r\n\r\n",
        "empty-chunked": b"0\r\n\r\n",
        "head": b"",
        "204": b"",
        "304": b"",
        "h2-length": b"done",
        "h2-open": framed + b"\r\n",
        "h2-trailers": framed + b"x-sum: 7\r\n\r\n",
        "h2-head": b"",
        "h2-204": b"",
        "h2-304": b"",
        "h2-empty": b"0\r\n\r\n",
    }
    assert got["chunked"][1].endswith(
        b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\nX-A: 1"
    )
    assert got["h2-length"][1] == b"HTTP/1.1 200 OK\r\ncontent-length: 4"


class H2Client:
    """Asks over one HTTP/2 connection and notes what comes for each stream."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self.sock = sock
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.got: dict[int, list[Any]] = {}

    def ask(self, method: str, path: str) -> int:
        stream = self.h2.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", "https"), (":authority", "127.0.0.1:9"), (":path", path), ("accept", "*/*")]  # fmt: skip
        self.h2.send_headers(stream, fields, end_stream=True)
        self.got[stream] = []
        self.flush()
        return stream

    def flush(self) -> None:
        self.sock.sendall(self.h2.data_to_send())

    def read_until(self, check: Callable[[], bool]) -> None:
        while not check():
            for event in self.h2.receive_data(_some(self.sock)):
                found = self.got.get(getattr(event, "stream_id", 0))
                if found is None:
                    continue
                match event:
                    case ResponseReceived():
                        found.append(dict(event.headers))
                    case DataReceived():
                        found.extend([event.data] if event.data else [])
                    case TrailersReceived():
                        found.append(list(event.headers))
                    case StreamEnded():
                        found.append("end")
                    case StreamReset():
                        found.append("reset")
            self.flush()


async def test_every_shape_of_answer_is_played_over_http2(store_dir: Path) -> None:
    """What belongs to a connection of HTTP/1 is left out; the rest, and the pieces, are as recorded."""

    def talk() -> dict[str, list[Any]]:
        with _tunnel(running, "h2") as sock:
            client = H2Client(sock)
            asked = {name: client.ask(method, f"/{name}") for name, (method, _) in _SHAPES.items()}
            client.read_until(lambda: all("end" in got for got in client.got.values()))
            return {name: client.got[stream] for name, stream in asked.items()}

    async with _playing(store_dir) as running:
        got = await asyncio.to_thread(talk)
    assert got.pop("101")[0][":status"] == str(REFUSAL_STATUS)
    for name, (_, answer) in _SHAPES.items():
        if name == "101":
            continue
        head, *rest = got[name]
        kept = {key.decode().lower(): value.decode() for key, value in answer.headers}
        for own in ("transfer-encoding", "connection"):
            kept.pop(own, None)
        assert head == {":status": str(answer.status), **kept}, name
        pieces: list[Any] = [b"do", b"ne"] if answer.body else []
        trailers = [[("x-sum", "7")]] if answer.trailers else []
        assert rest == [*pieces, *trailers, "end"], name


async def test_a_left_exchange_is_played_over_http2_beside_others(store_dir: Path) -> None:
    """It hangs where it hung, others on the connection do not, and it ends when its client leaves it."""

    def talk() -> list[list[Any]]:
        with _tunnel(running, "h2") as sock:
            client = H2Client(sock)
            gone, half = client.ask("GET", "/gone"), client.ask("GET", "/half")
            whole = client.ask("GET", "/length")
            client.read_until(lambda: "end" in client.got[whole] and b"do" in client.got[half])
            client.h2.reset_stream(gone)
            client.flush()
            other = client.ask("GET", "/chunked")
            client.read_until(lambda: "end" in client.got[other])
            return [client.got[stream][1:] for stream in (gone, half, whole, other)]

    async with _playing(store_dir) as running:
        got = await asyncio.to_thread(talk)
        open_run = await _until(lambda: _open_run(running))
        assert await open_run.settled(5), "a pending exchange was never finished"
    assert got == [[], [b"do"], [b"do", b"ne", "end"], [b"do", b"ne", "end"]]


# ---- recording over HTTP/2 ---------------------------------------------------------------------


async def test_empty_pieces_after_the_last_do_not_displace_it(
    store_dir: Path, certificates: Certificates
) -> None:
    """The length is reached and the last piece is held back; what follows before the end is empty."""
    import httpx

    def script(stream: Stream) -> bool:
        stream.head(("content-length", "4"))
        for piece in (b"do", b"ne", b""):
            stream.data(piece)
        stream.data(b"", end=True)
        return False

    def talk() -> bytes:
        context = ssl.create_default_context(cafile=str(running.ca))
        with httpx.Client(proxy=running.url_for("tape"), verify=context, http2=True) as client:
            return client.get(f"{origin.url}/x").content

    with FramesOrigin(script, certificates) as origin:
        async with _recording(store_dir, certificates.root) as running:
            assert await asyncio.to_thread(talk) == b"done"
            (kept,) = (await _sealed(running)).values()
    assert kept.response is not None
    assert (kept.response.body, kept.response.complete) == (b"done", True)


async def test_an_effect_that_is_reset_over_http2_is_read_to_its_end(
    store_dir: Path, certificates: Certificates
) -> None:
    """The answer comes after the client has left that stream: it is on the tape, with when it left."""
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def script(stream: Stream) -> bool:
        if stream.path == "/effect":
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result(20)
        stream.head(("content-length", "4"))
        stream.data(b"done", end=True)
        return False

    def leave(port: int) -> None:
        opened = socket.create_connection((running.address.host, running.address.port), timeout=10)
        opened.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += opened.recv(1)
        context = ssl.create_default_context(cafile=str(running.ca))
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(opened, server_hostname="127.0.0.1") as sock:
            client = H2Client(sock)
            effect = client.ask("DELETE", "/effect")
            asyncio.run_coroutine_threadsafe(_forwarded(running), loop).result(20)
            client.h2.reset_stream(effect)
            client.flush()
            asyncio.run_coroutine_threadsafe(_left(running), loop).result(20)
            loop.call_soon_threadsafe(release.set)
            asyncio.run_coroutine_threadsafe(_settled(running), loop).result(20)
            other = client.ask("GET", "/other")
            client.read_until(lambda: "end" in client.got[other])
            assert client.got[effect] == []

    with FramesOrigin(script, certificates) as origin:
        async with _recording(store_dir, certificates.root) as running:
            await asyncio.to_thread(leave, origin.port)
            kept = await _sealed(running)
    assert kept[1].response is not None
    assert (kept[1].response.body, kept[1].response.complete) == (b"done", True)
    assert kept[1].gone is not None
    assert kept[2].gone is None


async def _forwarded(running: Running) -> None:
    await _until(
        lambda: [
            f
            for s in running.registry.open
            for f in s.on_the_way.pending_exchanges
            if f.progress.forwarded
        ]
    )


async def _left(running: Running) -> None:
    await _until(
        lambda: [
            f
            for s in running.registry.open
            for f in s.on_the_way.pending_exchanges
            if f.progress.gone
        ]
    )


async def _settled(running: Running) -> None:
    await _until(
        lambda: not [f for s in running.registry.open for f in s.on_the_way.pending_exchanges]
    )


# ---- playing to who reads slowly -----------------------------------------------------------------


async def test_a_large_answer_is_not_all_written_before_its_client_takes_it(
    store_dir: Path,
) -> None:
    """What waits in the proxy for a slow client has a bound, whatever the size of the body."""
    body = b"x" * (12 << 20)

    async def say(conversation: Conversation) -> None:
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        await conversation.say(body)

    with RawOrigin(say) as origin:
        async with _recording(store_dir) as running:
            url, close = f"{origin.url}/x", "Connection: close\r\n"

            def fetch(opened: socket.socket) -> int:
                with opened:
                    return len(_all(opened))

            opened = await asyncio.to_thread(_send, running, "GET", url, more=close)
            assert await asyncio.to_thread(fetch, opened) > len(body)
            await _sealed(running)
            running.play()
            opened = await asyncio.to_thread(_send, running, "GET", url, more=close)
            open_run = await _until(lambda: _open_run(running))
            (pending,) = await _until(
                lambda: [f for f in open_run.on_the_way.pending_exchanges if f.playing.steps]
            )
            (handler,) = running.engine._proxyserver.connections.values()
            writer: Any = handler.transports[handler.client].writer
            waiting = await _until(lambda: writer.transport.get_write_buffer_size())
            assert waiting < len(body) // 4
            assert not pending.finished
            assert await asyncio.to_thread(fetch, opened) > len(body)


async def test_what_is_kept_on_the_way_does_not_end_a_request_that_goes_on(
    store_dir: Path, certificates: Certificates
) -> None:
    """An answer may say its end before its request has come whole: the exchange holds all of it."""

    def begin(stream: Stream) -> None:
        stream.head(("content-type", "text/event-stream"))
        stream.data(DONE)

    def end(stream: Stream) -> bool:
        stream.data(b"", end=True)
        return True

    with FramesOrigin(end, certificates, begin) as origin:
        async with _recording(store_dir, certificates.root) as running:
            await asyncio.to_thread(ask_by_halves, running, "tape", f"{origin.url}/say", DONE)
            await running.end("tape")
            (kept,) = running.store.exchanges.all(running.store.runs.get("tape"))
    assert kept.request.body == b"word"
    rules = compile_rules()
    assert kept.fingerprint == fingerprint(canonical(kept.request, RequestClass.EFFECT, rules))


@pytest.mark.parametrize("mode", [Mode.RECORD, Mode.PASSTHROUGH])
async def test_what_is_done_with_is_freed_at_once(tmp_path: Path, mode: Mode) -> None:
    """An exchange is no work for the collector, which stops all connections: 80 ms for what had come together."""

    async def answer(conversation: Conversation) -> None:
        await conversation.say(OK)

    gc.collect()
    gc.disable()
    try:
        with RawOrigin(answer) as origin:
            async with running_engine(Config(mode=mode, store=tmp_path / "store")) as running:
                for number in range(20):
                    url = f"{origin.url}/{number}"
                    with await asyncio.to_thread(_send, running, "POST", url, b"{}") as opened:
                        await asyncio.to_thread(opened.recv, 65536)
                kinds = (PlayheadStream, PendingExchange)
                alive = [type(one) for one in gc.get_objects() if isinstance(one, kinds)]
                assert len(alive) < 10, alive
    finally:
        gc.enable()
