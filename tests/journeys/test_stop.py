"""A run that is stopped asks nothing of anybody any more: what comes is refused, what is under way is cut."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from playhead.addons.run.run_state import Stopped
from playhead.addons.stop import stop_run
from playhead.config import Config, Mode
from playhead.proxy.engine import egress_guard as guard
from playhead.store import RunStatus, StoreUnwritable
from playhead.tape.exchange import Ending, Exchange, FaultKind, VerdictKind
from playhead.tape.policy.refusal import REFUSAL_STATUS
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.client import Connection
from playhead.tests.support.early import early_client, early_origin
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.timeline import build, exit_code, render_receipt

WHY = "it refunds in a loop"
TEXT = f"stopped by alice (pid 7): {WHY}"


class WaitingOrigin:
    """An origin whose answers wait, and what it has seen."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        """One for each request that waits."""
        self.go = threading.Event()
        self.left = threading.Event()
        """Set when it has seen a client go."""

    async def answer(self, _: web.Request) -> web.Response:
        return web.Response(text="done")

    async def wait(self, request: web.Request) -> web.Response:
        await request.read()
        self.arrived.release()
        while not self.go.is_set():
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                self.left.set()
                raise
        return web.Response(text="late")

    async def stream(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(b"data: one\n\n")
        self.arrived.release()
        try:
            while not self.go.is_set():
                await asyncio.sleep(0.005)
                await answer.write(b"")
                transport = request.transport
                if transport is None or transport.is_closing():
                    break
        finally:
            self.left.set()
        return answer

    async def flood(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            while not self.go.is_set():
                await answer.write(bytes(256 * 1024))
        return answer

    async def talk(self, request: web.Request) -> web.WebSocketResponse:
        talk = web.WebSocketResponse()
        await talk.prepare(request)
        async for message in talk:
            await talk.send_str(f"you said {message.data}")
        self.left.set()
        return talk


@pytest.fixture
def waiting() -> Iterator[WaitingOrigin]:
    """One whose requests all end with the test."""
    made = WaitingOrigin()
    yield made
    made.go.set()


@pytest.fixture
def origin(waiting: WaitingOrigin) -> Iterator[Origin]:
    """A plain origin."""
    routes: dict[str, Any] = {
        "/now": waiting.answer,
        "/wait": waiting.wait,
        "/flood": waiting.flood,
        "/v1/chat/completions": waiting.stream,
        "/talk": waiting.talk,
    }
    with Origin(routes) as running:
        yield running


@pytest.fixture
async def running(store_dir: Path) -> AsyncIterator[Running]:
    """An engine that records."""
    async with running_engine(Config(store=store_dir)) as made:
        yield made


async def _stop(running: Running, run: str = "mine") -> Stopped:
    return await stop_run(running.registry, running.open_run(run), by="alice", pid=7, reason=WHY)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)


async def _arrived(waiting: WaitingOrigin) -> None:
    assert await asyncio.to_thread(waiting.arrived.acquire, timeout=10)


def _kept(running: Running, run: str = "mine") -> list[Exchange]:
    return list(running.store.exchanges.all(running.store.runs.get(run)))


async def _ask(running: Running, url: str, body: bytes = b"", run: str = "mine") -> tuple[int, str]:
    connection = await Connection.open(str(running.address))
    try:
        answer = await connection.ask(url, body=body, credentials=f"{run}:x")
        return answer.status, answer.body.decode()
    finally:
        await connection.close()


@pytest.mark.parametrize("mode", [Mode.RECORD, Mode.PLAYBACK])
async def test_every_further_request_of_a_stopped_run_is_refused(
    mode: Mode, running: Running, origin: Origin
) -> None:
    """On the connection it has and on new ones; nothing reaches the upstream, and another run goes on."""
    run, url = "mine", f"{origin.url}/now"
    if mode is Mode.PLAYBACK:
        for _ in range(4):
            await _ask(running, url)
        await running.end(run)
        running.play()
    kept = await Connection.open(str(running.address))
    assert (await kept.ask(url, credentials=f"{run}:x")).status == 200
    opened = running.registry.open[0].info
    assert opened is not None
    before = len(origin.requests)
    await _stop(running, opened.id)
    again = await kept.ask(url, credentials=f"{run}:x")
    await kept.close()
    assert again.status == REFUSAL_STATUS
    assert again.headers["x-should-retry"] == "false"
    assert TEXT in again.body.decode()
    assert '"code": "stopped"' in again.body.decode()
    if mode is Mode.RECORD:
        assert (await _ask(running, url, b"pay"))[0] == REFUSAL_STATUS
        assert len(origin.requests) == before
        assert (await _ask(running, url, run="other"))[0] == 200
    await running.end(opened.id)
    receipt = build(running.store, running.store.runs.get(opened.id))
    assert receipt.stopped is not None
    assert (receipt.stopped["by"], receipt.stopped["pid"], receipt.stopped["reason"]) == (
        "alice",
        7,
        WHY,
    )
    assert {row["reason"] for row in receipt.refused} == {TEXT}
    assert receipt.divergences == []
    assert "STOPPED by alice (pid 7) at " in render_receipt(receipt)
    assert exit_code(receipt) == (121 if mode is Mode.PLAYBACK else 0)


async def test_a_call_that_may_be_answered_early_is_refused_too(
    store_dir: Path, certificates: Certificates
) -> None:
    """gRPC and its like are decided on by their head, while recording as in playback."""
    config = Config(store=store_dir, upstream_ca=certificates.root)
    with early_origin(certificates) as (url, asked):
        async with running_engine(config) as running:
            with early_client(running, "mine") as call:
                first = await call(f"{url}/say")
                assert (first.http_version, first.content) == ("HTTP/2", b"said")
                await _stop(running)
                again = await call(f"{url}/say")
    assert again.headers["grpc-status"] == "9"
    assert len(asked) == 1


async def test_stopping_twice_is_stopping_once(running: Running, origin: Origin) -> None:
    """The first who did it stands; the name is free again once the run is sealed."""
    await _ask(running, f"{origin.url}/now")
    first = await _stop(running)
    open_run = running.open_run("mine")
    second = await stop_run(running.registry, open_run, by="bob", pid=8, reason="me too")
    assert second == first
    await running.end("mine")
    info = running.store.runs.get("mine")
    kinds = [event.kind for event in running.store.events.read(info)]
    assert kinds.count(EventKind.STOPPED) == 1
    assert (await _ask(running, f"{origin.url}/now"))[0] == 200
    assert running.store.runs.get("mine~2").status is RunStatus.OPEN


async def test_a_stream_of_a_model_is_broken_off(
    running: Running, origin: Origin, waiting: WaitingOrigin
) -> None:
    """The client is cut, the upstream sees it go, and the exchange is kept as cut by whom."""
    connection = await Connection.open(str(running.address))
    url = f"{origin.url}/v1/chat/completions"
    asking = asyncio.ensure_future(connection.ask(url, body=b"{}", credentials="mine:x"))
    await _arrived(waiting)
    open_run = running.open_run("mine")
    await _until(
        lambda: any(pending.answer.head_sent for pending in open_run.on_the_way.pending_exchanges)
    )
    await _stop(running)
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(_ended(asking, connection), 10)
    assert await asyncio.to_thread(waiting.left.wait, 10)
    await connection.close()
    (kept,) = _kept(running)
    assert kept.fault is not None
    assert (kept.fault.kind, kept.fault.ending) == (FaultKind.CUT, Ending.RST)
    assert kept.fault.text == TEXT
    assert kept.gone is None
    assert kept.response is not None
    assert not open_run.on_the_way.pending_exchanges


async def test_a_body_that_is_too_large_to_be_held_is_broken_off(
    running: Running, origin: Origin, caplog: pytest.LogCaptureFixture
) -> None:
    """In the middle of being written to its file; what had come is kept."""
    connection = await Connection.open(str(running.address))
    connection.writer.write(
        f"GET {origin.url}/flood HTTP/1.1\r\nhost: x\r\nproxy-authorization: Basic bWluZTp4\r\n\r\n".encode()
    )
    for _ in range(13):  # head and chunks among them
        await connection.reader.readexactly(1 << 20)
    open_run = running.open_run("mine")
    stopping = asyncio.ensure_future(_stop(running))
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(_read_on(connection), 10)
    await stopping
    await connection.close()
    await _until(lambda: not open_run.clients and not open_run.on_the_way.pending_exchanges)
    (kept,) = _kept(running)
    assert kept.fault is not None
    assert kept.fault.text == TEXT
    assert kept.response is not None
    assert kept.response.body_bytes >= 12 << 20
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def _read_on(connection: Connection) -> None:
    while True:
        await connection.reader.readexactly(1 << 20)


async def _ended(asking: "asyncio.Future[Any]", connection: Connection) -> None:
    await asking
    await connection.reader.readexactly(1 << 20)


async def test_the_late_answer_of_an_effect_that_was_sent_is_kept(
    running: Running, origin: Origin, waiting: WaitingOrigin
) -> None:
    """It happened: its client is cut at once, and what the upstream said is on the tape."""
    asking = asyncio.ensure_future(_ask(running, f"{origin.url}/wait", b"pay"))
    await _arrived(waiting)
    await _stop(running)
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(asking, 10)
    waiting.go.set()
    open_run = running.open_run("mine")
    await _until(lambda: not open_run.on_the_way.pending_exchanges)
    (kept,) = _kept(running)
    assert kept.response is not None
    assert kept.response.body == b"late"
    assert kept.gone is not None
    assert kept.gone.aborted
    assert TEXT in kept.warnings


async def test_an_effect_that_was_not_sent_is_not_sent_any_more(
    running: Running, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its upstream was still being connected when the run was stopped."""
    reached, go = asyncio.Event(), asyncio.Event()
    opened = guard._open_connection

    async def slow(*arguments: Any) -> None:
        reached.set()
        await go.wait()
        await opened(*arguments)

    monkeypatch.setattr(guard, "_open_connection", slow)
    asking = asyncio.ensure_future(_ask(running, f"{origin.url}/wait", b"pay"))
    await asyncio.wait_for(reached.wait(), 10)
    await _stop(running)
    go.set()
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(asking, 10)
    open_run = running.open_run("mine")
    await _until(lambda: not open_run.clients)
    assert origin.requests == []
    (kept,) = _kept(running)
    assert kept.fault is not None
    assert kept.fault.text == TEXT
    assert kept.response is None


