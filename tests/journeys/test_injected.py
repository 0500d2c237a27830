"""Faults on purpose: what the client sees, what the upstream was asked, what stands on the tape and in the receipt."""

import asyncio
import contextlib
import json
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from playhead.addons.run import pending_exchange as pending
from playhead.addons.run.pending_exchange import HELD_BYTES
from playhead.config import (
    Config,
    EffectRule,
    FaultRule,
    Gate,
    Inject,
    LiveRule,
    Mode,
    Runs,
    Sink,
    parse_match,
)
from playhead.tape.exchange import Exchange, FaultKind, RequestClass, VerdictKind
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.http2 import Http2Client
from playhead.tests.support.patience import Seen, ask
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.sockets import open_tunnel
from playhead.timeline import Receipt, build, render_receipt
from playhead.timeline.reading.exchange_json import exchange_json
from playhead.timeline.receipts.effects import effects_of
from playhead.timeline.receipts.exchange_rows import find_shown
from playhead.timeline.state.calls_before import Exchanges

INJECTIONS = 1000 if os.environ.get("PLAYHEAD_FULL") else 50
PATIENCE_S = 0.4
_LONG_S = 10.0
BODY = b'{"amount": 4900}'
ANSWER = b'{"refund": "done"}'
ANY = parse_match("*://*")
REFUNDS = parse_match("POST *://*/refunds*")


