"""The client of the measurements of the wire: HTTP/1.1 and HTTP/2, over TLS or not, checking every answer.

It is a process of its own, told what to do over standard input (see `talk.py`). All jobs have

    {"do": NAME, "proxy": PORT | null, "upstream": PORT, "http": "h1" | "h2", ...}

and each `go` is answered as written below:

    pieces   "next": PORT, "streams": N, "count": N, "first": NUMBER
             the pieces of N streams at once
    sse      "streams": N, "count": N
             the arrival of each piece of each stream, in ms since it was asked for, and the piece's size
    posts    "sizes": [BYTES, ...], "count": N, "tls": BOOL, "nodelay": BOOL, "seed": N
             by size, the ms from the request to the whole answer; one of each size before that warms
    transfer "way": "download" | "upload", "announced": BOOL, "slow": "" | "client" | "upstream",
             "sizes": [BYTES, ...]
             one body after the other, one for each `go`
"""

import asyncio
import json
import random
import socket
import time
from collections.abc import Callable
from typing import Any

import talk
import uvloop
import workloads
from client import client_context, tunnel
from wire import WIDE_WINDOW, Exchange, Fields, Http1, Http2, Line
from wire_upstream import BLOCK_BYTES, Throttle

NARROW_WINDOW = 16_384
"""Bytes that a slow client over HTTP/2 lets the other end send unasked."""
_CONNECT_S = 20.0
_BLOCK_S = 180.0
_STREAM_S = 60.0
_POST_S = 30.0
_TRANSFER_S = 600.0
_ALPN = {"h1": "http/1.1", "h2": "h2"}


class Asked(Exchange):
    """One request and its answer."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.received = 0

    def head(self, line: Line, first: bytes, fields: dict[bytes, bytes]) -> None:
        """Take note of anything but a success."""
        self.line = line
        if first != b"200":
            self.lost(f"status {first.decode()}: {fields}")

    def data(self, data: bytes) -> None:
        """Take it at once."""
        self.received += len(data)
        self.line.took(self, len(data))

    def end(self) -> None:
        """Let go who waits."""
        if not self.done.done():
            self.done.set_result(None)

    def lost(self, why: str) -> None:
        """Fail who waits."""
        if not self.done.done():
            self.done.set_exception(ConnectionError(why))


class Pieces(Asked):
    """A stream whose next piece is asked for when one has come."""

    def __init__(self, token: bytes, following: asyncio.Transport) -> None:
        super().__init__()
        self._token, self._following = token, following
        self._kept = b""
        self.count = 0

    def data(self, data: bytes) -> None:
        """Keep it until the piece ends."""
        self._kept += data
        super().data(data)

    def piece(self) -> None:
        """Check it, and ask for the next."""
        if self._kept != workloads.event(self._token, self.count):
            self.lost(f"piece {self.count} is wrong: {self._kept[:200]!r}")
        self._kept = b""
        self.count += 1
        self._following.write(self._token)


class Timed(Asked):
    """A stream that notes when its pieces arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[tuple[float, int]] = []
        self._asked = time.monotonic()
        self._within = False

    def data(self, data: bytes) -> None:
        """Note the time of a piece's first byte."""
        if self._within:
            at_ms, size = self.arrived.pop()
            self.arrived.append((at_ms, size + len(data)))
        else:
            self.arrived.append(((time.monotonic() - self._asked) * 1000, len(data)))
            self._within = True
        super().data(data)

    def piece(self) -> None:
        """Note the end of a piece."""
        self._within = False


