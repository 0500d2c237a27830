"""The double refund: the incident happens, the fix mends it, and the tape holds what the agent never learnt."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from playhead.examples.double_refund import fake_payments, fake_provider
from playhead.proxy.cli import cli
from playhead.store import Store
from playhead.tape.exchange import Exchange, RunId
from playhead.tests.support import prepared
from playhead.tests.support.process import COMMAND, playhead, wait_until
from playhead.tests.support.refunds import STORY, run_fakes
from playhead.timeline import build
from playhead.timeline.reading.exchange_json import exchange_json

QUESTION = {"role": "user", "content": "Order 1007 is broken, I want 49.00 back"}
EXPECTED = (
    "I am sorry. Let me look at your order.",
    "call_623d2818f8105c1d7a5f69c7",
    "lookup_order",
    '{"order_id": "1007"}',
    32,
)
"""Text, id of the call, tool, arguments, tokens: of the answer to `QUESTION`."""
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[str]:
    """Base URL of a provider."""
    async with TestServer(fake_provider.make_app()) as server:
        yield str(server.make_url("/v1"))


@pytest_asyncio.fixture
async def payments() -> AsyncIterator[str]:
    """Base URL of a payment API that answers a charge's first refund much too late."""
    async with TestServer(fake_payments.Payments(delay_s=0.6).make_app()) as server:
        yield str(server.make_url("")).rstrip("/")


class Tape(NamedTuple):
    """The incident as it was recorded and replayed."""

    recorded: subprocess.CompletedProcess[str]
    replayed: subprocess.CompletedProcess[str]
    exchanges: list[Exchange]
    account: dict[str, Any]
    """Receipt of the recording."""
    receipt: dict[str, Any]
    """Receipt of the replay."""
    ledger: list[dict[str, Any]]
    """Refunds of the payment API after the recording."""
    ended: list[int]
    """Exit codes of the services, which were told to end by a signal."""


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Tape:
    """Record the incident, end the services, replay it."""
    folder = tmp_path_factory.mktemp("incident")
    store, receipt = folder / "store", folder / "receipt.json"
    command = ("--", sys.executable, "-m", f"{STORY}.agent")
    with run_fakes("0.8") as fakes:
        (_, provider), (_, payments) = fakes
        environment = {
            "OPENAI_BASE_URL": f"{provider}/v1",
            "OPENAI_API_KEY": "any",
            "PAYMENTS_URL": payments,
            "REFUND_TIMEOUT_S": "0.3",
        }
        named = ("--run", "incident")
        recorded = playhead("record", "--store", store, *named, *command, env=environment)
        with urllib.request.urlopen(f"{payments}/ledger") as response:
            ledger = json.load(response)["refunds"]
        for process, _ in fakes:
            process.send_signal(signal.SIGTERM)
        ended = [process.wait(10) for process, _ in fakes]
    flags = ("--store", store, "--receipt", receipt)
    replayed = playhead("replay", *flags, "incident", *command, env=environment)
    with Store.open(store, readonly=True) as opened:
        run = opened.runs.get(RunId("incident"))
        exchanges, account = list(opened.exchanges.all(run)), build(opened, run).to_json()
    told = json.loads(receipt.read_text())
    return Tape(recorded, replayed, exchanges, account, told, ledger, ended)


