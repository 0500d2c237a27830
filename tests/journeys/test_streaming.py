"""Streams and ends: what passes as it comes, what is kept of what was cut, and who is made to wait again.

As in `test_clients`, everything is recorded at once under one `playhead serve`, the origins are stopped, and
everything is replayed at once. Nobody sleeps: where something has to happen first, the client tells the
origin of it beside the proxy.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmdb
import pytest
from aiohttp import web

from playhead.proxy.trust.environment import environment
from playhead.store import Store
from playhead.tape.exchange import Exchange, FaultKind, Phase
from playhead.tests.support import prepared
from playhead.tests.support.certificates import Certificates, make_certificates
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.needs import Outcomes, has
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import Serve, wait_until
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline import Receipt, build

SCRIPT = Path(__file__).with_name("clients") / "stream_client.py"
PATIENCE_S = 1.6
"""Of the client that loses it; the proxy may see its request a tenth of that late."""
_LONG_S = 20.0
PARALLEL = 4

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
EVENTS = tuple(f"data: event {number}\n\n".encode() for number in range(1, 5))
_INTERNAL_ERROR = 2
"""Error code of RFC 9113 section 7."""
ANSWER = b'{"refunded": true}\n\n'


class Signals:
    """What clients say beside the proxy, waited for by origins."""

    def __init__(self) -> None:
        self._events: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> threading.Event:
        """Give the event of a name."""
        with self._lock:
            return self._events.setdefault(name, threading.Event())

    async def wait(self, name: str) -> None:
        """Wait until a client has said it."""
        assert await asyncio.to_thread(self.of(name).wait, _LONG_S), f"nobody said {name}"

    async def hear(self, request: web.Request) -> web.Response:
        """Take a signal: the handler of the origin beside the proxy."""
        self.of(request.match_info["name"]).set()
        return web.Response(text="heard")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Streams:
    """What the origin does at each path; the first part of a path is the run."""

    def __init__(self, signals: Signals) -> None:
        self.signals = signals

    async def __call__(self, conversation: Conversation) -> None:
        _, run, name, *_ = conversation.path.split("/")
        await getattr(self, name.replace("-", "_"))(conversation, run)

    async def live(self, conversation: Conversation, run: str) -> None:
        """Say one event after the other, each when the client has the one before."""
        await conversation.say(CHUNKED)
        for index, event in enumerate(EVENTS):
            if index:
                await self.signals.wait(f"{run}-{index}")
            await conversation.say(_chunk(event))
        await self.signals.wait(f"{run}-{len(EVENTS)}")
        await conversation.say(b"0\r\n\r\n")

    async def live_length(self, conversation: Conversation, run: str) -> None:
        """The same with a length."""
        length = len(b"".join(EVENTS))
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
        for index, event in enumerate(EVENTS):
            if index:
                await self.signals.wait(f"{run}-{index}")
            await conversation.say(event)

    async def endless(self, conversation: Conversation, run: str) -> None:
        """Say two events and nothing more, and note when the other side has left."""
        await conversation.say(CHUNKED)
        await conversation.say(b"".join(map(_chunk, EVENTS[:2])))
        await conversation.left()
        self.signals.of(f"{run}-left").set()

    async def finishing(self, conversation: Conversation, run: str) -> None:
        """Say two events, and the rest when the client has gone."""
        await conversation.say(CHUNKED)
        await conversation.say(b"".join(map(_chunk, EVENTS[:2])))
        await self.signals.wait(f"{run}-end")
        await conversation.say(b"".join(map(_chunk, EVENTS[2:])) + b"0\r\n\r\n")

    async def late(self, conversation: Conversation, run: str) -> None:
        """Answer when the client has given up."""
        await self.signals.wait(f"{run}-end")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        await conversation.say(head % len(ANSWER) + ANSWER)

    async def never(self, conversation: Conversation, run: str) -> None:
        """Answer nothing."""
        await conversation.left()
        self.signals.of(f"{run}-left").set()

    async def cut_length(self, conversation: Conversation, _: str) -> None:
        """Promise a thousand bytes and end after some."""
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + EVENTS[0])

    async def cut_chunked(self, conversation: Conversation, _: str) -> None:
        """End without the last chunk."""
        await conversation.say(CHUNKED + _chunk(EVENTS[0]) + _chunk(EVENTS[1]))

    async def cut_in_chunk(self, conversation: Conversation, _: str) -> None:
        """End in the middle of a chunk."""
        await conversation.say(CHUNKED + _chunk(EVENTS[0]) + _chunk(EVENTS[1])[:-9])

    async def cut_reset(self, conversation: Conversation, run: str) -> None:
        """Reset in the middle of a body, when the client has the first part."""
        await conversation.say(CHUNKED + _chunk(EVENTS[0]))
        await self.signals.wait(f"{run}-1")
        conversation.reset()

    async def closed(self, conversation: Conversation, _: str) -> None:
        """Close without an answer."""

    async def reset(self, conversation: Conversation, _: str) -> None:
        """Reset without an answer."""
        conversation.reset()

    async def two_lengths(self, conversation: Conversation, _: str) -> None:
        """Answer with what can be read in two ways."""
        await conversation.say(
            CHUNKED.replace(b"Content-Type", b"Content-Length: 5\r\nContent-Type")
        )

    async def garbage(self, conversation: Conversation, _: str) -> None:
        """Answer with what is no HTTP."""
        await conversation.say(b"220 this is no web server\r\n\r\n")


def _frames(signals: Signals) -> Callable[[Stream], bool]:
    """Give what the HTTP/2 origin does, by path."""

    def script(stream: Stream) -> bool:
        _, run, name = stream.path.split("/")
        if name == "late":
            assert signals.of(f"{run}-end").wait(_LONG_S)
            stream.head(("content-type", "application/json"))
            stream.data(ANSWER, end=True)
            return False
        stream.head(("content-type", "text/event-stream"))
        if name == "endless":
            for event in EVENTS[:2]:
                stream.data(event)
            stream.on_reset = signals.of(f"{run}-left").set
            return False
        if name == "frames":
            for event in EVENTS:
                stream.data(event, end=event is EVENTS[-1])
            return False
        for index, event in enumerate(EVENTS):
            if index:
                assert signals.of(f"{run}-{index}").wait(_LONG_S)
            stream.data(event)
        assert signals.of(f"{run}-{len(EVENTS)}").wait(_LONG_S)
        if name == "cut-stream":
            stream.reset(_INTERNAL_ERROR)
        elif name == "cut-connection":
            return True
        else:
            stream.data(b"", end=True)
        return False

    return script


# ---- what is run -------------------------------------------------------------------------------------

LIVE = {
    "live": ("GET", "{h1}/live/live"),
    "live-length": ("GET", "{h1}/live-length/live-length"),
    "live-model": ("POST", "{h1}/live-model/live/v1/chat/completions"),
    "live-h2": ("GET", "{h2}/live-h2/live", "http2=yes"),
    "frames-h2": ("GET", "{h2}/frames-h2/frames", "http2=yes"),
    "live-plain": ("GET", "{plain}/live-plain/live"),
}
LEFT = {
    "left-read": ("GET", "{h1}/left-read/endless", "leave=2"),
    "left-model": ("POST", "{h1}/left-model/endless/v1/chat/completions", "leave=2"),
    "left-h2": ("GET", "{h2}/left-h2/endless", "leave=2", "http2=yes"),
    "left-effect": ("POST", "{h1}/left-effect/finishing", "leave=2"),
}
IMPATIENT = {
    "late-effect": ("POST", "{h1}/late-effect/late", f"patience={PATIENCE_S}"),
    "late-h2": ("POST", "{h2}/late-h2/late", f"patience={PATIENCE_S}", "http2=yes"),
    "silent-read": ("GET", "{h1}/silent-read/never", f"patience={PATIENCE_S}"),
}
CUT_BY_SCRIPT = {"cut-reset": ("GET", "{h1}/cut-reset/cut-reset")}
CUT_H2 = {
    "cut-stream": ("GET", "{h2}/cut-stream/cut-stream", "http2=yes"),
    "cut-connection": ("GET", "{h2}/cut-connection/cut-connection", "http2=yes"),
}
SILENT = dict.fromkeys(
    ("left-read", "left-model", "left-h2", "silent-read"), (f"patience={PATIENCE_S}",)
)
"""Where a client that stays on replay waits for nothing."""
STREAMED = {**LIVE, **LEFT, **IMPATIENT, **CUT_BY_SCRIPT, **CUT_H2}

PARTIAL = 18
"""curl's exit code for a body that ended early."""
CURLED: dict[str, tuple[str, FaultKind, Phase]] = {
    f"{name}-{scheme}": (f"{{{scheme}}}/{name}-{scheme}/{name}", kind, phase)
    for scheme in ("h1", "plain")
    for name, kind, phase in (
        ("cut-length", FaultKind.CUT, Phase.BODY),
        ("cut-chunked", FaultKind.CUT, Phase.BODY),
        ("cut-in-chunk", FaultKind.CUT, Phase.BODY),
        ("closed", FaultKind.RESET, Phase.HEAD),
        ("reset", FaultKind.RESET, Phase.HEAD),
        ("garbage", FaultKind.MALFORMED, Phase.HEAD),
        ("two-lengths", FaultKind.MALFORMED, Phase.HEAD),
    )
} | {
    "untrusted": ("{stranger}/x", FaultKind.TLS, Phase.TLS),
    "refused-h1": ("https://127.0.0.1:{nobody}/x", FaultKind.REFUSED, Phase.CONNECT),
    "refused-plain": ("http://127.0.0.1:{nobody}/x", FaultKind.REFUSED, Phase.CONNECT),
}


