"""One side of a case of receipts_*.yaml: its client, while it is recorded or in the replay."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from h2.exceptions import H2Error

from .receipt_clients import Got, Grpc, Http1, Http2, WebSocket
from .receipt_requests import Asked, joined, read_request
from .receipt_servers import Expected, Stage
from .receipt_wire import Contexts, Gone, Wire

STEP_S = 6.0
"""How long a step may take."""
_ENDINGS = (OSError, ssl.SSLError, Gone, H2Error, TimeoutError, asyncio.IncompleteReadError)

Case = Mapping[str, Any]


class Side:
    """What a case's client does once."""

    def __init__(
        self,
        case: Case,
        key: str,
        proxy: tuple[str, int],
        contexts: Contexts,
        stage: Stage | None,
        came: Callable[[int], Awaitable[None]],
        run: str | None = None,
        elsewhere: Callable[[str, str], Awaitable[None]] | None = None,
    ) -> None:
        """Prepare.

        key: `recorded` or `present`.
        stage: of the servers; None in a replay.
        came: waits until the proxy has so many requests.
        run: credentials for the proxy, NAME:PASSWORD; by default the name of the case.
        elsewhere: does a step in the process of a lane.
        """
        self._case, self._does = case, case[key]
        self._proxy, self._contexts, self._stage, self._came = proxy, contexts, stage, came
        self._run = f"{case['name']}:x" if run is None else run
        self._elsewhere = elsewhere
        self.answers: list[tuple[Asked, Got]] = []
        """In the order of the requests."""
        self.heard: list[Any] = []
        """Of gRPC and WebSockets: what was said."""
        self.problems: list[str] = []
        """Steps that did not come to their end."""
        self._begun: dict[str, tuple[Http1 | Http2, Expected | None, Asked]] = {}
        self._idle: dict[tuple[str, ...], list[Http1 | Http2]] = {}
        self._wires: list[Wire] = []
        self._wire: Wire | None = None
        self._place = ""
        self._http: Http1 | None = None
        self._sent = 0

    async def play(self) -> None:
        """Do all of it, and close every connection."""
        does = self._does
        try:
            if self._case["kind"] == "grpc":
                await self._call(does)
            elif self._case["kind"] == "websocket":
                for one in does if isinstance(does, list) else [does]:
                    await self._talk(one)
            elif self._case["kind"] in ("http", "credentials"):
                await self._ask_all(does if isinstance(does, list) else [does])
            else:
                for step in does["steps"] if isinstance(does, dict) else does:
                    await self.try_step(step)
        finally:
            self.close()

    def close(self) -> None:
        """Close every connection."""
        for wire in self._wires:
            wire.close()

    async def try_step(self, step: str) -> None:
        """Do one step; one that fails is over."""
        await self._try(step, self._step(step))

    async def _try(self, what: str, work: Awaitable[Any]) -> bool:
        try:
            async with asyncio.timeout(STEP_S):
                await work
        except _ENDINGS as error:
            self.problems.append(f"{what}: {type(error).__name__}: {error}"[:200])
            return False
        return True

    # ---- requests ------------------------------------------------------------------------------

    async def _ask_all(self, requests: list[Case]) -> None:
        for one in requests:
            asked = read_request(joined(self._case.get("both", {}), one), self._transport)
            await self._try(asked.url, self._ask("", asked))

    @property
    def _transport(self) -> str:
        return str(self._case.get("transport", "h1"))

    async def _ask(self, lane: str, asked: Asked) -> None:
        client, _ = await self._begin(lane, asked)
        await client.read()
        self._release(lane, asked, client)

    async def _begin(self, lane: str, asked: Asked) -> tuple[Http1 | Http2, Expected | None]:
        bodies = {number: bytes(got.body) for number, (_, got) in enumerate(self.answers, 1)}
        asked = asked.told(bodies)
        client = await self._client(lane, asked)
        expected = self._stage.expect(asked) if self._stage is not None else None
        self._sent += 1
        await client.begin(asked)
        self.answers.append((asked, client.got))
        return client, expected

    async def _client(self, lane: str, asked: Asked) -> Http1 | Http2:
        idle = self._idle.get(_pool(lane, asked), [])
        while idle:
            client = idle.pop()
            if client.is_reusable:
                return client
        wire = await self._open()
        if asked.scheme == "http":
            return Http1(wire, run=self._run)
        await wire.tunnel(asked.connect, self._run)
        await wire.handshake(self._contexts.offering(asked.transport), asked.sni)
        return Http2(wire) if wire.protocol == "h2" else Http1(wire)

    def _release(self, lane: str, asked: Asked, client: Http1 | Http2) -> None:
        self._idle.setdefault(_pool(lane, asked), []).append(client)

    async def _open(self) -> Wire:
        wire = await Wire.open(self._proxy)
        self._wires.append(wire)
        return wire

    # ---- steps ---------------------------------------------------------------------------------

    async def _step(self, step: str) -> None:
        word, _, rest = step.partition(" ")
        if word in _TUNNELLED and not (word == "reset" and rest):
            await self._tunnel_step(word, rest)
            return
        name, _, more = rest.partition(" ")
        lane = more.removeprefix("in ") if more.startswith("in ") else ""
        if lane and self._elsewhere is not None:
            await self._elsewhere(lane, f"{word} {name}")
            return
        match word:
            case "ask":
                await self._ask(lane, self._named(name))
            case "begin":
                asked = self._named(name)
                client, expected = await self._begin(lane, asked)
                self._begun[name] = client, expected, asked
            case "end":
                client, _, asked = self._begun.pop(name)
                await client.read()
                self._release(lane, asked, client)
            case "take":
                client, _, asked = self._begun[name]
                await client.read(_sizes(asked, int(more)))
            case "leave" | "reset":
                client, expected, _ = self._begun[name]
                await self._arrived(expected)
                if word == "leave" and isinstance(client, Http2):
                    await client.cancel()
                else:
                    client.wire.reset() if word == "reset" else client.wire.close()
            case "release":
                expected = self._begun[name][1]
                if expected is not None:
                    await expected.met.wait()
                    expected.released.set()
            case _:
                raise AssertionError(f"no such step: {step}")

    async def _arrived(self, expected: Expected | None) -> None:
        """Wait until the other side has the request."""
        if expected is not None:
            await expected.met.wait()
        else:
            await self._came(self._sent)

    def _named(self, name: str) -> Asked:
        return read_request(self._case["requests"][name], self._transport)

    async def _tunnel_step(self, word: str, rest: str) -> None:
        if word == "connect":
            if self._wire is not None:
                self._wire.close()
            self._wire, self._place, self._http = await self._open(), rest, None
            await self._wire.tunnel(rest, self._run)
            return
        wire, name = self._wire, rest or self._place.partition(":")[0]
        assert wire is not None
        match word:
            case "tls":
                await wire.handshake(self._contexts.offering("h1"), name)
            case "distrust":
                with contextlib.suppress(ssl.SSLCertVerificationError):
                    await wire.handshake(self._contexts.distrusting, name)
                wire.close()
            case "hello":
                await wire.hello(self._contexts.offering("h1"), name)
            case "request":
                self._http = self._http or Http1(wire)
                asked = self._named(rest)
                if self._stage is not None:
                    self._stage.expect(asked)
                self._sent += 1
                await self._http.begin(asked)
                self.answers.append((asked, self._http.got))
                await self._http.read()
            case "say":
                await wire.send(rest.encode("latin-1"))
            case "read":
                while await wire.recv():
                    pass
            case "half":
                await wire.half()
            case "close":
                wire.close()
            case "reset":
                wire.reset()

    # ---- gRPC and WebSockets -------------------------------------------------------------------

    async def _call(self, one: Case) -> None:
        one = joined(self._case.get("both", {}), one)
        asked = read_request(one, "h2")
        if self._stage is not None:
            self._stage.expect(asked, one.get("serve", "once"), one.get("gap", 0) / 1000)
        client: list[Grpc] = []

        async def begin() -> None:
            found = await self._client("", asked)
            assert isinstance(found, Http2)
            client.append(Grpc(found, asked, one.get("metadata", [])))
            await client[0].open()

        await self._try("open", begin())
        for step in one["steps"]:
            if client and not await self._try(step, client[0].do(step)):
                break
        if client:
            got = client[0].client.got
            self.heard.append([bytes(got.body).hex(), got.trailers])

    async def _talk(self, one: Case) -> None:
        one = joined(self._case.get("both", {}), one)
        asked = read_request(one)
        if self._stage is not None:
            self._stage.expect(asked, one.get("serve", "each"), one.get("gap", 0) / 1000)
        sockets: list[WebSocket] = []

        async def begin() -> None:
            found = await self._client("", asked)
            assert isinstance(found, Http1)
            sockets.append(WebSocket(found))
            await sockets[0].open(asked, one.get("protocols", []))

        opened = await self._try("open", begin())
        for step in one["steps"]:
            if not opened or not await self._try(step, sockets[0].do(step)):
                break
        self.heard.append(
            [(kind, text.hex()) for kind, text in sockets[0].heard] if sockets else []
        )
        self.close()


_TUNNELLED = (
    *("connect", "tls", "distrust", "hello", "request", "say", "read", "half", "close"),
    "reset",
)


def _pool(lane: str, asked: Asked) -> tuple[str, ...]:
    if asked.scheme == "http":
        return lane, "http"
    return lane, asked.connect, asked.sni, asked.transport


def _sizes(asked: Asked, count: int) -> int:
    pieces = (asked.answer or {}).get("pieces", [])[:count]
    return sum(one["bytes"] if isinstance(one, dict) else len(str(one).encode()) for one in pieces)
