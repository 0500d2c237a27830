"""Contracts over real connections: requests and answers that violate their contracts, reported or refused."""

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from click.testing import CliRunner

from playhead.config import (
    Config,
    ContractRule,
    EffectRule,
    Gate,
    LiveRule,
    OnViolation,
    parse_match,
)
from playhead.proxy.cli import cli
from playhead.tape.exchange import Exchange, VerdictKind
from playhead.tape.records.events import EventKind
from playhead.tests.support.certificates import Certificates
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.frames import FramesOrigin, Stream
from playhead.tests.support.origins import Origin
from playhead.timeline import Receipt, build, exit_code, render_receipt

if TYPE_CHECKING:
    import httpx

REFUNDS = "/v1/refunds"
CHAT = "/v1/chat/completions"
AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
STATUS = {"type": "object", "properties": {"status": {"enum": ["done", "open"]}}}
TOOL = {
    "type": "function",
    "function": {
        "name": "refund",
        "parameters": {**AMOUNT, "additionalProperties": False},
    },
}


RELEASED = threading.Event()
"""Lets go on what waits in the middle of its answer."""


async def _refund(request: web.Request) -> web.StreamResponse:
    """Answers what the request says is to be answered."""
    asked = await request.json()
    body = json.dumps(asked.get("answer", {"status": "done"})).encode()
    status = asked.get("code", 200)
    if not asked.get("pieces"):
        return web.Response(status=status, body=body, content_type="application/json")
    answer = web.StreamResponse(status=status, headers={"content-type": "application/json"})
    await answer.prepare(request)
    await answer.write(body[:5])
    if asked.get("waits"):
        await asyncio.to_thread(RELEASED.wait, 10)
    await answer.write(body[5:] + b" " * asked.get("padding", 0))
    if asked.get("cut"):
        assert request.transport is not None
        request.transport.abort()
    return answer


