"""Server-sent events: the same events, in the same pieces, at the pace that is asked for.

Pieces and events are different things: here one event comes in three pieces, one of them in the middle of a
letter, and two events come in one. `httpx-sse` reads the events; a bare socket sees the pieces and when they come.
"""

import asyncio
import itertools
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Exchange, RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import get, open_tunnel
from playhead.timeline import Receipt, build

if TYPE_CHECKING:
    from httpx_sse import ServerSentEvent

PIECES = (
    b": a comment\n\n",
    b"event: greeting\nid: 1\ndata: gr\xc3",
    b"\xbc\xc3\x9fe",
    b"\ndata: a second line\n\n",
    b"data: two\n\ndata: three\nid: 3\n\n",
    b"retry: 1500\r\ndata:no space\r\n\r\n",
    b"event: end\ndata: [DONE]\n\n",
)
EVENTS = [
    ("greeting", "grüße\na second line", "1", None),
    ("message", "two", "1", None),
    ("message", "three", "3", None),
    ("message", "no space", "3", 1500),
    ("end", "[DONE]", "3", None),
]
"""Event, data, last id, retry."""
GAP_S = 0.05
"""Between two pieces of the origin."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
PACES = {"instant": 0.0, "recorded": 1.0, "half": 0.5, "double": 2.0}
OVER = ("h1", "h2")

Arrivals = list[tuple[float, bytes]]
"""Seconds since the request was sent, and a piece."""


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def _http1(conversation: Conversation) -> None:
    await conversation.say(HEAD)
    for piece in PIECES:
        await asyncio.sleep(GAP_S)
        await conversation.say(_chunk(piece))
    await conversation.say(b"0\r\n\r\n")


def _http2(stream: Stream) -> bool:
    stream.head(("content-type", "text/event-stream"))
    for piece in PIECES:
        threading.Event().wait(GAP_S)
        stream.data(piece)
    stream.data(b"", end=True)
    return False


# ---- the clients -------------------------------------------------------------------------------------


def _read_events(proxy: str, url: str, ca: Path) -> list[tuple[Any, ...]]:
    import httpx
    from httpx_sse import connect_sse

    context = ssl.create_default_context(cafile=str(ca))
    with (
        httpx.Client(proxy=proxy, verify=context, http2=True, timeout=20) as client,
        connect_sse(client, "GET", url) as source,
    ):
        return [_event(found) for found in source.iter_sse()]


def _event(found: "ServerSentEvent") -> tuple[Any, ...]:
    return found.event, found.data, found.id, found.retry


def _watch_http1(proxy: str, url: str, ca: Path) -> Arrivals:
    with open_tunnel(proxy, url, ca) as tunnel:
        begun = time.monotonic()
        get(tunnel, url)
        arrivals = []
        while data := tunnel.recv(65536):
            arrivals.append((time.monotonic() - begun, data))
    received = b"".join(data for _, data in arrivals)
    assert received == HEAD + b"".join(map(_chunk, PIECES)) + b"0\r\n\r\n"
    return _by_chunk(arrivals)


def _by_chunk(arrivals: Arrivals) -> Arrivals:
    """Say when each chunk was whole."""
    ends = list(itertools.accumulate((len(_chunk(piece)) for piece in PIECES), initial=len(HEAD)))
    found: Arrivals = []
    size = 0
    for at_s, data in arrivals:
        size += len(data)
        while len(found) < len(PIECES) and ends[len(found) + 1] <= size:
            found.append((at_s, PIECES[len(found)]))
    return found


def _watch_http2(proxy: str, url: str, ca: Path) -> Arrivals:
    with open_tunnel(proxy, url, ca, alpn="h2") as tunnel:
        client = Http2Client(tunnel)
        begun = time.monotonic()
        stream = client.ask("GET", url)
        arrivals: Arrivals = []

        def note() -> bool:
            pieces = [item for item in client.got[stream] if isinstance(item, bytes)]
            for piece in pieces[len(arrivals) :]:
                arrivals.append((time.monotonic() - begun, piece))
            return client.got[stream][-1:] == ["end"]

        client.read_until(note)
        return arrivals


WATCH: dict[str, Callable[[str, str, Path], Arrivals]] = {"h1": _watch_http1, "h2": _watch_http2}


# ---- running it --------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came over one protocol."""

    events: list[tuple[Any, ...]]
    arrivals: Arrivals
    replayed_events: dict[str, list[tuple[Any, ...]]]
    """By pace."""
    replayed_arrivals: dict[str, Arrivals]
    tape: list[Exchange]
    """Of the one that only looked at pieces."""
    receipts: dict[str, Receipt]


