"""A live rule lets exactly its request out: one request, one connection, for as long as it takes."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from mitmproxy import connection, http
from mitmproxy.test import tflow

from playhead.addons.run.pending_exchange import PendingExchange, attach
from playhead.addons.run.run_state import OpenRun
from playhead.config import Config, Listen, LiveRule, Mode, parse_match
from playhead.proxy.engine import Engine
from playhead.tape.exchange import RequestClass, Seq, VerdictKind
from playhead.tape.policy.decide import Action, Decision, Facts
from playhead.tape.policy.refusal import REFUSAL_STATUS
from playhead.tape.records.events import EventKind
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin

if TYPE_CHECKING:
    import httpx

# ---- the policy that the guard asks, as a table --------------------------------------------------


def _client() -> connection.Client:
    return connection.Client(peername=("127.0.0.1", 1), sockname=("127.0.0.1", 2))


class Scene:
    """An engine that never ran, one client, and one request of it to api.test:443."""

    def __init__(self, mode: Mode = Mode.PLAYBACK) -> None:
        self.client = _client()
        store: Any = SimpleNamespace()
        self.open_run = OpenRun(mode, Config(), Redactor(b"key"), store, None)
        bound = {self.client.id: self.open_run}
        registry: Any = SimpleNamespace(of=lambda client: bound.get(client.id))
        certificates: Any = None
        self.engine = Engine(registry, certificates)
        self.flow: http.HTTPFlow = tflow.tflow()
        self.flow.client_conn = self.client
        facts = Facts("POST", "https", "api.test", 443, "/emit", RequestClass.EFFECT)
        self.pending = PendingExchange(self.open_run, self.flow, Seq(1), facts)
        attach(self.flow, self.pending)

    def decide(self, action: Action) -> None:
        self.pending.decision = Decision(action, "", "")

    def may(
        self, *, host: str = "api.test", port: int = 443, flow: bool = True, client: Any = None
    ) -> bool:
        upstream = connection.Server(address=(host, port))
        asked = self.flow if flow else None
        return self.engine.may_leave(client or self.client, upstream, asked)


@pytest.mark.parametrize("action", list(Action))
def test_only_a_live_decision_lets_a_request_out(action: Action) -> None:
    """Everything else that a playback may decide stays inside."""
    scene = Scene()
    scene.decide(action)
    assert scene.may() is (action is Action.LIVE)
    assert scene.may(flow=False) is (action is Action.LIVE)
    assert bool(scene.engine.denied) is (action is not Action.LIVE)


def test_what_was_not_decided_stays_inside() -> None:
    """Before the decision, and without a pending exchange, there is nothing that names the request."""
    scene = Scene()
    assert not scene.may()
    scene.flow.metadata.clear()
    assert not scene.may()


@pytest.mark.parametrize(("host", "port"), [("other.test", 443), ("api.test", 80)])
def test_a_live_request_goes_where_it_was_decided_to(host: str, port: int) -> None:
    """An address that was changed after the decision is another one."""
    scene = Scene()
    scene.decide(Action.LIVE)
    assert not scene.may(host=host, port=port)
    assert not scene.may(host=host, port=port, flow=False)


def test_a_permit_is_one_clients_for_one_address_until_the_exchange_ends() -> None:
    """A new connection is allowed to whom a request was, there, then; and to nobody else."""
    scene = Scene()
    scene.decide(Action.LIVE)
    assert not scene.may(flow=False), "nothing was let out yet"
    assert scene.may()
    assert scene.may(), "asking twice is no second permit"
    assert scene.may(flow=False)
    assert not scene.may(flow=False, port=80)
    assert not scene.may(flow=False, host="other.test")
    neighbour = _client()
    scene.engine.registry = SimpleNamespace(of=lambda _: scene.open_run)  # type: ignore[assignment]
    assert not scene.may(flow=False, client=neighbour), "it is another client of the same run"
    scene.pending.finish()
    assert scene.open_run.connections.permits == {}
    assert not scene.may(flow=False)
    assert not scene.may(), "what has ended is let out no more"


def test_an_exchange_of_another_run_permits_nothing() -> None:
    """A request is let out on behalf of its own run alone."""
    scene = Scene()
    scene.decide(Action.LIVE)
    scene.pending.open_run = Scene().open_run
    assert not scene.may()


@pytest.mark.parametrize("mode", [Mode.RECORD, Mode.PASSTHROUGH])
def test_what_is_no_playback_may_leave(mode: Mode) -> None:
    """With or without a request behind it."""
    scene = Scene(mode)
    assert scene.may()
    assert scene.may(flow=False)


@pytest.mark.parametrize("mode", list(Mode))
def test_who_belongs_to_no_run_stays_inside(mode: Mode) -> None:
    """In any mode: a connection that was never bound to a run has nothing to say."""
    scene = Scene(mode)
    scene.decide(Action.LIVE)
    assert not scene.may(client=_client())
    assert dict(scene.engine.denied) == {"api.test:443": 1}


def test_no_address_is_no_destination() -> None:
    """Where it would go is not known, so it may not."""
    scene = Scene(Mode.RECORD)
    assert not scene.engine.may_leave(scene.client, connection.Server(address=None), scene.flow)


# ---- in a running engine -------------------------------------------------------------------------


class PendingApproval:
    """A handler of an origin that answers when it is let."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.release = threading.Event()

    async def __call__(self, _: web.Request) -> web.Response:
        self.arrived.set()
        await asyncio.to_thread(self.release.wait, 20)
        return web.Response(text="late")


