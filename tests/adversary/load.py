"""Every case of load.yaml against a proxy that stays; prints what it held and how long others waited as JSON.

`python -m playhead.tests.adversary.load`
"""

import asyncio
import contextlib
import json
import multiprocessing
import resource
import socket
import ssl
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from playhead.tests.support import prepared
from playhead.tests.support.counts import FULL
from playhead.tests.support.handshakes import Acceptor
from playhead.tests.support.process import Serve, wait_until
from playhead.tests.support.raw import Conversation, RawOrigin

from .place import configured, in_memory, read_cases

CASES: dict[str, Any] = read_cases(Path(__file__))
LARGE = 12 << 20
_PIECE = b"10000\r\n" + bytes(65536) + b"\r\n"
_PATIENCE_S = 15.0
_ASKED = 8
"""How often another client asks while a case goes on."""


class Upstream:
    """Answers `/small` at once, `/large` with 12 MB, and `/endless` for as long as somebody listens."""

    def __init__(self) -> None:
        self.pouring = 0
        self.poured = 0

    async def __call__(self, conversation: Conversation) -> None:
        if "/endless" in conversation.path:
            await self._pour(conversation)
            return
        size = LARGE if "/large" in conversation.path else 2
        await conversation.say(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        await conversation.say(bytes(size))

    async def _pour(self, conversation: Conversation) -> None:
        self.pouring += 1
        with contextlib.suppress(OSError, ssl.SSLError):
            await conversation.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                await conversation.say(_PIECE)
                self.poured += 1
                await asyncio.sleep(0.004)  # some 16 MB a second
        self.pouring -= 1


class Loaded:
    """A proxy under load, and what its clients need."""

    def __init__(self, serve: Serve, store: Path, origin: RawOrigin, upstream: Upstream) -> None:
        self._store, self.origin, self.upstream = store, origin, upstream
        host, _, port = serve.address.rpartition(":")
        self.address = (host, int(port))
        self.process = psutil.Process(serve.process.pid)
        self.open: list[socket.socket] = []

    @property
    def held_kib(self) -> int:
        """Memory of the process that is its own."""
        return int(self.process.memory_full_info().uss) >> 10

    @property
    def control(self) -> tuple[str, int]:
        """Where the control API listens; it says so soon after the proxy does."""
        folder = self._store / "private" / "control"
        wait_until(lambda: list(folder.glob("*.json")))
        (found,) = folder.glob("*.json")
        host, _, port = json.loads(found.read_text())["url"].rpartition("//")[2].rpartition(":")
        return host, int(port)

    def connect(self, address: tuple[str, int] | None = None, buffer: int = 0) -> socket.socket:
        """Open a connection that stays until the case is over."""
        sock = socket.socket()
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        sock.settimeout(_PATIENCE_S)
        sock.connect(address or self.address)
        self.open.append(sock)
        return sock

    def tunnel(self, target: str) -> socket.socket:
        """Open a tunnel that stays."""
        sock = self.connect()
        sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{_run('load')}\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = sock.recv(1000)
            if not piece:
                raise ConnectionError("no tunnel")
            answer += piece
        return sock

    def ask(self, path: str, *, method: str = "GET", buffer: int = 0, run: str = "load") -> socket.socket:  # fmt: skip
        """Ask for something and read nothing."""
        sock = self.connect(buffer=buffer)
        length = "Content-Length: 0\r\n" if method == "POST" else ""
        head = (
            f"{method} {self.origin.url}{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.origin.port}\r\n"
        )
        sock.sendall(f"{head}{length}{_run(run)}\r\n".encode())
        return sock

    def close(self) -> None:
        """Close every connection."""
        for sock in self.open:
            sock.close()
        self.open.clear()

    def waited(self) -> float:
        """Say how long another client waits for a small answer, at most of several; infinite where it gets none."""
        longest = 0.0
        for number in range(_ASKED):
            began = time.monotonic()
            try:
                with socket.create_connection(self.address, _PATIENCE_S) as sock:
                    head = f"GET {self.origin.url}/small/{number} HTTP/1.1\r\nHost: 127.0.0.1:{self.origin.port}\r\n"
                    sock.sendall(f"{head}{_run('other')}Connection: close\r\n\r\n".encode())
                    answer = b""
                    while not answer.endswith(b"\0\0") and (piece := sock.recv(1000)):
                        answer += piece
                if not answer.startswith(b"HTTP/1.1 200 "):
                    return float("inf")
            except OSError:
                return float("inf")
            longest = max(longest, time.monotonic() - began)
        return longest

    def healthy(self) -> float:
        """Say how long the control API takes to say that it is well."""
        began = time.monotonic()
        try:
            with socket.create_connection(self.control, _PATIENCE_S) as sock:
                host = ":".join(map(str, self.control))
                head = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
                sock.sendall(head.encode())
                if not sock.recv(1000).startswith(b"HTTP/1.1 200 "):
                    return float("inf")
        except OSError:
            return float("inf")
        return time.monotonic() - began


def _run(name: str) -> str:
    return f"Proxy-Authorization: Basic {b64encode(f'{name}:x'.encode()).decode()}\r\n"


# ---- what is done to it -----------------------------------------------------------------------------


def _silent(here: Loaded, count: int) -> None:
    for _ in range(count):
        here.connect()


def _half_a_head(here: Loaded, count: int) -> None:
    for _ in range(count):
        here.connect().sendall(b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127")


def _tunnels(here: Loaded, count: int) -> None:
    for _ in range(count):
        here.tunnel(f"127.0.0.1:{here.origin.port}")


def _half_a_greeting(here: Loaded, count: int) -> None:
    for _ in range(count):
        here.tunnel(f"127.0.0.1:{here.origin.port}").sendall(b"\x16\x03\x01")


def _kept_alive(here: Loaded, count: int) -> None:
    for number in range(count):
        here.ask(f"/small/kept/{number}").recv(1000)


def _control_silent(here: Loaded, count: int) -> None:
    here.healthy()
    for _ in range(count):
        here.connect(here.control)


def _control_half_a_head(here: Loaded, count: int) -> None:
    here.healthy()
    for _ in range(count):
        here.connect(here.control).sendall(b"GET /healthz HTTP/1.1\r\nHo")


def _half_open(here: Loaded, count: int) -> None:
    """Greet an upstream that never answers, and close the sending half."""
    made = ssl.MemoryBIO()
    context = ssl.create_default_context()
    greeting = context.wrap_bio(ssl.MemoryBIO(), made, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        greeting.do_handshake()
    said = made.read()
    mute = Acceptor(lambda sock: _wait_for_end(sock))
    mute.__enter__()
    threading.Timer(60, mute.stop).start() if FULL else None
    for _ in range(count):
        sock = here.tunnel(f"127.0.0.1:{mute.port}")
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)


def _wait_for_end(sock: socket.socket) -> None:
    sock.settimeout(120)
    while sock.recv(4096):
        pass


def _endless(method: str) -> Callable[[Loaded, int], None]:
    def act(here: Loaded, count: int) -> None:
        for number in range(count):
            here.ask(f"/endless/{method}/{number}", method=method).recv(1000)
        here.close()
        time.sleep(4 if FULL else 1.5)

    return act


def _slow(here: Loaded, count: int) -> None:
    for number in range(count):
        here.ask(f"/large/{number}", buffer=4096)
    time.sleep(1)


_ACTS: dict[str, Callable[[Loaded, int], None]] = {
    **{"idle-silent": _silent, "idle-half-a-head": _half_a_head, "idle-tunnels": _tunnels},
    **{"idle-silent-at-a-hard-limit": _silent, "idle-kept-alive-at-a-hard-limit": _kept_alive},
    **{"idle-half-a-greeting": _half_a_greeting, "idle-kept-alive": _kept_alive},
    **{"control-silent": _control_silent, "control-half-a-head": _control_half_a_head},
    **{"half-open-tunnels": _half_open, "endless-read": _endless("GET")},
    **{"endless-effect": _endless("POST"), "slow-readers": _slow, "slow-readers-of-a-tape": _slow},
}


@contextlib.contextmanager
def _loaded(
    folder: Path, mode: str, origin: RawOrigin, upstream: Upstream, hard_limit: int = 0
) -> Iterator[Loaded]:
    config: dict[str, Any] = {"mode": mode, "store": "store", "ballast_mib": 0}
    if mode == "playback":
        config["live"] = [{"match": f"GET {origin.url}/small/*", "reason": "others"}]
    path = configured(folder / "playhead.yaml", config)
    with contextlib.ExitStack() as ended:
        with _usual_limit():
            wrapper = ("/bin/sh", "-c", f'ulimit -n {hard_limit}; exec "$@"', "sh")
            flags = ("-c", path, "--listen", "127.0.0.1:0")
            serve = ended.enter_context(Serve(*flags, wrapper=wrapper if hard_limit else ()))
        here = Loaded(serve, folder / "store", origin, upstream)
        try:
            yield here
        finally:
            here.close()
            # What is read on is not waited for.
            serve.process.kill()


@contextlib.contextmanager
def _usual_limit() -> Iterator[None]:
    """Have what is started meanwhile open as many files as a user may who has changed nothing."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024 if FULL else CASES["soft_limit"], hard))
    try:
        yield
    finally:
        # Clients have all there is.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _try(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    count = case["count_full" if FULL else "count"]
    upstream = Upstream()
    taped = case["id"].endswith("-of-a-tape")
    hard_limit = case.get("hard_limit", 0) and (1024 if FULL else case["hard_limit"])
    with RawOrigin(upstream) as origin:
        if taped:
            _record(folder, count, origin, upstream)
        mode = "playback" if taped else "record"
        with _loaded(folder, mode, origin, upstream, hard_limit) as here:
            # What is made once is made before.
            here.waited()
            here.healthy()
            before, open_before = here.held_kib, here.process.num_fds()
            try:
                _ACTS[case["id"]](here, count)
                failed = ""
            except OSError as error:
                failed = f"{type(error).__name__}: {error}"
            waited, healthy = here.waited(), here.healthy()
            held = here.held_kib
            here.close()
            read_on = case["id"] == "endless-effect"  # its upstreams stay
            left = _left(here, open_before, patience_s=0 if read_on else 10)
            return {
                **{"count": count, "failed": failed, "waited_s": waited, "healthy_s": healthy},
                **{"growth_kib": held - before, "after_kib": here.held_kib - before, "left": left},
                **{"pouring": upstream.pouring, "alive": here.process.is_running()},
            }


def _record(folder: Path, count: int, origin: RawOrigin, upstream: Upstream) -> None:
    with _loaded(folder, "record", origin, upstream) as here:
        for number in range(count):
            sock = here.ask(f"/large/{number}")
            size = 0
            while size < LARGE and (piece := sock.recv(1 << 20)):
                size += len(piece)
        here.close()
        for number in range(2):
            here.ask(f"/small/{number}", run="other").recv(1000)


def _left(here: Loaded, before: int, patience_s: float) -> int:
    """Say how many descriptors more than before are open once its clients have left."""
    deadline = time.monotonic() + patience_s
    while (more := here.process.num_fds() - before) > 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    return more


def _try_alone(case: dict[str, Any]) -> dict[str, Any]:
    with in_memory() as folder:
        return _try(case, folder)


def _stay_ready() -> None:
    """Have proxies be forked from here, with the limits that they are started with."""
    with _usual_limit():
        prepared.stay_ready()


def _main() -> None:
    cases = CASES["cases"]
    # Most of a case is waiting; the full counts want the machine for themselves. A process each: limits are its own.
    context = multiprocessing.get_context("fork")
    with context.Pool(1 if FULL else 2, initializer=_stay_ready) as pool:
        found = pool.map(_try_alone, cases, chunksize=1)
    told = {case["id"]: one for case, one in zip(cases, found, strict=True)}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    _main()
