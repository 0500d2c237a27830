"""A model for teams of agents, and the host that their tools ask: `answer` is the one handler.

The provider keeps no state. Each request names its agent in a header that the agent's client was given, and that no rule of a lane
reads; what has been asked for already is in the request itself. The lead asks several analysts at a time, two of them the same
question, and two checkers, each of whom asks an auditor.
"""

import asyncio
import json
import random
import re
import secrets
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from aiohttp import web

from playhead.tests.agents.script import Asked, Call, Said, Tool, example
from playhead.tests.agents.wires import anthropic, chat, gemini, responses

AGENT = "x-agent"
"""The header that names the agent of a request."""
IN_TURN = "x-in-turn"
"""The header of an agent whose sub-agents do one thing at a time, so that they are asked one after the other."""
REGIONS = ("northern", "southern", "eastern", "western")
FLAKY = "/flaky"
"""Below it the provider answers no request that OpenAI's SDK sends for the first time."""
MARKS = {
    "analyst": "You find the figures of a region.",
    "checker": "You check the books of a region.",
    "auditor": "You audit a region, and trust nobody.",
}
"""By role, a sentence of the prompt of an agent whose client has no header of its own."""
TASK = "What do the figures of the {} region say?"
CHECK = "Please check the books of the {} region again."
AUDIT = "An audit of the {} region is needed."
_ROUNDS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("analyst", TASK.format("northern")), ("analyst", TASK.format("southern"))),
    (("checker", CHECK.format("northern")), ("checker", CHECK.format("southern"))),
    (("analyst", TASK.format("eastern")), ("analyst", TASK.format("eastern"))),
)
"""What the lead asks for, in turns; of each the agent and its task."""
_GEMINI = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>\w+)$")
_WIRES: dict[str, ModuleType] = {
    "/messages": anthropic,
    "/chat/completions": chat,
    "/responses": responses,
}
_TEXTS = ("input", "task", "request", "query", "prompt", "question", "message", "description")
_ENDS = ("final_answer",)


async def answer(request: web.Request) -> web.StreamResponse:
    """Say what a model says, or what a tool wants to know."""
    sent = await request.read()
    await asyncio.sleep(0.02 + random.random() / 50)
    name, in_turn = find_role(request.headers.get(AGENT), sent), IN_TURN in request.headers
    base = str(request.url.origin())
    if request.path.startswith(FLAKY) and request.headers.get("x-stainless-retry-count") == "0":
        return web.json_response({"error": {"message": "overloaded"}}, status=500)
    if found := _GEMINI.search(request.path):
        streams = found["verb"] == "streamGenerateContent"
        asked = gemini.read(json.loads(sent), found["model"], stream=streams)
        return await _give(request, gemini, asked, say(name, asked, base, in_turn=in_turn))
    wire = next((one for end, one in _WIRES.items() if request.path.endswith(end)), None)
    if wire is None:
        return web.Response(text=f"{request.path.rpartition('/')[2]}: {secrets.randbelow(10**6)}")
    asked = wire.read(json.loads(sent))
    return await _give(request, wire, asked, say(name, asked, base, in_turn=in_turn))


async def _give(
    request: web.Request, wire: ModuleType, asked: Asked, said: Said
) -> web.StreamResponse:
    if not asked.stream:
        return web.json_response(wire.whole(asked, said))
    told = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await told.prepare(request)
    events: Iterator[str] = wire.stream(asked, said)
    for event in events:
        await told.write(event.encode())
        await asyncio.sleep(0)
    await told.write_eof()
    return told


def find_role(named: str | None, sent: bytes) -> str:
    """Give the role of the agent that sends a request: as its client says, else by its prompt; empty for none of the team."""
    if named:
        return named
    body = json.loads(sent or b"{}")
    system = json.dumps(body.get("system") or [one["content"] for one in body.get("messages", ())])
    found = next((role for role, told in MARKS.items() if told in system), "")
    return found or ("lead" if len(body.get("tools") or ()) > 1 else "")


