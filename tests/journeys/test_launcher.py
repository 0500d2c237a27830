"""`playhead record` and `playhead replay` around real commands: exit codes, signals, terminals, receipts."""

import asyncio
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from aiohttp import web

from playhead.store import RunStatus, Store
from playhead.tests.support import prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.needs import need
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import COMMAND, playhead, read_json, wait_until

PRELUDE = """
import os, signal, socket, sys
def ask(path, data=None):
    # Without a library, which would take longer than all the rest.
    origin, proxy = (os.environ[name].partition('//')[2] for name in ('ORIGIN', 'HTTP_PROXY'))
    given, _, place = proxy.rpartition('@')
    host, _, port = place.strip('/').rpartition(':')
    lines = [f"{'GET' if data is None else 'POST'} http://{origin}{path} HTTP/1.1", f'Host: {origin}', 'Connection: close']
    if given:
        from base64 import b64encode
        lines.append(f'Proxy-Authorization: Basic {b64encode(given.encode()).decode()}')
    if data is not None:
        lines += ['Content-Type: application/x-www-form-urlencoded', f'Content-Length: {len(data)}']
    try:
        with socket.create_connection((host, int(port)), 30) as sock:
            sock.sendall('\\r\\n'.join([*lines, '', '']).encode() + (data or b''))
            return sock.makefile('rb').read().partition(b'\\r\\n' * 2)[2].decode()
    except OSError as error:
        return str(error)
def ready():
    ask("/a")
    print("ready", flush=True)
"""
PLAY = "ask('/a'); ask('/b'); ask('/pay', b'amount=5')"
"""What the tape holds."""
ESCAPE = "socket.socket().connect_ex(('192.0.2.1', 22))"
FOREIGN = "socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"


def child(code: str) -> list[str]:
    """A Python program as a command line; without installed packages it starts in half of the time."""
    return ["--", sys.executable, "-S", "-c", PRELUDE + code]


