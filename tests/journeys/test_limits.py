"""Limits of a run: what would be one too many is refused, and the receipt says what was used."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from playhead.config import (
    Classes,
    Config,
    EffectRule,
    Gate,
    Limits,
    LiveRule,
    Mode,
    ReadRule,
    parse_match,
)
from playhead.store import Store
from playhead.tape.exchange import VerdictKind
from playhead.tape.policy.approval_decision import ApprovalDecision, Ruling
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.client import Connection
from playhead.tests.support.early import early_client, early_origin
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.kept import kept_bytes
from playhead.tests.support.origins import Origin
from playhead.tests.support.raw import Conversation, RawOrigin
from playhead.tests.support.secrets import find_written
from playhead.timeline import Receipt, build, exit_code, render_receipt

if TYPE_CHECKING:
    import httpx

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
_LONG_S = 20.0


async def _chat(request: web.Request) -> web.StreamResponse:
    """As OpenAI answers: 1,000 tokens asked and 100 answered, in a stream only where that is asked for."""
    asked = await request.json()
    base = {"id": "x", "model": asked["model"], "created": 1}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "hello"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
        return web.json_response(body)
    delta = {"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}
    chunks: list[dict[str, Any]] = [{**base, "choices": [delta]}]
    if asked.get("stream_options"):
        chunks.append({**base, "choices": [], "usage": usage})
    answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await answer.prepare(request)
    for chunk in chunks:
        await answer.write(f"data: {json.dumps(chunk)}\n\n".encode())
    await answer.write(b"data: [DONE]\n\n")
    return answer


async def _plain(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(text="done")


async def _refuse(_: web.Request) -> web.Response:
    return web.json_response({"error": {"message": "overloaded"}}, status=529)


@asynccontextmanager
async def limited(
    store: Path, limits: Limits, **changes: Any
) -> AsyncIterator[tuple[Running, Origin]]:
    """An engine that records under limits, and a model's host."""
    routes: dict[str, Any] = {CHAT: _chat, MESSAGES: _refuse, "/x": _plain, "/y": _plain}
    routes |= dict.fromkeys(
        ("/V1/Chat/Completions", "/v1/chat/completions;x", "/any", "/own"), _chat
    )
    with Origin(routes) as origin:
        async with running_engine(Config(store=store, limits=limits, **changes)) as running:
            yield running, origin


class Agent:
    """Asks through the proxy."""

    def __init__(self, running: Running, origin: Origin, run: str = "tape") -> None:
        import httpx

        self._origin = origin
        proxy = running.url_for(run)
        self._client = httpx.Client(proxy=proxy, timeout=_LONG_S, trust_env=False)

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._client.close()

    async def get(self, path: str) -> "httpx.Response":
        return await asyncio.to_thread(self._client.get, self._origin.url + path)

    async def post(
        self, path: str, body: Any, headers: dict[str, str] | None = None
    ) -> "httpx.Response":
        url = self._origin.url + path
        return await asyncio.to_thread(self._client.post, url, json=body, headers=headers)

    async def chat(self, text: str, model: str = "gpt-4o", **more: Any) -> "httpx.Response":
        messages = [{"role": "user", "content": text}]
        return await self.post(CHAT, {"model": model, "messages": messages, **more})


STREAM = {"stream": True, "stream_options": {"include_usage": True}}


async def _receipt(running: Running, run: str = "tape") -> Receipt:
    await running.end(run)
    return build(running.store, running.store.runs.get(run))


def _shown(receipt: Receipt) -> dict[str, Any]:
    shown = receipt.to_json()["limits"]
    assert isinstance(shown, dict)
    return shown


