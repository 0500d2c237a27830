"""Bad input gets one clear sentence and a hint, or is closed and logged; nobody else is disturbed."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lmdb
import pytest
from aiohttp import web

from playhead.addons import client_sockets as connections
from playhead.config import Config, Mode
from playhead.proxy.trust.ca import open_ca
from playhead.store import Store
from playhead.tests.support.client import Connection
from playhead.tests.support.engine import running_engine
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import COMMAND, Serve, playhead, wait_until
from playhead.tests.support.settings import Settings

# ---- the command line ------------------------------------------------------------------------------

FAULTS = "mode: replay\nlisten: nowhere\nruns:\n  grace: soon\n  tokens: [1]\nstorage: x\n"


def _store(folder: Path) -> Path:
    """A store with one empty run `tape`."""
    path = folder / "store"
    done = playhead("record", "-q", "--run", "tape", "--store", path, "--", "true")
    assert done.returncode == 0, done.stderr
    return path


def _newer(folder: Path) -> Path:
    """A store of a version that does not exist yet."""
    path = folder / "newer"
    Store.open(path).close()
    with lmdb.open(str(path / "log.lmdb"), max_dbs=20) as environment:
        meta = environment.open_db(b"meta")
        with environment.begin(write=True) as transaction:
            transaction.put(b"format", b"99", db=meta)
    return path


def _with_ca(folder: Path, name: str, pem: bytes) -> Path:
    path = folder / name
    (path / "private").mkdir(parents=True)
    (path / "private" / "ca.pem").write_bytes(pem)
    return path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores and files that something is wrong with, by name."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "faults.yaml").write_text(FAULTS)
    (folder / "garbage.pem").write_bytes(b"\0garbage")
    (folder / "file").write_text("no folder")
    (folder / "lines.jsonl").write_text('{"method": "GET"}\n')
    (folder / "net.har").write_text('{\n  "log": {"version": "1.2"}\n}\n')
    (folder / "page.html").write_text("<!doctype html><title>mine - Playhead</title>")
    (folder / "sign-in.tape").write_bytes(b"\xef\xbb\xbf\n<!DOCTYPE HTML>\n<title>Sign in</title>")
    (folder / "page.har").write_text("<html><title>Sign in</title>")
    (folder / "short.har").write_text('{"log":{"version":"1.2"}}')
    (folder / "lines.tape").write_bytes(b"PLAYHEAD-TAPE\n\0")
    taken = folder / "taken"
    open_ca(taken, taken / "ca")
    key, _, certificate = (taken / "private" / "ca.pem").read_bytes().partition(b"-----BEGIN CERT")
    return {
        "good": _store(folder),
        "newer": _newer(folder),
        "none": folder / "none",
        "file": folder / "file",
        "lines.jsonl": folder / "lines.jsonl",
        "net.har": folder / "net.har",
        "page.html": folder / "page.html",
        "sign-in.tape": folder / "sign-in.tape",
        "page.har": folder / "page.har",
        "short.har": folder / "short.har",
        "lines.tape": folder / "lines.tape",
        "garbage.pem": folder / "garbage.pem",
        "faults.yaml": folder / "faults.yaml",
        "missing.yaml": folder / "missing.yaml",
        "garbage CA": _with_ca(folder, "garbage", b"\0garbage"),
        "half a CA": _with_ca(folder, "half", key),
        "folder CA": _with_ca(folder, "keyless", b"-----BEGIN CERT" + certificate),
    }


@pytest.fixture(scope="module")
def said(places: dict[str, Path]) -> dict[str, subprocess.CompletedProcess[str]]:
    """What every command line of `WRONG` ends with, some at a time."""
    with Origin({}) as origin:

        def run(line: str) -> subprocess.CompletedProcess[str]:
            words = []
            for word in line.split():
                named = re.fullmatch(r"\{(.*)\}", word.replace("_", " "))
                words.append(str(places[named[1]]) if named else word)
            words = [word.replace("PORT", str(origin.port)) for word in words]
            return playhead(*words, cwd=places["good"].parent)

        with ThreadPoolExecutor(4) as pool:
            return dict(zip(WRONG, pool.map(run, WRONG), strict=True))


WRONG: dict[str, tuple[int, str, str]] = {
    # command line: (exit code, the sentence, the hint)
    # usage
    "recrod": (2, "No such command 'recrod'", "Did you mean 'record'"),
    "serve --mod record": (2, "No such option '--mod'", "Did you mean '--mode'"),
    "record --runn x -- true": (2, "No such option '--runn'", "Did you mean '--run'"),
    "record": (2, "Missing argument", "record --help"),
    "replay tape": (125, "Missing argument", "replay --help"),
    "replay --no-sandbx tape -- true": (125, "No such option", "--no-sandbox"),
    "show --store {good} tape first": (
        2,
        "'first' is no step of a run: expected its SEQ",
        "show --help",
    ),
    "record -run x -- true": (2, "No such option '-run'", "'--run', with two dashes"),
    "show tape -1": (2, "No such option '-1'", "A SEQ counts from 1"),
    "record x -- true": (2, "x stands before `--`", "playhead record --run x -- true"),
    "replay --store {good} tape x -- true": (
        125,
        "x stands before `--`",
        "playhead replay tape --store",
    ),
    "ask --store {good} tape why?": (2, "'why?' is no step of a run", "playhead show tape"),
    "ask --store {good} tape 9": (2, "SEQ 9: the tape of 'tape' holds no exchange", "receipt tape"),
    "branch --store {good} tape --at x -- true": (2, "'x' is no step of a run", "playhead show"),
    "cost --store {good} --since 30": (2, "--since: '30' has no unit", "expected 30d or 12h"),
    "cost --store {good} --since 2999-01-01": (
        2,
        "none of 1 run went on since 2999-01-01",
        "give an earlier time",
    ),
    "export --store {good} tape x.tape": (2, "extra argument (x.tape)", "--tape x.tape"),
    "diff --store {good} tape 1 2": (2, "extra argument (2)", "two runs, not two steps"),
    # runs
    "runs --store {file}": (2, "is a file; expected a folder", "name a folder with --store"),
    "show --store {good} tabe": (2, "unknown run 'tabe'", "nearest: tape"),
    "show --store {good} 12": (2, "unknown run '12'", "`playhead show RUN 12` shows it"),
    "destinations --store {good} --since 30": (2, "--since: '30' has no unit", "30d or 12h"),
    "receipt --store {good} tep": (2, "unknown run 'tep'", "nearest: tape"),
    "seal --store {good} xtape": (2, "unknown run 'xtape'", "nearest: tape"),
    "show --store {good} tape 999": (2, "run 'tape' holds no exchange 999", "show tape"),
    "show --store {good} tape 0": (2, "run 'tape' holds no exchange 0", "show tape"),
    f"show --store {{good}} tape {10**30}": (2, "holds no exchange 1000000", "show tape"),
    "show --store {good} -- tape -1": (
        2,
        "'-1' is no step of a run: expected its SEQ",
        "show --help",
    ),
    "import --store {good} {lines.jsonl}": (
        2,
        "is no tape; it looks like exchanges as JSON lines",
        "playhead import --jsonl ",
    ),
    "import --store {good} {net.har}": (2, "it looks like a HAR file", "playhead import --jsonl "),
    "import --store {good} {short.har}": (2, "looks like a HAR file", "playhead import --jsonl "),
    "import --store {good} {page.html}": (2, "looks like a page", "playhead export RUN --tape"),
    "import --store {good} {sign-in.tape}": (2, "looks like an HTML page, as a down", "open it"),
    "import --store {good} {page.har}": (
        2,
        "looks like an HTML page, and no HAR file",
        "write its entries as JSON lines (docs/import.md)",
    ),
    "import --store {good} --jsonl {sign-in.tape}": (2, "looks like an HTML page", "open it"),
    "import --store {good} --jsonl {page.har}": (2, "and no HAR file", "JSON lines"),
    "import --store {good} --jsonl {net.har}": (2, "looks like a HAR file", "JSON lines"),
    "import --store {good} --jsonl {short.har}": (2, "looks like a HAR file", "JSON lines"),
    "import --store {good} --jsonl {lines.tape}": (2, "looks like a tape", "without --jsonl"),
    "archive --store {good} tabe": (2, "unknown run 'tabe'", "nearest: tape"),
    "import --store {good} {garbage.pem}": (
        2,
        "is no tape: it does not begin as one; expected a file of `playhead export RUN --tape FILE`",
        "nothing was imported",
    ),
    "import --store {good} {none}": (2, "No such file or directory", "playhead export RUN --tape"),
    "import --store {good} {good}": (2, "is a store, and no file", "look at it with --store"),
    "import --store {good} {garbage_CA}": (2, "is a folder", "playhead export RUN --tape FILE"),
    "import --store {good} --jsonl {good}": (2, "is a store, and no file", "--store"),
    "import --store {good} -": (
        2,
        "a tape is read twice, and standard input can be read once",
        "give a file",
    ),
    "serve --store {good} --mode playback --run tabe": (2, "unknown run 'tabe'", "nearest: tape"),
    "replay tape --store {good} --allow-model-drift gpt-5 -- true": (
        125,
        "'gpt-5' names one model",
        "expected RECORDED=NEW",
    ),
    "replay tape --store {good} --allow-model-drift =gpt-5 -- true": (
        125,
        "--allow-model-drift: '=gpt-5' does not name the model on the tape",
        "expected RECORDED=NEW",
    ),
    "serve --store {good} --allow-model-drift a=": (
        2,
        "--allow-model-drift: 'a=' does not name the model that is asked for",
        "expected RECORDED=NEW",
    ),
    "replay tabe --store {good} -- true": (125, "unknown run 'tabe'", "nearest: tape"),
    "replay -q tape --store {good} --no-sandbox -- true": (
        125,
        "the tape of 'tape' holds no exchange, so no request can be answered: record it again",
        "its receipt says why: playhead receipt tape",
    ),
    "branch tape --at 1 --store {good} --no-sandbox -- true": (
        2,
        "--at 1: the tape of 'tape' holds no exchange: record it again",
        "playhead receipt tape",
    ),
    "record --store {good} --run a:b -- true": (2, "--run: 'a:b' is no run name", "colon"),
    "record --store {good} --run latest -- true": (2, "'latest' is reserved", "another name"),
    "record --store {good} --run x@1 -- true": (2, "'x@1' is reserved", "another name"),
    "record --store {good} --run -- true": (2, "--run needs a value", "--run ID -- true"),
    "replay --store {good} true x": (125, "no recording is named", "playhead replay RUN"),
    # stores
    "show --store {none} tape": (2, "no store at", "--store"),
    "seal --store {none} tape": (2, "no store at", "--store"),
    "replay tape --store {none} -- true": (125, "no store at", "--store"),
    "serve --store {newer} --listen 127.0.0.1:0": (2, "has format 99", "newer Playhead"),
    "runs --store {newer}": (2, "has format 99", "newer Playhead"),
    "replay tape --store {newer} -- true": (125, "has format 99", "newer Playhead"),
    "serve --store {file} --listen 127.0.0.1:0": (2, "is a file; expected a folder", "--store"),
    "replay tape --store {file} -- true": (125, "is a file; expected a folder", "--store"),
    # the CA
    "serve --store {garbage_CA} --listen 127.0.0.1:0": (
        2,
        "does not hold a private key",
        "playhead ca rotate",
    ),
    "ca --store {half_a_CA}": (
        2,
        "does not hold a private key and the certificate",
        "playhead ca rotate",
    ),
    "record --store {folder_CA} -- true": (2, "does not hold a private key", "playhead ca rotate"),
    "record --store {good} --upstream-ca {garbage.pem} -- true": (2, "hold no cert", "PEM file"),
    "replay tape --store {good} --upstream-ca {none} -- true": (125, "cannot read the up", "PEM"),
    # the port
    "serve --store {good} --listen 127.0.0.1:PORT": (2, "port PORT on 127.0.0.1 is in", "--listen"),
    "serve --store {good} --listen 0.0.0.0:0": (2, "runs.tokens is empty", "listen on 127.0.0.1"),
    "serve --store {good} --listen 127.0.0.1:99999": (2, "--listen: ", "65535"),
    # the file
    "serve -c {missing.yaml}": (2, "missing.yaml: no such file", "playhead init -c FILE"),
    "runs -c {faults.yaml}": (2, "faults.yaml:1:7: mode: ", ""),
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_command_line_gets_one_sentence_and_a_hint(
    said: dict[str, subprocess.CompletedProcess[str]], line: str
) -> None:
    """Exit code 2, or 125 from replay; nothing on stdout and never a traceback."""
    code, sentence, hint = WRONG[line]
    done = said[line]
    shown = re.sub(r"port \d+ on", "port PORT on", done.stderr)
    assert (done.returncode, done.stdout) == (code, ""), shown
    assert sentence in shown
    assert hint in shown
    assert "Traceback" not in shown
    assert len(shown.splitlines()) < 8


def test_a_wrong_command_line_makes_no_store(
    said: dict[str, subprocess.CompletedProcess[str]], places: dict[str, Path]
) -> None:
    """Reading, sealing and replaying where there is no store leave nothing behind."""
    assert not places["none"].exists()


@pytest.mark.parametrize("command", ["serve", "record", "replay"])
def test_all_faults_of_a_file_are_told_at_once(places: dict[str, Path], command: str) -> None:
    """Each with file, line, column, key, what is wrong and what would be right, in file order."""
    words = {"serve": [], "record": ["--", "true"], "replay": ["tape", "--", "true"]}[command]
    done = playhead(command, "-c", places["faults.yaml"], *words)
    assert done.returncode == (125 if command == "replay" else 2)
    file = re.escape(str(places["faults.yaml"]))
    lines = done.stderr.removeprefix("playhead: ").splitlines()
    found = [re.match(rf"{file}:(\d+):(\d+): ([a-z.]+): .+", line) for line in lines]
    assert [match and match.groups() for match in found] == [
        ("1", "7", "mode"),
        ("2", "9", "listen"),
        ("4", "10", "runs.grace"),
        ("5", "11", "runs.tokens"),
        ("6", "1", "storage"),
    ]


READONLY = """
import ctypes, os, sys
from playhead.tests.support import prepared
uid, gid = os.geteuid(), os.getegid()
try:
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
    for name, text in ("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1"):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    libc = ctypes.CDLL(None, use_errno=True)
    def mount(source, target, kind, flags):
        if libc.mount(source, target.encode(), kind, ctypes.c_ulong(flags), None):
            raise OSError(ctypes.get_errno(), "mount")
    mount(b"none", "/", None, 0x4000 | 0x40000)
    mount(b"tmpfs", sys.argv[1], b"tmpfs", 0)
    prepared.run([*sys.argv[2:], "record", "-q", "--run", "tape", "--store", sys.argv[1], "--", "true"]).check_returncode()
    mount(b"none", sys.argv[1], None, 0x20 | 1)