class TestTape:
    """The incident under `playhead record` and `playhead replay`."""

    def test_the_tape_holds_what_the_agent_never_learnt(self, tape: Tape) -> None:
        """Timed out for the client, 200 for the server; the second refund is a possible duplicate."""
        assert tape.recorded.returncode == 0, tape.recorded.stderr
        refunds = [found for found in tape.exchanges if found.request.path == "/v1/refunds"]
        first, second = (found.seq for found in refunds)
        shown = exchange_json(refunds[0])
        assert shown["response"]["status"] == 200
        assert shown["response"]["complete"] is True
        assert json.loads(shown["response"]["body"])["id"] == "re_1"
        assert shown["fault"] is None
        assert shown["late_response"] is True
        assert 0 < shown["client_gone_at"] < shown["response"]["head_us"]
        assert shown["gone"]["head"] is False
        effects = tape.account["effects"]
        assert [effect["seq"] for effect in effects] == [first, second]
        assert re.fullmatch(
            r"client left after \d+\.\d s; 200 came at \d+\.\d s", effects[0]["outcome"]
        )
        assert effects[1]["outcome"] == "200"
        note = f"possible duplicate of seq {first}, whose answer the client had not seen"
        assert [effect["note"] for effect in effects] == ["", note]

    def test_the_agent_refunds_twice_and_tells_of_one(self, tape: Tape) -> None:
        """The customer hears of one refund, the ledger holds two; a signal ends the fakes cleanly."""
        from playhead.examples.double_refund import agent  # here: it imports an SDK

        assert tape.recorded.stdout.splitlines() == [
            f"customer  {agent.COMPLAINT}",
            "agent     I am sorry. Let me look at your order.",
            'tool      lookup_order {"order_id": "1007"} -> ch_1007 succeeded',
            "agent     I will refund that now.",
            'tool      refund {"charge": "ch_1007", "amount": 4900} -> the payment API timed out',
            "agent     That took too long. Let me try again.",
            'tool      refund {"charge": "ch_1007", "amount": 4900} -> re_2 succeeded',
            "agent     You get 49.00 USD back (refund re_2). Sorry for the trouble!",
        ]
        told = [(each["id"], each["amount"]) for each in tape.ledger]
        assert told == [("re_1", 4900), ("re_2", 4900)]
        assert tape.ended == [0, 0]

    def test_the_replay_tells_the_same_story(self, tape: Tape) -> None:
        """With the services gone the agent times out again, and the receipt says the same of its effects."""
        assert tape.replayed.returncode == 0, tape.replayed.stderr
        assert tape.replayed.stdout == tape.recorded.stdout
        assert "the payment API timed out" in tape.replayed.stdout
        assert tape.receipt["faithful"] is True
        for name in ("note", "outcome", "method", "url", "summary"):
            told = [effect[name] for effect in tape.receipt["effects"]]
            assert told == [effect[name] for effect in tape.account["effects"]], name


