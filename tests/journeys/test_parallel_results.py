"""Tools that ran side by side: their answers come in the recorded order of completion, and their results may be listed in another."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import BasicAuth, ClientSession, TCPConnector, web

from playhead.addons.run import playback_state
from playhead.config import Config, Playback
from playhead.proxy.engine.http import playback_stream
from playhead.tape.exchange import RunId
from playhead.tests.support.engine import Running, running_engine
from playhead.tests.support.origins import Origin
from playhead.timeline import Receipt, build, exit_code, render_receipt
from playhead.timeline.lookup.endpoints import Logged, Places, find_places, read_requests

CHAT = "/v1/chat/completions"
TOOLS = ("a", "b", "c")
FINISHED = ("c", "a", "b")
"""The order in which the tools end while they are recorded side by side."""


class Service:
    """A model that asks for three tools at once, and the tools, each of which ends when the one before it has been heard."""

    def __init__(self) -> None:
        self.heard: dict[str, asyncio.Event] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self.asked = 0

    def hear(self, tool: str) -> None:
        """Note that the agent has the answer of a tool."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._event(tool).set)

    def _event(self, tool: str) -> asyncio.Event:
        return self.heard.setdefault(tool, asyncio.Event())

    async def chat(self, request: web.Request) -> web.Response:
        self.loop = asyncio.get_running_loop()
        asked = await request.json()
        message: dict[str, Any] = {"role": "assistant", "content": "done"}
        if len(asked["messages"]) == 1:
            message = {"role": "assistant", "content": None, "tool_calls": _calls()}
        said = {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
        return web.json_response(said)

    async def tool(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if request.query.get("parallel"):
            at = FINISHED.index(name)
            # The first waits for the others to be under way, the others for the one before.
            self.asked += 1
            if self.asked == len(TOOLS):
                self._event("all").set()
            if at == 0:
                await self._event("all").wait()
            else:
                await self._event(FINISHED[at - 1]).wait()
        return web.Response(text=f"saw {name}")


def _calls() -> list[dict[str, Any]]:
    function = {"name": "look", "arguments": "{}"}
    return [{"id": f"call_{name}", "type": "function", "function": function} for name in TOOLS]


class Agent:
    """Asks the model, runs its tools, and asks the model twice more with their results."""

    def __init__(self, running: Running, origin: Origin, service: Service) -> None:
        self.proxy, self.origin, self.service = running.url, origin, service
        self.finished: list[str] = []

    async def work(
        self,
        *,
        begin: Sequence[str] = TOOLS,
        listed: Sequence[str] = (),
        parallel: bool = True,
        changed: str = "",
        seen: threading.Event | None = None,
    ) -> list[int]:
        """Work once; give the status of each model call.

        listed: order of the results; that in which the tools ended where it is empty.
        changed: tool whose result is another.
        seen: is set once all tools have been asked for, which then nothing is asked before.
        """
        auth = BasicAuth("tape", "x")
        async with ClientSession(connector=TCPConnector(limit=0)) as session:

            async def chat(messages: list[dict[str, Any]]) -> int:
                body = {"model": "m", "messages": messages}
                url = f"{self.origin.url}{CHAT}"
                async with session.post(
                    url, json=body, proxy=self.proxy, proxy_auth=auth
                ) as answer:
                    await answer.read()
                    return answer.status

            async def look(tool: str) -> None:
                url = f"{self.origin.url}/tool/{tool}" + ("?parallel=1" if parallel else "")
                async with session.get(url, proxy=self.proxy, proxy_auth=auth) as answer:
                    begun.append(tool)
                    if seen is not None and len(begun) == len(TOOLS):
                        seen.set()
                    results[tool] = await answer.text()
                self.finished.append(tool)
                self.service.hear(tool)

            begun: list[str] = []
            results: dict[str, str] = {}
            messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
            statuses = [await chat(messages)] if seen is None else []
            if parallel:
                await asyncio.gather(*map(look, begin))
            else:
                for tool in begin:
                    await look(tool)
            if changed:
                results[changed] += " twice"
            messages.append({"role": "assistant", "content": None, "tool_calls": _calls()})
            messages += [
                {"role": "tool", "tool_call_id": f"call_{tool}", "content": results[tool]}
                for tool in listed or self.finished
            ]
            statuses.append(await chat(messages))
            messages += [
                {"role": "assistant", "content": "done"},
                {"role": "user", "content": "and?"},
            ]
            statuses.append(await chat(messages))
        return statuses


@asynccontextmanager
async def _recorded(store: Path, *, parallel: bool = True, **config: Any) -> Any:
    service = Service()
    with Origin({CHAT: service.chat, "/tool/{name}": service.tool}) as origin:
        async with running_engine(Config(store=store)) as running:
            agent = Agent(running, origin, service)
            assert await agent.work(parallel=parallel) == [200, 200, 200]
            assert tuple(agent.finished) == (FINISHED if parallel else TOOLS)
            assert await running.open_run("tape").settled(10)
            await running.end("tape")
            origin.stop()
            service.loop = None
            running.play()
            running.change(**config)

            async def replay(**how: Any) -> tuple[Agent, list[int], Receipt]:
                again = Agent(running, origin, service)
                statuses = await again.work(parallel=parallel, **how)
                name = f"tape@{next(numbers)}"
                await running.end(name)
                return (
                    again,
                    statuses,
                    build(running.store, running.store.runs.get(RunId(name))),
                )

            numbers: Iterator[int] = iter(range(1, 100))
            yield replay


async def test_answers_come_in_the_recorded_order_of_completion(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the agent begins its tools, what lists their results as they end lists them as it did."""
    # A busy machine may keep the agent from its answers for longer than a user would wait.
    monkeypatch.setattr(playback_stream, "ORDER_MARGIN_US", 10_000_000)
    monkeypatch.setattr(playback_stream, "_HEARD_S", 0.1)
    async with _recorded(store_dir) as replay:
        for begin in (TOOLS, FINISHED, ("b", "a", "c"), TOOLS):
            agent, statuses, receipt = await replay(begin=begin)
            assert tuple(agent.finished) == FINISHED
            assert statuses == [200, 200, 200]
            assert receipt.faithful
            assert (receipt.matched["exact"], receipt.reordered_results) == (6, 0)


async def test_the_order_is_kept_while_the_tape_is_still_being_read(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent may be faster than what reads its tape in the background: then its answers wait for that."""
    monkeypatch.setattr(playback_stream, "ORDER_MARGIN_US", 10_000_000)
    monkeypatch.setattr(playback_stream, "_HEARD_S", 0.1)
    asked = threading.Event()

    reads = []

    def find_late(*given: Any) -> Places:
        assert asked.wait(10)
        return find_places(*given)

    def read(*given: Any) -> Iterator[Logged]:
        reads.append(given)
        return read_requests(*given)

    async with _recorded(store_dir) as replay:
        monkeypatch.setattr(playback_state, "find_places", find_late)
        monkeypatch.setattr(playback_state, "read_requests", read)
        agent, _, _ = await replay(seen=asked)
    assert tuple(agent.finished) == FINISHED
    assert len(reads) == 1  # one read of the log is for the order, and for what is near a miss


async def test_a_tape_that_is_too_large_says_that_its_order_is_not_kept(
    store_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipt warns of it; nothing else is another."""
    monkeypatch.setattr(playback_state, "MOST_PREPARED", 5)
    async with _recorded(store_dir) as replay:
        _, statuses, receipt = await replay()
    assert statuses == [200, 200, 200]
    assert receipt.faithful
    (warning,) = receipt.warnings
    assert warning.startswith("the tape has 6 exchanges, more than")
    assert warning.endswith("are not answered in their recorded order of completion")
    assert exit_code(receipt) == 0


async def test_results_in_another_order_are_the_same(store_dir: Path) -> None:
    """A block of results is compared by call id; the receipt counts the requests."""
    async with _recorded(store_dir) as replay:
        _, statuses, receipt = await replay(listed=("b", "a", "c"))
    assert statuses == [200, 200, 200]
    assert receipt.faithful
    assert receipt.reordered_results == 2
    assert receipt.to_json()["reordered_results"] == 2
    assert "reordered results: 2" in render_receipt(receipt).splitlines()
    assert (exit_code(receipt), receipt.divergences) == (0, [])


async def test_a_result_that_is_another_is_a_divergence_in_any_order(store_dir: Path) -> None:
    """Only the order may differ, and the place named is that of the result."""
    async with _recorded(store_dir) as replay:
        _, statuses, receipt = await replay(listed=("b", "a", "c"), changed="a")
    assert statuses[:2] == [200, 424]
    assert not receipt.faithful
    assert receipt.root is not None
    assert receipt.root["kind"] == "changed"


async def test_results_in_another_order_are_red_under_a_strict_order(store_dir: Path) -> None:
    """`order: strict` compares them as they stand."""
    async with _recorded(store_dir, playback=Playback(order="strict")) as replay:
        _, statuses, receipt = await replay(listed=("b", "a", "c"))
    assert statuses[:2] == [200, 424]
    assert exit_code(receipt) == 121


async def test_results_of_tools_that_ran_one_by_one_keep_their_order(store_dir: Path) -> None:
    """Where no two calls overlapped while they were recorded, another order is another conversation."""
    async with _recorded(store_dir, parallel=False) as replay:
        _, statuses, receipt = await replay(listed=("b", "a", "c"))
    assert statuses[:2] == [200, 424]
    assert exit_code(receipt) == 121


@pytest.mark.parametrize("left_out", TOOLS)
async def test_an_agent_that_leaves_a_tool_out_does_not_hang(
    store_dir: Path, left_out: str
) -> None:
    """What waits for an answer that is never asked for waits for a moment."""
    async with _recorded(store_dir) as replay:
        begin = tuple(tool for tool in TOOLS if tool != left_out)
        agent, _, receipt = await asyncio.wait_for(replay(begin=begin, listed=begin), 10)
    assert sorted(agent.finished) == sorted(begin)
    assert not receipt.faithful


def test_the_body_of_the_agent_is_json() -> None:
    """The calls that the model asks for can be sent back to it."""
    assert json.loads(json.dumps(_calls())) == _calls()