except OSError as error:
    sys.exit(f"not here: {error}")
for words in ["serve", "--listen", "127.0.0.1:0"], ["record", "--", "true"], ["runs"], ["show", "tape"], ["seal", "tape"]:
    print(prepared.run([*sys.argv[2:], words[0], "--store", sys.argv[1], *words[1:]], text=True))
"""


def test_a_read_only_disk_is_read_and_not_written(tmp_path: Path) -> None:
    """Listing works on it; recording, serving and sealing say so in a sentence with a hint."""
    need("private mounts")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [sys.executable, "-c", READONLY, str(folder), *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = done.stdout.splitlines()
    assert len(outcomes) == 5
    for outcome in outcomes:
        assert "Traceback" not in outcome
    for outcome in (*outcomes[:2], outcomes[4]):
        assert "returncode=2, stdout=''" in outcome
        assert "stderr='playhead: " in outcome
        assert "Read-only file system" in outcome
        assert "\\n  hint: " in outcome
    for outcome in outcomes[2:4]:
        assert "returncode=0" in outcome
        assert "tape" in outcome


# ---- the port --------------------------------------------------------------------------------------

GARBAGE: dict[str, tuple[bytes, int | None, str]] = {
    # what it is: (bytes, status of the answer or None, what is logged)
    "noise": (b"\x80\x00\xff" * 100, None, "no request of HTTP"),
    "zeros": (b"\0" * 64, None, "no request of HTTP"),
    "SOCKS5": (b"\x05\x01\x00", None, "SOCKS"),
    "SOCKS4": (b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", None, "SOCKS"),
    "SSH": (b"SSH-2.0-OpenSSH_9.9\r\n", 400, "SSH"),
    "SMTP": (b"EHLO example.com\r\n", 400, "no request of HTTP"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 400, "this is a proxy"),
    "broken TLS": (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", None, ""),
    "no proxy request": (b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", 400, "this is a proxy"),
    "no host": (b"GET / HTTP/1.0\r\n\r\n", 400, "this is a proxy"),
    "endless header": (
        b"GET http://x/ HTTP/1.1\r\nx: " + b"a" * 300_000,
        431,
        "longer than 262144",
    ),
    "endless line": (b"GET http://x/" + b"a" * 300_000, 431, "longer than 262144"),
    "bad header": (b"GET http://x/ HTTP/1.1\r\n: x\r\nhost : y\r\n\r\n", 400, "malformed"),
    "bad length": (b"POST http://x/ HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400, "malformed"),
    "bad port": (b"CONNECT x:99999 HTTP/1.1\r\n\r\n", 400, "malformed"),
    "bad scheme": (b"GET ftp://x/ HTTP/1.1\r\nhost: x\r\n\r\n", 400, "malformed"),
    "late newline": (b"\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n", 400, "this is a proxy"),
}


async def test_garbage_on_the_port_is_closed_and_logged_and_disturbs_nobody(tmp_path: Path) -> None:
    """Each is answered with an error or closed, at once, and logged once; meanwhile others are served."""

    async def say(_: web.Request) -> web.Response:
        return web.Response(text="fine")

    settings = Settings(tmp_path, "mode: record\n")
    answers: dict[str, bytes] = {}
    ports: dict[str, int] = {}

    async def send(name: str) -> None:
        connection = await Connection.open(proxy.address)
        ports[name] = connection.writer.get_extra_info("sockname")[1]
        connection.writer.write(GARBAGE[name][0])
        try:
            answers[name] = await connection.reader.read()
        except ConnectionResetError:  # what we had still to say was not wanted
            answers[name] = b""
        await connection.close()

    with Origin({"/x": say}) as origin, Serve(*settings.flags) as proxy:
        busy = [await Connection.open(proxy.address) for _ in range(3)]
        half = await Connection.open(proxy.address)
        half.writer.write(b"GET http://127.0.0.1/ HTTP/1.1\r\nhost")
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            for name in GARBAGE:
                tasks.create_task(send(name))
            for number, connection in enumerate(busy * 10):
                answer = await connection.ask(f"{origin.url}/x", credentials=f"run-{number % 3}:x")
                assert (answer.status, answer.body) == (200, b"fine")
        for connection in (*busy, half):
            await connection.close()
        code, _, logged = proxy.stop()
    assert code == 0
    assert "Traceback" not in logged
    for name, (_, status, text) in GARBAGE.items():
        found = re.match(rb"HTTP/1\.\d (\d+) ", answers[name])
        assert (name, found and int(found[1])) == (name, status)
        lines = [line for line in logged.splitlines() if f":{ports[name]}: " in line]
        assert (name, len(lines)) == (name, 1 if text else len(lines) and 1)
        assert (name, text in "".join(lines)) == (name, True)
    assert settings.statuses() == {f"run-{number}": "sealed" for number in range(3)}


async def test_a_client_that_never_asks_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Silence, or half a request and then silence, ends after a while; who has asked may be idle."""
    monkeypatch.setattr(connections, "HEAD_S", 0.3)

    async def say(_: web.Request) -> web.Response:
        return web.Response(text="fine")

    config = Config(mode=Mode.RECORD, store=tmp_path / "store")
    with Origin({"/x": say}) as origin:
        async with running_engine(config) as running, asyncio.timeout(60):

            async def ask_in_time(act: Callable[[Connection], Awaitable[object]]) -> Connection:
                """Open a connection and ask; a busy machine may take too long for it, then again."""
                while True:
                    connection = await Connection.open(str(running.address))
                    try:
                        await act(connection)
                    except (asyncio.IncompleteReadError, ConnectionError):
                        await connection.close()
                    else:
                        return connection

            url = f"{origin.url}/x"
            idle = await ask_in_time(lambda connection: connection.ask(url))
            tunnel = await ask_in_time(lambda one: one.tunnel(f"127.0.0.1:{origin.port}"))
            # Opened after those: by their end the others could have been ended, too.
            silent, half = [await Connection.open(str(running.address)) for _ in range(2)]
            ports = {one.writer.get_extra_info("sockname")[1] for one in (silent, half)}
            half.writer.write(b"GET http://127.0.0.1/x HTTP/1.1\r\nhost")
            for connection in (silent, half):
                assert await connection.reader.read() == b""
            for connection, target in ((idle, url), (tunnel, "/x")):
                assert (await connection.ask(target)).body == b"fine"
            for connection in (idle, silent, half, tunnel):
                await connection.close()
    logged = [record.getMessage() for record in caplog.records if "no request" in record.message]
    for port in ports:
        assert sum(f":{port}: " in line for line in logged) == 1


