"""kill -9 at random points of live proxying: what a client saw complete is there, and what was in flight is unknown."""

import asyncio
import base64
import contextlib
import http.client
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from playhead.store import RunStatus, Store
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.full_disk import until
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import Serve, read_json

KILLS = 100 if os.environ.get("PLAYHEAD_FULL") else 3
CLIENTS = 4
HELD = "held"
"""Begins the name of an effect that is in flight when the proxy is killed."""


def _body(name: str) -> bytes:
    """The answer to a request, which nobody else is given."""
    return f"answer to {name} ".encode() * (1 + len(name) * 7 + int(name.rpartition("-")[2]) % 90)


async def _answer(request: web.Request) -> web.StreamResponse:
    """Answer in one piece or in three, after a moment, so that there is always something in flight."""
    await request.read()
    name = request.match_info["name"]
    if name.startswith(HELD):
        return await _never(request)
    body = _body(name)
    await asyncio.sleep(0.002 * (len(body) % 5))
    if len(body) % 2:
        return web.Response(body=body)
    response = web.StreamResponse()
    await response.prepare(request)
    for at in range(0, len(body), len(body) // 3):
        await response.write(body[at : at + len(body) // 3])
        await asyncio.sleep(0.001)
    return response


async def _never(request: web.Request) -> web.StreamResponse:
    """Say nothing until whoever asked is gone."""
    for _ in range(3000):
        if request.transport is None or request.transport.is_closing():
            break
        await asyncio.sleep(0.01)
    return web.Response(status=500)


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    with Origin({"/{name}": _answer}) as made:
        yield made


class Client(threading.Thread):
    """Asks one thing after the other until the proxy is gone; every second is an effect."""

    def __init__(self, proxy: str, run: str, origin: str, name: str, enough: "Enough") -> None:
        super().__init__(daemon=True)
        self.completed: list[str] = []
        self.wrong: list[str] = []
        self._proxy = proxy
        self._headers = {
            "proxy-authorization": "Basic " + base64.b64encode(f"{run}:x".encode()).decode()
        }
        self._origin = origin
        self._name = name
        self._enough = enough

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._proxy, timeout=20)
        try:
            for number in range(1_000_000):
                name = f"{self._name}-{number}"
                method = "POST" if number % 2 else "GET"
                body = name.encode() * 50 if number % 2 else None
                connection.request(method, f"{self._origin}/{name}", body, self._headers)
                answer = connection.getresponse()
                found = answer.read()
                (self.completed if found == _body(name) else self.wrong).append(name)
                self._enough.one()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()


class Enough:
    """Says when so many answers have come, over all clients."""

    def __init__(self, count: int) -> None:
        self.reached = threading.Event()
        self._left = count
        self._lock = threading.Lock()

    def one(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left <= 0:
                self.reached.set()


def _hold(proxy: str, run: str, url: str) -> threading.Thread:
    """Ask for an effect that has no answer when the proxy is killed."""
    told = "Basic " + base64.b64encode(f"{run}:x".encode()).decode()

    def ask() -> None:
        connection = http.client.HTTPConnection(proxy, timeout=60)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("POST", url, b"held", {"proxy-authorization": told})
            connection.getresponse()
        connection.close()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    return asking


def _has_heard(origin: Origin, name: str) -> bool:
    return until(lambda: any(name in line for line in origin.requests))


def _name(url: str) -> str:
    return urlsplit(url).path[1:]


def _check(store: Store, run: str, completed: set[str], asked: set[str]) -> set[str]:
    """Give the effects that are unknown."""
    info = store.runs.get(run)
    assert info.status is RunStatus.RECOVERED
    events: list[Event] = store.events.read(info)
    assert store.events.find_broken_link(info) is None
    names = {
        event.seq: (event.data["method"], _name(event.data["url"]))
        for event in events
        if event.kind is EventKind.INTENT
    }
    outcomes = {event.seq for event in events if event.kind is EventKind.OUTCOME}
    kept = set()
    for exchange in store.exchanges.all(info):
        name = _name(exchange.request.url)
        if exchange.seq not in outcomes:
            continue
        assert exchange.response is not None
        if exchange.response.complete and exchange.fault is None:
            assert exchange.response.body == _body(name), "another's answer"
            kept.add(name)
    assert completed <= kept, f"lost: {sorted(completed - kept)}"
    last = events[-1]
    assert last.kind is EventKind.RECOVERED
    unknown = {names[seq][1] for seq in last.data["unknown"] if names[seq][0] == "POST"}
    # An effect that the origin saw has an outcome, or is unknown.
    told = {names[seq][1] for seq in outcomes}
    assert {name for name in asked if int(name.rpartition("-")[2]) % 2} <= told | unknown
    return unknown


@pytest.mark.timeout(60 + 10 * KILLS)
def test_a_killed_proxy_loses_nothing_that_a_client_saw_complete(
    tmp_path: Path, origin: Origin
) -> None:
    """Nothing lost, nothing mixed up; every effect that left without an outcome is unknown, and `runs` says recovered."""
    chance = random.Random(7)
    for kill in range(KILLS):
        seen = len(origin.requests)
        with Serve("--listen", "127.0.0.1:0", "--store", tmp_path) as proxy:
            enough = Enough(chance.randrange(1, 120))
            clients = [
                Client(proxy.address, f"r{kill}", origin.url, f"{kill}-{number}", enough)
                for number in range(CLIENTS)
            ]
            held = f"{HELD}-{kill}-1"
            asking = _hold(proxy.address, f"r{kill}", f"{origin.url}/{held}")
            for client in clients:
                client.start()
            assert enough.reached.wait(40)
            assert _has_heard(origin, held)
            proxy.stop(signal.SIGKILL)
        asking.join(20)
        for client in clients:
            client.join(20)
            assert not client.wrong
        asked = {line.split("/")[1] for line in origin.requests[seen:] if line.startswith("POST")}
        completed = {name for client in clients for name in client.completed}
        if not kill:
            assert [run["status"] for run in read_json("runs", "--store", tmp_path)] == [
                "recovered"
            ]
        with Store.open(tmp_path) as store:
            assert held in _check(store, f"r{kill}", completed, asked)
