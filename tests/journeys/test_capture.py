"""Recording with the filter of `connect`: what a command does comes out as without Playhead, and what it asks over HTTP is on the tape."""

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.tests.support.apart import told_by
from playhead.tests.support.capture_checks import ASKS, CHECKS, FULL, UNREADABLE
from playhead.tests.support.needs import has, need
from playhead.tests.support.process import playhead, wait_until

NAMES = [*CHECKS, *FULL] if os.environ.get("PLAYHEAD_FULL") else [*CHECKS]
PROGRAMS = {
    "ssh-agent": "ssh-agent",
    "a set-uid program": "root",
    "Node's fetch": "node",
    "bubblewrap": "bubblewrap",
    "who traces": "strace",
    "gdb": "gdb",
    "sudo": "sudo",
    "a program of Go": "go",
    "Chromium": "Chromium",
    "docker's client": "docker",
    "docker's daemon": "a docker daemon",
    "PostgreSQL, nobody listens": "psql",
    "PostgreSQL, by TCP": "initdb",
    "PostgreSQL, by its Unix socket": "initdb",
    "a tool of UDP": "dig",
    "Chromium by Playwright": "playwright-core",
    "npm": "npm",
    "pip": "pip",
    "ssh, nobody listens": "ssh",
    "ssh, with its agent": "a server of SSH",
}
USERS = {"root": "root", "user": ""}
if not os.environ.get("PLAYHEAD_FULL"):
    # One of them: what differs for an ordinary user, who may gain no rights, are two of the checks.
    del USERS["user" if has("root") else "root"]


@pytest.fixture(scope="module", params=USERS)
def seen(request: pytest.FixtureRequest) -> Any:
    """What the checks gave, by themselves and while they were recorded."""
    need(*filter(None, [USERS[request.param]]))
    return told_by("capture_world", request.param, *NAMES, timeout_s=600)


def _is_root(seen: dict[str, Any]) -> bool:
    return not seen["receipt"]["capture"]["no_new_privileges"]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_finds_the_world_as_it_is(seen: dict[str, Any], name: str) -> None:
    """The same output, whoever listens, asks or answers."""
    if name in PROGRAMS:
        need(PROGRAMS[name])
    if name in ("a set-uid program", "sudo") and not _is_root(seen):
        pytest.skip("needs root: the filter of an ordinary user lets nobody gain rights")
    assert seen["told"][name] == seen["direct"][name]


def test_all_http_is_on_the_tape(seen: dict[str, Any]) -> None:
    """Each request once, and nothing was kept from anybody; what passed untouched is listed."""
    receipt = seen["receipt"]
    assert seen["code"] == 0
    names = [name for name in NAMES if _is_root(seen) or name != UNREADABLE]
    expected = sum(ASKS[name] for name in names)
    # A browser asks more, for itself.
    assert receipt["counts"]["recorded"] - expected in range(100 if "Chromium" in NAMES else 1)
    assert receipt["egress"] == []
    passed = {
        (row["host"], row["why"])
        for row in receipt["capture"]["passed"]
        if "chrom" not in row["process"]
    }
    assert passed == {
        ("pinned.example.test", "distrusts"),
        ("203.0.113.22", "no HTTP"),
        ("203.0.113.23", "no HTTP"),
    }
    assert bool(receipt["capture"]["unseen"]) is not _is_root(seen)
    assert any("passed untouched" in text for text in receipt["unrecorded"])
    assert any("sudo" in text for text in receipt["warnings"]) is not _is_root(seen)


def test_auto_is_on_where_it_changes_nothing(seen: dict[str, Any]) -> None:
    """For root; an ordinary user's sudo would have no effect."""
    off = seen["auto"]["off"]
    assert off == "" if _is_root(seen) else "(EACCES)" in off


# ---- where things go wrong ---------------------------------------------------------------------------

