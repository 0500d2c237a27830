"""What `show` and `runs` know of a run as a whole, runs of WebSockets, runs in an archive, and one that goes on."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from playhead.proxy.cli import cli
from playhead.store import RunInfo, Store
from playhead.tape.exchange import (
    Exchange,
    Message,
    MessageKind,
    RequestClass,
    WebSocketSummary,
)
from playhead.tape.folders.manifest import GitState, Manifest
from playhead.tape.records.events import Event, EventKind
from playhead.tests.support.agent_tapes import (
    Tape,
    anthropic,
    anthropic_stream,
    assistant,
    result,
    text,
    use,
    user,
)
from playhead.tests.support.dialects import make_request, make_response
from playhead.tests.support.exchanges import make_exchange, make_intent, make_record
from playhead.tests.support.looking_back import ask, output, write_store
from playhead.tests.support.replays import write_recording

ENDED_NS = 1_700_000_100_000_000_000


def shop() -> Tape:
    """An agent with an SDK, a tool that runs curl, an MCP server, and what it all says of its versions."""
    tape = Tape("shop")
    call = use("toolu_1", "Bash", command="curl https://shop.test/orders/7")
    sdk = {"x-stainless-lang": "js", "x-stainless-package-version": "0.60.0"}
    first = anthropic([user("Refund 7.")])
    named = tuple((name.encode(), value.encode()) for name, value in sdk.items())
    tape.model(
        replace(first, headers=(*first.headers, *named)), anthropic_stream(call, stop="tool_use")
    )
    curl = make_request("https://shop.test/orders/7", b"", {"user-agent": "curl/8.5.0"}, "GET")
    tape.add(curl, make_response({"total": 40}), RequestClass.READ, process=2)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"clientInfo": {}}}
    server = {"serverInfo": {"name": "shop", "version": "1.2.0"}, "capabilities": {}}
    tape.add(
        make_request("https://mcp.test/mcp", hello),
        make_response({"jsonrpc": "2.0", "id": 1, "result": server}),
        RequestClass.READ,
    )
    done = [user("Refund 7."), assistant(call), user(result("toolu_1", '{"total": 40}'))]
    tape.model(anthropic(done), anthropic_stream(text("Done.")))
    return tape


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of which all is known, and others of which less is."""
    folder = tmp_path_factory.mktemp("whole") / "store"

    async def write(opened: Store) -> None:
        run = await opened.runs.create("shop", mode="record", at_ns=1)
        for exchange in shop().exchanges:
            opened.events.append(run.number, make_intent(exchange))
            await opened.exchanges.save(run.number, partial(make_record, exchange))
        opened.events.append(run.number, Event(EventKind.NOTED, 2, {"child_exit": 3}))
        run = await opened.runs.seal(run, reason="ended", at_ns=9)
        git = GitState("1a2b3c4d5e6f7a8b", "main", ("a.py", "b.py"), 2)
        opened.folders.save(run.number, Manifest(b"/home/ana/shop", git=git))
        await write_recording(opened, "plain", shop().exchanges[1:2])
        await write_codex(opened)

    return write_store(folder, write)


def test_the_end_of_a_page_has_what_is_known_of_the_run(store: Path) -> None:
    """Money, versions, the commit and the outcome, each where it is known."""
    pytest.importorskip("genai_prices")
    lines = output(store, "show", "shop", "--cost").splitlines()
    at = lines.index("")
    assert [line.partition(":")[0] for line in lines[at + 1 :]] == [
        "lane 1",
        "  client",
        "2 model calls, 1 tool call, 2 other requests",
        *("cost", "SDKs", "tools", "MCP servers", "git", "outcome"),
    ]
    assert lines[-6].startswith("cost: $0.0")
    assert lines[-5:] == [
        "SDKs: js/0.60.0",
        "tools: curl/8.5.0 (Bash)",
        "MCP servers: shop 1.2.0",
        "git: 1a2b3c4d5e6f on main, 2 files not committed",
        "outcome: failed, exit code 3",
    ]
    plain = output(store, "show", "plain").splitlines()
    assert plain[-1] == "0 model calls, 0 tool calls, 1 other request"


def test_a_run_as_json_has_what_is_known_of_it(store: Path) -> None:
    """And what each model call cost, as exact text."""
    pytest.importorskip("genai_prices")
    page = json.loads(output(store, "show", "shop", "--json", "--cost"))
    assert page["outcome"] == {"verdict": "failed", "by": "exit code", "text": "3"}
    assert page["git"] == {"head": "1a2b3c4d5e6f7a8b", "branch": "main", "dirty": 2}
    assert [(one["kind"], one["tool"], one["first"]) for one in page["programs"]] == [
        ("client", None, 1),
        ("sdk", None, 1),
        ("tool", "Bash", 2),
        ("mcp server", None, 3),
    ]
    costs = [float(step["usd"]) for step in page["steps"] if step["usd"]]
    assert len(costs) == 2
    assert float(page["lanes"][0]["usd"]) == pytest.approx(sum(costs))
    whole = json.loads(output(store, "show", "shop", "--json"))
    assert [step["usd"] for step in whole["steps"] if step["usd"]] == []
    plain = json.loads(output(store, "show", "plain", "--json"))
    assert (plain["git"], plain["programs"], plain["outcome"]["verdict"]) == (None, [], "unknown")


