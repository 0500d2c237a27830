"""The client's side: each line that it writes is asked of the proxy, and what comes back is written to it.

The same for recording and playback. Lines are asked in their order: the next one once the last has reached the server, while
recording; once it is answered where it asks nothing, or else has been sent, in playback.
"""

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from typing import Protocol

from ...tape.policy.decide import CONTROL_HOST
from ..standard_streams import print_status
from .http import LINE_FIELD, Exchange, Fields, Proxy, ask
from .messages import Asked, Events, Exit, Lines, Said, make_error, read_asked, read_number
from .ordered_output import InOrder

_READ = 64 * 1024
_MOST_ASIDE = 16
"""Pieces of the client's that wait to be asked."""
_HELD_S = 5.0
"""Longest time for which a message that the proxy holds back, for a person to approve it, has those behind it wait."""
_LAST_S = 5.0
"""Longest wait for what is still to come once the client of a playback has hung up."""
_MOST_TEXT = 2000


class Recorded(Protocol):
    """The server that is asked, while it is recorded."""

    said: int
    exit_code: int
    dismissed: asyncio.Event

    def expect(self, line: bytes) -> asyncio.Event:
        """Say that a message is on its way; give what is set once it is here."""

    async def hang_up(self) -> None:
        """Tell it that the client is done with it, and wait until it has ended."""

    async def end(self) -> None:
        """End the answers that were never given."""