IMPORTS = (*prepared.HTTPX, "playhead.tests.journeys.clients.transcript")


@dataclass
class Outcome:
    """What came of one client."""

    recorded: Any
    replayed: Any = None
    stayed: Any = None
    """Of a client that asks the same on a second replay, but neither leaves nor loses patience so soon."""
    tape: list[Exchange] = field(default_factory=list)
    receipt: Receipt | None = None

    @property
    def exchange(self) -> Exchange:
        """The one exchange of the tape."""
        (found,) = self.tape
        return found


def _run(command: list[str], env: dict[str, str]) -> Any:
    return prepared.run(command, imports=IMPORTS, timeout=60, env=env, process_group=0)


def _curl(url: str) -> list[str]:
    return ["curl", "-sS", "-i", "--suppress-connect-headers", "--max-time", "20", url]


def _script(words: tuple[str, ...], places: dict[str, str], *more: str) -> list[str]:
    return [sys.executable, str(SCRIPT), *(word.format(**places) for word in words), *more]


def _all(proxy: Serve, public_dir: Path, commands: dict[str, tuple[str, list[str]]]) -> Any:
    """Run commands at the same time, each under the run that is given with it."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        running = {}
        for name, (run, command) in commands.items():
            env = environment(os.environ, proxy_url=proxy.url_for(run), public_dir=public_dir)
            running[name] = pool.submit(_run, command, env)
        return {name: future.result() for name, future in running.items()}


@dataclass
class Story:
    """Everything that was recorded and replayed."""

    outcomes: Outcomes[Outcome]
    signals: Signals


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Story:
    """Record every stream, stop the origins, replay every stream."""
    store = tmp_path_factory.mktemp("streaming") / "store"
    flags = ("--listen", "127.0.0.1:0", "--store", store, "--upstream-ca", certificates.root)
    signals = Signals()
    with contextlib.ExitStack() as stack:
        streams = Streams(signals)
        h1 = stack.enter_context(RawOrigin(streams, certificates))
        plain = stack.enter_context(RawOrigin(streams))
        unknown = make_certificates(store.with_name("unknown"))
        stranger = stack.enter_context(RawOrigin(streams, unknown))
        h2 = stack.enter_context(FramesOrigin(_frames(signals), certificates))
        beside = stack.enter_context(Origin({"/{name}": signals.hear}))
        with socket.create_server(("127.0.0.1", 0)) as unused:
            nobody = str(unused.getsockname()[1])
        places = {"h1": h1.url, "plain": plain.url, "h2": h2.url, "nobody": nobody}
        places["stranger"] = stranger.url
        curled = CURLED if has("curl") else {}
        curls = {name: (name, _curl(url.format(**places))) for name, (url, *_) in curled.items()}
        scripts = {
            name: (name, _script(words, places, f"signal={beside.url}/{name}"))
            for name, words in STREAMED.items()
        }
        with Serve("--mode", "record", *flags) as proxy:
            recorded = _all(proxy, store / "ca", curls | scripts)
            with Store.open(store, readonly=True) as opened:
                wait_until(lambda: not _missing(opened, recorded))
        for origin in (h1, plain, stranger, h2, beside):
            origin.stop()
        scripts = {name: (name, _script(words, places)) for name, words in STREAMED.items()}
        with Serve("--mode", "playback", "--late", "served", *flags) as proxy:
            replayed = _all(proxy, store / "ca", curls | scripts)
            patient = {
                name: (name, _script((*words[:2], *words[3:]), places, *SILENT.get(name, ())))
                for name, words in (LEFT | IMPATIENT).items()
            }
            stayed = _all(proxy, store / "ca", patient)
    made = {name: Outcome(done, replayed[name]) for name, done in recorded.items()}
    outcomes = Outcomes(made, "curl")
    for name, done in stayed.items():
        outcomes[name].stayed = done
    with Store.open(store, readonly=True) as opened:
        for name, outcome in outcomes.items():
            outcome.tape = list(opened.exchanges.all(opened.runs.get(name)))
            outcome.receipt = build(opened, opened.runs.get(f"{name}@1"))
    return Story(outcomes, signals)


def _missing(store: Store, recorded: dict[str, Any]) -> list[str]:
    """List the runs of which no outcome is known yet."""
    runs = {name: store.runs.find(name) for name in recorded}
    return [name for name, run in runs.items() if run is None or not list(store.exchanges.all(run))]


def _said(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def _texts(done: Any) -> list[str]:
    return [line["text"] for line in _said(done) if line["case"] == "event"]


# ---- what must hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*STREAMED, *CURLED])
def test_a_replay_ends_as_the_recording_did(story: Story, name: str) -> None:
    """The same transcript and exit code, whole, cut, left, or refused; the tape is exhausted."""
    outcome = story.outcomes[name]
    assert outcome.replayed.returncode == outcome.recorded.returncode, outcome.replayed.stderr
    assert outcome.replayed.stdout == outcome.recorded.stdout
    assert outcome.receipt is not None
    assert outcome.receipt.faithful is True, outcome.receipt.to_json()


@pytest.mark.parametrize("name", LIVE)
def test_events_pass_one_by_one_while_they_are_recorded(story: Story, name: str) -> None:
    """The origin says an event only when the client has the one before: nothing is waited for."""
    outcome = story.outcomes[name]
    assert outcome.recorded.returncode == 0, outcome.recorded.stderr.decode()
    assert _texts(outcome.recorded) == [event.decode().rstrip("\n") for event in EVENTS]
    response = outcome.exchange.response
    assert response is not None
    assert response.complete
    assert response.body == b"".join(EVENTS)
    assert [chunk.size for chunk in response.chunks] == [len(event) for event in EVENTS]
    times = [chunk.at_us for chunk in response.chunks]
    assert response.head_us <= times[0]
    assert times == sorted(set(times))


@pytest.mark.parametrize("name", ["left-read", "left-model", "left-h2"])
def test_a_stream_that_was_left_is_kept_as_far_as_it_came(story: Story, name: str) -> None:
    """What passed is on the tape, with the place at which the client left; the upstream was let go."""
    exchange = story.outcomes[name].exchange
    assert exchange.response is not None
    assert exchange.gone is not None
    assert (exchange.gone.head, exchange.gone.chunks) == (True, 2)
    assert exchange.response.body == b"".join(EVENTS[:2])
    assert not exchange.response.complete
    assert exchange.fault is None
    assert story.signals.of(f"{name}-left").wait(5)


@pytest.mark.parametrize("name", ["left-read", "left-model", "left-h2"])
def test_who_stays_longer_gets_the_recorded_part_and_then_silence(story: Story, name: str) -> None:
    """On replay nothing is made up after what had passed, not even an end."""
    stayed = story.outcomes[name].stayed
    assert _texts(stayed) == _texts(story.outcomes[name].recorded)
    assert [line["kind"] for line in _said(stayed) if line["case"] == "error"] == ["ReadTimeout"]


def test_an_effect_that_was_left_is_read_to_its_end(story: Story) -> None:
    """The rest of the answer is on the tape although nobody waited for it."""
    outcome = story.outcomes["left-effect"]
    assert outcome.exchange.gone is not None
    assert outcome.exchange.gone.chunks == 2
    assert outcome.exchange.response is not None
    assert outcome.exchange.response.complete
    assert outcome.exchange.response.body == b"".join(EVENTS)
    assert _texts(outcome.replayed) == ["data: event 1", "data: event 2"]
    assert _texts(outcome.stayed) == [f"data: event {number}" for number in range(1, 5)]


@pytest.mark.parametrize("name", ["late-effect", "late-h2"])
def test_an_answer_that_came_too_late_is_recorded(story: Story, name: str) -> None:
    """The client's timeout and the 200 that came after it are both on the tape."""
    outcome = story.outcomes[name]
    exchange = outcome.exchange
    assert [line["case"] for line in _said(outcome.recorded)] == ["error", "end"]
    assert exchange.gone is not None
    assert not exchange.gone.head
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert exchange.response.complete
    assert exchange.response.body == ANSWER
    assert exchange.response.head_us > exchange.gone.at_us >= PATIENCE_S * 0.9e6
    assert exchange.fault is None


