"""Where the control API listens, when it begins, how it ends, and how a command finds it."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest
import uvloop
from aiohttp import web

from playhead.config import Config, Control, Listen, Tls
from playhead.proxy.control import server
from playhead.proxy.control.address import (
    Address,
    find_addresses,
    open_token,
    publish,
    read_token,
    token_path,
)
from playhead.proxy.control.client import ask, stop_run
from playhead.proxy.control.http import serving
from playhead.proxy.control.http.listen_on_loopback import listen_at
from playhead.proxy.control.http.route import ProxyState
from playhead.proxy.control.server import ControlServer
from playhead.proxy.errors import EngineError, NotAnswered
from playhead.store import Store, StoreError, UnknownRun
from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.control import controlled
from playhead.tests.support.engine import running_engine
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import COMMAND, Serve, fetch, playhead, wait_until
from playhead.timeline import build


@pytest.fixture
def origin() -> Iterator[Origin]:
    """One that answers, and one that waits until the test is over."""
    over = threading.Event()

    async def ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def wait(_: web.Request) -> web.Response:
        await asyncio.to_thread(over.wait, 20)
        return web.Response(text="late")

    with Origin({"/": ok, "/wait": wait}) as running:
        yield running
        over.set()


# ---- files -------------------------------------------------------------------------------------------


async def test_the_address_is_said_in_the_store_and_the_token_is_not(store_dir: Path) -> None:
    """Both files are for the owner alone; the first is gone with the server."""
    config = Config(store=store_dir)
    async with controlled(config) as api:
        (path,) = (store_dir / "private" / "control").iterdir()
        told = json.loads(path.read_text())
        assert path.name == f"{os.getpid()}.json"
        assert (told["pid"], told["url"]) == (os.getpid(), api.server.url)
        assert api.token not in path.read_text()
        for private in (path, token_path(config)):
            assert stat.S_IMODE(private.stat().st_mode) == 0o600
        assert stat.S_IMODE((store_dir / "private").stat().st_mode) == 0o700
        (found,) = find_addresses(store_dir)
        assert found.url == api.server.url
    assert find_addresses(store_dir) == []
    assert not path.exists()
    assert open_token(config) == api.token


def test_what_a_dead_process_left_is_ignored_and_taken_away(store_dir: Path) -> None:
    """Also where its id has been given to another since; nonsense is no address."""
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    dead = publish(store_dir, Address(int(gone.stdout), 1.0, "http://127.0.0.1:1"))
    recycled = publish(store_dir, Address(os.getppid(), 1.0, "http://127.0.0.1:1"))
    for name, text in [("1.json", "{"), ("2.json", "[]"), ("3.json", '{"pid": "x"}')]:
        (dead.parent / name).write_text(text)
    assert find_addresses(store_dir) == []
    mine = Address(os.getpid(), psutil.Process().create_time(), "http://127.0.0.1:2")
    kept = publish(store_dir, mine)
    assert list(dead.parent.iterdir()) == [kept]
    assert find_addresses(store_dir) == [mine]
    assert not recycled.exists()


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (b"x" * 43, 0o644, "may be read by others"),
        (b"x" * 43, 0o660, "may be read by others"),
        (b"short", 0o600, "is none"),
        (b"", 0o600, "is none"),
        (b"x" * 2000, 0o600, "is none"),
        (b"with a space in it", 0o600, "is none"),
        (b"\xff" * 20, 0o600, "is none"),
    ],
)
def test_a_token_that_is_none_is_refused(
    tmp_path: Path, content: bytes, mode: int, words: str
) -> None:
    """It is not shown, and nothing starts with it."""
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(EngineError, match=words) as caught:
        read_token(path)
    assert caught.value.hint


def test_a_token_that_was_removed_is_told_with_how_to_get_another(tmp_path: Path) -> None:
    """Its folder can be written: what makes one is a start."""
    path = token_path(Config(store=tmp_path / "store"))
    with pytest.raises(EngineError, match="is not there: the file was removed") as caught:
        read_token(path)
    assert "start that process again" in str(caught.value.hint)
    assert len(open_token(Config(store=tmp_path / "store"))) > 20  # as it does
    assert read_token(path)


def test_a_token_of_ones_own_is_taken(tmp_path: Path) -> None:
    """Made elsewhere, named in the configuration; a new line at its end is no part of it."""
    path = tmp_path / "token"
    path.write_text("a-token-of-my-own-1234\n")
    path.chmod(0o600)
    config = Config(store=tmp_path / "store", control=Control(token_file=path))
    assert open_token(config) == "a-token-of-my-own-1234"


# ---- listening ---------------------------------------------------------------------------------------


async def test_it_can_be_switched_off(store_dir: Path) -> None:
    """Then there is no port, no file and no token."""
    config = Config(store=store_dir, control=Control(listen=None))
    async with running_engine(config) as running:
        made = ControlServer(config, ProxyState(running.store, running.registry, running.engine))
        made.open()
        assert made.url == ""
        await made.close()
    assert not token_path(config).exists()


def test_nothing_of_the_server_is_read_before_somebody_asks() -> None:
    """A start is not to pay for what few use: neither by importing it nor by opening the port."""
    code = (
        "import sys, playhead.proxy.run.serve, playhead.proxy.run.launcher, playhead.proxy.control.client;"
        "print([name for name in ('aiohttp', 'playhead.proxy.control.http.serving',"
        " 'playhead.proxy.control.handlers.route_table') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_that_asks_reads_no_proxy() -> None:
    """`playhead stop` is quick."""
    code = (
        "import sys, playhead.proxy.cli, playhead.proxy.control.client;"
        "print([name for name in ('aiohttp', 'mitmproxy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_port_that_was_asked_for_and_is_taken_stops_the_start(
    store_dir: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default is only warned of, since nobody counts on it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = Listen(*taken.getsockname())
        with pytest.raises(EngineError, match=f"cannot listen on {listen}") as caught:
            async with controlled(Config(store=store_dir, control=Control(listen))):
                pytest.fail("it was opened")
        assert "control.listen" in caught.value.hint
        monkeypatch.setattr(server, "listen_at", lambda *_: listen_at(listen.host, listen.port))
        async with controlled(Config(store=store_dir)) as api:
            assert api.server.url == ""
        assert "no control API: the control API cannot listen on" in capfd.readouterr().err
    assert find_addresses(store_dir) == []


async def test_a_name_of_loopback_that_leads_elsewhere_is_not_listened_on(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a name means is known when it is bound."""
    monkeypatch.setattr(server, "listen_at", lambda *_: listen_at("0.0.0.0", 0))
    with pytest.raises(EngineError, match=r"would listen on 0\.0\.0\.0 for localhost:0"):
        async with controlled(Config(store=store_dir, control=Control(Listen("localhost", 0)))):
            pytest.fail("it was opened")
    assert find_addresses(store_dir) == []