async def test_what_is_under_way_is_cut_even_if_nothing_can_be_written(
    running: Running, origin: Origin, waiting: WaitingOrigin
) -> None:
    """The disk is full: who stops it is told, and every client is cut all the same."""
    asking = [
        asyncio.ensure_future(_ask(running, f"{origin.url}/wait?{number}")) for number in range(3)
    ]
    for _ in asking:
        await _arrived(waiting)
    running.store.writer.failed = StoreUnwritable("the disk is full", "free space")
    with pytest.raises(StoreUnwritable, match="the disk is full"):
        await _stop(running)
    for one in asking:
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(one, 10)
    open_run = running.open_run("mine")
    await _until(lambda: not open_run.on_the_way.pending_exchanges)
    assert (await _ask(running, f"{origin.url}/now"))[0] == REFUSAL_STATUS
    running.store.writer.failed = None


async def test_an_effect_whose_intent_is_being_written_is_not_sent(
    running: Running, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not forwarded yet."""
    reached, go = asyncio.Event(), asyncio.Event()
    append = running.store.events.append_durably
    waited: list[Any] = []

    async def slow(*arguments: Any, **more: Any) -> None:
        if not waited:
            waited.append(arguments)
            reached.set()
            await go.wait()
        await append(*arguments, **more)

    monkeypatch.setattr(running.store.events, "append_durably", slow)
    asking = asyncio.ensure_future(_ask(running, f"{origin.url}/now", b"pay"))
    await asyncio.wait_for(reached.wait(), 10)
    await _stop(running)
    go.set()
    with pytest.raises((OSError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(asking, 10)
    open_run = running.open_run("mine")
    await _until(lambda: not open_run.clients and not open_run.on_the_way.pending_exchanges)
    assert origin.requests == []
    (kept,) = _kept(running)
    assert kept.fault is not None
    assert kept.fault.text == TEXT


async def test_what_was_refused_or_cut_before_it_was_sent_never_arrives(
    running: Running, origin: Origin
) -> None:
    """Stopped at any moment under load: the log and the upstream tell the same story."""
    for number in range(30 if os.environ.get("PLAYHEAD_FULL") else 4):
        await _stop_under_load(running, origin, f"run{number}", 3 * number)


async def _stop_under_load(running: Running, origin: Origin, run: str, least: int) -> None:
    answered: list[str] = []

    async def agent(name: int) -> None:
        for count in range(1000):
            path = f"/now?{run}-{name}-{count}"
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                status, _ = await _ask(running, origin.url + path, b"pay", run)
                if status == REFUSAL_STATUS:
                    return
                answered.append(path)

    agents = [asyncio.ensure_future(agent(name)) for name in range(6)]
    await _until(lambda: len(answered) > least)
    await _stop(running, run)
    async with asyncio.timeout(20):
        await asyncio.gather(*agents)
    await running.end(run)
    arrived = {line.partition(" ")[2] for line in origin.requests if f"?{run}-" in line}
    kept = {one.request.target: one for one in _kept(running, run)}
    refused = {path for path, one in kept.items() if one.verdict is VerdictKind.REFUSED}
    assert refused
    assert not refused & arrived
    assert set(answered) <= arrived <= kept.keys()
    # Of what arrived never only that it failed: it was answered, or what came late is there.
    assert [path for path in arrived if not (kept[path].response or kept[path].gone)] == []


@pytest.mark.parametrize("mode", [Mode.RECORD, Mode.PLAYBACK])
async def test_a_websocket_is_closed(
    mode: Mode, running: Running, origin: Origin, waiting: WaitingOrigin
) -> None:
    """Its client is cut; what was said until then is kept."""
    run = "mine"
    if mode is Mode.PLAYBACK:
        await _talk(running, origin)
        await running.end(run)
        running.play()
        run = "mine@1"
    async with aiohttp.ClientSession() as client:
        proxy = running.url_for("mine")
        async with client.ws_connect(f"{origin.url}/talk", proxy=proxy) as talk:
            await talk.send_str("a")
            assert (await talk.receive(10)).data == "you said a"
            await _stop(running, run)
            assert (await talk.receive(10)).type in (
                aiohttp.WSMsgType.CLOSED,
                aiohttp.WSMsgType.ERROR,
            )
    open_run = running.open_run(run)
    await _until(lambda: not open_run.on_the_way.pending_exchanges)
    if mode is Mode.RECORD:
        assert await asyncio.to_thread(waiting.left.wait, 10)
        (kept,) = _kept(running)
        assert kept.websocket is not None
        assert kept.websocket.messages == 2
        assert kept.fault is not None
        assert kept.fault.text == TEXT
    await running.end(run)
    receipt = build(running.store, running.store.runs.get(run))
    assert receipt.stopped is not None
    if mode is Mode.PLAYBACK:
        assert [row["reason"] for row in receipt.refused] == [TEXT]
        log = running.store.events.all(running.store.runs.get(run))
        told = [event.data for event in log if event.kind is EventKind.VERDICT]
        assert [one["rule"] for one in told] == ["tape", "stopped"]


async def _talk(running: Running, origin: Origin) -> None:
    async with aiohttp.ClientSession() as client:
        proxy = running.url_for("mine")
        async with client.ws_connect(f"{origin.url}/talk", proxy=proxy) as talk:
            for word in "ab":
                await talk.send_str(word)
                await talk.receive(10)


async def test_an_answer_that_is_being_played_is_cut(
    running: Running, origin: Origin, waiting: WaitingOrigin
) -> None:
    """With the recorded gaps it lasts; the run says that it was refused after all."""
    waiting.go.set()
    running.change(playback=Config().playback)
    await _ask(running, f"{origin.url}/wait")
    await running.end("mine")
    running.play()
    with pytest.MonkeyPatch.context() as patch:
        from playhead.proxy.engine.http import playback_stream as playing

        patch.setattr(playing, "_wait", lambda _step, _pending: 60.0)
        asking = asyncio.ensure_future(_ask(running, f"{origin.url}/wait"))
        await _until(
            lambda: any(
                s.on_the_way.pending_exchanges and s.info.id == "mine@1"
                for s in running.registry.open
                if s.info
            )
        )
        open_run = running.open_run("mine@1")
        await _until(
            lambda: any(
                pending.playing.steps is not None
                for pending in open_run.on_the_way.pending_exchanges
            )
        )
        await _stop(running, "mine@1")
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(asking, 10)
    await running.end("mine@1")
    receipt = build(running.store, running.store.runs.get("mine@1"))
    assert [row["reason"] for row in receipt.refused] == [TEXT]
    assert receipt.requests == 1


async def test_nothing_is_connected_for_a_stopped_run(
    store_dir: Path, certificates: Certificates, waiting: WaitingOrigin
) -> None:
    """Not even for the TLS of a tunnel, which while recording is the upstream's own: here it is switched off."""
    config = Config(store=store_dir, upstream_ca=certificates.root)
    async with running_engine(config) as running:
        with Origin({"/now": waiting.answer}, certificates) as origin:
            first = await Connection.open(str(running.address))
            await first.tunnel(f"127.0.0.1:{origin.port}", "mine:x", running.ca)
            assert (await first.ask("/now")).status == 200
            await first.close()
        await _stop(running)
        second = await Connection.open(str(running.address))
        await second.tunnel(f"127.0.0.1:{origin.port}", "mine:x", running.ca)
        answer = await second.ask("/now")
        assert answer.status == REFUSAL_STATUS
        assert TEXT in answer.body.decode()
        await second.close()
        assert [kept.verdict for kept in _kept(running)][:1] == [VerdictKind.RECORDED]


async def test_a_stopped_recording_plays_as_it_was(running: Running, origin: Origin) -> None:
    """The refusal was what the agent was told, so it is on the tape as well."""
    asked = [f"{origin.url}/now", f"{origin.url}/wait?later"]
    first = [await _ask(running, asked[0])]
    await _stop(running)
    first.append(await _ask(running, asked[1]))
    await running.end("mine")
    running.play()
    again = [await _ask(running, url) for url in asked]
    assert again == first
    await running.end("mine@1")
    assert build(running.store, running.store.runs.get("mine@1")).faithful is True