class TestGate:
    """The incident with a gate on refunds that may be duplicates, and somebody who looks at what it holds."""

    def test_the_second_refund_waits_and_the_denied_agent_goes_on(self, tmp_path: Path) -> None:
        """It is held with the note that it repeats the first, which timed out; one refund stands in the ledger."""
        store, file, receipt = tmp_path / "store", tmp_path / "playhead.yaml", tmp_path / "r.json"
        flags = ("-c", file, "--store", store, "--receipt", receipt)
        command = ("--", sys.executable, "-m", f"{STORY}.agent")
        with run_fakes("2") as fakes:
            (_, provider), (_, payments) = fakes
            rule = f"{{match: 'POST {payments}/v1/refunds', gate: duplicates}}"
            file.write_text(f"effects: [{rule}]\n")
            environment = {
                "OPENAI_BASE_URL": f"{provider}/v1",
                "OPENAI_API_KEY": "any",
                "PAYMENTS_URL": payments,
                "REFUND_TIMEOUT_S": "1.5",
            }
            recording = prepared.start(
                [*COMMAND, "record", *map(str, flags), "--run", "gated", *command],
                env=os.environ | environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            listed: list[Any] = []

            def look() -> bool:
                listed[:] = _held(store)
                return listed != []

            wait_until(look, 30)
            (held,) = listed
            assert held["reason"].endswith(
                f"it may repeat the effect of exchange {held['repeats']}"
            )
            assert "amount=4900" in held["body"]
            denied = _gates(store, "deny", held["id"], "--reason", "it has been paid already")
            assert f"{held['id']}: denied by " in denied
            out, err = recording.communicate(timeout=30)
            assert recording.returncode == 0, err
            with urllib.request.urlopen(f"{payments}/ledger") as response:
                assert [each["id"] for each in json.load(response)["refunds"]] == ["re_1"]
        first, second = [line for line in out.splitlines() if line.startswith("tool      refund")]
        assert first.endswith("the payment API timed out")
        assert "it has been paid already" in second
        assert out.splitlines()[-1].endswith("Please write to a colleague of mine.")
        told = json.loads(receipt.read_text())
        (gate,) = told["gates"]
        assert (gate["ruling"], gate["why"]) == ("denied", "it has been paid already")
        assert gate["waited_s"] < 1.5
        assert [effect["answered_by"] for effect in told["effects"]] == ["upstream", "refused"]


def _gates(store: Path, *arguments: str) -> str:
    """Give what `playhead gates` prints."""
    done = CliRunner().invoke(cli, ["gates", *arguments, "--store", str(store)])
    return done.output if done.exit_code == 0 else ""


def _held(store: Path) -> list[Any]:
    rows: list[Any] = json.loads(_gates(store, "--json") or "[]")
    return rows


class TestFix:
    """The fixed agent, with the fakes in this process."""

    @pytest.fixture(autouse=True)
    def _services(self, monkeypatch: pytest.MonkeyPatch, provider: str, payments: str) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", provider)
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        monkeypatch.setenv("PAYMENTS_URL", payments)
        monkeypatch.setattr(f"{STORY}.agent.REFUND_TIMEOUT_S", 0.2)

    @pytest.mark.asyncio
    async def test_the_fixed_agent_refunds_once(
        self, payments: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It finds the refund that was not answered, and tells the model of it."""
        from playhead.examples.double_refund import agent, agent_fixed

        await asyncio.to_thread(agent.main, agent_fixed.CarefulAgent)
        assert "(refund re_1)" in capsys.readouterr().out.splitlines()[-1]
        assert await _ledger(payments) == ["re_1"]

    @pytest.mark.asyncio
    async def test_the_fixed_agent_hands_over_what_it_cannot_find_out(
        self,
        payments: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Where the refunds cannot be listed nothing is paid again, and a human takes over."""
        import httpx

        from playhead.examples.double_refund import agent, agent_fixed

        def refuse(request: httpx.Request) -> httpx.Response:
            return httpx.Response(424, json={"error": {"message": "not on the tape"}})

        class Refused(agent_fixed.CarefulAgent):
            def find_refund(self, charge: str, amount: int) -> str | None:
                transport = httpx.MockTransport(refuse)
                with httpx.Client(transport=transport, base_url="http://payments") as self.payments:
                    return super().find_refund(charge, amount)

        await asyncio.to_thread(agent.main, Refused)
        assert capsys.readouterr().out.splitlines()[-2:] == [
            "unsure    refunds of ch_1007 cannot be listed",
            "agent     I cannot see whether your refund went through. A colleague will look.",
        ]
        assert await _ledger(payments) == ["re_1"]


class TestProvider:
    """What the real SDK makes of the fake provider."""

    def test_the_sync_sdk_reads_a_tool_call_from_the_stream(self, threaded_provider: str) -> None:
        """Text, tool call and usage arrive; the pieces add up to valid JSON."""
        from openai import OpenAI

        with OpenAI(base_url=threaded_provider, api_key="any") as client:
            stream = client.chat.completions.create(**_streamed())
            assert _added_up(list(stream)) == EXPECTED

    @pytest.mark.asyncio
    async def test_the_async_sdk_reads_a_tool_call_from_the_stream(self, provider: str) -> None:
        """The same stream through the asynchronous client."""
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=provider, api_key="any") as client:
            stream = await client.chat.completions.create(**_streamed())
            assert _added_up([chunk async for chunk in stream]) == EXPECTED

    @pytest.mark.asyncio
    async def test_an_answer_in_one_piece_says_the_same(self, provider: str) -> None:
        """Streamed or not, the model says the same under the same ids."""
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=provider, api_key="any") as client:
            whole = await client.chat.completions.create(model="m", messages=[QUESTION])  # type: ignore[list-item]
        [choice] = whole.choices
        assert choice.finish_reason == "tool_calls"
        [call] = choice.message.tool_calls or []
        assert call.type == "function"
        assert (choice.message.content, call.id, call.function.name) == EXPECTED[:3]
        assert call.function.arguments == EXPECTED[3]
        assert whole.usage is not None
        assert whole.usage.total_tokens == EXPECTED[4]

    @pytest.mark.asyncio
    @pytest.mark.parametrize("messages", ["no list", [3], [{"role": "tool", "content": 4}]])
    async def test_a_request_that_cannot_be_read_is_a_bad_request(
        self, provider: str, messages: Any
    ) -> None:
        """Nonsense gets an error in OpenAI's shape."""
        from openai import AsyncOpenAI, BadRequestError

        async with AsyncOpenAI(base_url=provider, api_key="any") as client:
            with pytest.raises(BadRequestError, match="messages"):
                await client.chat.completions.create(model="m", messages=messages)

    @pytest.fixture
    def threaded_provider(self) -> Iterator[str]:
        """Base URL of a provider on a loop of its own, for clients that block this thread."""
        with asyncio.Runner() as runner:
            server = TestServer(fake_provider.make_app())
            runner.run(server.start_server())
            url = str(server.make_url("/v1"))
            thread = threading.Thread(target=runner.get_loop().run_forever)
            thread.start()
            yield url
            runner.get_loop().call_soon_threadsafe(runner.get_loop().stop)
            thread.join()
            runner.run(server.close())


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param([], fake_provider.Reply("Which order is this about?"), id="no order"),
        pytest.param(
            [("lookup_order", '{"error": {"message": "No such charge"}}')],
            fake_provider.Reply(
                "I am sorry, that did not work. Please write to a colleague of mine."
            ),
            id="an error is not retried",
        ),
        pytest.param(
            [("refund", "it timed out")],
            fake_provider.Reply("That took too long. Let me try again.", "refund", '{"n": 0}'),
            id="a timeout is retried, word for word",
        ),
        pytest.param(
            [("refund", "it timed out")] * 3,
            fake_provider.Reply("The payment service does not answer. Please try again tomorrow."),
            id="three timeouts are enough",
        ),
    ],
)
def test_the_model_keeps_to_its_script(
    said: list[tuple[str, str]], expected: fake_provider.Reply
) -> None:
    """The next turn depends on the messages and on nothing else."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "My mug is broken"}]
    for n, (tool, result) in enumerate(said):
        call = {"id": str(n), "function": {"name": tool, "arguments": '{"n": 0}'}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(n), "content": result})
    assert fake_provider.answer(messages) == fake_provider.answer(messages) == expected


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("kind", "fields", "status"),
    [
        ("data", {"charge": "ch_1007", "amount": "4900"}, 200),
        ("json", {"charge": "ch_1007", "amount": 4900}, 200),
        ("json", {"charge": "ch_1007"}, 200),  # all that is left
        ("data", {"charge": "ch_1", "amount": "4900"}, 404),
        ("data", {"charge": "ch_1007", "amount": "14701"}, 400),
        ("data", {"charge": "ch_1007", "amount": "-1"}, 400),
        ("json", {"charge": "ch_1007", "amount": None}, 400),
        ("json", [1], 404),
        ("content", b"\xff", 404),
    ],
)
async def test_payments_take_forms_and_json(kind: str, fields: Any, status: int) -> None:
    """A refund is asked for as a form or as JSON; what makes no sense is refused."""
    import httpx

    body: dict[str, Any] = {kind: fields}
    async with (
        TestServer(fake_payments.Payments(delay_s=0).make_app()) as server,
        httpx.AsyncClient(base_url=str(server.make_url(""))) as client,
    ):
        response = await client.post("/v1/refunds", **body)
        assert response.status_code == status
        assert len(await _ledger(str(client.base_url))) == (status == 200)


@pytest.mark.asyncio
async def test_payments_honour_an_idempotency_key() -> None:
    """The same key gets the same refund, another key another one."""
    import httpx

    async with (
        TestServer(fake_payments.Payments(delay_s=0).make_app()) as server,
        httpx.AsyncClient(base_url=str(server.make_url(""))) as client,
    ):
        form = {"charge": "ch_1007", "amount": "10"}
        ids = []
        for key in ("a", "a", "b"):
            headers = {"Idempotency-Key": key}
            answer = await client.post("/v1/refunds", data=form, headers=headers)
            ids.append(answer.json()["id"])
        assert ids == ["re_1", "re_1", "re_2"]


def test_the_agent_and_its_fix_differ_in_the_refund_alone() -> None:
    """The fix asks the model in the same words, or nothing could be replayed."""
    from playhead.examples.double_refund import agent, agent_fixed

    assert _own(agent_fixed) == {"CarefulAgent", "Unsure"}
    assert agent_fixed.CarefulAgent.ask is agent.SupportAgent.ask
    assert agent_fixed.CarefulAgent.lookup_order is agent.SupportAgent.lookup_order


def _streamed() -> dict[str, Any]:
    options = {"include_usage": True}
    return {"model": "m", "messages": [QUESTION], "stream": True, "stream_options": options}


def _added_up(chunks: list[Any]) -> tuple[str, str, str, str, int]:
    assert len({chunk.id for chunk in chunks}) == 1
    assert [chunk.usage is None for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    choices = [chunk.choices[0] for chunk in chunks[:-1]]
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["tool_calls"]
    pieces = [piece for choice in choices for piece in choice.delta.tool_calls or ()]
    assert len(pieces) > 2
    text = "".join(choice.delta.content or "" for choice in choices)
    arguments = "".join(piece.function.arguments or "" for piece in pieces)
    tokens = chunks[-1].usage.total_tokens
    return text, pieces[0].id, pieces[0].function.name, arguments, tokens


async def _ledger(payments: str) -> list[str]:
    import httpx

    async with httpx.AsyncClient(base_url=payments) as client:
        return [each["id"] for each in (await client.get("/ledger")).json()["refunds"]]


def _own(module: ModuleType) -> set[str]:
    return {name for name, value in vars(module).items() if _made_in(module, value)}


def _made_in(module: ModuleType, value: object) -> bool:
    return getattr(value, "__module__", None) == module.__name__
