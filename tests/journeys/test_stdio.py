"""Servers over standard input and output: recorded through `playhead stdio`, and played without them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from playhead.store import Store
from playhead.tests.support.needs import need
from playhead.tests.support.process import COMMAND, playhead
from playhead.timeline import build

CLIENTS = Path(__file__).with_name("clients")
Step = str | int | bool | None


def request(number: int | str, method: str, **params: object) -> str:
    """A request of JSON-RPC."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, **params: object) -> str:
    """A message that is not answered."""
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


ROOTS = '{"jsonrpc": "2.0", "id": "s1", "result": {"roots": []}}'
EVERYTHING: list[Step] = [
    *(request(1, "echo", word="first"), 1),
    # two at once, answered in the other order
    *(request(2, "swap"), request(3, "swap"), 2),
    # the server asks back before it answers
    *(request(4, "ask"), 1, ROOTS, 1),
    # nobody asked
    *(notification("push"), 1),
    # no JSON, in both directions
    *(request(5, "words"), 2, "\x00\xff\xfe", 1),
    # never answered, and called off
    *(request("h", "hold"), notification("notifications/cancelled", requestId="h")),
    *(request(6, "large"), 1),
    request(7, "end"),
    True,
]


class Done(NamedTuple):
    """A run of the client."""

    code: int
    out: str
    err: str
    told: bytes
    """What the server was told."""