async def _tell(
    urls: dict[str, str], stop: Callable[[], None], pool: ThreadPoolExecutor, config: Config
) -> dict[str, Outcome]:
    async with running_engine(config) as running:

        def ask(read: Any, run: str, over: str) -> asyncio.Future[Any]:
            proxy, url = running.url_for(run), f"{urls[over]}/events"
            loop = asyncio.get_running_loop()
            return loop.run_in_executor(pool, read, proxy, url, running.ca)

        async def both(over: str) -> tuple[list[tuple[Any, ...]], Arrivals]:
            events = ask(_read_events, f"{over}-events", over)
            arrivals = ask(WATCH[over], f"{over}-pieces", over)
            return await events, await arrivals

        recorded = await asyncio.gather(*map(both, OVER))
        names = [f"{over}-{what}" for over in OVER for what in ("events", "pieces")]
        for name in names:
            await running.end(name)
        stop()
        found = {
            over: Outcome(*seen, {}, {}, _tape(running, f"{over}-pieces"), {})
            for over, seen in zip(OVER, recorded, strict=True)
        }
        for number, (pace, factor) in enumerate(PACES.items(), 1):
            playback = replace(running.registry.config.playback, pace=factor)
            running.change(mode=Mode.PLAYBACK, playback=playback)
            for over, seen in zip(OVER, await asyncio.gather(*map(both, OVER)), strict=True):
                found[over].replayed_events[pace], found[over].replayed_arrivals[pace] = seen
            for name in names:
                await running.end(f"{name}@{number}")
            for over in OVER:
                again = running.store.runs.get(RunId(f"{over}-pieces@{number}"))
                found[over].receipts[pace] = build(running.store, again)
        return found


def _tape(running: Running, name: str) -> list[Exchange]:
    return list(running.store.exchanges.all(running.store.runs.get(RunId(name))))


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> dict[str, Outcome]:
    """Record the stream over each protocol, stop the origins, replay it at every pace."""
    store = tmp_path_factory.mktemp("sse") / "store"
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with (
        RawOrigin(_http1, certificates) as h1,
        FramesOrigin(_http2, certificates) as h2,
        ThreadPoolExecutor(4) as pool,
    ):

        def stop() -> None:
            h1.stop()
            h2.stop()

        urls = {"h1": h1.url, "h2": h2.url}
        return asyncio.run(_tell(urls, stop, pool, config))


# ---- what must hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize("over", OVER)
def test_events_are_read_as_they_were_sent(outcomes: dict[str, Outcome], over: str) -> None:
    """While recording, whatever pieces they came in."""
    assert outcomes[over].events == EVENTS


@pytest.mark.parametrize("over", OVER)
def test_the_tape_keeps_every_piece(outcomes: dict[str, Outcome], over: str) -> None:
    """With its time, which is that of the origin's pace."""
    (exchange,) = outcomes[over].tape
    response = exchange.response
    assert response is not None
    assert response.body == b"".join(PIECES)
    assert [chunk.size for chunk in response.chunks] == [len(piece) for piece in PIECES]
    gaps = [b.at_us - a.at_us for a, b in zip(response.chunks, response.chunks[1:], strict=False)]
    assert sum(gaps) >= GAP_S * (len(PIECES) - 1) * 0.9e6


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("over", OVER)
def test_events_and_pieces_are_replayed_at_every_pace(
    outcomes: dict[str, Outcome], over: str, pace: str
) -> None:
    """The same events, and every piece on its own."""
    outcome = outcomes[over]
    assert outcome.replayed_events[pace] == EVENTS
    assert [piece for _, piece in outcome.replayed_arrivals[pace]] == list(PIECES)
    assert outcome.receipts[pace].faithful is True, outcome.receipts[pace].to_json()


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("over", OVER)
def test_no_piece_comes_before_its_time(outcomes: dict[str, Outcome], over: str, pace: str) -> None:
    """The recorded time, times the factor."""
    outcome = outcomes[over]
    response = outcome.tape[0].response
    assert response is not None
    for chunk, (at_s, _) in zip(response.chunks, outcome.replayed_arrivals[pace], strict=True):
        assert at_s >= chunk.at_us / 1e6 * PACES[pace] - 0.001


@pytest.mark.parametrize("over", OVER)
def test_instant_waits_for_nothing(outcomes: dict[str, Outcome], over: str) -> None:
    """It takes less than what is played at the recorded pace and slower."""
    took = {pace: found[-1][0] for pace, found in outcomes[over].replayed_arrivals.items()}
    assert took["instant"] < took["recorded"] < took["double"]
