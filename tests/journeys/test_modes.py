"""One proxy, many runs: who belongs where, and what a word in the file changes."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web

from playhead.store import RunInfo, RunStatus, Store
from playhead.tests.support.agent import Agent
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.client import Connection
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import Serve, fetch, read_json, wait_until
from playhead.tests.support.settings import Settings

RUNS = 200 if os.environ.get("PLAYHEAD_FULL") else 60
REQUESTS = 5
FLEET = "mode: record\nruns: {tokens: {'fleet-*': 'a:b:c', alone: secret}}\n"


class Fleet:
    """A proxy that wants tokens, between plain and TLS origins that answer with what they were sent."""

    def __init__(self, proxy: Serve, settings: Settings, plain: Origin, tls: Origin) -> None:
        self.proxy = proxy
        self.store = settings.store
        self.ca = settings.store / "ca" / "playhead-ca-cert.pem"
        self.plain = plain
        self.tls = tls


@pytest.fixture(scope="module")
def fleet(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The same for all tests that only want to be let in."""

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=b"you said " + await request.read())

    settings = Settings(tmp_path_factory.mktemp("fleet"), FLEET)
    flags = (*settings.flags, "--upstream-ca", str(certificates.root))
    with (
        Origin({"/echo": echo}) as plain,
        Origin({"/echo": echo}, certificates) as tls,
        Serve(*flags) as proxy,
    ):
        yield Fleet(proxy, settings, plain, tls)


async def test_no_exchange_of_concurrent_runs_is_in_the_wrong_run(fleet: Fleet) -> None:
    """200 runs at once (60 by default), 5 requests each over CONNECT and TLS: every tape holds its own, in order."""
    target = f"127.0.0.1:{fleet.tls.port}"
    begun = asyncio.Barrier(RUNS)

    async def run(name: str) -> None:
        connection = await Connection.open(fleet.proxy.address)
        assert (await connection.tunnel(target, f"{name}:a:b:c", fleet.ca)).status == 200
        await begun.wait()
        for number in range(REQUESTS):
            said = f"{name} {number}".encode()
            assert (await connection.ask("/echo", body=said)).body == b"you said " + said
        await connection.close()

    names = [f"fleet-{number}" for number in range(RUNS)]
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(run(name))
    with Store.open(fleet.store, readonly=True) as store:
        found = {
            str(run.id): [
                (exchange.seq, exchange.request.body.decode())
                for exchange in store.exchanges.all(run)
            ]
            for run in store.runs.all()
        }
    expected = {name: [(n + 1, f"{name} {n}") for n in range(REQUESTS)] for name in names}
    assert {name: found[name] for name in names} == expected


async def test_a_connection_stays_in_its_run(fleet: Fleet) -> None:
    """On a keep-alive connection the credentials of another run get 407; its own run goes on."""
    connection = await Connection.open(fleet.proxy.address)
    url = f"{fleet.plain.url}/echo"
    before = len(fleet.plain.requests)
    for credentials, status in [
        ("fleet-plain:a:b:c", 200),
        ("alone:secret", 407),
        ("fleet-plain:wrong", 407),
        ("fleet-plain:a:b:c", 200),
    ]:
        answer = await connection.ask(url, body=b"x", credentials=credentials)
        assert (credentials, answer.status) == (credentials, status)
    await connection.close()
    assert len(fleet.plain.requests) == before + 2
    rows = read_json("show", "fleet-plain", "--raw", "--store", fleet.store)
    assert [row["seq"] for row in rows] == [1, 2]


