"""Tunnels in their order: which of them failed is part of the tape, before, between and beside those that did not.

A story is a list of what a client does with its tunnels and what happens to the origin meanwhile. While it is
replayed the origin is gone; the client sees the same, step by step.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from playhead.config import Config, Mode
from playhead.store import RunStatus, Store
from playhead.tape.exchange import Ending, Exchange, FaultKind, Phase, RunId
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.handshakes import Acceptor, answering, resetting, silent
from playhead.tests.support.sockets import connect, ending_of, get, open_tunnel
from playhead.timeline import Receipt, build

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
PATIENCE_S = 0.3
"""Of a client in a handshake that nobody answers."""

STORIES = {
    # `open N` and `ask N` are the client's; `listen` and `refuse` happen to the origin.
    "a retry that succeeds": ["open 1", "listen", "open 2", "ask 2"],
    "two retries": ["open 1", "open 2", "listen", "open 3", "ask 3", "ask 3"],
    "after successes": ["listen", "open 1", "ask 1", "ask 1", "refuse", "open 2"],
    "in the middle": ["listen", "open 1", "ask 1", "refuse", "open 2", "listen", "open 3", "ask 3"],
    "beside one that works": ["listen", "open 1", "refuse", "open 2", "ask 1"],
    "a third beside two": ["listen", "open 1", "open 2", "refuse", "open 3", "ask 2", "ask 1"],
    "beside, with requests around": ["listen", "open 1", "ask 1", "refuse", "open 2", "ask 1"],
    "never": ["open 1", "open 2", "open 3"],
}
"""The same with a handshake that is reset in place of a refused connection."""


@dataclass
class Told:
    """What came of a story."""

    recorded: list[str]
    replayed: list[str]
    tape: list[Exchange]
    receipt: Receipt


class Client:
    """Does the client's steps, and says what it saw."""

    def __init__(self, proxy: str, url: str, ca: Path, *, patience_s: float = 10) -> None:
        self._proxy, self._url, self._ca = proxy, url, ca
        self._patience_s = patience_s
        self._tunnels: dict[str, ssl.SSLSocket] = {}

    def do(self, step: str) -> str:
        """Do a step."""
        what, _, number = step.partition(" ")
        if what == "open":
            return f"{step}: {self._open(number)}"
        tunnel = self._tunnels[number]
        get(tunnel, self._url)
        answer = b""
        while not answer.endswith(b"hello") and (data := tunnel.recv(4096)):
            answer += data
        return f"{step}: {answer.decode()}"

    def _open(self, number: str) -> str:
        try:
            self._tunnels[number] = open_tunnel(self._proxy, self._url, self._ca, self._patience_s)
        except TimeoutError:
            return "timeout"
        except OSError as error:
            return ending_of(error).value
        return "open"

    def close(self) -> None:
        """Close every tunnel."""
        for tunnel in self._tunnels.values():
            tunnel.close()


class Origin(Acceptor):
    """An origin that is there or not: refused, or reset in the handshake."""

    def __init__(self, certificates: Certificates, how: str) -> None:
        self._answer = answering(certificates, HELLO)
        self._fail: Callable[[socket.socket], None] = resetting if how == "reset" else silent
        self._there = False
        super().__init__(self._take, listening=how != "refused")
        self._refused = how == "refused"

    def _take(self, sock: socket.socket) -> None:
        (self._answer if self._there else self._fail)(sock)

    def turn(self, step: str) -> None:
        """Be there, or not, for whoever connects from now on."""
        self._there = step == "listen"
        if self._refused:
            (self.listen if self._there else self.refuse)()


def _tell(client: Client, steps: list[str], origin: Origin | None) -> list[str]:
    """Do every step; on replay nothing happens to the origin, it is gone."""
    with contextlib.closing(client):
        said = []
        for step in steps:
            if step not in ("listen", "refuse"):
                said.append(client.do(step))
            elif origin is not None:
                origin.turn(step)
        return said


async def _story(
    running: Running, name: str, steps: list[str], origin: Origin, patience_s: float = 10
) -> Told:
    """Record a story, stop the origin, replay the story."""
    proxy = running.url_for(name)

    def client() -> Client:
        return Client(proxy, f"{origin.url}/hello", running.ca, patience_s=patience_s)

    recorded = await asyncio.to_thread(_tell, client(), steps, origin)
    await running.end(name)
    origin.stop()
    running.play()
    replayed = await asyncio.to_thread(_tell, client(), steps, None)
    await running.end(f"{name}@1")
    run = running.store.runs.get(RunId(name))
    again = running.store.runs.get(RunId(f"{name}@1"))
    assert again.status is RunStatus.SEALED
    tape = list(running.store.exchanges.all(run))
    return Told(recorded, replayed, tape, build(running.store, again))


