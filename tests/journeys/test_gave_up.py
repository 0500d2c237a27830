"""The client gave up: that it did is no proof that nothing happened.

An effect happens whether or not somebody waits for its answer, so the upstream is read on and the late answer is
kept. Tokens of a model are burnt for nobody, so there the client's leaving is passed on. On replay the client waits
in vain again and gives up again; whoever waits longer gets what came late, and not before its time.
"""

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.config import Config, Mode, Playback
from playhead.tape.exchange import Exchange, FaultKind, Phase, RequestClass, RunId
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.patience import ask
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline import Receipt, build
from playhead.timeline.reading.exchange_json import exchange_json

PATIENCE_S = 0.6
LATER_S = 0.4
"""How long after a client has gone the rest comes; a replay in which it waits so much longer still has it go first."""
AT_ONCE = 8
"""Cases under way; more keep each other waiting, and a client that hears late does not give up."""
_LONG_S = 10.0
EVENTS = tuple(f"data: event {number}\n\n".encode() for number in range(1, 5))
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT_STREAM, JSON = b"text/event-stream", b"application/json"
ANSWER = (b'{"refund": ', b'"done"}')
"""In two pieces."""
BODY = b'{"model": "m", "amount": 5}'
MODEL = "v1/chat/completions"


@dataclass(frozen=True)
class Case:
    """A client that gives up, and what the origin does before and after."""

    over: str
    what: str
    """`late`: nothing before it. `stream`: two events before it. `cut`: late, and then cut."""
    model: bool = False
    leave: bool = False
    """Whether it leaves by itself after what came, and does not wait for more."""

    @property
    def name(self) -> str:
        """Name of its run."""
        return "-".join([self.over, self.what, *["model"] * self.model, *["leaving"] * self.leave])

    @property
    def path(self) -> str:
        """Where it asks."""
        return f"/{self.name}/{self.what}" + (f"/{MODEL}" if self.model else "")

    @property
    def early(self) -> bytes:
        """What comes of the body before the client gives up."""
        return b"".join(EVENTS[:2]) if self.what == "stream" else b""

    @property
    def late(self) -> bytes:
        """What comes after it."""
        if self.model:
            return b""
        return {
            "late": b"".join(ANSWER),
            "stream": b"".join(EVENTS[2:]),
            "cut": ANSWER[0],
        }[self.what]


EFFECTS = [
    Case(over, what, leave=leave)
    for over in ("h1", "h2")
    for what, leave in (("late", False), ("cut", False), ("stream", False), ("stream", True))
]
MODELS = [
    Case(over, what, model=True, leave=leave)
    for over in ("h1", "h2")
    for what, leave in (("late", False), ("stream", False), ("stream", True))
]
CASES = {case.name: case for case in [*EFFECTS, *MODELS]}


class Origins:
    """Two origins that wait until they are told that the client has gone."""

    def __init__(self) -> None:
        self.gone: dict[str, threading.Event] = defaultdict(threading.Event)
        """Set when the client has gone, by run."""
        self.left: dict[str, threading.Event] = defaultdict(threading.Event)
        """Set when an origin has seen its client go."""

    async def http1(self, conversation: Conversation) -> None:
        """Answer over HTTP/1."""
        case = CASES[conversation.path.split("/")[1]]
        kind = EVENT_STREAM if case.what == "stream" else JSON
        if case.what == "stream":
            await conversation.say(CHUNKED % kind + b"".join(map(_chunk, EVENTS[:2])))
        if case.model:
            await conversation.left()
            self.left[case.name].set()
            return
        assert await asyncio.to_thread(self.gone[case.name].wait, _LONG_S)
        match case.what:
            case "stream":
                for event in EVENTS[2:]:
                    await conversation.say(_chunk(event))
            case "late":
                await conversation.say(CHUNKED % kind)
                for piece in ANSWER:
                    await conversation.say(_chunk(piece))
            case "cut":
                await conversation.say(CHUNKED % kind + _chunk(ANSWER[0]))
                conversation.reset()
                return
        await conversation.say(b"0\r\n\r\n")

    def http2(self, stream: Stream) -> bool:
        """Answer over HTTP/2."""
        case = CASES[stream.path.split("/")[1]]
        stream.on_reset = self.left[case.name].set
        kind = ("content-type", (EVENT_STREAM if case.what == "stream" else JSON).decode())
        if case.what == "stream":
            stream.head(kind)
            for event in EVENTS[:2]:
                stream.data(event)
        if case.model:
            return False
        assert self.gone[case.name].wait(_LONG_S)
        match case.what:
            case "stream":
                stream.data(EVENTS[2])
                stream.data(EVENTS[3], end=True)
            case "late":
                stream.head(kind)
                stream.data(ANSWER[0])
                stream.data(ANSWER[1], end=True)
            case "cut":
                stream.head(kind)
                stream.data(ANSWER[0])
                stream.reset(2)
        return False


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# ---- the clients -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """What a client saw."""

    body: bytes
    how: str
    """`gave up`, `left`, `end`, or how the connection or stream ended."""
    took_s: float = field(default=0.0, compare=False)


