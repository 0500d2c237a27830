"""Path sockets and named pipes of programs outside, for real: refused and named, or let in by a live rule."""

import contextlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playhead.store import Store
from playhead.tests.support.machine import SOMEBODY
from playhead.tests.support.needs import need
from playhead.tests.support.process import playhead
from playhead.tests.support.recordings import ask, record_run

ASK = """
import os, socket, sys, threading, time, urllib.request
asked = urllib.request.Request("https://api.test/v1/runs", b"", {"content-type": "application/json"})
urllib.request.urlopen(asked).read()

def connect(path):
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
    except OSError as error:
        return type(error).__name__
    sock.sendall(b"from inside")
    return sock.recv(100).decode()

kept = []
def answer(own):
    kept.append(own.accept()[0])
    kept[-1].sendall(b"own")

def wait_for(path):
    open("ready", "w").close()
    while not os.path.exists(path):
        time.sleep(0.01)
    return path
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a short path and a tape, in which we are."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        with Store.open(folder / "store") as opened:
            record_run(opened, "tape", [ask()])
        for name in ("work", "runtime"):
            (folder / name).mkdir()
        monkeypatch.chdir(folder / "work")
        yield folder


@contextlib.contextmanager
def answering(path: Path, *, late: Path | None = None) -> Iterator[list[bytes]]:
    """Have somebody answer at a path, once another is there; give what was said."""
    heard: list[bytes] = []
    over = threading.Event()

    def work() -> None:
        while late is not None and not late.exists() and not over.is_set():
            time.sleep(0.01)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
            sock.listen()
            ready.set()
            sock.settimeout(0.05)
            while not over.is_set():
                with contextlib.suppress(TimeoutError):
                    peer, _ = sock.accept()
                    with peer:
                        heard.append(peer.recv(100))
                        peer.sendall(b"from outside")

    ready = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    if late is None:
        assert ready.wait(5)
    try:
        yield heard
    finally:
        over.set()
        thread.join()


def replay(place: Path, code: str, *flags: str, live: Path | None = None) -> tuple[Any, Any]:
    """Replay some code; give how it ended, and the receipt."""
    rule = {"match": f"unix://{live}", "reason": "the test's"}
    file = place / "playhead.yaml"
    config = {"store": str(place / "store"), "live": [rule] if live else []}
    file.write_text(json.dumps(config))
    written = place / "receipt.json"
    words = [
        "replay",
        "tape",
        "--in-place",
        "-c",
        str(file),
        "--receipt",
        str(written),
        *flags,
        "--",
    ]
    done = playhead(*words, sys.executable, "-S", "-c", ASK + code)
    return done, json.loads(written.read_text())


def test_a_socket_that_was_there_before_is_nothing(place: Path) -> None:
    """Whoever listens at it hears nothing, and nothing is said of it."""
    with answering(place / "socket") as heard:
        done, receipt = replay(place, f"print(connect({str(place / 'socket')!r}))")
    assert (done.returncode, done.stdout, heard) == (0, "ConnectionRefusedError\n", [])
    assert receipt["sandbox"]["sockets_used"] == []
    assert receipt["sandbox"]["sockets_watched"] is True


def test_a_socket_that_came_later_is_refused_and_named(place: Path) -> None:
    """123: who listens there hears nothing, and the receipt says who tried."""
    path = place / "late"
    with answering(path, late=place / "work" / "ready") as heard:
        done, receipt = replay(place, f"print(connect(wait_for({str(path)!r})))")
    assert (done.returncode, done.stdout, heard) == (123, "ConnectionRefusedError\n", [])
    (row,) = receipt["egress"]
    assert (row["target"], row["by"], row["protocol"], row["count"]) == (
        f"unix://{path}",
        "sandbox",
        "unix",
        1,
    )
    (used,) = receipt["sandbox"]["sockets_used"]
    assert (used["path"], used["count"]) == (str(path), 1)
    assert f"unix://{path}" in done.stderr


@pytest.mark.parametrize("when", ["before", "in a hidden folder"])
def test_a_live_rule_lets_a_socket_in(
    place: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path, wherever that is; the receipt lists it as live, and the level says so."""
    path = place / "runtime" / "socket"
    if when == "in a hidden folder":
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(place / "runtime"))
    with answering(path) as heard:
        done, receipt = replay(place, f"print(connect({str(path)!r}))", live=path)
    assert (done.returncode, done.stdout) == (0, "from outside\n"), done.stderr
    assert heard == [b"from inside"]
    (row,) = receipt["sandbox"]["services"]
    assert (row["service"], row["reason"], row["connections"]) == (
        f"unix://{path}",
        "the test's",
        1,
    )
    assert row["bytes_sent"] is None
    assert receipt["level"].startswith("1:")