class Dialled:
    """Notes what connections to upstreams the proxy has made."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def server_connected(self, data: Any) -> None:
        self.made.append(data.server.address)


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="live")


@pytest.fixture(params=["http", "https"])
def origin(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Origin]:
    """An origin, plain or over TLS."""
    own = certificates if request.param == "https" else None
    with Origin(
        {"/once": _ok, "/live": _ok, "/other": _ok, "/held": PendingApproval()}, own
    ) as running:
        yield running


@asynccontextmanager
async def _playing(
    origin: Origin, store: Path, certificates: Certificates, *live: str
) -> AsyncIterator[tuple[Running, Dialled]]:
    """An engine that plays a tape with one exchange, with live rules for paths of the origin."""
    rules = tuple(LiveRule(parse_match(f"{origin.url}{path}"), "it is needed") for path in live)
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root, live=rules)
    async with running_engine(config) as running:
        await asyncio.to_thread(_ask, running, "tape", f"{origin.url}/once")
        await running.end("tape")
        running.play()
        made = Dialled()
        running.engine._master.addons.add(made)
        origin.requests.clear()
        yield running, made


@contextmanager
def _using(running: Running, run: str) -> "Iterator[httpx.Client]":
    """A client in a thread: not on the engine's loop, whose tasks are eager."""
    import ssl

    import httpx

    trusted = ssl.create_default_context(cafile=str(running.ca))
    with httpx.Client(proxy=running.url_for(run), verify=trusted, timeout=20) as client:
        yield client


def _ask(running: Running, run: str, *urls: str) -> "list[httpx.Response]":
    """Get one after the other, over one connection to the proxy."""
    with _using(running, run) as client:
        return [client.get(url) for url in urls]