@pytest.mark.parametrize(
    ("credentials", "status"),
    [
        ("", 407),
        ("fleet-x:a", 407),
        ("fleet-x:a:b", 407),
        ("fleet-x:", 407),
        ("fleet-x", 407),
        ("alone:a:b:c", 407),
        ("stranger:secret", 407),
        ("fleet-\n:a:b:c", 407),
        (f"fleet-{'x' * 600}:a:b:c", 407),
        ("alone:secret", 200),
        ("fleet-y:a:b:c", 200),
        ("fleet-ünï:a:b:c", 200),
    ],
)
async def test_a_token_opens_the_runs_it_is_for(
    fleet: Fleet, credentials: str, status: int
) -> None:
    """407 with a challenge unless the token is that of a pattern which matches the name; colons may be in it."""
    for tunnelled in (True, False):
        connection = await Connection.open(fleet.proxy.address)
        if tunnelled:
            answer = await connection.tunnel(f"127.0.0.1:{fleet.plain.port}", credentials)
        else:
            answer = await connection.ask(f"{fleet.plain.url}/echo", credentials=credentials)
        await connection.close()
        assert answer.status == status
        if status == 407:
            assert answer.headers["proxy-authenticate"].startswith("Basic realm=")
            assert answer.body.startswith(b"playhead: ")
            assert b"a:b:c" not in answer.body


class Story(NamedTuple):
    """What a command saw, recorded and played."""

    recorded: list[bytes]
    played: list[list[bytes]]
    upstream: int
    """Requests that reached the origin."""
    runs: list[RunInfo]


def _counting() -> Origin:
    counts = itertools.count(1)

    async def count(_: web.Request) -> web.Response:
        return web.Response(text=f"count {next(counts)}")

    return Origin({"/count": count})


WHO = ("nobody", "--run", "credentials")


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Story]:
    """Record, change one word in the file, run the same command again, at once: for each of `WHO`."""

    folder = tmp_path_factory.mktemp("word")

    def tell(who: str) -> Story:
        settings = Settings(folder / who, "mode: record\n")
        flags = ("--run", "named") if who == "--run" else ()
        with _counting() as origin, Serve(*settings.flags, *flags) as proxy:
            url = proxy.url_for("mine") if who == "credentials" else proxy.url

            def command() -> list[bytes]:
                # Several connections, the last of them just gone when the word changes.
                urls = [f"{origin.url}/count"] * 3
                return fetch(*urls, proxy=url).split(b"count ")

            recorded = command()
            settings.change("record", "playback")
            played = [command(), command()]
        return Story(recorded, played, len(origin.requests), settings.runs())

    with ThreadPoolExecutor(len(WHO)) as pool:
        return dict(zip(WHO, pool.map(tell, WHO), strict=True))


@pytest.mark.parametrize("who", WHO)
def test_the_same_command_is_served_from_the_tape_once_a_word_has_changed(
    who: str, stories: dict[str, Story]
) -> None:
    """Its runs are playbacks of what it recorded, each from the start, whoever it says it is."""
    story = stories[who]
    assert story.recorded == [b"", b"1", b"2", b"3"]
    assert story.played == [story.recorded, story.recorded]
    assert story.upstream == 3
    tape = story.runs[0].id
    assert tape == {"nobody": tape, "--run": "named", "credentials": "mine"}[who]
    assert [(run.id, run.parent) for run in story.runs] == [
        (tape, None),
        (f"{tape}@1", tape),
        (f"{tape}@2", tape),
    ]
    assert {run.status for run in story.runs} == {RunStatus.SEALED}


def test_a_mode_is_for_new_runs_and_a_broken_file_for_none(tmp_path: Path) -> None:
    """Running agents keep their mode; a broken file is reported with its place; a mended one works again."""
    settings = Settings(tmp_path, "mode: record\n")
    with _counting() as origin, Serve(*settings.flags) as proxy:
        url = f"{origin.url}/count"
        with Agent(proxy.url) as first:
            assert first.ask(url) == "count 1"
        with Agent(proxy.url) as old:
            assert (old.ask(url), old.ask(url, "child")) == ("count 2", "count 3")

            settings.change("record", "playback")
            with Agent(proxy.url) as new:
                # The newest sealed recording is the first agent's: the old one is still at it.
                assert new.ask(url, "child") == "count 1"
                assert (old.ask(url), old.ask(url, "child")) == ("count 4", "count 5")
                assert "424" in new.ask(url)
            assert len(origin.requests) == 5

            settings.write("mode: record\nruns: {grace: soon}\n")
            with Agent(proxy.url) as during:
                assert during.ask(url) == "count 1"
            assert old.ask(url, "child") == "count 6"

            settings.write("mode: passthrough\n")
            with Agent(proxy.url) as through:
                assert through.ask(url) == "count 7"
            settings.write("mode: record\n")
            with Agent(proxy.url) as mended:
                assert mended.ask(url) == "count 8"
            assert old.ask(url) == "count 9"
        code, _, said = proxy.stop()
    assert code == 0
    broken = [line for line in said.splitlines() if line.startswith(f"{settings.path}:")]
    assert len(broken) == 1
    assert broken[0].startswith(f"{settings.path}:2:15: runs.grace: ")
    assert "mode playback" in said
    runs = read_json("runs", "--store", settings.store)
    assert [(run["mode"], run["exchanges"], run["status"]) for run in runs] == [
        ("record", 1, "sealed"),
        ("record", 6, "sealed"),
        ("playback", 2, "sealed"),
        ("playback", 0, "sealed"),
        ("record", 1, "sealed"),
    ]


