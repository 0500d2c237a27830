"""WebSockets byte by byte: how each side may end, what is kept when, and what a replay does not let pass.

Both ends are the test's own, so that every frame can be seen. What libraries see is in tests/journeys.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from playhead.addons.run.pending_exchange import PendingExchange, on_their_way
from playhead.addons.websocket import Websocket
from playhead.addons.websockets.player import DIVERGED_REASON
from playhead.addons.websockets.recorder import WebSocketRecorder
from playhead.config import Config, IgnoreRule, Mode, parse_match
from playhead.config.schema import Classes, LiveRule
from playhead.proxy.engine.connection_handler import MOST_WAITING_BYTES
from playhead.proxy.engine.websocket import frames
from playhead.proxy.engine.websocket.frames import FrameReader
from playhead.store import LogCorrupt, RunInfo, StoreUnwritable
from playhead.tape.canonical.canonical_request import canonical, compile_rules, fingerprint
from playhead.tape.exchange import (
    Close,
    Ending,
    Fault,
    FaultKind,
    Message,
    MessageKind,
    Phase,
    RedactedText,
    RequestClass,
    VerdictKind,
    WebSocketSummary,
)
from playhead.tape.policy.refusal import REFUSAL_STATUS
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.client import Connection
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.exchanges import make_exchange, make_record, make_request, make_response
from playhead.tests.support.raw import Conversation as Raw
from playhead.tests.support.raw import RawOrigin
from playhead.tests.support.websocket import (
    BINARY,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Peer,
    RawServer,
    closing,
    frame,
)
from playhead.timeline import Receipt, build, render_exchange
from playhead.timeline.reading.exchange_json import exchange_json
from playhead.timeline.receipts.exchange_rows import rows

Script = Callable[[RawServer], Awaitable[None]]
Client = Callable[[Peer], Awaitable[list[str]]]

DIVERGED = [f"close 1008 {DIVERGED_REASON}", "end"]


def text(data: str) -> bytes:
    """A client's text."""
    return frame(TEXT, data.encode())


def said(data: str) -> bytes:
    """A server's text."""
    return frame(TEXT, data.encode(), masked=False)


def origin_of(script: Script, certificates: Certificates | None = None) -> RawOrigin:
    """A server that does as its script says after a handshake's request."""

    async def converse(conversation: Raw) -> None:
        await script(RawServer(conversation))

    return RawOrigin(converse, certificates)


def target_of(origin: RawOrigin) -> str:
    return f"127.0.0.1:{origin.port}"


async def until(check: Callable[[], Any]) -> Any:
    """Wait for something to be so; the test's own limit of time ends it."""
    while not (found := check()):  # noqa: ASYNC110  # see above
        await asyncio.sleep(0.002)
    return found


async def talk(
    running: Running,
    origin: RawOrigin,
    client: Client,
    *,
    run: str = "tape",
    path: str = "/",
    headers: str = "",
    secure: bool = False,
) -> list[str]:
    """Have a client talk through the proxy; give what it saw."""
    ca = running.ca if secure else None
    peer = await Peer.open(
        str(running.address), target_of(origin), path, run=run, ca=ca, headers=headers
    )
    try:
        return [str(peer.status)] if peer.status != 101 else await client(peer)
    finally:
        await peer.close()


async def ended(running: Running, run: str) -> tuple[RunInfo, Receipt]:
    """Seal a run, which is to have nothing on its way, and give its receipt."""
    open_run = running.open_run(run)
    assert await open_run.settled(5), "a pending exchange was never finished"
    await running.end(run)
    info = running.store.runs.get(run)
    return info, build(running.store, info)


class Tape:
    """What was kept of a recording with one exchange."""

    def __init__(self, running: Running, run: str = "tape") -> None:
        info = running.store.runs.get(run)
        (self.exchange,) = running.store.exchanges.all(info)
        self.messages = list(running.store.messages.all(info, self.exchange.seq))
        assert self.exchange.websocket is not None
        self.conversation = self.exchange.websocket

    @property
    def words(self) -> list[str]:
        """Who said what: `→` the client, `←` the server."""
        arrows = {True: "→", False: "←"}
        return [
            f"{arrows[message.from_client]} {message.data.decode('latin-1')}"
            for message in self.messages
        ]

    @property
    def close(self) -> tuple[bool, int, str]:
        close = self.conversation.close
        assert close is not None
        return close.by_client, close.code, close.reason


@asynccontextmanager
async def recording(store: Path, **changes: Any) -> AsyncIterator[Running]:
    async with running_engine(Config(mode=Mode.RECORD, store=store, **changes)) as running:
        yield running


async def twice(
    running: Running,
    origin: RawOrigin,
    client: Client,
    again: Client | None = None,
    *,
    headers: str = "",
    secure: bool = False,
) -> tuple[list[str], list[str], Receipt]:
    """Record, stop the origin, replay: what the client saw then, what it saw now, and the receipt."""
    first = await talk(running, origin, client, headers=headers, secure=secure)
    await ended(running, "tape")
    origin.stop()
    running.play()
    second = await talk(running, origin, again or client, headers=headers, secure=secure)
    _, receipt = await ended(running, "tape@1")
    assert not running.engine.denied
    return first, second, receipt


# ---- how a server may end ------------------------------------------------------------------------------


async def listen(peer: Peer) -> list[str]:
    """Say a word, and listen to the end."""
    peer.send(text("go"))
    return await peer.rest()


async def listen_and_answer(peer: Peer) -> list[str]:
    """The same; and answer the closing frame."""
    peer.send(text("go"))
    said_so_far = []
    while (came := await peer.read()) is not None:
        said_so_far.append(str(came))
        if said_so_far[-1].startswith("close"):
            peer.send(closing(1000))
    return [*said_so_far, "end"]


