"""WebSockets as agents use them: recorded over TLS and plain, played with the origin gone.

Everything is recorded at once, each conversation in a run of its own, by `websockets` and by aiohttp; then the
origins are stopped and everything is played at once. What a client saw the second time is what it saw the first.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import pytest

from playhead.config import Config, Mode
from playhead.tape.exchange import Exchange, Message, MessageKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.process import playhead, read_json
from playhead.tests.support.websocket import WebsocketOrigin
from playhead.timeline import Receipt, build

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.asyncio.server import ServerConnection
    from websockets.exceptions import ConnectionClosed

MEGABYTE = 1024 * 1024

Seen = list[Any]
"""What a client saw, as JSON types."""


class Talk(Protocol):
    """One conversation, whichever library holds it."""

    subprotocol: str | None

    async def say(self, data: str | bytes | list[str]) -> None:
        """Send a message; a list is sent in fragments."""

    async def hear(self) -> Any:
        """Give the next message, or how it ended."""

    async def ping(self, payload: bytes) -> None:
        """Ping, and wait for the pong."""

    async def close(self, code: int, reason: str) -> Any:
        """Close; give how it ended."""

    def abort(self) -> None:
        """End the connection without a word."""


class ByWebsockets:
    """The `websockets` library."""

    def __init__(self, connection: "ClientConnection") -> None:
        self._connection = connection
        self.subprotocol: str | None = connection.subprotocol

    async def say(self, data: str | bytes | list[str]) -> None:
        await self._connection.send(data)

    async def hear(self) -> Any:
        from websockets.exceptions import ConnectionClosed

        try:
            return shown(await self._connection.recv())
        except ConnectionClosed as error:
            return ended(error)

    async def ping(self, payload: bytes) -> None:
        await (await self._connection.ping(payload))

    async def close(self, code: int, reason: str) -> Any:
        await self._connection.close(code, reason)
        return await self.hear()

    def abort(self) -> None:
        self._connection.transport.abort()


def ended(error: "ConnectionClosed") -> list[Any]:
    """How a conversation ended: what came, what was sent, and who was first."""
    frames = [[close.code, close.reason] if close else None for close in (error.rcvd, error.sent)]
    return ["closed", *frames, error.rcvd_then_sent]


class ByAiohttp:
    """aiohttp; it sends no fragments and waits for no pong."""

    def __init__(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        self._connection = connection
        self.subprotocol = connection.protocol

    async def say(self, data: str | bytes | list[str]) -> None:
        if isinstance(data, bytes):
            await self._connection.send_bytes(data)
        else:
            await self._connection.send_str("".join(data))

    async def hear(self) -> Any:
        message = await self._connection.receive()
        if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            return shown(message.data)
        return ["closed", message.type.name, self._connection.close_code, message.extra]

    async def ping(self, payload: bytes) -> None:
        await self._connection.ping(payload)

    async def close(self, code: int, reason: str) -> Any:
        await self._connection.close(code=code, message=reason.encode())
        return ["closed", self._connection.close_code]

    def abort(self) -> None:
        transport = self._connection._response.connection.transport  # type: ignore[union-attr]
        transport.abort()  # type: ignore[union-attr]


def shown(data: str | bytes) -> Any:
    """A message, short enough to be compared by eye."""
    if isinstance(data, str):
        return data if len(data) < 500 else [len(data), data[:20], hash(data)]
    return {"binary": data.hex() if len(data) < 500 else [len(data), hash(data)]}


@asynccontextmanager
async def by_websockets(
    url: str, proxy: str, context: ssl.SSLContext | None, case: "Case"
) -> AsyncIterator[Talk]:
    from websockets.asyncio.client import connect
    from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
    from websockets.typing import Subprotocol

    more: dict[str, Any] = {}
    if not case.default_compression:
        more["compression"] = None
    if case.deflate is not None:
        more["extensions"] = [ClientPerMessageDeflateFactory(**case.deflate)]
    if case.subprotocols:
        more["subprotocols"] = [Subprotocol(name) for name in case.subprotocols]
    async with connect(
        url, proxy=proxy, ssl=context, max_size=None, ping_interval=None, **more
    ) as connection:
        yield ByWebsockets(connection)


@asynccontextmanager
async def by_aiohttp(
    url: str, proxy: str, context: ssl.SSLContext | None, case: "Case"
) -> AsyncIterator[Talk]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            url,
            proxy=proxy,
            ssl=context or True,
            max_msg_size=0,
            protocols=case.subprotocols,
            compress=case.aiohttp_compress,
        ) as connection,
    ):
        yield ByAiohttp(connection)


LIBRARIES = {"websockets": by_websockets, "aiohttp": by_aiohttp}


# ---- what is said --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What a client says, and what the server does where it does not echo."""

    client: Callable[[Talk, Seen], Awaitable[None]]
    server: Callable[["ServerConnection"], Awaitable[None]] | None = None
    subprotocols: tuple[str, ...] = ()
    default_compression: bool = True
    """Of `websockets`; of aiohttp it is none."""
    deflate: dict[str, Any] | None = None
    """What `websockets` offers in place of its default."""
    aiohttp_compress: int = 0