def _expected(steps: list[str], how: str) -> list[str]:
    there, said = False, []
    for step in steps:
        if step in ("listen", "refuse"):
            there = step == "listen"
        elif step.startswith("ask"):
            said.append(f"{step}: {HELLO.decode()}")
        else:
            said.append(f"{step}: {'open' if there else how}")
    return said


@pytest.mark.parametrize("how", ["refused", "reset"])
@pytest.mark.parametrize("name", STORIES)
async def test_tunnels_fail_and_succeed_in_their_order(
    name: str, how: str, certificates: Certificates, store_dir: Path
) -> None:
    """A failed one is closed by RST in the handshake; the tape holds it as CONNECT, with its place."""
    steps = STORIES[name]
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Origin(certificates, how) as origin:
        async with running_engine(config) as running:
            told = await _story(running, "tape", steps, origin)
    assert told.recorded == _expected(steps, Ending.RST.value)
    assert told.replayed == told.recorded
    assert told.receipt.faithful is True, told.receipt.to_json()
    failures = [said for said in told.recorded if said.endswith("rst")]
    answers = [said for said in told.recorded if said.startswith("ask")]
    connects = [exchange for exchange in told.tape if exchange.request.method == "CONNECT"]
    assert (len(connects), len(told.tape)) == (len(failures), len(failures) + len(answers))
    assert told.receipt.counts["served"] == len(told.tape)
    kind, phase = {
        "refused": (FaultKind.REFUSED, Phase.CONNECT),
        "reset": (FaultKind.TLS, Phase.TLS),
    }[how]
    for exchange in connects:
        assert exchange.fault is not None
        assert (exchange.fault.kind, exchange.fault.phase) == (kind, phase)
        assert exchange.request.target == ""
        assert exchange.request.url == f"https://127.0.0.1:{origin.port}"
    opened = [said.partition(":")[0] for said in told.recorded if said.startswith("open")]
    places = [opened.index(said.partition(":")[0]) + 1 for said in failures]
    assert [exchange.tunnel.number for exchange in connects] == places


async def test_a_client_that_gave_up_in_a_handshake_gives_up_again(
    certificates: Certificates, store_dir: Path
) -> None:
    """Nobody answered its handshake: on replay nobody does, until it leaves; the next tunnel is made."""
    steps = ["open 1", "listen", "open 2", "ask 2"]
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Origin(certificates, "silent") as origin:
        async with running_engine(config) as running:
            told = await _story(running, "tape", steps, origin, PATIENCE_S)
    assert told.recorded == _expected(steps, "timeout")
    assert told.replayed == told.recorded
    assert told.receipt.faithful is True, told.receipt.to_json()
    first, second = told.tape
    assert (first.request.method, first.fault, first.response) == ("CONNECT", None, None)
    assert first.gone is not None
    assert first.gone.at_us >= PATIENCE_S * 0.9e6
    assert second.response is not None


async def test_that_a_client_left_a_handshake_is_known_at_once(
    certificates: Certificates, store_dir: Path
) -> None:
    """Not only when the upstream, which is still silent, has ended; and the upstream is let go."""
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    left = threading.Event()

    def serve(sock: socket.socket) -> None:
        silent(sock)
        left.set()

    with Acceptor(serve) as origin:
        async with running_engine(config) as running:
            client = Client(running.url_for("tape"), origin.url, running.ca, patience_s=PATIENCE_S)
            said = await asyncio.to_thread(_tell, client, ["open 1"], None)
            run = running.store.runs.get(RunId("tape"))
            async with asyncio.timeout(5):
                while not (tape := list(running.store.exchanges.all(run))):  # noqa: ASYNC110  # nobody tells
                    await asyncio.sleep(0.005)
            assert await asyncio.to_thread(left.wait, 5)
    assert said == ["open 1: timeout"]
    (kept,) = tape
    assert (kept.request.method, kept.fault) == ("CONNECT", None)
    assert kept.gone is not None


