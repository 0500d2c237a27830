"""A fake provider for the measurements of the wire: HTTP/1.1 and HTTP/2 over TLS, HTTP/1.1 without.

Prints `ready TLS_PORT PLAIN_PORT NEXT_PORT` and serves until its standard input ends. Its certificate is
the one that `upstream.py` wrote into the same folder. What it answers is told by the query (`as=`):

    pieces     `count` events, each sent when the client has asked for it by writing the token (`token=`) to
               NEXT_PORT: so each is read on its own, however slow the machine is
    sse        `count` events with gaps of 5 to 60 ms, the same for the same `token`
    post       takes the body and answers with 200 bytes
    download   `bytes` of noise; `length=1` announces them; `token` is the seed
    upload     takes the body, compares it with noise, and answers with what was wrong; `slow=1` takes it slowly
"""

import argparse
import asyncio
import contextlib
import json
import random
import ssl
import sys
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl

import uvloop
import workloads
from upstream import server_context
from wire import Exchange, Fields, Http1, Http2, Line

LEAST_GAP_S = 0.005
MOST_GAP_S = 0.060
BLOCK_BYTES = 65_536
"""Large bodies are sent in pieces of this size."""
_EVENTS: Fields = [(b"Content-Type", b"text/event-stream"), (b"Cache-Control", b"no-cache")]
_JSON: Fields = [(b"Content-Type", b"application/json")]
_BYTES: Fields = [(b"Content-Type", b"application/octet-stream")]
_POST_BYTES = 200


class Throttle:
    """Says how long to wait so that bytes are taken at a given rate."""

    def __init__(self, bytes_s: int) -> None:
        """bytes_s: 0 takes all at once."""
        self._bytes_s = bytes_s
        self._started = 0.0
        self._taken = 0

    def later_s(self, count: int) -> float:
        """Note that bytes came; give the seconds after which they are to be taken."""
        if not self._bytes_s:
            return 0.0
        self._started = self._started or time.monotonic()
        self._taken += count
        return max(0.0, self._started + self._taken / self._bytes_s - time.monotonic())


class Answering(Exchange):
    """One request and what answers it."""

    def __init__(self, waiting: dict[bytes, asyncio.Future[None]]) -> None:
        """waiting: by token, streams whose next piece is to be asked for."""
        self._waiting = waiting
        self._task: asyncio.Task[None] | None = None
        self._received = self._wrong = 0

    def head(self, line: Line, first: bytes, fields: dict[bytes, bytes]) -> None:
        """Take the target."""
        self._line = line
        told = dict(parse_qsl(first.decode("latin-1").partition("?")[2]))
        self._as, self._count = told.get("as", ""), int(told.get("count", 0))
        self._token = told.get("token", "0").encode()
        self._announced = told.get("length") == "1"
        self._noise = workloads.Noise(int(self._token))
        self._throttle = Throttle(workloads.SLOW_BYTES_S if told.get("slow") == "1" else 0)

    def data(self, data: bytes) -> None:
        """Count the body, and compare it where it is known."""
        self._received += len(data)
        if self._as == "upload" and data != self._noise.take(len(data)):
            self._wrong += 1
        self._line.took(self, len(data), self._throttle.later_s(len(data)))

    def end(self) -> None:
        """Begin to answer."""
        answers = {
            "pieces": self._pieces,
            "sse": self._sse,
            "post": self._post,
            "download": self._download,
            "upload": self._told,
        }
        self._task = asyncio.get_running_loop().create_task(self._guarded(answers[self._as]()))

    def lost(self, why: str) -> None:
        """Stop."""
        if self._task:
            self._task.cancel()

    async def _guarded(self, answer: Coroutine[None, None, None]) -> None:
        with contextlib.suppress(ConnectionError):  # the client hears of it
            await answer

    async def _pieces(self) -> None:
        self._line.answer(self, _EVENTS, None)
        for number in range(self._count):
            asked = self._waiting[self._token] = asyncio.get_running_loop().create_future()
            last = number + 1 == self._count
            await self._line.send(self, workloads.event(self._token, number), last=last)
            if not last:
                await asked
        self._waiting.pop(self._token, None)

    async def _sse(self) -> None:
        gaps = random.Random(self._token.decode())
        self._line.answer(self, _EVENTS, None)
        for number in range(self._count):
            await asyncio.sleep(gaps.uniform(LEAST_GAP_S, MOST_GAP_S))
            event = workloads.event(self._token, number)
            await self._line.send(self, event, last=number + 1 == self._count)

    async def _post(self) -> None:
        said = json.dumps({"id": self._token.decode(), "received": self._received})
        await self._say(said.ljust(_POST_BYTES).encode())

    async def _told(self) -> None:
        said = json.dumps({"received": self._received, "wrong": self._wrong})
        await self._say(said.encode())

    async def _say(self, body: bytes) -> None:
        self._line.answer(self, _JSON, len(body))
        await self._line.send(self, body, last=True)

    async def _download(self) -> None:
        self._line.answer(self, _BYTES, self._count if self._announced else None)
        for at in range(0, self._count, BLOCK_BYTES):
            part = self._noise.take(min(BLOCK_BYTES, self._count - at))
            await self._line.send(self, part, last=at + len(part) == self._count)


class Next(asyncio.Protocol):
    """Takes tokens of streams whose next piece is to be sent."""

    def __init__(self, waiting: dict[bytes, asyncio.Future[None]]) -> None:
        self._waiting = waiting
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        """Let each go on."""
        self._buffer += data
        while len(self._buffer) >= workloads.TOKEN_BYTES:
            asked = self._waiting.get(self._buffer[: workloads.TOKEN_BYTES])
            self._buffer = self._buffer[workloads.TOKEN_BYTES :]
            if asked and not asked.done():
                asked.set_result(None)


class Either(asyncio.Protocol):
    """A connection over TLS: becomes HTTP/2 or HTTP/1.1 as was agreed in the handshake."""

    def __init__(self, waiting: dict[bytes, asyncio.Future[None]]) -> None:
        self._waiting = waiting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand the connection on."""
        found: ssl.SSLObject = transport.get_extra_info("ssl_object")
        kind = Http2 if found.selected_alpn_protocol() == "h2" else Http1
        line = kind(lambda: Answering(self._waiting))
        cast(asyncio.Transport, transport).set_protocol(line)
        line.connection_made(transport)


async def serve(folder: Path) -> None:
    """Serve on loopback until standard input ends."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()

    def watch() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    waiting: dict[bytes, asyncio.Future[None]] = {}
    context = server_context(folder, ["h2", "http/1.1"])
    servers = [
        await loop.create_server(lambda: Either(waiting), "127.0.0.1", 0, ssl=context),
        await loop.create_server(lambda: Http1(lambda: Answering(waiting)), "127.0.0.1", 0),
        await loop.create_server(lambda: Next(waiting), "127.0.0.1", 0),
    ]
    threading.Thread(target=watch, daemon=True).start()
    print("ready", *(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await over.wait()
    for server in servers:
        server.close()


def main() -> None:
    """Run the provider from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the certificate is")
    uvloop.run(serve(parser.parse_args().folder))


if __name__ == "__main__":
    main()
