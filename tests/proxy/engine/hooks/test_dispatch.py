"""Hooks run in order, and fail closed: what failed is refused or ended, never forwarded or half kept."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from mitmproxy import hooks, http, options
from mitmproxy.master import Master
from mitmproxy.proxy.commands import StartHook
from mitmproxy.proxy.layers.http import (
    HttpConnectHook,
    HttpRequestHeadersHook,
    HttpRequestHook,
    HttpResponseHeadersHook,
    HttpResponseHook,
)
from mitmproxy.test import tflow

from playhead.addons.record import Record
from playhead.config import Config, Mode
from playhead.proxy.engine.hooks.dispatch import TableAddonManager
from playhead.store import StoreUnwritable
from playhead.tape.policy.refusal import REFUSAL_STATUS
from playhead.tape.records.events import EventKind
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin

if TYPE_CHECKING:
    import httpx

# ---- the table -----------------------------------------------------------------------------------


@dataclass
class OtherHook(StartHook):
    """A hook of nobody's."""

    data: object


class Noted:
    """Notes that it was called; waits or fails where told to."""

    def __init__(self, name: str, calls: list[str], how: str = "") -> None:
        self.name = name
        self.calls = calls
        self.how = how

    def _hook(self, _: object) -> Any:
        if "waits" in self.how:
            return self._wait()
        self.calls.append(self.name)
        if self.how == "fails":
            raise ValueError(self.name)
        return None

    http_connect = requestheaders = request = responseheaders = response = other = _hook

    async def _wait(self) -> None:
        await asyncio.sleep(0)
        self.calls.append(self.name)
        if "fails" in self.how:
            raise ValueError(self.name)


def _manager(*addons: object) -> TableAddonManager:
    manager = TableAddonManager(Master(options.Options()))
    for addon in addons:
        manager.register(addon)  # type: ignore[no-untyped-call]
        manager.chain.append(addon)
    return manager


async def _trigger(manager: TableAddonManager, hook: Any) -> None:
    await manager.handle_lifecycle(hook)


async def _start(manager: TableAddonManager, hook: Any) -> None:
    waiting = manager.start(hook)
    if waiting is not None:
        await waiting


WAYS = pytest.mark.parametrize("way", [_trigger, _start])


@WAYS
async def test_handlers_run_in_the_order_of_the_chain(way: Any) -> None:
    """One after the other, also where one waits; those without the hook are left out."""
    calls: list[str] = []
    manager = _manager(
        Noted("first", calls), Noted("second", calls, "waits"), object(), Noted("third", calls)
    )
    await way(manager, HttpRequestHook(tflow.tflow()))
    assert calls == ["first", "second", "third"]


async def test_what_does_not_wait_runs_where_it_stands() -> None:
    """No task and no trip through the loop for hooks without an await."""
    calls: list[str] = []
    manager = _manager(Noted("first", calls), Noted("second", calls))
    assert manager.start(HttpRequestHook(tflow.tflow())) is None
    assert calls == ["first", "second"]
    assert manager.start(OtherHook(object())) is None


async def test_an_addon_that_comes_later_is_found() -> None:
    """The table is made anew when addons are added."""
    calls: list[str] = []
    manager = _manager(Noted("first", calls))
    await manager.trigger_event(HttpRequestHook(tflow.tflow()))
    manager.add(Noted("second", calls))
    await manager.trigger_event(HttpRequestHook(tflow.tflow()))
    assert calls == ["first", "first", "second"]


@WAYS
@pytest.mark.parametrize("how", ["fails", "waits, fails"])
@pytest.mark.parametrize("hook", [HttpConnectHook, HttpRequestHeadersHook, HttpRequestHook])
async def test_a_failure_while_deciding_refuses(hook: Any, how: str, way: Any) -> None:
    """The rest of the chain is not asked, and the answer is a refusal that says why."""
    calls: list[str] = []
    flow = tflow.tflow()
    await way(_manager(Noted("first", calls, how), Noted("second", calls)), hook(flow))
    assert calls == ["first"]
    assert flow.response is not None
    assert flow.response.status_code == REFUSAL_STATUS
    assert flow.response.headers["x-should-retry"] == "false"
    assert "internal error: ValueError" in (flow.response.text or "")
    assert flow.error is None