async def _echo(talk: Talk, seen: Seen) -> None:
    for text in ("hello", "", "é€𝄞", '{"a": [1, 2.0]}', "x" * 70_000):
        await talk.say(text)
        seen.append(await talk.hear())
    seen.append(await talk.close(1000, ""))


async def _binary(talk: Talk, seen: Seen) -> None:
    for data in (b"", b"\x00\xff", bytes(range(256)) * 300):
        await talk.say(data)
        seen.append(await talk.hear())
    seen.append(await talk.close(1000, ""))


async def _megabytes(talk: Talk, seen: Seen) -> None:
    for data in ("m" * MEGABYTE, bytes(MEGABYTE + 1)):
        await talk.say(data)
        seen.append(await talk.hear())
    seen.append(await talk.close(1000, "large"))


async def _fragments(talk: Talk, seen: Seen) -> None:
    for parts in (["one"], ["a", "b", "c"], ["", "x", ""], ["é", "€"]):
        await talk.say(parts)
        seen.append(await talk.hear())
    seen.append(await talk.close(1000, ""))


async def _say_fragments(connection: "ServerConnection") -> None:
    async for message in connection:
        assert isinstance(message, str)
        await connection.send(["<", message, ">"])


async def _pings(talk: Talk, seen: Seen) -> None:
    await talk.ping(b"from the client")
    await talk.say("go")
    for _ in range(3):
        seen.append(await talk.hear())
        await talk.ping(b"")
    seen.append(await talk.close(1000, ""))


async def _ping_back(connection: "ServerConnection") -> None:
    await connection.recv()
    for number in range(3):
        await (await connection.ping(f"ping {number}"))
        await connection.send(f"pinged {number}")
    await connection.wait_closed()


async def _listen(talk: Talk, seen: Seen) -> None:
    await talk.say("start")
    while not seen or not (isinstance(seen[-1], list) and seen[-1][0] == "closed"):
        seen.append(await talk.hear())


async def _enough(connection: "ServerConnection") -> None:
    await connection.recv()
    for number in range(3):
        await connection.send(f"event {number}")
    await connection.close(4001, "enough, é")


async def _cut(connection: "ServerConnection") -> None:
    await connection.recv()
    await connection.send("the last")
    # What was written leaves first: the end is a FIN behind it.
    connection.transport.close()


async def _leave(talk: Talk, seen: Seen) -> None:
    await talk.say("one")
    seen.append(await talk.hear())
    talk.abort()


async def _close_with_reason(talk: Talk, seen: Seen) -> None:
    await talk.say("one")
    seen.append(await talk.hear())
    seen.append(await talk.close(4002, "done, 100 %"))


async def _subprotocol(talk: Talk, seen: Seen) -> None:
    seen.append(talk.subprotocol)
    await talk.say("one")
    seen.append(await talk.hear())
    seen.append(await talk.close(1000, ""))


# A model that is spoken to, in the shape of OpenAI's Realtime API.

TOOL = {"type": "function", "name": "find_order", "parameters": {"type": "object"}}


async def _model(connection: "ServerConnection") -> None:
    number = 0

    async def send(kind: str, **more: Any) -> None:
        nonlocal number
        number += 1
        await connection.send(json.dumps({"type": kind, "event_id": f"event_{number}", **more}))

    await send("session.created", session={"model": "gpt-realtime", "tools": []})
    turn = 0
    async for text in connection:
        event = json.loads(text)
        match event["type"]:
            case "session.update":
                await send("session.updated", session=event["session"])
            case "conversation.item.create":
                await send("conversation.item.added", item=event["item"])
            case "input_audio_buffer.append":
                await send("input_audio_buffer.speech_started", audio_start_ms=turn)
            case "response.create":
                turn += 1
                response = f"resp_{turn}"
                await send("response.created", response={"id": response})
                if turn == 1:
                    arguments = '{"order": 7}'
                    for letter in arguments:
                        await send("response.function_call_arguments.delta", delta=letter)
                    await send(
                        "response.function_call_arguments.done",
                        call_id="call_1",
                        name="find_order",
                        arguments=arguments,
                    )
                else:
                    for word in ("The", "order", "has", "left"):
                        await send("response.output_text.delta", delta=f"{word} ")
                await send("response.done", response={"id": response, "status": "completed"})