def test_a_rule_is_for_the_socket_that_was_there(place: Path) -> None:
    """Another one that is moved to its place is another."""
    named, other = place / "named", place / "other"
    code = f"wait_for({str(other)!r})\ntry: os.rename({str(other)!r}, {str(named)!r})\nexcept OSError as error: pass\n"
    with answering(named) as heard, answering(other, late=place / "work" / "ready") as strange:
        done, _ = replay(
            place, code + f"print(connect({str(named)!r}), connect({str(other)!r}))", live=named
        )
    assert strange == []
    assert done.returncode == 123, done.stderr
    assert heard == [b"from inside"]


OWN = {
    "a server of the command's own": """
with socket.socket(socket.AF_UNIX) as own:
    own.bind("own")
    own.listen()
    threading.Thread(target=answer, args=(own,)).start()
    print(connect("own"))
""",
    "by an abstract name": """
with socket.socket(socket.AF_UNIX) as own:
    own.bind("\\0own")
    own.listen()
    threading.Thread(target=answer, args=(own,)).start()
    print(connect("\\0own"))
""",
    "a server in another process": """
import multiprocessing.connection
def serve(ready):
    with multiprocessing.connection.Listener("own", "AF_UNIX") as own:
        ready.set()
        own.accept().send("own")
import multiprocessing
context = multiprocessing.get_context("fork")
ready = context.Event()
child = context.Process(target=serve, args=(ready,))
child.start()
ready.wait()
print(multiprocessing.connection.Client("own").recv())
child.join()
""",
    "a path that is longer than an address": """
os.makedirs("x" * 100)
os.chdir("x" * 100)
with socket.socket(socket.AF_UNIX) as own:
    own.bind("own")
    own.listen()
    threading.Thread(target=answer, args=(own,)).start()
    print(connect("own"))
""",
    "a connection that does not wait": """
with socket.socket(socket.AF_UNIX) as own:
    own.bind("own")
    own.listen()
    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    sock.connect("own")
    own.accept()[0].sendall(b"own")
    sock.setblocking(True)
    print(sock.recv(10).decode())
""",
    "more connections than are taken": """
with socket.socket(socket.AF_UNIX) as own:
    own.bind("own")
    own.listen(1)
    threads = [threading.Thread(target=connect, args=("own",)) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        answer(own)
    for thread in threads:
        thread.join()
    print("own")
""",
}


@pytest.mark.parametrize("flags", [(), ("--sandbox-files",)], ids=["", "files"])
def test_a_command_connects_to_itself(place: Path, flags: tuple[str, ...]) -> None:
    """As ever: its own sockets are nobody else's. All programs in one command, each in a folder of its own."""
    if flags:
        need("bubblewrap")
    code = f"""
home = os.getcwd()
for number, (what, program) in enumerate({OWN!r}.items()):
    os.mkdir(str(number))
    os.chdir(str(number))
    print(what, end=": ", flush=True)
    try:
        exec(program, globals())
    except BaseException as error:
        print(repr(error))
    os.chdir(home)
"""
    done, receipt = replay(place, code, *flags)
    assert done.stdout.splitlines() == [f"{what}: own" for what in OWN], done.stderr
    assert done.returncode == 0
    assert receipt["sandbox"]["sockets_used"] == []