_PRELUDE = """
import asyncio, errno, os, signal, socket, subprocess, sys, threading, time
echo, full, closed = map(int, sys.argv[1:4])
def say(port):
    with socket.create_connection(("127.0.0.1", port), 20) as sock:
        sock.sendall(b"\\0hello")
        sock.shutdown(socket.SHUT_WR)
        return sock.makefile("rb").read()
def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(one) for one in file.read().split()]
"""
_TRAPS = {
    "a slow upstream holds nobody else up": """
slow = threading.Thread(target=lambda: socket.socket().connect_ex(("127.0.0.1", full)), daemon=True)
slow.start()
print(*[say(echo) for _ in range(3)], slow.is_alive(), flush=True)
os._exit(0)
""",
    "who waits for so long alone": """
import struct
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, 200_000))
began = time.monotonic()
print(sock.connect_ex(("127.0.0.1", full)) in (errno.EINPROGRESS, errno.EAGAIN), time.monotonic() - began < 5)
""",
    "QUIC is refused": """
sock = socket.socket(type=socket.SOCK_DGRAM)
sock.setblocking(False)
print(errno.errorcode[sock.connect_ex(("127.0.0.1", 443))])
""",
    "who asks again how far it is": """
sock = socket.socket()
sock.setblocking(False)
first = sock.connect_ex(("127.0.0.1", echo))
told = set()
while (now := sock.connect_ex(("127.0.0.1", echo))) != errno.EISCONN:
    told.add(now)
print(first in (0, errno.EINPROGRESS), told <= {0, errno.EALREADY})
""",
    "the supervisor is killed": """
say(echo)
launcher = os.getppid()
for pid in children(launcher):
    if pid != os.getpid():
        os.kill(pid, signal.SIGKILL)
print(say(echo))
""",
}
TOLD = {
    "a slow upstream holds nobody else up": "b'\\x00hello' b'\\x00hello' b'\\x00hello' True",
    "who waits for so long alone": "True True",
    "QUIC is refused": "ECONNREFUSED",
    "who asks again how far it is": "True True",
    "the supervisor is killed": "b'\\x00hello'",
}
_ORPHAN = """
os.kill(os.getppid(), signal.SIGKILL)
while os.getppid() == int(sys.argv[4]):
    time.sleep(0.01)
with open(sys.argv[5] + "~", "wb") as file:
    file.write(say(echo))
os.rename(sys.argv[5] + "~", sys.argv[5])
"""


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[list[int]]:
    """A server that says again what it is told, one that takes no more connections, and a port without any."""
    with (
        socket.create_server(("127.0.0.1", 0)) as echo,
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        socket.socket() as closed,
    ):
        closed.bind(("127.0.0.1", 0))
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())

        def work() -> None:
            while True:
                try:
                    peer, _ = echo.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(peer.makefile("rb").read())

        threading.Thread(target=work, daemon=True).start()
        found = [sock.getsockname()[1] for sock in (echo, full, closed)]
        settings = f"sandbox: {{record: notify, ports: {found}}}\n"
        (tmp_path / "playhead.yaml").write_text(settings)
        yield found
        echo.shutdown(socket.SHUT_RDWR)
        for sock in waiting:
            sock.close()


def _record(folder: Path, code: str, *words: object) -> tuple[str, dict[str, Any]]:
    """Record a program; give what it printed, and the receipt."""
    flags: list[str | Path] = [
        "--json",
        "-c",
        folder / "playhead.yaml",
        "--store",
        folder / "store",
    ]
    command = [sys.executable, "-S", "-c", _PRELUDE + code, *map(str, words)]
    done = playhead("record", *flags, "--", *command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), json.loads(done.stderr[done.stderr.index("{\n") :])


@pytest.mark.parametrize("name", _TRAPS)
def test_what_goes_wrong_does_not_break_the_command(
    ports: list[int], tmp_path: Path, name: str
) -> None:
    """It finds what it would find without us, and the receipt says what was not seen."""
    need("a filter of connect")
    told, receipt = _record(tmp_path, _TRAPS[name], *ports)
    assert told == TOLD[name]
    assert receipt["capture"]["lost"] is (name == "the supervisor is killed")
    assert receipt["capture"]["quic_refused"] == (name == "QUIC is refused")
    missed = [one for one in receipt["unrecorded"] if "the capture ended before" in one]
    assert bool(missed) is receipt["capture"]["lost"]
    if missed:  # what was led to the proxy until then is not forgotten
        assert receipt["capture"]["taken"] == 1


def test_a_command_outlives_a_killed_recording(ports: list[int], tmp_path: Path) -> None:
    """Its connections go on as if nobody had looked."""
    need("a filter of connect")
    code = f"{_PRELUDE}import os; sys.argv.append(str(os.getppid())); sys.argv.append({str(tmp_path / 'said')!r})"
    flags: list[str | Path] = ["-c", tmp_path / "playhead.yaml", "--store", tmp_path / "store"]
    command = [sys.executable, "-S", "-c", f"{code}{_ORPHAN}", *map(str, ports)]
    playhead("record", *flags, "--", *command)
    wait_until((tmp_path / "said").exists, 20)
    assert (tmp_path / "said").read_bytes() == b"\0hello"


def test_a_recording_within_a_recording(ports: list[int], tmp_path: Path) -> None:
    """With `auto` the inner one does without; asked for by name it says why there can be none."""
    need("a filter of connect")
    inner = [sys.executable, "-m", "playhead.proxy.cli", "record", "--json", "--store"]
    code = f"""
import json
def run(*more):
    words = {inner!r} + [os.getcwd() + "/inner", *more, "--", "true"]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, done.stderr
code, said = run("--sandbox", "auto")
print(code, json.loads(said[said.index("{{\\n") :])["capture"]["off"].endswith("(EBUSY)"))
code, said = run("--sandbox", "notify")
print(code, "(EBUSY)" in said, "Traceback" in said)
"""
    need("root")  # there would be none for anybody else
    told, _ = _record(tmp_path, code, *ports)
    assert told.splitlines() == ["0 True", "2 True False"]