async def test_a_run_makes_no_more_calls_than_its_limit(store_dir: Path) -> None:
    """What is refused says why; it is an exchange of the run, and the limit is told once."""
    async with limited(store_dir, Limits(calls=3)) as (running, origin):
        async with Agent(running, origin) as agent:
            got = [await agent.get(f"/x?{number}") for number in range(5)]
        assert [one.status_code for one in got] == [200, 200, 200, 424, 424]
        assert got[3].headers["x-should-retry"] == "false"
        error = got[3].json()["error"]
        assert error["code"] == "limit_reached"
        assert "the run's limit of 3 calls is exhausted" in error["message"]
        assert len(origin.requests) == 3
        async with Agent(running, origin, "other") as agent:
            assert (await agent.get("/x")).status_code == 200
        receipt = await _receipt(running)
        kept = list(running.store.exchanges.all(running.store.runs.get("tape")))
        assert [one.verdict for one in kept[2:]] == [
            VerdictKind.RECORDED,
            *[VerdictKind.REFUSED] * 2,
        ]
        log = list(running.store.events.read(running.store.runs.get("tape")))
    assert [one.data["limit"] for one in log if one.kind is EventKind.LIMITED] == ["calls"]
    verdicts = [one.data for one in log if one.kind is EventKind.VERDICT]
    assert [one["rule"] for one in verdicts] == ["limits", "limits"]
    shown = _shown(receipt)
    assert shown["limits"] == {"calls": 3, "tokens": None, "usd": None, "repeats": None}
    assert shown["used"]["calls"] == 3
    assert shown["used"]["input_tokens"] is None
    (reached,) = shown["reached"]
    assert (reached["limit"], reached["seq"]) == ("calls", 4)
    text = render_receipt(receipt)
    assert "limits: 3 of 3 calls" in text
    assert "REACHED at seq 4: the run's limit of 3 calls is exhausted" in text
    assert exit_code(receipt) == 0


async def test_many_at_once_pass_no_limit_together(store_dir: Path) -> None:
    """Calls are counted when they are decided on."""
    async with limited(store_dir, Limits(calls=5)) as (running, origin):

        async def ask(number: int) -> int:
            connection = await Connection.open(str(running.address))
            try:
                body = b"{}" if number % 2 else b""
                url = f"{origin.url}/x?{number}"
                return (await connection.ask(url, body=body, credentials="tape:x")).status
            finally:
                await connection.close()

        got = await asyncio.gather(*map(ask, range(40)))
        assert sorted(got) == [200] * 5 + [424] * 35
        assert len(origin.requests) == 5


async def test_a_call_that_may_be_answered_early_is_counted_too(
    store_dir: Path, certificates: Certificates
) -> None:
    """gRPC and its like are decided on by their head: once each, whichever way it goes."""
    config = Config(
        store=store_dir, upstream_ca=certificates.root, limits=Limits(calls=2, repeats=1)
    )
    with early_origin(certificates) as (url, asked):
        async with running_engine(config) as running:
            with early_client(running, "tape") as call:
                got = [await call(f"{url}/say") for _ in range(4)]
            shown = _shown(await _receipt(running))
    assert [one.content for one in got] == [b"said", b"said", b"", b""]
    assert got[2].headers["grpc-status"] == "9"
    assert "limit%20of%202%20calls" in got[2].headers["grpc-message"].replace(" ", "%20")
    assert len(asked) == 2
    assert shown["used"]["calls"] == 2
    assert [one["limit"] for one in shown["reached"]] == ["calls"]


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "limits", [Limits(tokens=2200), Limits(usd=Decimal("0.007"))], ids=["tokens", "usd"]
)
async def test_the_next_model_call_after_the_limit_is_refused(
    store_dir: Path, limits: Limits, more: dict[str, Any]
) -> None:
    """At once, not some time later; what is no model call uses none of it, and goes on."""
    async with limited(store_dir, limits) as (running, origin):
        async with Agent(running, origin) as agent:
            got = [(await agent.chat(f"{n}", **more)).status_code for n in range(4)]
            assert got == [200, 200, 424, 424]
            assert (await agent.post("/x", {"pay": 1})).status_code == 200
        shown = _shown(await _receipt(running))
    used = shown["used"]
    assert (used["calls"], used["input_tokens"], used["output_tokens"]) == (3, 2000, 200)
    assert (used["cached_tokens"], used["without_usage"]) == (0, 0)
    if limits.usd is not None:
        assert (used["usd"], used["without_price"]) == (0.007, 0)
    else:
        assert (used["usd"], used["without_price"]) == (None, None)
    assert [one["seq"] for one in shown["reached"]] == [3]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/%63hat/completions", {}),
        ("/V1/Chat/Completions", {}),
        ("/v1/chat/completions;x", {}),
        ("/any", {"X-Original-URL": CHAT}),
        # A model call by the configuration alone, in a format that no dialect knows by its path.
        ("/own", {}),
    ],
)
async def test_a_model_call_is_counted_however_it_is_spelled(
    store_dir: Path, path: str, headers: dict[str, str]
) -> None:
    """What its answer states counts, whoever can read the rest of it."""
    classes = Classes(inference=(parse_match("POST *://*/own"),))
    async with limited(store_dir, Limits(tokens=2200), classes=classes) as (running, origin):
        async with Agent(running, origin) as agent:
            asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]}
            got = [(await agent.post(path, asked, headers)).status_code for _ in range(3)]
        used = _shown(await _receipt(running))["used"]
    assert got == [200, 200, 424]
    assert (used["input_tokens"], used["without_usage"]) == (2000, 0)


