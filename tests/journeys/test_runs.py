"""What is one run, what it is called, and when it ends."""

import asyncio
import itertools
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from playhead.store import RunStatus, Store
from playhead.tests.support.agent import Agent
from playhead.tests.support.client import Connection
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import Serve, fetch, playhead, read_json, wait_until
from playhead.tests.support.recordings import ask, record_run
from playhead.tests.support.settings import Settings


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    """Counts, and hangs where it is asked to."""
    counts = itertools.count(1)

    async def count(_: web.Request) -> web.Response:
        return web.Response(text=f"count {next(counts)}")

    async def hang(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    with Origin({"/count": count, "/hang": hang}) as running:
        yield running


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A file that says record."""
    return Settings(tmp_path, "mode: record\n")


def test_a_process_group_is_a_run(settings: Settings, origin: Origin) -> None:
    """An agent and its children are one run, also when its leader has gone; two commands are two."""
    url = f"{origin.url}/count"
    with Serve(*settings.flags) as proxy:
        with (
            Agent(proxy.url) as one,
            Agent(proxy.url) as two,
            Agent(proxy.url, orphan=True) as left,
        ):
            for agent in (one, two, left):
                for how in ("child", "get", "child"):
                    agent.ask(url, how)
            assert [run.exchanges for run in settings.runs()] == [3, 3, 3]
            one.end()
            wait_until(lambda: settings.runs()[0].status is RunStatus.SEALED)
            left.end()
            wait_until(lambda: settings.runs()[2].status is RunStatus.SEALED)
            assert settings.runs()[1].status is RunStatus.OPEN
            assert settings.runs()[0].end == "its process group has ended"
            two.ask(url)
        wait_until(lambda: settings.runs()[1].status is RunStatus.SEALED)
    assert [run.exchanges for run in settings.runs()] == [3, 4, 3]


def test_a_name_is_never_answered_by_the_run_its_group_had_without_it(
    settings: Settings, origin: Origin
) -> None:
    """One group that asks with no name, with one, and with another, has three runs."""
    url = f"{origin.url}/count"
    with Serve(*settings.flags) as proxy:
        for other in (proxy.url, proxy.url_for("a"), proxy.url_for("b"), proxy.url):
            fetch(url, proxy=other, own_group=False)
        runs = settings.runs()
    assert [run.exchanges for run in runs] == [2, 1, 1]
    assert [run.id for run in runs[1:]] == ["a", "b"]


def test_names_that_are_taken_are_numbered(settings: Settings, origin: Origin) -> None:
    """A name used again after sealing is NAME~2; playbacks are TAPE@1, TAPE@2, each from the start."""
    url = f"{origin.url}/count"
    with Serve(*settings.flags) as proxy:
        mine = proxy.url_for("mine")
        recorded = [fetch(url, proxy=mine) for _ in range(2)]
        assert settings.runs()[0].exchanges == 2
        assert "mine: sealed, 2" in playhead("seal", "mine", "--store", settings.store).stdout
        again = fetch(url, proxy=mine)
        settings.change("record", "playback")
        played = [
            fetch(url, *urls, proxy=proxy.url_for(name))
            for name, urls in [("mine", [url]), ("mine", [url]), ("mine~2", []), ("latest", [])]
        ]
        refused = [fetch(url, proxy=proxy.url_for(name)).decode() for name in ("mine%401", "mint")]
    assert played == [b"".join(recorded), b"".join(recorded), again, again]
    assert "play 'mine' instead" in refused[0]
    assert "nearest: mine" in refused[1]
    assert [(run.id, run.parent) for run in settings.runs()] == [
        ("mine", None),
        ("mine~2", None),
        ("mine@1", "mine"),
        ("mine@2", "mine"),
        ("mine~2@1", "mine~2"),
        ("mine~2@2", "mine~2"),
    ]


async def test_sealing_a_run_closes_its_connections(settings: Settings, origin: Origin) -> None:
    """The owner ends it, also one with an answer outstanding; the next request opens a new run."""
    settings.write("mode: record\nruns: {grace: 200ms}\n")
    url = f"{origin.url}/count"
    with Serve(*settings.flags) as proxy:
        idle, busy = [await Connection.open(proxy.address) for _ in range(2)]
        assert (await idle.ask(url, credentials="mine:x")).status == 200
        hanging = asyncio.ensure_future(
            busy.ask(f"{origin.url}/hang", body=b"pay", credentials="mine:x")
        )
        await asyncio.to_thread(wait_until, lambda: "POST /hang" in origin.requests)
        done = await asyncio.to_thread(playhead, "seal", "mine", "--store", settings.store)
        assert (done.returncode, done.stdout) == (0, "run mine: sealed, 2 requests\n")
        async with asyncio.timeout(5):
            assert await idle.reader.read() == b""
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await hanging
        for connection in (idle, busy):
            await connection.close()
        fresh = await Connection.open(proxy.address)
        assert (await fresh.ask(url, credentials="mine:x")).status == 200
        await fresh.close()
    receipt = read_json("receipt", "mine", "--store", settings.store)
    assert receipt["unfinished"] == [2]
    assert receipt["end"] == "asked for by playhead seal"
    assert settings.statuses() == {"mine": "sealed", "mine~2": "sealed"}


def test_a_run_whose_proxy_was_killed_is_recovered(settings: Settings, origin: Origin) -> None:
    """After kill -9 a run is recovered by whoever writes next; sealing says so; what was answered is there."""
    with Serve(*settings.flags, "--run", "mine") as proxy:
        fetch(f"{origin.url}/count", proxy=proxy.url)
        proxy.stop(signal.SIGKILL)
    assert settings.statuses() == {"mine": "recovered"}
    assert read_json("receipt", "mine", "--store", settings.store)["status"] == "recovered"
    done = playhead("seal", "mine", "--store", settings.store)
    assert (done.returncode, done.stdout) == (0, "run mine is recovered already\n")
    assert settings.runs()[0].exchanges == 1
    assert playhead("show", "mine", "1", "--store", settings.store).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_serve_ends_at_once_and_cleanly(
    settings: Settings, origin: Origin, number: signal.Signals
) -> None:
    """With open connections and a hanging upstream: it ends in 2 s, port closed, runs sealed."""
    with Serve(*settings.flags) as proxy:
        assert proxy.line.count("\n") == 1
        connections = [await Connection.open(proxy.address) for _ in range(3)]
        idle, tunnel, busy = connections
        assert (await idle.ask(f"{origin.url}/count", credentials="a:x")).status == 200
        assert (await tunnel.tunnel(f"127.0.0.1:{origin.port}", "b:x")).status == 200
        before = len(origin.requests)
        busy.writer.write(
            f"POST {origin.url}/hang HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\npay".encode()
        )
        await asyncio.to_thread(wait_until, lambda: len(origin.requests) > before)
        asked = asyncio.get_running_loop().time()
        proxy.process.send_signal(number)
        async with asyncio.timeout(2):
            while True:
                try:
                    await (await Connection.open(proxy.address)).close()
                except ConnectionError:  # refused; or reset, for who came at the very moment
                    break
        closed = asyncio.get_running_loop().time()
        code, out, _ = await asyncio.to_thread(proxy.stop, number)
        ended = asyncio.get_running_loop().time()
        for connection in connections:
            await connection.close()
    assert (code, out) == (130 if number is signal.SIGINT else 0, "")
    assert closed - asked < 1
    assert ended - asked < 3  # two, and one for a busy machine
    assert set(settings.statuses().values()) == {"sealed"}
    assert len(settings.statuses()) == 3


def test_nothing_is_recorded_under_a_name_that_is_reserved(
    settings: Settings, origin: Origin
) -> None:
    """The client is told; once the mode is playback, such a name is that of a tape."""
    url = f"{origin.url}/count"
    with Serve(*settings.flags) as proxy:
        said = [fetch(url, proxy=proxy.url_for(name)) for name in ("latest", "x%401", "x~2", "--")]
        recorded = fetch(url, proxy=proxy.url_for("mine"))
        playhead("seal", "mine", "--store", settings.store)
        settings.change("record", "playback")
        played = fetch(url, proxy=proxy.url_for("latest"))
    assert [b"is reserved" in one or b"as an option does" in one for one in said] == [True] * 4
    assert played == recorded
    assert [run.id for run in settings.runs()] == ["mine", "mine@1"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "nosuch",
            "playback.run: unknown run 'nosuch'; `playhead runs` lists all; so requests that",
        ),
        ("mine", "playback.run: this is the run 'mine' itself; the newest recording of that name"),
        ("mine~2", ""),
        ("latest", ""),
    ],
)
def test_what_is_played_is_told_at_the_start(settings: Settings, name: str, said: str) -> None:
    """Where it is nothing, or another tape than `replay` would play; not only to the first client that is refused."""
    settings.write(f"mode: playback\nplayback: {{run: {name}}}\n")
    with Store.open(settings.store) as store:
        for _ in range(2):
            record_run(store, "mine", [ask()])
    with Serve(*settings.flags) as proxy:
        _, _, logged = proxy.stop()
    assert said in logged
    assert ("playback.run" in logged) == bool(said)