class Pipe:
    """Standard input and output of a client, and the proxy."""

    def __init__(self, proxy: Proxy, url: str, fields: Fields, server: Recorded | None) -> None:
        """Prepare; nothing is read yet.

        url: what stands for the server.
        fields: for each request.
        server: while recording.
        """
        self._proxy, self._url, self._fields, self._server = proxy, url, fields, server
        self._asking: set[asyncio.Task[None]] = set()
        self._exit: Exit | None = None
        self._gone = asyncio.Event()
        """The server has ended by itself."""
        self._heard = 0
        """Lines of the server that have come."""
        self._more = asyncio.Event()

    async def run(self) -> int:
        """Carry messages until both sides are done; give the exit code of the server, minus a signal."""
        self._output = InOrder()
        loop = asyncio.get_running_loop()
        begun = asyncio.Event()
        stream = loop.create_task(self._listen(begun))
        await begun.wait()
        reading = loop.create_task(self._read())
        waiting = [reading, loop.create_task(self._gone.wait())]
        if self._server is not None:
            waiting.append(loop.create_task(self._server.dismissed.wait()))
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
        await self._finish()
        if self._gone.is_set():
            # What it ended was recorded whole, and is to be seen whole.
            await asyncio.wait([stream, *self._asking], timeout=_LAST_S)
        left = [stream, *waiting, *self._asking]
        for task in left:
            task.cancel()
        await asyncio.wait(left)
        self._output.close()
        if self._server is not None:
            # Whoever is answered here has been seen to leave before.
            await ask(self._proxy, "GET", f"http://{CONTROL_HOST}/run")
            await self._server.end()
            return self._server.exit_code
        return self._exit.code if self._exit is not None else 0

    async def _finish(self) -> None:
        """Wait for what is still to come, after the client or the server has ended."""
        if self._server is not None:
            await self._server.hang_up()
            deadline = asyncio.get_running_loop().time() + _LAST_S
            while self._heard < self._server.said:
                self._more.clear()
                left_s = deadline - asyncio.get_running_loop().time()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._more.wait(), left_s)
                    continue
                break
        elif self._asking and not self._gone.is_set():
            await asyncio.wait(self._asking, timeout=_LAST_S)

    async def _read(self) -> None:
        """Ask what the client says, until it has said all."""
        lines = Lines()
        async for data in _standard_input():
            for line in lines.feed(data):
                await self._say(line.removesuffix(b"\r"))
        await self._say(lines.rest)

    async def _say(self, line: bytes) -> None:
        if not line.strip():
            return
        asked = read_asked(line)
        sent = self._server.expect(line) if self._server is not None else asyncio.Event()
        asking = asyncio.get_running_loop().create_task(self._ask(line, asked, sent))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        sending = asyncio.get_running_loop().create_task(sent.wait())
        wanted = [asking, sending] if asked.ids or self._server is not None else [asking]
        await asyncio.wait(wanted, timeout=_HELD_S, return_when=asyncio.FIRST_COMPLETED)
        sending.cancel()

    async def _ask(self, line: bytes, asked: Asked, sent: asyncio.Event) -> None:
        kind = b"application/json" if asked.is_json else b"application/octet-stream"
        accept = b"application/json, text/event-stream"
        fields = (*self._fields, (b"content-type", kind), (b"accept", accept))
        try:
            async with Exchange(self._proxy, "POST", self._url, line, fields) as exchange:
                if self._server is None:
                    sent.set()
                await exchange.head()
                await self._answer(exchange, asked)
        except OSError as error:
            await self._fail(asked, f"the proxy could not be asked: {error}")

    async def _answer(self, exchange: Exchange, asked: Asked) -> None:
        if exchange.status >= 300:
            body = b"".join([piece async for piece in exchange.pieces()])
            await self._fail(asked, _read_refusal(body) or f"the proxy answered {exchange.status}")
        elif exchange.field(b"content-type").startswith(b"text/event-stream"):
            await self._follow(exchange)
        else:
            body = b"".join([piece async for piece in exchange.pieces()])
            if body:
                number = read_number(exchange.field(LINE_FIELD))
                await self._write(Said(number, body + b"\n"))

    async def _fail(self, asked: Asked, text: str) -> None:
        """Tell the client, or a person, that a message came to nothing."""
        if asked.ids:
            await self._write(Said(0, make_error(asked.ids, text[:_MOST_TEXT])))
        elif not self._gone.is_set():
            print_status(f"playhead stdio: {text[:_MOST_TEXT]}")

    async def _listen(self, begun: asyncio.Event) -> None:
        """Take what the server says by itself."""
        fields = (*self._fields, (b"accept", b"text/event-stream"))
        try:
            async with Exchange(self._proxy, "GET", self._url, b"", fields) as exchange:
                if self._server is None:
                    begun.set()
                await exchange.head()
                begun.set()
                if exchange.status >= 300:
                    body = b"".join([piece async for piece in exchange.pieces()])
                    print_status(f"playhead stdio: {_read_refusal(body) or exchange.status}")
                    return
                await self._follow(exchange)
        except OSError as error:
            print_status(f"playhead stdio: the proxy could not be asked: {error}")
        finally:
            begun.set()

    async def _follow(self, exchange: Exchange) -> None:
        events = Events()
        async for piece in exchange.pieces():
            for item in events.feed(piece):
                if isinstance(item, Exit):
                    self._exit = item
                    self._gone.set()
                else:
                    await self._write(item)

    async def _write(self, said: Said) -> None:
        await self._output.put(*said)
        if said.number:
            self._heard += 1
            self._more.set()


def _read_refusal(body: bytes) -> str:
    """Give the words of an answer that Playhead made; empty where it has none."""
    try:
        told = json.loads(body)
        return str(told["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return body[:_MOST_TEXT].decode("utf-8", "replace").strip()


async def _standard_input() -> AsyncIterator[bytes]:
    """Yield what comes on standard input. It is read on a thread that ends with the process."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue(_MOST_ASIDE)

    def read() -> None:
        data = b"."
        while data:
            try:
                data = os.read(0, _READ)
            except OSError:
                data = b""
            try:
                asyncio.run_coroutine_threadsafe(queue.put(data), loop).result()
            except (RuntimeError, CancelledError):
                return  # the loop has ended: nobody reads any more

    threading.Thread(target=read, daemon=True, name="standard input").start()
    while data := await queue.get():
        yield data
