"""An agent's requests told as a list: recorded from an origin that answers as told, then played in any order."""

import asyncio
import http.client
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from playhead.config import Config, Mode
from playhead.tape.exchange import RunId
from playhead.timeline import Receipt, build

from .engine import Running, running_engine
from .origins import Origin


@dataclass(frozen=True)
class Call:
    """One request, and what is answered to it while recording."""

    what: str
    """METHOD and path with query."""
    body: Any = None
    """Sent as JSON, bytes as they are."""
    answer: Any = "ok"
    """Answered as JSON; a text as plain text."""
    headers: Mapping[str, str] = field(default_factory=dict)
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    status: int = 200
    """Answered while recording."""

    @property
    def sent(self) -> bytes:
        """Its body on the wire."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Said:
    """What a client got."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name."""

    @property
    def divergence(self) -> dict[str, Any]:
        """The divergence in the body of a refusal."""
        found: dict[str, Any] = json.loads(self.body)["playhead"]["divergence"]
        return found


class Story:
    """A tape that was recorded from calls, and an engine that plays it."""

    def __init__(self, running: Running, port: int) -> None:
        self.running = running
        self.port = port
        self.played = 0
        self.clients = ThreadPoolExecutor(16)

    async def ask(self, call: Call) -> Said:
        """Ask for one thing."""
        loop = asyncio.get_running_loop()
        # The engine has need of the loop's own threads.
        return await loop.run_in_executor(self.clients, _send, self.running, self.port, call)

    async def play(self, calls: Sequence[Call]) -> list[Said]:
        """Ask for some, one after another, in the open playback."""
        return [await self.ask(call) for call in calls]

    async def off_loop(self, do: Callable[..., None], *arguments: Any) -> None:
        """Run something that blocks, with this story first."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.clients, do, self, *arguments)

    async def end(self) -> Receipt:
        """End the playback; give its receipt."""
        self.played += 1
        name = f"tape@{self.played}"
        await self.running.end(name)
        return build(self.running.store, self.running.store.runs.get(RunId(name)))


@asynccontextmanager
async def recorded(
    store: Path,
    calls: Sequence[Call],
    recording: Mapping[str, Any] | None = None,
    begin: Callable[[Story], Awaitable[None]] | None = None,
    **config: Any,
) -> AsyncIterator[Story]:
    """Record calls, stop the origin, and go on in playback.

    recording: what is changed for the recording.
    begin: done first while recording.
    config: what is changed for the playback.
    """
    answers: dict[tuple[str, bytes], list[Call]] = defaultdict(list)
    for call in calls:
        answers[call.what, call.sent].append(call)

    async def answer(request: web.Request) -> web.Response:
        found = answers[f"{request.method} {request.path_qs}", await request.read()]
        call = found.pop(0) if len(found) > 1 else found[0]
        if isinstance(call.answer, str):
            return web.Response(text=call.answer, headers=dict(call.answer_headers))
        return web.json_response(call.answer, status=call.status, headers=dict(call.answer_headers))

    with Origin({"/{tail:.*}": answer}) as origin:
        async with running_engine(
            Config(mode=Mode.RECORD, store=store, **(recording or {}))
        ) as running:
            story = Story(running, origin.port)
            if begin is not None:
                await begin(story)
            for call in calls:
                assert (await story.ask(call)).status == call.status
            open_run = running.open_run("tape")
            assert await open_run.settled(10)
            await running.end("tape")
            origin.stop()
            running.play()
            running.change(**config)
            yield story
            story.clients.shutdown()


def _send(running: Running, port: int, call: Call) -> Said:
    place = urlsplit(running.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    method, _, path = call.what.partition(" ")
    headers = {"Proxy-Authorization": "Basic dGFwZTp4"}
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    try:
        url = f"http://{call.host}:{port}{path}"
        connection.request(method, url, call.sent, {**headers, **call.headers})
        response = connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return Said(response.status, response.read(), fields)
    finally:
        connection.close()