class Small(Asked):
    """An answer that is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.body = b""

    def data(self, data: bytes) -> None:
        """Keep it."""
        self.body += data
        super().data(data)


class Download(Asked):
    """Noise, compared as it comes, and taken slowly where told to."""

    def __init__(self, seed: int, bytes_s: int) -> None:
        super().__init__()
        self._noise, self._throttle = workloads.Noise(seed), Throttle(bytes_s)

    def data(self, data: bytes) -> None:
        """Compare it."""
        if data != self._noise.take(len(data)):
            self.lost(f"wrong bytes after {self.received}")
        self.received += len(data)
        self.line.took(self, len(data), self._throttle.later_s(len(data)))


class Route:
    """How to get to the provider."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._proxy, self._upstream = told["proxy"], told["upstream"]
        self.h2 = told["http"] == "h2"
        self._tls = told.get("tls", True)
        self._nodelay = told.get("nodelay", True)
        self._narrow = told.get("slow") == "client"
        self.authority = f"{workloads.HOST}:{self._upstream}".encode()

    async def connect(self) -> Line:
        """Open a connection.

        Raises: OSError.
        """
        if self._tls:
            sock = await tunnel(self._proxy, self._upstream)
        else:
            sock = await tunnel(None, self._proxy or self._upstream)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, self._nodelay)
        kind: Callable[[], Line] = Http1
        if self.h2:
            window = NARROW_WINDOW if self._narrow else WIDE_WINDOW
            kind = lambda: Http2(window=window)  # noqa: E731
        name = _ALPN["h2" if self.h2 else "h1"]
        loop = asyncio.get_running_loop()
        transport, line = await loop.create_connection(
            kind,
            sock=sock,
            ssl=client_context(name) if self._tls else None,
            server_hostname=workloads.HOST if self._tls else None,
        )
        if self._tls and transport.get_extra_info("ssl_object").selected_alpn_protocol() != name:
            raise ConnectionError(f"the proxy does not speak {name}")
        if not self._nodelay:  # the loop's own choice
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        return line

    def ask(
        self, line: Line, exchange: Exchange, method: bytes, target: str, size: int | None
    ) -> None:
        """Send the head of a request."""
        fields: Fields = [(b"Host", self.authority), (b"User-Agent", b"bench/1.0")]
        if size != 0:
            fields.append((b"Content-Type", b"application/json"))
        absolute = b"" if self._tls or not self._proxy else b"http://" + self.authority
        line.ask(exchange, method, absolute + target.encode(), fields, size)


async def pieces(told: dict[str, Any]) -> None:
    """Ask for streams in lockstep."""
    route = Route(told)
    loop = asyncio.get_running_loop()
    number = told["first"]
    async with asyncio.timeout(_CONNECT_S):
        following, _ = await loop.create_connection(asyncio.Protocol, "127.0.0.1", told["next"])
        lines = [await route.connect() for _ in range(1 if route.h2 else told["streams"])]

    async def one(line: Line, token: bytes) -> int:
        asked = Pieces(token, following)
        target = f"{workloads.CHAT}?as=pieces&count={told['count']}&token={token.decode()}"
        body = workloads.body(workloads.WORKLOADS["sse"], int(token))
        route.ask(line, asked, b"POST", target, len(body))
        await line.send(asked, body, last=True)
        await asked.done
        if asked.count != told["count"]:
            raise ConnectionError(f"{asked.count} pieces instead of {told['count']}")
        return asked.count

    talk.say({"ready": True})
    while True:
        await talk.go()
        started = time.monotonic()
        async with asyncio.timeout(_BLOCK_S), asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(one(lines[at % len(lines)], workloads.token(number + at)))
                for at in range(told["streams"])
            ]
        number += told["streams"]
        talk.say(
            {
                "pieces": sum(task.result() for task in running),
                "wall_s": time.monotonic() - started,
            }
        )


async def sse(told: dict[str, Any]) -> None:
    """Note when the pieces of some streams at once arrive."""
    route = Route(told)
    async with asyncio.timeout(_CONNECT_S):
        lines = [await route.connect() for _ in range(1 if route.h2 else told["streams"])]

    async def one(number: int) -> list[tuple[float, int]]:
        token = workloads.token(number)
        target = f"{workloads.CHAT}?as=sse&count={told['count']}&token={token.decode()}"
        body = workloads.body(workloads.WORKLOADS["sse"], number)
        line = lines[number % len(lines)]
        asked = Timed()
        route.ask(line, asked, b"POST", target, len(body))
        await line.send(asked, body, last=True)
        await asked.done
        return asked.arrived

    talk.say({"ready": True})
    while True:
        await talk.go()
        async with asyncio.timeout(_STREAM_S), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one(number)) for number in range(told["streams"])]
        talk.say({"arrived": [task.result() for task in running]})


