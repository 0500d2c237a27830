"""Playhead as a person runs it: a process, its ready line, its end."""

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from . import prepared

COMMAND = prepared.OURS
_FETCHING = "playhead.tests.support.fetching"
_READY = re.compile(rb"http://(\S+?:\d+)")


class Serve:
    """`playhead serve` until the context ends; SIGTERM ends it, by the id started."""

    def __init__(
        self, *flags: str | Path, verbose: bool = False, wrapper: Sequence[str] = ()
    ) -> None:
        """Prepare; `wrapper` is a command that runs the rest of its words."""
        self.flags = [str(flag) for flag in flags]
        self.verbose = verbose
        self.wrapper = list(wrapper)
        self.line = ""
        self.address = ""
        """HOST:PORT."""

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def url_for(self, run: str, token: str = "x") -> str:
        """Proxy URL with credentials."""
        return f"http://{run}:{token}@{self.address}"

    def __enter__(self) -> Self:
        verbose = ["-v"] if self.verbose else []
        self.process = prepared.start(
            [*self.wrapper, *COMMAND, *verbose, "serve", *self.flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        line = self._read_line(20)
        found = _READY.search(line)
        if found is None:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"serve did not start: {line + out!r} {err.decode()}")
        self.line = line.decode()
        self.address = found[1].decode()
        return self

    def _read_line(self, timeout_s: float) -> bytes:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            return self.process.stdout.readline() if selector.select(timeout_s) else b""

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """End it; give exit code, rest of stdout, stderr. Twice is once."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=20)
        except ValueError:  # read already
            return self.process.returncode, "", ""
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"serve did not end: {err.decode()}") from None
        self.output = out.decode(), err.decode()
        return self.process.returncode, *self.output


def playhead(
    *arguments: str | Path,
    env: dict[str, str] | None = None,
    timeout_s: float = 60,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one command of ours to its end."""
    return prepared.run(
        [*COMMAND, *(str(argument) for argument in arguments)],
        text=True,
        timeout=timeout_s,
        env={**os.environ, **(env or {})},
        cwd=cwd,
    )


def playhead_anew(
    *arguments: str, cwd: Path, env: dict[str, str], first: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command of ours in an interpreter of its own, which starts with this environment and no other.

    first: lines that it runs before anything of ours is imported.
    """
    started = f"{first}\nimport sys\nfrom playhead.proxy.cli import main\nmain(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", started, *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def read_json(*arguments: str | Path) -> Any:
    """Run a command of ours that prints JSON."""
    done = playhead(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_until(condition: Any, timeout_s: float = 10.0, every_s: float = 0.02) -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(every_s)


def fetch(*urls: str, proxy: str, ca: Path | None = None, own_group: bool = True) -> bytes:
    """Fetch URLs through a proxy by a program; give the bodies, whatever their status.

    ca: file with the certificates that the program trusts.
    own_group: the program is a process group of its own.
    """
    command = [sys.executable, "-m", _FETCHING, proxy, str(ca or ""), *urls]
    done: subprocess.CompletedProcess[bytes] = prepared.run(
        command, imports=(_FETCHING,), timeout=30, process_group=0 if own_group else None
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
