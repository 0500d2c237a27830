"""The load: a raw asyncio client on uvloop, through CONNECT and TLS, that checks every answer.

It is a process of its own, in a process group of its own, told what to do over standard input:

    {"do": "load", "proxy": PORT | null, "upstream": PORT, "connections": N, "workload": NAME,
     "blocks": [[NUMBER, ...], ...], "own_keys": BOOL}
    {"do": "agent", "proxy": PORT | null, "upstream": PORT, "first": NUMBER}
    {"do": "ttfb", "routes": {NAME: PORT | null}, "upstream": PORT, "streams": N, "warm": N, "seed": N}
    {"do": "paced", "proxy": PORT | null, "upstream": PORT, "connections": N, "workloads": [NAME, ...],
     "rate": PER_S, "slice_s": S, "first": NUMBER}
    {"do": "first", "proxy": PORT, "upstream": PORT, "workload": NAME, "number": NUMBER}

Each thing told on a line is answered on a line of JSON: first `{"ready": true}` once all is prepared (for
`load`: connected), then one result for each line `go`; for `load` each `go` is one block, for `paced` one slice, as
often as it is told. See `talk.py`.
"""

import asyncio
import random
import socket
import ssl
import statistics
import time
from collections.abc import Iterator
from typing import Any, cast

import talk
import uvloop
import workloads
from workloads import WORKLOADS

_CONNECT_S = 20.0
_BLOCK_S = 180.0
_STREAM_S = 30.0
_FIRST_S = 150.0
_RETRY_S = 0.003


class Answer:
    """Reads one HTTP/1.1 answer, with a Content-Length or in chunks."""

    __slots__ = ("_body_at", "_chunked", "_end", "data", "first_body_at")

    def __init__(self) -> None:
        self.data = bytearray()
        self.first_body_at = 0.0
        """When the first byte of its body came, on the monotonic clock; 0 until then."""
        self._body_at = 0
        self._end = 0
        self._chunked = False

    def feed(self, data: bytes) -> bool:
        """Take bytes; say whether the answer is complete."""
        self.data += data
        if not self._body_at:
            stop = self.data.find(b"\r\n\r\n")
            if stop < 0:
                return False
            self._body_at = stop + 4
            head = bytes(self.data[:stop]).lower()
            _, found, rest = head.partition(b"\r\ncontent-length:")
            self._chunked = b"\r\ntransfer-encoding: chunked" in head
            self._end = self._body_at + (int(rest.split(b"\r\n", 1)[0]) if found else 0)
        if not self.first_body_at and len(self.data) > self._body_at:
            self.first_body_at = time.monotonic()
        if self._chunked:
            return self.data.endswith(b"0\r\n\r\n") and len(self.data) > self._body_at
        return len(self.data) >= self._end

    def fault(self, token: bytes) -> str:
        """Say what is wrong with it as the answer to `token`, or nothing."""
        at = self._body_at + workloads.TOKEN_AT
        if self.data.startswith(b"HTTP/1.1 200") and (
            self._chunked or self.data[at : at + workloads.TOKEN_BYTES] == token
        ):
            return ""
        return f"wrong answer to {token.decode()}: {bytes(self.data[:300])!r}"


class Connection(asyncio.Protocol):
    """One keep-alive connection; one request at a time."""

    def __init__(self) -> None:
        self._answer = Answer()
        self._waiting: asyncio.Future[Answer] | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Hand on the answer once it is complete."""
        if self._answer.feed(data) and self._waiting and not self._waiting.done():
            self._waiting.set_result(self._answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits."""
        if self._waiting and not self._waiting.done():
            got = bytes(self._answer.data[:200])
            self._waiting.set_exception(ConnectionError(f"closed: {exc}, after {got!r}"))

    async def ask(self, wire: bytes) -> Answer:
        """Send a request and give its answer.

        Raises: ConnectionError.
        """
        if self._transport.is_closing():
            raise ConnectionError("closed between two requests")
        self._answer = Answer()
        self._waiting = self._loop.create_future()
        self._transport.write(wire)
        return await self._waiting

    def close(self) -> None:
        """Close it."""
        self._transport.close()