def test_runs_are_listed_with_their_outcomes(store: Path) -> None:
    """A label goes before an exit code; of what nobody says anything nothing is said."""
    rows = {line.split()[0]: line.split()[3] for line in output(store, "runs").splitlines()}
    assert rows == {"RUN": "OUTCOME", "shop": "failed", "plain": "-", "codex": "-"}
    listed = json.loads(output(store, "runs", "--json"))
    assert [one["outcome"]["by"] for one in listed] == ["exit code", None, None]


# WebSockets


async def write_codex(store: Store) -> RunInfo:
    """Write a WebSocket with two model calls, between them a request of the tool that the first one called."""
    run = await store.runs.create("codex", mode="record", at_ns=1)
    url = "https://api.openai.com/v1/responses"
    asked = make_request(url, b"", {"upgrade": "websocket"}, "GET")
    opened = make_exchange(
        1,
        kind=RequestClass.INFERENCE,
        request=asked,
        response=make_response(b"", status=101),
        websocket=WebSocketSummary(8, 1, None),
        started_ns=1_700_000_000_000_000_000,
        end_us=9_000_000,
    )
    read = make_exchange(
        2,
        "GET https://shop.test/orders/ord_7Kq2",
        started_ns=1_700_000_002_000_000_000,
        response=make_response({"total": "49.25"}),
    )
    for exchange in (opened, read):
        store.events.append(run.number, make_intent(exchange))
    for number, message in enumerate(_messages()):
        store.messages.append(run.number, 1, number, message)
    for exchange in (opened, read):
        await store.exchanges.save(run.number, partial(make_record, exchange))
    return await store.runs.seal(run, reason="ended", at_ns=9)


def _messages() -> Iterator[Message]:
    question = {"type": "message", "role": "user", "content": "What is the total of ord_7Kq2?"}
    call = {"type": "function_call", "name": "look", "call_id": "call_1", "id": "fc_1"}
    call["arguments"] = '{"order": "ord_7Kq2", "token": "tok_55Xy7"}'
    given = {"type": "function_call_output", "call_id": "call_1", "output": "49.25 tok_55Xy7"}
    said = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed"}
    said["content"] = [{"type": "output_text", "text": "It is 49.25.", "annotations": []}]  # type: ignore[assignment]
    turns = (
        (1_000_000, [question], "resp_1", call),
        (3_000_000, [question, call, given], "resp_2", said),
    )
    for at_us, asked, name, item in turns:
        body = {"type": "response.create", "model": "gpt-5.1", "input": asked, "stream": True}
        yield _message(at_us, body, from_client=True)
        begun = {"id": name, "object": "response", "model": "gpt-5.1", "output": []}
        whole = begun | {"output": [item], "status": "completed"}
        for number, event in enumerate(
            (
                {"type": "response.created", "response": begun},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": whole},
            )
        ):
            yield _message(at_us + (number + 1) * 100_000, event)


def _message(at_us: int, body: object, *, from_client: bool = False) -> Message:
    after = 1 if at_us < 2_000_000 else 2
    return Message(at_us, from_client, MessageKind.TEXT, json.dumps(body).encode(), (), after)


def test_a_model_call_of_a_websocket_is_a_step_by_itself(store: Path) -> None:
    """Its state, its page and what is lost in it are asked for by SEQ.PART."""
    assert "context of model call 1.2\n" in output(store, "state", "codex", "1.2")
    shown = output(store, "show", "codex", "1.2")
    assert "model call 1.2\n" in shown
    assert "model call 1.1\n" not in shown
    assert "nothing was dropped" in output(store, "context", "codex", "1.2", "--lost")