async def posts(told: dict[str, Any]) -> None:
    """Post bodies of some sizes in random order over one connection, head and body in two writes."""
    route = Route(told)
    rng = random.Random(told["seed"])
    asked_for = [size for size in told["sizes"] for _ in range(told["count"])]
    rng.shuffle(asked_for)
    warming = len(told["sizes"])
    async with asyncio.timeout(_CONNECT_S):
        line = await route.connect()

    async def one(number: int, size: int) -> float:
        token = workloads.token(number).decode()
        target = f"{workloads.WORKLOADS['small'].target}?as=post&token={token}"
        body = workloads.sized_body(number, size)
        asked = Small()
        started = time.monotonic()
        route.ask(line, asked, b"POST", target, size)
        await asyncio.sleep(0)
        await line.send(asked, body, last=True)
        await asked.done
        took_ms = (time.monotonic() - started) * 1000
        if json.loads(asked.body) != {"id": token, "received": size}:
            raise ConnectionError(f"wrong answer: {asked.body[:200]!r}")
        return took_ms

    talk.say({"ready": True})
    await talk.go()
    took_ms: dict[int, list[float]] = {size: [] for size in told["sizes"]}
    for number, size in enumerate([*told["sizes"], *asked_for]):
        async with asyncio.timeout(_POST_S):
            one_ms = await one(number, size)
        if number >= warming:
            took_ms[size].append(one_ms)
    talk.say({"took_ms": took_ms})
    await talk.rest()


async def transfer(told: dict[str, Any]) -> None:
    """Move large bodies."""
    route = Route(told)
    way = {"download": _download, "upload": _upload}[told["way"]]
    async with asyncio.timeout(_CONNECT_S):
        line = await route.connect()
    talk.say({"ready": True})
    for number, size in enumerate(told["sizes"]):
        await talk.go()
        started = time.monotonic()
        async with asyncio.timeout(_TRANSFER_S):
            await way(told, route, line, number, size)
        talk.say({"wall_s": time.monotonic() - started})
    await talk.rest()


async def _download(told: dict[str, Any], route: Route, line: Line, number: int, size: int) -> None:
    asked = Download(number, workloads.SLOW_BYTES_S if told["slow"] == "client" else 0)
    length = int(told["announced"])
    target = f"/v1/files/blob?as=download&count={size}&length={length}&token={number}"
    route.ask(line, asked, b"GET", target, 0)
    await asked.done
    if asked.received != size:
        raise ConnectionError(f"{asked.received} bytes instead of {size}")


async def _upload(told: dict[str, Any], route: Route, line: Line, number: int, size: int) -> None:
    asked, noise = Small(), workloads.Noise(number)
    slow = int(told["slow"] == "upstream")
    target = f"/v1/files?as=upload&slow={slow}&token={number}"
    route.ask(line, asked, b"POST", target, size if told["announced"] else None)
    for at in range(0, size, BLOCK_BYTES):
        if asked.done.done():
            await asked.done
            raise ConnectionError(f"answered after {at} of {size} bytes: {asked.body[:200]!r}")
        part = noise.take(min(BLOCK_BYTES, size - at))
        await line.send(asked, part, last=at + len(part) == size)
    await asked.done
    if json.loads(asked.body) != {"received": size, "wrong": 0}:
        raise ConnectionError(f"wrong answer: {asked.body[:200]!r}")


if __name__ == "__main__":
    uvloop.run(talk.serve({"pieces": pieces, "sse": sse, "posts": posts, "transfer": transfer}))
