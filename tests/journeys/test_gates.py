"""Requests that wait for a person: nothing is sent before they are let go, and nothing after their client left."""

import asyncio
import os
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from playhead.addons.run.pending_approvals import ApprovalError, PendingApproval
from playhead.addons.stop import stop_run
from playhead.config import Config, EffectRule, Gate, Mode, Runs, parse_match
from playhead.tape.exchange import FaultKind, VerdictKind
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import open_tunnel
from playhead.timeline import build
from playhead.timeline.checks.integrity import verify_run

if TYPE_CHECKING:
    import httpx

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
YES = ApprovalDecision(Ruling.APPROVED, "ann", "command")
NO = ApprovalDecision(Ruling.DENIED, "ann", "command", "that is twice")
_LONG_S = 20.0
EFFECTS = 10_000 if os.environ.get("PLAYHEAD_FULL") else 60
RACES = 1000 if os.environ.get("PLAYHEAD_FULL") else 100


class Origin:
    """Counts what reaches it, by path."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    async def __call__(self, conversation: Conversation) -> None:
        self.counts[conversation.path] += 1
        await conversation.say(OK)


@asynccontextmanager
async def gated(
    tmp_path: Path, gate: Gate, mode: Mode = Mode.RECORD
) -> AsyncIterator[tuple[Running, RawOrigin, Origin]]:
    """An engine that holds what is posted to /wires, and an origin."""
    said = Origin()
    with RawOrigin(said) as origin:
        rule = EffectRule(parse_match(f"POST {origin.url}/wires*"), gate=gate)
        config = Config(
            mode=mode, store=tmp_path / "store", effects=(rule,), runs=Runs(grace_s=0.1)
        )
        async with running_engine(config) as running:
            yield running, origin, said


async def held(running: Running, count: int = 1) -> list[PendingApproval]:
    """Wait until so many requests are held."""
    deadline = time.monotonic() + _LONG_S
    while len(running.registry.approvals) != count:
        assert time.monotonic() < deadline, f"{len(running.registry.approvals)} are held"
        await asyncio.sleep(0.001)
    return running.registry.approvals.listed()


async def ask(running: Running, url: str, amount: int = 1, run: str = "tape") -> "httpx.Response":
    """Post, on a connection of its own, in a thread."""
    import httpx

    def post() -> httpx.Response:
        proxy = running.url_for(run)
        with httpx.Client(proxy=proxy, timeout=_LONG_S, trust_env=False) as client:
            return client.post(url, json={"amount": amount})

    return await asyncio.to_thread(post)


def events(running: Running, run: str, kind: EventKind) -> list[Any]:
    info = running.store.runs.get(run)
    return [event.data for event in running.store.events.read(info) if event.kind is kind]


def _is_sound(running: Running, run: str) -> bool:
    """Say whether the log speaks for everything that a run holds."""
    found = verify_run(running.store, running.store.runs.get(run))
    return (found.unproven, found.problems) == (0, ())


async def test_a_request_is_sent_once_it_is_approved(tmp_path: Path) -> None:
    """Not before; who approved it stands in the log, before its intent."""
    async with gated(tmp_path, Gate()) as (running, origin, said):
        asking = asyncio.create_task(ask(running, f"{origin.url}/wires"))
        (waiting,) = await held(running)
        assert (await ask(running, f"{origin.url}/else")).text == "done"
        assert said.counts == {"/else": 1}
        running.registry.approvals.decide(waiting.name, waiting.digest, YES)
        assert (await asking).text == "done"
        assert said.counts["/wires"] == 1
        await running.end("tape")
        (hold,), (rule,) = (
            events(running, "tape", kind) for kind in (EventKind.HELD, EventKind.RULED)
        )
        assert hold["digest"] == rule["digest"] == waiting.digest
        assert (rule["ruling"], rule["by"], rule["via"]) == ("approved", "ann", "command")
        kinds = [
            event.kind
            for event in running.store.events.read(running.store.runs.get("tape"))
            if event.seq == 1
        ]
        assert kinds.index(EventKind.RULED) < kinds.index(EventKind.INTENT)
        assert events(running, "tape", EventKind.INTENT)[1]["rule"].startswith("effects POST")


@pytest.mark.parametrize("denied", [True, False], ids=["denied", "deadline"])
async def test_what_is_not_approved_is_refused(tmp_path: Path, denied: bool) -> None:
    """The agent is told and goes on; nothing was sent; in playback it is told the same."""
    gate = Gate(deadline_s=_LONG_S if denied else 0.01)
    async with gated(tmp_path, gate) as (running, origin, said):
        asking = asyncio.create_task(ask(running, f"{origin.url}/wires"))
        if denied:
            (waiting,) = await held(running)
            running.registry.approvals.decide(waiting.name, None, NO)
        refused = await asking
        assert refused.status_code == 424
        assert refused.headers["x-should-retry"] == "false"
        why = "denied by ann: that is twice" if denied else "not approved before the deadline"
        assert why in refused.json()["error"]["message"]
        assert (await ask(running, f"{origin.url}/else")).text == "done"
        assert said.counts == {"/else": 1}
        await running.end("tape")
        (verdict,) = events(running, "tape", EventKind.VERDICT)
        assert verdict["verdict"] == VerdictKind.REFUSED.value
        assert _is_sound(running, "tape")
        running.play()
        again = await ask(running, f"{origin.url}/wires")
        assert (again.status_code, again.content) == (424, refused.content)
        assert (await ask(running, f"{origin.url}/else")).text == "done"
        await running.end("tape@1")
        assert build(running.store, running.store.runs.get("tape@1")).faithful
        assert said.counts == {"/else": 1}


async def test_an_approval_is_of_exactly_one_request(tmp_path: Path) -> None:
    """Another digest, none, or a gate that is not held is refused, and says why."""
    async with gated(tmp_path, Gate()) as (running, origin, said):
        gates = running.registry.approvals
        first = asyncio.create_task(ask(running, f"{origin.url}/wires"))
        (one,) = await held(running)
        second = asyncio.create_task(ask(running, f"{origin.url}/wires", 2))
        _, two = await held(running, 2)
        assert one.digest != two.digest
        with pytest.raises(ApprovalError, match="is another request than the one approved"):
            gates.decide(one.name, two.digest, YES)
        with pytest.raises(ApprovalError, match="an approval names the request"):
            gates.decide(one.name, None, YES)
        with pytest.raises(ApprovalError, match="nothing is held as tape:99"):
            gates.decide("tape:99", one.digest, YES)
        assert not said.counts
        gates.decide(one.name, one.digest, YES)
        with pytest.raises(ApprovalError, match="tape:1 is held no more: approved by ann"):
            gates.decide(one.name, one.digest, NO)
        assert (await first).status_code == 200
        gates.decide(two.name, None, NO)
        assert (await second).status_code == 424
        assert said.counts == {"/wires": 1}


async def test_many_held_requests_disturb_nobody(tmp_path: Path) -> None:
    """Three hundred wait on connections of their own; others are answered meanwhile, then all are sent."""
    async with gated(tmp_path, Gate()) as (running, origin, said):
        asking = [await asyncio.to_thread(_ask, running, origin, number) for number in range(300)]
        waiting = await held(running, 300)
        for _ in range(20):
            assert (await ask(running, f"{origin.url}/else")).text == "done"
        assert said.counts == {"/else": 20}
        for one in waiting:
            running.registry.approvals.decide(one.name, one.digest, YES)
        for sock in asking:
            with sock, sock.makefile("rb") as told:
                assert await asyncio.to_thread(told.read, len(OK)) == OK
        assert sum(said.counts.values()) == 320


async def test_what_there_is_no_room_to_hold_was_never_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused at once, and the same asked for again repeats nothing."""
    async with gated(tmp_path, Gate()) as (running, origin, said):
        monkeypatch.setattr("playhead.addons.gate.MOST_HELD", 0)
        refused = await ask(running, f"{origin.url}/wires")
        assert "approve or deny some" in refused.json()["error"]["message"]
        monkeypatch.undo()
        asking = asyncio.create_task(ask(running, f"{origin.url}/wires"))
        (waiting,) = await held(running)
        assert waiting.repeat is None
        running.registry.approvals.decide(waiting.name, None, NO)
        assert (await asking).status_code == 424
        assert not said.counts


