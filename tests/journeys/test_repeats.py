"""Effects that are asked for again: the tape, the log and the receipt say so.

The same effect with another idempotency key or none may have been done twice; with the same key it is a safe retry.
What counts most is whether the client had seen a completed answer to the first.
"""

import asyncio
import http.client
import json
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from playhead.config import (
    Classes,
    ClassLive,
    Config,
    IgnoreRule,
    LiveRule,
    Mode,
    Playback,
    parse_match,
)
from playhead.tape.exchange import Exchange, Repeat, RepeatKind, RequestClass, RunId, Seq
from playhead.tape.records.events import EventKind
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.timeline import Receipt, build, exit_code

DUPLICATE, RETRY = RepeatKind.POSSIBLE_DUPLICATE, RepeatKind.SAFE_RETRY
PATIENCE_S = 0.3
_LONG_S = 10.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
BODY = '{"charge": "ch_1", "amount": 4900}'


class Payments:
    """Does the first effect at each path in a way of its own, and further ones promptly."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.go: dict[str, threading.Event] = defaultdict(threading.Event)
        """Set when a late answer may be given, by path."""

    async def __call__(self, conversation: Conversation) -> None:
        path = conversation.path
        self.counts[path] += 1
        first = self.counts[path] == 1
        match path.rpartition("/")[2] if first else "":
            case "late":
                assert await asyncio.to_thread(self.go[path].wait, _LONG_S)
            case "reset":
                conversation.reset()
                return
            case "cut":
                await conversation.say(OK[:-2])
                return
            case "error":
                await conversation.say(OK.replace(b"200 OK", b"500 Broken"))
                return
        await conversation.say(OK)


class Asked(NamedTuple):
    """One request of a client."""

    path: str
    body: str = BODY
    headers: Mapping[str, str] = {}
    method: str = "POST"


def keyed(key: str | None, path: str = "/refunds") -> Asked:
    """Ask for the effect with an idempotency key, or without."""
    return Asked(path, headers={"Idempotency-Key": key} if key else {})


def _send(running: Running, base: str, asked: Asked, patience_s: float = _LONG_S) -> str:
    """Ask over a connection of its own; give the status, or what was raised."""
    place = urlsplit(running.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=patience_s)
    headers = {"Content-Type": "application/json", "Proxy-Authorization": "Basic dGFwZTp4"}
    try:
        connection.request(
            asked.method, base + asked.path, asked.body, {**headers, **asked.headers}
        )
        response = connection.getresponse()
        response.read()
        return str(response.status)
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


class Story:
    """A recording under way."""

    def __init__(self, running: Running, origin: RawOrigin, payments: Payments) -> None:
        self.running = running
        self.origin = origin
        self.payments = payments

    async def ask(self, asked: Asked, patience_s: float = _LONG_S) -> str:
        """Ask for something; give what the client saw."""
        return await asyncio.to_thread(_send, self.running, self.origin.url, asked, patience_s)

    async def gone(self) -> None:
        """Wait until it is known that the client left."""
        open_run = await self.running.opened("tape")
        async with asyncio.timeout(_LONG_S):
            on_the_way = open_run.on_the_way
            while not all(one.progress.gone for one in on_the_way.pending_exchanges):  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    async def end(self) -> list[Exchange]:
        """End the recording; give the tape."""
        open_run = self.running.open_run("tape")
        assert await open_run.settled(_LONG_S)
        await self.running.end("tape")
        run = self.running.store.runs.get(RunId("tape"))
        return sorted(self.running.store.exchanges.all(run), key=lambda exchange: exchange.seq)

    def intents(self) -> list[Any]:
        """Give what the intents in the log say of repeats, in order of seq."""
        run = self.running.store.runs.get(RunId("tape"))
        events = self.running.store.events.read(run)
        intents = [event for event in events if event.kind is EventKind.INTENT]
        return [event.data.get("repeat") for event in sorted(intents, key=lambda e: e.seq)]

    def receipt(self, run: str = "tape") -> Receipt:
        """Give the receipt of a run."""
        return build(self.running.store, self.running.store.runs.get(RunId(run)))


@asynccontextmanager
async def recording(store: Path) -> AsyncIterator[Story]:
    payments = Payments()
    with RawOrigin(payments) as origin:
        async with running_engine(Config(mode=Mode.RECORD, store=store)) as running:
            yield Story(running, origin, payments)


def _of(repeat: Repeat | None) -> tuple[int, RepeatKind, bool] | None:
    return (repeat.of, repeat.kind, repeat.unseen) if repeat is not None else None


def _note(repeat: tuple[int, RepeatKind, bool] | None) -> str:
    if repeat is None:
        return ""
    words = ", whose answer the client had not seen" if repeat[2] else ""
    return f"{repeat[1].value} of seq {repeat[0]}{words}"


@pytest.mark.parametrize(
    ("keys", "repeats"),
    [
        ((None, None), [None, (1, DUPLICATE, False)]),
        (("a", "b"), [None, (1, DUPLICATE, False)]),
        (("a", None), [None, (1, DUPLICATE, False)]),
        ((None, "a"), [None, (1, DUPLICATE, False)]),
        (("a", "a"), [None, (1, RETRY, False)]),
        (("a", "a", "a"), [None, (1, RETRY, False), (1, RETRY, False)]),
        (("a", "b", "a"), [None, (1, DUPLICATE, False), (1, RETRY, False)]),
        ((None, None, None), [None, (1, DUPLICATE, False), (2, DUPLICATE, False)]),
    ],
)
async def test_an_idempotency_key_tells_a_retry_from_a_duplicate(
    keys: tuple[str | None, ...],
    repeats: list[tuple[int, RepeatKind, bool] | None],
    store_dir: Path,
) -> None:
    """In the exchange, in the intent that goes before it, and in the receipt."""
    async with recording(store_dir) as story:
        for key in keys:
            assert await story.ask(keyed(key)) == "200"
        tape = await story.end()
        intents, receipt = story.intents(), story.receipt()
    assert [_of(exchange.repeat) for exchange in tape] == repeats
    assert [tuple(found) if found else None for found in intents] == repeats
    assert [effect.note for effect in receipt.effects] == [_note(repeat) for repeat in repeats]


@pytest.mark.parametrize(
    ("first", "saw", "unseen"),
    [
        ("seen", "200", False),
        ("error", "500", False),
        ("late", "TimeoutError", True),
        ("reset", "ConnectionResetError", True),
        ("cut", "IncompleteRead", True),
    ],
)
@pytest.mark.parametrize("key", [None, "a"])
async def test_a_repeat_says_whether_the_client_had_seen_an_answer(
    first: str, saw: str, unseen: bool, key: str | None, store_dir: Path
) -> None:
    """A completed one, whatever its status; not one that was cut, reset, or came too late."""
    async with recording(store_dir) as story:
        path = f"/{first}"
        patience_s = PATIENCE_S if first == "late" else _LONG_S
        assert await story.ask(keyed(key, path), patience_s) == saw
        await story.gone()
        assert await story.ask(keyed(key, path)) == "200"
        story.payments.go[path].set()
        tape = await story.end()
        receipt = story.receipt()
    kind = RETRY if key else DUPLICATE
    assert tape[1].repeat == Repeat(Seq(1), kind, unseen)
    assert receipt.effects[1].note == _note((1, kind, unseen))
    if first == "late":
        assert tape[0].gone is not None
        assert tape[0].response is not None
        assert (tape[0].response.status, tape[0].response.complete) == (200, True)


async def test_an_effect_beside_one_that_is_still_on_its_way_repeats_it(store_dir: Path) -> None:
    """Nobody has seen an answer yet; afterwards it is the answered one that is repeated."""
    async with recording(store_dir) as story:
        first = asyncio.ensure_future(story.ask(keyed(None, "/late")))
        async with asyncio.timeout(_LONG_S):
            while not story.payments.counts["/late"]:  # noqa: ASYNC110  # a thread counts
                await asyncio.sleep(0.002)
        assert await story.ask(keyed(None, "/late")) == "200"
        story.payments.go["/late"].set()
        assert await first == "200"
        assert await story.ask(keyed(None, "/late")) == "200"
        tape = await story.end()
    assert [_of(exchange.repeat) for exchange in tape] == [
        None,
        (1, DUPLICATE, True),
        (2, DUPLICATE, False),
    ]


async def test_the_effect_that_nobody_saw_answered_is_the_one_that_counts(store_dir: Path) -> None:
    """A third one repeats the first, which may have been done, rather than the second, which has."""
    async with recording(store_dir) as story:
        assert await story.ask(keyed(None, "/late"), PATIENCE_S) == "TimeoutError"
        await story.gone()
        assert await story.ask(keyed(None, "/late")) == "200"
        assert await story.ask(keyed(None, "/late")) == "200"
        story.payments.go["/late"].set()
        tape = await story.end()
    assert _of(tape[2].repeat) == (1, DUPLICATE, True)


SAME = {
    "body in another order": Asked("/refunds", '{"amount":4900,"charge":"ch_1"}'),
    "other header fields": Asked(
        "/refunds", headers={"Accept": "text/html", "User-Agent": "another", "X-Attempt": "2"}
    ),
    "a range": Asked("/refunds", headers={"Range": "bytes=0-1", "If-None-Match": '"v1"'}),
}
OTHER = {
    "another body": Asked("/refunds", '{"charge": "ch_1", "amount": 4901}'),
    "another number": Asked("/refunds", '{"charge": "ch_1", "amount": 4900.0}'),
    "another path": Asked("/refunds/2"),
    "another query": Asked("/refunds?dry=1"),
    "another method": Asked("/refunds", method="PUT"),
}


@pytest.mark.parametrize("name", [*SAME, *OTHER])
async def test_an_effect_is_known_by_method_url_and_body_alone(name: str, store_dir: Path) -> None:
    """The body in canonical form; no header field counts."""
    async with recording(store_dir) as story:
        assert await story.ask(Asked("/refunds")) == "200"
        assert await story.ask((SAME | OTHER)[name]) == "200"
        tape = await story.end()
    assert _of(tape[1].repeat) == ((1, DUPLICATE, False) if name in SAME else None)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (Asked("/things", "", method="GET"), RequestClass.READ),
        (Asked("/v1/chat/completions", '{"model": "m"}'), RequestClass.INFERENCE),
        (Asked("/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'), RequestClass.READ),
        (Asked("/graphql", '{"query": "{ charges { id } }"}'), RequestClass.READ),
        (Asked("/logs/_search", '{"size": 1}'), RequestClass.READ),
    ],
)
async def test_what_is_no_effect_repeats_nothing(
    asked: Asked, kind: RequestClass, store_dir: Path
) -> None:
    """Reads and model calls are asked for as often as one likes."""
    async with recording(store_dir) as story:
        for _ in range(2):
            assert await story.ask(asked) == "200"
        tape = await story.end()
        story.origin.stop()
        story.running.play()
        for _ in range(2):
            assert await story.ask(asked) == "200"
        await story.running.end("tape@1")
        receipts = story.receipt(), story.receipt("tape@1")
    assert {exchange.request_class for exchange in tape} == {kind}
    assert [exchange.repeat for exchange in tape] == [None, None]
    assert [receipt.effects for receipt in receipts] == [[], []]
    assert receipts[1].matched == {"exact": 2}


async def test_a_tool_called_twice_is_a_duplicate_whatever_its_id(store_dir: Path) -> None:
    """MCP's `tools/call` and a mutation may do anything; ids of JSON-RPC are no part of an effect."""
    tool = '{"jsonrpc": "2.0", "id": %d, "method": "tools/call", "params": {"name": "refund"}}'
    mutation = Asked("/graphql", '{"query": "mutation { refund { id } }"}')
    async with recording(store_dir) as story:
        for one in (Asked("/mcp", tool % 1), Asked("/mcp", tool % 2), mutation, mutation):
            assert await story.ask(one) == "200"
        tape = await story.end()
    assert [_of(one.repeat) for one in tape] == [
        None,
        (1, DUPLICATE, False),
        None,
        (3, DUPLICATE, False),
    ]


