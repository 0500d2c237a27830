"""A later call of a conversation is sent again by itself: what comes before it counts as asked and answered, and is not sent."""

import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from playhead.proxy.cli import main
from playhead.tests.support.origins import Origin
from playhead.tests.support.process import playhead

AGENT = """
import json, sys
from playhead.tests.support.refund_agent import send_by_urllib as send
url = sys.argv[1]

def ask(path, body):
    return send("POST", url + path, body, {"anthropic-version": "2023-06-01"})[1]

def look_up(order):
    return json.dumps(send("GET", f"{url}/orders/{order}", None)[1])

said = [{"role": "user", "content": "refund, please"}]
for _ in range(3):
    answer = ask("/v1/chat/completions", {"model": "gpt-4o", "messages": said})["choices"][0]["message"]
    said.append(answer)
    for call in answer.get("tool_calls") or ():
        result = look_up(json.loads(call["function"]["arguments"])["order"])
        said.append({"role": "tool", "tool_call_id": call["id"], "content": result})

said = [{"role": "user", "content": "refund, please"}]
for _ in range(3):
    answer = ask("/v1/messages", {"model": "claude-opus-4-5", "max_tokens": 99, "messages": said})["content"]
    said.append({"role": "assistant", "content": answer})
    results = [
        {"type": "tool_result", "tool_use_id": part["id"], "content": look_up(part["input"]["order"])}
        for part in answer if part["type"] == "tool_use"
    ]
    said += [{"role": "user", "content": results}] if results else []

said = [{"role": "user", "parts": [{"text": "refund, please"}]}]
for _ in range(3):
    answer = ask("/v1beta/models/gemini-2.0-flash:generateContent", {"contents": said})["candidates"][0]["content"]
    said.append(answer)
    results = [
        {"functionResponse": {"name": "look_up", "response": {"found": look_up(part["functionCall"]["args"]["order"])}}}
        for part in answer["parts"] if "functionCall" in part
    ]
    said += [{"role": "user", "parts": results}] if results else []

said = [{"role": "user", "content": "refund, please"}]
for _ in range(3):
    answer = ask("/v1/responses", {"model": "gpt-5", "input": said})["output"]
    said += answer
    for item in answer:
        if item["type"] == "function_call":
            result = look_up(json.loads(item["arguments"])["order"])
            said.append({"type": "function_call_output", "call_id": item["call_id"], "output": result})
"""
PATHS = {
    "chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-2.0-flash:generateContent",
    "responses": "/v1/responses",
}
_CALLS = (1, 3, 5)
"""Where each conversation has its calls of the model, from its first exchange; a read comes between two."""


def _answer(dialect: str, number: int, order: str | None) -> dict[str, Any]:
    """Give an answer that looks up an order, or none."""
    name, text = f"call_{dialect}_{number:06}", "It is done."
    arguments = {"order": order}
    if dialect == "chat":
        call = {"name": "look_up", "arguments": json.dumps(arguments)}
        calls = [{"id": name, "type": "function", "function": call}]
        said = {"content": None, "tool_calls": calls} if order else {"content": text}
        return {"model": "gpt-4o", "choices": [{"message": {"role": "assistant", **said}}]}
    if dialect == "anthropic":
        use = {"type": "tool_use", "id": name, "name": "look_up", "input": arguments}
        return {"model": "claude-opus-4-5", "content": [use if order else {"type": "text", "text": text}]}  # fmt: skip
    if dialect == "gemini":
        part = {"functionCall": {"name": "look_up", "args": arguments}} if order else {"text": text}
        return {"candidates": [{"content": {"role": "model", "parts": [part]}}]}
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}  # fmt: skip
    if order:
        item = {"type": "function_call", "call_id": name, "name": "look_up", "arguments": json.dumps(arguments)}  # fmt: skip
    return {"model": "gpt-5", "output": [item]}


class World(NamedTuple):
    """A store with one conversation of three calls in each dialect, and what came to the origin."""

    origin: Origin
    store: Path
    bodies: list[tuple[str, Any]]
    recorded: list[tuple[str, Any]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One recording for all."""
    folder, numbers = tmp_path_factory.mktemp("ask"), count()
    bodies: list[tuple[str, Any]] = []

    def handler(dialect: str) -> Any:
        async def answer(request: web.Request) -> web.Response:
            body = await request.json()
            bodies.append((dialect, body))
            done = json.dumps(body).count("look_up") // (2 if dialect == "gemini" else 1)
            order = f"order-{dialect}-{done}-abcdefgh" if done < 2 else None
            return web.json_response(_answer(dialect, next(numbers), order))

        return answer

    async def read(request: web.Request) -> web.Response:
        return web.json_response({"is": f"found {request.match_info['order']}, and is open"})

    routes = {path: handler(dialect) for dialect, path in PATHS.items()}
    with Origin({**routes, "/orders/{order}": read}) as origin:
        agent = folder / "agent.py"
        agent.write_text(AGENT)
        words = ("--store", folder / "store", "--run", "tape", "-q", "--")
        done = playhead("record", *words, sys.executable, agent, origin.url)
        assert done.returncode == 0, done.stderr
        assert len(origin.requests) == len(PATHS) * 5
        yield World(origin, folder / "store", bodies, bodies.copy())


@pytest.mark.parametrize("dialect", PATHS)
def test_each_call_of_a_conversation_is_asked_by_itself(
    world: World, capfd: pytest.CaptureFixture[str], dialect: str
) -> None:
    """Just as it was recorded, twice each; nothing else leaves."""
    first = 5 * list(PATHS).index(dialect)
    asked = [body for kind, body in world.recorded if kind == dialect]
    for place, body in zip(_CALLS, asked, strict=True):
        world.bodies.clear()
        before = len(world.origin.requests)
        words = ["--store", str(world.store), "tape", str(first + place), "--times", "2", "--yes"]
        with pytest.raises(SystemExit) as ended:
            main(["ask", *words, "--json"])
        told = capfd.readouterr()
        assert ended.value.code == 0, (told.out, told.err)
        document = json.loads(told.out)
        assert (document["refused"], len(document["runs"])) == ([], 2)
        assert world.origin.requests[before:] == [f"POST {PATHS[dialect]}"] * 2
        assert world.bodies == [(dialect, body)] * 2