@dataclass
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str
    receipt: dict[str, object] = field(default_factory=dict)


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    """Says which path was asked for, and lets one be slow."""

    async def say(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    async def hold(request: web.Request) -> web.Response:
        for _ in range(1000):
            if request.transport is None or request.transport.is_closing():
                break
            await asyncio.sleep(0.02)
        return web.Response()

    pages = dict.fromkeys(("/a", "/b", "/c", "/pay"), say)
    with Origin({**pages, "/held": hold}) as running:
        yield running


@pytest.fixture(scope="module")
def env(origin: Origin) -> dict[str, str]:
    """What the children are told."""
    return {**os.environ, "ORIGIN": origin.url}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for the module."""
    return tmp_path_factory.mktemp("launcher") / "store"


@contextlib.contextmanager
def launched(
    env: Mapping[str, str], *arguments: str | Path, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """Run a launcher until its command is ready. Its command's stdin is ours to close."""
    process = prepared.start(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        **options,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "ready\n", (line, process.communicate())
        yield process
    finally:
        process.kill()
        process.communicate()


# ---- record ----------------------------------------------------------------------------------------

RECORDED = {
    # name of the run: (code, exit code, stdout, exchanges)
    "three": ("ask('/a'); sys.exit(3)", 3, "", 1),
    "two-hundred": ("ask('/a'); sys.exit(200)", 200, "", 1),
    "crash": ("ask('/a'); os.kill(os.getpid(), signal.SIGSEGV)", 139, "", 1),
    "abort": ("ask('/a'); os.abort()", 134, "", 1),
    "streams": ("print(sys.stdin.read()[::-1]); print('aside', file=sys.stderr)", 0, "olleh\n", 0),
    "tape": (PLAY, 0, "", 3),
}


@pytest.fixture(scope="module")
def recorded(env: dict[str, str], store: Path) -> dict[str, Done]:
    """All of `RECORDED`, some at a time."""

    def run(name: str) -> Done:
        done = prepared.run(
            [*COMMAND, "record", "--run", name, "--store", store, *child(RECORDED[name][0])],
            input="hello",
            text=True,
            env=env,
            timeout=60,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(RECORDED, pool.map(run, RECORDED), strict=True))


@pytest.mark.parametrize("name", RECORDED)
def test_record_is_transparent_and_seals_however_the_command_ends(
    recorded: dict[str, Done], store: Path, name: str
) -> None:
    """Exit code, stdin and stdout are the command's own; the receipt is on stderr; the run is sealed."""
    _, code, out, exchanges = RECORDED[name]
    done = recorded[name]
    assert (done.code, done.out) == (code, out)
    assert f"receipt of {name} " in done.err
    assert f"sealed: {exchanges} exchange{'s' * (exchanges != 1)} recorded" in done.err
    assert "Traceback" not in done.err
    receipt = read_json("receipt", name, "--store", store)
    assert (receipt["status"], receipt["child_exit"]) == ("sealed", code)
    assert receipt["end"] == f"the command ended with {code}"
    assert ("aside" in done.err) == (name == "streams")


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def test_an_effect_that_a_command_leaves_behind_is_recorded(
    env: dict[str, str], store: Path
) -> None:
    """It asks and ends, without a look at the answer: the run is open, and its effect done, before it is sealed."""
    code = """
from base64 import b64encode
from urllib.parse import urlsplit
proxy = urlsplit(os.environ['HTTP_PROXY'])
given = b64encode(f'{proxy.username}:{proxy.password}'.encode()).decode()
sock = socket.create_connection((proxy.hostname, proxy.port))
lines = [f"POST {os.environ['ORIGIN']}/pay HTTP/1.1", f"Host: {urlsplit(os.environ['ORIGIN']).netloc}"]
lines += [f'Proxy-Authorization: Basic {given}'] if proxy.username else []
sock.sendall('\\r\\n'.join([*lines, 'Content-Length: 2', '', 'hi']).encode())
"""
    for name in ("left-1", "left-2", "left-3"):
        done = playhead("record", "--run", name, "--store", store, *child(code), env=env)
        assert done.returncode == 0, done.stderr
        assert "sealed: 1 exchange recorded" in done.stderr, done.stderr
    again = playhead("replay", "left-1", "--store", store, *child(code), env=env)
    assert again.returncode == 0, again.stderr
    assert "FAITHFUL: replay of left-1 (sealed)" in again.stderr


def test_a_signal_to_the_launcher_is_the_commands(env: dict[str, str], store: Path) -> None:
    """It is passed on; the exit code is that of the signal, the run is sealed and the receipt printed."""

    def send(number: signal.Signals) -> tuple[int, str]:
        words = ["record", "--run", number.name, "--store", str(store)]
        code = child("ready(); sys.stdin.read()")
        with launched(env, *words, *code, process_group=0) as process:
            process.send_signal(number)
            assert process.stderr is not None
            return process.wait(20), process.stderr.read()

    with ThreadPoolExecutor(len(SIGNALS)) as pool:
        outcomes = list(pool.map(send, SIGNALS))
    for number, (code, said) in zip(SIGNALS, outcomes, strict=True):
        assert (number, code) == (number, 128 + number)
        assert f"receipt of {number.name} " in said
        assert ("KeyboardInterrupt" in said) == (number is signal.SIGINT)
        assert _status(store, number.name) is RunStatus.SEALED


def test_a_command_may_ignore_a_signal(env: dict[str, str], store: Path) -> None:
    """The launcher waits for it, whatever it was sent itself, and its run goes on."""
    code = (
        "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'not now\\n')); ready();"
        "sys.stdin.readline(); ask('/b')"
    )
    with launched(env, "record", "--run", "stubborn", "--store", store, *child(code)) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "not now\n"
        out, err = process.communicate("go on\n", timeout=10)
    assert (process.returncode, out) == (0, "")
    assert "sealed: 2 exchanges" in err


def test_what_was_under_way_when_the_launcher_was_killed_is_told(
    env: dict[str, str], store: Path, origin: Origin
) -> None:
    """An unchanged client is refused with the seq whose outcome nobody knows."""
    code = child("ready(); ask('/held', b'1')")
    with launched(env, "record", "--run", "held", "--store", store, *code) as process:
        wait_until(lambda: any("/held" in line for line in origin.requests))
        process.kill()
        process.communicate(timeout=10)
    done = playhead("replay", "held", "--store", store, *code, env=env)
    assert done.returncode == 121
    assert "seq 2 of the tape is this request; its outcome is unknown" in done.stderr


def test_a_run_whose_launcher_was_killed_is_recovered(env: dict[str, str], store: Path) -> None:
    """After kill -9 what was answered is there, and can be replayed."""
    code = child("ready(); sys.stdin.read()")
    with launched(env, "record", "--run", "orphan", "--store", store, *code) as process:
        process.kill()
        process.communicate(timeout=10)
    done = playhead("replay", "orphan", "--store", store, *child("print(ask('/a'))"), env=env)
    assert (done.returncode, done.stdout) == (0, "/a\n")
    runs = {run["id"]: run["status"] for run in read_json("runs", "--store", store)}
    assert runs["orphan"] == "recovered"


def test_no_stderr_is_no_reason_to_fail(env: dict[str, str], store: Path) -> None:
    """With stderr closed or without a reader: the command's exit code, and nothing of ours on its stdout."""
    code = child("ask('/a'); print('out'); sys.exit(4)")
    shut = ["sh", "-c", 'exec "$@" 2>&-', "sh"]
    # With and without a buffer before stderr, which the interpreter empties at its exit.
    env = {name: value for name, value in env.items() if name != "PYTHONUNBUFFERED"}
    unbuffered = {**env, "PYTHONUNBUFFERED": "1"}
    gone, ours = os.pipe()
    os.close(gone)
    try:
        for prefix, stderr, given in ((shut, None, env), ([], ours, env), ([], ours, unbuffered)):
            words = [*prefix, *COMMAND, "record", "--run", "mute", "--store", str(store), *code]
            with prepared.start(
                words, stdout=subprocess.PIPE, stderr=stderr, text=True, env=given
            ) as started:
                out, _ = started.communicate(timeout=30)
            assert (started.returncode, out) == (4, "out\n")
    finally:
        os.close(ours)


def test_a_process_group_outside_of_the_container_is_no_terminal(
    env: dict[str, str], store: Path
) -> None:
    """As for a container's first processes: their group has no number inside, and there is no terminal."""
    need("private process ids")
    inside = ("unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")
    done = subprocess.run(
        [*inside, *COMMAND, "record", "--run", "inside", "--store", store, *child("ask('/a')")],
        env=env,
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _status(store, "inside") is RunStatus.SEALED


# ---- a terminal ------------------------------------------------------------------------------------


class Terminal:
    """A terminal with a session of its own; what is typed goes to whoever is in its foreground."""

    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        self.ours, theirs = os.openpty()
        become = (
            "import fcntl, os, signal, sys, termios; os.setsid();"
            # What was started in the background of a script ignores it; whoever is at a terminal does not.
            "signal.signal(signal.SIGINT, signal.SIG_DFL);"
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", become, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**env, "TERM": "dumb"},
        )
        os.close(theirs)
        self.seen = ""

    def type(self, text: str) -> None:
        """Type."""
        os.write(self.ours, text.encode())

    def expect(self, text: str) -> None:
        """Wait until something is shown, and forget what came before."""
        deadline = time.monotonic() + 15
        with selectors.DefaultSelector() as selector:
            selector.register(self.ours, selectors.EVENT_READ)
            while text not in self.seen:
                assert selector.select(deadline - time.monotonic()), (text, self.seen)
                try:
                    self.seen += os.read(self.ours, 65536).decode()
                except OSError as error:  # everybody has left
                    raise AssertionError((text, self.seen)) from error
        self.seen = self.seen.partition(text)[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


@pytest.mark.parametrize("sandbox", ["", "--capture"] if FULL else ["--capture"])
def test_ctrl_c_is_the_commands_and_the_launcher_seals(
    env: dict[str, str], store: Path, sandbox: str
) -> None:
    """At a terminal the command reads what is typed, gets Ctrl-C, and its run is sealed all the same."""
    # Not one long read: a signal that comes just before it is noticed only after it.
    wait = "import time\nwhile True: time.sleep(0.05)"
    code = child(f"ready(); print('got ' + input(), flush=True)\n{wait}")
    name = f"typed{sandbox}"
    words = [*COMMAND, "record", *sandbox.split(), "--run", name, "--store", str(store), *code]
    with Terminal(words, env) as terminal:
        terminal.expect("ready")
        terminal.type("hello\n")
        terminal.expect("got hello")
        terminal.type("\x03")
        terminal.expect("KeyboardInterrupt")
        terminal.expect(f"receipt of {name} ")
        assert terminal.process.wait(10) == 130
    assert _status(store, name) is RunStatus.SEALED


@pytest.mark.parametrize("sandbox", ["", "--capture"] if FULL else [""])
def test_ctrl_z_gives_the_terminal_back_to_the_shell(
    env: dict[str, str], store: Path, sandbox: str
) -> None:
    """The command and the launcher stop together, and go on together in the foreground."""
    flags = [*sandbox.split(), "--run", f"paused{sandbox}", "--store", str(store)]
    words = " ".join(map(_quoted, [*COMMAND, "record", *flags]))
    code = " ".join(map(_quoted, child("ready(); print('got ' + input(), flush=True); ask('/b')")))
    script = f'{words} {code} | cat; echo "shell $?"; read word; fg; echo "end $word $?"'
    with Terminal(["bash", "-mc", script], env) as terminal:
        terminal.expect("ready")
        terminal.type("\x1a")
        terminal.expect("shell 148")
        terminal.type("word\n")
        terminal.type("hello\n")
        terminal.expect("got hello")
        terminal.expect("sealed: 2 exchanges")
        terminal.expect("end word 0")


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


# ---- replay ----------------------------------------------------------------------------------------

STUB = (
    "effects: [{match: 'POST http://127.0.0.1:*/refund', answer: {status: 201, text: stubbed}}]\n"
)
REPLAYED = {
    # case: (code, exit code, what the receipt or the message says)
    "faithful": (PLAY, 0, "FAITHFUL"),
    "another exit code": (f"{PLAY}; sys.exit(7)", 121, "exit code: recorded '0', asked '7'"),
    "changed": (PLAY.replace("5", "6"), 121, "recorded '5', asked '6'"),
    "extra": (f"{PLAY}; ask('/c')", 121, "refused 1"),
    "stub": (f"{PLAY}; print(ask('/refund', b'x'))", 121, "stubbed 1"),
    "unused": ("ask('/a'); ask('/b')", 122, "left on the tape"),
    "unused and extra": ("ask('/a'); ask('/c')", 121, "unused 2"),
    "no request": ("sys.exit(9)", 125, "the command failed by itself, with 9, and made no request"),
    "escape": (f"{PLAY}; {ESCAPE}", 123, "tcp 192.0.2.1:22 by python"),
    "escape and changed": (f"{ESCAPE}; ask('/c')", 123, "tcp 192.0.2.1:22"),
    "escape, no request": (ESCAPE, 125, "tcp 192.0.2.1:22"),
    "foreign": (f"{PLAY}; {FOREIGN}", 123, "udp 192.0.2.1:9"),
    "foreign and changed": (f"{FOREIGN}; ask('/c')", 123, "udp 192.0.2.1:9"),
    "foreign, no request": (FOREIGN, 125, "udp 192.0.2.1:9"),
}


@pytest.fixture(scope="module")
def replayed(
    env: dict[str, str], store: Path, recorded: dict[str, Done], origin: Origin
) -> dict[str, Done]:
    """All of `REPLAYED`, some at a time; nothing reaches the origin."""
    file = store.parent / "stub.yaml"
    file.write_text(STUB)
    before = len(origin.requests)

    def run(case: str) -> Done:
        written = store.parent / f"{case}.json"
        where = ["--store", str(store), "-c", str(file), "--receipt", str(written)]
        where += ["--no-sandbox"] if "foreign" in case else []
        done = playhead("replay", "tape", *where, *child(_held(REPLAYED[case][0])), env=env)
        return Done(done.returncode, done.stdout, done.stderr, json.loads(written.read_text()))

    with ThreadPoolExecutor(4) as pool:
        outcomes = dict(zip(REPLAYED, pool.map(run, REPLAYED), strict=True))
    assert len(origin.requests) == before
    return outcomes


def _held(code: str) -> str:
    """Keep foreign sockets open long enough to be sampled, which is what sampling promises."""
    if FOREIGN not in code:
        return code
    held = "peer = socket.socket(type=socket.SOCK_DGRAM); peer.connect(('192.0.2.1', 9))"
    return f"import time; {code.replace(FOREIGN, held)}; time.sleep(0.5)"


@pytest.mark.parametrize("case", REPLAYED)
def test_replay_says_whether_it_was_faithful(
    replayed: dict[str, Done], store: Path, case: str
) -> None:
    """Exit codes 125, 123, 121, 122 in this precedence, else the command's own; the receipt agrees."""
    if "foreign" in case:
        need("a route off this machine")
    _, code, said = REPLAYED[case]
    done = replayed[case]
    assert done.code == code, done.err
    assert said in done.err
    outside = "foreign" in case
    assert ("not contained" in done.err) == outside
    assert ("contained: 0 packets left the machine" in done.err) == (not outside)
    receipt = done.receipt
    assert receipt["exit_code"] == (code if code in (121, 122, 123, 125) else 0)
    assert receipt["faithful"] == (receipt["exit_code"] == 0)
    assert receipt["parent"] == "tape"
    again = playhead("receipt", str(receipt["run"]), "--store", store, "--json")
    assert json.loads(again.stdout) == receipt


def test_a_faithful_replay_ends_as_its_command(env: dict[str, str], store: Path) -> None:
    """With the code that it ended with while it was recorded, too."""
    code = "ask('/a'); sys.exit(7)"
    done = playhead("record", "--run", "seven", "--store", store, *child(code), env=env)
    assert done.returncode == 7
    again = playhead("replay", "seven", "--store", store, *child(code), env=env)
    assert again.returncode == 7
    assert "FAITHFUL: replay of seven (sealed)" in again.stderr


@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_process_that_outlives_the_command_is_named(
    env: dict[str, str], tmp_path: Path, sandboxed: bool
) -> None:
    """What it does later is missed: the recording warns, and a replay is not plainly faithful, with the command's exit code."""
    left = "import subprocess; end = subprocess.DEVNULL\n"
    left += "stays = subprocess.Popen(['sleep', '60'], stdin=end, stdout=end, stderr=end)\n"
    left += "ask('/a'); print(stays.pid)"
    done = playhead("record", "--run", "left", "--store", tmp_path, *child(left), env=env)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    assert f"1 process of the command still runs ({int(done.stdout)} sleep)" in done.stderr
    flags: list[str | Path] = ["--store", tmp_path]
    flags += ["--no-sandbox"] * (not sandboxed)
    again = playhead("replay", "left", *flags, *child(left), env=env)
    if not sandboxed:
        os.kill(int(again.stdout), signal.SIGKILL)
    assert again.returncode == 0, again.stderr
    assert "FAITHFUL BUT FOR processes that outlived the command" in again.stderr
    told = "was ended with the sandbox (sleep)" if sandboxed else "still runs ("
    assert f"1 process of the command {told}" in again.stderr


def test_the_newest_recording_of_a_name_is_replayed(env: dict[str, str], tmp_path: Path) -> None:
    """That has an exchange; a line says which it is, and `record` which name it took. `NAME~1` is the first."""
    store = tmp_path / "store"
    for code, taken in (("ask('/a')", ""), ("ask('/b')", "again~2"), ("pass", "again~3")):
        done = playhead("record", "--run", "again", "--store", store, *child(code), env=env)
        assert done.returncode == 0, done.stderr
        assert ("the name 'again' was taken" in done.stderr) is bool(taken)
        told = "`replay again` plays it, `show again` shows the older one"
        assert (told in done.stderr) is (taken == "again~2")  # the third has nothing to play
        assert f"recorded as {taken!r}" in done.stderr or not taken
    asked = {"again": ("ask('/b')", "again~2"), "again~1": ("ask('/a')", "again")}
    for name, (code, played) in asked.items():
        done = playhead("replay", name, "--store", store, *child(code), env=env)
        assert done.returncode == 0, done.stderr
        assert f"playing {played!r}" in done.stderr
        assert f"FAITHFUL: replay of {played} (sealed)" in done.stderr
        branched = playhead("branch", name, "--at", "1", "--store", store, *child(code), env=env)
        assert branched.returncode == 0, branched.stderr
        assert f"receipt of {played}@" in branched.stderr
        assert "nothing is changed" in branched.stderr
    exact = playhead("replay", "again~2", "--store", store, *child("ask('/b')"), env=env)
    assert "playing" not in exact.stderr
    assert exact.returncode == 0


def test_the_receipt_as_json_and_not_at_all(
    env: dict[str, str], store: Path, recorded: dict[str, Done], tmp_path: Path
) -> None:
    """`--json` prints JSON instead of text, `-q` nothing; where it cannot be written nothing is run."""
    nowhere = tmp_path / "missing" / "receipt.json"
    done = playhead("replay", "--json", "tape", "--store", store, *child(PLAY), env=env)
    assert json.loads(done.stderr)["faithful"] is True
    quiet = ["replay", "-q", "tape", "--receipt", str(nowhere), "--store", str(store)]
    done = playhead(*quiet, *child(f"{PLAY}; print('out')"), env=env)
    assert (done.returncode, done.stdout) == (125, "")
    assert "cannot write the receipt to" in done.stderr, done.stderr
    done = playhead("replay", "-q", "tape", "--store", store, "--", "true", env=env)
    why = "nothing was tested: the agent made no request through the proxy"
    assert (done.returncode, done.stderr) == (125, f"playhead: exit code 125: {why}\n")


def test_what_cannot_be_replayed_is_untestable(
    env: dict[str, str], store: Path, recorded: dict[str, Done], replayed: dict[str, Done]
) -> None:
    """125 and a sentence: unknown run with the nearest names, a run still open, a playback, no such command."""
    busy = ["record", "--run", "busy", "--store", str(store)]
    rows = {
        ("tabe", "true"): ("unknown run 'tabe'", "nearest: tape"),
        ("busy", "true"): ("'busy' is still being recorded", "playhead seal busy"),
        ("tape@1", "true"): ("'tape@1' is a playback of 'tape'", "replay 'tape' instead"),
        ("tape", "no-such-command"): (
            "cannot start 'no-such-command': no such program in PATH",
            "is it spelled right",
        ),
    }
    still = child("ready(); sys.stdin.read()")
    with launched(env, *busy, *still), ThreadPoolExecutor(4) as pool:
        commands = [("replay", run, "--store", store, "--", command) for run, command in rows]
        outcomes = list(pool.map(lambda words: playhead(*words, env=env), commands))
    for (problem, hint), done in zip(rows.values(), outcomes, strict=True):
        assert (done.returncode, done.stdout) == (125, "")
        first, second, *more = done.stderr.splitlines()
        assert problem in first
        assert hint in second
        assert not more


def test_a_command_that_cannot_be_started_is_no_run(env: dict[str, str], tmp_path: Path) -> None:
    """`record` says so and ends with 2."""
    store = tmp_path / "store"
    done = playhead("record", "--store", store, "--", "no-such-command", env=env)
    assert (done.returncode, done.stdout) == (2, "")
    problem, hint = done.stderr.splitlines()
    assert problem == "playhead: cannot start 'no-such-command': no such program in PATH"
    assert "--" not in hint  # it was given
    done = playhead("record", "--store", store, "no-such-command", env=env)
    assert "comes after --, as in: playhead record ... -- " in done.stderr.splitlines()[-1]
    done = playhead("record", "--store", store, "a-name", "--", "python", env=env)
    assert "a-name stands before `--`" in done.stderr
    assert read_json("runs", "--store", store) == []


def test_a_launcher_may_be_sealed_from_outside(env: dict[str, str], store: Path) -> None:
    """`playhead seal` ends its run while the command lives; what the command asks then is another run."""
    code = child("ready(); sys.stdin.readline(); print(ask('/b'), flush=True)")
    with launched(env, "record", "--run", "outside", "--store", store, *code) as process:
        done = playhead("seal", "outside", "--store", store)
        assert done.stdout == "run outside: sealed, 1 request\n"
        out, _ = process.communicate("go on\n", timeout=10)
    assert (process.returncode, out) == (0, "/b\n")
    wait_until(lambda: _status(store, "outside~2") is RunStatus.SEALED)


def _status(store: Path, name: str) -> RunStatus:
    with Store.open(store, readonly=True) as opened:
        return opened.runs.get(name).status
