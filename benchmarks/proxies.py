"""How each process of a measurement is started, known to be ready, and ended.

Every process is ended by the one who started it and by its own id: helpers by the end of their standard
input, proxies by SIGTERM, and by SIGKILL if that does not help within 20 s.
"""

import contextlib
import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import cpu

HERE = Path(__file__).resolve().parent
_STOP_S = 20.0
_STEP_S = 0.01
_PORTS = range(10_000, 30_000)
_PORT_TRIES = 50


class ToolError(Exception):
    """A process did not start, ended early, or gave wrong answers; the text says which and how."""


def _environment() -> dict[str, str]:
    """Give the environment of the processes: without anybody's proxy settings."""
    return {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def free_port() -> int:
    """Give a port of loopback that is free now.

    Not one of those that the kernel deals out: another process could be dealt it before it is used.
    """
    for port in random.sample(_PORTS, _PORT_TRIES):
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise ToolError(f"no port of loopback is free from {_PORTS[0]} to {_PORTS[-1]}")


# ---- helpers: they talk in lines ------------------------------------------------------------------


class Helper:
    """A process of ours that is told things over standard input and answers in lines."""

    def __init__(self, script: str, *arguments: str) -> None:
        self._script = script
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            # A group of its own: to Playhead each client is then one agent, with a fresh cursor.
            start_new_session=True,
        )
        self._rest = b""

    def tell(self, line: str) -> None:
        """Send a line."""
        pipe = _pipe(self._process.stdin)
        pipe.write(line.encode() + b"\n")
        pipe.flush()

    def hear(self, limit_s: float) -> str:
        """Give the next line it says.

        Raises: ToolError when it ends or the time is up.
        """
        descriptor = _pipe(self._process.stdout).fileno()
        until = time.monotonic() + limit_s
        while b"\n" not in self._rest:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            if not readable:
                raise ToolError(f"{self._script} said nothing within {limit_s:.0f} s")
            more = os.read(descriptor, 1 << 16)
            if not more:
                raise ToolError(f"{self._script} ended by itself; its words are on standard error")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        """End it and wait for it."""
        _pipe(self._process.stdin).close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


class Client(Helper):
    """One process of load; see `client.py` for what it can be told."""

    script = "client.py"

    def __init__(self, **told: Any) -> None:
        super().__init__(self.script)
        try:
            self.tell(json.dumps(told))
            self._result(60)
        except BaseException:
            self.close()
            raise

    def go(self, limit_s: float = 200) -> dict[str, Any]:
        """Let it do the next thing and give its result.

        Raises: ToolError where anything went wrong, also a single wrong answer.
        """
        self.tell("go")
        return self._result(limit_s)

    def start(self) -> None:
        """Let it do the next thing without waiting for the result."""
        self.tell("go")

    def result(self, limit_s: float) -> dict[str, Any]:
        """Give the result of what was started."""
        return self._result(limit_s)

    def _result(self, limit_s: float) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self.hear(limit_s))
        if result.get("error") or result.get("wrong"):
            raise ToolError(result.get("error") or f"{result['wrong']} x {result['fault']}")
        return result


class WireClient(Client):
    """One process that asks; see `wire_client.py` for what it can be told."""

    script = "wire_client.py"


class WirePorts(NamedTuple):
    """Ports of the provider of the wire."""

    tls: int
    plain: int
    next: int
    """Where the next piece of a stream is asked for."""


@contextlib.contextmanager
def wire_upstream(folder: Path) -> Iterator[WirePorts]:
    """Run the provider of the wire, with the certificate that `upstream` made in the same folder."""
    helper = Helper("wire_upstream.py", str(folder))
    try:
        yield WirePorts(*map(int, helper.hear(30).removeprefix("ready ").split()))
    finally:
        helper.close()


@contextlib.contextmanager
def upstream(folder: Path) -> Iterator[int]:
    """Run the fake provider and give its port; its CA is `folder/upstream-ca.pem`."""
    helper = Helper("upstream.py", str(folder))
    try:
        yield int(helper.hear(30).removeprefix("ready "))
    finally:
        helper.close()