def say(name: str, asked: Asked, base: str, *, in_turn: bool) -> Said:
    """Give the next turn of an agent, by what has been asked for in its conversation.

    base: URL of the host that `look_up` asks, for agents who have but a shell.
    """
    tools = {tool.name: tool for tool in asked.tools}
    hands = [tool for tool in asked.tools if tool.name.startswith(("transfer", "handoff"))]
    if hands:
        return _hand_over(name, asked, hands)
    calls = list[Call]()
    match name:
        case "lead":
            rounds = [(one,) for some in _ROUNDS for one in some] if in_turn else _ROUNDS
            calls = [
                call
                for who, task in (rounds[asked.stage] if asked.stage < len(rounds) else ())
                for call in _ask(tools, who, task)
            ]
        case "checker" if asked.stage <= _notes(name, asked):
            calls = list(_ask(tools, "auditor", AUDIT.format(_region(asked))))
        case "analyst" | "auditor" if "look_up" in tools and len(_looked_up(asked)) <= _notes(
            name, asked
        ):
            calls = [_look_up(name, asked)]
        case "analyst" | "auditor" if "Bash" in tools and asked.stage == 0:
            command = f"curl -sS {base}/{name}/{_region(asked)}"
            calls = [Call("Bash", {"command": command, "description": "Look it up"})]
    if calls:
        return Said("", tuple(calls))
    text = _note(name, asked)
    end = next((tools[one] for one in _ENDS if one in tools), None)
    if end is not None:
        return Said("", (Call(end.name, {**example(end.schema), "answer": text}),))
    return Said(text)


def _hand_over(name: str, asked: Asked, hands: list[Tool]) -> Said:
    """Give the next turn of an agent in a conversation that is handed over: the analyst is asked twice, with the checker between."""
    found, checked = _notes("analyst", asked), _notes("checker", asked)
    to = "lead"
    if name == "lead":
        if found > 1:
            return Said(_note(name, asked))
        to = "analyst" if found == 0 or checked else "checker"
    elif name == "analyst" and len(_looked_up(asked)) <= found:
        return Said("", (_look_up(name, asked),))
    for tool in hands:
        properties: dict[str, Any] = tool.schema.get("properties", {})
        named: dict[str, Any] = {key: to for key in ("to_agent", "agent_name") if key in properties}
        if named or to in tool.name:
            text = "" if name == "lead" else _note(name, asked)
            return Said(text, (Call(tool.name, {**example(tool.schema), **named}),))
    return Said(_note(name, asked))


def _note(name: str, asked: Asked) -> str:
    return f"{name.capitalize()}: note {secrets.token_hex(6)} of the {_region(asked)} region."


def _notes(name: str, asked: Asked) -> int:
    """Count what an agent has said in a conversation."""
    return len(set(re.findall(rf"{name.capitalize()}: note (\w{{12}})", asked.text)))


def _looked_up(asked: Asked) -> set[str]:
    """Give what the tool has found in a conversation."""
    return set(re.findall(r"(?:\w+ern|whole): (\d+)", asked.text))


def _look_up(name: str, asked: Asked) -> Call:
    return Call("look_up", {"place": f"{name}/{_region(asked)}"})


def _region(asked: Asked) -> str:
    """Give the region that a request names last."""
    found = re.findall("|".join(REGIONS), asked.text)
    return found[-1] if found else "whole"


def _ask(tools: dict[str, Tool], who: str, task: str) -> Iterator[Call]:
    """Call the tool by which an agent asks another; nothing where it has none."""
    for tool in tools.values():
        properties: dict[str, Any] = tool.schema.get("properties", {})
        place = next((one for one in _TEXTS if one in properties), None)
        if place is None or tool.name in ("look_up", *_ENDS):
            continue
        named = {"coworker": who, "agent_name": who, "subagent_type": who, "member_id": who}
        choice = {key: value for key, value in named.items() if key in properties}
        if choice or who in tool.name:
            yield Call(tool.name, {**example(tool.schema), place: task, **choice})
            return
