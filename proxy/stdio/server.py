"""The server that is being recorded: a process, and the path socket at which its answers are fetched through the proxy.

1. Messages reach the server in the order in which the client sent them: `Pipe` sends the next one when the last is here.
2. What the server says goes with the request that it answers or reports progress of; what belongs to none with the youngest
   request that is open, since a server that asks its client something does so to answer it; else with the stream of a GET.
3. What is never answered, and the stream of a GET, the client leaves when it is done with the server; a playback leaves them
   so too. A server that ends by itself ends what it has not answered, and says so in the stream of the GET.
"""

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...tape.canonical.json_rpc_client_ids import Key
from ..errors import EngineError
from ..processes.unstartable_command import explain_start
from ..standard_streams import print_status
from .http import Responder
from .messages import (
    Asked,
    Lines,
    LineTooLong,
    find_answered,
    is_plain,
    make_event,
    make_exit,
    read_asked,
)

_READ = 64 * 1024
_EVENTS = "text/event-stream"
_JSON = "application/json"
_END_S = 2.0
_MOST = 1000
"""Lines that wait for the proxy to take them."""


class _Line(NamedTuple):
    """What a server wrote."""

    number: int
    data: bytes
    half: bool = False
    """It wrote no end of line behind it."""
    last: bool = False
    """Nothing more answers the same request."""


class _Open:
    """A request that is not answered yet, or the stream of a GET."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.left = set(asked.ids)
        self._queue: asyncio.Queue[_Line | bytes | None] = asyncio.Queue(_MOST)
        self._dropped = False

    async def put(self, item: _Line | bytes | None) -> None:
        """Add a line, an event as it is, or None for the end.

        Waits while many are there that nobody has taken.
        """
        if not self._dropped:
            await self._queue.put(item)

    async def take(self) -> _Line | bytes | None:
        """Take the next one."""
        return await self._queue.get()

    def drop(self) -> None:
        """Take no more: nobody reads it."""
        self._dropped = True
        while not self._queue.empty():
            self._queue.get_nowait()


class Server:
    """A server that runs. Use as `async with`."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """Prepare; nothing is started yet.

        folder: for its socket.
        """
        self._command, self._environ = command, environ
        self.name = secrets.token_hex(8)
        self._path = folder / self.name
        self._open: list[_Open] = []
        self._stream = _Open(Asked({}))
        self._arrivals: deque[tuple[bytes, asyncio.Event]] = deque()
        self._writing = asyncio.Lock()
        self._answering: set[asyncio.Task[None]] = set()
        self._left = False
        self.said = 0
        """Lines that it wrote."""
        self.exit_code = 0
        """Once it has ended; minus a signal."""
        self.dismissed = asyncio.Event()
        """It has ended after its client was done with it."""
        self._ended: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Server":
        """Start it. Raises: EngineError."""
        try:
            self._listener = await asyncio.start_unix_server(self._serve, self._path)
        except OSError as error:
            raise EngineError(
                f"no socket can be made in {self._path.parent}: {error.strerror or error}",
                "record outside a strict sandbox and outside containers; a replay works in all of them",
            ) from error
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=dict(self._environ),  # uvloop takes no other mapping
            )
        except OSError as error:
            await self._close()
            raise explain_start(
                self._command, error.errno or 0, error.strerror or str(error)
            ) from error
        self._ended = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._close()

    async def _close(self) -> None:
        self._listener.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def expect(self, line: bytes) -> asyncio.Event:
        """Say that a message is on its way; give what is set once it is here."""
        event = asyncio.Event()
        self._arrivals.append((line, event))
        return event

    async def hang_up(self) -> None:
        """Close its standard input, as the client is done with it, and wait until it has ended."""
        self._left = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._ended is not None
        await self._ended

    async def end(self) -> None:
        """End the answers that were never given, after the client has left them."""
        for one in (self._stream, *self._open):
            await one.put(None)
        if self._answering:
            await asyncio.wait(self._answering, timeout=_END_S)

    def signal(self, number: int) -> None:
        """Pass a signal on."""
        self._left = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    # ---- what the server says ------------------------------------------------------------------

    async def _read(self) -> None:
        assert self._process.stdout is not None
        lines = Lines()
        problem = ""
        try:
            while data := await self._process.stdout.read(_READ):
                for line in lines.feed(data):
                    await self._hear(line)
        except LineTooLong as error:
            problem = str(error)
            self._process.kill()
        if lines.rest and not problem:
            self.said += 1
            await self._find().put(_Line(self.said, lines.rest, half=True))
        self.exit_code = await self._process.wait()
        if problem:
            print_status(f"playhead stdio: the server was ended: {problem}")
        if self._left:
            self.dismissed.set()
        else:
            for one in list(self._open):
                await one.put(None)
            await self._stream.put(make_exit(self.exit_code))
            await self._stream.put(None)

    async def _hear(self, line: bytes) -> None:
        self.said += 1
        answered, progress = find_answered(line)
        for one in self._open:
            if one.left & answered:
                one.left -= answered
                last = not one.left
                if last:
                    self._open.remove(one)
                await one.put(_Line(self.said, line, last=last))
                return
        await self._find(progress).put(_Line(self.said, line))

    def _find(self, progress: Collection[Key] = ()) -> _Open:
        spoken_of = (one for one in self._open if not one.asked.tokens.isdisjoint(progress))
        return next(spoken_of, self._open[-1] if self._open else self._stream)

    # ---- what is asked of it -------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        responder = Responder(reader, writer)
        opened = self._stream
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        try:
            method, line = await responder.read()
            if method == "GET":
                await responder.begin(200, _EVENTS)
                await _push(responder, opened, begun=True)
            else:
                opened = _Open(read_asked(line))
                await self._take(responder, opened, line)
        except OSError:
            pass  # the proxy closed it: nobody waits for an answer any more
        finally:
            opened.drop()
            await responder.close()

    async def _take(self, responder: Responder, opened: _Open, line: bytes) -> None:
        async with self._writing:
            if opened.left:
                self._open.append(opened)
            await self._write(line)
            self._note(line)
        if opened.asked.ids:
            await _push(responder, opened, begun=False)
        else:
            await responder.begin(202, size=0)
            await responder.end()

    async def _write(self, line: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(line + b"\n")
            await stdin.drain()
        except (OSError, RuntimeError):
            pass  # it has ended, which `_read` tells

    def _note(self, line: bytes) -> None:
        for index, (expected, event) in enumerate(self._arrivals):
            if expected == line:
                event.set()
                del self._arrivals[index]
                return


async def _push(responder: Responder, opened: _Open, *, begun: bool) -> None:
    """Send what comes for a request, or for the stream of a GET, until it ends."""
    while (item := await opened.take()) is not None:
        if isinstance(item, bytes):
            await responder.say(item)
            continue
        if item.last and not begun and is_plain(item.data):
            await responder.begin(200, _JSON, size=len(item.data), number=item.number)
            await responder.say(item.data)
            break
        if not begun:
            await responder.begin(200, _EVENTS)
            begun = True
        await responder.say(make_event(item.number, item.data, half=item.half))
        if item.last:
            break
    else:
        if not begun:
            await responder.begin(200, _EVENTS)
    await responder.end()