@pytest.mark.parametrize("name", ["late-effect", "late-h2"])
def test_a_client_times_out_again_and_one_that_waits_gets_the_late_answer(
    story: Story, name: str
) -> None:
    """The late answer keeps its time on replay, whatever the pace."""
    outcome = story.outcomes[name]
    assert [line.get("kind") for line in _said(outcome.replayed)] == ["ReadTimeout", None]
    head, *_ = _said(outcome.stayed)
    assert head["status"] == 200
    assert _texts(outcome.stayed) == [ANSWER.decode().rstrip("\n")]


def test_silence_is_replayed_as_silence(story: Story) -> None:
    """A request that never got an answer gets none on replay, however long the client waits."""
    outcome = story.outcomes["silent-read"]
    assert outcome.exchange.response is None
    assert outcome.exchange.gone is not None
    for done in (outcome.recorded, outcome.replayed, outcome.stayed):
        assert [line.get("kind") for line in _said(done)] == ["ReadTimeout", None]


@pytest.mark.parametrize("name", CURLED)
def test_a_failed_upstream_is_no_page_of_ours(story: Story, name: str) -> None:
    """The client sees a failure of the connection, never an answer that nobody sent."""
    _, kind, phase = CURLED[name]
    outcome = story.outcomes[name]
    fault = outcome.exchange.fault
    assert fault is not None
    assert (fault.kind, fault.phase) == (kind, phase)
    assert outcome.recorded.returncode != 0
    assert b"502" not in outcome.recorded.stdout
    if phase is not Phase.BODY:
        assert outcome.recorded.stdout == b""
        assert outcome.exchange.response is None


