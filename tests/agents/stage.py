"""One agent in a machine of its own: recorded while the Internet is up, replayed when it is gone.

`Stage` is used by a process that has left the network for good by `enter`.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from playhead.tests.agents.catalog import BUILD, Agent
from playhead.tests.agents.internet import ADDRESS
from playhead.tests.support.machine import _fill, enter_or_exit

_SIOCSIFADDR, _PR_SET_CHILD_SUBREAPER = 0x8916, 36
_PLAYHEAD = Path(os.environ.get("PLAYHEAD") or Path(sys.executable).with_name("playhead"))
TIMED_OUT = 124


@dataclass(frozen=True)
class Ended:
    """What came of a command."""

    code: int
    output: str
    """Of the agent alone; what `playhead` says itself goes to `told`."""
    seconds: float
    receipt: dict[str, Any]


@dataclass
class Stage:
    """An agent, its home and working folder, and its tapes.

    folder: of everything; the agent's folders are made anew for each of its runs.
    """

    agent: Agent
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def _net(self) -> Path:
        return self.folder / "internet"

    def seen(self) -> list[dict[str, str]]:
        """List the requests that have reached the Internet."""
        file = self._net / "seen.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @contextlib.contextmanager
    def internet(self) -> Iterator[None]:
        """Have the Internet up. It keeps its root from the first time on."""
        shutil.rmtree(self._net, ignore_errors=True)
        self._net.mkdir(parents=True)
        command = [sys.executable, "-m", "playhead.tests.agents.internet"]
        with subprocess.Popen([*command, str(self._net), str(self.work)]) as process:
            try:
                while not (self._net / "ready").exists():
                    if process.poll() is not None:
                        raise RuntimeError(f"the Internet ended with {process.returncode}")
                    time.sleep(0.02)
                yield
            finally:
                process.kill()

    def record(self, run: str) -> Ended:
        """Record the agent with the Internet up."""
        words = ["record", "--run", run, *self.agent.record]
        with self.internet():
            done = self._run([*words, "--upstream-ca", str(self._net / "root.pem")])
        _end_what_was_left()
        return done

    def replay(self, run: str, change: Callable[["Stage"], None] | None = None) -> Ended:
        """Replay the agent with nothing up.

        change: what is done to its folders before.
        """
        done = self._run(["replay", run], change)
        _end_what_was_left()
        return done

    def _run(self, words: list[str], change: Callable[["Stage"], None] | None = None) -> Ended:
        self._make_folders()
        if change is not None:
            change(self)
        receipt = self.folder / "receipt.json"
        receipt.unlink(missing_ok=True)
        fill = self.agent.fill
        command = [fill(word, self.work, self.home) for word in self.agent.command]
        begun = time.monotonic()
        process = subprocess.Popen(
            [
                str(_PLAYHEAD),
                *words,
                "--quiet",
                "--store",
                str(self.store),
                "--receipt",
                str(receipt),
                "--",
                *command,
            ],
            cwd=self.work,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        try:
            output, _ = process.communicate(timeout=self.agent.timeout_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                output, _ = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
            code = TIMED_OUT
        seconds = time.monotonic() - begun
        with (self.folder / "output.txt").open("a") as file:
            file.write(f"--- {' '.join(words[:3])}: ended with {code}\n{output}\n")
        told = json.loads(receipt.read_text()) if receipt.exists() else {}
        return Ended(code, output, round(seconds, 1), told)

    def environment(self) -> dict[str, str]:
        """Give the environment of the command: a short one, in which no base URL is set."""
        places = [
            self.agent.place / "bin",
            self.agent.place / "node_modules" / ".bin",
            BUILD / "node" / "node_modules" / ".bin",
        ]
        path = ":".join([*map(str, places), "/usr/local/bin", "/usr/bin", "/bin"])
        fill, temporary = self.agent.fill, {"TMPDIR": str(self.folder / "tmp")}
        own = {name: fill(text, self.work, self.home) for name, text in self.agent.env.items()}
        return (
            {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb"}
            | temporary
            | own
        )

    def _make_folders(self) -> None:
        homes = ((self.home, self.agent.home), (self.work, self.agent.work))
        for folder, files in (*homes, (self.folder / "tmp", {})):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name, text in files.items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(self.agent.fill(text, self.work, self.home))
        (self.work / "notes.txt").write_text("one apple\n")


def _end_what_was_left() -> None:
    """End what an agent has left behind, such as a server of its own: in the next run it would be there."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass


def enter() -> None:
    """Leave the network for good: loopback, the Internet's address, and names that are asked of it."""
    files = {
        "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
    # What daemons leave behind becomes a child of ours.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    enter_or_exit(os.geteuid(), files, _prepare)


def _prepare() -> None:
    # Other people's sockets and pipes there are looked for and closed in every replay.
    if not any(Path(path).is_relative_to("/tmp") for path in (__file__, sys.prefix)):
        _fill("/tmp")
        os.chmod("/tmp", 0o1777)
    _add_address()


def _add_address() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(ADDRESS))
        fcntl.ioctl(sock, _SIOCSIFADDR, struct.pack("16s16s", b"lo:1", address))