def test_a_value_in_a_model_call_of_a_websocket_is_traced(store: Path) -> None:
    """To a request of a tool that came between, and to an earlier call of the same WebSocket."""
    found = json.loads(output(store, "blame", "codex", "1.2", "$.input[2].output", "--json"))
    assert (found["seq"], found["part"]) == (1, 2)
    found = json.loads(
        output(
            store, "blame", "codex", "1.2", "$.input[2].output", "--value", "tok_55Xy7", "--json"
        )
    )
    origin = found["origin"]
    assert (origin["seq"], origin["part"], origin["side"]) == (1, 1, "answer")
    assert origin["place"] == "tool call look $.token"
    assert found["evidence"] == "recorded"
    answer = json.loads(output(store, "blame", "codex", "2", "url", "--json"))
    assert (answer["origin"]["seq"], answer["origin"]["part"]) == (1, 1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", "codex", "1.3"), "has no 1.3: exchange 1 has 1.1 to 1.2, and the nearest is 1.2"),
        (
            ("state", "codex", "1.3"),
            "has no 1.3: exchange 1 has 1.1 to 1.2, and the nearest is 1.2",
        ),
        (("blame", "codex", "1.9", "$.model"), "has no 1.9: exchange 1 has 1.1 to 1.2"),
        (("context", "codex", "1.3", "--lost"), "has no 1.3: exchange 1 has 1.1 to 1.2"),
        (("state", "codex", "2.1"), "has no 2.1: exchange 2 is no WebSocket with model calls"),
        (
            ("show", "codex", "2.1", "--raw"),
            "has no 2.1: exchange 2 is no WebSocket with model calls",
        ),
        (("state", "codex", "7.1"), "holds no exchange 7: it has 1 to 2, and the nearest is 2"),
        (("blame", "codex", "1", "$.model"), "name one of its model calls: 1.1 to 1.2"),
        (("state", "codex", "--at", "1999-01-01"), "had not begun at '1999-01-01': its first"),
        (("state", "codex", "--at", "+1d"), "had ended before '+1d': it went from 2023-11-1"),
        (("state", "codex", "--at", ""), "--at: '' is no time: expected +12s"),
    ],
)
def test_a_step_outside_the_run_is_told_with_what_there_is(
    store: Path, words: tuple[str, ...], says: str
) -> None:
    """Its range and the nearest, whatever the verb."""
    error = ask(store, *words).exception
    assert error is not None
    assert says in f"{getattr(error, 'message', error)} {getattr(error, 'hint', '')}"


# Archives


def test_questions_about_all_runs_fetch_those_in_an_archive(tmp_path: Path) -> None:
    """Each verb has the same answer as before they were archived."""
    pytest.importorskip("pyarrow")
    folder, config = tmp_path / "store", tmp_path / "playhead.yaml"
    config.write_text(
        f"store: {folder}\nretention: {{hot: 0s, archive: {tmp_path}/attic, keep: forever}}\n"
    )

    async def write(opened: Store) -> None:
        for name in ("one", "two"):
            await write_recording(opened, name, shop().exchanges, ended_ns=ENDED_NS)

    write_store(folder, write)
    asked = (
        *(("cost", "--since", "2020-01-01"), ("destinations",), ("runs", "--grep", "refund 7")),
        *(("similar", "one"), ("policy", "--with", str(config), "--since", "2020-01-01")),
    )
    before = [output(folder, *words) for words in asked]
    for number, (words, expected) in enumerate(zip(asked, before, strict=True)):
        # What was fetched is dropped by `gc`, once it is older than `hot`.
        away = ["gc" if number else "archive", "-c", str(config)]
        moved = CliRunner().invoke(cli, away, standalone_mode=False)
        assert moved.exception is None, moved.exception
        with Store.open(folder, readonly=True) as opened:
            assert all(run.is_only_in_archive for run in opened.runs.all()), words
        assert output(folder, *words) == expected, words


# A run that goes on


def test_follow_shows_steps_as_they_are_recorded(tmp_path: Path) -> None:
    """A step is there as soon as it is known, and the command ends with the run."""
    folder, exchanges = tmp_path / "store", shop().exchanges

    async def save(store: Store, run: RunInfo, exchange: Exchange) -> None:
        store.events.append(run.number, make_intent(exchange))
        await store.exchanges.save(run.number, partial(make_record, exchange))

    async def go_on() -> list[str]:
        with Store.open(folder) as store:
            run = await store.runs.create("live", mode="record", at_ns=1)
            await save(store, run, exchanges[0])
            command = [sys.executable, "-m", "playhead.proxy.cli", "show", "live", "--follow"]
            shown = await asyncio.create_subprocess_exec(
                *command, "--store", str(folder), stdout=subprocess.PIPE
            )
            assert shown.stdout is not None
            lines = [await shown.stdout.readline() for _ in range(2)]
            for exchange in exchanges[1:]:
                await save(store, run, exchange)
            while b"Done." not in lines[-1]:
                lines.append(await asyncio.wait_for(shown.stdout.readline(), 30))
            await store.runs.seal(run, reason="ended", at_ns=9)
            rest = await asyncio.wait_for(shown.stdout.read(), 30)
            assert await shown.wait() == 0
            return [line.decode() for line in (*lines, *rest.splitlines(keepends=True))]

    lines = asyncio.run(go_on())
    assert lines[0] == "run live: record, open\n"
    whole = output(folder, "show", "live").splitlines(keepends=True)
    assert lines[1:] == whole[1:]