def client_context(alpn: str = "http/1.1") -> ssl.SSLContext:
    """Give a TLS context that takes any certificate: right answers are known by their tokens."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols([alpn])
    return context


async def connect(proxy: int | None, upstream: int) -> Connection:
    """Open a TLS connection to the provider, by CONNECT where a proxy's port is given.

    Raises: OSError; ConnectionError where the proxy refuses.
    """
    sock = await tunnel(proxy, upstream)
    _, connection = await asyncio.get_running_loop().create_connection(
        Connection, sock=sock, ssl=client_context(), server_hostname=workloads.HOST
    )
    return connection


async def tunnel(proxy: int | None, upstream: int) -> socket.socket:
    """Open a TCP connection to the provider, by CONNECT where a proxy's port is given.

    Raises: OSError; ConnectionError where the proxy refuses.
    """
    loop = asyncio.get_running_loop()
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    await loop.sock_connect(sock, ("127.0.0.1", proxy or upstream))
    if proxy:
        await loop.sock_sendall(sock, _connect_request(upstream))
        said = b""
        while b"\r\n\r\n" not in said:
            more = await loop.sock_recv(sock, 4096)
            said += more
            if not more or len(said) > 65536:
                break
        if b" 200" not in said[:13]:
            sock.close()
            raise ConnectionError(f"CONNECT refused: {said[:300]!r}")
    return sock


def _connect_request(upstream: int) -> bytes:
    authority = f"{workloads.HOST}:{upstream}".encode()
    return b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (authority, authority)


async def load(told: dict[str, Any]) -> None:
    """Ask for blocks of requests over some connections at once; one result for each block."""
    work = WORKLOADS[told["workload"]]
    authority = f"{workloads.HOST}:{told['upstream']}"
    blocks = [
        [(workloads.token(n), workloads.request(work, n, authority)) for n in block]
        for block in told["blocks"]
    ]
    if told.get("own_keys"):
        blocks = [
            [
                (token, wire.replace(workloads.KEY, workloads.own_key(token)))
                for token, wire in block
            ]
            for block in blocks
        ]
    async with asyncio.timeout(_CONNECT_S):
        lines = [await connect(told["proxy"], told["upstream"]) for _ in range(told["connections"])]
    talk.say({"ready": True})
    for block in blocks:
        await talk.go()
        took_ms: list[float] = []
        faults: list[str] = []
        todo = iter(block)
        started = time.monotonic()
        async with asyncio.timeout(_BLOCK_S), asyncio.TaskGroup() as tasks:
            for line in lines:
                tasks.create_task(_drive(line, todo, took_ms, faults))
        wall_s = time.monotonic() - started
        took_ms.sort()
        talk.say(
            {
                "requests": len(took_ms),
                "wall_s": wall_s,
                "p50_ms": statistics.median(took_ms),
                "p99_ms": took_ms[min(len(took_ms) - 1, len(took_ms) * 99 // 100)],
                "wrong": len(faults),
                "fault": faults[0] if faults else "",
            }
        )
    await talk.rest()


async def _drive(
    line: Connection, todo: Iterator[tuple[bytes, bytes]], took_ms: list[float], faults: list[str]
) -> None:
    for token, wire in todo:
        asked = time.monotonic()
        answer = await line.ask(wire)
        took_ms.append((time.monotonic() - asked) * 1000)
        if fault := answer.fault(token):
            faults.append(fault)


async def paced(told: dict[str, Any]) -> None:
    """Ask so many times a second whether or not answers have come; one result for each slice of time.

    A request is late from the moment at which it should have been sent, so that what waits for a free connection counts.
    """
    works = [WORKLOADS[name] for name in told["workloads"]]
    authority = f"{workloads.HOST}:{told['upstream']}"
    number, rate = told["first"], told["rate"]
    async with asyncio.timeout(_CONNECT_S):
        lines = [await connect(told["proxy"], told["upstream"]) for _ in range(told["connections"])]
    talk.say({"ready": True})
    while True:
        await talk.go()
        count = int(rate * told["slice_s"])
        due = time.monotonic() + 0.05
        todo = iter([(number + at, due + at / rate) for at in range(count)])
        took_ms: list[float] = []
        faults: list[str] = []
        async with asyncio.timeout(_BLOCK_S), asyncio.TaskGroup() as tasks:
            for line in lines:
                tasks.create_task(_drive_paced(line, works, authority, todo, took_ms, faults))
        number += count
        took_ms.sort()
        talk.say(
            {
                "requests": len(took_ms),
                "wall_s": time.monotonic() - due,
                "p50_ms": statistics.median(took_ms),
                "p99_ms": took_ms[len(took_ms) * 99 // 100],
                "wrong": len(faults),
                "fault": faults[0] if faults else "",
            }
        )


async def _drive_paced(
    line: Connection,
    works: list[workloads.Workload],
    authority: str,
    todo: Iterator[tuple[int, float]],
    took_ms: list[float],
    faults: list[str],
) -> None:
    for number, due in todo:
        wire = workloads.request(works[number % len(works)], number, authority)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        answer = await line.ask(wire)
        took_ms.append((time.monotonic() - due) * 1000)
        if fault := answer.fault(workloads.token(number)):
            faults.append(fault)


async def agent(told: dict[str, Any]) -> None:
    """Run an agent of 30 steps: a model call of 300 ms, then a small one; connecting counts.

    Before that a few quick calls over another connection warm what is to be measured.
    """
    authority = f"{workloads.HOST}:{told['upstream']}"
    first = told["first"]

    def wires(names: tuple[str, ...], steps: range) -> list[tuple[bytes, bytes]]:
        return [
            (workloads.token(n), workloads.request(WORKLOADS[name], n, authority))
            for n in steps
            for name in names
        ]

    async def run(wires: list[tuple[bytes, bytes]]) -> float:
        started = time.monotonic()
        line = await connect(told["proxy"], told["upstream"])
        for token, wire in wires:
            if fault := (await line.ask(wire)).fault(token):
                raise ConnectionError(fault)
        took_s = time.monotonic() - started
        line.close()
        return took_s

    warm = wires(("llm", "small"), range(first + workloads.STEPS, first + workloads.STEPS + 10))
    steps = wires(("slow", "small"), range(first, first + workloads.STEPS))
    talk.say({"ready": True})
    await talk.go()
    async with asyncio.timeout(_BLOCK_S):
        await run(warm)
        talk.say({"requests": len(steps), "wall_s": await run(steps)})
    await talk.rest()


async def ttfb(told: dict[str, Any]) -> None:
    """Measure the first byte of short event streams, one at a time, over several routes in turn."""
    authority = f"{workloads.HOST}:{told['upstream']}"
    # 20 events, so that many streams fit in a round; the first byte does not know the length.
    query = "&events=20&gap_ms=5"
    work = workloads.Workload("sse", WORKLOADS["sse"].target + query, 2, 0)
    rng = random.Random(told["seed"])
    routes: dict[str, int | None] = told["routes"]
    async with asyncio.timeout(_CONNECT_S):
        lines = {name: await connect(port, told["upstream"]) for name, port in routes.items()}
    took_ms: dict[str, list[float]] = {name: [] for name in routes}
    talk.say({"ready": True})
    await talk.go()
    number = 0
    for turn in range(told["warm"] + told["streams"]):
        for name in rng.sample(sorted(lines), len(lines)):
            number += 1
            wire = workloads.request(work, number, authority)
            async with asyncio.timeout(_STREAM_S):
                asked = time.monotonic()
                answer = await lines[name].ask(wire)
            if answer.data.count(b'data: {"id":"%b"' % workloads.token(number)) != 20:
                raise ConnectionError(f"{name}: not the stream that was asked for")
            if turn >= told["warm"]:
                took_ms[name].append((answer.first_body_at - asked) * 1000)
    talk.say({"took_ms": took_ms})
    await talk.rest()


async def first(told: dict[str, Any]) -> None:
    """Ask from `go` on until the first right answer comes, and say when, on the monotonic clock.

    A proxy that does not listen yet, or closes, is asked again after 3 ms.
    """
    work = WORKLOADS[told["workload"]]
    wire = workloads.request(work, told["number"], f"{workloads.HOST}:{told['upstream']}")
    talk.say({"ready": True})
    await talk.go()
    fault = "nothing listened"
    async with asyncio.timeout(_FIRST_S):
        while True:
            try:
                line = await connect(told["proxy"], told["upstream"])
                answer = await line.ask(wire)
            except OSError as error:
                fault = str(error)
                await asyncio.sleep(_RETRY_S)
                continue
            at = time.monotonic()
            if fault := answer.fault(workloads.token(told["number"])):
                raise ConnectionError(fault)
            talk.say({"at": at})
            break
    await talk.rest()


if __name__ == "__main__":
    uvloop.run(
        talk.serve({"load": load, "paced": paced, "agent": agent, "ttfb": ttfb, "first": first})
    )