async def _agent(talk: Talk, seen: Seen) -> None:
    async def send(kind: str, **more: Any) -> None:
        await talk.say(json.dumps({"type": kind, **more}))

    async def until(kind: str) -> Any:
        while True:
            seen.append(await talk.hear())
            event = json.loads(seen[-1])
            if event["type"] == kind:
                return event

    await until("session.created")
    await send("session.update", session={"instructions": "be kind", "tools": [TOOL]})
    await until("session.updated")
    for _ in range(3):
        await send("input_audio_buffer.append", audio="AAAA" * 1000)
        await until("input_audio_buffer.speech_started")
    await send("response.create", response={"output_modalities": ["text"]})
    call = await until("response.function_call_arguments.done")
    await until("response.done")
    item = {"type": "function_call_output", "call_id": call["call_id"], "output": "left"}
    for _ in range(2):
        await send("conversation.item.create", item=item)
        await until("conversation.item.added")
        await send("response.create")
        await until("response.done")
    seen.append(await talk.close(1000, ""))


CASES = {
    "echo": Case(_echo),
    "binary": Case(_binary),
    "megabytes": Case(_megabytes),
    "fragments": Case(_fragments, _say_fragments),
    "pings": Case(_pings, _ping_back),
    "server-closes": Case(_listen, _enough),
    "server-cuts": Case(_listen, _cut),
    "client-closes": Case(_close_with_reason),
    "client-leaves": Case(_leave),
    "subprotocol": Case(_subprotocol, subprotocols=("other", "realtime")),
    "realtime": Case(_agent, _model),
    "plain": Case(_echo, default_compression=False),
    "deflate": Case(_echo, default_compression=False, deflate={}, aiohttp_compress=15),
    "deflate-without-context": Case(
        _echo,
        default_compression=False,
        deflate={"server_no_context_takeover": True, "client_no_context_takeover": True},
        aiohttp_compress=9,
    ),
}


# ---- the story -----------------------------------------------------------------------------------------


@dataclass
class Story:
    """What was seen, and what is kept of it, by run: `case.library.scheme`."""

    recorded: dict[str, Seen] = field(default_factory=dict)
    played: dict[str, Seen] = field(default_factory=dict)
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    messages: dict[str, list[Message]] = field(default_factory=dict)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    handshakes: int = 0
    denied: int = 0


RUNS = [
    f"{case}.{library}.{scheme}"
    for case in CASES
    for library in LIBRARIES
    for scheme in ("ws", "wss")
]


async def _talk(
    run: str, origins: dict[str, WebsocketOrigin], running: Running, seen: dict[str, Seen]
) -> None:
    name, library, scheme = run.split(".")
    context = ssl.create_default_context(cafile=str(running.ca)) if scheme == "wss" else None
    said = seen[run] = []
    url = f"{origins[scheme].url}/{name}"
    async with LIBRARIES[library](url, running.url_for(run), context, CASES[name]) as talk:
        await CASES[name].client(talk, said)


async def _tell(store: Path, certificates: Certificates) -> Story:
    story = Story()
    handlers = {f"/{name}": case.server for name, case in CASES.items() if case.server is not None}
    config = Config(mode=Mode.RECORD, store=store, upstream_ca=certificates.root)
    with (
        WebsocketOrigin(handlers, subprotocol="realtime") as plain,
        WebsocketOrigin(handlers, certificates, subprotocol="realtime") as secure,
    ):
        origins = {"ws": plain, "wss": secure}
        async with running_engine(config) as running:
            await _all(origins, running, story.recorded)
            for run in RUNS:
                await running.end(run)
            story.handshakes = len(plain.paths) + len(secure.paths)
            plain.stop()
            secure.stop()
            running.play()
            await _all(origins, running, story.played)
            for run in RUNS:
                await running.end(f"{run}@1")
                tape = running.store.runs.get(run)
                (story.exchanges[run],) = running.store.exchanges.all(tape)
                story.messages[run] = list(running.store.messages.all(tape, 1))
                story.receipts[run] = build(running.store, running.store.runs.get(f"{run}@1"))
            story.denied = sum(running.engine.denied.values())
    return story


async def _all(
    origins: dict[str, WebsocketOrigin], running: Running, seen: dict[str, Seen]
) -> None:
    async with asyncio.timeout(40), asyncio.TaskGroup() as group:
        for run in RUNS:
            group.create_task(_talk(run, origins, running, seen))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Story:
    return asyncio.run(_tell(tmp_path_factory.mktemp("store"), certificates))


@pytest.mark.parametrize("run", RUNS)
def test_what_was_seen_is_seen_again(story: Story, run: str) -> None:
    """Messages, their order, closing codes and reasons, and abrupt ends."""
    assert story.recorded[run]
    assert story.played[run] == story.recorded[run]