def run(
    folder: Path, words: list[str], steps: list[Step], command: list[str] | None = None
) -> Done:
    """Run the client around the server, within `playhead WORDS`."""
    log, server = folder / "log", folder / "server.py"
    log.unlink(missing_ok=True)
    env = {"LOG": str(log)}
    agent = [sys.executable, "-E", "-S", str(CLIENTS / "pipe_client.py"), json.dumps(steps)]
    started = command or [*COMMAND, "stdio", "--", sys.executable, "-E", "-S", str(server)]
    done = playhead(*words, "--store", folder / "store", "--", *agent, *started, env=env)
    return Done(
        done.returncode, done.stdout, done.stderr, log.read_bytes() if log.exists() else b""
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds the server, where it can be removed, and the store."""
    shutil.copy(CLIENTS / "pipe_server.py", tmp_path / "server.py")
    return tmp_path


def test_a_server_on_a_pipe_is_played_without_it(folder: Path) -> None:
    """Every line comes again in its order, with the server's file gone and nothing of it started; in the sandbox, too."""
    recorded = run(folder, ["record", "--run", "r"], EVERYTHING)
    assert recorded.code == 0, recorded.err
    lines = recorded.out.splitlines()
    assert [lines[0], lines[-1]] == [
        repr(b'{"jsonrpc": "2.0", "id": 1, "result": {"word": "first"}}\n'),
        repr(b'{"jsonrpc": "2.0", "id') + " 4",
    ]
    assert recorded.told.count(b"\n") == len([step for step in EVERYTHING if isinstance(step, str)])
    (folder / "server.py").unlink()
    replayed = run(folder, ["replay", "r", "--no-sandbox"], EVERYTHING)
    assert (replayed.code, replayed.out, replayed.told) == (0, recorded.out, b""), replayed.err
    with Store.open(folder / "store", readonly=True) as store:
        receipt = build(store, store.runs.get("r@1"))
        urls = {one.request.url for one in store.exchanges.all(store.runs.get("r"))}
    assert receipt.faithful is True, receipt.to_json()
    assert urls == {"http://stdio.playhead.internal/server.py"}


TWO = """
import json, subprocess, sys
*command, moved = sys.argv[1:]
def ask(server, number, word):
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": "echo", "params": {"word": word}})
    server.stdin.write(line + "\\n")
    server.stdin.flush()
    print(server.stdout.readline(), flush=True)
def start():
    server = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    ask(server, 1, "begin")
    return server
a, b = start(), start()
ask(a, 2, "use prod")
ask(b, 2, "use staging")
ask(a if moved == "moved" else b, 3, "drop")
for server in (a, b):
    server.stdin.close()
    server.wait()
"""


def test_a_call_that_moves_to_another_server_of_the_name_is_refused(folder: Path) -> None:
    """Of two that begin alike; each call to its own is exact."""
    server = [*COMMAND, "stdio", "--", sys.executable, "-E", "-S", str(folder / "server.py")]
    agent, env = [sys.executable, "-E", "-S", "-c", TWO, *server], {"LOG": str(folder / "log")}
    store = ["--store", str(folder / "store")]
    recorded = playhead("record", "--run", "r", *store, "--", *agent, "", env=env)
    assert recorded.returncode == 0, recorded.stderr
    replays = {}
    for moved in ("", "moved"):
        file = folder / f"receipt{moved}.json"
        words = ["replay", "r", "--no-sandbox", *store, "--receipt", str(file)]
        done = playhead(*words, "--", *agent, moved, env=env)
        replays[moved] = done.returncode, json.loads(file.read_text())
    code, receipt = replays[""]
    assert (code, receipt["matched"]) == (0, {"exact": receipt["requests"]})
    code, receipt = replays["moved"]
    assert code == 121
    [differences] = [row["differences"] for row in receipt["divergences"] if row["differences"]]
    assert [one["place"] for one in differences] == ["header playhead-stdio-instance"]


def test_another_request_is_answered_by_an_error(folder: Path) -> None:
    """It names what is nearest on the tape, under the id of now, and the client goes on; so under other ids."""
    steps: list[Step] = [
        request(1, "echo", word="tea"),
        1,
        # Told apart by a word: which of two equal requests at once is which, is chance.
        request(2, "swap", word="first"),
        request(3, "swap", word="second"),
        2,
    ]
    recorded = run(folder, ["record", "--run", "r"], steps)
    swapped = [request("b", "swap", word="first"), request("a", "swap", word="second")]
    steps = [request("x", "roots/lost"), 1, *swapped, 2]
    replayed = run(folder, ["replay", "r", "--no-sandbox"], steps)
    assert (recorded.code, replayed.code, replayed.told) == (0, 121, b"")
    error, *answers = replayed.out.splitlines()
    assert "Playhead refused" in error
    assert "recorded" in error
    assert '"id":"x"' in error
    assert [line[line.index('"id"') :].split(",")[0] for line in answers[:2]] == [
        '"id": "a"',
        '"id": "b"',
    ]


@pytest.mark.parametrize(("step", "number"), [(None, signal.SIGKILL), (False, signal.SIGTERM)])
def test_kill_loses_nothing_that_was_read(folder: Path, step: Step, number: int) -> None:
    """`kill -9` of `playhead stdio`, and SIGTERM to the server behind it, are the client's end: they play as that."""
    steps: list[Step] = [request(1, "echo"), 1, request(2, "hold"), request(3, "echo"), 1, step]
    recorded = run(folder, ["record", "--run", "r"], steps)
    replayed = run(folder, ["replay", "r", "--no-sandbox"], steps)
    assert f"b'' {-number}" in recorded.out
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err


def test_a_recording_in_the_sandbox_reaches_the_server(folder: Path) -> None:
    """Its socket is made in the sandbox, and the proxy outside connects to it; a replay in the sandbox needs none."""
    need("a sandbox")
    steps: list[Step] = [request(1, "echo"), 1]
    recorded = run(folder, ["record", "--run", "r", "--capture"], steps)
    assert recorded.code == 0, recorded.err
    (folder / "server.py").unlink()
    replayed = run(folder, ["replay", "r"], steps)
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err


def test_without_a_proxy_it_becomes_the_server(folder: Path) -> None:
    """It says so on stderr; where the run's own proxy is gone, it starts nothing."""
    env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    env["LOG"] = str(folder / "log")
    words = [*COMMAND, "stdio", "--", sys.executable, str(folder / "server.py")]
    asked = request(1, "echo").encode() + b"\n"
    done = subprocess.run(words, input=asked, env=env, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout)["id"] == 1
    assert b"no proxy of Playhead's was found" in done.stderr
    env["PLAYHEAD_PROXY"] = "http://127.0.0.1:9"
    done = subprocess.run(words, input=asked, env=env, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"cannot be asked" in done.stderr


def test_a_server_that_cannot_be_started_is_named(folder: Path) -> None:
    """The agent sees its end, and a person why."""
    words = [*COMMAND, "stdio", "--", str(folder / "missing")]
    done = run(folder, ["record", "--run", "r"], [True], words)
    assert "b'' 2" in done.out
    assert "missing': no such file" in done.err