def _ask(case: Case, proxy: str, url: str, ca: Path, patience_s: float, *, leave: bool) -> Seen:
    """Ask once, with so much patience; leave on purpose when two events have come."""
    begun = time.monotonic()
    seen = ask(
        *(case.over, proxy, url, ca, BODY, patience_s),
        enough=lambda came: leave and EVENTS[1] in came,
        begun=lambda came: not case.early or EVENTS[1] in came,
    )
    return Seen(seen.body, seen.how, time.monotonic() - begun)


# ---- running it --------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What came of a case."""

    recorded: Seen
    replayed: Seen
    patient: Seen
    """Of a client that on a second replay waits for longer, and does not leave by itself."""
    tape: Exchange
    receipt: Receipt


async def _few[T](do: Callable[[Case], Awaitable[T]]) -> list[T]:
    """Do something for each case, a few at a time."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> T:
        async with free:
            return await do(case)

    return await asyncio.gather(*map(one, CASES.values()))


async def _tell(
    urls: dict[str, str],
    origins: Origins,
    clients: ThreadPoolExecutor,
    stop: Callable[[], None],
    config: Config,
) -> dict[str, Outcome]:
    async with running_engine(config) as running:

        async def see(case: Case, patience_s: float, *, leave: bool) -> Seen:
            proxy, url = running.url_for(case.name), urls[case.over] + case.path
            ask = partial(_ask, case, proxy, url, running.ca, patience_s, leave=leave)
            return await asyncio.get_running_loop().run_in_executor(clients, ask)

        async def record(case: Case) -> Seen:
            seen = await see(case, PATIENCE_S, leave=case.leave)
            open_run = running.open_run(case.name)
            await _until(
                lambda: (
                    open_run.on_the_way.requests
                    and all(
                        pending.progress.gone for pending in open_run.on_the_way.pending_exchanges
                    )
                )
            )
            asyncio.get_running_loop().call_later(LATER_S, origins.gone[case.name].set)
            assert await open_run.settled(_LONG_S), "its exchange was never kept"
            await running.end(case.name)
            return seen

        async def replay(case: Case) -> tuple[Seen, Seen]:
            again = await see(case, PATIENCE_S, leave=case.leave)
            await running.end(f"{case.name}@1")
            # Of a model nothing came late, whoever waits.
            patience_s = PATIENCE_S if case.model else _LONG_S
            return again, await see(case, patience_s, leave=False)

        recorded = await _few(record)
        stop()
        running.play()
        replayed = await _few(replay)
        return {
            name: Outcome(seen, *again, _only(running, name), _receipt(running, name))
            for name, seen, again in zip(CASES, recorded, replayed, strict=True)
        }


async def _until(check: Any) -> None:
    async with asyncio.timeout(_LONG_S):
        while not check():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.002)


def _only(running: Running, name: str) -> Exchange:
    (found,) = running.store.exchanges.all(running.store.runs.get(RunId(name)))
    return found


def _receipt(running: Running, name: str) -> Receipt:
    return build(running.store, running.store.runs.get(RunId(f"{name}@1")))


@pytest.fixture(scope="module")
def told(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[tuple[dict[str, Outcome], Origins]]:
    """Have every client give up, while recording and on replay."""
    origins = Origins()
    with (
        RawOrigin(origins.http1, certificates) as h1,
        FramesOrigin(origins.http2, certificates) as h2,
        # Not the loop's own threads: the engine needs those.
        ThreadPoolExecutor(len(CASES)) as clients,
    ):

        def stop() -> None:
            h1.stop()
            h2.stop()

        urls = {"h1": h1.url, "h2": h2.url}
        store = tmp_path_factory.mktemp("gave-up") / "store"
        played = Playback(late="served")
        config = Config(
            mode=Mode.RECORD, store=store, upstream_ca=certificates.root, playback=played
        )
        yield asyncio.run(_tell(urls, origins, clients, stop, config)), origins


@pytest.fixture
def outcomes(told: tuple[dict[str, Outcome], Origins]) -> dict[str, Outcome]:
    """What came of each case."""
    return told[0]


# ---- what must hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EFFECTS, ids=lambda case: case.name)
def test_an_effect_is_read_on_and_its_late_answer_kept(
    outcomes: dict[str, Outcome], case: Case
) -> None:
    """The moment at which the client gave up, what it had been sent, and all that came after."""
    outcome = outcomes[case.name]
    assert outcome.recorded == Seen(case.early, "left" if case.leave else "gave up")
    tape = outcome.tape
    assert tape.request_class is RequestClass.EFFECT
    assert tape.gone is not None
    assert tape.response is not None
    assert tape.response.body == case.early + case.late
    assert (tape.gone.head, tape.gone.chunks) == (bool(case.early), 2 if case.early else 0)
    assert tape.gone.at_us > 0
    late = tape.response.chunks[tape.gone.chunks :]
    assert sum(chunk.size for chunk in late) == len(case.late)
    assert all(chunk.at_us > tape.gone.at_us for chunk in late)
    assert case.early or tape.response.head_us > tape.gone.at_us
    assert tape.response.complete == (case.what != "cut")
    if case.what == "cut":
        assert tape.fault is not None
        assert (tape.fault.kind, tape.fault.phase) == (FaultKind.CUT, Phase.BODY)
    else:
        assert tape.fault is None


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_a_model_is_told_within_a_second_that_nobody_waits(
    told: tuple[dict[str, Outcome], Origins], case: Case
) -> None:
    """The provider stops generating; what had come is kept."""
    outcomes, origins = told
    outcome = outcomes[case.name]
    assert origins.left[case.name].wait(1)
    assert outcome.recorded == Seen(case.early, "left" if case.leave else "gave up")
    tape = outcome.tape
    assert tape.request_class is RequestClass.INFERENCE
    assert tape.gone is not None
    assert tape.fault is None
    assert (tape.response.body if tape.response else b"") == case.early
    assert (tape.response is not None) == bool(case.early)


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_a_client_gives_up_again_on_replay(outcomes: dict[str, Outcome], case: Case) -> None:
    """At whatever pace: it sees what it saw, and the replay is faithful."""
    outcome = outcomes[case.name]
    assert outcome.replayed == outcome.recorded
    assert outcome.receipt.faithful is True, outcome.receipt.to_json()


@pytest.mark.parametrize("case", EFFECTS, ids=lambda case: case.name)
def test_who_waits_longer_gets_what_came_late_and_not_before_its_time(
    outcomes: dict[str, Outcome], case: Case
) -> None:
    """With `late: served`; the pace `instant` shortens no wait in which a client gave up."""
    outcome = outcomes[case.name]
    how = "end"
    if case.what == "cut":
        how = "rst" if case.over == "h1" else "reset 2"
    assert outcome.patient == Seen(case.early + case.late, how)
    assert outcome.tape.response is not None
    late = outcome.tape.response.chunks[-1]
    assert outcome.patient.took_s >= late.at_us / 1e6


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_a_model_that_was_left_says_nothing_more(outcomes: dict[str, Outcome], case: Case) -> None:
    """On replay nothing is made up after what had come, not even an end."""
    assert outcomes[case.name].patient == Seen(case.early, "gave up")


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_the_exported_exchange_says_when_the_client_had_gone(
    outcomes: dict[str, Outcome], case: Case
) -> None:
    """`client_gone_at` and `late_response`, beside what came."""
    tape = outcomes[case.name].tape
    document = json.loads(json.dumps(exchange_json(tape)))
    assert tape.gone is not None
    assert document["client_gone_at"] == tape.gone.at_us
    assert document["late_response"] is (not case.model)