# ---- proxies --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tool:
    """A proxy that can be started."""

    name: str
    argv: tuple[str, ...]
    """`{port}` stands for the port to listen on."""
    says_ready: bool = False
    """True: it prints a line with its address once it is ready. False: it is ready when it accepts."""


@dataclass(slots=True)
class Running:
    """A proxy that was started."""

    tool: Tool
    port: int
    started: float
    """On the monotonic clock, just before the process was made."""
    _process: subprocess.Popen[bytes]
    _log: Path

    @property
    def pid(self) -> int:
        """Its process id; what it was started as, not what listens."""
        return self._process.pid

    def wait_ready(self, limit_s: float) -> None:
        """Wait until it serves.

        Raises: ToolError with the end of its log.
        """
        until = time.monotonic() + limit_s
        while time.monotonic() < until and self._process.poll() is None:
            if self._is_ready():
                return
            time.sleep(_STEP_S)
        raise ToolError(f"{self.tool.name} is not ready: {self.log_tail()}")

    def _is_ready(self) -> bool:
        if self.tool.says_ready:
            return f":{self.port}" in self._log.read_text(errors="replace")
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def log_tail(self) -> str:
        """Give the end of what it wrote."""
        return self._log.read_text(errors="replace")[-1500:].strip() or "(it wrote nothing)"

    def stop(self) -> None:
        """End it and wait for it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            rest = cpu.tree(self.pid)
            for pid in reversed(rest):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()


def start(tool: Tool, folder: Path, port: int) -> Running:
    """Start a proxy on a free port; its log goes to `folder`."""
    log = folder / f"{tool.name.replace(' ', '-')}-{port}.log"
    # The working directory is not the repository, whose folders would be importable as `store` and the like.
    with log.open("wb") as out:
        started = time.monotonic()
        process = subprocess.Popen(
            [part.replace("{port}", str(port)) for part in tool.argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(),
        )
    return Running(tool, port, started, process, log)


@contextlib.contextmanager
def running(tools: list[Tool], folder: Path, ready_s: float = 120) -> Iterator[dict[str, Running]]:
    """Run some proxies and give them by name, ready; end them all afterwards.

    Raises: ToolError.
    """
    started: dict[str, Running] = {}
    try:
        for tool in tools:
            started[tool.name] = start(tool, folder, free_port())
        for one in started.values():
            one.wait_ready(ready_s)
        yield started
    finally:
        for one in started.values():
            one.stop()


def mitmdump(name: str, folder: Path, *more: str) -> Tool:
    """Describe a mitmdump that is as quick as it can be made by its options, plus `more`.

    `folder`: holds the provider's CA; mitmproxy's own CA is made there once.
    """
    program = shutil.which("mitmdump", path=str(Path(sys.executable).parent)) or "mitmdump"
    options = (
        f"confdir={folder / 'mitmproxy'}",
        f"ssl_verify_upstream_trusted_ca={folder / 'upstream-ca.pem'}",
        "connection_strategy=lazy",
    )
    sets = [part for option in options for part in ("--set", option)]
    listen = ("-q", "--listen-host", "127.0.0.1", "--listen-port", "{port}")
    return Tool(name, (program, *listen, *sets, *more))


def mitmdump_replay(name: str, folder: Path, flows: Path) -> Tool:
    """Describe a mitmdump that answers from a file of flows, in its best case."""
    return mitmdump(
        name,
        folder,
        "--server-replay",
        str(flows),
        *("--set", "server_replay_reuse=true"),
        *("--set", "server_replay_extra=404"),
        *("--set", "upstream_cert=false"),
    )


def playhead(
    mode: str, folder: Path, store: Path, run: str, *more: str, name: str = "playhead"
) -> Tool:
    """Describe a Playhead that records or plays the run `run` of a store."""
    return Tool(
        name,
        (
            *(sys.executable, "-m", "playhead.proxy.cli", "serve", "--mode", mode),
            *("--listen", "127.0.0.1:{port}", "--store", str(store), "--run", run),
            *("--ca-dir", f"{store}-ca"),
            *("--upstream-ca", str(folder / "upstream-ca.pem")),
            *more,
        ),
        says_ready=True,
    )