@pytest.mark.parametrize("run", RUNS)
def test_the_replay_is_faithful(story: Story, run: str) -> None:
    """Nothing diverged and nothing was unused."""
    receipt = story.receipts[run]
    assert receipt.divergences == []
    assert receipt.faithful


def test_nothing_reached_the_origin(story: Story) -> None:
    """One handshake for each recording, and no attempt after."""
    assert story.handshakes == len(RUNS)
    assert story.denied == 0


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_the_tape_holds_what_was_said(story: Story, library: str, scheme: str) -> None:
    """Direction, kind, bytes, frames and times; the end with code and reason."""

    def kept(case: str) -> tuple[Exchange, list[Message]]:
        run = f"{case}.{library}.{scheme}"
        return story.exchanges[run], story.messages[run]

    exchange, messages = kept("realtime")
    assert exchange.websocket is not None
    assert exchange.response is not None
    assert exchange.response.status == 101
    assert exchange.websocket.messages == len(messages) > 40
    assert exchange.websocket.size == sum(len(message.data) for message in messages)
    assert [message.at_us for message in messages] == sorted(message.at_us for message in messages)
    assert {message.after for message in messages} == {1}

    exchange, messages = kept("server-closes")
    assert exchange.websocket is not None
    close = exchange.websocket.close
    assert close is not None
    assert (close.by_client, close.code, close.reason) == (False, 4001, "enough, é")
    assert close.answer is not None
    assert close.answer[0] == 4001 or library == "aiohttp"

    exchange, messages = kept("client-closes")
    assert exchange.websocket is not None
    close = exchange.websocket.close
    assert close is not None
    assert (close.by_client, close.code, close.reason) == (True, 4002, "done, 100 %")
    assert close.answer == (4002, "done, 100 %")

    exchange, messages = kept("client-leaves")
    assert exchange.websocket is not None
    close = exchange.websocket.close
    assert close is not None
    assert (close.by_client, close.code) == (True, 1006)
    assert exchange.fault is None

    exchange, messages = kept("server-cuts")
    assert exchange.websocket is not None
    close = exchange.websocket.close
    assert close is not None
    assert (close.by_client, close.code) == (False, 1006)
    assert exchange.fault is not None

    _, messages = kept("pings")
    pings = [message for message in messages if message.kind is MessageKind.PING]
    assert [ping.data for ping in pings] == [b"ping 0", b"ping 1", b"ping 2"]
    assert not any(ping.from_client for ping in pings)

    _, messages = kept("fragments")
    served = [message for message in messages if not message.from_client]
    assert served[1].data == b"<abc>"
    assert served[1].frames == (1, 3, 1, 0)
    if library == "websockets":
        asked = [message for message in messages if message.from_client]
        assert asked[3].data == "é€".encode()
        assert asked[3].frames == (2, 3, 0)


# ---- from the command line -------------------------------------------------------------------------------

AGENT = Path(__file__).with_name("clients") / "websocket_client.py"


def test_an_agent_with_a_websocket_is_recorded_and_replayed(
    certificates: Certificates, store_dir: Path, tmp_path: Path
) -> None:
    """By its environment alone; a replay that says something else fails, and says where."""
    flags = ("--store", store_dir, "--upstream-ca", certificates.root)

    def run(*command: str | Path, said: str) -> tuple[int, str, dict[str, Any]]:
        receipt = tmp_path / "receipt.json"
        agent = (sys.executable, AGENT, url, '{"type": "hello"}', said)
        done = playhead(*command, *flags, "--receipt", receipt, "--", *agent)
        return done.returncode, done.stdout, json.loads(receipt.read_text())

    with WebsocketOrigin({}, certificates) as origin:
        url = f"{origin.url}/talk"
        recorded = run("record", "--run", "tape", said="bye")
        assert origin.paths == ["/talk"]
    replayed = run("replay", "--no-sandbox", "tape", said="bye")
    diverged = run("replay", "--no-sandbox", "tape", said="something else")

    assert recorded[:2] == (0, '{"type": "hello"}\nbye\n')
    assert replayed[:2] == recorded[:2]
    assert replayed[2]["faithful"]
    assert diverged[:2] == (121, '{"type": "hello"}\nclosed: 1008\n')
    (row,) = diverged[2]["divergences"]
    assert row["differences"][0]["place"] == "message[2] byte 0"

    shown = read_json("show", "tape", "1", "--store", store_dir)["websocket"]
    assert shown["count"] == 4
    assert [message["body"] for message in shown["messages"][2:]] == ["bye", "bye"]
    assert shown["close"]["code"] == 1000