@pytest.mark.parametrize("name", [name for name in CURLED if name.startswith("cut")])
def test_a_cut_body_is_cut_at_the_same_byte(story: Story, name: str) -> None:
    """curl reports a partial body, and the bytes before the cut are the origin's."""
    outcome = story.outcomes[name]
    part = {
        "cut-length": EVENTS[0],
        "cut-chunked": b"".join(EVENTS[:2]),
        "cut-in-chunk": EVENTS[0] + EVENTS[1][:-7],
    }[name.rpartition("-")[0]]
    assert outcome.recorded.returncode == PARTIAL, outcome.recorded.stderr
    assert outcome.recorded.stdout.partition(b"\r\n\r\n")[2] == part
    response = outcome.exchange.response
    assert response is not None
    assert not response.complete
    assert response.body == part


@pytest.mark.parametrize("name", [*CUT_BY_SCRIPT, *CUT_H2])
def test_a_stream_that_is_cut_ends_in_an_error(story: Story, name: str) -> None:
    """The client keeps what came before, and learns that it was not all."""
    outcome = story.outcomes[name]
    count = 1 if name in CUT_BY_SCRIPT else len(EVENTS)
    assert len(_texts(outcome.recorded)) == count
    assert [line["case"] for line in _said(outcome.recorded)][-2:] == ["error", "end"]
    assert outcome.exchange.fault is not None
    assert outcome.exchange.fault.phase is Phase.BODY
    assert outcome.exchange.response is not None
    assert outcome.exchange.response.body == b"".join(EVENTS[:count])