async def test_a_pattern_of_the_configuration_speaks_louder_than_a_body(store_dir: Path) -> None:
    """What is declared an effect is one, whatever it asks for."""
    classes = Classes(effect=(parse_match("POST *://*/mcp"),))
    async with recording(store_dir) as story:
        story.running.change(classes=classes)
        asked = Asked("/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}')
        assert await story.ask(asked) == "200"
        (exchange,) = await story.end()
    assert exchange.request_class is RequestClass.EFFECT


async def test_no_body_lets_a_request_out(store_dir: Path) -> None:
    """A live class of reads is for what method and URL make one; a read by its body comes from the tape."""
    body = '{"jsonrpc": "2.0", "id": %d, "method": "tools/list"}'
    live = Playback(reads=ClassLive(("127.0.0.1",), "a test"))
    async with recording(store_dir) as story:
        assert await story.ask(Asked("/mcp", body % 1)) == "200"
        assert await story.ask(Asked("/things", "", method="GET")) == "200"
        await story.end()
        story.running.play()
        story.running.change(playback=live)
        assert await story.ask(Asked("/mcp", body % 2)) == "200"
        other = Asked("/mcp", '{"jsonrpc": "2.0", "id": 3, "method": "prompts/list"}')
        assert await story.ask(other) == "424"
        assert await story.ask(Asked("/things", "", method="GET")) == "200"
        await story.running.end("tape@1")
        receipt = story.receipt("tape@1")
    assert story.payments.counts == {"/mcp": 1, "/things": 2}
    assert receipt.matched == {"canonical": 1}


async def test_a_read_by_body_is_unused_if_reads_are_live(
    store_dir: Path,
) -> None:
    """It cannot have gone out instead."""
    async with recording(store_dir) as story:
        listing = Asked("/mcp", '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}')
        for asked in (listing, Asked("/things", "", method="GET")):
            assert await story.ask(asked) == "200"
        await story.end()
        story.running.play()
        story.running.change(playback=Playback(reads=ClassLive(("127.0.0.1",), "a test")))
        assert await story.ask(Asked("/other", "", method="GET")) == "200"
        await story.running.end("tape@1")
        receipt = story.receipt("tape@1")
    assert [row["seq"] for row in receipt.unused] == [1]
    assert exit_code(receipt) == 122


async def test_a_replay_tells_of_the_same_repeats(store_dir: Path) -> None:
    """Its receipt lists the duplicate and the retry as that of the recording does."""
    keys = (None, None, "a", "a")
    async with recording(store_dir) as story:
        assert await story.ask(keyed(None, "/late"), PATIENCE_S) == "TimeoutError"
        await story.gone()
        for key in keys:
            assert await story.ask(keyed(key, "/late")) == "200"
        story.payments.go["/late"].set()
        await story.end()
        story.origin.stop()
        story.running.play()
        assert await story.ask(keyed(None, "/late"), PATIENCE_S) == "TimeoutError"
        for key in keys:
            assert await story.ask(keyed(key, "/late")) == "200"
        await story.running.end("tape@1")
        recorded, replayed = story.receipt(), story.receipt("tape@1")
    notes = [effect.note for effect in recorded.effects]
    assert len(set(notes)) > 2
    assert [effect.note for effect in replayed.effects] == notes
    assert replayed.faithful is True, replayed.to_json()


async def test_in_a_replay_too_no_header_field_makes_another_effect(store_dir: Path) -> None:
    """A duplicate that wants its answer in another form is one."""
    asked = (Asked("/refunds"), SAME["other header fields"])
    async with recording(store_dir) as story:
        for one in asked:
            assert await story.ask(one) == "200"
        await story.end()
        story.origin.stop()
        story.running.play()
        for one in asked:
            assert await story.ask(one) == "200"
        await story.running.end("tape@1")
        receipt = story.receipt("tape@1")
    assert [effect.note for effect in receipt.effects] == ["", "possible duplicate of seq 1"]


@pytest.mark.parametrize("size", [1, 100_000], ids=["small", "large"])
async def test_an_ignored_place_makes_no_other_effect(size: int, store_dir: Path) -> None:
    """In a replay as in the recording."""
    asked = [
        Asked("/refunds", json.dumps({"charge": "c" * size, "at": number})) for number in (1, 2)
    ]
    async with recording(store_dir) as story:
        story.running.change(ignore=(IgnoreRule(parse_match("*://*/refunds"), json=("$.at",)),))
        for one in asked:
            assert await story.ask(one) == "200"
        await story.end()
        story.origin.stop()
        story.running.play()
        for one in asked:
            assert await story.ask(one) == "200"
        await story.running.end("tape@1")
        receipts = story.receipt(), story.receipt("tape@1")
    for receipt in receipts:
        assert [effect.note for effect in receipt.effects] == ["", "possible duplicate of seq 1"]


async def test_an_effect_that_a_live_rule_lets_out_twice_is_a_duplicate(store_dir: Path) -> None:
    """It was done twice, in a replay as well; once with its key is a safe retry."""
    live = LiveRule(parse_match("POST *://*/refunds"), "a test")
    async with recording(store_dir) as story:
        assert await story.ask(Asked("/things", "", method="GET")) == "200"
        await story.end()
        story.running.play()
        story.running.change(live=(live,))
        for key in (None, None, "a", "a"):
            assert await story.ask(keyed(key)) == "200"
        await story.running.end("tape@1")
        run = story.running.store.runs.get(RunId("tape@1"))
        made = sorted(story.running.store.exchanges.all(run), key=lambda exchange: exchange.seq)
        receipt = story.receipt("tape@1")
    repeats = [(1, DUPLICATE, False), (2, DUPLICATE, False), (3, RETRY, False)]
    assert [_of(one.repeat) for one in made] == [None, *repeats]
    assert [effect.note for effect in receipt.effects] == ["", *map(_note, repeats)]


@pytest.mark.parametrize("size", [1, 100_000], ids=["small", "large"])
async def test_keys_that_differ_from_the_tape_are_told_and_served(
    size: int, store_dir: Path
) -> None:
    """Whether there is one, and which effects share one; never which it is. Nothing is refused."""

    def ask(number: int, key: str | None) -> Asked:
        body = f'{{"n": {number}, "x": "{"x" * size}"}}'
        return keyed(key)._replace(body=body)

    async with recording(store_dir) as story:
        for number, key in enumerate(("a", "b", "c", None)):
            assert await story.ask(ask(number, key)) == "200"
        await story.end()
        story.origin.stop()
        story.running.play()
        for number, key in enumerate(("x", "x", None, "y")):
            assert await story.ask(ask(number, key)) == "200"
        await story.running.end("tape@1")
        receipt = story.receipt("tape@1")
    assert receipt.drifted == [
        {
            "kind": "drifted",
            "seq": 2,
            "tape_seq": 2,
            "what": "shares its idempotency key with seq 1; on the tape the two have different ones",
        },
        {
            "kind": "drifted",
            "seq": 3,
            "tape_seq": 3,
            "what": "carries no idempotency key, and was recorded with one",
        },
        {
            "kind": "drifted",
            "seq": 4,
            "tape_seq": 4,
            "what": "carries an idempotency key, and was recorded without one",
        },
    ]
    assert [row["text"] for row in receipt.divergences] == [
        f"served all the same: {row['what']}" for row in receipt.drifted
    ]
    assert receipt.faithful is False