async def test_a_live_rule_lets_its_request_out_and_records_it(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> None:
    """One connection, one request; the new run holds it as live with its reason."""
    async with _playing(origin, store_dir, certificates, "/live") as (running, dialled):
        urls = [f"{origin.url}{path}" for path in ("/once", "/live", "/other")]
        answers = await asyncio.to_thread(_ask, running, "tape", *urls)
        assert [answer.status_code for answer in answers] == [200, 200, REFUSAL_STATUS]
        assert answers[1].text == "live"
        assert "x-playhead" not in answers[1].headers
        assert origin.requests == ["GET /live"]
        assert dialled.made == [("127.0.0.1", origin.port)]
        open_run = running.open_run("tape@1")
        assert open_run.info is not None
        await running.end("tape@1")
        kept, refused = running.store.exchanges.all(open_run.info)
        assert refused.verdict is VerdictKind.REFUSED
        assert (kept.verdict, kept.request.target, kept.seq) == (VerdictKind.LIVE, "/live", 2)
        assert "it is needed" in kept.reason
        assert kept.response is not None
        assert kept.response.body == b"live"
        events = running.store.events.read(open_run.info)
        assert [event for event in events if event.kind is EventKind.EGRESS] == []
        verdicts = [event.data["verdict"] for event in events if event.kind is EventKind.VERDICT]
        assert verdicts == ["served", "refused"]
        assert not running.engine.denied


async def test_a_refused_request_does_not_use_the_connection_of_a_live_one(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> None:
    """The upstream connection is open and pooled; only what is live goes over it."""
    async with _playing(origin, store_dir, certificates, "/live") as (running, dialled):
        urls = [f"{origin.url}{path}" for path in ("/live", "/other", "/live", "/other")]
        answers = await asyncio.to_thread(_ask, running, "tape", *urls)
        refused = REFUSAL_STATUS
        assert [answer.status_code for answer in answers] == [200, refused, 200, refused]
        assert origin.requests == ["GET /live", "GET /live"]
        assert dialled.made == [("127.0.0.1", origin.port)]


async def test_the_guard_itself_keeps_the_pooled_connection(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> None:
    """Also when everything above it has failed open after a live request."""
    import httpx

    class Broken:
        def request(self, flow: http.HTTPFlow) -> None:
            if flow.request.path == "/other":
                flow.response = None

    async with _playing(origin, store_dir, certificates, "/live") as (running, dialled):
        running.engine._master.addons.add(Broken())
        urls = [f"{origin.url}/live", f"{origin.url}/other"]
        with pytest.raises(httpx.TransportError):
            await asyncio.to_thread(_ask, running, "tape", *urls)
        assert origin.requests == ["GET /live"]
        assert dialled.made == [("127.0.0.1", origin.port)]
        assert dict(running.engine.denied) == {f"127.0.0.1:{origin.port}": 1}
        open_run = running.open_run("tape@1")
        assert open_run.info is not None
        await running.end("tape@1")
        noted = [e for e in running.store.events.read(open_run.info) if e.kind is EventKind.EGRESS]
        assert [event.data["target"] for event in noted] == [f"127.0.0.1:{origin.port}"]


async def test_a_permit_lasts_as_long_as_the_live_request(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> None:
    """While it is answered its client may connect there; afterwards nobody may."""
    held = origin.routes["/held"]
    assert isinstance(held, PendingApproval)
    async with _playing(origin, store_dir, certificates, "/held") as (running, _):
        asking = asyncio.to_thread(_ask, running, "tape", f"{origin.url}/held")
        answer = asyncio.get_running_loop().create_task(asking)
        assert await asyncio.to_thread(held.arrived.wait, 10)
        open_run = running.open_run("tape@1")
        (client,) = open_run.clients.values()
        upstream = connection.Server(address=("127.0.0.1", origin.port))
        elsewhere = connection.Server(address=("127.0.0.1", origin.port + 1))
        may = running.engine.may_leave
        assert list(open_run.connections.permits.values()) == [
            (client.id, "127.0.0.1", origin.port)
        ]
        assert may(client, upstream, None)
        assert not may(client, elsewhere, None)
        held.release.set()
        assert [found.text for found in await answer] == ["late"]
        assert await open_run.settled(10)
        assert open_run.connections.permits == {}
        assert not may(client, upstream, None)


async def test_a_permit_ends_when_the_client_leaves(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> None:
    """Nobody waits for the answer any more: what the request was allowed ends with it."""
    import httpx

    held = origin.routes["/held"]
    assert isinstance(held, PendingApproval)

    def leave(running: Running) -> None:
        with _using(running, "tape") as client:
            client.get(f"{origin.url}/held", timeout=0.5)

    async with _playing(origin, store_dir, certificates, "/held") as (running, _):
        with pytest.raises(httpx.ReadTimeout):
            await asyncio.to_thread(leave, running)
        open_run = running.open_run("tape@1")
        assert await open_run.settled(10)
        assert open_run.connections.permits == {}
        held.release.set()


async def test_a_live_request_to_nobody_ends(store_dir: Path, certificates: Certificates) -> None:
    """An upstream that refuses is a fault of the exchange; the permit ends with it."""
    import httpx

    with Origin({"/once": _ok}) as origin:
        async with _playing(origin, store_dir, certificates, "/live") as (running, _):
            origin.stop()
            with pytest.raises(httpx.TransportError):
                await asyncio.to_thread(_ask, running, "tape", f"{origin.url}/live")
            open_run = running.open_run("tape@1")
            assert open_run.info is not None
            assert await open_run.settled(10)
            assert open_run.connections.permits == {}
            await running.end("tape@1")
            (kept,) = running.store.exchanges.all(open_run.info)
            assert kept.fault is not None
            assert kept.verdict is VerdictKind.LIVE
            assert not running.engine.denied


async def test_nothing_is_live_without_a_tape(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> None:
    """A playback of an unknown tape has no run to record a live request in: it is refused."""
    async with _playing(origin, store_dir, certificates, "/live") as (running, dialled):
        answers = await asyncio.to_thread(_ask, running, "unknown", f"{origin.url}/live")
        assert [answer.status_code for answer in answers] == [REFUSAL_STATUS]
        assert origin.requests == []
        assert dialled.made == []


async def test_the_proxy_is_no_upstream_of_itself(
    origin: Origin, store_dir: Path, certificates: Certificates
) -> None:
    """A live rule cannot name it: the request would come back as another."""
    import httpx

    async with _playing(origin, store_dir, certificates) as (running, dialled):
        rule = LiveRule(parse_match(f"http://{running.address}/*"), "a mistake")
        running.change(live=(rule,))
        with pytest.raises(httpx.TransportError):
            await asyncio.to_thread(_ask, running, "tape", f"http://{running.address}/x")
        assert isinstance(running.address, Listen)
        assert dialled.made == []