async def _close(server: RawServer) -> None:
    await server.accept(said("first"))
    assert await server.hear()
    await server.say(said("last"), closing(4000, "enough", masked=False))
    assert await server.hear()


async def _close_without_a_code(server: RawServer) -> None:
    await server.accept()
    assert await server.hear()
    await server.say(closing(None, masked=False))
    assert await server.hear()


async def _close_unasked(server: RawServer) -> None:
    await server.accept(closing(1012, "restarting", masked=False))
    await server.left()


async def _close_and_leave(server: RawServer) -> None:
    await server.accept()
    assert await server.hear()
    await server.say(said("last"), closing(1001, masked=False))


async def _leave(server: RawServer) -> None:
    await server.accept()
    assert await server.hear()
    await server.say(said("last"))


async def _leave_inside_a_frame(server: RawServer) -> None:
    await server.accept()
    assert await server.hear()
    await server.say(said("last"), said("never whole")[:5])


async def _reset(server: RawServer) -> None:
    await server.accept()
    assert await server.hear()
    await server.say(said("last"))
    await server.hear()  # the client has it before the reset overtakes it
    server.reset()


async def listen_and_say(peer: Peer) -> list[str]:
    """Say a word, and another one after the answer, and listen to the end."""
    peer.send(text("go"))
    came = str(await peer.read())
    peer.send(text("seen"))
    return [came, *await peer.rest()]


ENDS: dict[str, tuple[Script, Client, list[str], tuple[bool, int, str]]] = {
    "closed": (
        *(_close, listen_and_answer),
        *(["text first", "text last", "close 4000 enough", "end"], (False, 4000, "enough")),
    ),
    "closed without a code": (
        *(_close_without_a_code, listen_and_answer),
        *(["close", "end"], (False, 1005, "")),
    ),
    "closed unasked": (
        *(_close_unasked, listen_and_answer),
        *(["close 1012 restarting", "end"], (False, 1012, "restarting")),
    ),
    "closed and left": (
        *(_close_and_leave, listen),
        *(["text last", "close 1001", "end"], (False, 1001, "")),
    ),
    "left": (_leave, listen, ["text last", "end"], (False, 1006, "")),
    "left inside a frame": (
        *(_leave_inside_a_frame, listen),
        *(["text last", "end"], (False, 1006, "")),
    ),
    "reset": (_reset, listen_and_say, ["text last", "reset"], (False, 1006, "")),
}


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("name", ENDS)
async def test_a_server_ends_again_as_it_ended(
    name: str, secure: bool, store_dir: Path, certificates: Certificates
) -> None:
    """With a closing frame or without one; a reset is a reset."""
    script, client, expected, close = ENDS[name]
    with origin_of(script, certificates if secure else None) as origin:
        async with recording(store_dir, upstream_ca=certificates.root) as running:
            first, second, receipt = await twice(running, origin, client, secure=secure)
            tape = Tape(running)
    assert first == expected
    assert second == first
    assert receipt.faithful
    assert tape.close == close
    fault = tape.exchange.fault
    if close[1] != 1006:
        assert fault is None
    else:
        assert fault is not None
        kind = FaultKind.RESET if name == "reset" else FaultKind.CUT
        assert (fault.kind, fault.phase) == (kind, Phase.BODY)
        assert (fault.ending is Ending.RST) is (name == "reset")