async def test_a_certificate_that_cannot_be_read_stops_the_start(
    store_dir: Path, certificates: Certificates
) -> None:
    """Also one without its key."""
    for tls in (Tls(Path("none.pem"), Path("none.pem")), Tls(certificates.root, certificates.root)):
        with pytest.raises(EngineError, match=r"control\.tls cannot be used"):
            async with controlled(Config(store=store_dir, control=Control(tls=tls))):
                pytest.fail("it was opened")


def test_what_others_can_reach_needs_tls_or_a_word(tmp_path: Path) -> None:
    """Nothing starts: for `replay` that is 125."""
    file = tmp_path / "playhead.yaml"
    file.write_text("control: {listen: '0.0.0.0:0'}\n")
    done = playhead("replay", "-c", file, "latest", "--", "true")
    assert done.returncode == 125
    assert "control.listen: 0.0.0.0:0 can be reached from other machines" in done.stderr


def _over_tls(store_dir: Path, certificates: Certificates) -> Config:
    tls = Tls(certificates.chain, certificates.chain)
    return Config(store=store_dir, control=Control(tls=tls))


async def test_over_tls_it_is_known_by_its_certificate(
    store_dir: Path, certificates: Certificates
) -> None:
    """Our own commands trust just that; who speaks plain is not answered."""
    config = _over_tls(store_dir, certificates)
    async with controlled(config) as api:
        assert api.server.url.startswith("https://")
        (address,) = find_addresses(store_dir)
        assert await asyncio.to_thread(ask, config, address, "GET", "/v1/runs") == {"runs": []}
        context = ssl.create_default_context(cafile=certificates.root)
        host, _, port = api.address.rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
        writer.close()
        await writer.wait_closed()
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await api.ask("GET", "/healthz")


def test_over_tls_it_answers_on_the_loop_of_the_command(
    store_dir: Path, certificates: Certificates
) -> None:
    """Whose connections are of other types."""
    config = _over_tls(store_dir, certificates)

    async def tell() -> object:
        async with controlled(config):
            (address,) = find_addresses(store_dir)
            return await asyncio.to_thread(ask, config, address, "GET", "/v1/runs")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(tell()) == {"runs": []}