async def test_nothing_is_written_to_a_run_that_ended_over_a_tunnel(
    certificates: Certificates, store_dir: Path
) -> None:
    """Its client is let go; what came of the tunnel is kept before the run is sealed, or not at all."""
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Acceptor(silent) as origin:
        async with running_engine(config) as running:
            running.change(runs=replace(running.registry.config.runs, grace_s=0.1))
            client = Client(running.url_for("tape"), origin.url, running.ca)
            waiting = asyncio.ensure_future(asyncio.to_thread(_tell, client, ["open 1"], None))
            async with asyncio.timeout(5):
                while not origin.accepted:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            await running.end("tape")
            (said,) = await waiting
        with Store.open(store_dir, readonly=True) as store:
            run = store.runs.get(RunId("tape"))
            events = store.events.read(run)
            kept = list(store.exchanges.all(run))
    assert said in ("open 1: rst", "open 1: fin")
    assert events[-1].kind is EventKind.SEALED
    assert events[-1].data["exchanges"] == len(kept)


async def test_tunnels_to_two_origins_are_counted_apart(
    certificates: Certificates, store_dir: Path
) -> None:
    """The second tunnel to one origin failed, the first to another: whichever is opened first on replay."""
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Origin(certificates, "refused") as one, Origin(certificates, "refused") as other:
        origins = {"one": one, "other": other}
        async with running_engine(config) as running:

            def tell(steps: list[str], *, alive: bool) -> list[str]:
                clients = {
                    name: Client(running.url_for("tape"), f"{origin.url}/hello", running.ca)
                    for name, origin in origins.items()
                }
                said = []
                for step in steps:
                    name, _, what = step.partition(" ")
                    if what not in ("listen", "refuse"):
                        said.append(f"{name} {clients[name].do(what)}")
                    elif alive:
                        origins[name].turn(what)
                for client in clients.values():
                    client.close()
                return sorted(said)

            steps = ["one listen", "one open 1", "one refuse", "other open 1", "one open 2"]
            steps += ["one ask 1", "other listen", "other open 2", "other ask 2"]
            recorded = await asyncio.to_thread(tell, steps, alive=True)
            await running.end("tape")
            for origin in origins.values():
                origin.stop()
            running.play()
            # The other origin's steps first.
            mine, others = _split(steps)
            replayed = await asyncio.to_thread(tell, others + mine, alive=False)
            await running.end("tape@1")
            again = running.store.runs.get(RunId("tape@1"))
            receipt = build(running.store, again)
    assert sum(said.endswith("rst") for said in recorded) == 2
    assert replayed == recorded
    assert receipt.faithful is True, receipt.to_json()


def _split(steps: list[str]) -> tuple[list[str], list[str]]:
    mine = [step for step in steps if step.startswith("one ")]
    return mine, [step for step in steps if step not in mine]


async def test_a_tunnel_more_than_was_recorded_goes_where_requests_are_refused(
    certificates: Certificates, store_dir: Path
) -> None:
    """A failure is played once a recording of it: another tunnel is opened, and what is asked in it looked up."""
    config = Config(mode=Mode.RECORD, store=store_dir, upstream_ca=certificates.root)
    with Origin(certificates, "refused") as origin:
        async with running_engine(config) as running:
            url = f"{origin.url}/hello"
            first = Client(running.url_for("tape"), url, running.ca)
            recorded = await asyncio.to_thread(_tell, first, ["open 1"], None)
            await running.end("tape")
            origin.stop()
            running.play()

            def again() -> tuple[str, str, bytes]:
                client = Client(running.url_for("tape"), url, running.ca)
                with contextlib.closing(client):
                    failed, opened = client.do("open 1"), client.do("open 2")
                    tunnel = client._tunnels["2"]
                    get(tunnel, url)
                    return failed, opened, tunnel.recv(4096)

            failed, opened, answer = await asyncio.to_thread(again)
    assert recorded == [failed] == ["open 1: rst"]
    assert opened == "open 2: open"
    assert answer.startswith(b"HTTP/1.1 424 ")


async def test_a_connect_that_leads_nowhere_is_no_exchange(store_dir: Path) -> None:
    """A client that asks for a tunnel and leaves has asked nothing of anybody."""
    with Acceptor(silent) as origin:
        async with running_engine(Config(mode=Mode.RECORD, store=store_dir)) as running:

            def leave() -> bytes:
                with connect(running.url) as opened:
                    head = f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\nHost: x\r\n\r\n"
                    opened.sendall(head.encode())
                    return opened.recv(4096)

            assert (await asyncio.to_thread(leave)).startswith(b"HTTP/1.1 200 ")
            (open_run,) = running.registry.open
            assert open_run.info is not None
            await running.end(open_run.info.id)
            assert list(running.store.exchanges.all(open_run.info)) == []
    assert origin.accepted == 0