async def _chat(request: web.Request) -> web.StreamResponse:
    """Calls the tool with the arguments that the user's message holds."""
    asked = await request.json()
    call = {"name": "refund", "arguments": asked["messages"][-1]["content"]}
    base = {"id": "x", "model": asked["model"], "created": 1}
    if not asked.get("stream"):
        calls = [{"id": "c1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return web.json_response({**base, "object": "chat.completion", "choices": [choice]})
    answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await answer.prepare(request)
    head, tail = call["arguments"][:3], call["arguments"][3:]
    first = {"index": 0, "id": "c1", "function": {"name": "refund", "arguments": head}}
    deltas: list[dict[str, Any]] = [{"tool_calls": [first]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": tail}}]}, {}]
    for delta in deltas:
        reason = None if delta else "tool_calls"
        chunk = {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        await answer.write(f"data: {json.dumps(chunk)}\n\n".encode())
    await answer.write(b"data: [DONE]\n\n")
    return answer


class Agent:
    """Asks through the proxy."""

    def __init__(self, running: Running, origin: Origin, run: str = "tape") -> None:
        import httpx

        self._origin = origin
        context = ssl.create_default_context(cafile=str(running.ca))
        self._client = httpx.Client(
            proxy=running.url_for(run), verify=context, timeout=20, trust_env=False
        )

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._client.close()

    async def post(self, path: str, body: Any) -> "httpx.Response":
        return await asyncio.to_thread(self._client.post, self._origin.url + path, json=body)

    async def refund(self, **body: Any) -> "httpx.Response":
        import httpx

        if body.get("waits"):
            self._client.timeout = httpx.Timeout(0.3)
        return await self.post(REFUNDS, body)

    async def chat(self, arguments: str, **more: Any) -> "httpx.Response":
        messages = [{"role": "user", "content": arguments}]
        return await self.post(CHAT, {"model": "m", "messages": messages, "tools": [TOOL], **more})


@pytest.fixture(scope="module")
def origin(certificates: Certificates) -> Any:
    """One host for all tests here."""
    with Origin({REFUNDS: _refund, CHAT: _chat}, certificates) as started:
        yield started


Engine = Any


@pytest.fixture
def engine(store_dir: Path, certificates: Certificates) -> Engine:
    """Run an engine with changes to its configuration."""

    @asynccontextmanager
    async def run(**changes: Any) -> AsyncIterator[Running]:
        config = Config(store=store_dir, upstream_ca=certificates.root)
        async with running_engine(replace(config, **changes)) as running:
            yield running

    return run


def rule(origin: Origin, violation: OnViolation, **schemas: Any) -> ContractRule:
    """A contract of the endpoint for refunds."""
    texts = {side: json.dumps(schema) for side, schema in schemas.items()}
    return ContractRule(parse_match(f"POST {origin.url}{REFUNDS}"), **texts, on_violation=violation)


def told(running: Running, run: str) -> list[dict[str, Any]]:
    """The contract events of a run."""
    log = running.store.events.read(running.store.runs.get(run))
    return [dict(event.data) for event in log if event.kind is EventKind.CONTRACT]


def kept(running: Running, run: str = "tape") -> list[Exchange]:
    return list(running.store.exchanges.all(running.store.runs.get(run)))


async def receipt(running: Running, run: str = "tape") -> Receipt:
    await running.end(run)
    return build(running.store, running.store.runs.get(run))


async def test_a_request_that_breaks_its_contract_is_not_sent(
    engine: Engine, origin: Origin
) -> None:
    """It is refused with what is wrong, is an exchange of the run, and a replay gives the refusal again."""
    before = len(origin.requests)
    async with engine(contracts=(rule(origin, OnViolation.REFUSE, request=AMOUNT),)) as running:
        async with Agent(running, origin) as agent:
            bad, good = await agent.refund(amount="5"), await agent.refund(amount=5)
        assert (bad.status_code, good.status_code) == (424, 200)
        assert bad.headers["x-should-retry"] == "false"
        assert bad.json()["error"]["code"] == "contract_broken"
        assert '$.amount: expected integer, found "5"' in bad.json()["error"]["message"]
        assert len(origin.requests) == before + 1
        made = await receipt(running)
        first, second = kept(running)
        assert (first.verdict, second.verdict) == (VerdictKind.REFUSED, VerdictKind.RECORDED)
        (event,) = told(running, "tape")
        assert (event["seq"], event["of"], event["refused"], event["count"]) == (
            1,
            "request",
            True,
            1,
        )
        assert "1 in requests" not in render_receipt(made)
        running.play()
        async with Agent(running, origin) as agent:
            again = await agent.refund(amount="5")
            assert (again.content, again.headers["x-playhead"]) == (
                bad.content,
                bad.headers["x-playhead"],
            )
            assert (await agent.refund(amount=5)).content == good.content
        replayed = await receipt(running, "tape@1")
        assert [one["refused"] for one in told(running, "tape@1")] == [False]
    assert replayed.faithful
    assert exit_code(replayed) == 0
    assert len(origin.requests) == before + 1


@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "in pieces"])
async def test_an_answer_that_breaks_its_contract_is_kept_from_the_client(
    engine: Engine, origin: Origin, pieces: bool
) -> None:
    """The tape holds what the upstream said; a replay refuses with the same bytes, whatever the rules are then."""
    strict = rule(origin, OnViolation.REFUSE, response=STATUS)
    async with engine(contracts=(strict,)) as running:
        async with Agent(running, origin) as agent:
            bad = await agent.refund(answer={"status": "lost"}, pieces=pieces)
            good = await agent.refund(answer={"status": "done"}, pieces=pieces)
            failed = await agent.refund(answer={"status": "lost"}, pieces=pieces, code=402)
        assert (bad.status_code, good.status_code, failed.status_code) == (424, 200, 402)
        message = bad.json()["error"]["message"]
        assert '$.status: expected one of "done", "open", found "lost"' in message
        assert "the upstream answered 200, so it may have been done" in message
        await receipt(running)
        first, second, _ = kept(running)
        assert first.response is not None
        assert first.response.body.strip() == b'{"status": "lost"}'
        assert first.verdict is VerdictKind.RECORDED
        assert (bool(first.withheld), second.withheld) == (True, "")
        (event,) = told(running, "tape")
        assert (event["of"], event["refused"], event["recorded"]) == ("response", True, False)
        running.play()
        for name, rules in (("tape@1", (strict,)), ("tape@2", ())):
            running.change(contracts=rules)
            async with Agent(running, origin) as agent:
                again = await agent.refund(answer={"status": "lost"}, pieces=pieces)
                assert (again.status_code, again.content) == (424, bad.content)
                await agent.refund(answer={"status": "done"}, pieces=pieces)
                await agent.refund(answer={"status": "lost"}, pieces=pieces, code=402)
            replayed = await receipt(running, name)
            assert replayed.faithful, render_receipt(replayed)


async def test_a_repeat_of_an_effect_whose_answer_was_withheld_is_held(
    engine: Engine, origin: Origin
) -> None:
    """Its client has seen no answer: the second is a possible duplicate of one that went unseen."""
    strict = rule(origin, OnViolation.REFUSE, response=STATUS)
    async with engine(contracts=(strict,)) as running:
        async with Agent(running, origin) as agent:
            for _ in range(2):
                await agent.refund(answer={"status": "lost"})
        made = await receipt(running)
        running.play()
        async with Agent(running, origin) as agent:
            for _ in range(2):
                await agent.refund(answer={"status": "lost"})
        replayed = await receipt(running, "tape@1")
    for one in (made, replayed):
        assert "whose answer the client had not seen" in one.effects[1].note, one.mode
    assert replayed.faithful


async def test_a_client_that_gives_up_on_a_held_answer_has_been_sent_nothing(
    engine: Engine, origin: Origin
) -> None:
    """The answer is read on, since it is an effect's, and is not withheld from anybody."""
    import httpx

    strict = rule(origin, OnViolation.REFUSE, response=STATUS)
    RELEASED.clear()
    async with engine(contracts=(strict,)) as running:
        async with Agent(running, origin) as agent:
            with pytest.raises(httpx.ReadTimeout):
                await agent.refund(answer={"status": "lost"}, pieces=True, waits=True)
        RELEASED.set()
        await receipt(running)
        (left,) = kept(running)
        (event,) = told(running, "tape")
    assert left.gone is not None
    assert (left.gone.head, left.gone.chunks) == (False, 0)
    assert left.response is not None
    assert left.response.complete
    assert (left.withheld, event["refused"], event["count"]) == ("", False, 1)


async def test_an_answer_on_the_tape_is_held_to_the_contracts_of_now(
    engine: Engine, origin: Origin
) -> None:
    """Noted, the replay is faithful; refused, it is faithful but for that."""
    async with engine() as running:
        async with Agent(running, origin) as agent:
            await agent.refund(answer={"status": "lost"})
        await receipt(running)
        running.play()
        running.change(contracts=(rule(origin, OnViolation.NOTE, response=STATUS, request=AMOUNT),))
        async with Agent(running, origin) as agent:
            assert (await agent.refund(answer={"status": "lost"})).status_code == 200
        noted = await receipt(running, "tape@1")
        running.change(
            contracts=(rule(origin, OnViolation.REFUSE, response=STATUS, request=AMOUNT),)
        )
        async with Agent(running, origin) as agent:
            assert (await agent.refund(answer={"status": "lost"})).status_code == 424
        refused = await receipt(running, "tape@2")
    assert noted.faithful
    assert [(one.of, one.refused) for one in noted.contracts] == [
        ("request", False),
        ("response", False),
    ]
    assert not refused.faithful
    assert exit_code(refused) == 0
    assert refused.faithful_but_for == [f"refused by contract: POST {origin.url}{REFUNDS}"]
    assert "contract violations" in render_receipt(refused)


async def test_an_effect_that_breaks_its_contract_is_not_stubbed(
    engine: Engine, origin: Origin
) -> None:
    """Nor let out by a live rule; a gate is not asked."""
    strict = rule(origin, OnViolation.REFUSE, request=AMOUNT)
    gate = EffectRule(strict.match, gate=Gate())
    async with engine() as running:
        async with Agent(running, origin) as agent:
            await agent.refund(amount=5)
        await receipt(running)
        running.play()
        before = len(origin.requests)
        running.change(contracts=(strict,))
        async with Agent(running, origin) as agent:
            assert (await agent.refund(amount="6")).status_code == 424
            assert (await agent.refund(amount=6)).headers["x-playhead"].startswith("stubbed")
        await running.end("tape@1")
        running.change(live=(LiveRule(strict.match, "try"),), effects=(gate,))
        async with Agent(running, origin) as agent:
            assert (await agent.refund(amount="6")).json()["error"]["code"] == "contract_broken"
        await running.end("tape@2")
    assert len(origin.requests) == before


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_tool_call_that_the_schema_does_not_allow_is_noted(
    engine: Engine, origin: Origin, stream: bool
) -> None:
    """By the schema that the request declared, once the answer is whole; in a replay the same."""
    async with engine(model_contracts=OnViolation.NOTE) as running:
        async with Agent(running, origin) as agent:
            said = await agent.chat('{"amount": "5"}', stream=stream)
            assert said.status_code == 200
            await agent.chat('{"amount": 5}', stream=stream)
        made = await receipt(running)
        running.play()
        async with Agent(running, origin) as agent:
            assert (await agent.chat('{"amount": "5"}', stream=stream)).content == said.content
            await agent.chat('{"amount": 5}', stream=stream)
        replayed = await receipt(running, "tape@1")
        for run in ("tape", "tape@1"):
            (event,) = told(running, run)
            assert event["violations"] == (("tool_call", "refund: $.amount", "integer", '"5"'),)
        assert running.registry.counters.contracts == {"model": 2}
    assert replayed.faithful
    assert made.contracts[0].violations[0]["place"] == "refund: $.amount"
    assert 'refund: $.amount: expected integer, found "5"' in render_receipt(made)


async def test_a_models_answer_is_refused_where_it_comes_whole(
    engine: Engine, origin: Origin
) -> None:
    """A stream has passed by the time it can be judged: that stays a note."""
    async with engine(model_contracts=OnViolation.REFUSE) as running:
        async with Agent(running, origin) as agent:
            whole = await agent.chat('{"amount": "5"}')
            stream = await agent.chat('{"amount": "5"}', stream=True)
        await receipt(running)
        events = told(running, "tape")
    assert (whole.status_code, stream.status_code) == (424, 200)
    assert "violates its contract: refund: $.amount" in whole.json()["error"]["message"]
    assert [one["refused"] for one in events] == [True, False]


async def test_over_http2_the_stream_gets_the_refusal(
    engine: Engine, certificates: Certificates
) -> None:
    """Others on the connection get their answers; trailers of what is withheld go with it."""
    import httpx

    def script(stream: Stream) -> bool:
        bad = stream.path.endswith("bad")
        stream.head(("content-type", "application/json"))
        stream.data(json.dumps({"status": "lost" if bad else "done"}).encode())
        stream.trailers(("x-told", stream.path))
        return True

    with FramesOrigin(script, certificates) as frames:
        match = parse_match(f"{frames.url}/*")
        strict = ContractRule(match, "", json.dumps(STATUS), on_violation=OnViolation.REFUSE)
        async with engine(contracts=(strict,)) as running:
            context = ssl.create_default_context(cafile=str(running.ca))

            def ask() -> list[tuple[int, bytes]]:
                with httpx.Client(
                    proxy=running.url_for("tape"), verify=context, http2=True, trust_env=False
                ) as client:
                    paths = ("/good", "/bad", "/good?2")
                    got = [client.post(frames.url + path, json={}) for path in paths]
                    return [(one.status_code, one.content) for one in got]

            first = await asyncio.to_thread(ask)
            assert [status for status, _ in first] == [200, 424, 200]
            await running.end("tape")
            running.play()
            assert await asyncio.to_thread(ask) == first


async def test_what_was_found_can_be_looked_at(
    engine: Engine, origin: Origin, store_dir: Path, tmp_path: Path
) -> None:
    """By `show`, `contracts`, and again under the contracts of another file."""
    async with engine(contracts=(rule(origin, OnViolation.REFUSE, response=STATUS),)) as running:
        async with Agent(running, origin) as agent:
            await agent.refund(answer={"status": "lost"})
            await agent.refund(answer={"status": "done"})
            await agent.chat('{"amount": "5"}')
        await receipt(running)

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(
            cli, [*arguments, "--store", str(store_dir)], standalone_mode=False
        )
        assert done.exception is None, done.exception
        return done.return_value, done.stdout

    found = '$.status: expected one of "done", "open", found "lost"'
    code, shown = run("show", "tape", "1", "--raw")
    assert (code, found in shown) == (0, True)
    assert "withheld from the client: the upstream answered 200" in shown
    document = json.loads(run("show", "tape", "1", "--json")[1])
    assert document["contracts"][0]["violations"][0]["place"] == "$.status"
    assert document["withheld"].startswith("the upstream answered 200")
    assert "outcome: 200, withheld: the client was refused it by a contract" in shown
    assert "withheld" not in run("show", "tape", "2", "--raw")[1]
    code, listed = run("contracts", "tape")
    assert (code, listed.splitlines()[0]) == (1, "tape: 1 violation in 1 messages")
    assert found in listed
    file = tmp_path / "other.yaml"
    pattern = f"POST {origin.url}{REFUNDS}"
    file.write_text(
        f"contracts: [{{match: '{pattern}', request: {{required: [amount]}}}}]\nmodel_contracts: note\n"
    )
    code, again = run("contracts", "tape", "--with", str(file), "--json")
    assert code == 1
    assert [(one["seq"], one["of"]) for one in json.loads(again)] == [
        (1, "request"),
        (2, "request"),
        (3, "model"),
    ]
    file.write_text("contracts: []\n")
    assert run("contracts", "tape", "--with", str(file)) == (
        0,
        f"tape: nothing was checked: {file} has no contracts\n",
    )
    file.write_text(
        f"contracts: [{{match: 'GET {origin.url}/nosuch', request: {{type: object}}}}]\n"
    )
    assert run("contracts", "tape", "--with", str(file)) == (
        0,
        "tape: every checked message follows its contract\n",
    )


async def test_an_answer_too_large_to_be_held_passes(engine: Engine, origin: Origin) -> None:
    """Byte for byte, and the run says that it was not checked."""
    strict = rule(origin, OnViolation.REFUSE, response=STATUS)
    padding = 9 * 1024 * 1024
    async with engine(contracts=(strict,)) as running:
        async with Agent(running, origin) as agent:
            got = await agent.refund(answer={"status": "lost"}, pieces=True, padding=padding)
        await receipt(running)
        (event,) = told(running, "tape")
    assert got.content == b'{"status": "lost"}' + b" " * padding
    assert event["unchecked"] == ("the answer is too large to be held",)
    assert (event["count"], event["refused"]) == (0, False)


async def test_a_held_answer_that_is_cut_ends_as_it_did(engine: Engine, origin: Origin) -> None:
    """Its client gets what had come of it, and then the same end; it is not judged."""
    import httpx

    strict = rule(origin, OnViolation.REFUSE, response=STATUS)
    async with engine(contracts=(strict,)) as running:
        async with Agent(running, origin) as agent:
            with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
                await agent.refund(answer={"status": "lost"}, pieces=True, cut=True)
        await receipt(running)
        (cut,) = kept(running)
        assert told(running, "tape") == []
    assert cut.response is not None
    assert not cut.response.complete


async def test_secrets_are_not_in_what_is_told(engine: Engine, origin: Origin) -> None:
    """Neither in the event nor in the refusal."""
    secret = "sk-proj-" + "a1B2c3D4" * 5
    strict = rule(
        origin,
        OnViolation.REFUSE,
        response=STATUS,
        request={"properties": {"token": {"type": "integer"}}},
    )
    async with engine(contracts=(strict,)) as running:
        async with Agent(running, origin) as agent:
            asked = await agent.refund(token=secret)
            answered = await agent.refund(answer={"status": secret})
        await receipt(running)
        events = told(running, "tape")
    assert (asked.status_code, answered.status_code) == (424, 424)
    assert len(events) == 2
    assert secret not in asked.text + answered.text + repr(events)