async def test_half_open_handshakes_give_way(
    store_dir: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that say nothing are closed, the oldest first, and whoever speaks is answered beside them."""
    monkeypatch.setattr(serving, "CONNECTIONS", 3)
    config = _over_tls(store_dir, certificates)
    async with controlled(config) as api, asyncio.timeout(20):
        host, _, port = api.address.rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(8)]
        (address,) = find_addresses(store_dir)
        assert await asyncio.to_thread(ask, config, address, "GET", "/v1/runs") == {"runs": []}
        for reader, _ in silent[:5]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        assert not silent[7][0].at_eof()
        for _, writer in silent:
            writer.close()


async def test_a_handshake_that_does_not_end_is_given_up(
    store_dir: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as a head may take."""
    monkeypatch.setattr(serving, "HEAD_S", 0.2)
    config = _over_tls(store_dir, certificates)
    async with controlled(config) as api, asyncio.timeout(20):
        host, _, port = api.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_on_every_address_it_is_found_by_loopback(store_dir: Path) -> None:
    """What is said in the store is how this machine reaches it."""
    control = Control(Listen("0.0.0.0", 0), public=True)
    async with controlled(Config(store=store_dir, control=control)) as api:
        assert api.server.url.startswith("http://127.0.0.1:")
        assert (await api.ask("GET", "/v1/runs")).status == 200
        port = api.address.rpartition(":")[2]
        for host, status in [("192.0.2.1", 200), ("0.0.0.0", 403), ("attacker.example", 403)]:
            assert (await api.ask("GET", "/v1/runs", host=f"{host}:{port}")).status == status


# ---- as a person uses it -----------------------------------------------------------------------------


def test_a_run_is_stopped_from_another_process(tmp_path: Path, origin: Origin) -> None:
    """Found among two proxies on one store; who, why and when are in the receipt."""
    store = tmp_path / "store"
    config = Config(store=store)
    flags = ("--store", store, "--listen", "127.0.0.1:0")
    with Serve(*flags) as one, Serve(*flags) as two:
        assert len(find_addresses(store)) == 2
        for proxy, run in ((one, "first"), (two, "a/b")):
            url = proxy.url_for(quote(run, safe=""))
            assert fetch(origin.url, proxy=url) == b"ok"
        done = playhead("stop", "a/b", "--reason", "it loops", "--store", store)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("run a/b: stopped by ")
        refused = fetch(origin.url, proxy=two.url_for("a%2Fb"))
        assert b"it loops" in refused
        assert fetch(origin.url, proxy=one.url_for("first")) == b"ok"
        with pytest.raises(NotAnswered, match="at most 500 characters"):
            stop_run(config, "first", "x" * 501)
        with pytest.raises(UnknownRun) as unknown:
            stop_run(config, "frist", "")
        assert "first" in unknown.value.hint
    with pytest.raises(StoreError, match="is sealed already"):
        stop_run(config, "first", "")
    with Store.open(store, readonly=True) as opened:
        stopped = build(opened, opened.runs.get("a/b")).stopped
    assert stopped is not None
    assert stopped["reason"] == "it loops"
    assert stopped["pid"] > 0
    assert find_addresses(store) == []


def test_a_recorded_command_goes_on_when_its_run_is_stopped(tmp_path: Path, origin: Origin) -> None:
    """It is refused, and its own exit code is the command's. A port in the file is left to `serve`."""
    store, told, file = tmp_path / "store", tmp_path / "told", tmp_path / "playhead.yaml"
    with socket.create_server(("127.0.0.1", 0)) as free:
        taken = free.getsockname()[1]
    file.write_text(f"control: {{listen: '127.0.0.1:{taken}'}}\n")
    ask = f"{sys.executable} -m playhead.tests.support.fetching $http_proxy '' {origin.url}"
    script = f"{ask}; echo; read line < {told}; {ask}; exit 7"
    os.mkfifo(told)
    recording = prepared.start(
        [
            *COMMAND,
            "record",
            "-c",
            file,
            "--run",
            "mine",
            "--store",
            store,
            "--",
            "sh",
            "-c",
            script,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert recording.stdout is not None
    assert recording.stdout.readline() == "ok\n"
    (address,) = find_addresses(store)
    assert not address.url.endswith(f":{taken}")
    assert "mine: stopped by " in stop_run(Config(store=store), "mine", "enough")
    told.write_text("go on\n")
    out, err = recording.communicate(timeout=30)
    assert recording.returncode == 7
    assert '"code": "stopped"' in out
    assert "STOPPED by " in err
    with Store.open(store, readonly=True) as opened:
        assert build(opened, opened.runs.get("mine")).counts["refused"] == 1


def test_a_run_whose_process_has_no_control_api_says_what_to_do(
    tmp_path: Path, origin: Origin
) -> None:
    """So does one whose process has died."""
    store, file = tmp_path / "store", tmp_path / "playhead.yaml"
    file.write_text("control: {listen: off}\n")
    with Serve("-c", file, "--store", store, "--listen", "127.0.0.1:0") as proxy:
        fetch(origin.url, proxy=proxy.url_for("mine"))
        with pytest.raises(StoreError, match="has no control API") as caught:
            stop_run(Config(store=store), "mine", "")
        assert f"kill {proxy.process.pid}" in caught.value.hint
        proxy.process.send_signal(signal.SIGKILL)
        proxy.process.wait(10)
        with pytest.raises(StoreError, match=r"recovered already|has died"):
            stop_run(Config(store=store), "mine", "")


def test_it_ends_with_the_proxy_while_it_is_asked(tmp_path: Path) -> None:
    """A connection that says nothing keeps nobody."""
    store = tmp_path / "store"
    with Serve("--store", store, "--listen", "127.0.0.1:0") as proxy:
        (address,) = find_addresses(store)
        host, _, port = address.url.partition("//")[2].rpartition(":")
        with socket.create_connection((host, int(port))) as silent:
            assert ask(Config(store=store), address, "GET", "/healthz") == {"status": "ok"}
            code, _, err = proxy.stop()
            assert (code, err) == (0, "")
            assert silent.recv(1) == b""
    wait_until(lambda: find_addresses(store) == [])