async def test_what_is_no_http_in_a_tunnel_is_ended(tmp_path: Path) -> None:
    """A client that speaks another protocol through CONNECT is told so, not kept waiting."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store")
    with Origin({}) as origin:
        async with running_engine(config) as running, asyncio.timeout(10):
            for data, answered in ((b"SSH-2.0-x\r\n", True), (b"\0\0\0\x08\4\xd2\x16\x2f", False)):
                connection = await Connection.open(str(running.address))
                await connection.tunnel(f"127.0.0.1:{origin.port}")
                connection.writer.write(data)
                assert bool(await connection.reader.read()) is answered
                await connection.close()


async def test_a_body_that_is_none_ends_its_exchange(tmp_path: Path) -> None:
    """Chunks that are no chunks, in one piece with the head: the client is let go, nothing is left waiting."""
    config = Config(mode=Mode.RECORD, store=tmp_path / "store")
    head = b"POST http://127.0.0.1:1/ HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    async with running_engine(config) as running, asyncio.timeout(10):
        connection = await Connection.open(str(running.address))
        assert (await connection.ask("http://playhead.internal/run")).status == 200
        (open_run,) = running.registry.open
        connection.writer.write(head + b"no chunk\r\n")
        await connection.reader.read()
        await connection.close()
        assert await open_run.settled(5)
        assert open_run.on_the_way.requests == 2


def test_a_port_that_is_the_proxys_own_is_not_asked(tmp_path: Path) -> None:
    """A request for the proxy through the proxy ends at once, instead of going round in circles."""

    async def ask(address: str) -> None:
        for target in (f"http://{address}/", f"http://localhost:{address.partition(':')[2]}/"):
            connection = await Connection.open(address)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await connection.ask(target)
            await connection.close()

    settings = Settings(tmp_path, "mode: record\n")
    with Serve(*settings.flags) as proxy:
        asyncio.run(asyncio.wait_for(ask(proxy.address), 10))
        _, _, logged = proxy.stop()
    assert logged.count("it is the proxy itself") == 2


def test_a_broken_file_at_the_start_and_a_good_one_later(tmp_path: Path) -> None:
    """A file that is broken at the start keeps serve from starting, with every fault."""
    settings = Settings(tmp_path, FAULTS)
    done = playhead("serve", *settings.flags)
    assert done.returncode == 2
    assert done.stderr.count(f"{settings.path}:") == 5
    settings.write("mode: record\n")
    with Serve(*settings.flags) as proxy:
        assert _seen(proxy, lambda: settings.write(FAULTS)).count(f"{settings.path}:") == 5


def _seen(proxy: Serve, act: Callable[[], None]) -> str:
    """Give what serve says on stderr until it has reported what `act` did, and ends."""
    assert proxy.process.stderr is not None
    os.set_blocking(proxy.process.stderr.fileno(), False)
    act()
    seen: list[bytes] = []

    def reported() -> bool:
        assert proxy.process.stderr is not None
        seen.append(proxy.process.stderr.read() or b"")
        return b"storage" in b"".join(seen)

    wait_until(reported)
    os.set_blocking(proxy.process.stderr.fileno(), True)
    return b"".join(seen).decode()


@pytest.mark.parametrize("verb", ["record", "replay", "serve"])
def test_a_working_folder_that_is_gone_is_an_error(tmp_path: Path, verb: str) -> None:
    """As where another process has cleaned up an agent's work tree."""
    script = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    run = () if verb == "serve" else (*(("r",) if verb == "replay" else ()), "--", "true")
    words = ("-m", "playhead.proxy.cli", verb, "--store", str(tmp_path / "store"), *run)
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=tmp_path / "gone", capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert done.returncode in (2, 125), done.stderr
    assert done.stderr.startswith("playhead: the folder that you are in was removed"), done.stderr