def test_errors_are_the_kernels(place: Path) -> None:
    """For whoever looks at them."""
    code = "open('file', 'w').close(); print(*map(connect, ('missing', 'file', 'file/socket')))"
    done, receipt = replay(place, code)
    expected = ["FileNotFoundError", "ConnectionRefusedError", "NotADirectoryError"]
    assert (done.returncode, done.stdout.split()) == (0, expected), done.stderr
    assert receipt["sandbox"]["sockets_used"] == []


def test_a_named_pipe_of_somebody_else_is_closed(place: Path) -> None:
    """Whoever reads it hears nothing; a live rule lets it in, and one of the command's own is its own."""
    pipe = place / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    code = f"""
try:
    os.write(os.open({str(pipe)!r}, os.O_WRONLY | os.O_NONBLOCK), b"x")
    print("wrote")
except OSError as error:
    print(error.strerror)
os.mkfifo("own")
ours = os.open("own", os.O_RDWR)
os.write(ours, b"own")
print(os.read(ours, 3).decode())
"""
    try:
        done, _ = replay(place, code)
        assert done.stdout == "No such device or address\nown\n", done.stderr
        assert os.read(reading, 10) == b""
        (place / "work" / "own").unlink()
        done, _ = replay(place, code, live=pipe)
        assert done.stdout == "wrote\nown\n", done.stderr
    finally:
        os.close(reading)


@pytest.mark.parametrize("flags", [(), ("--sandbox-files",)])
def test_what_others_keep_in_closed_folders_is_no_hindrance(
    place: Path, flags: tuple[str, ...]
) -> None:
    """Else one user of a machine could keep root from every sandbox."""
    need("root")
    if flags:
        need("bubblewrap")
    theirs = place / "theirs"
    theirs.mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(theirs / "socket"))
    listening.listen()
    os.mkfifo(theirs / "pipe")
    reading = os.open(theirs / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for path in (theirs / "socket", theirs / "pipe", theirs):
        os.chown(path, SOMEBODY, SOMEBODY)
    theirs.chmod(0o700)
    code = f"print(connect({str(theirs / 'socket')!r}), os.access({str(theirs)!r}, os.X_OK))"
    try:
        done, receipt = replay(place, code, *flags)
    finally:
        os.close(reading)
        listening.close()
    missing = "FileNotFoundError" if flags else "PermissionError"
    assert (done.returncode, done.stdout) == (0, f"{missing} False\n"), done.stderr
    assert receipt["sandbox"]["sockets_used"] == []


RUN = """
import subprocess
subprocess.run(["sh", "-c", "true; env true; nosuch"], stderr=subprocess.DEVNULL)
subprocess.run(["./tool"])
held = os.open("/bin/true", os.O_RDONLY)
os.posix_spawn("/bin/sh", ["sh", "-c", ":"], {})
os.wait()
if os.fork() == 0:
    os.execve(held, ["true"], {})
os.wait()
threading.Thread(target=subprocess.run, args=(["env", "true"],)).start()
"""


def test_programs_that_ran_again_are_counted(place: Path) -> None:
    """By any call that starts one, in scripts too; what is not there was not started, and the command is none of them."""
    tool = place / "work" / "tool"
    tool.write_text("#!/bin/sh\nexec env true\n")
    tool.chmod(0o755)
    done, receipt = replay(place, RUN)
    assert done.returncode == 0, done.stderr
    found = {row["program"]: row["count"] for row in receipt["sandbox"]["programs"]}
    assert found == {"true": 4, "env": 3, "sh": 2, "tool": 1}
    assert "local programs that ran again: true (4), env (3), sh (2), tool (1)" in done.stderr