async def test_a_client_that_acts_before_the_end_of_a_stream_finds_the_limit(
    store_dir: Path,
) -> None:
    """Tokens count before the piece is released that says that nothing more will come."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    chunk = json.dumps({"id": "x", "model": "gpt-4o", "choices": [], "usage": usage}).encode()

    async def hang(conversation: Conversation) -> None:
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        await conversation.say(b"data: " + chunk + b"\n\ndata: [DONE]\n\n")
        await conversation.left()

    config = Config(store=store_dir, limits=Limits(tokens=1000))
    with RawOrigin(hang) as origin:
        async with running_engine(config) as running:
            url, body = origin.url + CHAT, b'{"model": "gpt-4o", "messages": []}'
            first = await Connection.open(str(running.address))
            head = f"POST {url} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
            proof = base64.b64encode(b"tape:x").decode()
            head += f"proxy-authorization: Basic {proof}\r\n\r\n"
            first.writer.write(head.encode() + body)
            async with asyncio.timeout(_LONG_S):
                await first.reader.readuntil(b"[DONE]")
            second = await Connection.open(str(running.address))
            answer = await second.ask(url, body=body, credentials="tape:x")
            assert answer.status == 424
            assert b"limit_reached" in answer.body
            await first.close()
            await second.close()
            used = _shown(await _receipt(running))["used"]
    assert (used["calls"], used["input_tokens"], used["without_usage"]) == (1, 1000, 0)


async def test_an_answer_of_which_more_comes_is_read_again(store_dir: Path) -> None:
    """What looks like the end of a stream may be what a model wrote; and one that is cut counts as far as it came."""
    import httpx

    begun: dict[str, Any] = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 50, "output_tokens": 1}},
    }
    delta: dict[str, Any] = {"type": "text_delta", "text": "message_stop"}
    ended: dict[str, Any] = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}}

    async def say(conversation: Conversation) -> None:
        await conversation.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        piece: dict[str, Any] = {"type": "content_block_delta", "index": 0, "delta": delta}
        cut = b"cut" in conversation.body
        for one in [begun, piece] if cut else [begun, piece, ended, {"type": "message_stop"}]:
            data = f"event: {one['type']}\ndata: {json.dumps(one)}\n\n"
            await conversation.say(data.encode())
        if cut:
            conversation.reset()

    config = Config(store=store_dir, limits=Limits(tokens=1000))
    with RawOrigin(say) as origin:
        async with running_engine(config) as running:

            def post(text: str) -> bytes:
                asked = {"model": "claude-x", "max_tokens": 9, "messages": [], "system": text}
                with httpx.Client(proxy=running.url_for("tape"), trust_env=False) as client:
                    return client.post(origin.url + MESSAGES, json=asked).content

            assert b"message_delta" in await asyncio.to_thread(post, "whole")
            with pytest.raises(httpx.HTTPError):
                await asyncio.to_thread(post, "cut")
            used = _shown(await _receipt(running))["used"]
    assert (used["calls"], used["without_usage"]) == (2, 0)
    assert (used["input_tokens"], used["output_tokens"]) == (100, 8)


async def test_what_is_not_known_is_counted_as_unknown(store_dir: Path) -> None:
    """A model without a price, a stream that states no tokens; an error costs nothing."""
    limits = Limits(tokens=10**6, usd=Decimal("0.0001"))
    async with limited(store_dir, limits) as (running, origin):
        async with Agent(running, origin) as agent:
            for number in range(3):
                assert (await agent.chat(f"{number}", "llama-9")).status_code == 200
            assert (await agent.chat("a", stream=True)).status_code == 200
            assert (await agent.post(MESSAGES, {"model": "claude-x"})).status_code == 529
            assert (await agent.chat("b")).status_code == 200
            assert (await agent.chat("c")).status_code == 424
        receipt = await _receipt(running)
    used = _shown(receipt)["used"]
    assert (used["input_tokens"], used["without_usage"], used["without_price"]) == (4000, 1, 4)
    assert used["usd"] == 0.0035
    (row,) = _shown(receipt)["reached"]
    assert (
        "limit of 0.0001 USD is exhausted: 0.0035 USD, and 4 calls of unknown price"
        in row["reason"]
    )
    text = render_receipt(receipt)
    assert "0.0035 of 0.0001 USD" in text
    assert "1 model calls stated none" in text
    assert "price unknown of 4 model calls" in text


async def test_a_request_in_a_row_is_a_loop(store_dir: Path) -> None:
    """Refused until another is asked at its place; what stands in ignored places does not count."""
    async with limited(store_dir, Limits(repeats=2)) as (running, origin):
        async with Agent(running, origin) as agent:
            got = []
            for _ in range(4):
                got.append((await agent.chat("again")).status_code)
                assert (await agent.get(f"/x?{len(got)}")).status_code == 200
            assert got == [200, 200, 424, 424]
            assert (await agent.chat("else")).status_code == 200
            assert (await agent.chat("again")).status_code == 200
            pay = {"amount": 1, "note": "x" * 100_000}
            assert [(await agent.post("/y", pay)).status_code for _ in range(3)] == [200, 200, 424]
        shown = _shown(await _receipt(running))
        kept = list(running.store.exchanges.all(running.store.runs.get("tape")))
        twice = [one for one in kept if one.request.path == "/y"]
        assert len({one.fingerprint for one in twice}) == 1
        assert twice[1].repeat is not None, "an effect is still known as repeated"
    (row,) = shown["reached"]
    assert (row["limit"], row["seq"]) == ("repeats", 5)


async def test_a_poll_with_new_answers_is_no_loop(store_dir: Path) -> None:
    """It is one from the answer on that stays the same."""
    answers = iter(["1 %", "2 %", "3 %", *["stuck"] * 9])

    async def job(_: web.Request) -> web.Response:
        return web.Response(text=next(answers))

    with Origin({"/job": job}) as origin:
        config = Config(store=store_dir, limits=Limits(repeats=2))
        async with running_engine(config) as running, Agent(running, origin) as agent:
            got = [await agent.get("/job") for _ in range(7)]
    assert [one.status_code for one in got] == [200] * 5 + [424] * 2


async def test_a_poll_that_a_rule_allows_is_no_loop(store_dir: Path) -> None:
    """`repeat: last` says that it will be asked again and again."""
    reads = (ReadRule(parse_match("GET *://*/x"), "last"),)
    async with (
        limited(store_dir, Limits(repeats=2), reads=reads) as (running, origin),
        Agent(running, origin) as agent,
    ):
        assert {(await agent.get("/x")).status_code for _ in range(6)} == {200}
        assert [(await agent.get("/y")).status_code for _ in range(3)] == [200, 200, 424]


@pytest.mark.parametrize("limits", [Limits(calls=2), Limits(tokens=2000), Limits(repeats=2)])
async def test_a_run_that_hit_its_limit_plays_as_it_was(store_dir: Path, limits: Limits) -> None:
    """The refusal was what the agent was told; the tape costs nothing, so no limit is asked."""
    async with limited(store_dir, limits) as (running, origin):
        async with Agent(running, origin) as agent:
            first = [await agent.chat("again") for _ in range(4)]
        await running.end("tape")
        running.play()
        asked = len(origin.requests)
        async with Agent(running, origin) as agent:
            again = [await agent.chat("again") for _ in range(4)]
        assert [one.status_code for one in first] == [200, 200, 424, 424]
        assert [one.content for one in again] == [one.content for one in first]
        assert len(origin.requests) == asked
        receipt = await _receipt(running, "tape@1")
    assert receipt.faithful is True
    shown = _shown(receipt)
    assert (shown["used"]["calls"], shown["reached"]) == (0, [])


async def test_live_calls_of_a_playback_are_limited(store_dir: Path) -> None:
    """What the tape answers is not; who is refused has not diverged, and is not faithful."""
    live = (LiveRule(parse_match(f"POST *://*{CHAT}"), "the new prompt"),)
    limits = Limits(calls=2, tokens=10**6)
    async with limited(store_dir, Limits(), live=live) as (running, origin):
        async with Agent(running, origin) as agent:
            for number in range(4):
                await agent.get(f"/x?{number}")
        await running.end("tape")
        running.change(limits=limits, mode=Mode.PLAYBACK)
        async with Agent(running, origin) as agent:
            for number in range(4):
                assert (await agent.get(f"/x?{number}")).status_code == 200
            got = [await agent.chat(f"{number}") for number in range(3)]
        assert [one.status_code for one in got] == [200, 200, 424]
        assert got[2].json()["error"]["code"] == "limit_reached"
        receipt = await _receipt(running, "tape@1")
    assert receipt.divergences == []
    assert exit_code(receipt) == 121
    used = _shown(receipt)["used"]
    assert (used["calls"], used["input_tokens"]) == (2, 2000)


async def test_what_a_gate_did_not_let_go_is_not_counted(store_dir: Path) -> None:
    """It never left."""
    rule = EffectRule(parse_match("POST *://*/x"), gate=Gate(deadline_s=_LONG_S))
    async with (
        limited(store_dir, Limits(calls=1), effects=(rule,)) as (running, origin),
        Agent(running, origin) as agent,
    ):
        asking = asyncio.create_task(agent.post("/x", {}))
        async with asyncio.timeout(_LONG_S):
            while not running.registry.approvals.listed():  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.005)
        (held,) = running.registry.approvals.listed()
        assert (await agent.get("/y")).status_code == 424, "what is held counts meanwhile"
        running.registry.approvals.decide(
            held.name, None, ApprovalDecision(Ruling.DENIED, "ann", "api")
        )
        assert (await asking).status_code == 424
        assert [(await agent.get("/y")).status_code for _ in range(2)] == [200, 424]


async def test_without_limits_there_is_nothing_of_them(store_dir: Path) -> None:
    """No answer is read, no event says anything, and the receipt is silent."""
    async with limited(store_dir, Limits()) as (running, origin):
        async with Agent(running, origin) as agent:
            await agent.chat("hi")
        assert running.open_run("tape").usage_meter is None
        receipt = await _receipt(running)
        log = list(running.store.events.read(running.store.runs.get("tape")))
    assert receipt.limits is None
    assert all("usage" not in one.data and "limits" not in one.data for one in log)
    assert "limits" not in render_receipt(receipt)


async def test_what_a_limit_refuses_is_kept_without_its_secrets(store_dir: Path) -> None:
    """It has not been compared with anything, and is kept all the same."""
    secret = "sk-" + "ant-api03-" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2" * 4
    async with limited(store_dir, Limits(calls=1)) as (running, origin):
        async with Agent(running, origin) as agent:
            assert (await agent.chat("hello")).status_code == 200
            assert (await agent.chat(f"use {secret}")).status_code == 424
        await running.end("tape")
    with Store.open(store_dir, readonly=True) as store:
        last = list(store.exchanges.all(store.runs.get("tape")))[-1]
    assert b"use " in last.request.body
    assert [one.place for one in last.redactions] == ["request.body"]
    assert find_written([secret], dict(kept_bytes(store_dir))) == []