class Full:
    """Fails as on a full disk."""

    def request(self, _: object) -> None:
        raise StoreUnwritable("cannot write the store /s: its disk is full", "free space")


@WAYS
async def test_a_full_disk_is_explained_to_the_client_and_logged_once(
    way: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The refusal says what happened and what to do; the log does not repeat it for each request."""
    manager = _manager(Full())
    for _ in range(3):
        flow = tflow.tflow()
        await way(manager, HttpRequestHook(flow))
        assert flow.response is not None
        text = flow.response.text or ""
        assert "cannot write the store /s: its disk is full; free space" in text
        assert "internal error" not in text
    assert caplog.text.count("its disk is full; free space") == 1
    assert "hook" not in caplog.messages[0]


@WAYS
async def test_what_the_store_has_said_is_not_said_again(
    way: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs that it cannot be written, once."""

    class Said(Full):
        def request(self, _: object) -> None:
            error = StoreUnwritable("its disk is full", "free space")
            error.is_said = True
            raise error

    await way(_manager(Said()), HttpRequestHook(tflow.tflow()))
    assert caplog.text == ""


@WAYS
@pytest.mark.parametrize("how", ["fails", "waits, fails"])
@pytest.mark.parametrize("hook", [HttpResponseHeadersHook, HttpResponseHook])
async def test_a_failure_while_keeping_kills(hook: Any, how: str, way: Any) -> None:
    """The flow is killed, so that nobody takes for whole what was not kept."""
    flow = tflow.tflow(resp=True)
    answer = flow.response
    await way(_manager(Noted("first", [], how)), hook(flow))
    assert flow.error is not None
    assert flow.error.msg == flow.error.KILLED_MESSAGE
    assert flow.response is answer


@WAYS
@pytest.mark.parametrize("how", ["fails", "waits, fails"])
async def test_a_failure_anywhere_else_is_logged(
    how: str, way: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """There is nothing to refuse and nothing to end."""
    await way(_manager(Noted("it", [], how)), OtherHook(object()))
    assert "hook other failed: it" in caplog.text


async def test_a_hook_without_arguments_may_fail(caplog: pytest.LogCaptureFixture) -> None:
    """mitmproxy's own hooks of the process are dispatched by the same table."""

    class Failing:
        def running(self) -> None:
            raise ValueError("it")

    await _manager(Failing()).trigger_event(hooks.RunningHook())
    assert "hook running failed: it" in caplog.text


async def test_being_cancelled_is_no_failure() -> None:
    """Who cancels wants the task to end; nothing is answered, so nothing goes on."""

    class Cancelled:
        async def request(self, _: object) -> None:
            raise asyncio.CancelledError

    flow = tflow.tflow()
    with pytest.raises(asyncio.CancelledError):
        await _manager(Cancelled()).trigger_event(HttpRequestHook(flow))
    assert flow.response is None


# ---- in a running engine -------------------------------------------------------------------------


def _ask(proxy: str, *requests: tuple[str, str]) -> "list[httpx.Response]":
    """Send requests over one connection. Not on the engine's loop, whose tasks are eager."""
    import httpx

    with httpx.Client(proxy=proxy) as client:
        return [client.request(method, url) for method, url in requests]


async def _stream(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b"data: one\n\n")
    await response.write(b"data: [DONE]\n\n")
    return response


async def _fixed(_: web.Request) -> web.Response:
    return web.Response(text="x" * 100)


class Raising:
    """Fails in one hook, at once or after waiting."""

    def __init__(self, hook: str, *, waits: bool) -> None:
        setattr(self, hook, self._later if waits else self._now)

    def _now(self, _: object) -> None:
        raise OSError("disk full")

    async def _later(self, _: object) -> None:
        await asyncio.sleep(0)
        raise OSError("disk full")


@pytest.fixture
async def recording(store_dir: Path) -> AsyncIterator[Running]:
    """An engine that records."""
    async with running_engine(Config(mode=Mode.RECORD, store=store_dir)) as running:
        yield running


def _insert(running: Running, addon: object, *, first: bool) -> None:
    addons: Any = running.engine._master.addons
    addons.chain.insert(0 if first else len(addons.chain), addon)
    addons._table.clear()


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("hook", ["requestheaders", "request"])
async def test_a_request_that_could_not_be_decided_is_not_sent(
    hook: str, waits: bool, first: bool, method: str, recording: Running
) -> None:
    """Also while recording: 424, nothing upstream, and no outcome on the tape that nobody gave."""
    _insert(recording, Raising(hook, waits=waits), first=first)
    with Origin({"/x": _fixed}) as origin:
        proxy = recording.url_for("tape")
        (answer,) = await asyncio.to_thread(_ask, proxy, (method, f"{origin.url}/x"))
        assert answer.status_code == REFUSAL_STATUS
        assert "internal error: OSError" in answer.text
        assert origin.requests == []
    if not recording.registry.open:  # it failed before there was a run
        return
    open_run = recording.open_run("tape")
    assert open_run.info is not None
    assert not open_run.on_the_way.pending_exchanges
    await recording.end("tape")
    run = open_run.info
    assert list(recording.store.exchanges.all(run)) == []
    if hook == "request":
        said = [e.data for e in recording.store.events.read(run) if e.kind is EventKind.VERDICT]
        assert [(one["verdict"], one["reason"]) for one in said] == [
            ("refused", "internal error: OSError")
        ]


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("hook", ["responseheaders", "response"])
@pytest.mark.parametrize("path", ["/fixed", "/stream"])
async def test_an_answer_that_could_not_be_kept_is_not_finished(
    path: str, hook: str, waits: bool, recording: Running
) -> None:
    """The client never sees the end of what is not on the tape."""
    import httpx

    _insert(recording, Raising(hook, waits=waits), first=False)
    with Origin({"/fixed": _fixed, "/stream": _stream}) as origin:
        proxy = recording.url_for("tape")
        with pytest.raises(httpx.RemoteProtocolError):
            await asyncio.to_thread(_ask, proxy, ("GET", f"{origin.url}{path}"))


async def test_a_piece_that_could_not_be_kept_is_not_released(
    recording: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an SDK acts on before the end of a stream is held to the same rule."""
    import httpx

    monkeypatch.setattr(Record, "playhead_release", Raising("x", waits=True)._later)
    addons: Any = recording.engine._master.addons
    addons._table.clear()
    seen: list[bytes] = []

    def read(url: str) -> None:
        with (
            httpx.Client(proxy=recording.url_for("tape")) as client,
            client.stream("GET", url) as answer,
        ):
            seen.extend(answer.iter_raw())

    with Origin({"/stream": _stream}) as origin, pytest.raises(httpx.RemoteProtocolError):
        await asyncio.to_thread(read, f"{origin.url}/stream")
    assert b"".join(seen) == b"data: one\n\n"


async def test_a_failure_ends_no_other_request(recording: Running) -> None:
    """The connection of a refused request goes on to serve."""

    class Once:
        def request(self, flow: http.HTTPFlow) -> None:
            if flow.request.path == "/fails":
                raise ValueError

    _insert(recording, Once(), first=True)
    with Origin({"/x": _fixed}) as origin:
        proxy, url = recording.url_for("tape"), origin.url
        answers = await asyncio.to_thread(_ask, proxy, ("GET", f"{url}/fails"), ("GET", f"{url}/x"))
        assert [answer.status_code for answer in answers] == [REFUSAL_STATUS, 200]
        assert origin.requests == ["GET /x"]