def test_an_idle_run_ends_a_grace_after_the_mode_has_changed(tmp_path: Path) -> None:
    """Its agent lives on and gets a new run, of the new mode."""
    settings = Settings(tmp_path, "mode: record\nruns: {grace: 300ms}\n")
    with _counting() as origin, Serve(*settings.flags) as proxy:
        url = f"{origin.url}/count"
        with Agent(proxy.url) as agent:
            assert (agent.ask(url), agent.ask(url)) == ("count 1", "count 2")
            settings.change("record", "playback")
            wait_until(lambda: settings.runs()[0].status == "sealed")
            assert (agent.ask(url), agent.ask(url, "child")) == ("count 1", "count 2")
    runs = read_json("runs", "--store", settings.store)
    assert [run["mode"] for run in runs] == ["record", "playback"]
    assert "mode became playback" in runs[0]["end"]


def test_another_command_does_not_join_a_recording_once_the_file_says_playback(
    tmp_path: Path,
) -> None:
    """While a named run is still recorded its name cannot be played; nobody else's requests go out in it."""
    settings = Settings(tmp_path, "mode: record\n")
    with _counting() as origin, Serve(*settings.flags) as proxy:
        url = f"{origin.url}/count"
        with Agent(proxy.url_for("mine")) as old, Agent(proxy.url_for("mine")) as other:
            assert (old.ask(url), other.ask(url)) == ("count 1", "count 2")
            settings.change("record", "playback")
            with Agent(proxy.url_for("mine")) as new:
                assert "424" in new.ask(url)
                assert "still being recorded" in new.ask(url, "child")
            assert old.ask(url) == "count 3"
        with Agent(proxy.url_for("mine")) as new:
            assert new.ask(url) == "count 1"
    assert len(origin.requests) == 3


async def test_a_live_rule_that_is_removed_stops_for_runs_that_are_open(tmp_path: Path) -> None:
    """On the connection that used it, too; the rules that stay, stay, and a new one waits for the next run."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=request.path.encode())

    with Origin({"/first": answer, "/second": answer, "/taped": answer}) as origin:
        settings = Settings(tmp_path, "mode: record\n")
        with Serve(*settings.flags) as proxy:
            recording = await Connection.open(proxy.address)
            taped = await recording.ask(f"{origin.url}/taped", credentials="tape:x")
            assert taped.status == 200
            await recording.close()
        before = len(origin.requests)

        def playing(*paths: str) -> None:
            rules = [f"  - {{match: '{origin.url}{path}', reason: wanted}}" for path in paths]
            settings.write("\n".join(["mode: playback", "live:", *rules, ""]))

        playing("/first", "/second")
        with Serve(*settings.flags) as proxy:
            connection = await Connection.open(proxy.address)

            async def status(path: str) -> int:
                answered = await connection.ask(f"{origin.url}{path}", credentials="tape:x")
                return answered.status

            assert [await status("/first"), await status("/second")] == [200, 200]
            playing("/second", "/third")
            async with asyncio.timeout(20):
                while await status("/first") == 200:
                    pass
            assert await status("/second") == 200
            assert await status("/third") != 200
            await connection.close()
        assert "GET /third" not in origin.requests[before:]