# ---- logged before released --------------------------------------------------------------------------


class _Blocked:
    """A proxy that records, its origin, and a way to keep the store from committing."""

    def __init__(self, proxy: Serve, origin: RawOrigin, store: Path) -> None:
        self.proxy = proxy
        self.origin = origin
        self.store = store
        self.seen = threading.Event()
        """Set once the client has read what it may have early; the origin may wait for it."""

    def ask(self, method: str, path: str) -> socket.socket:
        """Send a plain request through the proxy."""
        host, port = self.proxy.address.rsplit(":", 1)
        opened = socket.create_connection((host, int(port)), timeout=_LONG_S)
        given = b64encode(b"held:x").decode()
        lines = (
            f"{method} {self.origin.url}{path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.origin.port}",
            f"Proxy-Authorization: Basic {given}",
            "Content-Length: 0",
            "Connection: close",
        )
        opened.sendall("\r\n".join([*lines, "", ""]).encode())
        return opened

    @contextlib.contextmanager
    def no_commits(self) -> Iterator[None]:
        """Hold LMDB's write lock: its writers wait, in whatever process they are."""
        path = str(self.store / "log.lmdb")
        with lmdb.open(path, max_dbs=16, map_size=1 << 40) as environment:
            transaction = environment.begin(write=True)
            try:
                yield
            finally:
                transaction.abort()