def _ask(running: Running, origin: RawOrigin, number: int) -> socket.socket:
    """Ask over a socket of its own, without waiting for the answer."""
    sock = socket.create_connection((running.address.host, running.address.port))
    body = b"{}"
    sock.sendall(
        f"POST {origin.url}/wires/{number} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Proxy-Authorization: Basic dGFwZTp4\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    return sock


def _leave(sock: socket.socket, how: str) -> None:
    if how == "rst":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "pipelined":  # what it says last lies before its leaving
        sock.sendall(b"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\n\r\n")
    sock.close()


@pytest.mark.parametrize("how", ["fin", "rst", "pipelined"])
async def test_a_client_that_leaves_takes_its_request_with_it(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is held no more, at once, and nothing is sent; how to rule was said when it came."""
    async with gated(tmp_path, Gate()) as (running, origin, said):
        sock = _ask(running, origin, 1)
        await held(running)
        _leave(sock, how)
        await held(running, 0)
        with pytest.raises(ApprovalError, match="its client had left"):
            running.registry.approvals.decide("tape:1", None, NO)
        await running.end("tape")
        (rule,) = events(running, "tape", EventKind.RULED)
        assert rule["ruling"] == "left"
        assert not said.counts
    assert caplog.text.count("; rule with: playhead gates") == 1


async def test_nothing_is_sent_once_the_client_has_left(tmp_path: Path) -> None:
    """However shortly before the approval it left: the approval finds it gone."""
    chance = random.Random(7)
    async with gated(tmp_path, Gate()) as (running, origin, said):
        gone_first = 0
        for number in range(RACES):
            sock = _ask(running, origin, number)
            (waiting,) = await held(running)
            path, decided = f"/wires/{number}", waiting.decided
            left_first = chance.random() < 0.6
            if left_first:
                _leave(sock, chance.choice(["fin", "rst", "pipelined"]))
                gone_first += 1
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            if not decided.done():
                running.registry.approvals.decide(waiting.name, waiting.digest, YES)
            if left_first:
                await running.open_run("tape").settled(_LONG_S)
                assert said.counts[path] == 0
                continue
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            _leave(sock, chance.choice(["fin", "rst"]))
            await running.open_run("tape").settled(_LONG_S)
            assert said.counts[path] <= 1
        await running.end("tape")
        info = running.store.runs.get("tape")
        for exchange in running.store.exchanges.all(info):
            # What the tape says was not sent was not, and the other way round.
            path = exchange.request.target
            unsent = exchange.verdict is VerdictKind.REFUSED or (
                exchange.fault is not None and exchange.fault.kind is FaultKind.DENIED
            )
            assert said.counts[path] == (0 if unsent else 1), repr(exchange)
        assert gone_first


async def test_a_stream_that_is_reset_takes_its_request_with_it(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Over HTTP/2 the others on the connection go on; nothing is sent for it, however shortly before it left."""
    asked: Counter[str] = Counter()

    def answer(stream: Stream) -> bool:
        asked[stream.path] += 1
        stream.head(("content-length", "4"))
        stream.data(b"done", end=True)
        return False

    chance = random.Random(7)
    with FramesOrigin(answer, certificates) as origin:
        rule = EffectRule(parse_match("POST *://*/wires/*"), gate=Gate())
        config = Config(store=tmp_path / "store", effects=(rule,), upstream_ca=certificates.root)
        async with running_engine(config) as running:

            def connect() -> Any:
                return open_tunnel(running.url_for("tape"), origin.url, running.ca, alpn="h2")

            with await asyncio.to_thread(connect) as tunnel:
                # Else what it sends waits for an acknowledgement, and it has not left yet.
                tunnel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client = Http2Client(tunnel)
                for number in range(RACES // 4):
                    url = f"{origin.url}/wires/{number}"
                    stream = await asyncio.to_thread(client.ask, "POST", url, b"{}")
                    (waiting,) = await held(running)
                    leaves = chance.random() < 0.7
                    if leaves:
                        client.cancel(stream)
                    for _ in range(chance.randrange(3)):
                        await asyncio.sleep(0)
                    if not waiting.decided.done():
                        running.registry.approvals.decide(waiting.name, waiting.digest, YES)
                    if not leaves:
                        got = client.got[stream]
                        await asyncio.to_thread(client.read_until, lambda: got[-1:] == ["end"])  # noqa: B023
                    await running.open_run("tape").settled(_LONG_S)
                    assert asked[f"/wires/{number}"] == (0 if leaves else 1)


async def test_a_run_that_ends_lets_go_of_what_it_holds(tmp_path: Path) -> None:
    """Nothing is sent for a run that is over; the refusal is kept before the run is sealed."""

    async with gated(tmp_path, Gate()) as (running, origin, said):
        asking = asyncio.create_task(ask(running, f"{origin.url}/wires"))
        await held(running)
        await running.end("tape")
        refused = await asking
        assert refused.status_code == 424
        assert "not sent: its run was ended" in refused.json()["error"]["message"]
        assert not said.counts
        run = running.store.runs.get("tape")
        assert [event.kind for event in running.store.events.read(run)][-1] is EventKind.SEALED
        assert run.exchanges == 1
        assert _is_sound(running, "tape")
        assert not running.registry.approvals.listed()


async def test_a_run_that_is_stopped_lets_go_of_what_it_holds(tmp_path: Path) -> None:
    """It is refused, also where it was approved at that very moment."""
    async with gated(tmp_path, Gate()) as (running, origin, said):
        for approved in (False, True):
            run = f"tape-{approved}"
            asking = asyncio.create_task(ask(running, f"{origin.url}/wires", run=run))
            (waiting,) = await held(running)
            open_run = running.open_run(run)
            if approved:
                running.registry.approvals.decide(waiting.name, waiting.digest, YES)
            await stop_run(running.registry, open_run, by="ann", pid=1, reason="enough")
            refused = await asking
            assert refused.status_code == 424
            assert "enough" in refused.json()["error"]["message"]
        assert not said.counts


class Refunds:
    """Refunds, and answers the first at each path in a way of its own."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    async def __call__(self, conversation: Conversation) -> None:
        path = conversation.path
        self.counts[path] += 1
        way = path.split("/")[2] if self.counts[path] == 1 else ""
        if way == "late":  # it happens, and nobody is told
            await conversation.left()
        elif way == "refused":
            await conversation.say(b"HTTP/1.1 429 Slow Down\r\nContent-Length: 0\r\n\r\n")
        elif way == "broken":
            await conversation.say(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n")
        else:
            await conversation.say(OK)


async def _refund(
    running: Running, url: str, key: str | None, patience_s: float, amount: int = 4900
) -> int:
    """Ask for a refund; give the status, or 0 where nobody answered in time."""
    import httpx

    def post() -> int:
        proxy = running.url_for("tape")
        headers = {"idempotency-key": key} if key else {}
        with httpx.Client(proxy=proxy, timeout=patience_s, trust_env=False) as client:
            try:
                return client.post(url, json={"amount": amount}, headers=headers).status_code
            except httpx.TransportError:
                return 0

    return await asyncio.to_thread(post)


@pytest.mark.parametrize(
    ("way", "keys", "second"),
    [
        ("late", (None, None), "held"),
        ("late", ("a", "b"), "held"),
        ("late", ("a", "a"), "sent"),
        ("broken", (None, None), "held"),
        ("answered", (None, None), "held"),
        ("refused", (None, None), "sent"),
        ("unreachable", (None, None), "sent"),
    ],
)
async def test_a_gate_on_duplicates_holds_what_may_have_happened(
    tmp_path: Path, way: str, keys: tuple[str | None, str | None], second: str
) -> None:
    """And nothing else: no safe retry, and no effect whose first was refused or never sent."""
    said = Refunds()
    with RawOrigin(said) as origin, socket.create_server(("127.0.0.1", 0)) as closed:
        rule = EffectRule(parse_match("POST *://*/refunds*"), gate=Gate("duplicates"))
        url = f"{origin.url}/refunds/{way}"
        if way == "unreachable":
            url = f"http://127.0.0.1:{closed.getsockname()[1]}/refunds/1"
            closed.close()
        config = Config(store=tmp_path / "store", effects=(rule,))
        async with running_engine(config) as running:
            await _refund(running, url, keys[0], 0.3 if way == "late" else _LONG_S)
            assert not running.registry.approvals.listed()
            asking = asyncio.create_task(_refund(running, url, keys[1], _LONG_S))
            if second == "held":
                (waiting,) = await held(running)
                assert "it may repeat the effect of exchange 1" in waiting.reason
                assert waiting.repeat is not None
                running.registry.approvals.decide(waiting.name, None, NO)
                assert await asking == 424
                assert said.counts[f"/refunds/{way}"] == 1
                # What was denied did not happen: another amount is another effect, the same is asked for again.
                other = _refund(running, url, None, _LONG_S, amount=1)
                assert await asyncio.wait_for(other, _LONG_S) == 200
            else:
                await asking
                assert not running.registry.approvals.listed()
            origin.stop()


@pytest.mark.timeout(600 if EFFECTS > 60 else 60)
async def test_no_distinct_effect_is_taken_for_a_duplicate(tmp_path: Path) -> None:
    """Nor any safe retry: nothing is held."""
    import httpx

    said = Refunds()
    with RawOrigin(said, lasting=True) as origin:
        rule = EffectRule(parse_match("POST *://*/refunds*"), gate=Gate("duplicates", 0.001))
        config = Config(store=tmp_path / "store", effects=(rule,))
        async with running_engine(config) as running:

            def post() -> Counter[int]:
                got: Counter[int] = Counter()
                with httpx.Client(proxy=running.url_for("tape"), trust_env=False) as client:
                    for number in range(EFFECTS):
                        headers = {"idempotency-key": f"key-{number}"}
                        asked = {"charge": f"ch_{number}", "amount": number % 7}
                        for _ in range(2):
                            url = f"{origin.url}/refunds/x"
                            got[client.post(url, json=asked, headers=headers).status_code] += 1
                return got

            assert await asyncio.to_thread(post) == {200: 2 * EFFECTS}
