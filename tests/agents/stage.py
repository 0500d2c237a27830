"""One agent in a machine of its own: recorded while the Internet is up, replayed when it is gone.

`Stage` is used by a process that may leave the network for good: `python -m playhead.tests.agents.stage NAME FOLDER`
prints what came of it as JSON.
"""

import contextlib
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..support.machine import enter_or_exit
from .catalog import BUILD, Agent, load_agent
from .internet import ADDRESS

_SIOCSIFADDR = 0x8916
_PLAYHEAD = Path(os.environ.get("PLAYHEAD") or Path(sys.executable).with_name("playhead"))
TIMED_OUT = 124


@dataclass(frozen=True)
class Ended:
    """What came of a command."""

    code: int
    output: str
    seconds: float
    receipt: dict[str, Any]
    story: str = ""


@dataclass
class Stage:
    """An agent, its home and working folder, and its tapes.

    folder: of everything; the agent's folders are made anew for each of its runs.
    """

    agent: Agent
    folder: Path
    taps: int = field(default=0)

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
        command = [sys.executable, "-m", "playhead.tests.agents.internet", self._net, self.work]
        with subprocess.Popen(command) as process:
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
            return self._run([*words, "--upstream-ca", str(self._net / "root.pem")])

    def replay(self, run: str, change: Callable[["Stage"], None] | None = None) -> Ended:
        """Replay the agent with nothing up.

        change: what is done to its folders before.
        """
        return self._run(["replay", run], change)

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
        fill = self.agent.fill
        own = {name: fill(text, self.work, self.home) for name, text in self.agent.env.items()}
        return {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb", **own}

    def _make_folders(self) -> None:
        for folder, files in ((self.home, self.agent.home), (self.work, self.agent.work)):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name, text in files.items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(self.agent.fill(text, self.work, self.home))
        (self.work / "notes.txt").write_text("one apple\n")


def enter() -> None:
    """Leave the network for good: loopback, the Internet's address, and names that are asked of it."""
    files = {
        "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
    enter_or_exit(os.geteuid(), files, _add_address)


def _add_address() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(ADDRESS))
        fcntl.ioctl(sock, _SIOCSIFADDR, struct.pack("16s16s", b"lo:1", address))


if __name__ == "__main__":
    enter()
    stage = Stage(load_agent(sys.argv[1]), Path(sys.argv[2]))
    run = sys.argv[5] if len(sys.argv) > 5 else "r"
    for number in range(int(sys.argv[3])):
        done = stage.record(f"{run}{number}")
        print("==== record", done.code, done.seconds, "seen", len(stage.seen()))
        print(done.output)
        for one in stage.seen():
            print(one["method"], one["url"])
    for _ in range(int(sys.argv[4])):
        done = stage.replay(f"{run}0")
        print("==== replay", done.code, done.seconds)
        print(done.output)