class Origins:
    """Two origins that do what they are asked and count it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()

    def count(self, path: str) -> None:
        with self.lock:
            self.counts[path] += 1

    async def http1(self, conversation: Conversation) -> None:
        self.count(urlsplit(conversation.path).path)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        await conversation.say(head % len(ANSWER) + ANSWER)

    def http2(self, stream: Stream) -> bool:
        self.count(stream.path)
        stream.head(("content-type", "application/json"), ("content-length", str(len(ANSWER))))
        stream.data(ANSWER, end=True)
        return False


@dataclass
class Setup:
    """An engine and the origins behind it."""

    running: Running
    urls: dict[str, str]
    origins: Origins

    async def ask(self, over: str, run: str, path: str, patience_s: float = _LONG_S) -> Seen:
        proxy, url = self.running.url_for(run), self.urls[over] + path
        return await asyncio.to_thread(ask, over, proxy, url, self.running.ca, BODY, patience_s)

    async def settled(self, run: str) -> None:
        """Wait for what is under way, then seal the run."""
        assert await self.running.open_run(run).settled(_LONG_S), "its exchange was never kept"
        await self.running.end(run)

    def only(self, run: str) -> Exchange:
        (found,) = self.running.store.exchanges.all(self.running.store.runs.get(run))
        return found

    def receipt(self, run: str) -> Receipt:
        return build(self.running.store, self.running.store.runs.get(run))

    def is_told(self, *runs: str) -> bool:
        """Say whether the sink was told what the ledgers of these runs have."""
        store = self.running.store
        infos = [store.runs.get(run) for run in runs]
        rows = [
            {"run": info.id, "tape": info.parent, **effect.to_json()}
            for info in infos
            for effect in effects_of(store, info)[0]
        ]
        sink = self.running.registry.config.sink
        assert sink.file is not None
        assert [json.loads(line) for line in sink.file.read_text().splitlines()] == rows
        return len(rows) == len(runs)

    def injected(self, run: str) -> list[Any]:
        info = self.running.store.runs.get(run)
        kind = EventKind.INJECTED
        return [event.data for event in self.running.store.events.read(info) if event.kind is kind]


@asynccontextmanager
async def setup(
    tmp_path: Path, certificates: Certificates, *rules: FaultRule, **more: Any
) -> AsyncIterator[Setup]:
    origins = Origins()
    with (
        RawOrigin(origins.http1, certificates) as h1,
        FramesOrigin(origins.http2, certificates) as h2,
    ):
        config = Config(
            store=tmp_path / "store",
            upstream_ca=certificates.root,
            faults=rules,
            sink=Sink(tmp_path / "effects.jsonl"),
            runs=Runs(grace_s=0.1),
            **more,
        )
        async with running_engine(config) as running:
            yield Setup(running, {"h1": h1.url, "h2": h2.url}, origins)


def fault(inject: str, **more: Any) -> FaultRule:
    return FaultRule(ANY, Inject(inject), name="what if", **more)


@dataclass(frozen=True)
class Case:
    """A fault, and what a client sees of it."""

    rule: FaultRule
    h1: Seen
    h2: Seen
    asked: int
    """How often the upstream is asked while recording."""

    @property
    def name(self) -> str:
        return f"{self.rule.inject.value}-{self.rule.ending}"

    def seen(self, over: str) -> Seen:
        return self.h1 if over == "h1" else self.h2


MADE = json.dumps(
    {
        "type": "error",
        "error": {
            "message": "Playhead injected a fault here: what if",
            "type": "playhead_injected",
            "code": "injected",
            "param": None,
        },
        "message": "Playhead injected a fault here: what if",
        "playhead": {"injected": "what if"},
    }
).encode()
WHOLE = Seen(200, ANSWER, "end")
GAVE_UP = Seen(0, b"", "gave up")
CASES = [
    Case(fault("delay", delay_s=0.05), WHOLE, WHOLE, 1),
    Case(
        fault("status", status=503, retry_after_s=2),
        Seen(503, MADE, "end"),
        Seen(503, MADE, "end"),
        0,
    ),
    Case(
        fault("cut", after_bytes=5), Seen(200, ANSWER[:5], "rst"), Seen(200, ANSWER[:5], "rst"), 1
    ),
    Case(
        fault("cut", after_bytes=5, ending="fin"),
        Seen(200, ANSWER[:5], "fin"),
        Seen(200, ANSWER[:5], "fin"),
        1,
    ),
    Case(fault("reset"), Seen(0, b"", "rst"), Seen(0, b"", "rst"), 0),
    Case(fault("reset", ending="fin"), Seen(0, b"", "fin"), Seen(0, b"", "fin"), 0),
    Case(fault("timeout"), GAVE_UP, GAVE_UP, 0),
    Case(fault("timeout_after_success"), GAVE_UP, GAVE_UP, 1),
]
OVER = pytest.mark.parametrize("over", ["h1", "h2"])
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def _patience_s(case: Case) -> float:
    return PATIENCE_S if case.h1 == GAVE_UP else _LONG_S


@OVER
@EACH
async def test_a_fault_while_recording_is_on_the_tape_as_the_client_saw_it(
    tmp_path: Path, certificates: Certificates, over: str, case: Case
) -> None:
    """The upstream is asked or not, as the kind says; a replay without the rule gives the same again, faithfully."""
    async with setup(tmp_path, certificates, case.rule) as at:
        seen = await at.ask(over, "tape", "/refunds", _patience_s(case))
        await at.settled("tape")
        assert seen == case.seen(over)
        assert at.origins.counts["/refunds"] == case.asked
        exchange = at.only("tape")
        unasked = () if case.asked else ("the upstream was not asked",)
        assert exchange.warnings == ("injected: what if", *unasked)
        assert exchange.reason.endswith("injected: what if")
        (event,) = at.injected("tape")
        assert (event["seq"], event["rule"]) == (1, "what if")
        assert event["inject"] == case.rule.inject.value
        receipt = at.receipt("tape")
        assert [row.rule for row in receipt.injected] == ["what if"]
        at.running.change(mode=Mode.PLAYBACK, faults=())
        again = await at.ask(over, "tape", "/refunds", _patience_s(case))
        await at.settled("tape@1")
        assert (again, again.headers) == (seen, seen.headers)
        receipt = at.receipt("tape@1")
        assert receipt.faithful is True, receipt.to_json()
        assert not receipt.injected
        assert at.is_told("tape", "tape@1")


@OVER
@EACH
async def test_a_fault_in_playback_is_laid_over_the_recorded_answer(
    tmp_path: Path, certificates: Certificates, over: str, case: Case
) -> None:
    """Nothing leaves; a replay that goes on all the same is faithful but for what was injected, never plainly."""
    async with setup(tmp_path, certificates) as at:
        assert await at.ask(over, "tape", "/refunds") == Seen(200, ANSWER, "end")
        await at.settled("tape")
        at.running.change(mode=Mode.PLAYBACK, faults=(case.rule,))
        seen = await at.ask(over, "tape", "/refunds", _patience_s(case))
        await at.settled("tape@1")
        assert seen == case.seen(over)
        assert at.origins.counts["/refunds"] == 1
        receipt = at.receipt("tape@1")
        assert receipt.faithful is False
        assert receipt.faithful_but_for == ["injected: what if"]
        assert receipt.to_json()["exit_code"] == 0
        assert "FAITHFUL BUT FOR injected: what if" in render_receipt(receipt)
        assert receipt.injected[0].inject == case.rule.inject.value
        (effect,) = receipt.effects
        assert effect.summary == BODY.decode()
        heard = case.rule.inject in (Inject.DELAY, Inject.CUT)
        assert effect.answered_by == ("tape seq 1" if heard else "injected: what if")
        _check_shown(at, case, seen)
        assert effect.status == (200 if heard else None)
        assert at.is_told("tape", "tape@1")
        assert effect.outcome == ("200" if heard else case.rule.inject.value)


def _check_shown(at: Setup, case: Case, seen: Seen) -> None:
    """Whoever looks back sees what the client was given, and what was not given to it."""
    store = at.running.store
    info = store.runs.get("tape@1")
    shown = find_shown(store, info, 1)
    assert shown is not None
    for exchange in (shown[1], Exchanges(store, info).get(1)):
        response = exchange.response
        given = (response.status, response.body) if response is not None else (0, b"")
        assert given == (seen.status, seen.body)
        told, heard = exchange.warnings[0], case.rule.inject in (Inject.DELAY, Inject.CUT)
        assert told.startswith("injected: what if (")
        assert told.endswith("not given: 200, the answer of tape seq 1") is not heard
        assert (exchange.fault is not None) is (seen.how in ("rst", "fin"))


async def test_an_answer_of_ours_says_so(tmp_path: Path, certificates: Certificates) -> None:
    """By its header field, in record and in playback, and in the list of effects."""
    async with setup(tmp_path, certificates, fault("status", status=429, retry_after_s=7)) as at:
        seen = await at.ask("h1", "tape", "/refunds")
        await at.settled("tape")
        assert (seen.status, seen.headers["retry-after"]) == (429, "7")
        assert seen.headers["x-playhead"] == "injected; what if"
        (effect,) = at.receipt("tape").effects
        assert (effect.answered_by, effect.outcome) == ("injected: what if", "429")


@OVER
async def test_a_timeout_after_success_looks_as_a_real_one(
    tmp_path: Path, certificates: Certificates, over: str
) -> None:
    """The client gave up, and the answer that came all the same is kept as late."""
    async with setup(tmp_path, certificates, fault("timeout_after_success")) as at:
        await at.ask(over, "tape", "/refunds", PATIENCE_S)
        await at.settled("tape")
        document = json.loads(json.dumps(exchange_json(at.only("tape"))))
        # The client's patience began with its connection, the record's clock with the request.
        assert document["client_gone_at"] > 0
        assert document["late_response"] is True
        assert document["response"]["body"] == ANSWER.decode()
        assert document["fault"] is None


@OVER
async def test_a_timeout_after_success_is_kept_when_its_run_ends_first(
    tmp_path: Path, certificates: Certificates, over: str
) -> None:
    """A client that waits on is no reason to lose what the upstream answered."""
    async with setup(tmp_path, certificates, fault("timeout_after_success")) as at:
        asking = asyncio.create_task(at.ask(over, "tape", "/refunds", _LONG_S))
        async with asyncio.timeout(_LONG_S):
            while not _has_come(at):  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.002)
        await at.running.end("tape")
        assert (await asking).status == 0
        exchange = at.only("tape")
        assert exchange.gone is not None
        assert exchange.response is not None
        assert exchange.response.body == ANSWER


def _has_come(at: Setup) -> bool:
    pending_exchanges = [
        pending
        for found in at.running.registry.open
        for pending in found.on_the_way.pending_exchanges
    ]
    return any(pending.answer.size == len(ANSWER) for pending in pending_exchanges)


@OVER
async def test_what_is_delayed_is_not_sent_once_its_client_has_left(
    tmp_path: Path, certificates: Certificates, over: str
) -> None:
    """It is known not to have happened, and the tape says so."""
    async with setup(tmp_path, certificates, fault("delay", delay_s=60)) as at:
        assert await at.ask(over, "tape", "/refunds", PATIENCE_S) == GAVE_UP
        await at.settled("tape")
        assert not at.origins.counts
        exchange = at.only("tape")
        assert exchange.gone is not None
        assert exchange.fault is not None
        assert exchange.fault.kind is FaultKind.DENIED


async def test_a_delayed_request_ends_with_its_run(
    tmp_path: Path, certificates: Certificates
) -> None:
    """Nothing is sent for a run that is over."""
    async with setup(tmp_path, certificates, fault("delay", delay_s=60)) as at:
        asking = asyncio.create_task(at.ask("h1", "tape", "/refunds", _LONG_S))
        async with asyncio.timeout(_LONG_S):
            while not any(found.on_the_way.pending_exchanges for found in at.running.registry.open):  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            await at.running.end("tape")
        assert (await asking).status == 0
        assert not at.origins.counts


async def test_what_goes_live_in_playback_is_hit_too(
    tmp_path: Path, certificates: Certificates
) -> None:
    """As while recording; the upstream is not asked."""
    live = (LiveRule(REFUNDS, "the test asks for it"),)
    async with setup(tmp_path, certificates, live=live) as at:
        await at.ask("h1", "tape", "/refunds")
        await at.settled("tape")
        at.running.change(mode=Mode.PLAYBACK, faults=(fault("status", status=503, nth=1),))
        told = [(await at.ask("h1", "tape", "/refunds")).status for _ in range(2)]
        await at.settled("tape@1")
        assert told == [503, 200]
        assert at.origins.counts["/refunds"] == 2
        first, second = at.receipt("tape@1").effects
        assert (first.answered_by, second.answered_by) == ("injected: what if", "live rule")


async def test_only_what_the_rule_says_is_hit(tmp_path: Path, certificates: Certificates) -> None:
    """The second of four, while recording and again in playback."""
    rule = fault("status", status=503, nth=2)
    async with setup(tmp_path, certificates, rule) as at:
        told = [(await at.ask("h1", "tape", f"/refunds/{number}")).status for number in range(4)]
        await at.settled("tape")
        assert told == [200, 503, 200, 200]
        at.running.play()
        again = [(await at.ask("h1", "tape", f"/refunds/{number}")).status for number in range(4)]
        await at.settled("tape@1")
        assert again == told
        assert [row["nth"] for row in at.injected("tape@1")] == [2]


async def test_a_divergence_after_a_fault_names_it(
    tmp_path: Path, certificates: Certificates
) -> None:
    """An agent that does otherwise because of it diverges; the receipt says what it follows from."""
    async with setup(tmp_path, certificates) as at:
        await at.ask("h1", "tape", "/refunds")
        await at.settled("tape")
        at.running.change(mode=Mode.PLAYBACK, faults=(fault("timeout", nth=1),))
        assert await at.ask("h1", "tape", "/refunds", PATIENCE_S) == GAVE_UP
        assert (await at.ask("h1", "tape", "/apologies")).status == 424
        await at.settled("tape@1")
        receipt = at.receipt("tape@1")
        document = receipt.to_json()
        assert (document["exit_code"], document["root"]["seq"]) == (121, 2)
        assert document["root_after"]["rule"] == "what if"
        assert document["root_after"]["seq"] == 1
        assert not receipt.faithful_but_for
        assert "after what if was injected into seq 1" in render_receipt(receipt)


async def test_a_refund_that_times_out_after_success_happens_once(tmp_path: Path) -> None:
    """With the gate on duplicates: what an agent asks again under a new key is held, and denied it never happens."""
    counts: Counter[bytes] = Counter()

    async def refund(conversation: Conversation) -> None:
        counts[conversation.body] += 1
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")

    with RawOrigin(refund, lasting=True) as origin:
        config = Config(
            store=tmp_path / "store",
            effects=(EffectRule(REFUNDS, gate=Gate("duplicates")),),
            faults=(FaultRule(REFUNDS, Inject.TIMEOUT_AFTER_SUCCESS),),
        )
        async with running_engine(config) as running:
            denying = asyncio.create_task(_deny(running))
            statuses: Counter[int] = Counter()
            limit = asyncio.Semaphore(10)

            async def agent(number: int) -> None:
                async with limit:
                    statuses[await _refund_twice(running, origin.url, number, counts)] += 1

            await asyncio.gather(*(agent(number) for number in range(INJECTIONS)))
            denying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await denying
            open_run = running.open_run("tape")
            assert await open_run.settled(_LONG_S)
            await running.end("tape")
            tape = list(running.store.exchanges.all(running.store.runs.get("tape")))
    assert statuses == {424: INJECTIONS}
    assert len(counts) == INJECTIONS
    assert set(counts.values()) == {1}
    sent = [exchange for exchange in tape if exchange.verdict is VerdictKind.RECORDED]
    assert len(sent) == INJECTIONS
    for exchange in sent:
        assert exchange.gone is not None
        assert exchange.response is not None
        assert exchange.response.complete


async def _deny(running: Running) -> None:
    """Deny whatever is held."""
    no = ApprovalDecision(Ruling.DENIED, "ann", "command", "that is twice")
    while True:
        for held in running.registry.approvals.listed():
            assert "may repeat the effect" in held.reason
            running.registry.approvals.decide(held.name, held.digest, no)
        await asyncio.sleep(0.001)


async def _refund_twice(running: Running, url: str, number: int, counts: Counter[bytes]) -> int:
    """Ask for a refund, give up once it has happened, and ask again under a new key; give the second's status."""
    body = json.dumps({"charge": f"ch_{number}"}).encode()
    reader, writer = await _post(running, url, body, f"{number}-a")
    async with asyncio.timeout(_LONG_S):
        while not counts[body]:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.001)
    assert not reader._buffer  # type: ignore[attr-defined]  # nothing has come
    if number % 2:
        writer.transport.abort()
    writer.close()
    reader, writer = await _post(running, url, body, f"{number}-b")
    status = await asyncio.wait_for(reader.readline(), _LONG_S)
    writer.close()
    return int(status.split()[1])