@pytest.mark.parametrize("name", ENDS)
async def test_addons_hear_once_that_a_played_websocket_has_ended(
    name: str, store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever ends it, and however."""
    script, client, _, _ = ENDS[name]
    heard: list[str] = []
    end = Websocket.playhead_websocket_ended

    async def hear(self: Websocket, pending: PendingExchange) -> None:
        heard.append(pending.open_run.mode.value)
        await end(self, pending)

    monkeypatch.setattr(Websocket, "playhead_websocket_ended", hear)
    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            await twice(running, origin, client)
    assert heard == ["record", "playback"]


async def _wait(server: RawServer) -> None:
    """Accept, and answer a closing frame with one of its own."""
    await server.accept(said("ready"))
    while (came := await server.hear()) is not None:
        if str(came).startswith("close"):
            await server.say(closing(1000, "so long", masked=False))
            return


async def close_first(peer: Peer) -> list[str]:
    """Close with a code of its own."""
    assert await peer.read() is not None
    peer.send(closing(4999, "leaving"))
    return await peer.rest()


async def leave(peer: Peer) -> list[str]:
    """Leave without a word."""
    return [str(await peer.read())]


async def leave_with_reset(peer: Peer) -> list[str]:
    """Leave as a process that dies."""
    came = str(await peer.read())
    peer.connection.writer.transport.abort()
    return [came]


async def test_a_closing_frame_is_answered_as_the_server_did(store_dir: Path) -> None:
    """Not with its echo."""
    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            first, second, receipt = await twice(running, origin, close_first)
            tape = Tape(running)
    assert first == second == ["close 1000 so long", "end"]
    assert receipt.faithful
    assert tape.close == (True, 4999, "leaving")
    assert tape.conversation.close is not None
    assert tape.conversation.close.answer == (1000, "so long")


@pytest.mark.parametrize("client", [leave, leave_with_reset])
async def test_a_client_that_left_is_waited_for(client: Client, store_dir: Path) -> None:
    """It ends the conversation, not the tape."""
    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            first, second, receipt = await twice(running, origin, client)
            tape = Tape(running)
    assert first == second == ["text ready"]
    assert receipt.faithful
    assert tape.close == (True, 1006, "")


async def test_a_server_that_does_not_answer_a_closing_frame_does_not_in_playback(
    store_dir: Path,
) -> None:
    """The client sees its connection end."""

    async def silent(server: RawServer) -> None:
        await server.accept(said("ready"))
        await server.hear()

    with origin_of(silent) as origin:
        async with recording(store_dir) as running:
            first, second, receipt = await twice(running, origin, close_first)
    assert first == second == ["end"]
    assert receipt.faithful


# ---- breaking the protocol -----------------------------------------------------------------------------


WRONG = {
    "reserved opcode": (frame(3, b"x", masked=False), 1002),
    "masked": (frame(TEXT, b"x"), 1002),
    "no UTF-8": (frame(TEXT, b"\xff", masked=False), 1007),
    "compressed unasked": (frame(TEXT, b"x", rsv=4, masked=False), 1002),
    "too long": (b"\x82\x7f" + (frames.MAX_MESSAGE_BYTES + 1).to_bytes(8, "big"), 1009),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_server_that_breaks_the_protocol_ends_it_for_both(
    name: str, store_dir: Path
) -> None:
    """What came before it passes; the fault is on the tape, and is played as the closing frame it became."""
    wrong, code = WRONG[name]
    upstream: list[str] = []

    async def script(server: RawServer) -> None:
        await server.accept()
        assert await server.hear()
        await server.say(said("sound"), wrong)
        upstream.extend(await server.left())

    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            first, second, receipt = await twice(running, origin, listen_and_answer)
            tape = Tape(running)
    assert first == second
    assert first[0] == "text sound"
    assert first[1].startswith(f"close {code} the server broke the protocol: ")
    assert upstream[0].startswith(f"close {code} the server broke the protocol: ")
    assert receipt.faithful
    assert tape.exchange.fault is not None
    assert (tape.exchange.fault.kind, tape.exchange.fault.phase) == (
        FaultKind.MALFORMED,
        Phase.BODY,
    )
    assert tape.close[:2] == (False, code)


async def test_a_client_that_breaks_the_protocol_ends_it_for_both(store_dir: Path) -> None:
    """And does so again in playback, which is no divergence."""
    upstream: list[str] = []

    async def script(server: RawServer) -> None:
        await server.accept()
        upstream.extend(await server.left())

    async def broken(peer: Peer) -> list[str]:
        peer.send(text("sound"), frame(TEXT, b"x", masked=False))
        return await peer.rest()

    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            first, second, receipt = await twice(running, origin, broken)
            tape = Tape(running)
    assert first == second
    assert first[0].startswith("close 1002 the client broke the protocol: ")
    assert upstream[0] == "text sound"
    assert upstream[1].startswith("close 1002 ")
    assert receipt.faithful
    assert tape.close[:2] == (True, 1002)
    assert tape.words == ["→ sound"]


async def test_breaking_the_protocol_in_playback_alone_diverges(store_dir: Path) -> None:
    """It is told what was wrong."""

    async def broken(peer: Peer) -> list[str]:
        peer.send(frame(5))
        return await peer.rest()

    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            _, second, receipt = await twice(running, origin, leave, broken)
    assert second[-2].startswith("close 1002")
    (row,) = receipt.divergences
    assert row["kind"] == "unexpected"
    assert "broke the protocol" in row["text"]


# ---- what diverges -------------------------------------------------------------------------------------


async def _answer_twice(server: RawServer) -> None:
    await server.accept()
    for number in range(2):
        assert await server.hear()
        await server.say(said(f"answer {number}"))
    await server.left()


def asking(*questions: str | bytes, close: bool = True) -> Client:
    """Ask, each time after the answer; close in the end."""

    async def ask(peer: Peer) -> list[str]:
        seen = []
        for question in questions:
            data = question if isinstance(question, bytes) else text(question)
            peer.send(data)
            came = await peer.read()
            seen.append(str(came))
            if came is None or str(came).startswith("close"):
                peer.send(closing())
                return [*seen, *await peer.rest()]
        if close:
            peer.send(closing())
        return seen

    return ask


HELLO = '{"type": "hello", "event_id": "a", "list": [1, 2]}'
ASKED = asking(HELLO, "plain")
DIVERGING: dict[str, tuple[Client, list[str], dict[str, Any]]] = {
    "another value": (
        asking('{"type": "bye", "event_id": "b", "list": [1, 2]}'),
        DIVERGED,
        {"kind": "changed", "place": "message[0].$.type", "recorded": '"hello"', "asked": '"bye"'},
    ),
    "another text": (
        asking(HELLO, "other"),
        ["text answer 0", *DIVERGED],
        {
            "kind": "changed",
            "place": "message[2] byte 0",
            "recorded": "plain",
            "asked": "other",
        },
    ),
    "another kind": (
        asking(HELLO, frame(BINARY, b"plain")),
        ["text answer 0", *DIVERGED],
        {
            "kind": "changed",
            "place": "message[2] kind",
            "recorded": "text",
            "asked": "binary",
        },
    ),
    "one too many": (
        asking(HELLO, "plain", "more"),
        ["text answer 0", "text answer 1", *DIVERGED],
        {"kind": "unexpected", "place": "message[4]", "recorded": "(absent)", "asked": "more"},
    ),
    "closed early": (
        asking(HELLO),
        ["text answer 0"],
        {"kind": "unused", "place": "message[2]", "recorded": "plain", "asked": "(absent)"},
    ),
    "left early": (
        asking(HELLO, close=False),
        ["text answer 0"],
        {"kind": "unused", "place": "message[2]", "recorded": "plain", "asked": "(absent)"},
    ),
}


@pytest.mark.parametrize("name", DIVERGING)
async def test_what_is_not_on_the_tape_diverges(name: str, store_dir: Path) -> None:
    """With its place in the conversation, and both values; the command will fail."""
    client, seen, told = DIVERGING[name]
    ignore = (IgnoreRule(parse_match("*://127.0.0.1"), json=("$.event_id",)),)
    with origin_of(_answer_twice) as origin:
        async with recording(store_dir, ignore=ignore) as running:
            _, second, receipt = await twice(running, origin, ASKED, client)
    assert second == seen
    (row,) = receipt.divergences
    assert (row["seq"], row["nearest_seq"]) == (1, 1)
    assert row["url"].startswith("http://127.0.0.1:")
    assert {"kind": row["kind"], **row["differences"][0]} == told
    assert receipt.to_json()["exit_code"] == 121


@pytest.mark.parametrize(
    ("again", "but_for"),
    [
        (
            asking('{"list":[1,2],"event_id":"another","type":"hello"}', "plain"),
            ["ignored content"],
        ),
        (
            asking(
                frame(TEXT, HELLO[:5].encode(), fin=False)
                + frame(CONTINUATION, HELLO[5:].encode()),
                "plain",
            ),
            [],
        ),
        (asking(frame(PONG) + text(HELLO), "plain"), []),
    ],
    ids=["key order", "fragments", "pong"],
)
async def test_what_does_not_count_may_differ(
    again: Client, but_for: list[str], store_dir: Path
) -> None:
    """Order of keys, what a rule leaves out (and is named, since it stands in a message), frames, pongs."""
    ignore = (IgnoreRule(parse_match("*://127.0.0.1"), json=("$.event_id",)),)
    with origin_of(_answer_twice) as origin:
        async with recording(store_dir, ignore=ignore) as running:
            first, second, receipt = await twice(running, origin, ASKED, again)
    assert second == first
    assert (receipt.divergences, receipt.to_json()["faithful_but_for"]) == ([], but_for)


async def test_who_leaves_without_hearing_the_rest_does_not_diverge(store_dir: Path) -> None:
    """Nothing is missing of what the client said."""

    async def script(server: RawServer) -> None:
        await server.accept(*(said(f"event {number}") for number in range(5)))
        await server.left()

    async def hear_all(peer: Peer) -> list[str]:
        heard = [str(await peer.read()) for _ in range(5)]
        peer.send(closing())
        return [*heard, (await peer.rest())[-1]]

    async def close_at_once(peer: Peer) -> list[str]:
        peer.send(closing())
        return [(await peer.rest())[-1]]

    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            _, second, receipt = await twice(running, origin, hear_all, close_at_once)
    assert second == ["end"]
    assert receipt.faithful


async def test_who_ends_it_otherwise_diverges(store_dir: Path) -> None:
    """With another code, or with no closing frame where there was one."""

    async def script(server: RawServer) -> None:
        await server.accept(said("event"))
        await server.left()

    async def close_well(peer: Peer) -> list[str]:
        heard = [str(await peer.read())]
        peer.send(closing())
        return [*heard, (await peer.rest())[-1]]

    async def leave(peer: Peer) -> list[str]:
        return [str(await peer.read())]

    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            _, _, receipt = await twice(running, origin, close_well, leave)
    (row,) = receipt.divergences
    assert row["kind"] == "changed"
    assert list(row["differences"]) == [
        {"place": "close", "recorded": "1000", "asked": "no closing frame"}
    ]


async def test_a_ping_is_answered_at_once(store_dir: Path) -> None:
    """Whatever the tape waits for."""

    async def ping(peer: Peer) -> list[str]:
        seen = []
        for payload in (b"", b"alive?"):
            peer.send(frame(PING, payload))
            seen.append(str(await peer.read()))
        return [*seen, *await asking(HELLO, "plain")(peer)]

    with origin_of(_answer_twice) as origin:
        async with recording(store_dir) as running:
            _, second, receipt = await twice(running, origin, ASKED, ping)
    assert second == ["pong", "pong alive?", "text answer 0", "text answer 1"]
    assert receipt.faithful


async def test_what_crossed_the_servers_closing_frame_may_come_or_not(store_dir: Path) -> None:
    """It is kept behind the end, and compared where it comes."""

    async def script(server: RawServer) -> None:
        await server.accept(closing(1001, masked=False))
        await server.left()

    def crossing(*data: bytes) -> Client:
        async def cross(peer: Peer) -> list[str]:
            seen = str(await peer.read())
            peer.send(*data, closing(1001))
            return [seen, *await peer.rest()]

        return cross

    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            first, second, receipt = await twice(
                running, origin, crossing(text("late")), crossing()
            )
            tape = Tape(running)
    assert first == second == ["close 1001", "end"]
    assert receipt.faithful
    assert tape.words == ["→ late"]
    assert tape.conversation.close is not None
    assert tape.messages[0].at_us > tape.conversation.close.at_us


# ---- what is kept when ---------------------------------------------------------------------------------


class Gate:
    """Lets a call through when it is told to; the first one, which keeps the beginning, at once."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self._calls = 0
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        self._calls += 1
        if self._calls > 1:
            self.reached.set()
            await self.open.wait()
        return await self._call(*arguments, **named)


@pytest.mark.parametrize(
    ("script", "first"), [(_close_unasked, b""), (_wait, closing(1000))], ids=["server", "client"]
)
async def test_the_last_closing_frame_is_released_after_the_outcome_is_durable(
    script: Script, first: bytes, store_dir: Path
) -> None:
    """The server's, where it closes first: what has passed; its answer to the client's: the outcome."""
    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            gate: Any = Gate(running.store.exchanges.save)
            running.store.exchanges.save = gate  # type: ignore[method-assign]  # in its place
            peer = await Peer.open(str(running.address), target_of(origin))
            if first:
                assert str(await peer.read()) == "text ready"
                peer.send(first)
            await gate.reached.wait()
            reading = asyncio.ensure_future(peer.read())
            # A pass of the whole loop, and more: nothing comes.
            for _ in range(50):
                await asyncio.sleep(0)
            assert not reading.done()
            gate.open.set()
            assert str(await reading).startswith("close")
            peer.send(closing())
            await peer.close()
            await ended(running, "tape")


async def test_a_message_that_cannot_be_kept_is_not_passed_on(
    store_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The conversation ends, and says why."""
    upstream: list[str] = []

    async def script(server: RawServer) -> None:
        await server.accept(said("ready"))
        upstream.extend(await server.left())

    async def say(peer: Peer) -> list[str]:
        peer.send(text("never kept"))
        seen = await peer.read()
        peer.send(closing())
        return [str(seen), *await peer.rest()]

    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            peer = await Peer.open(str(running.address), target_of(origin))
            assert str(await peer.read()) == "text ready"

            def fail(*_: Any, **__: Any) -> None:
                raise StoreUnwritable("the disk is full", "make room")

            running.store.messages.record = fail  # type: ignore[method-assign]  # in its place
            seen = await say(peer)
            await peer.close()
            await until(lambda: not running.open_run("tape").on_the_way.pending_exchanges)
    assert seen == ["close 1011 playhead: this cannot be recorded", "end"]
    assert upstream == ["close 1011 playhead: this cannot be recorded"]
    assert "the disk is full" in caplog.text


async def test_a_run_that_ends_over_a_conversation_keeps_what_there_is(store_dir: Path) -> None:
    """Its client sees the connection end, and does so in playback."""
    with origin_of(_answer_twice) as origin:
        async with recording(store_dir) as running:
            peer = await Peer.open(str(running.address), target_of(origin))
            peer.send(text("one"))
            assert str(await peer.read()) == "text answer 0"
            open_run = running.open_run("tape")
            task = running.registry.end(open_run, "the test asked for it")
            open_run.hurry()
            assert task is not None
            await task
            assert await peer.rest() == ["end"]
            await peer.close()
            tape = Tape(running)
            running.play()
            seen = await talk(running, origin, asking("one", close=False))
            peer = await Peer.open(str(running.address), target_of(origin), run="tape")
            assert peer.status == REFUSAL_STATUS
            await peer.close()
            _, receipt = await ended(running, "tape@1")
    assert tape.words == ["→ one", "← answer 0"]
    assert tape.conversation.close is None
    assert tape.exchange.gone is None
    assert tape.exchange.warnings == ("its run ended before the answer did",)
    assert seen == ["text answer 0"]
    assert receipt.counts["served"] == 1


async def test_a_replay_that_ends_over_a_conversation_tells_what_is_left(store_dir: Path) -> None:
    """As if the client had left."""
    with origin_of(_answer_twice) as origin:
        async with recording(store_dir) as running:
            await talk(running, origin, ASKED)
            await ended(running, "tape")
            running.play()
            peer = await Peer.open(str(running.address), target_of(origin))
            peer.send(text(HELLO))
            assert str(await peer.read()) == "text answer 0"
            open_run = running.open_run("tape@1")
            task = running.registry.end(open_run, "the test asked for it")
            open_run.hurry()
            assert task is not None
            await task
            assert await peer.rest() == ["end"]
            await peer.close()
            receipt = build(running.store, running.store.runs.get("tape@1"))
    (row,) = receipt.divergences
    assert row["kind"] == "unused"


async def test_a_handshake_is_on_the_tape_before_its_end(store_dir: Path) -> None:
    """Should the recorder die, its messages have their exchange."""
    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            peer = await Peer.open(str(running.address), target_of(origin))
            assert str(await peer.read()) == "text ready"
            await running.store.writer.submit(lambda: lambda _: None)
            tape = Tape(running)
            await peer.close()
            await ended(running, "tape")
    assert tape.words == ["← ready"]
    assert tape.conversation.close is None


async def test_what_is_not_written_yet_is_bounded(store_dir: Path) -> None:
    """Who floods is not read on until the disk has caught up; nothing is lost."""
    size, count = 512 * 1024, 64
    counted: list[int] = []

    async def script(server: RawServer) -> None:
        await server.accept()
        while (came := await server.hear()) is not None and came.opcode == BINARY:
            counted.append(len(came.payload))
        await server.say(closing(1000, masked=False))

    with origin_of(script) as origin:
        async with recording(store_dir) as running:
            submit = running.store.writer.submit
            held: list[asyncio.Future[Any]] = []

            def slow(make: Any) -> asyncio.Future[Any]:
                """Write nothing while nobody lets it."""
                held.append(asyncio.get_running_loop().create_future())
                return held[-1]

            peer = await Peer.open(str(running.address), target_of(origin))
            (pending,) = on_their_way(running.open_run("tape"))
            assert isinstance(pending.websocket, WebSocketRecorder)
            kept = pending.websocket
            running.store.writer.submit = slow  # type: ignore[method-assign, assignment]

            async def flood() -> None:
                for number in range(count):
                    peer.send(frame(BINARY, bytes([number]) * size))
                    await peer.connection.writer.drain()
                peer.send(closing())

            flooding = asyncio.ensure_future(flood())
            await until(lambda: kept.backlog > MOST_WAITING_BYTES)
            # The proxy reads no more: what the systems between take is bounded too.
            for _ in range(500):
                await asyncio.sleep(0)
            assert not flooding.done()
            assert kept.backlog <= MOST_WAITING_BYTES + size + 64 * 1024
            running.store.writer.submit = submit  # type: ignore[method-assign]
            for waiting in held:
                waiting.set_result(None)
            await flooding
            assert await peer.rest() == ["close 1000", "end"]
            await peer.close()
            await ended(running, "tape")
            tape = Tape(running)
            assert await until(lambda: kept.backlog < 2 * 1024 * 1024)
    assert counted == [size] * count
    assert tape.conversation.messages == count
    assert [message.data[0] for message in tape.messages] == list(range(count))


async def test_layers_that_crash_end_the_conversation(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there was is kept, and nobody waits for ever."""
    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            peer = await Peer.open(str(running.address), target_of(origin))
            assert str(await peer.read()) == "text ready"

            def crash(*_: Any) -> Any:
                raise RuntimeError("a bug")

            monkeypatch.setattr(FrameReader, "feed", crash)
            peer.send(text("boom"))
            assert await peer.rest() == ["reset"]
            await peer.close()
            await ended(running, "tape")
            tape = Tape(running)
    assert tape.words == ["← ready"]
    assert tape.close[:2] == (False, 1006)
    assert tape.exchange.fault is not None
    assert tape.exchange.fault.text == "internal error: RuntimeError: a bug"


# ---- the handshake -------------------------------------------------------------------------------------


async def test_a_websocket_that_is_not_on_the_tape_is_refused(store_dir: Path) -> None:
    """At once; a plain request of its URL is another one."""

    async def answer(conversation: Raw) -> None:
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with RawOrigin(answer) as origin:
        async with recording(store_dir) as running:
            plain = await Connection.open(str(running.address))
            await plain.ask(f"{origin.url}/", host=target_of(origin), credentials="tape:x")
            await plain.close()
            await ended(running, "tape")
            running.play()
            assert await talk(running, origin, listen) == [str(REFUSAL_STATUS)]
            _, receipt = await ended(running, "tape@1")
            assert not running.engine.denied
    assert receipt.counts["refused"] == 1
    (row,) = receipt.divergences
    assert row["differences"][0]["place"] == "header upgrade"
    assert len(origin.heads) == 1


async def test_a_plain_request_is_not_answered_with_a_websocket(store_dir: Path) -> None:
    """Also where only method and path count: telemetry."""
    classes = Classes(telemetry=(parse_match("*://127.0.0.1"),))
    with origin_of(_wait) as origin:
        async with recording(store_dir, classes=classes) as running:
            await talk(running, origin, leave)
            await ended(running, "tape")
            running.play()
            plain = await Connection.open(str(running.address))
            answer = await plain.ask(f"{origin.url}/", host=target_of(origin), credentials="tape:x")
            await plain.close()
            await ended(running, "tape@1")
    assert answer.status == REFUSAL_STATUS
    assert b"none was asked for" in answer.body


async def test_a_handshake_that_was_turned_down_is_turned_down_again(store_dir: Path) -> None:
    """It is an answer as any."""

    async def deny(conversation: Raw) -> None:
        await conversation.say(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")

    with RawOrigin(deny) as origin:
        async with recording(store_dir) as running:
            first, second, receipt = await twice(running, origin, listen)
    assert first == second == ["403"]
    assert receipt.faithful


async def test_only_extensions_that_can_be_read_are_offered(store_dir: Path) -> None:
    """The tape holds what the client offered."""
    offered = "permessage-bzip2, permessage-deflate; client_max_window_bits"
    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            headers = f"Sec-WebSocket-Extensions: {offered}\r\n"
            await talk(running, origin, leave, headers=headers)
            await ended(running, "tape")
            tape = Tape(running)
    (head,) = origin.heads
    assert b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n" in head
    assert tape.exchange.request.header(b"sec-websocket-extensions") == offered.encode()


async def test_secrets_of_a_handshake_are_replaced(store_dir: Path) -> None:
    """As those of any request."""
    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            headers = "Authorization: Bearer sk-secret\r\n"
            first, second, receipt = await twice(running, origin, leave, headers=headers)
            tape = Tape(running)
    assert first == second
    assert receipt.faithful
    kept = tape.exchange.request.header(b"authorization")
    assert kept is not None
    assert kept.startswith(b"Bearer ")
    assert b"secret" not in kept
    assert b"Bearer sk-secret" in origin.heads[0]


async def test_two_websockets_of_one_url_are_played_apart(store_dir: Path) -> None:
    """The first handshake gets the first conversation, and they may be talked to in any order."""

    async def named(server: RawServer) -> None:
        await server.accept()
        came = await server.hear()
        assert came is not None
        await server.say(said(f"hello {came.payload.decode()}"))
        await server.left()

    async def both(running: Running, origin: RawOrigin, order: tuple[int, int]) -> list[str]:
        peers = [await Peer.open(str(running.address), target_of(origin)) for _ in range(2)]
        seen = ["", ""]
        for place in order:
            peers[place].send(text(f"peer {place}"))
            seen[place] = str(await peers[place].read())
        for peer in peers:
            await peer.close()
        return seen

    with origin_of(named) as origin:
        async with recording(store_dir) as running:
            first = await both(running, origin, (0, 1))
            await ended(running, "tape")
            origin.stop()
            running.play()
            second = await both(running, origin, (1, 0))
            _, receipt = await ended(running, "tape@1")
    assert first == second == ["text hello peer 0", "text hello peer 1"]
    assert receipt.faithful


async def test_a_live_websocket_is_recorded_in_its_playback(store_dir: Path) -> None:
    """A live rule lets it out; what passed is kept under its verdict."""
    with origin_of(_wait) as origin:
        async with recording(store_dir) as running:
            await talk(running, origin, leave)
            await ended(running, "tape")
            rule = LiveRule(parse_match(f"{origin.url.replace('http', 'ws', 1)}/live"), "trying it")
            running.change(live=(rule,))
            running.play()
            seen = await talk(running, origin, close_first, path="/live")
            info, receipt = await ended(running, "tape@1")
            tape = Tape(running, "tape@1")
            listed = rows(running.store, info)
    assert seen == ["close 1000 so long", "end"]
    assert tape.exchange.verdict is VerdictKind.LIVE
    assert tape.words == ["← ready"]
    assert receipt.counts["live"] == 1
    assert listed[0]["outcome"] == "101, 1 messages of 5 bytes, closed by the client with 4999"


async def test_bytes_pass_where_nothing_is_recorded(store_dir: Path) -> None:
    """Whatever they are."""
    upstream: list[str] = []

    async def script(server: RawServer) -> None:
        await server.accept(frame(TEXT, b"\xff", masked=False))
        came = await server.hear()
        upstream.append(str(came))
        await server.say(closing(masked=False))

    async def client(peer: Peer) -> list[str]:
        peer.send(frame(TEXT, b"\xfe", rsv=4))
        return await peer.rest()

    config = Config(mode=Mode.PASSTHROUGH, store=store_dir)
    with origin_of(script) as origin:
        async with running_engine(config) as running:
            seen = await talk(running, origin, client)
            assert not running.store.runs.all()
    assert seen == ["text \xff", "close 1000", "end"]
    assert upstream == ["text \xfe"]


# ---- tapes made by hand --------------------------------------------------------------------------------


async def _put(
    running: Running, messages: list[Message], conversation: WebSocketSummary, **changes: Any
) -> None:
    """Put one conversation on a sealed tape, for `ws://127.0.0.1:9/`."""
    request = make_request("GET http://127.0.0.1:9/")
    headers = (
        (b"Upgrade", b"websocket"),
        (b"Sec-WebSocket-Version", b"13"),
        (b"Sec-WebSocket-Key", b"a"),
        (b"Host", b"127.0.0.1:9"),
    )
    request = changes.pop("request", None) or _with(request, headers)
    response = make_response(
        b"",
        101,
        headers=((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade")),
    )
    others = changes.pop("others", ())
    rules = compile_rules(running.registry.config.ignore)
    run = await running.store.runs.create("tape", mode="record", at_ns=1, rules=rules.digest)
    found = fingerprint(canonical(request, RequestClass.READ, rules))
    exchange = make_exchange(
        request=request, response=response, websocket=conversation, fingerprint=found, **changes
    )
    for number, message in enumerate(messages):
        running.store.messages.append(run.number, exchange.seq, number, message)
    await running.store.exchanges.save(run.number, partial(make_record, exchange))
    for more in others:
        await running.store.exchanges.save(run.number, partial(make_record, more))
    await running.store.runs.seal(run, reason="made up", at_ns=2)


def _with(request: Any, headers: tuple[tuple[bytes, bytes], ...]) -> Any:
    return type(request)(
        *(request.method, request.scheme, request.host, request.port, request.target),
        request.http_version,
        headers,
    )


def event(at_us: int, data: str, **more: Any) -> Message:
    return Message(at_us, False, MessageKind.TEXT, data.encode(), **more)


GAP_US = 150_000


async def test_gaps_are_played_at_the_recorded_pace(store_dir: Path) -> None:
    """A message is never early; how late it may be depends on the machine, and is measured elsewhere."""
    messages = [event(1000 + number * GAP_US, str(number)) for number in range(1, 3)]
    end = WebSocketSummary(2, 2, Close(1000 + 3 * GAP_US, False, 1000, RedactedText("")))
    async with recording(store_dir) as running:
        await _put(running, messages, end)
        playback = running.registry.config.playback
        running.change(mode=Mode.PLAYBACK, playback=type(playback)(pace=1.0))
        loop = asyncio.get_running_loop()
        peer = await Peer.open(str(running.address), "127.0.0.1:9")
        begun = loop.time()
        times = []
        for _ in range(3):
            assert await peer.read() is not None
            times.append(loop.time() - begun)
        await peer.close()
    for number, time_s in enumerate(times, 1):
        # The handshake's answer left some time before it was read here.
        assert time_s > (number * GAP_US / 1e6) * 0.8


async def test_a_message_waits_for_the_request_that_caused_it(store_dir: Path) -> None:
    """Servers push on a WebSocket what a request beside it has done."""
    messages = [event(2000, "pushed", after=2)]
    end = WebSocketSummary(1, 6, Close(3000, True, 1000, RedactedText("")))
    asked = _with(make_request("GET http://127.0.0.1:9/job"), ())
    rules = compile_rules(())
    other = make_exchange(
        2,
        request=asked,
        response=make_response(b"ok"),
        fingerprint=fingerprint(canonical(asked, RequestClass.READ, rules)),
    )
    async with recording(store_dir) as running:
        await _put(running, messages, end, others=[other])
        running.play()
        peer = await Peer.open(str(running.address), "127.0.0.1:9")
        peer.send(frame(PING, b"first"))
        assert str(await peer.read()) == "pong first"
        beside = await Connection.open(str(running.address))
        answer = await beside.ask(
            "http://127.0.0.1:9/job", host="127.0.0.1:9", credentials="tape:x"
        )
        assert answer.status == 200
        assert str(await peer.read()) == "text pushed"
        await beside.close()
        await peer.close()


@pytest.mark.parametrize("ending", [Ending.RST, Ending.FIN])
async def test_all_that_was_said_comes_before_an_abrupt_end(
    ending: Ending, store_dir: Path
) -> None:
    """A reset overtakes nothing."""
    messages = [event(2000 + number, "x" * 10_000) for number in range(50)]
    end = WebSocketSummary(50, 500_000, Close(3000, False, 1006, RedactedText("")))
    fault = Fault(FaultKind.RESET, Phase.BODY, RedactedText("reset"), 3000, ending)
    async with recording(store_dir) as running:
        await _put(running, messages, end, fault=fault)
        running.play()
        peer = await Peer.open(str(running.address), "127.0.0.1:9")
        seen = await peer.rest()
        await peer.close()
    assert len(seen) == 51
    assert seen[-1] == ("reset" if ending is Ending.RST else "end")


@pytest.mark.parametrize("closes", [False, True], ids=["while playing", "at the end"])
async def test_a_tape_that_cannot_be_read_on_is_told(closes: bool, store_dir: Path) -> None:
    """The conversation ends there, and the replay is not faithful."""
    kept = [event(2000, "0"), Message(3000, True, MessageKind.TEXT, b"1"), event(4000, "2")]
    end = WebSocketSummary(3, 3, Close(5000, False, 1000, RedactedText("")))
    async with recording(store_dir) as running:
        await _put(running, kept, end)
        messages = running.store.messages.all

        def broken(info: Any, seq: int, after: int = -1) -> Any:
            for number, message in enumerate(messages(info, seq, after), after + 1):
                if number == (2 if closes else 1):
                    raise LogCorrupt("run tape, exchange 1, a message: torn")
                yield message

        running.store.messages.all = broken  # type: ignore[method-assign]  # in its place
        running.play()
        peer = await Peer.open(str(running.address), "127.0.0.1:9")
        if closes:
            assert str(await peer.read()) == "text 0"
            peer.send(text("1"))
        assert str(await peer.read()) == "close 1011 playhead: the tape cannot be read on"
        peer.send(closing())
        await peer.close()
        _, receipt = await ended(running, "tape@1")
    (row,) = receipt.divergences
    assert "torn" in row["text"]


async def test_a_tape_that_cannot_be_read_is_told_when_its_client_leaves(store_dir: Path) -> None:
    """Whether all was said cannot be known."""
    kept = [event(2000, "0"), event(GAP_US * 1000, "1"), event(GAP_US * 1001, "2")]
    end = WebSocketSummary(3, 3, Close(GAP_US * 1002, False, 1000, RedactedText("")))
    async with recording(store_dir) as running:
        await _put(running, kept, end)
        messages = running.store.messages.all

        def broken(info: Any, seq: int, after: int = -1) -> Any:
            for number, message in enumerate(messages(info, seq, after), after + 1):
                if number == 2:
                    raise LogCorrupt("run tape, exchange 1, a message: torn")
                yield message

        running.store.messages.all = broken  # type: ignore[method-assign]  # in its place
        playback = running.registry.config.playback
        running.change(mode=Mode.PLAYBACK, playback=type(playback)(pace=1.0))
        peer = await Peer.open(str(running.address), "127.0.0.1:9")
        assert str(await peer.read()) == "text 0"
        peer.send(closing())
        assert await peer.rest() == ["close 1000", "end"]
        await peer.close()
        _, receipt = await ended(running, "tape@1")
    (row,) = receipt.divergences
    assert "torn" in row["text"]


async def test_a_switch_without_a_conversation_is_refused(store_dir: Path) -> None:
    """Nothing of what followed is known."""
    async with recording(store_dir) as running:
        await _put(running, [], None)  # type: ignore[arg-type]
        running.play()
        peer = await Peer.open(str(running.address), "127.0.0.1:9")
        assert peer.status == REFUSAL_STATUS
        await peer.close()


async def test_the_json_of_an_exchange_lists_the_messages(store_dir: Path) -> None:
    """As `playhead show RUN SEQ --json` prints them."""
    with origin_of(_answer_twice) as origin:
        async with recording(store_dir) as running:
            await talk(running, origin, asking(HELLO, frame(BINARY, b"\xff\x00")))
            await ended(running, "tape")
            tape = Tape(running)
    document = json.loads(json.dumps(exchange_json(tape.exchange, tape.messages)))
    told = document["websocket"]
    assert (told["count"], told["size"]) == (4, tape.conversation.size)
    assert told["close"]["code"] == 1000
    assert [row["from_client"] for row in told["messages"]] == [True, False, True, False]
    assert told["messages"][0]["body"] == HELLO
    assert told["messages"][2]["body_base64"] == "/wA="
    shown = render_exchange(tape.exchange, tape.messages)
    assert "→        {" in shown
    assert "← " in shown
    assert "ff00" in shown


async def test_what_a_server_says_with_its_handshake_is_not_called_left_out(tmp_path: Path) -> None:
    """It is a message, which is kept and played; nothing warns of it."""

    async def greet(server: RawServer) -> None:
        await server.accept(said("hello"))
        await server.left()

    async def hear(peer: Peer) -> list[str]:
        heard = str(await peer.read())
        peer.send(closing(1000))
        return [heard]

    async with recording(tmp_path / "store") as running:
        with origin_of(greet) as origin:
            first, second, receipt = await twice(running, origin, hear)
        tape = Tape(running)
    assert first == second
    assert tape.words == ["← hello"]
    assert tape.exchange.warnings == ()
    assert receipt.faithful is True