def _read(opened: socket.socket, enough: Callable[[bytes], bool]) -> bytes:
    """Read until it is enough, or to the end."""
    received = b""
    while not enough(received):
        data = opened.recv(65536)
        if not data:
            break
        received += data
    return received


def _is_silent(opened: socket.socket, for_s: float = 0.3) -> bool:
    opened.settimeout(for_s)
    try:
        return opened.recv(65536) is None
    except TimeoutError:
        return True
    finally:
        opened.settimeout(_LONG_S)


WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\nhello, world"
CLOSING = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
DONE = b"data: [DONE]\n\n"
HEAD = WHOLE.removesuffix(b"hello, world")
HELD = {
    # (what the origin sends, what the client may have before it is durable)
    "length": (WHOLE, b""),  # it came whole, and is passed on whole
    "head-first": (WHOLE, HEAD),
    "chunks": (CLOSING + _chunk(b"all") + b"0\r\n\r\n", CLOSING + _chunk(b"all")),
    "terminal": (
        CLOSING + _chunk(b"data: 1\n\n") + _chunk(DONE) + b"0\r\n\r\n",
        CLOSING + _chunk(b"data: 1\n\n"),
    ),
    "empty": (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", b""),
}


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Blocked]:
    """Start a recording whose store can be blocked."""
    store = tmp_path_factory.mktemp("held") / "store"

    async def say(conversation: Conversation) -> None:
        name = conversation.path.rpartition("/")[2]
        if name == "head-first":
            await conversation.say(HEAD)
            await asyncio.to_thread(made.seen.wait, _LONG_S)
            await conversation.say(WHOLE.removeprefix(HEAD))
        else:
            await conversation.say(HELD[name][0] if name in HELD else WHOLE)

    with (
        RawOrigin(say) as origin,
        Serve("--mode", "record", "--listen", "127.0.0.1:0", "--store", store) as proxy,
    ):
        made = _Blocked(proxy, origin, store)
        with made.ask("GET", "/first") as opened:  # opens the run
            assert _read(opened, lambda _: False) == WHOLE
        yield made


@pytest.mark.parametrize("name", HELD)
def test_an_answer_is_durable_before_its_last_byte_is_released(
    blocked: _Blocked, name: str
) -> None:
    """While the store cannot commit, the client waits for the end; what came before has passed."""
    sent, before = HELD[name]
    blocked.seen.clear()
    with blocked.no_commits():
        opened = blocked.ask("GET", f"/{name}")
        wait_until(lambda: any(f"/{name} ".encode() in head for head in blocked.origin.heads))
        early = _read(opened, lambda received: len(received) >= len(before))
        assert early == before
        blocked.seen.set()
        assert _is_silent(opened)
    with opened:
        rest = _read(opened, lambda _: False)
    assert early + rest == sent


def test_an_effect_is_logged_before_it_is_forwarded(blocked: _Blocked) -> None:
    """While the store cannot commit, nothing of an effect reaches the upstream."""
    count = len(blocked.origin.heads)
    with blocked.no_commits():
        opened = blocked.ask("POST", "/effect")
        silent = _is_silent(opened)
        assert (silent, len(blocked.origin.heads)) == (True, count)
    with opened:
        assert _read(opened, lambda _: False) == WHOLE
    assert len(blocked.origin.heads) == count + 1