async def _post(
    running: Running, url: str, body: bytes, key: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask over a connection of its own, without waiting for the answer."""
    opened = await asyncio.open_connection(running.address.host, running.address.port)
    head = (
        f"POST {url}/refunds HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Proxy-Authorization: Basic dGFwZTp4\r\nIdempotency-Key: {key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    opened[1].write(head.encode() + body)
    return opened


# ---- answers of other shapes -------------------------------------------------------------------------


@asynccontextmanager
async def saying(
    tmp_path: Path, answer: bytes, *rules: FaultRule, reset: bool = False
) -> AsyncIterator[tuple[Running, str]]:
    """An engine, and the URL of an origin that says this."""

    async def say(conversation: Conversation) -> None:
        await conversation.say(answer)
        if reset:
            conversation.reset()

    with RawOrigin(say) as origin:
        config = Config(store=tmp_path / "store", faults=rules, runs=Runs(grace_s=0.1))
        async with running_engine(config) as running:
            yield running, origin.url


async def _raw(
    running: Running, url: str, patience_s: float = _LONG_S, more: str = "", path: str = "/refunds"
) -> bytes:
    """Post over a connection of its own; give what came until it ended, or until the patience did."""
    opened = await asyncio.open_connection(running.address.host, running.address.port)
    head = (
        f"POST {url}{path} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic dGFwZTp4\r\n"
        f"Content-Length: 2\r\n{more}\r\n{{}}"
    )
    opened[1].write(head.encode())
    received = bytearray()
    with contextlib.suppress(TimeoutError, ConnectionResetError):
        async with asyncio.timeout(patience_s):
            while piece := await opened[0].read(65536):
                received += piece
    opened[1].close()
    return bytes(received)


async def _recorded(running: Running) -> Exchange:
    open_run = await running.opened("tape")
    assert await open_run.settled(_LONG_S)
    await running.end("tape")
    (exchange,) = running.store.exchanges.all(running.store.runs.get("tape"))
    return exchange


CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("after", "answer", "body", "is_cut"),
    [
        # in chunks: inside a piece, behind the last before its end, and longer than it is
        (4, CHUNKS, b"abcd", True),
        (7, CHUNKS, b"abcdefg", True),
        (8, CHUNKS, b"abcdefg", False),
        # no body
        (0, b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (1, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", False),
    ],
)
async def test_a_cut_is_behind_so_many_bytes_of_any_answer(
    tmp_path: Path, after: int, answer: bytes, body: bytes, is_cut: bool
) -> None:
    """A shorter one ends as it does; a replay gives the same bytes."""
    rule = fault("cut", after_bytes=after, ending="fin")
    async with saying(tmp_path, answer, rule) as (running, url):
        patience_s = _LONG_S if is_cut else PATIENCE_S
        received = await _raw(running, url, patience_s)
        exchange = await _recorded(running)
        assert exchange.response is not None
        assert exchange.response.body == body
        assert (exchange.fault is not None) == is_cut
        assert received.endswith(b"\r\n0\r\n\r\n") == (not is_cut and bool(body))
        running.change(mode=Mode.PLAYBACK, faults=())
        again = await _raw(running, url, patience_s)
        assert _unchunked(again) == _unchunked(received)
        await running.end("tape@1")
        assert build(running.store, running.store.runs.get("tape@1")).faithful


def _unchunked(received: bytes) -> tuple[bytes, bytes, bool]:
    """Give head, body, and whether the end came: pieces may be chunked otherwise."""
    head, _, rest = received.partition(b"\r\n\r\n")
    if b"chunked" not in head:
        return head, rest, True
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return head, body, True
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return head, body, False


async def test_an_upstream_that_fails_unheard_fails_after_the_client_gave_up(
    tmp_path: Path,
) -> None:
    """What was to be a timeout after success stays a timeout; the tape has what came, and how it ended."""
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"
    rule = fault("timeout_after_success")
    async with saying(tmp_path, cut, rule, reset=True) as (running, url):
        assert await _raw(running, url, PATIENCE_S) == b""
        exchange = await _recorded(running)
        assert exchange.gone is not None
        assert not exchange.gone.head
        assert exchange.fault is not None
        assert exchange.fault.kind is FaultKind.CUT


async def test_an_unheard_answer_of_any_size_is_kept(tmp_path: Path) -> None:
    """In a file where it is too large to be held."""
    size = HELD_BYTES + 70_000
    large = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    async with saying(tmp_path, large, fault("timeout_after_success")) as (running, url):
        assert await _raw(running, url, 2 * PATIENCE_S) == b""
        exchange = await _recorded(running)
        assert exchange.gone is not None
        assert exchange.response is not None
        assert exchange.response.spilled is not None
        assert exchange.response.body_bytes == size


async def test_an_answer_in_very_many_pieces_is_kept_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small they are: a list of them takes more than they do."""
    monkeypatch.setattr(pending, "HELD_PIECES", 1)
    async with saying(tmp_path, CHUNKS, fault("timeout_after_success")) as (running, url):
        assert await _raw(running, url, PATIENCE_S) == b""
        exchange = await _recorded(running)
        assert exchange.response is not None
        spilled = exchange.response.spilled
        assert spilled is not None
        assert not exchange.response.chunks
        pieces = list(running.store.bodies.read(spilled))
        assert len(pieces) == 2
        assert b"".join(data for _, data in pieces) == b"abcdefg"


async def test_a_model_that_answers_unheard_is_read_to_its_end(tmp_path: Path) -> None:
    """Although otherwise a model is told that nobody waits."""
    async with saying(tmp_path, CHUNKS, fault("timeout_after_success")) as (running, url):
        assert await _raw(running, url, PATIENCE_S, path="/v1/chat/completions") == b""
        exchange = await _recorded(running)
        assert exchange.request_class is RequestClass.INFERENCE
        assert exchange.response is not None
        assert (exchange.response.body, exchange.response.complete) == (b"abcdefg", True)


@pytest.mark.parametrize("inject", ["status", "reset"])
async def test_a_websocket_is_refused_or_reset(tmp_path: Path, inject: str) -> None:
    """Its handshake meets with the fault, while recording and on replay."""
    rule = fault(inject, status=503 if inject == "status" else 0)
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    )
    async with saying(tmp_path, CHUNKS, rule) as (running, url):
        received = await _raw(running, url, PATIENCE_S, upgrade)
        assert received.startswith(b"HTTP/1.1 503 ") if inject == "status" else not received
        await _recorded(running)
        running.change(mode=Mode.PLAYBACK, faults=())
        assert await _raw(running, url, PATIENCE_S, upgrade) == received


@pytest.mark.parametrize("inject", ["timeout_after_success", "timeout", "delay"])
async def test_a_fault_in_one_stream_disturbs_no_other(
    tmp_path: Path, certificates: Certificates, inject: str
) -> None:
    """Over one connection of HTTP/2 the next request is answered meanwhile."""
    rule = fault(inject, nth=1, delay_s=60 if inject == "delay" else 0)
    async with setup(tmp_path, certificates, rule) as at:
        url = at.urls["h2"]

        def talk() -> tuple[list[Any], bytes]:
            with open_tunnel(at.running.url_for("tape"), url, at.running.ca, alpn="h2") as tunnel:
                client = Http2Client(tunnel)
                first = client.ask("POST", f"{url}/first", BODY)
                second = client.ask("POST", f"{url}/second", BODY)
                client.read_until(lambda: client.got[second][-1:] == ["end"])
                client.cancel(first)
                client.settle()
                return client.got[first], client.data(second)

        assert await asyncio.to_thread(talk) == ([], ANSWER)
        await at.settled("tape")
        first, second = at.running.store.exchanges.all(at.running.store.runs.get("tape"))
        assert first.gone is not None
        assert second.gone is None


async def test_a_request_that_would_be_sent_as_it_comes_is_hit_too(
    tmp_path: Path, certificates: Certificates
) -> None:
    """A gRPC client over HTTP/2 is told in its own words; nothing leaves."""
    async with setup(tmp_path, certificates, fault("status", status=503)) as at:
        url = at.urls["h2"]

        def talk() -> list[Any]:
            with open_tunnel(at.running.url_for("tape"), url, at.running.ca, alpn="h2") as tunnel:
                client = Http2Client(tunnel)
                stream = client.ask("POST", f"{url}/pay.Pay/Refund", BODY, kind="application/grpc")
                client.read_until(lambda: client.got[stream][-1:] == ["end"])
                return client.got[stream]

        head, end = await asyncio.to_thread(talk)
        assert (head["grpc-status"], end) == ("14", "end")
        await at.settled("tape")
        assert not at.origins.counts
        assert at.only("tape").request.body == BODY
        at.running.change(mode=Mode.PLAYBACK, faults=())
        assert await asyncio.to_thread(talk) == [head, end]
        await at.settled("tape@1")
        assert at.receipt("tape@1").faithful
